"""Reads what a card's texts state, so that two cards can be compared without a model. Pure, and made to err towards no.

A `Statement` keeps apart what is form (white space, quotes, brackets, punctuation, case, accents, a subject repeated in
its detail) from what must never differ between duplicates (figures, operators, literals, identifiers, functions,
negations), and gives the rest as weighed terms.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from memory_pipeline.lexical import Lexicon
from memory_pipeline.text import accentless, digest

LONGEST = 400
"""Words of a statement that is compared by its terms; of a longer one only what is but for form the same is found."""

_SPELLINGS = str.maketrans(
    dict.fromkeys("‘’‚‛′`´", "'") | dict.fromkeys("“”„‟«»″", '"') | {"≥": ">=", "≤": "<=", "≠": "!=", "−": "-"}
)
_CONTRACTED_NOT = re.compile(r"n't\b|(?<=\bcan)not\b", re.IGNORECASE)
_HYPHEN = re.compile(r"(?<=[^\W\d_])-(?=[^\W\d_])")  # "non-smoker" is "non smoker"; "-1" and '-' are signs
_RANGE = re.compile(r"(?<=\d)[–—](?=\d)")
# A literal without a letter or figure, the empty one among them, is told by its signs: '-' is not '+'.
_SIGNS = r"(?<![\w'])(?P<quote>['\"])\s*(?P<signs>[^\w\s'\"]*)\s*(?P=quote)(?![\w'])"
_TOKEN = re.compile(rf"{_SIGNS}|\d+(?:[.,]\d+)+(?!\w)|\w+|<>|[<>!=]\s*=|=\s*[<>]|[^\w\s]")
_QUOTED = re.compile(r"(?<!\w)(['\"])(.{1,200}?)\1(?!\w)", re.DOTALL)
_IDENTIFIER = re.compile(r"\w*(?:[^\W_]_|_[^\W_]|[a-z][A-Z])\w*|[^\W\d]\w*(?:\.[^\W\d]\w*)+")
_CAPITALS = re.compile(r"\b[A-Z]{2,}\b")
_FUNCTION = re.compile(r"(\w+)\(")
_ARGUMENTS = re.compile(r"\w\([^()]*,")

_OPERATORS = {"<>": "!=", "=>": ">=", "=<": "<=", "==": "="}
_COMPARISONS = frozenset({"=", "<", ">", "<=", ">=", "!="})
_COMMUTING = frozenset({"=", "!="})
_BRACKETS = frozenset("()[]{}")
_FORM = frozenset(".,;:!?'\"…·•–—¿¡")  # every other sign is kept


def _words(text: str) -> frozenset[str]:
    return frozenset(accentless(text).split())


_CONNECTING = _words("+ - * / % and or not e ed o oppure non")
_AND, _OR = _words("and e ed"), _words("or o oppure")
_ORDERING = _words("- / < > <= >= from da than before after prima dopo minus meno diviso divided between tra fra")

# Words that turn a meaning round: both of two near statements have them, negations before the same word. Besides these
# they are all stop words of the language (not, no, or, only, more …) that are not hollow.
_TURNING = _words(
    "not non no or o oppure without never none neither nor except excluding excluded least most until since within "
    "beyond first last maximum minimum max min average avg sum total count number median highest lowest percentage "
    "rate senza mai nessuno nessuna nessun neppure privo priva tranne eccetto escluso esclusa esclusi escluse almeno "
    "oltre fino entro prima dopo solo soltanto primo ultimo ultima massimo massima minimo minima medio media mediana "
    "somma totale numero conteggio percentuale tasso"
)
# Stop words that say nothing by themselves. Of languages that are not here every stop word counts, which finds less.
_HOLLOW = _words(
    "a an the this that these those it its itself they them their he she his her we our you your i my is are was were "
    "be been being am has have had having do does did doing can will should would of to for in on at by as with from "
    "into about and both which who whom what when where while if then there here how s t re ve ll d m such so very "
    "just il lo la gli le l un uno una di del dello della dei degli delle dell al allo alla ai agli alle all ad dal "
    "dallo dalla dai dagli dalle dall da nel nello nella nei negli nelle nell sul sullo sulla sui sugli sulle sull su "
    "con col per che chi cui si ci e ed quando dove se come quale quali questo questa questi queste quello quella "
    "quelli quelle sono sia siano essere era erano stato stata stati state ha hanno abbia abbiano avere avente aventi"
)
# Words that only tie what is defined to what it is defined as.
_COPULAS = _words(
    "refer refers referred referring mean means meant meaning stand stands represent represents represented denote "
    "denotes indicate indicates indicated correspond corresponds define defines defined contain contains map maps "
    "mapped column columns field fields riferisce riferiscono riferito riferita significa significano significare "
    "indica indicano intende intendono inteso rappresenta rappresentano corrisponde corrispondono equivale "
    "equivalgono definisce definito definita definiti considera considerano considerato considerata considerati "
    "contiene contengono vuole dire ovvero cioè colonna colonne campo campi"
)


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
        order: the terms in their order where that carries a meaning (a difference, a quotient, from … to); else empty.
    """

    form: str
    facts: str = ""
    words: frozenset[str] = frozenset()
    named: frozenset[str] = frozenset()
    terms: frozenset[int] = frozenset()
    order: tuple[int, ...] = ()


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
        self._known: dict[str, tuple[int, ...]] = {}
        self._copulas = frozenset(term for word in _COPULAS for term in self._stems(word))

    def statement(self, subject: str, detail: str) -> Statement:
        """What a subject and its detail state together."""
        text = _statement_text(subject, detail)
        tokens = _tokens(text)
        form = digest(*_form(text, tokens))
        if len(tokens) > LONGEST:
            return Statement(form)
        in_order = [term for token in tokens for term in self._about(token)]
        return Statement(
            form=form,
            facts=digest(*self._facts(tokens), *_grouping(text, tokens)),
            words=frozenset(filter(_is_word, tokens)),
            named=frozenset(_named(text, tokens)),
            terms=frozenset(in_order),
            order=tuple(in_order) if _ordered(text, tokens) else (),
        )

    def _facts(self, tokens: Sequence[str]) -> Iterator[str]:
        """Each kind of fact in an order of its own, whatever the order of the words."""
        figures = {token for token in tokens if any(map(str.isdigit, token))}
        signs = {token for token in tokens if not _is_word(token) and token not in _BRACKETS}
        turning = {token for token in tokens if _is_word(token) and self._turns(token)}
        turned = {
            token if token in _OR else f"{token} {self._next(tokens, n)}"  # "a or b" is "b or a"
            for n, token in enumerate(tokens)
            if token in turning
        }
        for facts in (figures, signs, set(_comparisons(tokens)), turned):
            yield from sorted(facts)
            yield ""

    def _turns(self, word: str) -> bool:
        return word in _TURNING or (word not in _HOLLOW and not self._stems(word))

    def _next(self, tokens: Sequence[str], place: int) -> str:
        """The stem of the next word that is about something: what a negation negates."""
        stems = (self._about(token) for token in tokens[place + 1 :])
        return str(next((min(each) for each in stems if each), ""))

    def _about(self, token: str) -> tuple[int, ...]:
        if not _is_word(token) or token in _HOLLOW:  # "is" is no stop word of Italian
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
    if _in_order(one, other) != _in_order(other, one):
        return 0.0
    either = sum(weights.of[term] for term in more)
    return sum(weights.of[term] for term in fewer) / either if either else 0.0


