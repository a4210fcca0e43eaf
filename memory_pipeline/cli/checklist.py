"""A full-screen checklist: a reviewer decides, by keyboard alone, about each of many items with long texts.

It draws on standard error and reads standard input; both have to be a terminal.
"""

from __future__ import annotations

import os
import signal
import sys
import termios
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.drivers.linux_driver import LinuxDriver
from textual.geometry import Size
from textual.screen import ModalScreen, Screen
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Static

from memory_pipeline.cli.wrapping import CROWD, fitted, shown, wrapped

_SIGNALS = (signal.SIGTSTP, signal.SIGCONT, signal.SIGTTIN, signal.SIGTTOU, signal.SIGWINCH)
_PLAIN, _BOLD, _CURSOR, _WARNING = Style(), Style(bold=True), Style(reverse=True), Style(color="yellow", bold=True)
_FOOTERS = (
    "Space toggle  l later  a d n all  Tab text  Enter record  Esc leave  ? keys",
    "Space toggle  l later  Tab text  Enter record  Esc leave  ? keys",
    "Space toggle  Enter record  Esc  ? keys",
)
_READING_FOOTERS = (
    "Up/Down PgUp/PgDn Home/End scroll  Tab or Esc back to the list  ? keys",
    "Up/Down scroll  Tab/Esc back  ? keys",
)
_KEYS = """\
Up Down k j         move by one line
PgUp PgDn Home End  move further
Space               promote, decline
l                   later, and back
a d n               all: promote, decline, later
[ ] Shift-Up/Down   scroll the text
Tab                 to the text, back
Enter               record, if sure
Esc q Ctrl-C        record nothing"""


