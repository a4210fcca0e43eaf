"""The checklist: what each key does, what is shown of texts that would rather not be, and a real terminal."""

from __future__ import annotations

import asyncio
import json
import re
import termios
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.pilot import Pilot

from memory_pipeline.cli import checklist, wrapping
from memory_pipeline.cli.checklist import Choice, Item, choose
from tests.terminals import Terminal, in_a_terminal

PROMOTE, DECLINE, LATER = Choice
RECORD = ("enter", "enter")
WORDS = [f"word{number}" for number in range(1, 2400)]  # some 20,000 characters
LONG = " ".join(WORDS)
NOTE = "a card says the same: mem-0003"


def some(count: int, text: str = "what it means") -> list[Item]:
    return [Item(seq, f"concept {seq}", text) for seq in range(1, count + 1)]


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    """Textual's pilot looks more often whether everything has been drawn."""
    monkeypatch.setattr("textual._wait.SLEEP_GRANULARITY", 0.002)


@dataclass
class After:
    """What there is after some keys."""

    lines: list[str]  # on the screen
    ended: bool
    result: dict[int, Choice] | None

    @property
    def screen(self) -> str:
        return "\n".join(self.lines)

    @property
    def chosen(self) -> list[Choice]:
        return list(self.result.values())

    @property
    def cursor(self) -> int:
        """The number of the item under the cursor."""
        return int(re.search(r"^> \[.\] +(\d+)", self.screen, re.MULTILINE)[1])

    @property
    def pane(self) -> list[str]:
        """The lines under the rule and above the footer."""
        rule = next(y for y, line in enumerate(self.lines) if line.startswith(("-- ", "== ")))
        return [line.rstrip() for line in self.lines[rule + 1 : -1]]


def after(
    *keys: str | tuple[int, int],
    items: list[Item] | None = None,
    size: tuple[int, int] = (80, 24),
    heading: str = "Review",
) -> After:
    """Press keys, or give the terminal another size, and look."""
    return afterwards([keys], items=items, size=size, heading=heading)[0]


def afterwards(
    groups: list[tuple[str | tuple[int, int], ...]],
    *,
    items: list[Item] | None = None,
    size: tuple[int, int] = (80, 24),
    heading: str = "Review",
) -> list[After]:
    """Press keys, and look after each group of them."""

    async def run() -> list[After]:
        app = checklist._Checklist(heading, items or some(3))
        seen = []
        async with app.run_test(size=size) as pilot:
            for keys in groups:
                for key in keys:
                    await (pilot.press(key) if isinstance(key, str) else resize(pilot, key))
                await pilot.pause()
                lines = [strip.text for strip in app.screen._compositor.render_strips()]
                seen.append(After(lines, app._ended, app.return_value))
        return seen

    return asyncio.run(run())


async def resize(pilot: Pilot, size: tuple[int, int]) -> None:
    await pilot.resize_terminal(*size)
    while tuple(pilot.app.screen.size) != size or pilot.app.screen._layout_required:
        await pilot.pause()
    await pilot.pause(0.05)  # Textual lays out at its own pace


class TestChoosing:
    def test_without_items_nothing_is_started(self, monkeypatch):
        monkeypatch.setattr(checklist._Checklist, "run", lambda _: pytest.fail("started"))
        assert choose("Review", []) == {}

    def test_everything_is_promoted_unless_that_is_changed(self):
        assert after(*RECORD).result == {1: PROMOTE, 2: PROMOTE, 3: PROMOTE}

    @pytest.mark.parametrize(
        ("keys", "chosen"),
        [
            (["space"], [DECLINE, PROMOTE, PROMOTE]),
            (["space", "space"], [PROMOTE, PROMOTE, PROMOTE]),
            (["down", "l"], [PROMOTE, LATER, PROMOTE]),
            (["l", "l"], [PROMOTE, PROMOTE, PROMOTE]),
            (["space", "l", "l"], [PROMOTE, PROMOTE, PROMOTE]),
            (["l", "space"], [PROMOTE, PROMOTE, PROMOTE]),
            (["n"], [LATER, LATER, LATER]),
            (["d"], [DECLINE, DECLINE, DECLINE]),
            (["d", "end", "space"], [DECLINE, DECLINE, PROMOTE]),
            (["space", "down", "l", "a"], [PROMOTE, PROMOTE, PROMOTE]),
        ],
    )
    def test_keys_choose(self, keys, chosen):
        assert after(*keys, *RECORD).chosen == chosen

    def test_marks_and_counts_follow_what_is_chosen(self):
        seen = after("space", "down", "l")
        assert re.findall(r"^[> ] (\[.\]) +\d", seen.screen, re.MULTILINE) == ["[ ]", "[?]", "[x]"]
        assert seen.lines[1].rstrip() == "[x] promote 1   [ ] decline 1   [?] later 1"
        assert "-- 2 of 3 [?] --" in seen.screen


