"""Says what a session remembers: the clarifications that were approved or declined, in their own words. Pure.

It is made whenever it is read, from the ledger as it is. Nothing that was written is changed, and nothing is kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memory_pipeline import markdown
from memory_pipeline.ledger import Decision, DecisionType
from memory_pipeline.review import Outcome, names_table, review
from memory_pipeline.text import bare, equality_key, nfc

_NAMING = frozenset({DecisionType.TABLE_PROMOTED, DecisionType.TABLE_EXCLUDED})
_QUOTES = re.compile("[\\[\\]\"'`´‘’‚‛“”„‟«»‹›]")  # a name may have them around each of its parts
_DOT = re.compile(r"\s*\.\s*")
# What is shown, in this order.
_SECTIONS = {Outcome.PROMOTED: "Approved", Outcome.DECLINED: "Declined"}
_INDENT = "  "  # what belongs to an item of a list stands below its text


@dataclass(frozen=True, slots=True)
class Memory:
    """One memory of a session. Its texts are as they were written.

    Attributes:
        seq: the clarification's.
        outcome: promoted or declined.
        decided_by: the seq of the promotion or decline that decides.
        subject: what is clarified.
        detail: what it means.
        rationale: why.
    """

    seq: int
    outcome: Outcome
    decided_by: int
    subject: str
    detail: str
    rationale: str


def session_tables(decisions: Iterable[Decision]) -> frozenset[str]:
    """The names of the tables that a session's decisions name, whether these are still effective or not.

    In the form in which `is_table` compares them: without case, quotes and brackets. A qualified name stands there as
    a whole and by its last part: who promotes `dm.visite` may call it `visite` elsewhere.
    """
    names = (_name(text) for decision in decisions for text in _named(decision))
    return frozenset(form for name in names for form in (name, _last(name)) if form)


def is_table(subject: str, tables: frozenset[str]) -> bool:
    """Whether the whole subject is one of these names, or a table's name of the form `fact_*` or `dim_*`.

    A subject that says more, and mentions a table, is none. A qualified one counts by its last part as well, unless
    what stands before it is a table too: `visite.reparto` is a column then, whatever table is called `reparto`.
    """
    name = _name(subject)
    return name in tables or names_table(name) or _is_qualified_table(name, tables)


def memories(decisions: Sequence[Decision]) -> tuple[Memory, ...]:
    """The memories of a session: what was approved, then what was declined, each in seq order of the clarification.

    A clarification that only names a table is none. Of those that are equal and came out the same, the first counts.
    """
    found = review(decisions)
    tables = session_tables(decisions)
    known = {decision.seq: decision for decision in decisions}
    decided_by = found.decided_by
    groups = ([_memory(known[seq], outcome, decided_by[seq]) for seq in found.seqs(outcome)] for outcome in _SECTIONS)
    return tuple(memory for group in groups for memory in _once(m for m in group if not is_table(m.subject, tables)))


def as_markdown(heading: str, memories: Iterable[Memory]) -> str:
    """The memories as Markdown in which every text shows as it is, whatever it holds."""
    listed = tuple(memories)
    sections = [_section(title, [m for m in listed if m.outcome is outcome]) for outcome, title in _SECTIONS.items()]
    said = [section for section in sections if section] or ["The session has no memories."]
    return "\n\n".join([f"# {markdown.inline(heading)}".rstrip(), *said]) + "\n"


# ── Tables ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _named(decision: Decision) -> Iterable[str]:
    yield from decision.tables
    if decision.type in _NAMING:
        yield decision.subject
    if decision.type == DecisionType.COLUMN_PROMOTED:
        # Without a dot nothing is left: a column alone does not say whose it is.
        yield _name(decision.subject).rpartition(".")[0]


def _name(text: str) -> str:
    """A table's name as it is compared: `[dm].[Visite]` is `dm.visite`."""
    return _DOT.sub(".", bare(_QUOTES.sub("", nfc(text).casefold())))


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _is_qualified_table(name: str, tables: frozenset[str]) -> bool:
    qualifier, _, last = name.rpartition(".")
    return last in tables and " " not in qualifier and _last(qualifier) not in tables


# ── Memories ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _memory(clarification: Decision, outcome: Outcome, decided_by: int) -> Memory:
    subject, detail, rationale = clarification.subject, clarification.detail, clarification.rationale
    return Memory(clarification.seq, outcome, decided_by, subject, detail, rationale)


def _once(memories: Iterable[Memory]) -> Iterable[Memory]:
    """The first of those that are equal."""
    first: dict[str, Memory] = {}
    for memory in memories:
        first.setdefault(equality_key(memory.subject, memory.detail), memory)
    return first.values()


# ── Markdown ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _section(title: str, memories: Iterable[Memory]) -> str:
    items = [_item(memory) for memory in memories]
    return "\n\n".join([f"## {title}", *items]) if items else ""


def _item(memory: Memory) -> str:
    term = markdown.inline(memory.subject)
    meaning, why = (markdown.block(text, _INDENT) for text in (memory.detail, memory.rationale))
    said = ": ".join(text for text in (term and f"**{term}**", meaning) if text)
    return "- " + f"\n\n{_INDENT}".join(text for text in (said, why) if text)