class Choice(StrEnum):
    """What becomes of an item."""

    PROMOTE = "promote"
    DECLINE = "decline"
    LATER = "later"


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to decide.

    Attributes:
        seq: its number, of no other item.
        title: one line.
        text: as long as it may be, with line breaks.
        notes: short remarks, shown as warnings.
    """

    seq: int
    title: str
    text: str
    notes: tuple[str, ...] = ()


_MARKS = {Choice.PROMOTE: "[x]", Choice.DECLINE: "[ ]", Choice.LATER: "[?]"}


def choose(heading: str, items: Sequence[Item]) -> dict[int, Choice] | None:
    """Let a reviewer decide about each item.

    Args:
        heading: one line above everything else.
        items: what there is to decide.

    Returns:
        what was chosen, by `seq`; None where it was left without recording.

    Raises:
        RuntimeError: it broke down, which is no choice either.
    """
    if not items:
        return {}
    # What was typed before there was something to see decides nothing.
    with suppress(termios.error, OSError, ValueError):
        termios.tcflush(sys.stdin, termios.TCIFLUSH)
    app = _Checklist(heading, items)
    with _signals_given_back():
        chosen = app.run(mouse=False)  # the mouse stays the terminal's, to mark and copy text
    if app.return_code:
        raise RuntimeError("the checklist broke down; nothing was chosen")
    return chosen


@contextmanager
def _signals_given_back() -> Iterator[None]:
    """Undo Textual's handlers, which stay behind: the next Ctrl-Z would bring its screen back."""
    handlers = {number: signal.getsignal(number) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


class _Drawn(Widget):
    """A widget that draws its own lines: no markup is looked for in them."""

    def line(self, y: int) -> tuple[str, Style]:
        """What stands in a line, and how it looks."""
        raise NotImplementedError

    def render_line(self, y: int) -> Strip:
        """A line over the whole width."""
        text, style = self.line(y)
        return Strip([Segment(fitted(text, self.size.width), style)], self.size.width)


class _Line(_Drawn):
    """One line: the first of its forms for which there is room."""

    def __init__(self, *forms: str, style: Style = _PLAIN) -> None:
        super().__init__()
        self.forms = forms
        self._style = style

    def line(self, y: int) -> tuple[str, Style]:  # noqa: ARG002  # as Textual calls it
        """The line, cut off only where even its last form does not fit."""
        fitting = (form for form in self.forms if cell_len(form) <= self.size.width)
        return next(fitting, self.forms[-1]), self._style


class _Titles(_Drawn):
    """The items in one line each, of which one is under the cursor."""

    def __init__(self, items: Sequence[Item]) -> None:
        super().__init__()
        self.items = items
        self.choices = dict.fromkeys((item.seq for item in items), Choice.PROMOTE)
        self.cursor = 0
        self.active = True
        self._top = 0
        self._digits = max(len(str(item.seq)) for item in items)

    @property
    def current(self) -> Item:
        """The item under the cursor."""
        return self.items[self.cursor]

    @property
    def page(self) -> int:
        """How many items are to be seen at once."""
        return max(1, self.size.height)

    def step(self, by: int) -> None:
        """Move the cursor, at most to an end."""
        self.cursor = max(0, min(len(self.items) - 1, self.cursor + by))

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002  # as Textual calls it
        """A line for each item, where there is room."""
        return len(self.items)

    def mark(self, item: Item) -> str:
        """How an item's choice is shown."""
        return _MARKS[self.choices[item.seq]]

    def line(self, y: int) -> tuple[str, Style]:
        """An item: cursor, mark, number, whether there are notes, title."""
        height = self.size.height
        lowest = max(0, min(self.cursor, len(self.items) - height))
        self._top = max(self.cursor - height + 1, min(self._top, lowest))
        if self._top + y >= len(self.items):
            return "", _PLAIN
        item = self.items[self._top + y]
        under = self._top + y == self.cursor
        noted = "!" if item.notes else " "
        title = shown(item.title[: self.size.width * CROWD])
        text = f"{'>' if under else ' '} {self.mark(item)} {item.seq:>{self._digits}} {noted} {title}"
        return text, (_CURSOR if self.active else _BOLD) if under else _PLAIN


class _Pane(_Drawn):
    """All of one item, title and notes and text, under a rule that says how much of it is to be seen."""

    def __init__(self) -> None:
        super().__init__()
        self.caption = ""
        self.active = False
        self._item: Item | None = None
        self._place = (0, 0)  # of what is at the top: the block, and the character in it; no width changes it
        self._width = -1  # that the lines are for
        self._places: list[tuple[int, int]] = []
        self._lines: list[tuple[str, Style]] = []

    def show(self, item: Item, caption: str) -> None:
        """Show an item; another one from its beginning."""
        self.caption = caption
        if item is not self._item:
            self._item, self._place, self._width = item, (0, 0), -1

    @property
    def page(self) -> int:
        """How many lines of the item are to be seen at once."""
        return max(1, self.size.height - 1)

    def step(self, by: int) -> None:
        """Scroll, at most to an end."""
        top = self._top()
        self._place = self._places[max(0, min(self._lowest(), top + by))]

    def line(self, y: int) -> tuple[str, Style]:
        """The rule, or a line of the item."""
        top = self._top()
        if y == 0:
            return self._rule(top), _BOLD
        return self._lines[top + y - 1] if top + y <= len(self._lines) else ("", _PLAIN)

    def _rule(self, top: int) -> str:
        total = len(self._lines)
        seen = f"{top + 1}-{min(total, top + self.size.height - 1)}"
        dash = "=" if self.active else "-"
        rule = f"{dash * 2} {self.caption} {dash * 2} lines {seen} of {total} "
        if len(rule) > self.size.width:
            rule = f"{self.caption} {dash * 2} {seen}/{total} "
        return rule.ljust(self.size.width, dash)

    def _lowest(self) -> int:
        """The highest number that the line at the top can have."""
        return max(0, len(self._lines) - self.page)

    def _top(self) -> int:
        """The number of the line at the top."""
        if self._width != self.size.width:
            self._wrap()
        return min(self._lowest(), max(0, bisect_right(self._places, self._place) - 1))

    def _wrap(self) -> None:
        self._width = self.size.width
        self._places, self._lines = [], []
        for block, (text, style) in enumerate(self._blocks()):
            for offset, part in wrapped(text, max(1, self._width)):
                self._places.append((block, offset))
                self._lines.append((part, style))

    def _blocks(self) -> Iterator[tuple[str, Style]]:
        if self._item:
            yield shown(self._item.title), _BOLD
            yield from ((f"! {shown(note)}", _WARNING) for note in self._item.notes)
            yield "", _PLAIN
            yield shown(self._item.text), _PLAIN


class _Box(ModalScreen[bool], inherit_bindings=False):
    """A few lines in front of everything else: Enter says yes to them."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "dismiss(True)"),
        Binding("escape,q", "dismiss(False)"),
    ]

    def __init__(self, text: str) -> None:
        super().__init__()
        self._lines = text

    def compose(self) -> ComposeResult:
        """The lines, wrapped where they have to be."""
        yield Static(self._lines, markup=False)


class _Main(Screen[None], inherit_bindings=False):
    """The list of items over the pane with the one under the cursor.

    Nothing has Textual's focus: a terminal that reports to have lost it would leave keys without effect.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "step(-1)"),
        Binding("down,j", "step(1)"),
        Binding("pageup", "page(-1)"),
        Binding("pagedown", "page(1)"),
        Binding("home", "first"),
        Binding("end", "last"),
        Binding("space", "flip"),
        Binding("l", "later"),
        Binding("a", "all('promote')"),
        Binding("d", "all('decline')"),
        Binding("n", "all('later')"),
        Binding("tab,shift+tab", "read"),
        Binding("shift+up", "scroll(-1)"),
        Binding("shift+down", "scroll(1)"),
        Binding("left_square_bracket", "scroll_page(-1)"),
        Binding("right_square_bracket", "scroll_page(1)"),
        Binding("enter", "confirm"),
        Binding("escape,q", "back"),
        Binding("question_mark", "keys"),
    ]

    def __init__(self, heading: str, items: Sequence[Item], leave: Callable[[dict[int, Choice] | None], None]) -> None:
        super().__init__()
        self._leave = leave
        self._heading = _Line(shown(heading), style=_BOLD)
        self._tally = _Line("")
        self._titles = _Titles(items)
        self._pane = _Pane()
        self._footer = _Line("", style=_CURSOR)

    def compose(self) -> ComposeResult:
        """From top to bottom."""
        yield from (self._heading, self._tally, self._titles, self._pane, self._footer)

    def on_mount(self) -> None:
        """Show everything."""
        self._draw()

    def _draw(self) -> None:
        counts = self._counts()
        forms = "[x] promote {}   [ ] decline {}   [?] later {}", "promote {}, decline {}, later {}"
        self._tally.forms = tuple(form.format(*counts) for form in forms)
        titles = self._titles
        place = f"{titles.cursor + 1} of {len(titles.items)} {titles.mark(titles.current)}"
        self._pane.show(titles.current, place)
        self._footer.forms = _READING_FOOTERS if self._pane.active else _FOOTERS
        for widget in self.children:
            widget.refresh()

    def _counts(self) -> list[int]:
        counted = Counter(self._titles.choices.values())
        return [counted[choice] for choice in Choice]

    def _switch(self, choice: Choice, other: Choice) -> None:
        """Choose for the item under the cursor, or choose the other where that is chosen already."""
        choices, seq = self._titles.choices, self._titles.current.seq
        choices[seq] = other if choices[seq] is choice else choice
        self._draw()

    @property
    def _moved(self) -> _Titles | _Pane:
        """What the keys that move are for."""
        return self._pane if self._pane.active else self._titles

    def action_step(self, by: int) -> None:
        """Move by lines."""
        self._moved.step(by)
        self._draw()

    def action_page(self, pages: int) -> None:
        """Move by pages."""
        self._moved.step(pages * self._moved.page)
        self._draw()

    def action_first(self) -> None:
        """Move to the beginning."""
        self.action_step(-sys.maxsize)

    def action_last(self) -> None:
        """Move to the end."""
        self.action_step(sys.maxsize)

    def action_scroll(self, by: int) -> None:
        """Scroll the text, wherever the keys that move are."""
        self._pane.step(by)
        self._draw()

    def action_scroll_page(self, pages: int) -> None:
        """Scroll the text by pages."""
        self.action_scroll(pages * self._pane.page)

    def action_read(self) -> None:
        """Hand the keys that move over to the text, or back to the list."""
        self._pane.active, self._titles.active = self._titles.active, self._pane.active
        self._draw()

    def action_flip(self) -> None:
        """Promote, or decline what is promoted."""
        self._switch(Choice.PROMOTE, Choice.DECLINE)

    def action_later(self) -> None:
        """Leave for later, or promote what is left for later."""
        self._switch(Choice.LATER, Choice.PROMOTE)

    def action_all(self, choice: str) -> None:
        """Choose the same for every item."""
        self._titles.choices = dict.fromkeys(self._titles.choices, Choice(choice))
        self._draw()

    def action_confirm(self) -> None:
        """Record, if that is confirmed."""
        counts = "Promote {}, decline {}, leave {} for later.".format(*self._counts())
        self.app.push_screen(_Box(f"{counts}\nRecord? Enter records, Esc goes back"), self._record)

    def _record(self, confirmed: bool | None) -> None:  # noqa: FBT001  # what a screen was left with
        if confirmed:
            self._leave(self._titles.choices)

    def action_keys(self) -> None:
        """Name every key."""
        self.app.push_screen(_Box(_KEYS))

    def action_back(self) -> None:
        """Go back from the text to the list, or leave from there."""
        if self._pane.active:
            self.action_read()
        else:
            self._leave(None)