class TestMoving:
    @pytest.mark.parametrize(
        ("keys", "number"),
        [
            (["down", "j"], 3),
            (["down", "down", "up"], 2),
            (["j", "k", "k"], 1),
            (["pagedown"], 8),
            (["pagedown", "pagedown", "pageup"], 8),
            (["end"], 40),
            (["end", "down", "pagedown"], 40),
            (["end", "home"], 1),
            (["up", "pageup"], 1),
        ],
    )
    def test_keys_move_the_cursor(self, keys, number):
        seen = after(*keys, items=some(40))
        assert seen.cursor == number
        assert seen.pane[0] == f"concept {number}"

    def test_five_hundred_items_scroll(self):
        seen = after("d", "end", "space", items=some(500))
        assert "> [x] 500   concept 500" in seen.screen
        assert "  [ ] 494   concept 494" in seen.screen
        assert "promote 1   [ ] decline 499   [?] later 0" in seen.screen


class TestLeaving:
    def test_enter_asks_and_states_what_would_be_recorded(self):
        seen = after("space", "down", "l", "enter")
        assert "Promote 1, decline 1, leave 1 for later." in seen.screen
        assert "Record? Enter records, Esc goes back" in seen.screen
        assert not seen.ended

    @pytest.mark.parametrize("key", ["escape", "q"])
    def test_from_the_question_it_goes_back_to_the_list(self, key):
        back, recorded = afterwards([("down", "space", "enter", key), RECORD])
        assert not back.ended
        assert "> [ ] 2" in back.screen
        assert "Record?" not in back.screen
        assert recorded.chosen == [PROMOTE, DECLINE, PROMOTE]

    def test_no_other_key_answers_the_question(self):
        asked, recorded = afterwards([("enter", "space", "n", "y", "down", "tab"), ("enter",)])
        assert "Record?" in asked.screen
        assert recorded.chosen == [PROMOTE] * 3

    @pytest.mark.parametrize("key", ["escape", "q", "ctrl+c", "ctrl+q"])
    def test_from_the_list_it_leaves_without_recording(self, key):
        seen = after("space", key)
        assert seen.ended
        assert seen.result is None

    @pytest.mark.parametrize("where", ["tab", "enter", "question_mark"])
    @pytest.mark.parametrize("key", ["ctrl+c", "ctrl+q"])
    def test_the_keys_that_stop_programs_leave_from_everywhere(self, where, key):
        seen = after(where, key)
        assert seen.ended
        assert seen.result is None

    def test_no_other_key_ends_or_changes_anything(self):
        others = [
            "x",
            "y",
            "Q",
            "ctrl+d",
            "ctrl+p",
            "ctrl+z",
            "ctrl+backslash",
            "backspace",
            "delete",
            "f1",
            "f10",
            "left",
        ]
        seen = after(*others)
        assert not seen.ended
        assert seen.lines == after().lines

    def test_what_breaks_is_no_answer(self, monkeypatch):
        monkeypatch.setattr(checklist._Checklist, "run", lambda app, **_: setattr(app, "_return_code", 1))
        with pytest.raises(RuntimeError, match="nothing was chosen"):
            choose("Review", some(1))


