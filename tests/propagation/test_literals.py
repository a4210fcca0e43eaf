"""What a literal that comes or goes does to points: those of the questions that name it are written anew."""

from __future__ import annotations

import pytest

from memory_pipeline.archive import cards, workspaces
from memory_pipeline.cards import CardContent, Collection, Family
from memory_pipeline.embedding.base import Role
from memory_pipeline.index.base import Search
from memory_pipeline.points import point_id, target
from memory_pipeline.propagation import audit, project
from tests.archives import Archive

W = "clinic"
ROMA, NOTHING = "SELECT * FROM t WHERE city = 'roma'", "SELECT 1"


def a_solved(question: str, sql: str = NOTHING) -> CardContent:
    return CardContent(Family.SOLVED_QUESTION, question=question, sql=sql)


def create(world, *contents: CardContent) -> list[str]:
    with world.runtime.database.transaction(W, writing=True) as tx:
        return cards.create(tx, contents, origin="hand", principal="anna")


def delete(world, card_id: str) -> None:
    with world.runtime.database.transaction(W, writing=True) as tx:
        cards.delete(tx, [card_id])


def shaped(world, text: str) -> set[str]:
    """The points whose shape is this text, after everything was projected."""
    assert project(world.runtime, W).pending == 0
    assert not audit(world.runtime, W)
    into = target(W, Collection.SOLVED_QUESTIONS, world.runtime.identity)
    vector = world.embedder.embed([text], Role.QUERY)[0]
    [found] = world.runtime.index.search(into, [Search("shape", vector, 10)])
    return {hit.id for hit in found if hit.score > 0.99}


@pytest.fixture
def asked(world) -> str:
    """A question that names what could be a literal, beside another one."""
    workspaces.make(world.runtime.database, W, language="italian", principal="anna")
    card_id, _ = create(world, a_solved("quanti a roma?"), a_solved("quanti in tutto?"))
    assert shaped(world, "Quanti a roma") == {point_id(W, card_id)}
    return card_id


def test_a_literal_that_comes_and_goes_gives_the_questions_that_name_it_another_shape(world, asked):
    (new,) = create(world, a_solved("dove?", ROMA))
    written = world.index.upserted
    assert shaped(world, "Quanti a #") == {point_id(W, asked)}
    assert shaped(world, "Quanti a roma") == set()
    assert world.index.upserted == written + 2  # the new one and the one that names its literal
    delete(world, new)
    assert shaped(world, "Quanti a roma") == {point_id(W, asked)}
    assert shaped(world, "Quanti a #") == set()


def test_what_is_masked_is_what_the_archive_says_that_a_question_names(world, asked):
    statement = "UPDATE card SET named_literals = '{quanti}', fingerprint = 'new' WHERE card_id = :card_id"
    Archive(world.runtime, W).change(statement, card_id=asked)
    assert shaped(world, "# a roma") == {point_id(W, asked)}
