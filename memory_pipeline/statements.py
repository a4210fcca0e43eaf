"""Reads what a card's texts state, so that two cards can be compared without a model. Pure, and made to err towards no.

A `Statement` keeps apart what is form (white space, quotes, brackets, punctuation, case, accents, a subject repeated in
its detail) from what must never differ between duplicates (figures, operators, literals, identifiers, functions,
negations), and gives the rest as weighed terms, and as the words behind them in their order.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

from memory_pipeline.lexical import Lexicon
from memory_pipeline.statement_words import AND, CONNECTING, COPULAS, DEFINING, HOLLOW, OR, ORDERING, PLURALS
from memory_pipeline.text import accentless, digest
from memory_pipeline.turning import TURNING

LONGEST = 400
"""Words of a statement that is compared by its terms; of a longer one only what is but for form the same is found."""
LONGEST_WORD = 100
"""Characters of a word, of which the same holds: longer ones are data (Base64, a sequence), not language."""

_SPELLINGS = str.maketrans(
    dict.fromkeys("‘’‚‛′`´", "'") | dict.fromkeys("“”„‟«»″", '"') | {"≥": ">=", "≤": "<=", "≠": "!=", "−": "-"}
)
_CONTRACTED_NOT = re.compile(r"n't\b|(?<=\bcan)not\b", re.IGNORECASE)
_HYPHEN = re.compile(r"(?<=[^\W\d_])-(?=[^\W\d_])")  # "non-smoker" is "non smoker"; "-1" and '-' are signs
_RANGE = re.compile(r"(?<=\d)[–—](?=\d)")
# A literal without a letter or figure, the empty one among them, is told by its signs: '-' is not '+'.
_SIGNS = r"(?<![\w'])(?P<quote>['\"])\s*+(?P<signs>[^\w\s'\"]*+)\s*+(?P=quote)(?![\w'])"
_TOKEN = re.compile(rf"{_SIGNS}|\d+(?:[.,]\d+){{1,9}}(?!\w)|\w+|<>|[<>!=]\s*=|=\s*[<>]|[^\w\s]")
_QUOTED = re.compile(r"(?<!\w)(['\"])(.{1,200}?)\1(?!\w)", re.DOTALL)
# A pattern that begins in the middle of a word, or gives back what it took, needs quadratic time for one long word.
_DOTTED = re.compile(r"(?<!\w)\w++(?:\.[^\W\d]\w*+)*+")
_COMPOUND = re.compile(r"[^\W_]_|_[^\W_]|[a-z][A-Z]|[^\W\d]\.")
_CAPITALS = re.compile(r"\b[A-Z]{2,}\b")
_FUNCTION = re.compile(r"(?<!\w)(\w++)\(")
_CAPITAL = re.compile(r"\b[A-Z]\b(?!')")

# SQL compares text by its case, so 'RO' is not 'ro'; what it compares with may have lost its quotes, or one of them.
# Guillemets and backticks are not among these quotes: they hold names, whose case does not count. Elsewhere what is
# quoted is a literal where it is in capitals, as codes are.
_LITERAL = re.compile(
    r"(?P<before>[=<>≠(,]\s*+|\b(?i:like|in)\s++)?(?<!\w)['\"‘“”′″](?P<quoted>.{1,200}?)['\"’”″](?!\w)"
    r"(?P<after>\s*+[=<>≠!,)])?|[=<>≠]\s*+['\"‘“”′″]?(?P<bare>[^\W_]++)(?![\w.(])",
    re.DOTALL,
)
_KEYWORDS = frozenset({"true", "false", "null", "not"})
_RAISED = re.compile("[⁰¹²³ⁱ⁴-ⁿ]+")  # x² is x^2, not x2
_LOWERED = re.compile(r"[₀-₉]+(?=\d)")  # log₂8 is log2 8
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")

_OPERATORS = {"<>": "!=", "=>": ">=", "=<": "<=", "==": "="}
_COMPARISONS = frozenset({"=", "<", ">", "<=", ">=", "!="})
_COMMUTING = frozenset({"=", "!="})
_BRACKETS = frozenset("()[]{}")
_FORM = frozenset(".,;:!?'\"…·•–—¿¡")  # every other sign is kept


@dataclass(frozen=True, slots=True)
class Word:
    """A word that a statement says.

    Attributes:
        forms: the word, and what it may be the plural of; two words with a form in common are the same.
        terms: what it is about; none of a stop word that is kept.
    """

    forms: frozenset[str]
    terms: frozenset[int]

    @property
    def exact(self) -> bool:
        """Whether it is a figure, a single letter or a word that turns a meaning."""
        return not self.terms or any(len(form) == 1 or any(map(str.isdigit, form)) for form in self.forms)


@dataclass(frozen=True, slots=True)
class Statement:
    """What a card's texts state.

    Attributes:
        form: equal for statements that are the same but for form.
        facts: equal for statements that have the same figures, signs, comparisons, negations and other words that turn
            a meaning round; only such ones can be near.
        words: the distinct words.
        named: the words that are literals, identifiers, functions or parts of a comparison.
        terms: what the words are about: stems, without stop words and copulas. Empty where the text is too long.
        parts: the words that it says, in their order; two parts where something is defined as something.
    """

    form: str
    facts: str = ""
    words: frozenset[str] = frozenset()
    named: frozenset[str] = frozenset()
    terms: frozenset[int] = frozenset()
    parts: tuple[tuple[Word, ...], ...] = ()


class Reader:
    """Reads statements of one language."""

    def __init__(self, language: str) -> None:
        """Prepare a language.

        Args:
            language: Snowball's name.

        Raises:
            InvalidSettings: the language is not supported.
        """
        self._lexicon = Lexicon(language)
        self._plurals = PLURALS.get(self._lexicon.language, ())
        self._known: dict[str, tuple[int, ...]] = {}
        self._words: dict[str, Word] = {}
        self._copulas = frozenset(term for word in COPULAS for term in self._stems(word))

    def statement(self, subject: str, detail: str) -> Statement:
        """What a subject and its detail state together."""
        said = _said(subject, detail)
        text = " ; ".join(map(_spelled, said))
        literals = list(chain.from_iterable(map(_cased, said)))
        tokens = _tokens(text)
        form = digest(*_form(text, tokens), "", *literals)
        if len(tokens) > LONGEST or any(len(token) > LONGEST_WORD for token in tokens):
            return Statement(form)
        return Statement(
            form=form,
            facts=digest(*self._facts(tokens), *_grouping(text, tokens), "", *sorted(set(literals))),
            words=frozenset(filter(_is_word, tokens)),
            named=frozenset(_named(text, tokens)),
            terms=frozenset(term for token in tokens for term in self._about(token)),
            parts=self._parts(*map(_spelled, said)),
        )

    def _parts(self, *texts: str) -> tuple[tuple[Word, ...], ...]:
        parts = [part for text in texts for part in self._defined(text)]
        subject, *others = parts or [()]
        if len(texts) > 1 and any(_has(part, subject) for part in others):  # in the plural, say
            parts = others
        return tuple(parts)

    def _defined(self, text: str) -> Iterator[tuple[Word, ...]]:
        """The parts of a text, around the words that define."""
        codes = _codes(text)
        tokens = _tokens(text)
        ends = [n for n, token in enumerate(tokens) if token in DEFINING]
        for start, end in zip([-1, *ends], [*ends, len(tokens)], strict=True):
            if part := tuple(self._in_order(tokens[start + 1 : end], codes)):
                yield part

    def _in_order(self, tokens: Sequence[str], codes: frozenset[str]) -> Iterator[Word]:
        """The words of a part; conditions or single words that all of it joins are sorted: "a or b" is "b or a"."""
        joined: list[list[str]] = [[]]
        for token in tokens:
            if token in AND or token in OR:
                joined.append([])
            else:
                joined[-1].append(token)
        said = [list(self._kept(_sides_sorted(each), codes)) for each in joined]
        mixed = not AND.isdisjoint(tokens) and not OR.isdisjoint(tokens)
        alone = all(len(words) == 1 or _is_condition(each) for words, each in zip(said, joined, strict=True))
        if alone and not mixed and ORDERING.isdisjoint(tokens):
            said.sort(key=lambda words: [sorted(word.forms) for word in words])
        yield from chain.from_iterable(said)

    def _kept(self, tokens: Sequence[str], codes: frozenset[str]) -> Iterator[Word]:
        for token in tokens:
            terms = self._about(token)
            if terms or (_is_word(token) and (token in codes or self._turns(token))):
                yield self._word(token, terms)

    def _word(self, token: str, terms: tuple[int, ...]) -> Word:
        if token not in self._words:
            singulars = (token.removesuffix(end) + instead for end, instead in self._plurals if token.endswith(end))
            self._words[token] = Word(frozenset((token, *singulars)), frozenset(terms))
        return self._words[token]

    def _facts(self, tokens: Sequence[str]) -> Iterator[str]:
        """Each kind of fact in an order of its own, whatever the order of the words."""
        figures = {token for token in tokens if any(map(str.isdigit, token))}
        signs = {token for token in tokens if not _is_word(token) and token not in _BRACKETS}
        turning = {token for token in tokens if _is_word(token) and self._turns(token)}
        turned = {
            token if token in OR else f"{token} {self._next(tokens, n)}"  # "a or b" is "b or a"
            for n, token in enumerate(tokens)
            if token in turning
        }
        for facts in (figures, signs, set(_comparisons(tokens)), turned):
            yield from sorted(facts)
            yield ""

    def _turns(self, word: str) -> bool:
        return word in TURNING or (word not in HOLLOW and not self._stems(word))

    def _next(self, tokens: Sequence[str], place: int) -> str:
        """The stem of the next word that is about something: what a negation negates."""
        stems = (self._about(token) for token in tokens[place + 1 :])
        return str(next((min(each) for each in stems if each), ""))

    def _about(self, token: str) -> tuple[int, ...]:
        if not _is_word(token) or token in HOLLOW:  # "is" is no stop word of Italian
            return ()
        return tuple(stem for stem in self._stems(token) if stem not in self._copulas)

    def _stems(self, word: str) -> tuple[int, ...]:
        if word not in self._known:
            self._known[word] = self._lexicon.query(word).indices
        return self._known[word]


@dataclass(frozen=True, slots=True)
class Weights:
    """What terms count for among the statements of one workspace: the rarer, the heavier.

    Attributes:
        of: the weight of each term.
        light: up to which weight a term is so common that only one of two near statements may have it.
    """

    of: Mapping[int, float]
    light: float


def likeness(one: Statement, other: Statement, weights: Weights) -> float:
    """How much two statements say the same, from 0 (something differs that must not) to 1 (all terms are shared).

    It is the weight of the terms that they share, as part of the weight of all that either has. Two that each have a
    term of their own say two things; and a term that one of them has in addition is taken for a condition, which makes
    it the more specific one, unless the term is common.
    """
    if one.facts != other.facts or not (one.named <= other.words and other.named <= one.words):
        return 0.0
    fewer, more = sorted((one.terms, other.terms), key=len)
    if not fewer <= more or any(weights.of[term] > weights.light for term in more - fewer):
        return 0.0
    if not _same_order(_shared(one, other), _shared(other, one)):
        return 0.0
    either = sum(weights.of[term] for term in more)
    return sum(weights.of[term] for term in fewer) / either if either else 0.0


def _shared(one: Statement, other: Statement) -> list[list[Word]]:
    """The parts of one of two statements without the words that the other does not have."""
    parts = ([word for word in part if not word.terms or not word.terms.isdisjoint(other.terms)] for part in one.parts)
    return [part for part in parts if part]


def _same_order(one: list[list[Word]], other: list[list[Word]]) -> bool:
    """Whether two statements say the same words in the same order, or define as much by the same words.

    "1 male, 2 female" and "2 male, 1 female" have the same words, and so have who refuses and who is refused. The two
    parts of a definition may be in either order.
    """
    if _same_words(*map(list, map(chain.from_iterable, (one, other)))):
        return True
    if len(one) != 2 or len(other) != 2:  # noqa: PLR2004  # what is defined, and as what
        return False
    return any(
        _same_words(one[n], other[m]) and _same_defined(one[1 - n], other[1 - m], one[n])
        for n in range(2)
        for m in range(2)
    )


def _same_defined(one: Sequence[Word], other: Sequence[Word], defining: Sequence[Word]) -> bool:
    """Whether what is defined is the same, but for words of one of them that the definition has too."""
    fewer, more = sorted((one, other), key=len)
    said = frozenset(term for word in defining for term in word.terms)
    left = list(fewer)
    for word in more:
        if left and _same(left[0], word):
            left.pop(0)
        elif word.exact or not word.terms <= said:
            return False
    return not left


def _same_words(some: Sequence[Word], others: Sequence[Word]) -> bool:
    return len(some) == len(others) and all(map(_same, some, others))


def _same(one: Word, other: Word) -> bool:
    return one.terms == other.terms and not one.forms.isdisjoint(other.forms)


def _has(words: Sequence[Word], some: Sequence[Word]) -> bool:
    """Whether some words are among others, one after the other."""
    return any(_same_words(words[n : n + len(some)], some) for n in range(len(words) - len(some) + 1))


def _said(subject: str, detail: str) -> list[str]:
    """Both texts, the subject left out where the detail repeats it."""
    said, words = (f" {' '.join(_tokens(_spelled(text)))} " for text in (detail, subject))
    return [detail] if words in said else [subject, detail]


def _spelled(text: str) -> str:
    text = _BEYOND_ASCII.sub(lambda match: _figures_apart(match.group()), text)
    text = _LOWERED.sub(r"\g<0> ", _RAISED.sub(r"^\g<0>", text))
    text = unicodedata.normalize("NFKC", text.translate(_SPELLINGS)).translate(_SPELLINGS)
    return _RANGE.sub("-", _HYPHEN.sub(" ", _CONTRACTED_NOT.sub(" not", text)))


@lru_cache(4096)
def _figures_apart(character: str) -> str:
    """A sign that holds a figure (`½`, `①`, `㎡`), so that it lengthens no figure beside it."""
    kind, *parts = unicodedata.decomposition(character).split() or [""]
    if kind == "<square>":
        return "".join(chr(int(part, 16)) for part in parts)
    apart = kind in {"<fraction>", "<circle>", "<compat>"} and any(chr(int(part, 16)).isdigit() for part in parts)
    return f" {character} " if apart else character


def _cased(text: str) -> Iterator[str]:
    """The words with capitals of the literals in a text, as they are written."""
    for match in _LITERAL.finditer(text):
        compared = match["bare"] or match["before"] or match["after"]
        for word in re.findall(r"\w+", match["bare"] or match["quoted"]):
            if (word.isupper() or (compared and word != word.lower())) and word.lower() not in _KEYWORDS:
                yield word


def _codes(text: str) -> frozenset[str]:
    """The single capitals of a text; one at a start that is the only one may be an article."""
    found = {match.group(): match.start() for match in _CAPITAL.finditer(text)}
    if len(found) == 1 and all(_starts(text[:place]) for place in found.values()):
        return frozenset()
    return frozenset(map(str.casefold, found))


def _starts(before: str) -> bool:
    before = before.rstrip(" \n\t'\"()[]*-")
    return not before or before[-1] in ".;!?"


def _tokens(text: str) -> list[str]:
    """Words, figures and signs in their order, without what is form."""
    return [token for token in _with_brackets(text) if token not in _BRACKETS]


def _token(match: re.Match[str]) -> str:
    if match["signs"] is not None:
        return f"'{match['signs']}'"
    token = match.group()
    if _is_word(token):
        return _plain(token)
    token = "".join(token.split())
    return _OPERATORS.get(token, token)


_plain = lru_cache(16_384)(accentless)  # a workspace's words come again and again


def _is_word(token: str) -> bool:
    return token[0].isalnum() or token[0] == "_"


def _form(text: str, tokens: list[str]) -> list[str]:
    return [*tokens, "", *_with_brackets(text)] if _groups(tokens) else tokens


def _grouping(text: str, tokens: Sequence[str]) -> list[str]:
    """What brackets join, as far as that carries a meaning: they are form, but not in (a + b) * c."""
    skeleton = [token for token in _with_brackets(text) if token in _BRACKETS or token in CONNECTING]
    return skeleton if _groups(tokens) and not _BRACKETS.isdisjoint(skeleton) else []


def _groups(tokens: Sequence[str]) -> bool:
    return sum(token in CONNECTING for token in tokens) > 1


@lru_cache(8)  # a text is looked at in several ways, one after the other
def _with_brackets(text: str) -> tuple[str, ...]:
    return tuple(token for match in _TOKEN.finditer(text) if (token := _token(match)) not in _FORM)


def _comparisons(tokens: Sequence[str]) -> Iterator[str]:
    """Each comparison with what stands on either side of it."""
    for left, sign, right in _compared(tokens):
        yield " ".join((sign, *(sorted((left, right)) if sign in _COMMUTING else (left, right))))


def _compared(tokens: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    padded = ["", *tokens, ""]
    for left, sign, right in zip(padded, padded[1:], padded[2:], strict=False):
        if sign in _COMPARISONS:
            yield left, sign, right


def _sides_sorted(tokens: Sequence[str]) -> list[str]:
    """The tokens, with the two sides of an equation in one order."""
    result = list(tokens)
    for n, (left, sign, right) in enumerate(zip(tokens, tokens[1:], tokens[2:], strict=False)):
        if sign in _COMMUTING:
            result[n], result[n + 2] = sorted((left, right))
    return result


def _is_condition(tokens: Sequence[str]) -> bool:
    return "null" in tokens or not _COMPARISONS.isdisjoint(tokens)


def _named(text: str, tokens: Sequence[str]) -> Iterator[str]:
    """The words that have to be in both of two statements, as they are."""
    found = [match.group(2) for match in _QUOTED.finditer(text)]
    found += [name for name in _DOTTED.findall(text) if _COMPOUND.search(name)]
    found += _CAPITALS.findall(text)
    found += [match.group(1) for match in _FUNCTION.finditer(text)]
    yield from (token for each in found for token in _tokens(each) if _is_word(token))
    yield from (side for left, _, right in _compared(tokens) for side in (left, right) if side and _is_word(side))