class TestReading:
    @pytest.mark.parametrize(
        ("size", "words", "first", "page", "pages"),
        [((120, 40), WORDS, (), "right_square_bracket", 8), ((40, 12), WORDS[:200], ("tab",), "pagedown", 10)],
    )
    def test_a_long_text_can_be_read_to_its_end(self, size, words, first, page, pages):
        seen = afterwards([first, *[(page,)] * pages], items=some(2, " ".join(words)), size=size)
        read = " ".join(line for each in seen for line in each.pane)
        assert [word for word in dict.fromkeys(read.split()) if word.startswith("word")] == words

    def test_shift_and_an_arrow_scroll_by_a_line(self):
        start, scrolled, back = afterwards([(), ("shift+down",) * 3, ("shift+up",)], items=some(2, LONG))
        assert start.pane[3:] == scrolled.pane[:-3]
        assert start.pane[2:] == back.pane[:-2]
        assert (scrolled.cursor, back.cursor) == (1, 1)

    def test_tab_hands_the_keys_that_move_to_the_text_and_back(self):
        reading, listing = afterwards([("tab", "down", "down", "j", "k"), ("tab", "down")], items=some(3, LONG))
        assert "== 1 of 3 [x] == lines 3-" in reading.screen
        assert "Tab or Esc back to the list" in reading.lines[-1]
        assert listing.cursor == 2
        assert "-- 2 of 3 [x] -- lines 1-" in listing.screen  # another item is shown from its beginning

    def test_home_and_end_of_a_text(self):
        end, home = afterwards([("tab", "end"), ("home",)], items=some(2, LONG))
        assert end.pane[-1].endswith(WORDS[-1])
        assert home.pane[0] == "concept 1"

    @pytest.mark.parametrize("key", ["escape", "q"])
    def test_from_the_text_it_goes_back_to_the_list(self, key):
        seen = after("tab", key, "down")
        assert not seen.ended
        assert seen.cursor == 2

    def test_choosing_needs_no_way_back_and_moves_nothing(self):
        before, chosen = afterwards([("tab", "pagedown"), ("space",)], items=some(2, LONG))
        assert "== 1 of 2 [ ] ==" in chosen.screen
        assert chosen.pane == before.pane

    def test_notes_stand_out_in_the_list_and_above_the_text(self):
        seen = after(items=[Item(1, "patient", "text", (NOTE, "seen twice")), Item(2, "doctor", "text")])
        assert "> [x] 1 ! patient" in seen.screen
        assert "  [x] 2   doctor" in seen.screen
        assert seen.pane[:5] == ["patient", f"! {NOTE}", "! seen twice", "", "text"]

    def test_a_question_mark_names_every_key(self):
        seen, back = afterwards([("question_mark",), ("escape",)], size=(40, 12))
        for key in (
            "Up Down k j",
            "PgUp PgDn Home End",
            "Space",
            "l ",
            "a d n",
            "[ ] Shift-Up/Down",
            "Tab",
            "Enter",
            "Esc q Ctrl-C",
        ):
            assert f"|{key}" in seen.screen
        assert not back.ended


class TestSizes:
    def test_all_parts_are_to_be_seen_at_forty_by_twelve(self):
        seen = after(items=some(40), size=(40, 12))
        assert seen.lines[0].startswith("Review")
        assert seen.lines[1].startswith("promote 40, decline 0, later 0")
        assert [line[:20] for line in seen.lines[2:5]] == [
            ">" + "[x]  1   concept 1".rjust(19),
            "[x]  2   concept 2".rjust(20),
            "[x]  3   concept 3".rjust(20),
        ]
        assert seen.pane[:3] == ["concept 1", "", "what it means"]
        assert seen.lines[-1].startswith("Space toggle  Enter record  Esc  ? keys")

    def test_how_far_a_text_goes_on_is_shown_in_little_room_too(self):
        seen = after("end", "tab", "end", items=some(500, LONG), size=(40, 12))
        assert re.search(r"^500 of 500 \[x\] == (\d+)-(\d+)/\2 =", seen.screen, re.MULTILINE)

    def test_the_footer_names_the_keys(self):
        footer = after().lines[-1].rstrip()
        assert footer == "Space toggle  l later  a d n all  Tab text  Enter record  Esc leave  ? keys"

    def test_the_question_fits_a_small_terminal(self):
        seen = after("enter", items=some(40), size=(40, 12))
        assert "Promote 40, decline 0, leave 0 for" in seen.screen
        assert "Record? Enter records, Esc goes back" in seen.screen

    def test_a_title_that_is_too_long_is_all_in_the_pane(self):
        title = "a title that goes on and on " * 5
        seen = after(items=[Item(1, title, "text")], size=(40, 24))
        assert "…" in seen.screen
        assert " ".join(" ".join(seen.pane).split()) == f"{title}text"

    def test_another_size_keeps_item_and_place(self):
        moves = ("end", "up", "tab", *("pagedown",) * 5)
        before, small, same = afterwards([moves, ((40, 12),), ((80, 24),)], items=some(40, LONG))
        assert small.cursor == 39
        assert before.pane[0].split()[0] in small.pane[0].split()
        assert same.pane == before.pane

    @pytest.mark.parametrize("size", [(1, 1), (2, 3), (12, 4), (300, 5)])
    def test_no_size_ends_it(self, size):
        keys = (size, "down", "right_square_bracket", "tab", "end", "tab", "question_mark", "escape", *RECORD)
        assert after(*keys, items=some(3, f"{LONG} 漢字")).chosen == [PROMOTE] * 3


