"""A session's memories: each rule by itself, all of them against a naive model, and what real sessions remember."""

from __future__ import annotations

import html
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from memory_pipeline.ledger import Decision, list_sessions, read_session
from memory_pipeline.review import Outcome
from memory_pipeline.session_view import Memory, as_markdown, is_table, memories, session_tables
from tests.builders import a_decision, clarified, declined, promoted, rejected, reopened, retracted

RENDERER = MarkdownIt("commonmark")
LINE = "\n"


def naming(seq: int, kind: str, subject: str, **others: object) -> Decision:
    return a_decision(seq, kind, subject=subject, detail="", **others)


def table(name: str) -> frozenset[str]:
    return session_tables([naming(1, "table_promoted", name)])


def column(name: str) -> frozenset[str]:
    return session_tables([naming(1, "column_promoted", name)])


def seqs(*decisions: Decision) -> list[int]:
    return [memory.seq for memory in memories(decisions)]


def a_memory(
    subject: str = "active patient",
    detail: str = "flag_attivo = TRUE",
    rationale: str = "",
    outcome: Outcome = Outcome.PROMOTED,
) -> Memory:
    return Memory(1, outcome, 2, subject, detail, rationale)


class TestSessionTables:
    def test_of_nothing_are_none(self):
        assert session_tables([]) == frozenset()

    @pytest.mark.parametrize("kind", ["table_promoted", "table_excluded"])
    def test_are_what_a_table_was_promoted_or_excluded_as(self, kind):
        assert session_tables([naming(1, kind, "visite")]) == {"visite"}

    @pytest.mark.parametrize(
        "kind", ["concept_clarified", "datamart_requested", "datamart_declined", "sql_approved", "unheard_of"]
    )
    def test_are_no_other_decisions_subjects(self, kind):
        assert session_tables([naming(1, kind, "visite")]) == frozenset()

    def test_are_named_by_a_qualified_column(self):
        assert column("visite.esito") == {"visite"}
        assert column("dm.visite.esito") == {"dm.visite", "visite"}
        assert column("dwh.dm.visite.esito") == {"dwh.dm.visite", "visite"}

    @pytest.mark.parametrize("name", ["esito", "", " ", ".esito", "esito.", '"esito"', "[esito]"])
    def test_are_not_named_by_a_column_alone(self, name):
        assert column(name) == frozenset()

    @pytest.mark.parametrize("kind", ["concept_clarified", "sql_approved", "memory_rejected", "unheard_of"])
    def test_are_listed_by_any_decision(self, kind):
        assert session_tables([a_decision(1, kind, tables=("visite", "dm.reparti"))]) == {
            "visite",
            "dm.reparti",
            "reparti",
        }

    @pytest.mark.parametrize(
        "name",
        [
            "dm.visite",
            "DM.Visite",
            "[dm].[visite]",
            '"dm"."visite"',
            "`dm`.`visite`",
            " dm . visite ",
            "«dm.visite».",
            "`dm.visite`",
        ],
    )
    def test_are_compared_without_case_quotes_and_brackets_and_by_their_last_part_too(self, name):
        assert table(name) == {"dm.visite", "visite"}
        assert column(f"{name.strip('. ')}.esito") == {"dm.visite", "visite"}

    def test_may_have_spaces_and_accents_and_any_spelling_of_them(self):
        assert table('"Attivita\u0300  Clinica"') == table("ATTIVITÀ CLINICA") == {"attività clinica"}
        assert table("Straße") == table("STRASSE")

    @pytest.mark.parametrize("name", ["", " ", "...", '""', "[]"])
    def test_have_names(self, name):
        assert session_tables([naming(1, "table_promoted", name, tables=(name,))]) == frozenset()

    def test_stay_when_the_decision_is_taken_away(self):
        taken = [
            naming(1, "table_promoted", "visite", phase=4),
            naming(2, "column_promoted", "reparti.nome"),
            retracted(3, 2),
            reopened(4, 1),
        ]
        assert session_tables(taken) == {"visite", "reparti"}


