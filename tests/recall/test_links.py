from __future__ import annotations

from itertools import pairwise

from memory_pipeline.archive.lookup import Link
from memory_pipeline.recall.links import LINKED_AT_MOST, followed
from tests.builders import rejected
from tests.recall.memories import Memory, a_concept, a_solved, ids


def linked(*pairs: str) -> list[Link]:
    return [Link(pair[0], pair[1], f"{pair[0]} to {pair[1]}") for pair in pairs]


def test_links_are_followed_both_ways_nearest_first_and_each_card_once():
    found = followed(["a"], linked("ab", "bc", "ca", "xa"))
    assert list(found) == ["b", "c", "x"]
    assert (found["x"].source, found["x"].target, found["x"].meaning) == ("x", "a", "x to a")


def test_a_cycle_ends():
    assert list(followed(["a"], linked("ab", "bc", "cd", "da"))) == ["b", "d", "c"]


def test_a_hit_does_not_come_along_with_another_hit():
    assert followed(["a", "b"], linked("ab")) == {}


def test_each_card_says_from_which_hit_it_was_reached():
    found = followed(["a", "z"], linked("ab", "bc", "zy"))
    assert {card: link.hit for card, link in found.items()} == {"b": "a", "y": "z", "c": "a"}


def test_a_chain_is_followed_three_links_far():
    assert list(followed(["a"], linked("ab", "bc", "cd", "de"))) == ["b", "c", "d"]


def test_a_hub_brings_along_a_bounded_number_of_cards():
    star = [Link("hub", f"card-{n:03d}", "about") for n in range(200)]
    assert len(followed(["hub"], star)) == LINKED_AT_MOST


def test_a_refused_card_does_not_come_along_though_links_lead_through_it():
    assert list(followed(["a"], linked("ab", "bc"), refused=["b"])) == ["c"]


def test_linked_cards_come_after_the_hits_with_the_meaning_of_the_link(memory: Memory):
    first, second, third, _ = memory.hold(a_concept(), a_concept("ward", "a"), a_solved("Beds?"), a_concept("far", "b"))
    memory.link(first, second, "is counted by")
    memory.link(second, third, "is used in")
    memory.link(third, first, "began with")  # a cycle
    memory.project()

    result = memory.search("active patient", limit=1, families=["concept"], expand_links=True)

    assert ids(result) == [first, second, third]
    assert [hit.link and hit.link.meaning for hit in result.hits] == [None, "is counted by", "began with"]
    assert [hit.score for hit in result.hits[1:]] == [0.0, 0.0]
    assert result.as_json()["hits"][1]["link"] == {
        "hit": first,
        "source": first,
        "target": second,
        "meaning": "is counted by",
    }
    assert ids(memory.search("active patient", limit=1, families=["concept"])) == [first]


def test_of_a_hub_with_a_tail_fifty_cards_at_most_come_along_once_each(memory: Memory):
    hub, *around = memory.hold(a_concept(), *[a_concept(f"ward {n}", f"a{n}") for n in range(60)])
    for card in around:
        memory.link(hub, card)
        memory.link(card, around[0]) if card != around[0] else None
    memory.project()
    hits = memory.search("active patient", limit=1, expand_links=True).hits
    assert hits[0].card_id == hub
    assert [hit.card_id for hit in hits[1:]] == around[:LINKED_AT_MOST]


def test_no_card_further_than_three_links_comes_along(memory: Memory):
    chain = memory.hold(*[a_concept(f"step {n}", f"a{n}") for n in range(6)])
    for source, target in pairwise(chain):
        memory.link(source, target)
    memory.project()
    assert ids(memory.search("step 0", limit=1, expand_links=True)) == chain[:4]


def test_links_of_another_workspace_lead_nowhere_though_its_cards_have_the_same_ids(memory: Memory):
    memory.make("other")
    ours = memory.hold(a_concept(), a_concept("ward", "ours"))
    theirs = memory.hold(a_concept(), a_concept("ward", "theirs"), workspace="other")
    assert ours == theirs
    memory.link(*theirs, workspace="other")
    memory.project()
    memory.project("other")
    assert ids(memory.search("active patient", limit=1, expand_links=True)) == ours[:1]
    along = memory.search("active patient", limit=1, expand_links=True, workspace="other").hits[1]
    assert (along.card_id, along.detail) == (theirs[1], "theirs")


def test_what_the_asking_session_has_decided_does_not_come_along(memory: Memory):
    [card, other] = memory.hold(a_concept(), a_concept("ward", "a unit"))
    memory.session(rejected(1, other), session="mine", question="How many?", sql=None)
    memory.ingest()
    memory.link(card, other)
    memory.project()
    assert ids(memory.search(limit=1, expand_links=True, session_id="mine")) == [card]
    assert ids(memory.search(limit=1, expand_links=True)) == [card, other]


def test_expanding_without_any_link_changes_nothing(memory: Memory):
    held = memory.hold(a_concept())
    memory.project()
    assert ids(memory.search(expand_links=True)) == held
