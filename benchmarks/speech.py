"""Texts as people write them, drawn by a fixed seed, and a model that puts those near each other that share words."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from memory_pipeline.embedding.base import Role, Vectors

_VOCABULARY = 20_000
_EXACTNESS = 2.7  # of the law of Zipf and Mandelbrot, as English has it
_WORD = re.compile(r"\w+")
_TEXT = """
paziente attivo ricovero dimissione età più diagnosi flag_attivo reparto ablazione fibrillazione atriale data inizio
fine episodio terapia farmaco dosaggio esame pressione visita priorità urgenza codice stato valore il la di che e per
patient active customer order amount date status account revenue region product price average total count number rate
month year school student score charge the of and in for how many
"""
_SYLLABLES = "ba be bi ca ce co da de di do fa fe fi ga la le li lo ma me mi mo na ne no pa pe po ra re ri ro sa se si "
_SYLLABLES += "so ta te ti to va ve vi za str pre con per tra"


class Speech:
    """Texts that are the same in each run."""

    def __init__(self) -> None:
        self.chance = random.Random(1)  # noqa: S311  # the same texts in each run
        made = dict.fromkeys(_TEXT.split())
        syllables = _SYLLABLES.split()
        while len(made) < _VOCABULARY:
            made["".join(self.chance.choices(syllables, k=self.chance.randrange(2, 6))) + "aeio"[len(made) % 4]] = None
        self.vocabulary = list(made)
        self._frequencies = list(accumulate(1 / (rank + _EXACTNESS) for rank in range(1, _VOCABULARY + 1)))

    def some(self, at_least: int, at_most: int) -> str:
        """So many words, the frequent ones more often."""
        count = self.chance.randint(at_least, at_most)
        return " ".join(self.chance.choices(self.vocabulary, cum_weights=self._frequencies, k=count))


class BagOfWords:
    """Stands for a model: texts that share words are near each other, by their rare words more; none is far away."""

    dimension = 384

    def __init__(self, speech: Speech) -> None:
        generator = np.random.default_rng(1)
        self._place = {word: place for place, word in enumerate(speech.vocabulary)}
        rarity = np.log2(np.arange(2, len(speech.vocabulary) + 2, dtype=np.float32))
        self._vectors = generator.standard_normal((len(self._place), self.dimension), dtype=np.float32)
        self._vectors *= rarity[:, np.newaxis]
        self._common = 20 * generator.standard_normal(self.dimension, dtype=np.float32)

    def embed(self, texts: Sequence[str], _role: Role) -> Vectors:
        """See `Embedder.embed`."""
        found = np.array([self._vector(each) for each in texts], dtype=np.float32).reshape(len(texts), self.dimension)
        vectors: Vectors = found / np.linalg.norm(found, axis=1, keepdims=True)
        return vectors

    def truncates(self, texts: Sequence[str], _role: Role) -> list[bool]:
        """See `Embedder.truncates`."""
        return [False] * len(texts)

    def _vector(self, said: str) -> Vectors:
        places = [self._place[word] for word in _WORD.findall(said) if word in self._place]
        vector: Vectors = self._vectors[places].sum(axis=0) + self._common
        return vector