class TestIsTable:
    @pytest.mark.parametrize(
        "subject", ["visite", " VISITE. ", "`visite`", "[visite]", '"visite"', "dm.visite", "[DM].[Visite]"]
    )
    @pytest.mark.parametrize("name", ["visite", "dm.visite", "[dm].Visite"])
    def test_is_one_that_the_session_names(self, subject, name):
        assert is_table(subject, table(name))

    @pytest.mark.parametrize("subject", ["fact_visite", "DIM_Paziente", "`dim_date`", "[fact_x]", '["fact_x"]'])
    def test_is_one_that_has_the_form_of_its_name(self, subject):
        assert is_table(subject, frozenset())

    @pytest.mark.parametrize(
        "subject",
        [
            "patients seen in fact_visite",
            "patients seen in visite",
            "patients seen in dm.visite",
            "patients seen. Visite",
            "visite urgenti",
            "visite: which ones count",
            "visit",
            "esito",
            "visite.esito",
            "fact_visite.esito",
            "dm.visite.esito",
            "",
            "...",
        ],
    )
    def test_is_none_that_says_more_or_something_else(self, subject):
        assert not is_table(
            subject, session_tables([naming(1, "table_promoted", "dm.visite", tables=("fact_visite",))])
        )

    def test_is_no_column_that_is_called_like_a_table(self):
        tables = session_tables([naming(1, "table_promoted", "dm.visite"), naming(2, "table_excluded", "reparto")])
        assert is_table("dm.reparto", tables)
        assert not is_table("visite.reparto", tables)
        assert not is_table("dm.visite.reparto", tables)
        assert not is_table("dm.visite.reparto", table("visite") | table("reparto"))


class TestMemories:
    def test_of_nothing_are_none(self):
        assert memories([]) == ()

    def test_say_what_was_written_and_who_decided(self):
        said = {"subject": " *Active*\npatient ", "detail": "flag\u200b", "rationale": "  asked\n\n"}
        found = memories([clarified(3, **said), clarified(5, "b", "c"), promoted(8, 3), declined(9, 5)])
        assert found == (
            Memory(3, Outcome.PROMOTED, 8, **said),
            Memory(5, Outcome.DECLINED, 9, "b", "c", ""),
        )

    def test_are_the_approved_and_then_the_declined_in_the_order_of_the_clarifications(self):
        clarifications = [clarified(seq, f"term {seq}") for seq in range(1, 7)]
        decided = [promoted(7, 6), declined(8, 5), promoted(9, 4), promoted(10, 2), declined(11, 1)]
        assert seqs(*clarifications, *decided) == [2, 4, 6, 1, 5]
        assert seqs(*reversed([*clarifications, *decided])) == [2, 4, 6, 1, 5]

    def test_are_only_what_was_decided_about(self):
        assert seqs(clarified(1), clarified(2, "b"), a_decision(3, "sql_approved"), promoted(4, 2)) == [2]

    def test_of_a_promotion_and_a_decline_the_later_effective_one_counts(self):
        both = [clarified(1), promoted(2, 1), declined(3, 1)]
        assert [(m.outcome, m.decided_by) for m in memories(both)] == [(Outcome.DECLINED, 3)]
        assert [(m.outcome, m.decided_by) for m in memories([*both, retracted(4, 3)])] == [(Outcome.PROMOTED, 2)]
        assert [(m.outcome, m.decided_by) for m in memories([*both, promoted(4, 1)])] == [(Outcome.PROMOTED, 4)]

    def test_go_with_their_clarification_or_their_last_marker(self):
        assert seqs(clarified(1), promoted(2, 1), retracted(3, 1)) == []
        assert seqs(clarified(1), declined(2, 1), retracted(3, 2)) == []
        assert seqs(clarified(1, phase=4), promoted(2, 1), reopened(3, 3)) == []
        assert seqs(clarified(1, phase=1), promoted(2, 1, phase=8), reopened(3, 3)) == []
        assert seqs(clarified(1), promoted(2, 1), retracted(3, 2), retracted(4, 3)) == []

    @pytest.mark.parametrize("marker", [promoted, declined])
    def test_come_of_no_marker_that_names_something_else(self, marker):
        assert seqs(naming(1, "column_promoted", "esito"), marker(2, 1), marker(3, 9), marker(4, 4)) == []
        assert seqs(marker(1, 2), clarified(2)) == []

    @pytest.mark.parametrize("marker", [promoted, declined])
    @pytest.mark.parametrize(
        "subject", ["fact_visite", "[dim_paziente]", "visite", "DM.Visite", "`reparti`", "accessi"]
    )
    def test_are_no_tables_whatever_was_decided(self, subject, marker):
        named = [
            naming(1, "table_excluded", "dm.visite"),
            naming(2, "column_promoted", "reparti.nome"),
            a_decision(3, "question_rewritten", tables=("accessi",)),
            retracted(4, 1),
        ]
        assert seqs(*named, clarified(5, subject), clarified(6, f"the {subject}"), marker(7, 5), marker(8, 6)) == [6]

    def test_may_mention_tables_where_they_explain(self):
        lines = [
            naming(1, "table_promoted", "visite"),
            clarified(2, "visite urgenti", "visite.codice = 3"),
            promoted(3, 2),
        ]
        assert [m.detail for m in memories(lines)] == ["visite.codice = 3"]

    def test_are_tables_whenever_a_decision_says_so(self):
        assert seqs(clarified(1, "visite"), promoted(2, 1), naming(3, "table_excluded", "visite")) == []

    def test_that_are_equal_and_came_out_the_same_are_one_the_first(self):
        equal = [
            clarified(1, "Active patient", '"flag = TRUE"'),
            clarified(2, "active  patient.", "FLAG = true", rationale="b"),
        ]
        assert seqs(*equal, promoted(3, 2), promoted(4, 1)) == [1]
        assert seqs(*equal, declined(3, 2), declined(4, 1)) == [1]
        assert seqs(*equal, promoted(3, 2), declined(4, 1)) == [2, 1]
        assert seqs(*equal, promoted(3, 2)) == [2]

    def test_that_differ_in_their_detail_are_two(self):
        assert seqs(clarified(1, detail=">= 18"), clarified(2, detail="> 18"), promoted(3, 1), promoted(4, 2)) == [1, 2]


