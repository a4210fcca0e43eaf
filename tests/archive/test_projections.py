"""What each point should hold follows cards and questions by itself; what it holds is certified by compare and set."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from memory_pipeline.archive import audits, cards, identities, projections
from memory_pipeline.archive.audits import Expected
from memory_pipeline.archive.projections import Waiting, Wanted
from memory_pipeline.cards import CardContent, Collection, Family
from memory_pipeline.points import card_fingerprint
from tests.builders import WORKSPACE, clarified, promoted

CARDS = Collection.MEMORY_CARDS
CONTENT = CardContent(Family.CONCEPT, "active patient", "flag_attivo = TRUE", database="clinic_dwh", schema="public")
OTHER = replace(CONTENT, detail="changed")


def fingerprint(content: CardContent) -> str:
    return card_fingerprint(content, (), "italian")


@pytest.fixture
def archive(archive):
    """With one card and its question, all certified."""
    archive.given(clarified(1), promoted(2, 1), sql=None)
    archive.certify_all()
    return archive


def update(archive, content: CardContent) -> None:
    with archive.database.transaction(WORKSPACE, writing=True) as tx:
        cards.update(tx, {"mem-0001": content}, principal="tester")


def pending(archive, collection=CARDS) -> list[Wanted]:
    with archive.database.transaction(WORKSPACE) as tx:
        return projections.pending(tx, archive.identity, collection, 100)


def certify(archive, held: dict[str, str], **others) -> int:
    with archive.database.transaction(WORKSPACE) as tx:
        return projections.certify(tx, archive.identity, CARDS, held, **others)


def expected(archive, collection=CARDS) -> dict[str, Expected]:
    with archive.database.transaction(WORKSPACE) as tx:
        items = archive.column("SELECT item_id FROM projection")
        return audits.expected(tx, archive.identity, collection, items)


def waiting(archive, identity: str | None = None) -> Waiting:
    with archive.database.transaction(WORKSPACE) as tx:
        return projections.waiting(tx, identity or archive.identity)


def defer(archive, reason="too long") -> int:
    with archive.database.transaction(WORKSPACE) as tx:
        return projections.defer(tx, archive.identity, CARDS, ["mem-0001"], reason)


def projection(archive, item="mem-0001"):
    (row,) = archive.rows("SELECT * FROM projection WHERE item_id = :item", item=item)
    return row


class TestWanted:
    def test_a_new_card_is_wanted_in_its_family_s_collection(self, archive):
        archive.given(session="session-2")
        assert archive.rows("SELECT collection, item_id FROM projection WHERE pending") == [
            {"collection": "solved_questions", "item_id": "sq-0001"}
        ]

    def test_a_changed_card_is_pending_with_its_current_state(self, archive):
        update(archive, OTHER)
        assert pending(archive) == [Wanted("mem-0001", fingerprint(OTHER), version=2, content=OTHER)]

    def test_a_question_is_pending_with_its_text(self, archive):
        archive.given(clarified(1), promoted(2, 1), session="session-2", question="Another?", sql=None)
        (wanted,) = pending(archive, Collection.QUESTIONS)
        assert (wanted.question, wanted.version, wanted.content) == ("Another?", 1, None)

    def test_a_change_that_the_point_does_not_show_leaves_it_certified(self, archive):
        update(archive, replace(CONTENT, rationale="by law"))
        assert archive.card()["version"] == 2
        assert pending(archive) == []

    def test_a_deleted_card_is_wanted_no_more_until_its_removal_is_certified(self, archive):
        with archive.database.transaction(WORKSPACE, writing=True) as tx:
            cards.delete(tx, ["mem-0001"])
        assert pending(archive) == [Wanted("mem-0001", None)]
        with archive.database.transaction(WORKSPACE) as tx:
            assert projections.certify_removed(tx, archive.identity, CARDS, ["mem-0001"]) == 1
        assert archive.column("SELECT 1 FROM projection WHERE collection = 'memory_cards'") == []

    def test_a_change_that_is_rolled_back_leaves_nothing_pending(self, archive):
        with pytest.raises(KeyError), archive.database.transaction(WORKSPACE, writing=True) as tx:
            cards.update(tx, {"mem-0001": OTHER}, principal="tester")
            raise KeyError
        assert pending(archive) == []

    def test_the_longest_waiting_come_first(self, archive):
        for number in (2, 3, 4):
            archive.given(clarified(1, str(number)), promoted(2, 1), session=f"session-{number}", sql=None)
        update(archive, OTHER)
        assert [wanted.item_id for wanted in pending(archive)] == ["mem-0002", "mem-0003", "mem-0004", "mem-0001"]


def test_a_point_that_is_to_be_removed_is_found_by_the_whole_key(archive, owner):
    many = "SELECT %s, %s, 'questions', 'q-' || n FROM generate_series(1, 20000) n"
    query = f"INSERT INTO projection (workspace, identity, collection, item_id) {many}"
    owner.execute(query, [WORKSPACE, archive.identity])
    owner.execute("ANALYZE projection")
    (body,) = owner.execute("SELECT prosrc FROM pg_proc WHERE proname = 'remove_point'").fetchone()
    for parameter, value in (("of_workspace", WORKSPACE), ("of_collection", "questions"), ("= item", "= 'q-7'")):
        body = body.replace(parameter, value if "=" in value else f"'{value}'")
    plan = "\n".join(line for (line,) in owner.execute(f"EXPLAIN {body.rstrip().rstrip(';')}").fetchall())
    (condition,) = [line for line in plan.splitlines() if "Index Cond" in line and "item_id" in line]
    assert "identity" in condition


class TestIdentities:
    @pytest.fixture
    def second(self, runtime):
        return replace(runtime.identity, revision="another")

    def test_a_new_one_wants_everything_that_the_archive_holds(self, archive, second):
        with archive.database.transaction(WORKSPACE) as tx:
            identities.register(tx, second)
        found = archive.rows(
            "SELECT collection, pending FROM projection WHERE identity = :hash ORDER BY 1", hash=second.hash
        )
        assert [tuple(row.values()) for row in found] == [("memory_cards", True), ("questions", True)]
        assert pending(archive) == []

    def test_registered_again_it_changes_nothing(self, archive, runtime):
        with archive.database.transaction(WORKSPACE) as tx:
            identities.register(tx, runtime.identity)
        assert archive.pending() == set()

    def test_a_change_is_wanted_by_all_of_them(self, archive, second):
        with archive.database.transaction(WORKSPACE) as tx:
            identities.register(tx, second)
        archive.certify_all()
        update(archive, OTHER)
        assert archive.column("SELECT count(*) FROM projection WHERE pending") == [2]

    def test_one_that_is_registered_while_a_card_is_being_made_misses_nothing(self, archive, second):
        def register():
            with archive.database.transaction(WORKSPACE) as tx:
                identities.register(tx, second)

        with archive.database.transaction(WORKSPACE, writing=True) as tx:
            cards.create(tx, [OTHER], origin="hand", principal="tester")
            registering = threading.Thread(target=register)
            registering.start()
            registering.join(0.3)
        registering.join()
        query = "SELECT item_id FROM projection WHERE identity = :hash AND collection = 'memory_cards' ORDER BY 1"
        assert archive.column(query, hash=second.hash) == ["mem-0001", "mem-0002"]


class TestCertification:
    def test_what_the_index_holds_is_no_longer_pending(self, archive):
        update(archive, OTHER)
        assert certify(archive, {"mem-0001": fingerprint(OTHER)}, truncated=["mem-0001"]) == 1
        found = projection(archive)
        assert (found["certified"], found["pending"], found["truncated"]) == (fingerprint(OTHER), False, True)

    def test_what_was_overtaken_stays_pending(self, archive):
        update(archive, OTHER)
        update(archive, replace(CONTENT, detail="changed again"))
        assert certify(archive, {"mem-0001": fingerprint(OTHER)}) == 0
        assert projection(archive)["pending"]

    def test_what_was_deleted_meanwhile_is_to_be_removed(self, archive):
        update(archive, OTHER)
        with archive.database.transaction(WORKSPACE, writing=True) as tx:
            cards.delete(tx, ["mem-0001"])
        assert certify(archive, {"mem-0001": fingerprint(OTHER)}) == 0
        assert pending(archive) == [Wanted("mem-0001", None)]

    def test_a_removal_that_was_overtaken_is_not_certified(self, archive):
        update(archive, OTHER)
        with archive.database.transaction(WORKSPACE) as tx:
            assert projections.certify_removed(tx, archive.identity, CARDS, ["mem-0001"]) == 0
        assert [wanted.item_id for wanted in pending(archive)] == ["mem-0001"]

    def test_a_card_that_was_changed_there_and_back_is_written_again(self, archive):
        """The point may hold what was wanted in between: that the archive once certified the content proves nothing."""
        update(archive, OTHER)
        update(archive, CONTENT)
        (wanted,) = pending(archive)
        assert (wanted.fingerprint, wanted.version) == (fingerprint(CONTENT), 3)
        assert certify(archive, {"mem-0001": fingerprint(OTHER)}) == 0
        assert certify(archive, {"mem-0001": fingerprint(CONTENT)}) == 1

    def test_waits_for_whoever_changes_cards(self, archive):
        """Both change the same projections, each in an order of its own."""
        held = {"mem-0001": fingerprint(OTHER)}
        with archive.database.transaction(WORKSPACE, writing=True) as tx:
            certifying = threading.Thread(target=certify, args=(archive, held))
            certifying.start()
            certifying.join(0.3)
            assert certifying.is_alive()
            cards.update(tx, {"mem-0001": OTHER}, principal="tester")
        certifying.join()
        assert not projection(archive)["pending"]

    def test_of_another_identity_or_collection_or_of_nothing_certifies_nothing(self, archive):
        update(archive, OTHER)
        held = {"mem-0001": fingerprint(OTHER)}
        with archive.database.transaction(WORKSPACE) as tx:
            assert projections.certify(tx, "another", CARDS, held) == 0
            assert projections.certify(tx, archive.identity, Collection.QUESTIONS, held) == 0
            assert projections.certify(tx, archive.identity, CARDS, {}) == 0
            assert projections.certify_removed(tx, archive.identity, CARDS, []) == 0


class TestExpected:
    def test_a_certified_point_is_expected_as_it_is_and_a_pending_one_as_it_will_be(self, archive):
        assert expected(archive) == {"mem-0001": Expected(fingerprint(CONTENT), 1, pending=False)}
        update(archive, OTHER)
        assert expected(archive) == {"mem-0001": Expected(fingerprint(OTHER), 2, pending=True)}

    def test_of_what_is_to_be_removed_no_version_is_expected(self, archive):
        with archive.database.transaction(WORKSPACE, writing=True) as tx:
            cards.delete(tx, ["mem-0001"])
        assert expected(archive) == {"mem-0001": Expected(None, None, pending=True)}

    def test_a_question_has_one_version(self, archive):
        (question,) = expected(archive, Collection.QUESTIONS).values()
        assert (question.version, question.pending) == (1, False)


class TestDeferral:
    def test_a_deferred_item_is_tried_later_and_later(self, archive):
        update(archive, OTHER)
        waits = []
        for _ in range(12):
            defer(archive)
            waits += archive.column(
                "SELECT extract(epoch FROM next_try - clock_timestamp()) FROM projection WHERE item_id = 'mem-0001'"
            )
        assert [round(float(wait), -1) for wait in waits[2:6]] == [20, 40, 80, 160]
        assert all(wait <= 3600 for wait in waits)
        assert projection(archive)["attempts"] == 12

    def test_it_is_left_out_until_then_unless_it_is_hastened(self, archive):
        update(archive, OTHER)
        defer(archive)
        assert pending(archive) == []
        with archive.database.transaction(WORKSPACE) as tx:
            assert projections.waiting(tx, archive.identity).due is False
            assert projections.hasten(tx, archive.identity, CARDS) == 1
        assert [wanted.item_id for wanted in pending(archive)] == ["mem-0001"]

    def test_a_further_change_gives_it_a_new_start(self, archive):
        update(archive, OTHER)
        defer(archive)
        update(archive, replace(CONTENT, detail="shorter"))
        assert [wanted.item_id for wanted in pending(archive)] == ["mem-0001"]
        assert (projection(archive)["attempts"], projection(archive)["reason"]) == (0, None)

    def test_reasons_are_counted(self, archive):
        update(archive, OTHER)
        defer(archive, "x" * 9000)
        with archive.database.transaction(WORKSPACE) as tx:
            assert projections.reasons(tx, archive.identity) == {"x" * 500: 1}

    def test_what_is_certified_is_not_deferred(self, archive):
        assert defer(archive) == 0


class TestDistrust:
    def test_what_the_index_does_not_hold_becomes_pending(self, archive):
        with archive.database.transaction(WORKSPACE) as tx:
            assert projections.distrust(tx, archive.identity, CARDS, ["mem-0001"], "missing") == 1
            assert projections.distrust(tx, archive.identity, CARDS, [], "missing") == 0
        assert (projection(archive)["certified"], projection(archive)["reason"]) == (None, "missing")

    def test_what_is_pending_already_is_tried_at_once_and_has_waited_since_then(self, archive):
        update(archive, OTHER)
        defer(archive)
        since = projection(archive)["wanted_at"]
        with archive.database.transaction(WORKSPACE) as tx:
            assert projections.distrust(tx, archive.identity, CARDS, ["mem-0001"], "wrong") == 1
        assert [wanted.item_id for wanted in pending(archive)] == ["mem-0001"]
        assert (projection(archive)["wanted_at"], projection(archive)["attempts"]) == (since, 0)


class TestWaiting:
    def test_the_oldest_pending_point_tells_since_when(self, archive):
        assert waiting(archive) == Waiting(0, due=False, oldest=None)
        update(archive, OTHER)
        assert waiting(archive) == Waiting(1, due=True, oldest=projection(archive)["wanted_at"])

    def test_for_an_identity_that_is_not_registered_everything_is(self, archive):
        found = waiting(archive, "another")
        assert (found.pending, found.due) == (2, True)  # a card and its question
        assert found.oldest is not None
        assert archive.column("SELECT count(*) FROM embedding_identity") == [1]


def test_states_count_every_collection(archive):
    update(archive, OTHER)
    with archive.database.transaction(WORKSPACE) as tx:
        found = projections.states(tx, archive.identity)
    assert [(state.collection.value, state.certified, state.pending) for state in found] == [
        ("memory_cards", 0, 1),
        ("solved_questions", 0, 0),
        ("questions", 1, 0),
    ]
    assert [state.oldest_pending is None for state in found] == [False, True, True]
