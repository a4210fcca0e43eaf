"""How each point is judged, and what is kept of many findings."""

from __future__ import annotations

import pytest

from memory_pipeline.archive.audits import Expected
from memory_pipeline.cards import Collection
from memory_pipeline.index.base import StoredPoint
from memory_pipeline.points import payload, point_id
from memory_pipeline.propagation.differences import (
    EXAMPLES,
    AuditReport,
    Difference,
    Finding,
    Findings,
    is_own,
    item_of,
    judge,
)

W = "clinic"
CERTIFIED = Expected("f", 2, pending=False)
PENDING = Expected("f", 2, pending=True)
TO_REMOVE = Expected(None, None, pending=True)


def a_point(fingerprint: str, *, workspace: str = W, of: str = "mem-0001", version: int = 1) -> StoredPoint:
    """A point that names mem-0001."""
    return StoredPoint(point_id(W, of), payload(workspace, "mem-0001", version, fingerprint, {}))


@pytest.mark.parametrize(
    ("expected", "point", "difference"),
    [
        (CERTIFIED, a_point("f"), None),
        (CERTIFIED, a_point("old"), Difference.STALE),
        (CERTIFIED, a_point("f", version=3), Difference.STALE),
        (PENDING, a_point("old"), None),
        (PENDING, a_point("new", version=3), Difference.STALE),
        (TO_REMOVE, a_point("f", version=3), None),
        (None, a_point("f"), Difference.ORPHANED),
        (None, a_point("f", of="other-scheme"), Difference.ORPHANED),
        (CERTIFIED, a_point("f", of="other-scheme"), Difference.DUPLICATE),
        (PENDING, a_point("f", of="other-scheme"), Difference.DUPLICATE),
        (TO_REMOVE, a_point("f", of="other-scheme"), Difference.DUPLICATE),
        (CERTIFIED, a_point("f", workspace="other"), Difference.FOREIGN),
        (None, a_point("f", workspace="other"), Difference.FOREIGN),
        (None, StoredPoint(point_id(W, "x"), {}), Difference.FOREIGN),
        (None, StoredPoint(point_id(W, "x"), {"workspace": W}), Difference.ORPHANED),
    ],
)
def test_each_difference_is_found(expected, point, difference):
    assert judge(W, point, expected) is difference


@pytest.mark.parametrize(
    ("point", "own"),
    [
        (a_point("of any text"), True),
        (a_point("f", of="other-scheme"), False),
        (a_point("f", workspace="other"), False),
        (StoredPoint(point_id(W, ""), {}), False),
    ],
)
def test_a_point_is_its_item_s_own_by_id_and_workspace(point, own):
    assert is_own(W, point) is own


@pytest.mark.parametrize("item", [None, 5, ["mem-0001"], "mem-0001\0"])
def test_what_names_no_item_that_the_archive_could_have_names_none(item):
    assert item_of({"item": item}) == ""


def test_all_findings_are_counted_and_the_first_of_them_kept():
    findings = Findings.of(Finding(Difference.STALE, f"id-{n}", f"mem-{n}") for n in range(EXAMPLES * 3))
    findings += Findings.of([Finding(Difference.MISSING, "id", "mem")])
    assert findings.counts == {Difference.STALE: EXAMPLES * 3, Difference.MISSING: 1}
    assert [f.item_id for f in findings.examples] == [f"mem-{n}" for n in range(EXAMPLES)]


def test_what_other_embeddings_left_over_differs_but_is_not_mendable():
    left = Findings.of([Finding(Difference.OTHER_IDENTITY, "id", "mem")])
    assert (bool(left), left.mendable) == (True, False)
    assert Findings.of([Finding(Difference.DUPLICATE, "id", "mem")]).mendable


def test_a_report_counts_over_its_collections_and_names_every_difference():
    report = AuditReport({c: Findings.of([Finding(Difference.MISSING, "id", "mem")]) for c in Collection})
    assert report.counts == {**dict.fromkeys([d.value for d in Difference], 0), "missing": 3}
    assert report
    assert not AuditReport({c: Findings() for c in Collection})