class TestAsMarkdown:
    def test_of_no_memories_says_so(self):
        assert as_markdown("2026-01-05", []) == "# 2026-01-05\n\nThe session has no memories.\n"

    def test_lists_the_approved_and_the_declined(self):
        found = [
            a_memory("active patient", "flag_attivo = TRUE, età >= 18", "asked the ward"),
            a_memory("visit", "one row\nof accessi", "so said:\n- the ward"),
            a_memory("minor", "", outcome=Outcome.DECLINED),
        ]
        assert as_markdown("session 1", found) == (
            "# session 1\n"
            "\n"
            "## Approved\n"
            "\n"
            "- **active patient**: flag_attivo = TRUE, età >= 18\n"
            "\n"
            "  asked the ward\n"
            "\n"
            "- **visit**: one row\\\n"
            "  of accessi\n"
            "\n"
            "  so said:\\\n"
            "  \\- the ward\n"
            "\n"
            "## Declined\n"
            "\n"
            "- **minor**\n"
        )

    @pytest.mark.parametrize(("outcome", "other"), [(Outcome.PROMOTED, "Declined"), (Outcome.DECLINED, "Approved")])
    def test_leaves_out_a_section_without_entries(self, outcome, other):
        assert other not in as_markdown("a", [a_memory(outcome=outcome)])

    def test_says_nothing_of_what_has_no_text(self):
        assert as_markdown(" ", [a_memory(" ", "a"), a_memory("b", " "), a_memory("", "", "c")]) == (
            "#\n\n## Approved\n\n- a\n\n- **b**\n\n- c\n"
        )

    @given(
        st.lists(
            st.builds(
                a_memory,
                *[st.text(alphabet="ab *_`[]()<>&#-=+|~.1:\\\n!", max_size=12)] * 3,
                st.sampled_from([Outcome.PROMOTED, Outcome.DECLINED]),
            ),
            max_size=4,
        ),
        st.text(alphabet="ab #*_=-\n"),
    )
    @example([a_memory("**", "***", "---"), a_memory("a\\", "\\", "    b")], "#")
    def test_shows_every_text_as_it_is(self, found, heading):
        assert page_of(as_markdown(heading, found)) == expected_page(heading, found)


def page_of(said: str) -> str:
    """What a renderer shows, with a break for every beginning of a line, be it one of a paragraph or not."""
    page = RENDERER.render(said).replace("\n", "").replace("</p><p>", "<br />")
    return page.replace("<p>", "").replace("</p>", "")


def expected_page(heading: str, found: Sequence[Memory]) -> str:
    page = f"<h1>{''.join(written(heading.replace(LINE, ' ')))}</h1>"
    for title, outcome in (("Approved", Outcome.PROMOTED), ("Declined", Outcome.DECLINED)):
        items = "".join(f"<li>{expected_item(memory)}</li>" for memory in found if memory.outcome is outcome)
        page += f"<h2>{title}</h2><ul>{items}</ul>" if items else ""
    return page if found else f"{page}The session has no memories."


def expected_item(memory: Memory) -> str:
    term, meaning = written(memory.subject.replace(LINE, " ")), written(memory.detail)
    said = [": ".join([f"<strong>{text}</strong>" for text in term] + ["<br />".join(meaning)] * bool(meaning))]
    return "<br />".join([text for text in said if text] + written(memory.rationale))


def written(text: str) -> list[str]:
    """The lines of a text, as a renderer writes them."""
    lines = (" ".join(line.split()) for line in text.strip().split(LINE))
    return [html.escape(line, quote=False).replace('"', "&quot;") for line in lines] if text.strip() else []


