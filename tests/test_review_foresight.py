"""What a correction is foreseen to do is what it does, whatever was written, read and edited before."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from memory_pipeline.archive.effects import Change, Effect
from memory_pipeline.candidates import Correction
from memory_pipeline.curation import Curation
from memory_pipeline.edits import Change as Edit
from memory_pipeline.edits import Delete
from memory_pipeline.errors import InvalidReview
from memory_pipeline.ledger import LEDGER_FILE, Decision
from memory_pipeline.reviewing import Retraction, Reviewing, Rollback
from memory_pipeline.settings import Settings
from tests.archives import Archive
from tests.builders import a_ledger, approved, clarified, declined, promoted, reopened, retracted, rewritten
from tests.curating import CLINIC, a_creation, a_runtime, a_workspace, all_away

SESSIONS = ("a", "b")
TEXTS = [("patient", "x = 1"), ("Patient", "x = 1."), ("patient", "x = 2"), ("fact_x", "y"), ("ward", "w = 1")]
ROUNDS, STEPS = 8, 10


@pytest.fixture
def archive(settings: Settings) -> Iterator[Archive]:
    """A workspace whose index is away, since no card depends on it, with an edited card and one made by hand."""
    with a_runtime(settings) as runtime:
        a_workspace(all_away(runtime))
        yield Archive(runtime)


def a_line(chance: random.Random, ledger: list[Decision], cards: list[str]) -> Decision:
    seq = len(ledger) + 1
    clarifications = [decision.seq for decision in ledger if decision.type == "concept_clarified"]
    earlier = chance.choice([*clarifications, *clarifications, chance.randint(1, seq)])
    subject, detail = chance.choice(TEXTS)
    rationale = chance.choice(["", "", f"from {chance.choice(cards)}" if cards else "why"])
    said = clarified(seq, subject, detail, rationale=rationale)
    choices = [said] * 5 + [promoted(seq, earlier)] * 5 + [declined(seq, earlier), retracted(seq, earlier)]
    choices += [reopened(seq, chance.randint(5, 8)), rewritten(seq, f"Question {seq % 3}?"), approved(seq)]
    return chance.choice(choices)


def write(archive: Archive, chance: random.Random, session: str, ledger: list[Decision]) -> None:
    """The assistant writes on, and now and then leaves out the newline of its last line."""
    for _ in range(chance.randint(2, 5)):
        ledger.append(a_line(chance, ledger, all_cards(archive)))
    lines = a_ledger(*ledger)
    status = chance.choice(["open", "finalized"])
    directory = archive.session(session=session, status=status, ledger=lines)
    if chance.random() < 0.2:
        (directory / LEDGER_FILE).write_bytes(lines.removesuffix(b"\n"))


def edit(archive: Archive, chance: random.Random) -> None:
    """An administrator changes, deletes or makes a card."""
    curation, cards = Curation(archive.runtime), all_cards(archive)
    if not cards or chance.random() < 0.3:
        subject, detail = chance.choice(TEXTS)
        curation.save(CLINIC, a_creation(subject=subject, detail=detail))
        return
    card_id = chance.choice(cards)
    version = curation.detail(CLINIC, card_id).version
    if chance.random() < 0.3:
        curation.save(CLINIC, Delete(card_id, version))
    elif card_id.startswith("mem"):
        curation.save(CLINIC, Edit(card_id, version, {"detail": chance.choice(TEXTS)[1]}))


def all_cards(archive: Archive) -> list[str]:
    return archive.column("SELECT card_id FROM card ORDER BY card_id")


def a_correction(chance: random.Random, ledger: list[Decision]) -> Correction:
    if chance.random() < 0.2:
        return Rollback(chance.randint(1, 8))
    telling = [decision.seq for decision in ledger if decision.type in {"memory_promoted", "sql_approved"}]
    return Retraction(chance.choices([*telling, *telling, *range(1, len(ledger) + 1)], k=chance.randint(1, 2)))


def told(effects: tuple[Effect, ...]) -> list[tuple[object, ...]]:
    """What is said of cards; a card that is foreseen to be made has no id yet."""
    return sorted(
        (
            "" if effect.change is Change.CREATED else effect.card_id,
            effect.change,
            effect.title,
            effect.sources,
            effect.rewritten,
            effect.flags,
        )
        for effect in effects
    )


@pytest.mark.parametrize("number", range(ROUNDS))
def test_what_is_foreseen_is_what_happens(archive: Archive, number: int):
    chance = random.Random(number)  # noqa: S311  # to be repeatable
    reviewing = Reviewing(archive.runtime)
    ledgers: dict[str, list[Decision]] = {name: [] for name in SESSIONS}
    changed = 0
    for _ in range(STEPS):
        session = chance.choice(SESSIONS)
        write(archive, chance, session, ledgers[session])
        if chance.random() < 0.5:
            archive.ingest()
        if chance.random() < 0.4:
            edit(archive, chance)
        correction = a_correction(chance, ledgers[session])
        before = archive.rows("SELECT card_id, version, flags FROM card ORDER BY card_id")
        foreseen = reviewing.foresee(CLINIC, session, correction)
        assert archive.rows("SELECT card_id, version, flags FROM card ORDER BY card_id") == before
        done = reviewing.correct(CLINIC, session, correction)
        assert done.followed.saved
        assert told(done.followed.cards) == told(foreseen.cards)
        assert (done.candidates_left, done.unchanged) == (foreseen.candidates_left, foreseen.unchanged)
        ledgers[session] += done.recorded
        again = reviewing.correct(CLINIC, session, correction)
        assert (again.recorded, again.followed.cards) == ((), ())
        changed += len(foreseen.cards)
    assert changed > 1


def test_what_is_not_there_is_foreseen_to_be_refused(archive: Archive):
    archive.session(clarified(1), session="a", status="open")
    for attempt in (Reviewing(archive.runtime).foresee, Reviewing(archive.runtime).correct):
        with pytest.raises(InvalidReview):
            attempt(CLINIC, "a", Retraction([9]))