def _in_order(one: Statement, other: Statement) -> tuple[int, ...]:
    shared = (term for term in one.order if term in other.terms)
    return tuple(dict.fromkeys(shared))


def _statement_text(subject: str, detail: str) -> str:
    """Both texts as one, the subject left out where the detail repeats it."""
    subject, detail = _spelled(subject), _spelled(detail)
    said, words = f" {' '.join(_tokens(detail))} ", " ".join(_tokens(subject))
    return detail if f" {words} " in said else f"{subject} ; {detail}"


def _spelled(text: str) -> str:
    text = unicodedata.normalize("NFKC", text.translate(_SPELLINGS)).translate(_SPELLINGS)
    return _RANGE.sub("-", _HYPHEN.sub(" ", _CONTRACTED_NOT.sub(" not", text)))


def _tokens(text: str) -> list[str]:
    """Words, figures and signs in their order, without what is form."""
    return [token for token in _with_brackets(text) if token not in _BRACKETS]


def _token(match: re.Match[str]) -> str:
    if match["signs"] is not None:
        return f"'{match['signs']}'"
    token = re.sub(r"\s", "", match.group())
    return accentless(token) if _is_word(token) else _OPERATORS.get(token, token)


def _is_word(token: str) -> bool:
    return token[0].isalnum() or token[0] == "_"


def _form(text: str, tokens: list[str]) -> list[str]:
    return [*tokens, "", *_with_brackets(text)] if _groups(tokens) else tokens


def _grouping(text: str, tokens: Sequence[str]) -> list[str]:
    """What brackets join, as far as that carries a meaning: they are form, but not in (a + b) * c."""
    skeleton = [token for token in _with_brackets(text) if token in _BRACKETS or token in _CONNECTING]
    return skeleton if _groups(tokens) and not _BRACKETS.isdisjoint(skeleton) else []


def _groups(tokens: Sequence[str]) -> bool:
    return sum(token in _CONNECTING for token in tokens) > 1


def _with_brackets(text: str) -> list[str]:
    return [token for match in _TOKEN.finditer(text) if (token := _token(match)) not in _FORM]


def _comparisons(tokens: Sequence[str]) -> Iterator[str]:
    """Each comparison with what stands on either side of it."""
    for left, sign, right in _compared(tokens):
        yield " ".join((sign, *(sorted((left, right)) if sign in _COMMUTING else (left, right))))


def _compared(tokens: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    padded = ["", *tokens, ""]
    for left, sign, right in zip(padded, padded[1:], padded[2:], strict=False):
        if sign in _COMPARISONS:
            yield left, sign, right


def _named(text: str, tokens: Sequence[str]) -> Iterator[str]:
    """The words that have to be in both of two statements, as they are."""
    found = [match.group(2) for match in _QUOTED.finditer(text)]
    found += [match.group() for pattern in (_IDENTIFIER, _CAPITALS) for match in pattern.finditer(text)]
    found += [match.group(1) for match in _FUNCTION.finditer(text)]
    yield from (token for each in found for token in _tokens(each) if _is_word(token))
    yield from (side for left, _, right in _compared(tokens) for side in (left, right) if side and _is_word(side))


def _ordered(text: str, tokens: Sequence[str]) -> bool:
    mixed = not _AND.isdisjoint(tokens) and not _OR.isdisjoint(tokens)
    return mixed or _ARGUMENTS.search(text) is not None or not _ORDERING.isdisjoint(tokens)