def naive_outcomes(decisions: list[Decision]) -> dict[int, str]:
    """The rules of the ledger read aloud: what stands is told line by line, and the last marker of what stands counts."""
    standing: list[Decision] = []
    for decision in decisions:
        if decision.type == "decision_retracted":
            standing = [d for d in standing if f"seq:{d.seq}" != decision.detail]
        if decision.type == "phase_reopened":
            standing = [d for d in standing if f"phase:{d.phase}" <= decision.detail]
        standing.append(decision)
    clarifications = {f"seq:{d.seq}": d for d in standing if d.type == "concept_clarified"}
    markers = {"memory_promoted": "promoted", "memory_promotion_declined": "declined"}
    decided = [d for d in standing if d.type in markers and d.detail in clarifications]
    return {clarifications[d.detail].seq: markers[d.type] for d in decided if clarifications[d.detail].seq < d.seq}


def naive_memories(decisions: list[Decision]) -> list[tuple[int, str]]:
    """The rules of the view read aloud, over plain names alone."""
    tables = {name for d in decisions for name in d.tables}
    tables |= {d.subject for d in decisions if d.type in {"table_promoted", "table_excluded"}}
    tables |= {d.subject.split(".")[-2] for d in decisions if d.type == "column_promoted" and "." in d.subject}
    tables = {part.lower() for name in tables for part in (name, name.split(".")[-1])}
    known = {d.seq: d for d in decisions}
    first: dict[tuple[str, ...], int] = {}
    for seq, outcome in sorted(naive_outcomes(decisions).items()):
        subject, detail = known[seq].subject.lower(), known[seq].detail.lower()
        if subject not in tables and not subject.startswith(("fact_", "dim_")):
            first.setdefault((outcome, subject, detail), seq)
    found = [(seq, outcome) for (outcome, *_), seq in first.items()]
    return sorted(found, key=lambda pair: (pair[1] == "declined", pair[0]))


@st.composite
def ledgers(draw) -> list[Decision]:
    return [draw(_decisions(seq)) for seq in sorted(draw(st.sets(st.integers(1, 30), max_size=25)))]


def _decisions(seq: int) -> st.SearchStrategy[Decision]:
    phase, target = st.integers(1, 8), st.integers(1, max(seq - 1, 1))
    subject = st.sampled_from(["a", "b", "visite", "reparti", "fact_x", "a fact_x", "dim_y"])
    named = st.sampled_from(["a", "visite", "dm.visite", "dm.reparti.nome", "reparti.nome", "nome"])
    listed = st.sampled_from([(), (), (), ("visite",), ("dm.b",)])

    def pointing(maker):
        return st.builds(lambda to, at: maker(seq, to, phase=at), target, phase)

    return st.one_of(
        *[
            st.builds(
                lambda what, means, at, tables: clarified(seq, what, means, phase=at, tables=tables),
                subject,
                st.sampled_from(["1", "2"]),
                phase,
                listed,
            )
        ]
        * 3,
        *[pointing(maker) for maker in (promoted, promoted, declined, retracted)],
        st.builds(lambda to, at: reopened(seq, to, phase=at), phase, phase),
        st.builds(
            lambda kind, what, at: naming(seq, kind, what, phase=at),
            st.sampled_from(
                ["table_promoted", "table_excluded", "column_promoted", "datamart_requested", "unheard_of"]
            ),
            named,
            phase,
        ),
        st.builds(lambda at: rejected(seq, phase=at), phase),
    )


@given(ledgers())
def test_agrees_with_the_rules_read_aloud(decisions):
    assert [(m.seq, str(m.outcome)) for m in memories(decisions)] == naive_memories(decisions)


@given(ledgers())
def test_each_memory_is_its_clarification_and_the_page_lists_it_once(decisions):
    found = memories(decisions)
    known = {d.seq: d for d in decisions}
    for memory in found:
        said, by = known[memory.seq], known[memory.decided_by]
        assert (memory.subject, memory.detail, memory.rationale) == (said.subject, said.detail, said.rationale)
        assert by.detail == f"seq:{memory.seq}"
        assert by.type == ("memory_promoted" if memory.outcome is Outcome.PROMOTED else "memory_promotion_declined")
    assert RENDERER.render(as_markdown("a", found)).count("<li>") == len(found)


def test_real_sessions_remember_what_was_decided_in_them_but_for_tables(bird: Path):
    expected = json.loads((bird / "expected.json").read_text())
    for workspace, totals in expected.items():
        decided: Counter[str] = Counter()
        for directory in list_sessions(bird / "sessions", workspace):
            decisions = list(read_session(directory, workspace).decisions)
            found = memories(decisions)
            decided.update(naive_outcomes(decisions).values())
            assert [(m.seq, str(m.outcome)) for m in found] == naive_memories(decisions)
            assert page_of(as_markdown(directory.name, found)) == expected_page(directory.name, found)
        assert decided == {outcome: totals[outcome] for outcome in ("promoted", "declined")}, workspace