class TestHostileTexts:
    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            ("[bold]a[/] [@click=app.exit]b[/] [/nothing] \\[x]", "[bold]a[/] [@click=app.exit]b[/] [/nothing] \\[x]"),
            ("\x1b[31mred\x1b[0m \x1b]0;title\x07 \x9b2J", "�[31mred�[0m �]0;title� �2J"),
            ("nul\x00 bell\x07 back\x08 del\x7f form\x0c next\x85", "nul� bell� back� del� form� next�"),
            ("\u202eold\u202c \u2067new\u2069", "�old� �new�"),
            ("line\u2028paragraph\u2029", "line�paragraph�"),
            ("half \ud83d of a pair", "half � of a pair"),
            ("a\U000e0061\U000e0062b", "a��b"),
            ("a\tb", "a   b"),
            ("漢字 e\u0301 ｗｉｄｅ", "漢字 e\u0301 ｗｉｄｅ"),
            ("👩\u200d👧 ❤\ufe0f", "👩👧 ❤"),
        ],
    )
    def test_a_text_is_shown_as_text(self, text, shown):
        seen = after(items=[Item(1, text, text, (text,))], heading=text)
        assert seen.lines[0].rstrip() == shown
        assert f"> [x] 1 ! {shown}" in seen.screen
        assert [line for line in seen.pane if line] == [shown, f"! {shown}", shown]
        assert {cell_len(line) for line in seen.lines} == {80}

    def test_line_breaks_of_a_text_are_kept_and_a_title_stays_one_line(self):
        seen = after(items=[Item(1, "one\ntwo", "a\r\nb\n\n  c\rd")])
        assert "> [x] 1   one two" in seen.screen
        assert seen.pane[:7] == ["one", "two", "", "a", "b", "", "  c�d"]

    @pytest.mark.parametrize("what", ["x", "漢", "\u0301", "\x1b", "\n", "\t", "[/]", "a b "])
    def test_a_megabyte_is_shown_to_its_end(self, what):
        text = what * (1_000_000 // len(what)) + "\nthe end"
        seen = after("tab", "end", items=[Item(1, "title", text), Item(2, "next", "text")])
        assert seen.pane[-1] == "the end"

    @given(
        text=st.text(alphabet=st.sampled_from("ab \n漢e\u0301👩�"), max_size=200),
        width=st.integers(min_value=2, max_value=30),
    )
    def test_wrapping_fits_and_loses_nothing_but_a_space_at_a_break(self, text, width):
        end = 0
        for start, part in wrapping.wrapped(text, width):
            assert cell_len(part) <= width
            assert text[start : start + len(part)] == part
            assert text[end:start] in ("", " ", "\n", " \n")
            end = start + len(part)
        assert text[end:] in ("", " ")

    @given(
        line=st.text(alphabet=st.sampled_from("abc  "), min_size=1, max_size=200),
        width=st.integers(min_value=1, max_value=30),
    )
    def test_both_ways_of_wrapping_agree(self, line, width):
        assert list(wrapping._folded_ascii(line, width)) == list(wrapping._folded(line, width))


PROGRAM = """
import json, signal, sys
from memory_pipeline.cli.checklist import Item, choose

items = [Item(**item) for item in json.load(open(sys.argv[1]))]
print("starting", flush=True)
if sys.argv[3:]:
    input()
chosen = choose("Review of session s-17", items)
ctrl_z = signal.getsignal(signal.SIGTSTP) is signal.SIG_DFL
json.dump({"chosen": chosen, "ctrl_z": ctrl_z}, open(sys.argv[2], "w"))
"""


class Chooser(Terminal):
    """The checklist alone, and what was chosen in it."""

    def __init__(self, directory: Path, items: list[Item], *arguments: str, **environment: str) -> None:
        given, self.result = directory / "items.json", directory / "result.json"
        given.write_text(json.dumps([asdict(item) for item in items]))
        super().__init__("-c", PROGRAM, str(given), str(self.result), *arguments, **environment)

    def ended(self) -> dict[str, int] | None:
        """What was chosen, once the program has ended."""
        self.wait()
        result = json.loads(self.result.read_text())
        assert result["ctrl_z"]
        return result["chosen"]


@pytest.fixture
def terminal(tmp_path):
    """Starts the program."""
    started = []

    def start(items: list[Item], *arguments: str, **environment: str) -> Chooser:
        started.append(Chooser(tmp_path, items, *arguments, **environment))
        return started[-1]

    yield start
    for each in started:
        each.program.close(force=True)


@in_a_terminal
class TestTerminal:
    def test_what_is_chosen_is_recorded(self, terminal):
        run = terminal(some(3))
        assert "> [x] 1   concept 1" in run.until("? keys")
        run.program.send("\x1b[B ")
        run.until("> [ ] 2")
        run.program.send("\x1b[Bl\r")
        run.until("Promote 1, decline 1, leave 1 for later.")
        run.program.send("\r")
        assert run.ended() == {"1": "promote", "2": "decline", "3": "later"}

    @pytest.mark.parametrize("key", ["\x03", "\x1b"])
    def test_leaving_records_nothing_and_gives_the_terminal_back(self, terminal, key):
        run = terminal(some(3))
        run.until("? keys")
        assert termios.tcgetattr(run.program.child_fd) != run.settings
        run.program.send(key)
        assert run.ended() is None
        assert termios.tcgetattr(run.program.child_fd) == run.settings
        assert b"\x1b[?1049l" in run.output  # the other screen
        assert b"\x1b[?25h" in run.output  # the cursor

    def test_the_key_that_comes_first_decides_how_it_ends(self, terminal):
        run = terminal(some(3))
        run.until("? keys")
        run.program.send("q\r\r")
        assert run.ended() is None

    def test_what_was_typed_before_there_was_something_to_see_decides_nothing(self, terminal):
        run = terminal(some(3), "wait")
        run.until("starting")
        run.program.send("\nn\nq\n")
        run.until("? keys")
        run.program.send("jl")
        assert "> [?] 2" in run.until("promote 2   [ ] decline 0   [?] later 1")
        run.program.send("q")
        assert run.ended() is None

    def test_bytes_that_are_no_text_are_no_keys(self, terminal):
        run = terminal(some(3))
        run.until("? keys")
        run.program.send(b"\xff\xe9")
        time.sleep(0.2)  # more than what is read at once with them
        run.program.send("d")
        assert "decline 3" in run.until("decline 3")
        run.program.send("q")
        assert run.ended() is None

    def test_without_colours_it_is_readable(self, terminal):
        run = terminal([Item(1, "patient", "text", (NOTE,)), Item(2, "doctor", "text")], TERM="vt100", NO_COLOR="1")
        run.until("? keys")
        run.program.send(" jl")
        seen = run.until("> [?] 2")
        assert "  [ ] 1 ! patient" in seen
        assert not re.search(rb"\x1b\[(?:\d+;)*(?:3[0-8]|4[0-8]|9\d|10\d)[;m]", run.output)

    def test_another_size_is_noticed_whatever_size_the_environment_names(self, terminal):
        run = terminal(some(40), LINES="24", COLUMNS="80")
        run.until("? keys")
        run.program.send("\x1b[F")
        run.until("> [x] 40")
        run.resize(40, 12)
        run.until("promote 40, decline 0, later 0")
        run.until("> [x] 40   concept 40")

    def test_no_text_reaches_the_terminal_as_an_order(self, terminal):
        evil = "\x1b]0;stolen title\x07\x1b[2Jcleared\x9b5n\u202edetrever"
        run = terminal([Item(1, evil, evil, (evil,))])
        assert "�]0;stolen title��[2Jcleared�5n�detrever" in run.until("? keys")
        for order in ("\x1b]0;", "\x1b[2Jcleared", "\x9b", "\u202e"):
            assert order.encode() not in run.output