class _Terminal(LinuxDriver):
    """The terminal, whose keyboard may send anything."""

    def run_input_thread(self) -> None:
        """Read keys, also after bytes that are no UTF-8, such as an accented letter typed in Latin-1."""
        while True:
            with suppress(UnicodeDecodeError):
                return super().run_input_thread()

    def _get_terminal_size(self) -> tuple[int, int]:
        """The size that the terminal has now; LINES and COLUMNS, which a parent may hand on, keep an earlier one."""
        try:
            return os.get_terminal_size(self.fileno)
        except OSError:
            return super()._get_terminal_size()


class _Checklist(App[dict[int, Choice]], inherit_bindings=False):
    """The program around the list, in the terminal's own colours."""

    ENABLE_COMMAND_PALETTE = False
    ALLOW_SELECT = False
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+c,ctrl+q", "leave", priority=True)]
    CSS = """
    _Main { overflow: hidden; }
    _Line { height: 1; }
    _Titles { height: auto; min-height: 1; max-height: 33%; }
    _Pane { height: 1fr; }
    _Box { align: center middle; background: transparent; overflow: hidden; }
    _Box > Static { width: auto; max-width: 100%; height: auto; border: ascii ansi_default; }
    """

    def __init__(self, heading: str, items: Sequence[Item]) -> None:
        super().__init__(driver_class=_Terminal, ansi_color=True)
        self.theme = "ansi-dark"
        self.animation_level = "none"
        self._main = _Main(heading, items, self._end)
        self._ended = False

    def get_default_screen(self) -> Screen[None]:
        """The list."""
        return self._main

    def action_leave(self) -> None:
        """Leave without recording, from wherever that is."""
        self._end(None)

    def _end(self, chosen: dict[int, Choice] | None) -> None:
        """End once: keys that were typed before the end is reached change nothing of how it came."""
        if not self._ended:
            self._ended = True
            self.exit(chosen)
