"""Edits: card, links, dependencies and sources in one transaction, on the version they were based on, all or nothing."""

from __future__ import annotations

import threading

import pytest
from sqlalchemy.exc import DBAPIError

from memory_pipeline.archive.editing import Saved
from memory_pipeline.cards import CardContent, Dependency, Family, Flag
from memory_pipeline.edits import Change, Create, Delete, Link, Merge
from memory_pipeline.edits_json import content_as_json
from memory_pipeline.errors import CardNotFound, InvalidEdit, VersionConflict
from memory_pipeline.runtime import Runtime
from tests.builders import QUESTION, SQL, approved, clarified, promoted, retracted
from tests.editors import Editor, a_content

SOLVED = Family.SOLVED_QUESTION
TABLE = Dependency("d", "s", "patients")
COLUMN = Dependency("d", "s", "patients", "id")
NO_CARD = ["mem-0009", "", "%", "a\x00b", "\ud800"]


@pytest.fixture
def editor(runtime) -> Editor:
    return Editor(runtime)


@pytest.fixture
def other(editor, runtime) -> Editor:
    """Another workspace with cards of the same ids and one more."""
    other = Editor(runtime, "other")
    for subject in ("theirs", "theirs too", "theirs as well"):
        other.create(subject=subject)
    return other


class TestCreation:
    @pytest.mark.parametrize("family", Family)
    def test_of_each_family(self, editor, family):
        content = a_content(family, database="dwh", schema="public", dependencies=(TABLE, COLUMN))
        saved = editor.apply(Create(content), principal="anna")
        found = editor.detail(saved.card_id)
        assert saved == Saved(f"{family.id_prefix}-0001", 1)
        assert (found.content, found.version, found.origin, found.edited) == (content, 1, "hand", True)
        assert (found.updated_by, found.sources, found.flags) == ("anna", (), ())

    def test_outlives_all_that_was_open(self, editor, settings):
        other = editor.create()
        content = a_content(SOLVED, context="c", database="dwh", dependencies=(TABLE, COLUMN))
        editor.apply(Create(content, (Link(other, "explains"), Link(other, "needs", outgoing=False))))
        editor.runtime.close()
        with Runtime(settings) as reopened:
            found = Editor(reopened)
            assert found.content("sq-0001") == content
            assert found.links("sq-0001") == {Link(other, "explains"), Link(other, "needs", outgoing=False)}

    def test_is_wanted_by_the_index_at_once(self, editor):
        assert editor.pending() == set()
        assert {editor.create()} == editor.pending()

    def test_that_is_refused_names_all_faults_at_once_and_leaves_nothing(self, editor):
        before = editor.picture()
        with pytest.raises(InvalidEdit) as refused:
            editor.create(Link("mem-0009", " "), Link("mem-0009", "x"), subject="", detail="\x00", sql="SELECT 1")
        assert refused.value.faults.keys() == {"subject", "detail", "sql", "links.0", "links.1"}
        assert editor.picture() == before

    def test_that_is_refused_names_cards_that_are_not_there_among_the_faults(self, editor):
        editor.create()
        with pytest.raises(InvalidEdit) as refused:
            editor.create(Link("mem-0001", "see"), Link("mem-0009", "see"), subject="")
        assert refused.value.faults.keys() == {"subject", "links.1"}
        with pytest.raises(InvalidEdit) as refused:
            editor.alter("mem-0001", Link("mem-0009", "see"), subject="")
        assert refused.value.faults == {
            "subject": "a concept needs it: write some text",
            "links.0": "no card 'mem-0009' in workspace 'clinic'",
        }

    @pytest.mark.parametrize("card_id", NO_CARD)
    @pytest.mark.parametrize("outgoing", [True, False])
    def test_with_a_link_that_leads_nowhere_is_refused(self, editor, card_id, outgoing):
        there, before = editor.create(), editor.picture()
        with pytest.raises(CardNotFound, match=r"no card .* in workspace 'clinic' to link with"):
            editor.create(Link(there, "fine"), Link(card_id, "explains", outgoing))
        assert editor.picture()["card"] == [*before["card"]]

    def test_never_takes_an_id_again(self, editor):
        first = editor.create()
        editor.delete(first)
        assert (first, editor.create(), editor.create(family=SOLVED)) == ("mem-0001", "mem-0002", "sq-0001")


