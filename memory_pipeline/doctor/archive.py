"""Checks of the archive: its server, its schema, and the two roles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlalchemy import text

from memory_pipeline.archive import roles
from memory_pipeline.archive.database import check_schema
from memory_pipeline.archive.queries import SCHEMA_REVISION
from memory_pipeline.archive.roles import OLDEST_SERVER, UNGUARDED, WITHHELD, Role, Server, Table
from memory_pipeline.doctor.base import Finding, Installation, fault, not_applicable, ok, warning
from memory_pipeline.doctor.connecting import connected
from memory_pipeline.lexical import is_supported

_MIGRATE = "run `memory-pipeline migrate`, which gives the runtime role what it needs"
_ANOTHER_ROLE = "name a role of its own in MEMORY_DATABASE_URL, which neither owns the tables nor is a superuser"
_NO_SUPERUSER = "name a role in MEMORY_OWNER_URL that owns the archive's tables and is no superuser"
_OWN = "name the role in MEMORY_OWNER_URL that owns the archive's database and tables"


def server(installation: Installation) -> Iterator[Finding]:
    """The server that the archive is on."""
    with connected(installation.runtime.archive_url) as connection:
        yield from judged_server(roles.server(connection))


def judged_server(found: Server) -> Iterator[Finding]:
    """Whether a server of PostgreSQL, and its database, can hold the archive."""
    if found.number < OLDEST_SERVER * 10_000:
        yield fault(f"PostgreSQL {found.version}", f"move the archive to PostgreSQL {OLDEST_SERVER} or newer")
    elif found.encoding != "UTF8":
        yield fault(
            f"the database {found.database} keeps texts in {found.encoding}", "make it anew with ENCODING 'UTF8'"
        )
    else:
        yield ok(f"PostgreSQL {found.version}, database {found.database}")


def schema(installation: Installation) -> Iterator[Finding]:
    """Whether the schema is the one that this library expects."""
    with connected(installation.runtime.archive_url) as connection:
        check_schema(connection)
    yield ok(f"revision {SCHEMA_REVISION}, as this memory-pipeline expects")


def runtime_role(installation: Installation) -> Iterator[Finding]:
    """The role that everything but a migration runs under."""
    with connected(installation.runtime.archive_url) as connection:
        yield from judged_runtime(roles.role(connection))


def judged_runtime(role: Role) -> Iterator[Finding]:
    """Whether a role can do its work, and is bound while it does."""
    faults = [fault(f"{role.name} {why}", _ANOTHER_ROLE) for why in _unbound(role)]
    if not role.superuser:  # of whom all the others follow
        lacking = {
            table.name: [p for p in table.lacking if p not in WITHHELD.get(table.name, ())] for table in role.tables
        }
        faults += [
            fault(f"{role.name} lacks {', '.join(those)} on {name}", _MIGRATE)
            for name, those in lacking.items()
            if those
        ]
        more = [table.name for table in role.tables if set(WITHHELD.get(table.name, ())) - set(table.lacking)]
        if more and not faults:  # who is not bound may do all of it anyway
            faults.append(warning(f"{role.name} may do more than it needs with {', '.join(more)}", _MIGRATE))
    yield from faults or [ok(f"{role.name} is bound by row security, and may do what it needs")]


def _unbound(role: Role) -> Iterator[str]:
    if role.superuser:
        yield "is a superuser, whom nothing binds"
        return
    if role.passes_row_security:
        yield "passes row security by (BYPASSRLS)"
    if owned := _names(table for table in role.tables if table.owned):
        yield f"owns {owned}, and could change the schema"
    open_ = [table for table in role.tables if table.name not in UNGUARDED and not table.guarded and not table.owned]
    if open_ and not role.passes_row_security:
        yield f"is not bound by row security on {_names(open_)}"


def owner(installation: Installation) -> Iterator[Finding]:
    """The role that migrates, where it is named."""
    settings = installation.settings
    if settings.owner_url is None and not settings.embedded_archive:
        yield not_applicable("MEMORY_OWNER_URL is not set: migrations run elsewhere")
        return
    with connected(installation.runtime.owner_url) as connection:
        yield from judged_owner(roles.role(connection))
        of_owner = roles.server(connection)
    with connected(installation.runtime.archive_url) as connection:
        if roles.server(connection).place != of_owner.place:
            yield fault(
                "MEMORY_OWNER_URL and MEMORY_DATABASE_URL name different databases", "name one database in both"
            )


def judged_owner(role: Role) -> Iterator[Finding]:
    """Whether a role can migrate, and do no more than that."""
    if role.superuser or role.passes_row_security:
        what = "is a superuser" if role.superuser else "passes row security by (BYPASSRLS)"
        yield fault(f"{role.name} {what}", _NO_SUPERUSER)
    elif not role.creates:
        yield fault(f"{role.name} may not make tables in the schema public", _OWN)
    elif others := _names(table for table in role.tables if not table.owned):
        yield fault(f"{role.name} does not own {others}", _OWN)
    else:
        yield ok(f"{role.name} can migrate")


def languages(installation: Installation) -> Iterator[Finding]:
    """Whether the texts of every workspace can be analysed."""
    with connected(installation.runtime.archive_url) as connection:
        found = connection.execute(text("SELECT workspace, language FROM workspace ORDER BY workspace")).all()
    unknown = [(name, language) for name, language in found if not is_supported(language)]
    for name, language in unknown:
        yield fault(f"{name} is in {language}, which is not supported", "install the memory-pipeline that knows it")
    if not unknown:
        used = sorted({language for _, language in found})
        yield ok(f"{len(found)} workspace(s)" + (f" in {', '.join(used)}" if used else ""))


def _names(tables: Iterable[Table]) -> str:
    return ", ".join(table.name for table in tables)
