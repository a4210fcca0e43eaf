"""Finding cards: searched, filtered, counted and sorted over the whole archive, then paged; and one card in detail."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import combinations

import pytest

from memory_pipeline.archive.listing import LONGEST_PAGE, LONGEST_TEXT
from memory_pipeline.cards import Dependency, Family
from memory_pipeline.edits import Link
from memory_pipeline.errors import CardNotFound, InvalidInput
from tests.builders import QUESTION, SQL, approved, clarified, promoted
from tests.editors import Editor
from tests.statements import counting

SOLVED = Family.SOLVED_QUESTION
PATIENTS, VISITS = Dependency("d", "s", "Dim_Paziente", "Flag_Attivo"), Dependency("d", "s", "fact_visite", "id")


@pytest.fixture
def editor(runtime) -> Editor:
    return Editor(runtime)


@pytest.fixture
def several(editor: Editor) -> Editor:
    """Six cards that differ in everything that can be filtered by; the first three are certified."""
    editor.create(subject="Età", detail="anni compiuti", concepts=("Età",), dependencies=(PATIENTS,))
    editor.create(family=Family.SQL_RULE, subject="flag_attivo", detail="= TRUE", dependencies=(PATIENTS, VISITS))
    editor.create(family=SOLVED, question="Quanti pazienti attivi?", sql="SELECT 1")
    editor.certify_all()
    editor.create(family=Family.PITFALL, subject="visita", detail="doppia", concepts=("età", "visita"))
    editor.create(family=SOLVED, question="Quante visite?", sql="SELECT (", context="anni 2020 e 2021")
    editor.given(clarified(1, "dimesso", "data_fine IS NOT NULL"), promoted(2, 1), sql=None)
    for number, card_id in enumerate(ALL):
        editor.change("UPDATE card SET updated_at = :at WHERE card_id = :card_id", at=moment(number), card_id=card_id)
    return editor


ALL = ["mem-0001", "mem-0002", "mem-0003", "mem-0004", "sq-0001", "sq-0002"]


def moment(hour: int) -> datetime:
    return datetime(2026, 3, 1, hour, tzinfo=UTC)


class TestText:
    @pytest.mark.parametrize(
        "text",
        [
            "perché",
            "PERCHÉ",
            "perche",
            "perche\u0301",
            "Perche\u0301",
            "erché",
            " perché \n",
            "perché CITTÀ",
            "citta perche",
        ],
    )
    def test_neither_case_nor_accents_nor_their_composition_matter(self, editor, text):
        for spelling in ("perché città", "perche\u0301 citta\u0300", "PERCHÉ CITTÀ", "perche citta"):
            editor.create(detail=spelling)
        editor.create(detail="per che cosa")
        assert editor.found(text=text) == ["mem-0001", "mem-0002", "mem-0003", "mem-0004"]

    @pytest.mark.parametrize("text", ["flag_attivo", "attivo", "FLAG", "flag attivo", "attivo flag", "flag_"])
    def test_an_identifier_is_found_as_one_word_and_by_its_parts(self, editor, text):
        editor.create(detail="flag_attivo = TRUE")
        editor.create(detail="all the others")
        assert editor.found(text=text) == ["mem-0001"]

    def test_all_words_have_to_occur_but_in_any_of_the_fields(self, editor):
        editor.create(subject="alpha", detail="beta", rationale="gamma", concepts=("delta",))
        editor.create(subject="alpha", detail="gamma", rationale="gamma")
        assert editor.found(text="delta gamma BETA alpha") == ["mem-0001"]
        assert editor.found(text="alpha gamma") == ["mem-0001", "mem-0002"]
        assert editor.found(text="alpha omega") == []

    def test_question_sql_and_context_are_searched_too(self, editor):
        editor.create(family=SOLVED, question="how many?", sql="SELECT 1 FROM fact_visite", context="the year 2023")
        assert editor.found(text="many fact_visite 2023") == ["sq-0001"]

    def test_an_id_is_found_as_it_is_written(self, several):
        assert several.found(text="mem-0003") == ["mem-0003"]
        assert several.found(text="SQ-0002") == ["sq-0002"]

    def test_a_word_does_not_run_from_one_field_into_the_next(self, editor):
        editor.create(subject="alpha", detail="beta")
        assert editor.found(text="alphabeta") == editor.found(text="alphamem") == []

    @pytest.mark.parametrize("text", ["%", "_", "\\", "50%", "a_b", "c\\d", "％"])
    def test_wildcards_are_letters_like_others(self, editor, text):
        editor.create(detail="50% of a_b and c\\d")
        editor.create(detail="500 of aXb and cXd")
        assert editor.found(text=text) == ["mem-0001"]

    @pytest.mark.parametrize("apostrophe", "'’‘ʼ´`")
    def test_all_apostrophes_are_one(self, editor, apostrophe):
        for other in "'’‘ʼ´`":
            editor.create(detail=f"l{other}età", concepts=(f"l{other}età",))
        editor.create(detail="leta l eta")
        everything = [f"mem-000{number}" for number in range(1, 7)]
        assert editor.found(text=f"L{apostrophe}eta") == everything
        assert editor.found(concept=f"l{apostrophe}età") == everything
        assert editor.content("mem-0002").detail == "l’età"

    @pytest.mark.parametrize("text", ["", " ", "\n\t\u00a0"])
    def test_a_blank_text_asks_for_nothing(self, several, text):
        assert several.found(text=text) == ALL

    @pytest.mark.parametrize(
        ("kept", "text"),
        [
            ("مَرِيض نشط", "مريض"),
            ("שָׁלוֹם", "שלום"),
            ("ΟΔΟΣ οδός", "οδοσ"),
            ("οδός", "ΟΔΌΣ"),
            ("done 😀", "😀"),
            ("ﬁeld Ⅳ", "field iv"),
            ("İstanbul ısı", "istanbul isi"),
            ("Straße", "STRASSE"),
            ("STRASSE", "straße"),
            ("STRAẞE", "strasse"),
        ],
    )
    def test_other_scripts_are_found(self, editor, kept, text):
        editor.create(detail=kept)
        editor.create(detail="nothing of the kind")
        assert editor.found(text=text) == ["mem-0001"]
        assert editor.content("mem-0001").detail == kept

    def test_what_a_change_takes_away_is_not_found_any_more(self, editor):
        editor.create(detail="before", concepts=("old",))
        editor.alter("mem-0001", detail="after", concepts=("new",))
        assert [editor.found(text=text) for text in ("before", "old", "after", "new")] == [
            [],
            [],
            ["mem-0001"],
            ["mem-0001"],
        ]
        assert editor.found(concept="old") == []


class TestContents:
    """Whatever is written is kept exactly and found, in both spellings."""

    @pytest.mark.parametrize(
        "subject",
        [
            "x",
            "è" * 10_000,
            "😀 👩‍⚕️",
            "\u202bمريض\u202c נשט",
            "perche\u0301",
            "perché",
            " two  spaces\n",
            "a\x1fb",
            "% _ \\",
        ],
        ids=["1", "10,000", "emoji", "right to left", "NFD", "NFC", "spaces", "separator", "wildcards"],
    )
    def test_of_subjects(self, editor, subject):
        editor.create(subject=subject)
        assert editor.content("mem-0001").subject == subject
        assert editor.found(text=subject[:100]) == ["mem-0001"]
        assert editor.list().cards[0].title == subject[:500]

    @pytest.mark.parametrize("kept", ["perche\u0301 è", "perché e\u0300"])
    @pytest.mark.parametrize("asked", ["perche\u0301", "perché", "e\u0300", "è"])
    def test_of_either_composition(self, editor, kept, asked):
        editor.create(family=SOLVED, question=kept)
        assert editor.content("sq-0001").question == kept
        assert editor.found(text=asked) == ["sq-0001"]

    def test_of_60_kb_of_sql(self, editor):
        sql = "SELECT " + ", ".join(f"'colonna nº {n} è più' AS c{n}" for n in range(1_700)) + " FROM dim_ultima"
        assert len(sql.encode()) > 60_000
        editor.create(family=SOLVED, sql=sql)
        assert editor.content("sq-0001").sql == sql
        assert editor.found(text="DIM_ULTIMA nº 1699 piu") == ["sq-0001"]

    def test_of_a_million_characters(self, editor):
        editor.create(detail="è" * 999_990 + " the end")
        assert editor.found(text="the END") == ["mem-0001"]


FILTERS = [
    ({"text": "anni"}, {"mem-0001", "sq-0002"}),
    ({"families": (Family.CONCEPT, SOLVED)}, {"mem-0001", "mem-0004", "sq-0001", "sq-0002"}),
    ({"families": ("pitfall",)}, {"mem-0003"}),
    ({"concept": "eta"}, {"mem-0001", "mem-0003"}),
    ({"table": "dim_paziente"}, {"mem-0001", "mem-0002"}),
    ({"column": "ID"}, {"mem-0002"}),
    ({"origin": "session"}, {"mem-0004"}),
    ({"origin": "hand"}, set(ALL) - {"mem-0004"}),
    ({"updated_after": moment(2)}, {"mem-0003", "mem-0004", "sq-0001", "sq-0002"}),
    ({"updated_before": moment(4)}, {"mem-0001", "mem-0002", "mem-0003", "mem-0004"}),
    ({"state": "recallable"}, {"mem-0001", "mem-0002", "sq-0001"}),
    ({"state": "pending"}, {"mem-0003", "mem-0004", "sq-0002"}),
    ({"flag": "sql_unparsed"}, {"sq-0002"}),
]


class TestFilters:
    @pytest.mark.parametrize(
        ("asked", "expected"), FILTERS, ids=lambda value: "-".join(value) if isinstance(value, dict) else ""
    )
    def test_alone(self, several, asked, expected):
        assert several.found(**asked) == sorted(expected)
        assert several.list(**asked).total == len(expected)

    def test_combined_leave_what_fits_all_of_them(self, several):
        for size in (2, 3):
            for chosen in combinations(FILTERS, size):
                asked = {name: value for one, _ in chosen for name, value in one.items()}
                if len(asked) == size and not {"table", "column"} <= asked.keys():  # no filter twice
                    expected = set.intersection(*(found for _, found in chosen))
                    assert several.found(**asked) == sorted(expected), asked

    def test_all_at_once(self, several):
        asked = {"text": "FLAG true", "families": ("sql_rule",), "table": "dim_PAZIENTE", "column": "flag_attivo"}
        asked |= {"origin": "hand", "updated_after": moment(1), "updated_before": moment(2), "state": "recallable"}
        assert several.found(**asked) == ["mem-0002"]
        assert several.found(**asked, concept="età") == several.found(**asked, flag="sql_unparsed") == []

    def test_a_column_is_looked_for_in_its_table(self, several):
        assert several.found(table="dim_paziente", column="id") == []
        assert several.found(table="fact_visite", column="id") == ["mem-0002"]

    def test_the_names_of_an_object_belong_to_one_dependency(self, editor):
        editor.create(dependencies=(Dependency("dwh", "dm", "visits"), Dependency("dwh", "stage", "patients", "id")))
        editor.create(dependencies=(Dependency("", "dm", "patients", "id"),))
        assert editor.found(schema="DM", table="visits") == ["mem-0001"]
        assert editor.found(schema="dm", table="patients") == ["mem-0002"]
        assert editor.found(database="dwh", schema="dm") == ["mem-0001"]
        assert editor.found(database="dwh", schema="dm", column="id") == []
        assert editor.found(schema="dm") == ["mem-0001", "mem-0002"]

    @pytest.mark.parametrize("concept", ["visit", "visita età", "%"])
    def test_a_concept_is_a_whole_one(self, several, concept):
        assert several.found(concept=concept) == []

    def test_of_names_with_accents_case_does_not_matter_either(self, editor):
        editor.create(dependencies=(Dependency("d", "s", "Città", "È_capoluogo"),))
        assert editor.found(table="CITTA\u0300", column="è_CAPOLUOGO") == ["mem-0001"]

    def test_the_beginning_counts_and_the_end_does_not(self, several):
        assert several.found(updated_after=moment(2), updated_before=moment(3)) == ["mem-0003"]

    def test_under_an_identity_that_nothing_was_projected_with_all_is_pending(self, several):
        several.change("DELETE FROM embedding_identity")
        assert several.found(state="pending") == ALL
        assert several.found(state="recallable") == []
        assert {card.state for card in several.list().cards} == {"pending"}

    def test_what_is_certified_and_then_changed_is_pending(self, several):
        several.alter("mem-0001", detail="changed")
        assert several.found(state="recallable") == ["mem-0002", "sq-0001"]


class TestRows:
    def test_a_row_says_what_a_table_of_cards_shows(self, several):
        several.given(clarified(1, "Dimesso", "data_fine IS NOT NULL"), promoted(2, 1), session="session-2", sql=None)
        (card,) = several.list(text="dimesso").cards
        assert (card.card_id, card.family, card.title, card.origin) == (
            "mem-0004",
            Family.CONCEPT,
            "dimesso",
            "session",
        )
        assert (card.sources, card.sessions, card.version, card.edited) == (2, 2, 1, False)
        assert (card.updated_by, card.state, card.flags) == ("tester", "pending", ())
        (card,) = several.list(flag="sql_unparsed").cards
        assert (card.title, card.flags, card.edited) == ("Quante visite?", ("sql_unparsed",), True)
        assert (card.sources, card.sessions, card.updated_at, card.updated_by) == (0, 0, moment(5), "anna")

    def test_an_empty_archive_is_an_empty_page(self, editor):
        assert (editor.list().cards, editor.list().total) == ((), 0)

    def test_another_workspace_s_cards_are_not_there(self, several, runtime):
        other = Editor(runtime, "other")
        other.create(subject="flag_attivo")
        assert other.list().total == 1
        assert several.list().total == len(ALL)


class TestOrder:
    @pytest.fixture
    def editor(self, editor: Editor) -> Editor:
        for subject in ("beta", "Alpha", "àlpha 2", "alpha 10", "zeta"):
            editor.create(subject=subject)
        editor.create(family=Family.PITFALL, subject="ALPHA")
        editor.create(family=SOLVED, question="Alpha 1?")
        return editor

    def test_of_titles_knows_neither_case_nor_accents(self, editor):
        order = ["mem-0002", "mem-0006", "mem-0004", "sq-0001", "mem-0003", "mem-0001", "mem-0005"]
        assert editor.found(sort="title", descending=False) == order

    def test_of_equal_titles_is_the_one_of_ids(self, editor):
        editor.alter("mem-0002", detail="z")
        editor.alter("mem-0006", detail="a")
        assert editor.found(sort="title", descending=False)[:2] == ["mem-0002", "mem-0006"]
        assert editor.found(sort="title", descending=True)[-2:] == ["mem-0002", "mem-0006"]

    def test_of_ids_is_by_their_numbers(self, editor):
        editor.change("UPDATE card_number SET last = 9998")
        for _ in range(3):
            editor.create()
        editor.create(family=SOLVED)
        ids = [*(f"mem-{n:04d}" for n in range(1, 7)), "mem-9999", "mem-10000", "mem-10001", "sq-0001", "sq-9999"]
        assert editor.found(sort="card_id", descending=False) == ids
        assert editor.found(sort="card_id", descending=True) == ids[::-1]

    def test_of_families_is_by_name(self, editor):
        rows = editor.list(sort="family", descending=False).cards
        assert [row.family for row in rows] == sorted(row.family for row in rows)

    def test_of_versions(self, editor):
        for _ in range(2):
            editor.alter("mem-0004", rationale=str(editor.version("mem-0004")))
        editor.alter("mem-0002", detail="other")
        assert editor.found(sort="version", descending=True)[:3] == ["mem-0004", "mem-0002", "mem-0001"]

    def test_of_sources(self, editor):
        for number, subject in enumerate(("zeta", "beta", "zeta")):
            decision = clarified(1, subject, "flag_attivo = TRUE")
            editor.given(decision, promoted(2, 1), session=f"s{number}", sql=None)
        assert editor.found(sort="sources", descending=True)[:3] == ["mem-0005", "mem-0001", "mem-0002"]
        assert editor.found(sort="sources", descending=False)[-2:] == ["mem-0001", "mem-0005"]

    @pytest.mark.parametrize("sort", ["created_at", "updated_at"])
    def test_of_times(self, editor, sort):
        for number, card_id in enumerate(("mem-0003", "mem-0001", "sq-0001")):
            at = moment(0) + timedelta(microseconds=number)
            editor.change(f"UPDATE card SET {sort} = :at WHERE card_id = :card_id", at=at, card_id=card_id)
        assert editor.found(sort=sort, descending=False)[:3] == ["mem-0003", "mem-0001", "sq-0001"]
        assert editor.found(sort=sort, descending=True)[-3:] == ["sq-0001", "mem-0001", "mem-0003"]

    @pytest.mark.parametrize("descending", [True, False])
    @pytest.mark.parametrize("sort", ["card_id", "family", "title", "updated_at", "created_at", "version", "sources"])
    def test_pages_together_are_the_whole_list_in_order(self, editor, sort, descending):
        asked = {"sort": sort, "descending": descending, "text": "flag"}
        whole = editor.found(**asked)
        assert len(whole) == 6
        pages = [editor.found(**asked, limit=2, offset=offset) for offset in (0, 2, 4)]
        assert [card_id for page in pages for card_id in page] == whole


class TestPages:
    @pytest.fixture
    def many(self, editor: Editor) -> Editor:
        for number in range(30):
            editor.create(subject=f"subject {number:02d}", detail="odd" if number % 2 else "even")
        return editor

    def test_a_record_beyond_the_first_page_is_filtered_counted_and_sorted_like_the_first(self, many):
        many.create(subject="subject 00 and the last", detail="odd one")
        page = many.list(text="odd", sort="title", descending=False, limit=5)
        assert (page.total, len(page.cards), page.cards[0].card_id) == (16, 5, "mem-0031")
        page = many.list(text="odd", sort="title", descending=True, limit=5, offset=15)
        assert (page.total, [card.card_id for card in page.cards]) == (16, ["mem-0031"])

    def test_beyond_the_end_there_is_nothing_but_the_total(self, many):
        page = many.list(text="even", offset=15)
        assert (page.cards, page.total) == ((), 15)

    def test_the_largest_page_and_the_farthest_offset_are_answered(self, many):
        assert len(many.list(limit=LONGEST_PAGE).cards) == 30
        assert many.list(offset=2**62).total == 30


class TestStatements:
    def test_a_list_is_one_and_a_detail_three_however_much_there_is(self, editor):
        counted = []
        for number in range(12):
            links = [Link(f"mem-{n:04d}", "m") for n in range(1, number + 1)]
            editor.create(*links, dependencies=tuple(Dependency("d", "s", f"t{n}") for n in range(number)))
            counted.append(
                (
                    statements(lambda: editor.list(text="flag", sort="sources")),
                    statements(lambda: editor.detail("mem-0001")),
                )
            )
        assert set(counted) == {(1 + 1, 1 + 3)}  # the first one of each names the workspace


def statements(work) -> int:
    with counting() as counted:
        work()
    return len(counted.archive)


class TestRefusals:
    @pytest.mark.parametrize(
        ("asked", "said"),
        [
            ({"limit": 0}, "limit: has to be a whole number from 1 to 1,000"),
            ({"limit": 1_001}, "limit"),
            ({"limit": "5"}, "limit"),
            ({"limit": True}, "limit"),
            ({"offset": -1}, "offset: has to be a whole number from 0"),
            ({"offset": 2**63}, "offset"),
            (
                {"sort": "subject; DROP TABLE card"},
                "sort: 'subject; DROP TABLE card' is none: name one of card_id, family",
            ),
            ({"sort": None}, "sort"),
            ({"families": ("rule", "concept")}, "families: 'rule' is none: name some of concept, sql_rule"),
            ({"families": "concept"}, "families: have to be several"),
            ({"families": (["concept"],)}, "families"),
            ({"origin": "ledger"}, "origin: 'ledger' is none: name one of session, hand"),
            ({"state": ""}, "state: '' is none: name one of recallable, pending"),
            ({"text": "a\x00b"}, "text: it holds a NUL byte"),
            ({"text": "\ud800"}, "text: it holds a lone surrogate"),
            ({"text": "x" * (LONGEST_TEXT + 1)}, "text: has 20,001 characters"),
            ({"text": None}, "text: has to be a text"),
            ({"concept": "\x00"}, "concept"),
            ({"table": "\x00"}, "table"),
            ({"column": "\x00"}, "column"),
            ({"flag": "\x00"}, "flag"),
            ({"updated_after": datetime(2026, 1, 1)}, "updated_after: names no time zone"),  # noqa: DTZ001  # just that is refused
            ({"updated_before": "2026-01-01"}, "updated_before: has to be a date with a time"),
        ],
    )
    def test_a_request_that_cannot_be_used_says_what_to_do(self, editor, asked, said):
        with pytest.raises(InvalidInput) as refused:
            editor.list(**asked)
        assert said in str(refused.value)

    def test_all_faults_come_at_once(self, editor):
        with pytest.raises(InvalidInput, match=r"text: .*; sort: .*; limit: .*; offset: "):
            editor.list(text="\x00", sort="?", limit=0, offset=-1)

    def test_a_text_as_long_as_may_be_is_answered(self, editor):
        assert editor.found(text="x " * (LONGEST_TEXT // 2)) == []


class TestDetail:
    def test_of_a_card_from_sessions(self, editor):
        decision = clarified(1, concepts=("patient",), tables=("patients",), rationale="by law")
        editor.given(decision, promoted(2, 1), session="b", sql=None)
        editor.given(clarified(1, "ACTIVE patient"), promoted(2, 1), session="a", question="Another?", sql=None)
        found = editor.detail("mem-0001")
        assert (found.card_id, found.version, found.origin, found.edited, found.flags) == (
            "mem-0001",
            2,
            "session",
            False,
            (),
        )
        assert found.content == editor.content("mem-0001")
        assert found.updated_by == "tester"
        assert [(s.session_id, s.seq, s.decision_type, s.question, s.subject, s.detail) for s in found.sources] == [
            ("a", 1, "concept_clarified", "Another?", "ACTIVE patient", "flag_attivo = TRUE"),
            ("b", 1, "concept_clarified", QUESTION, "active patient", "flag_attivo = TRUE"),
        ]

    def test_of_a_solved_question_from_a_session(self, editor):
        editor.given(approved(1))
        found = editor.detail("sq-0001")
        assert (found.content.sql, found.content.tables) == (SQL, ("patients",))
        assert [(s.seq, s.decision_type, s.question) for s in found.sources] == [(1, "sql_approved", QUESTION)]

    def test_of_a_card_made_by_hand_has_no_invented_session(self, editor):
        editor.create(dependencies=(VISITS, PATIENTS))
        found = editor.detail("mem-0001")
        assert (found.sources, found.origin, found.edited, found.updated_by) == ((), "hand", True, "anna")
        assert found.content.dependencies == (PATIENTS, VISITS)
        assert found.created_at == found.updated_at

    def test_links_are_shown_both_ways_with_the_titles_of_the_others(self, editor):
        editor.create(subject="first")
        editor.create(family=SOLVED, question="which?")
        editor.create(Link("mem-0001", "needs"), Link("sq-0001", "explains"), subject="third")
        editor.alter("mem-0002", Link("sq-0001", "answers", outgoing=False))
        found = [(link.other, link.title, link.meaning, link.outgoing) for link in editor.detail("mem-0002").links]
        assert found == [
            ("mem-0001", "first", "needs", True),
            ("sq-0001", "which?", "explains", True),
            ("sq-0001", "which?", "answers", False),
        ]
        assert [(link.other, link.outgoing) for link in editor.detail("mem-0001").links] == [("mem-0002", False)]

    def test_the_state_of_its_point(self, editor):
        editor.create()
        assert editor.detail("mem-0001").projection.state == "pending"
        editor.certify_all()
        assert editor.detail("mem-0001").projection.state == "recallable"
        later = moment(0)
        editor.change(
            "UPDATE projection SET pending = true, reason = 'away', attempts = 3, next_try = :later, truncated = true",
            later=later,
        )
        point = editor.detail("mem-0001").projection
        assert (point.state, point.reason, point.attempts, point.next_try) == ("pending", "away", 3, later)
        assert point.truncated

    def test_without_any_projection_it_is_pending_since_its_last_change(self, editor):
        editor.create()
        editor.change("DELETE FROM embedding_identity")
        found = editor.detail("mem-0001")
        assert (found.projection.state, found.projection.wanted_at) == ("pending", found.updated_at)

    @pytest.mark.parametrize("card_id", ["mem-0002", "", "mem-0001 ", "MEM-0001", "%", "a\x00b", "\ud800"])
    def test_of_what_is_not_there_is_an_error(self, editor, card_id):
        editor.create()
        with pytest.raises(CardNotFound, match=r"no card .* in workspace 'clinic'"):
            editor.detail(card_id)

    def test_of_another_workspace_s_card_is_an_error(self, editor, runtime):
        Editor(runtime, "other").create()
        with pytest.raises(CardNotFound):
            editor.detail("mem-0001")