class TestChange:
    @pytest.mark.parametrize("family", Family)
    def test_replaces_what_it_names_and_counts_a_version(self, editor, family):
        card_id = editor.create(family=family, database="dwh")
        values = {"question": "?", "context": "c"} if family is SOLVED else {"subject": "s", "concepts": ("a", "b")}
        edit = Change(card_id, 1, {**values, "dependencies": (TABLE,)})
        assert editor.apply(edit, principal="bruno") == Saved(card_id, 2)
        found = editor.detail(card_id)
        assert found.content == a_content(family, **values, database="dwh", dependencies=(TABLE,))
        assert (found.version, found.updated_by, found.created_at < found.updated_at) == (2, "bruno", True)

    def test_of_nothing_is_no_change(self, editor):
        editor.create(dependencies=(TABLE, COLUMN), concepts=("a",))
        before = editor.picture()
        same = {"subject": "active patient", "dependencies": (COLUMN, TABLE, TABLE), "concepts": ("a",)}
        assert editor.alter("mem-0001", **same) == Saved("mem-0001", 1, changed=False)
        assert editor.picture() == before

    def test_that_the_point_does_not_show_leaves_it_certified(self, editor):
        editor.create()
        editor.certify_all()
        editor.alter("mem-0001", rationale="by law")
        assert editor.pending() == set()
        editor.alter("mem-0001", detail="flag_attivo")
        assert editor.pending() == {"mem-0001"}

    def test_names_all_faults_at_once_and_leaves_the_card(self, editor):
        editor.create()
        before = editor.picture()
        with pytest.raises(InvalidEdit) as refused:
            editor.alter("mem-0001", Link("mem-0001", "x"), subject=None, sql="s", family=SOLVED, concepts=["a"])
        assert refused.value.faults.keys() == {"subject", "sql", "family", "concepts", "links.0"}
        assert editor.picture() == before

    @pytest.mark.parametrize("card_id", NO_CARD)
    def test_of_what_is_not_there_is_an_error(self, editor, card_id):
        editor.create()
        for edit in (Change(card_id, 1, {"subject": "x"}), Delete(card_id, 1), Merge(card_id, 1, "mem-0001", 1)):
            with pytest.raises(CardNotFound, match=r"no card .* in workspace 'clinic'"):
                editor.apply(edit)

    def test_makes_a_card_of_a_session_an_administrator_s(self, editor):
        editor.given()
        editor.alter("mem-0001", detail="flag_attivo")
        found = editor.detail("mem-0001")
        assert (found.origin, found.edited, [source.session_id for source in found.sources]) == (
            "session",
            True,
            ["session-1"],
        )


