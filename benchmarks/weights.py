"""How well scores order cards, and weights of signals that order them best: pure, on arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_STEPS = 400
_RATE = 0.15
_DECAY = 0.01


@dataclass(frozen=True, slots=True)
class Case:
    """One question that was asked.

    Attributes:
        group: what it belongs to (a workspace): a whole group is used for choosing weights, or none of it.
        values: what the signals say of each card that was found, of shape (cards, signals).
        relevant: the rows of the relevant cards that were found.
        wanted: how many relevant cards there are.
    """

    group: str
    values: Floats
    relevant: tuple[int, ...]
    wanted: int

    def ranks(self, weights: Floats) -> list[int]:
        """The ranks of the relevant cards that were found, from 1, best first; the earlier row first among equals."""
        order = np.argsort(-(self.values @ weights), kind="stable")
        place = np.empty(len(order), dtype=int)
        place[order] = np.arange(1, len(order) + 1)
        return sorted(int(place[row]) for row in self.relevant)


def by_reciprocal_rank(case: Case, columns: Sequence[int], k: int = 60) -> Case:
    """The case with one signal in place of some: their reciprocal rank fusion.

    After Cormack, Clarke and Büttcher, "Reciprocal rank fusion outperforms Condorcet and individual rank learning
    methods" (SIGIR 2009). A card for which a signal says nothing has no rank there.
    """
    fused = np.zeros((len(case.values), 1))
    for column in columns:
        of_signal = case.values[:, column]
        place = np.argsort(np.argsort(-of_signal, kind="stable")) + 1
        fused[:, 0] += np.where(of_signal > 0, 1 / (k + place), 0.0)
    return replace(case, values=fused)


def recall_at(k: int, ranks: Sequence[int], wanted: int) -> float:
    """The part of all relevant cards that is among the first k."""
    return sum(rank <= k for rank in ranks) / wanted


def reciprocal_rank(ranks: Sequence[int]) -> float:
    """One divided by the rank of the first relevant card; 0 if there is none."""
    return 1 / ranks[0] if ranks else 0.0


def mean(cases: Sequence[Case], weights: Floats, measures: Mapping[str, int]) -> dict[str, float]:
    """The mean over cases of recall at each k (name → k) and, under "MRR", of the reciprocal rank."""
    ranks = [case.ranks(weights) for case in cases]
    figures = {
        name: float(np.mean([recall_at(k, r, c.wanted) for r, c in zip(ranks, cases, strict=True)]))
        for name, k in measures.items()
    }
    return figures | {"MRR": float(np.mean([reciprocal_rank(r) for r in ranks]))}


def learned(cases: Iterable[Case]) -> Floats:
    """Weights of the signals, none below 0 and together 1, of shape (signals,).

    They minimize the cross entropy between the relevant cards and the softmax of all cards' scores: ListNet's loss (Cao
    et al., "Learning to Rank: From Pairwise Approach to Listwise Approach", 2007), by Adam (Kingma and Ba, 2015) from
    equal weights, so that the outcome is always the same.
    """
    usable = [case for case in cases if case.relevant]
    weights = np.full(usable[0].values.shape[1], 4.0)
    momentum, variance = np.zeros_like(weights), np.zeros_like(weights)
    for step in range(1, _STEPS + 1):
        gradient = _DECAY * weights + sum((_gradient(case, weights) for case in usable), np.zeros(())) / len(usable)
        momentum = 0.9 * momentum + 0.1 * gradient
        variance = 0.99 * variance + 0.01 * gradient**2
        slope = momentum / (1 - 0.9**step) / (np.sqrt(variance / (1 - 0.99**step)) + 1e-8)
        weights = np.maximum(weights - _RATE * slope, 0.0)
    total: Floats = weights / weights.sum()
    return total


def _gradient(case: Case, weights: Floats) -> Floats:
    scores = case.values @ weights
    likely = np.exp(scores - scores.max())
    difference = likely / likely.sum()
    difference[list(case.relevant)] -= 1 / len(case.relevant)
    gradient: Floats = case.values.T @ difference
    return gradient
