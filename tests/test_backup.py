"""A home is backed up, goes on, is lost and is restored, with the commands of the guide: the archive of the backup is all there is.

The index stands beside it as newer, as older, or is gone.
"""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from memory_pipeline.embedded import EmbeddedPostgres
from memory_pipeline.settings import Settings, embedded_settings
from tests import guide
from tests.builders import a_session, clarified, promoted
from tests.command_line import Run, runner
from tests.doubles import HashEmbedder

W = "clinic"


class Drill:
    """A home beneath a directory, and whoever works in it from the command line."""

    def __init__(self, settings: Settings, run: Run) -> None:
        self.settings, self.home, self.directory = settings, settings.home, settings.home.parent
        self._run = run

    def done(self, *arguments: str) -> str:
        """Run a command of the program, which has to succeed; what it printed."""
        code, out, err = self._run(*arguments)
        assert code == 0, (arguments, err)
        return out

    def told(self, *arguments: str):
        return json.loads(self.done(*arguments, "--workspace", W, "--json"))

    def card(self, *arguments: str) -> None:
        self.done("card", *arguments, "--workspace", W)

    def session(self, number: int) -> None:
        """A session with a promoted clarification, taken in."""
        said = clarified(1, f"subject {number}", f"detail {number}"), promoted(2, 1)
        name, question = f"s{number:04d}", f"question {number}?"
        a_session(self.settings.sessions, *said, session=name, workspace=W, question=question, sql=None)
        self.done("ingest")

    def follow(self, *commands: str) -> None:
        """Type commands of the guide, one after the other."""
        for command in commands:
            program, *arguments = shlex.split(command)
            if program == "memory-pipeline":
                self.done(*arguments)
            else:
                subprocess.run(["bash", "-euc", command], cwd=self.directory, check=True)

    def cards(self) -> dict[str, tuple[int, str]]:
        """Card → version and detail, as the archive exports them."""
        self.done("export", "--workspace", W, str(self.directory / "cards.jsonl"))
        lines = (self.directory / "cards.jsonl").read_text().splitlines()
        found = [line for line in map(json.loads, lines) if line["kind"] == "card"]
        return {card["card_id"]: (card["version"], card["detail"]) for card in found}

    def recalled(self, text: str) -> dict[str, str]:
        """Card → detail, of all that is recalled for a text."""
        answer = self.told("recall", text, "--limit", "50")
        assert (answer["dropped"], answer["pending"]) == ({}, 0)
        return {hit["card_id"]: hit["detail"] for hit in answer["hits"]}

    def roles(self) -> dict[str, str]:
        return {grant["principal"]: grant["role"] for grant in self.told("grants", "list")["grants"]}


@pytest.fixture
def drill(scratch: Path, monkeypatch, capsys) -> Iterator[Drill]:
    """A home that somebody works in: from five sessions, with an edit, a deletion, a merge, a card by hand and a grant."""
    monkeypatch.setattr("memory_pipeline.runtime.open_embedder", lambda _: HashEmbedder())
    with tempfile.TemporaryDirectory(dir=scratch) as directory:
        settings = embedded_settings(Path(directory) / ".memory").model_copy(update={"principal": "anna"})
        made = Drill(settings, runner(settings, monkeypatch, capsys))
        made.done("migrate")
        yield made


def work(drill: Drill) -> None:
    for number in range(1, 6):
        drill.session(number)
    drill.done("project")
    shutil.copytree(drill.home / "index", drill.directory / "older")
    drill.card("change", "mem-0001", "--version", "1", "--detail", "before the backup")
    drill.card("delete", "mem-0002", "--version", "1")
    drill.card("merge", "mem-0003", "mem-0004", "--version", "1", "--other-version", "1")
    drill.card("create", "--family", "pitfall", "--subject", "by hand", "--detail", "detail by hand")
    drill.done("grants", "give", "ben", "reviewer", "--workspace", W)


def go_on(drill: Drill) -> None:
    """What the backup does not know: edits, a deletion, a card, a grant that is taken, and a session."""
    drill.card("change", "mem-0001", "--version", "2", "--detail", "after the backup")
    drill.card("delete", "mem-0005", "--version", "1")
    drill.card("create", "--family", "concept", "--subject", "lost subject", "--detail", "lost detail")
    drill.card("change", "mem-0007", "--version", "1", "--rationale", "lost too")
    drill.done("grants", "take", "ben", "--workspace", W)
    drill.session(6)
    drill.done("project")


def put_index(drill: Drill, state: str) -> None:
    """Let the index be as it was left when the archive was lost, or as it was before the backup."""
    if state != "gone":
        found = {"newer": drill.directory / ".memory.lost" / "index", "older": drill.directory / "older"}[state]
        shutil.copytree(found, drill.home / "index")


@pytest.mark.parametrize("index", ["newer", "older", "gone"])
def test_after_a_restore_recall_answers_with_the_archive_of_the_backup_alone(drill: Drill, index: str):
    back_up, *restore = guide.commands("A home")
    with EmbeddedPostgres(drill.home) as server:
        server.start(create=False)
        work(drill)
        kept = drill.cards()
    drill.follow(back_up)
    assert (drill.directory / "memory-backup.tar.gz").stat().st_mode & 0o077 == 0
    with EmbeddedPostgres(drill.home) as server:
        server.start(create=False)
        go_on(drill)
        assert drill.cards()["mem-0007"] == (2, "lost detail")
    at = restore.index("memory-pipeline migrate")
    drill.follow(*restore[:at])
    put_index(drill, index)
    with EmbeddedPostgres(drill.home) as server:
        server.start(create=False)
        drill.follow(*restore[at:])
        # Of what came later, the ledgers knew one promotion, which takes the number of a card that is lost.
        assert drill.cards() == kept | {"mem-0007": (1, "detail 6")}
        for text in ("lost subject: lost detail", "subject 1: after the backup", "subject 2: detail 2"):
            assert drill.recalled(text) == {card: detail for card, (_, detail) in drill.cards().items()}
        assert drill.roles() == {"anna": "administrator", "ben": "reviewer"}
        drill.card("create", "--family", "concept", "--subject", "found", "--detail", "anew")
        assert drill.recalled("found: anew")["mem-0008"] == "anew"
        drill.done("audit")