class TestConflict:
    def test_shows_what_the_card_says_instead_and_changes_nothing(self, editor):
        editor.create(concepts=("a",))
        editor.alter("mem-0001", detail="theirs", rationale="theirs")
        before = editor.picture()
        with pytest.raises(VersionConflict) as conflict:
            editor.alter("mem-0001", version=1, detail="mine", subject="active patient", concepts=("a",))
        error = conflict.value
        assert (error.card_id, error.based_on, error.version, error.updated_by) == ("mem-0001", 1, 2, "anna")
        assert (error.now, error.links) == ({"detail": "theirs"}, [])
        assert "; the card says detail 'theirs'; look at the card" in str(error)
        assert editor.picture() == before

    def test_claims_of_nothing_that_it_has_changed(self, editor):
        """No history is kept: what the edit wanted to replace may have been so all along."""
        editor.create(subject="first")
        editor.create(subject="second")
        editor.alter("mem-0001", detail="theirs")
        with pytest.raises(VersionConflict) as conflict:
            editor.alter(
                "mem-0001", Link("mem-0002", None), Link("mem-0002", "x", outgoing=False), version=1, subject="mine"
            )
        said = "the card says subject 'first', has no link to mem-0002, has no link from mem-0002; look"
        assert said in str(conflict.value)
        assert not any(word in str(conflict.value) for word in ("now", "gone", "family"))

    def test_of_an_edit_that_replaces_nothing_shows_the_whole_card(self, editor):
        for subject in ("active patient", "other", "third"):
            editor.create(subject=subject, dependencies=(Dependency("", "", "patients", ""),), concepts=("a", "b"))
        editor.alter("mem-0001", Link("mem-0002", "narrows"), Link("mem-0003", "needs", outgoing=False))
        for edit in (Delete("mem-0001", 1), Merge("mem-0001", 1, "mem-0002", 2), Merge("mem-0002", 2, "mem-0001", 1)):
            with pytest.raises(VersionConflict) as conflict:
                editor.apply(edit)
            said = content_as_json(editor.content("mem-0001"))
            assert conflict.value.now == {name: value for name, value in said.items() if name != "family"}
            assert conflict.value.links == [
                {"other": "mem-0002", "meaning": "narrows", "outgoing": True},
                {"other": "mem-0003", "meaning": "needs", "outgoing": False},
            ]
            for part in (
                "the card says subject 'active patient'",
                "concepts 'a, b'",
                "dependencies 'patients'",
                "links to mem-0002 'narrows', is linked from mem-0003 'needs'; look",
            ):
                assert part in str(conflict.value)

    def test_of_an_edit_of_links_shows_what_became_of_them(self, editor):
        for _ in range(3):
            editor.create()
        editor.alter("mem-0001", Link("mem-0002", "narrows"))
        with pytest.raises(VersionConflict, match="links to mem-0002 'narrows', has no link to mem-0003") as conflict:
            editor.alter("mem-0001", Link("mem-0002", "x"), Link("mem-0003", "x"), version=1, concepts=())
        assert conflict.value.now == {}
        assert [link["meaning"] for link in conflict.value.links] == ["narrows", None]

    @pytest.mark.parametrize("version", [0, -1, 3, 10**30])
    def test_with_a_version_that_is_not_the_current_one(self, editor, version):
        editor.create()
        editor.create()
        editor.alter("mem-0001", detail="now at 2")
        for edit in (
            Change("mem-0001", version, {"detail": "x"}),
            Delete("mem-0001", version),
            Merge("mem-0001", version, "mem-0002", 1),
            Merge("mem-0002", 1, "mem-0001", version),
        ):
            with pytest.raises(VersionConflict, match="is at version 2, changed by anna"):
                editor.apply(edit)
        assert (editor.version("mem-0001"), editor.version("mem-0002")) == (2, 1)

    def test_comes_before_what_else_is_wrong(self, editor):
        """Whoever sees an old card cannot know what its values mean now."""
        editor.create()
        editor.alter("mem-0001", detail="x")
        with pytest.raises(VersionConflict):
            editor.alter("mem-0001", version=1, titel="x")

    def test_of_two_at_once_exactly_one_wins(self, editor):
        editor.create()
        outcomes = []

        def edit(detail):
            try:
                outcomes.append(editor.apply(Change("mem-0001", 1, {"detail": detail})).version)
            except VersionConflict as conflict:
                outcomes.append(conflict.now)

        threads = [threading.Thread(target=edit, args=(detail,)) for detail in ("one", "two")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(outcomes, key=str) == [2, {"detail": editor.card()["detail"]}]


class TestLinks:
    @pytest.fixture
    def editor(self, editor: Editor) -> Editor:
        for subject in ("first", "second", "third"):
            editor.create(subject=subject)
        editor.alter("mem-0001", Link("mem-0002", "explains"), Link("mem-0003", "needs", outgoing=False))
        return editor

    def test_are_made_changed_and_removed_one_by_one(self, editor):
        editor.alter("mem-0001", Link("mem-0002", "narrows"), Link("mem-0003", None, outgoing=False))
        assert editor.links("mem-0001") == {Link("mem-0002", "narrows")}
        editor.alter("mem-0001", Link("mem-0002", "widens", outgoing=False))
        assert editor.links("mem-0001") == {Link("mem-0002", "narrows"), Link("mem-0002", "widens", outgoing=False)}

    def test_count_a_version_of_the_cards_at_both_ends(self, editor):
        assert self.versions(editor) == [2, 2, 2]
        editor.alter("mem-0002", Link("mem-0001", "narrows", outgoing=False), Link("mem-0001", "back"))
        assert self.versions(editor) == [3, 3, 2]
        editor.alter("mem-0003", Link("mem-0001", None))
        assert self.versions(editor) == [4, 3, 3]
        editor.create(Link("mem-0001", "see"), Link("mem-0002", "see", outgoing=False))
        assert self.versions(editor) == [5, 4, 3]

    def test_make_an_edit_from_the_other_end_a_conflict(self, editor):
        """Or an edit that was made without having seen them would overwrite them, or delete their card."""
        seen = editor.version("mem-0002")
        editor.alter("mem-0001", Link("mem-0002", "theirs"))
        for edit in (
            Change("mem-0002", seen, {}, (Link("mem-0001", "mine", outgoing=False),)),
            Change("mem-0002", seen, {}, (Link("mem-0001", None, outgoing=False),)),
            Delete("mem-0002", seen),
        ):
            with pytest.raises(VersionConflict, match="mem-0001 'theirs'"):
                editor.apply(edit)
        assert Link("mem-0002", "theirs") in editor.links("mem-0001")

    def test_leave_what_the_card_at_the_other_end_says_to_its_sessions(self, editor):
        editor.given(clarified(1, "of a session"), promoted(2, 1), sql=None)
        editor.certify_all()
        editor.apply(Change("mem-0001", 2, {}, (Link("mem-0004", "near"),)), principal="bruno")
        found = editor.detail("mem-0004")
        assert (found.version, found.updated_by, found.edited) == (2, "bruno", False)
        assert found.created_at < found.updated_at
        assert editor.pending() == set()

    def test_that_are_there_or_gone_already_change_nothing(self, editor):
        before = editor.picture()
        saved = editor.alter("mem-0001", Link("mem-0002", "explains"), Link("mem-0003", None))
        assert saved == Saved("mem-0001", 2, changed=False)
        assert editor.picture() == before

    def versions(self, editor) -> list[int]:
        return [editor.version(f"mem-000{number}") for number in (1, 2, 3)]

    def test_survive_a_change_of_the_content(self, editor):
        before = editor.links("mem-0001")
        editor.alter("mem-0001", detail="other", dependencies=(TABLE,))
        assert editor.links("mem-0001") == before

    def test_to_itself_and_twice_are_refused(self, editor):
        before = editor.picture()
        with pytest.raises(InvalidEdit) as refused:
            editor.alter(
                "mem-0001", Link("mem-0001", "x"), Link("mem-0002", "a"), Link("mem-0002", "b"), detail="changed"
            )
        assert refused.value.faults.keys() == {"links.0", "links.2"}
        assert editor.picture() == before

    @pytest.mark.parametrize("outgoing", [True, False])
    def test_that_dangle_take_the_content_back_with_them(self, editor, outgoing):
        before = editor.picture()
        with pytest.raises(CardNotFound, match="no card 'mem-0008', 'mem-0009' in"):
            editor.alter("mem-0001", Link("mem-0009", "x", outgoing), Link("mem-0008", "x", outgoing), detail="changed")
        assert editor.picture() == before

    def test_go_with_a_deleted_card_and_leave_the_neighbours(self, editor):
        editor.alter("mem-0002", Link("mem-0003", "near"))
        editor.delete("mem-0001")
        assert editor.card_ids() == ["mem-0002", "mem-0003"]
        assert editor.links("mem-0002") == {Link("mem-0003", "near")}
        assert (editor.version("mem-0002"), editor.version("mem-0003")) == (3, 3)  # nothing of it can be overwritten


class TestOtherWorkspaces:
    """An id of another workspace is not found, and the other workspace is untouched."""

    @pytest.mark.parametrize(
        "edit",
        [
            Change("mem-0003", 1, {"detail": "x"}),
            Delete("mem-0003", 1),
            Merge("mem-0003", 1, "mem-0001", 1),
            Merge("mem-0001", 1, "mem-0003", 1),
            Change("mem-0001", 1, {}, (Link("mem-0003", "out"),)),
            Change("mem-0001", 1, {}, (Link("mem-0003", "in", outgoing=False),)),
            Change("mem-0001", 1, {}, (Link("mem-0003", None),)),
            Create(a_content(), (Link("mem-0003", "out"),)),
            Create(a_content(), (Link("mem-0003", "in", outgoing=False),)),
        ],
        ids=["change", "delete", "keep", "merge", "link out", "link in", "unlink", "create out", "create in"],
    )
    def test_are_out_of_reach(self, editor, other, edit):
        editor.create()
        ours, theirs = editor.picture(), other.picture()
        with pytest.raises(CardNotFound, match="'mem-0003' in workspace 'clinic'"):
            editor.apply(edit)
        assert (editor.picture(), other.picture()) == (ours, theirs)

    def test_are_not_touched_by_edits_of_equal_ids(self, editor, other):
        theirs = other.picture()
        editor.create()
        editor.create(Link("mem-0001", "near"))
        editor.merge("mem-0001", "mem-0002")
        editor.delete("mem-0001")
        assert other.picture() == theirs


class TestDependencies:
    def test_of_a_solved_question_come_from_its_sql(self, editor):
        editor.create(family=SOLVED, sql="SELECT id FROM patients", database="d", schema="s")
        assert editor.content("sq-0001").dependencies == (TABLE, COLUMN)
        editor.alter("sq-0001", sql="SELECT * FROM visits")
        assert editor.content("sq-0001").dependencies == (Dependency("d", "s", "visits"),)
        editor.alter("sq-0001", schema="other")
        assert editor.content("sq-0001").dependencies == (Dependency("d", "other", "visits"),)

    def test_that_are_given_come_before_those_of_the_sql(self, editor):
        editor.create(family=SOLVED, dependencies=(COLUMN,))
        assert editor.content("sq-0001").dependencies == (COLUMN,)
        editor.alter("sq-0001", sql="SELECT * FROM visits", dependencies=(TABLE,))
        assert editor.content("sq-0001").dependencies == (TABLE,)
        editor.alter("sq-0001", context="the SQL stays")
        assert editor.content("sq-0001").dependencies == (TABLE,)
        editor.alter("sq-0001", dependencies=())
        assert editor.content("sq-0001").dependencies == ()

    @pytest.mark.parametrize("values", [{"sql": "SELECT * FROM visits"}, {"dialect": "duckdb"}, {"schema": "other"}])
    def test_that_are_given_stay_when_the_sql_changes(self, editor, values):
        editor.create(family=SOLVED, sql="SELECT id FROM patients", dependencies=(COLUMN,))
        editor.alter("sq-0001", **values)
        assert editor.content("sq-0001").dependencies == (COLUMN,)
        editor.alter("sq-0001", sql="SELECT (")
        assert (editor.content("sq-0001").dependencies, editor.detail("sq-0001").flags) == ((COLUMN,), ())

    def test_that_are_given_as_the_sql_has_them_follow_it(self, editor):
        editor.create(
            family=SOLVED, sql="SELECT id FROM patients", database="d", schema="s", dependencies=(COLUMN, TABLE)
        )
        editor.alter("sq-0001", sql="SELECT * FROM visits")
        assert editor.content("sq-0001").dependencies == (Dependency("d", "s", "visits"),)

    def test_of_a_session_s_solved_question_follow_its_sql(self, editor):
        editor.given(approved(1))
        editor.alter("sq-0001", sql="SELECT * FROM visits")
        assert editor.content("sq-0001").tables == ("visits",)

    def test_of_sql_that_does_not_parse_are_unknown_and_flagged_until_it_does(self, editor):
        made = editor.apply(Create(a_content(SOLVED, sql="SELECT (")))
        assert made == Saved("sq-0001", 1, flags=(Flag.SQL_UNPARSED,))
        assert editor.detail("sq-0001").flags == (Flag.SQL_UNPARSED,)
        assert editor.alter("sq-0001", context="c").flags == (Flag.SQL_UNPARSED,)
        assert editor.detail("sq-0001").flags == (Flag.SQL_UNPARSED,)
        editor.alter("sq-0001", sql="SELECT 1")
        assert editor.detail("sq-0001").flags == ()
        editor.alter("sq-0001", sql="SELECT (")
        assert editor.detail("sq-0001").flags == (Flag.SQL_UNPARSED,)

    def test_of_sql_that_does_not_parse_may_be_given_by_hand(self, editor):
        editor.create(family=SOLVED, sql="SELECT (")
        editor.alter("sq-0001", dependencies=(TABLE,))
        found = editor.detail("sq-0001")
        assert (found.flags, found.content.dependencies) == ((), (TABLE,))

    def test_of_another_family_are_those_that_are_given(self, editor):
        editor.create(detail="SELECT * FROM patients", dependencies=(Dependency(database="d"), TABLE))
        assert editor.content("mem-0001").dependencies == (Dependency(database="d"), TABLE)
        editor.alter("mem-0001", detail="SELECT * FROM visits")
        assert editor.content("mem-0001").dependencies == (Dependency(database="d"), TABLE)


@pytest.fixture
def failing(owner):
    """The second dependency that is inserted fails, in the middle of a save."""
    owner.execute("""
        CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN RAISE EXCEPTION 'planted'; END $$;
        CREATE TRIGGER fail BEFORE INSERT ON card_dependency
            FOR EACH ROW WHEN (new."table" = 'zzz') EXECUTE FUNCTION fail();
    """)


class TestAllOrNothing:
    """A failure in the middle of a save leaves card, links and dependencies as before."""

    FATAL = (TABLE, Dependency("d", "s", "zzz"))

    @pytest.fixture
    def editor(self, editor: Editor, failing) -> Editor:
        editor.given(approved(1))
        editor.create(subject="first", dependencies=(TABLE,))
        editor.create(Link("mem-0001", "near"), subject="second", dependencies=(COLUMN,))
        editor.certify_all()
        return editor

    @pytest.mark.parametrize(
        "edit",
        [
            Create(a_content(dependencies=FATAL), (Link("mem-0001", "x"),)),
            Change("mem-0002", 1, {"subject": "changed", "dependencies": FATAL}, (Link("mem-0001", "far"),)),
            Change("mem-0002", 1, {"dependencies": FATAL}, (Link("mem-0001", None), Link("sq-0001", "x"))),
            Change("sq-0001", 1, {"sql": "SELECT 1 FROM aaa, zzz"}, (Link("mem-0001", "x", outgoing=False),)),
        ],
        ids=["create", "change", "unlink", "derived"],
    )
    def test_of_an_edit(self, editor, edit):
        before = editor.picture()
        with pytest.raises(DBAPIError, match="planted"):
            editor.apply(edit)
        assert editor.picture() == before

    def test_of_a_merge(self, editor, owner):
        editor.create(subject="third")
        owner.execute(
            "INSERT INTO card_source VALUES ('clinic', 's', 1, 'concept_clarified', 2, 'key', 'mem-0003', NULL)"
        )
        owner.execute("ALTER TABLE card_dependency DISABLE TRIGGER fail")
        editor.alter("mem-0003", Link("mem-0002", "x"), dependencies=self.FATAL)
        owner.execute("ALTER TABLE card_dependency ENABLE TRIGGER fail")
        before = editor.picture()
        with pytest.raises(DBAPIError, match="planted"):
            editor.merge("mem-0001", "mem-0003")
        assert editor.picture() == before

    def test_what_failed_can_be_done_again(self, editor, owner):
        edit = Change("mem-0002", 1, {"dependencies": self.FATAL})
        with pytest.raises(DBAPIError):
            editor.apply(edit)
        owner.execute("DROP TRIGGER fail ON card_dependency")
        assert editor.apply(edit) == Saved("mem-0002", 2)
        assert editor.content("mem-0002").dependencies == self.FATAL


class TestDeletion:
    @pytest.mark.parametrize("family", Family)
    def test_leaves_nothing_but_a_point_to_be_removed(self, editor, family):
        card_id = editor.create(family=family, dependencies=(TABLE,))
        editor.certify_all()
        assert editor.delete(card_id) == Saved(card_id, None)
        after = editor.picture()
        assert (after["card"], after["card_dependency"]) == ([], [])
        [left] = after["projection"]
        assert (left["item_id"], left["wanted"], left["pending"], left["certified"] is None) == (
            card_id,
            None,
            True,
            False,
        )

    def test_survives_a_restart(self, editor, settings):
        editor.create()
        editor.certify_all()
        editor.delete("mem-0001")
        editor.runtime.close()
        with Runtime(settings) as reopened:
            assert Editor(reopened).pending() == {"mem-0001"}

    def test_cannot_be_done_twice(self, editor):
        editor.create()
        editor.delete("mem-0001", 1)
        with pytest.raises(CardNotFound):
            editor.delete("mem-0001", 1)


class TestMerge:
    @pytest.fixture
    def editor(self, editor: Editor) -> Editor:
        """Two cards of equal meaning from different sessions, and three neighbours by hand."""
        editor.given(clarified(1, "active patient"), promoted(2, 1), session="a", question="A?", sql=None)
        editor.given(clarified(1, "patient in care"), promoted(2, 1), session="b", question="B?", sql=None)
        for subject in ("third", "fourth"):
            editor.create(subject=subject)
        editor.create(family=SOLVED)
        return editor

    def test_keeps_the_sources_of_both_and_the_text_of_one(self, editor):
        editor.certify_all()
        assert editor.merge("mem-0001", "mem-0002") == Saved("mem-0001", 2)
        assert editor.sources("mem-0001") == [("a", 1), ("b", 1)]
        assert editor.questions() == ["A?", "B?"]
        found = editor.detail("mem-0001")
        assert (found.content.subject, found.edited, found.updated_by) == ("active patient", True, "anna")
        assert editor.pending() == {"mem-0002"}  # to be removed

    def test_keeps_the_links_of_both_without_doubles_or_links_to_itself(self, editor):
        editor.alter(
            "mem-0001", Link("mem-0002", "same"), Link("mem-0003", "ours"), Link("mem-0004", "in", outgoing=False)
        )
        editor.alter(
            "mem-0002",
            Link("mem-0001", "same too"),
            Link("mem-0003", "theirs"),
            Link("mem-0004", "in too", outgoing=False),
            Link("sq-0001", "out"),
            Link("mem-0003", "back", outgoing=False),
        )
        editor.merge("mem-0001", "mem-0002")
        assert editor.links("mem-0001") == {
            Link("mem-0003", "ours"),
            Link("mem-0004", "in", outgoing=False),
            Link("sq-0001", "out"),
            Link("mem-0003", "back", outgoing=False),
        }

    def test_counts_a_version_of_each_card_that_is_linked_anew(self, editor):
        editor.alter("mem-0001", Link("mem-0003", "ours"))
        editor.alter(
            "mem-0002", Link("mem-0003", "theirs"), Link("sq-0001", "out"), Link("sq-0001", "in", outgoing=False)
        )
        before = {card_id: editor.version(card_id) for card_id in ("mem-0003", "sq-0001")}
        editor.merge("mem-0001", "mem-0002")
        assert editor.version("mem-0003") == before["mem-0003"]
        assert editor.version("sq-0001") == before["sq-0001"] + 1

    def test_keeps_the_dependencies_of_both(self, editor):
        editor.alter("mem-0001", dependencies=(TABLE,))
        editor.alter("mem-0002", dependencies=(TABLE, COLUMN))
        editor.merge("mem-0001", "mem-0002")
        assert editor.content("mem-0001").dependencies == (TABLE, COLUMN)

    @pytest.mark.parametrize("text", ["active patient", "patient in care"])
    def test_is_joined_by_later_clarifications_of_either_text(self, editor, text):
        editor.merge("mem-0001", "mem-0002")
        editor.given(clarified(1, text), promoted(2, 1), session="c", sql=None)
        assert editor.sources("mem-0001") == [("a", 1), ("b", 1), ("c", 1)]
        assert len(editor.card_ids()) == 3

    def test_stays_merged_when_everything_is_read_again(self, editor):
        editor.merge("mem-0002", "mem-0001")
        editor.session(clarified(1, "active patient"), promoted(2, 1), clarified(3, "x"), session="a", sql=None)
        editor.ingest()
        assert editor.sources("mem-0002") == [("a", 1), ("b", 1)]
        assert editor.content("mem-0002").subject == "patient in care"
        assert editor.detail("mem-0002").flags == (Flag.LEDGER_DIFFERS,)
        assert not editor.ingest().concepts

    def test_of_a_card_by_hand_with_one_from_a_session(self, editor):
        editor.merge("mem-0003", "mem-0001")
        found = editor.detail("mem-0003")
        assert (found.origin, found.content.subject, len(found.sources)) == ("hand", "third", 1)

    def test_of_solved_questions_keeps_both_sessions(self, editor):
        editor.given(approved(1), session="c")
        editor.given(approved(1), session="d", sql="SELECT 2")
        editor.merge("sq-0002", "sq-0003")
        assert editor.sources("sq-0002") == [("c", 1), ("d", 1)]
        editor.ingest()
        assert not editor.ingest().solved_questions
        assert editor.content("sq-0002").sql == SQL
        assert editor.card_ids(SOLVED) == ["sq-0001", "sq-0002"]

    @pytest.mark.parametrize(
        ("keep", "other", "said"),
        [
            ("mem-0001", "mem-0001", "cannot be merged with itself"),
            ("mem-0001", "sq-0001", "is a solved_question, and mem-0001 a concept"),
        ],
    )
    def test_of_what_is_no_pair_of_equals_is_refused(self, editor, keep, other, said):
        before = editor.picture()
        with pytest.raises(InvalidEdit, match=said):
            editor.merge(keep, other)
        assert editor.picture() == before


class TestLedgersAfterEdits:
    @pytest.mark.parametrize(
        ("card_id", "values"), [("mem-0001", {"detail": "mine"}), ("sq-0001", {"sql": "SELECT 2"})]
    )
    def test_a_correction_stays_and_the_difference_is_flagged(self, editor, card_id, values):
        editor.given()
        editor.alter(card_id, **values)
        editor.ingest()
        found = editor.detail(card_id)
        assert (found.flags, found.version) == ((Flag.LEDGER_DIFFERS,), 2)
        assert {name: getattr(found.content, name) for name in values} == values

    @pytest.mark.parametrize("name", ["mem-0001", "sq-0001"])
    def test_the_flag_goes_with_the_difference(self, editor, name):
        editor.given()
        changed = {"mem-0001": "detail", "sq-0001": "sql"}[name]
        original = getattr(editor.content(name), changed)
        editor.alter(name, **{changed: "SELECT 2"})
        editor.ingest()
        editor.alter(name, **{changed: original})
        editor.ingest()
        assert editor.detail(name).flags == ()

    def test_a_deleted_card_stays_away(self, editor):
        editor.given()
        editor.delete("mem-0001")
        editor.delete("sq-0001")
        editor.given(clarified(1), approved(2), promoted(3, 1), clarified(4, "another"))
        assert (editor.card_ids(), editor.card_ids(SOLVED), editor.questions()) == ([], [], [])

    def test_a_later_promotion_brings_it_back_under_a_new_id(self, editor):
        editor.given(clarified(1), promoted(2, 1), sql=None)
        editor.delete("mem-0001")
        editor.given(clarified(1), promoted(2, 1), promoted(3, 1), sql=None)
        assert editor.card_ids() == ["mem-0002"]
        assert editor.questions() == [QUESTION]

    def test_a_later_approval_brings_a_solved_question_back(self, editor):
        editor.given(approved(1))
        editor.delete("sq-0001")
        editor.given(approved(1), approved(2))
        assert editor.card_ids(SOLVED) == ["sq-0002"]

    def test_a_merged_card_that_is_deleted_takes_all_of_its_decisions_along(self, editor):
        editor.given(clarified(1, "one"), promoted(2, 1), session="a", sql=None)
        editor.given(clarified(1, "two"), promoted(2, 1), session="b", sql=None)
        editor.merge("mem-0001", "mem-0002")
        editor.delete("mem-0001")
        editor.given(clarified(1, "one"), promoted(2, 1), clarified(3, "x"), session="a", sql=None)
        editor.given(clarified(1, "two"), promoted(2, 1), clarified(3, "x"), session="b", sql=None)
        assert editor.card_ids() == []

    def test_an_edited_card_stays_when_its_ledger_withdraws_it(self, editor):
        editor.given(clarified(1), promoted(2, 1), sql=None)
        editor.alter("mem-0001", detail="mine")
        editor.given(clarified(1), promoted(2, 1), retracted(3, 1), sql=None)
        found = editor.detail("mem-0001")
        assert (found.content.detail, found.sources, found.flags) == ("mine", (), ("sources_withdrawn",))

    def test_a_card_by_hand_is_joined_by_an_equal_clarification_and_keeps_its_words(self, editor):
        editor.create(subject="Active  PATIENT", rationale="by law")
        editor.given(clarified(1), promoted(2, 1), sql=None)
        found = editor.detail("mem-0001")
        assert (found.content.rationale, found.version, len(found.sources)) == ("by law", 1, 1)
        assert editor.card_ids() == ["mem-0001"]


def test_contents_are_data_and_never_sql(editor):
    hostile = "'); DROP TABLE card; -- :workspace %(x)s {0} $1"
    content = CardContent(
        Family.CONCEPT, hostile, hostile, concepts=(hostile,), dependencies=(Dependency(table=hostile),)
    )
    editor.apply(Create(content))
    assert editor.content("mem-0001") == content
    assert editor.found(text=hostile, concept=hostile, table=hostile) == ["mem-0001"]
