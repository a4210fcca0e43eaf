"""The words that carry a statement's form, and how plurals end, for Italian and English: data alone."""

from __future__ import annotations

from memory_pipeline.text import accentless


def _words(text: str) -> frozenset[str]:
    return frozenset(accentless(text).split())


CONNECTING = _words("+ - * / % and or not e ed o oppure non")
AND, OR = _words("and e ed"), _words("or o oppure")
ORDERING = _words("- / from da than before after prima dopo minus meno diviso divided between tra fra")

# Stop words that say nothing by themselves. Of languages that are not here every stop word counts, which finds less.
HOLLOW = _words(
    "a an the this that these those it its itself they them their he she his her we our you your i my is are was were "
    "be been being am has have had having do does did doing can will should would of to for in on at by as with from "
    "into about and both which who whom what when where while if then there here how s t re ve ll d m such so very "
    "just il lo la gli le l un uno una di del dello della dei degli delle dell al allo alla ai agli alle all ad dal "
    "dallo dalla dai dagli dalle dall da nel nello nella nei negli nelle nell sul sullo sulla sui sugli sulle sull su "
    "con col per che chi cui si ci e ed quando dove se come quale quali questo questa questi queste quello quella "
    "quelli quelle sono sia siano essere era erano stato stata stati state ha hanno abbia abbiano avere avente aventi"
)
# Words that only tie what is defined to what it is defined as.
COPULAS = _words(
    "refer refers referred referring mean means meant meaning stand stands represent represents represented denote "
    "denotes indicate indicates indicated correspond corresponds define defines defined contain contains map maps "
    "mapped column columns field fields riferisce riferiscono riferito riferita significa significano significare "
    "indica indicano intende intendono inteso rappresenta rappresentano corrisponde corrispondono equivale "
    "equivalgono definisce definito definita definiti considera considerano considerato considerata considerati "
    "contiene contengono vuole dire ovvero cioè colonna colonne campo campi"
)
# Those of them that can stand between the two in either order: "U means urgent", "urgent means U".
DEFINING = COPULAS - _words(
    "represent represents represented contain contains map maps mapped column columns field fields rappresenta "
    "rappresentano contiene contengono vuole colonna colonne campo campi considera considerano considerato considerata "
    "considerati"
)

# How plurals end, and what the singular ends in. A stem is too coarse: it is the same for "parto" and "parte", and for
# "ferito" and "ferita". Italian plurals in -i of words in -e are those of endings that are the same for both genders.
PLURALS = {
    "italian": (
        *(("i", "o"), ("i", "io"), ("chi", "co"), ("ghi", "go"), ("e", "a"), ("che", "ca"), ("ghe", "ga")),
        *(("ce", "cia"), ("ge", "gia"), ("mesi", "mese")),
        *((f"{ending}i", f"{ending}e") for ending in ("or", "ion", "al", "ent", "ant", "il", "ar", "ic")),
    ),
    "english": (
        *(("s", ""), ("ies", "y")),
        *((f"{ending}es", ending) for ending in ("ch", "sh", "x", "ss", "z", "o")),
    ),
}
