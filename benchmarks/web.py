"""Asks a real server as many people and programs at once: what each kind of request takes, and whether edits are lost.

    python -m benchmarks.web [--cards 2000] [--seconds 60] [--readers 50] [--writers 5] [--json FILE]

The home is made for the run and removed; the server is a process of its own, with the default model. Readers ask
without a pause, each one request after the other: lists, details, recall and pages. Each writer counts up in a card of
its own and in one that all share, and does anew what came too late. In the end, the counts have to be as many as the
edits that were answered with success. Times are milliseconds; those who ask run on the same machine as the server, and
take their part of it.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from http import HTTPStatus
from itertools import count, takewhile
from pathlib import Path

import httpx
from rich.console import Console

from benchmarks.common import arguments_of, environment_of, fill, free_port, fresh_home, report, summary
from benchmarks.listing import contents
from memory_pipeline.archive import cards
from memory_pipeline.cards import CardContent, Family
from memory_pipeline.listening import address
from memory_pipeline.propagation import project
from memory_pipeline.runtime import Runtime
from memory_pipeline.settings import embedded_settings
from memory_pipeline.web.identity import LocalToken

_WORKSPACE = "large"
_START_SECONDS = 60.0
_PATIENCE = 60.0  # seconds for one answer
_POLL = 0.1
_WORDS = ("paziente", "attivo", "ricovero", "diagnosi", "reparto", "ablazione", "terapia", "farmaco", "esame")

Rounds = Callable[[], Iterable[object]]


class Told:
    """What became of requests and edits. Threads share it."""

    def __init__(self) -> None:
        self.times: defaultdict[str, list[float]] = defaultdict(list)
        self.faults: Counter[str] = Counter()
        self.done: Counter[str] = Counter()
        self.conflicts = 0
        self._lock = threading.Lock()

    def ask(self, kind: str, asked: Callable[[], httpx.Response]) -> httpx.Response | None:
        """The answer, be it that an edit came too late; None for an error, which is noted."""
        start, answer = time.perf_counter(), None
        try:
            answer = asked()
            fault = None if answer.status_code in {HTTPStatus.OK, HTTPStatus.CONFLICT} else str(answer.status_code)
        except httpx.HTTPError as error:
            fault = type(error).__name__
        with self._lock:
            self.times[kind].append((time.perf_counter() - start) * 1_000)
            if fault:
                self.faults[f"{kind}: {fault}"] += 1
        return None if fault else answer

    def edited(self, card_id: str, status: int) -> None:
        """Note whether an edit was done or came too late."""
        with self._lock:
            self.done[card_id] += status == HTTPStatus.OK
            self.conflicts += status == HTTPStatus.CONFLICT


@dataclass(frozen=True)
class Crowd:
    """Readers and writers of one workspace.

    Attributes:
        address: of the server.
        token: of an administrator.
        workspace: which.
        shown: cards to look at.
        counters: cards that hold a number; the first is everybody's, the others each a writer's own.
    """

    address: str
    token: str
    workspace: str
    shown: Sequence[str]
    counters: Sequence[str]

    def ask(self, rounds: Rounds, *, readers: int) -> Told:
        """Read and write, all at once, each for as many rounds as `rounds` gives it."""
        told = Told()
        with self._client() as one:
            one.post("/sign-in", data={"token": self.token})
            cookies = dict(one.cookies)
        work = [partial(self._read, told, number, cookies) for number in range(readers)]
        work += [partial(self._write, told, own) for own in self.counters[1:]]
        with ThreadPoolExecutor(len(work)) as pool:
            for each in [pool.submit(do, rounds()) for do in work]:
                each.result()
        return told

    def lost(self, told: Told) -> int:
        """By how much what the counters hold differs from the edits that were answered with success."""
        with self._client() as one:
            details = {card: one.get(f"{self._api}/cards/{card}").json() for card in self.counters}
        return sum(abs(told.done[card] - int(found["content"]["detail"])) for card, found in details.items())

    def _read(self, told: Told, number: int, cookies: dict[str, str], rounds: Iterable[object]) -> None:
        chance = random.Random(number)  # noqa: S311  # the same questions in each run
        pages = f"/w/{self.workspace}/cards"
        with (
            self._client() as program,
            httpx.Client(base_url=self.address, cookies=cookies, timeout=_PATIENCE) as person,
        ):
            for _ in rounds:
                word, card = chance.choice(_WORDS), chance.choice(self.shown)
                said = {"question": f"{word} {chance.choice(_WORDS)}?", "limit": 5}
                told.ask("list", lambda word=word: program.get(f"{self._api}/cards", params={"text": word}))
                told.ask("detail", lambda card=card: program.get(f"{self._api}/cards/{card}"))
                told.ask("recall", lambda said=said: program.post(f"{self._api}/recall", json=said))
                told.ask("page: list", lambda word=word: person.get(pages, params={"text": word}))
                told.ask("page: detail", lambda card=card: person.get(f"{pages}/{card}"))

    def _write(self, told: Told, own: str, rounds: Iterable[object]) -> None:
        with self._client() as program:
            for _round in rounds:
                for card in (self.counters[0], own):
                    while not self._counted_up(told, program, f"{self._api}/cards/{card}", card):
                        pass

    def _counted_up(self, told: Told, program: httpx.Client, place: str, card: str) -> bool:
        """Whether there is nothing to be done anew."""
        found = told.ask("detail", lambda: program.get(place))
        if found is None:
            return True
        seen = found.json()
        edit = {"version": seen["version"], "detail": str(int(seen["content"]["detail"]) + 1)}
        answer = told.ask("edit", lambda: program.patch(place, json=edit))
        if answer is None:
            return True
        told.edited(card, answer.status_code)
        return answer.status_code == HTTPStatus.OK

    @property
    def _api(self) -> str:
        return f"/api/v1/workspaces/{self.workspace}"

    def _client(self) -> httpx.Client:
        headers = {"Authorization": f"Bearer {self.token}"}
        return httpx.Client(base_url=self.address, headers=headers, timeout=_PATIENCE)


def prepare(runtime: Runtime, size: int, counters: int) -> tuple[list[str], list[str]]:
    """Make cards and counters; the ids of some cards, and of the counters."""
    shown = fill(runtime, _WORKSPACE, contents(size))
    zeros = [CardContent(Family.PITFALL, f"counter {number}", "0") for number in range(counters)]
    with runtime.database.transaction(_WORKSPACE, writing=True) as tx:
        counting = list(cards.create(tx, zeros, origin="hand", principal="benchmark"))
    project(runtime, _WORKSPACE)
    return shown, counting


@contextmanager
def serving(home: Path) -> Iterator[str]:
    """A server over a home, until the block ends; its address."""
    port = free_port()
    environment = environment_of(home) | {"MEMORY_WEB_REQUESTS_PER_MINUTE": "1000000"}
    command = [sys.executable, "-m", "memory_pipeline.cli", "serve", "--port", str(port)]
    with (home / "web.log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, stderr=log)  # noqa: S603  # our own command
    try:
        _await_ready(address("127.0.0.1", port), process)
        yield address("127.0.0.1", port)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def _await_ready(at: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        try:
            if httpx.get(f"{at}/ready").json() == {"ready": True, "wrong": {}, "degraded": {}}:
                return
        except httpx.TransportError:
            pass
        time.sleep(_POLL)
    raise RuntimeError("the server did not start")


def measure(home: Path, size: int, seconds: float, readers: int, writers: int) -> tuple[Told, int]:
    """What became of all requests, and how many edits were lost."""
    settings = embedded_settings(home)
    with Runtime(settings, create=True) as runtime:
        runtime.migrate()
        shown, counters = prepare(runtime, size, writers + 1)
    with serving(home) as at:
        crowd = Crowd(at, LocalToken.of_home(settings).token, _WORKSPACE, shown, counters)
        deadline = time.monotonic() + seconds
        told = crowd.ask(lambda: takewhile(lambda _: time.monotonic() < deadline, count()), readers=readers)
        return told, crowd.lost(told)


@dataclass(frozen=True)
class Figure:
    """Requests of one kind, and what they took."""

    requests: int
    errors: int
    p50: float
    p95: float


def figures(told: Told) -> dict[str, Figure]:
    """The figures by kind of request."""
    return {
        kind: Figure(
            len(times), sum(n for fault, n in told.faults.items() if fault.startswith(f"{kind}: ")), **summary(times)
        )
        for kind, times in sorted(told.times.items())
    }


def main() -> None:
    parser = arguments_of(__doc__)
    parser.add_argument("--cards", type=int, default=2_000)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--readers", type=int, default=50)
    parser.add_argument("--writers", type=int, default=5)
    arguments = parser.parse_args()
    with fresh_home() as home:
        told, lost = measure(home, arguments.cards, arguments.seconds, arguments.readers, arguments.writers)
    found = figures(told)
    rows = [(kind, f"{f.requests:,}", f"{f.errors:,}", f"{f.p50:,}", f"{f.p95:,}") for kind, f in found.items()]
    columns = (f"{arguments.cards:,} cards, {arguments.readers} readers", "requests", "errors", "p50, ms", "p95, ms")
    console, done = Console(), sum(told.done.values())
    requests = {kind: asdict(each) for kind, each in found.items()}
    outcome = {"requests": requests, "edits": done, "conflicts": told.conflicts, "lost": lost}
    report(columns, rows, outcome, arguments.json)
    console.print(f"{done:,} edits by {arguments.writers} writers, {told.conflicts:,} done anew, {lost} lost")
    for fault, times in told.faults.items():
        console.print(f"{fault} × {times:,}")


if __name__ == "__main__":
    main()
