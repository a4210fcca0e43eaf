"""Finds the tables and columns that a piece of SQL depends on (pure; parsing by sqlglot)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from memory_pipeline.cards import Dependency
from memory_pipeline.sql_tokens import tokens

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlglot import exp
    from sqlglot.optimizer.scope import Scope

# Characters; what is longer is kept, but not parsed. For the worst of this length, a long chain of OR, sqlglot takes
# some ten seconds, and for one of four times the length some minutes.
_LONGEST = 50_000
_WRITTEN = "written"


def sql_dependencies(sql: str, *, dialect: str, database: str, schema: str) -> tuple[Dependency, ...] | None:
    """The database objects that a query reads, under the names that the database knows them by.

    A column is listed where the query itself tells which table it belongs to; a query's own names (common table
    expressions, derived tables) are no dependencies.

    Args:
        sql: one statement or several.
        dialect: sqlglot's name of the SQL dialect.
        database: where a table is that names no database.
        schema: where a table is that names no schema.

    Returns:
        distinct and sorted; None when the SQL cannot be parsed, or is too long to be.
    """
    if len(sql) > _LONGEST:
        return None
    from sqlglot import Dialect, exp

    logging.getLogger("sqlglot").setLevel(logging.ERROR)  # an unknown statement is our caller's to report, not a log's
    try:
        parsed = Dialect.get_or_raise(dialect).parser().parse(list(tokens(sql, dialect)), sql)
        statements = [statement for statement in parsed if statement is not None]
        # What sqlglot does not know it hands back as a command, and a word or two as an expression.
        if not statements or any(isinstance(s, (exp.Command, exp.Condition, exp.Alias)) for s in statements):
            return None
        found = {d for s in statements for d in _objects(_resolved(s, dialect), database, schema)}
    except Exception:  # noqa: BLE001  # whatever a parser may trip over, one text does not stop the others' intake
        return None
    return tuple(sorted(dependency for dependency in found if dependency.plausible))


def dialect_fault(dialect: str) -> str | None:
    """Why no SQL can be in a dialect, or None when sqlglot knows it."""
    from sqlglot import Dialect
    from sqlglot.dialects import Dialects

    try:
        Dialect.get_or_raise(dialect)
    except ValueError:
        return f"sqlglot knows no such dialect: write one of {', '.join(sorted(filter(None, Dialects)))}"
    return None


def _resolved(statement: exp.Expr, dialect: str) -> exp.Expr:
    """The statement with names folded as the dialect folds them, so that equal names can be told by their spelling."""
    from sqlglot import Dialect, exp
    from sqlglot.dialects.dialect import NormalizationStrategy
    from sqlglot.optimizer.normalize_identifiers import normalize_identifiers

    strategy = Dialect.get_or_raise(dialect).normalization_strategy
    if strategy is NormalizationStrategy.CASE_INSENSITIVE:
        # Such a database keeps the spelling that an object was made with; the query's own is the best guess at it.
        for identifier in statement.find_all(exp.Identifier):
            identifier.meta[_WRITTEN] = identifier.this
    return normalize_identifiers(statement, dialect=dialect)


def _objects(statement: exp.Expr, database: str, schema: str) -> Iterator[Dependency]:
    from sqlglot.optimizer.scope import traverse_scope

    for scope in traverse_scope(statement):
        tables = _tables(scope, database, schema)
        yield from tables.values()
        for column in scope.columns:
            if owner := _owner(column, tables, len(scope.selected_sources)):
                yield Dependency(owner.database, owner.schema, owner.table, _name(column, "this"))


def _tables(scope: Scope, database: str, schema: str) -> dict[str, Dependency]:
    from sqlglot import exp

    return {
        alias: Dependency(_name(source, "catalog") or database, _name(source, "db") or schema, _name(source, "this"))
        for alias, (_, source) in scope.selected_sources.items()
        if isinstance(source, exp.Table) and source.name
    }


def _name(node: exp.Expr, part: str) -> str:
    identifier = node.args.get(part)
    if identifier is None:
        return ""
    return str(identifier.meta.get(_WRITTEN) or identifier.name)


def _owner(column: exp.Column, tables: dict[str, Dependency], sources: int) -> Dependency | None:
    if column.table:
        return tables.get(column.table)
    return next(iter(tables.values())) if sources == 1 and tables else None
