"""What the last audits found is carried on, by workspace the newest."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from memory_pipeline.archive.audits import LastAudit
from memory_pipeline.cards import Collection
from memory_pipeline.propagation.differences import AuditReport, Difference, Finding, Findings
from memory_pipeline.propagation.standing import Audited, as_json, audited, from_json, newest, not_audited, recorded

NOW = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)


def a_report(differing: int = 0) -> AuditReport:
    findings = Findings.of(Finding(Difference.MISSING, f"id-{n}", f"mem-{n}") for n in range(differing))
    return AuditReport({Collection.MEMORY_CARDS: findings, Collection.QUESTIONS: findings}, checked=100)


def test_an_audit_is_kept_with_its_counts_and_some_of_what_differs():
    kept = audited(a_report(differing=30), NOW)
    assert (kept.at, kept.checked, kept.differing, kept.counts["missing"]) == (
        NOW.isoformat(timespec="milliseconds"),
        100,
        60,
        60,
    )
    assert len(kept.look_at) == 10
    assert kept.look_at[0] == {"collection": "memory_cards", "difference": "missing", "item": "mem-0"}


def test_what_the_archive_keeps_of_an_audit_says_what_is_left_of_the_differences():
    kept = LastAudit(NOW, 100, {"missing": 3, "other_identity": 2}, repaired=False)
    assert recorded(kept) == Audited(NOW.isoformat(timespec="milliseconds"), 100, {"missing": 3, "other_identity": 2})
    assert recorded(replace(kept, repaired=True)).counts == {"other_identity": 2}


def test_of_one_audit_that_two_kept_the_first_counts():
    known, kept = audited(a_report(differing=1), NOW), recorded(LastAudit(NOW, 100, {"missing": 2}, repaired=False))
    assert newest([{"clinic": known}, {"clinic": kept}]) == {"clinic": known}


def test_it_comes_back_from_json_as_it_was():
    standing = {"clinic": audited(a_report(differing=2), NOW), "ward": not_audited("the index is away", NOW)}
    assert as_json(from_json(json.loads(json.dumps(as_json(standing))))) == as_json(standing)


def test_of_each_workspace_the_newest_counts_in_whatever_order_they_come():
    old, new = audited(a_report(differing=1), NOW), audited(a_report(), NOW + timedelta(milliseconds=1))
    for standings in ([{"clinic": old}, {"clinic": new, "ward": old}], [{"clinic": new, "ward": old}, {"clinic": old}]):
        assert newest(standings) == {"clinic": new, "ward": old}


def test_an_audit_that_could_not_be_made_takes_the_place_of_an_older_one():
    failed = not_audited("the index is away", NOW + timedelta(seconds=1))
    assert newest([{"clinic": audited(a_report(), NOW)}, {"clinic": failed}]) == {"clinic": failed}
