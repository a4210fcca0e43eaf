from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import psutil
import pytest

from memory_pipeline import dev, extras
from memory_pipeline.archive.status import status
from memory_pipeline.dagster_home import dagster_home
from memory_pipeline.dev import run_dev
from memory_pipeline.errors import ArchiveUnavailable, InvalidInput, InvalidSettings, SchemaOutOfDate
from memory_pipeline.runtime import Runtime
from memory_pipeline.settings import Settings, load_settings
from tests.archives import connected
from tests.builders import a_session, clarified, promoted
from tests.processes import alive, kill_postmaster, postmaster
from tests.web.serving import answers, free_port

_SECONDS = 120.0
_RUN = "import sys; from memory_pipeline.dev import run_dev; from memory_pipeline.settings import load_settings; "
_RUN += "sys.exit(run_dev(load_settings(_env_file=None), port=int(sys.argv[1]), web_port=int(sys.argv[2])))"


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_for(what: str, holds: Callable[[], bool], *, seconds: float = _SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"{what} did not come in {seconds:.0f} s"
        time.sleep(0.3)


def runs_again(home: Path, killed: int) -> bool:
    """Whether another server has come in the place of a killed one."""
    pid = postmaster(home)
    return pid is not None and pid != killed and alive(pid)


def concepts(settings: Settings, workspace: str) -> int:
    """How many concepts of a workspace are recallable."""
    try:
        with Runtime(settings) as runtime:
            found = status(runtime.database, runtime.identity.hash).get(workspace)
    except (ArchiveUnavailable, SchemaOutOfDate):
        return 0
    return found.cards["concept"] if found and not found.pending else 0


def processes_of(home: Path) -> list[psutil.Process]:
    """Every process that works for a home: its environment or its command names it."""
    found = []
    for process in psutil.process_iter():
        try:
            works = str(home) in " ".join(process.cmdline()) or process.environ().get("MEMORY_HOME") == str(home)
        except psutil.Error:
            continue
        if works and process.status() != psutil.STATUS_ZOMBIE:
            found.append(process)
    return found


def started_processes(home: Path) -> list[psutil.Process]:
    """Without PostgreSQL, which the next to leave it stops, and whoever started them."""
    found = []
    for process in processes_of(home):
        with suppress(psutil.Error):  # it ended meanwhile
            found += [process] if "memory_pipeline.attached" in process.cmdline() else []
    return found


def group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture
def home(scratch: Path) -> Iterator[Path]:
    directory = scratch / "dev"
    yield directory
    for process in processes_of(directory):
        process.kill()
    shutil.rmtree(directory, ignore_errors=True)


def test_what_is_dropped_or_appended_becomes_recallable_though_postgres_is_killed_and_ctrl_c_stops_everything(
    home: Path, tmp_path: Path
):
    settings = load_settings(_env_file=None, home=home)
    port, web_port = free_port(), free_port()
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MEMORY_", "DAGSTER"))}
    log = tmp_path / "log"
    with log.open("wb") as written:
        process = subprocess.Popen(
            [sys.executable, "-c", _RUN, str(port), str(web_port)],
            env={**environment, "MEMORY_HOME": str(home)},
            stderr=written,
        )
    wait_for("the announcement", lambda: "Cards and reviews are at" in log.read_text())
    assert listens(port)
    assert answers(f"http://127.0.0.1:{web_port}/ready")
    token = (home / "administrator.token").read_text().strip()
    assert log.read_text().count(token) == 1

    killed = kill_postmaster(home)
    # Before anything of this test asks for the server, which would start it.
    wait_for("another server", lambda: runs_again(home, killed), seconds=10)

    two = (clarified(1), clarified(2, "fever", "temp > 38"))
    a_session(settings.sessions, *two, promoted(3, 1), status="open", sql=None)
    wait_for("the first card", lambda: concepts(settings, "clinic") == 1)
    a_session(settings.sessions, *two, promoted(3, 1), promoted(4, 2), status="open", sql=None)
    wait_for("the second card", lambda: concepts(settings, "clinic") == 2)
    assert log.read_text().count("PostgreSQL was gone; it runs again.") == 1

    addresses = {
        c.laddr.ip
        for p in processes_of(home)
        for c in p.net_connections()
        if c.status == psutil.CONN_LISTEN and c.laddr
    }
    assert {address for address in addresses if address} == {"127.0.0.1"}
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 0
    assert processes_of(home) == []
    assert not listens(port)
    assert not listens(web_port)


def test_killed_it_takes_everything_with_it_and_another_can_start(home: Path):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MEMORY_", "DAGSTER"))}
    environment["MEMORY_HOME"] = str(home)
    for _ in range(2):
        port, web_port = free_port(), free_port()
        process = subprocess.Popen([sys.executable, "-c", _RUN, str(port), str(web_port)], env=environment)
        wait_for("both", lambda port=port, web_port=web_port: listens(port) and listens(web_port))
        assert len(started_processes(home)) == 4
        process.kill()
        process.wait()
        wait_for("the end of what it started", lambda: started_processes(home) == [])
        assert not listens(port)
        assert not listens(web_port)


def test_a_port_in_use_is_a_clear_error(tmp_path: Path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(InvalidInput, match="--port"):
            run_dev(load_settings(_env_file=None, home=tmp_path / "home"), port=taken.getsockname()[1])
        with pytest.raises(InvalidInput, match="--web-port"):
            run_dev(load_settings(_env_file=None, home=tmp_path / "home"), web_port=taken.getsockname()[1])
    with pytest.raises(InvalidInput, match="--web-port"):
        run_dev(load_settings(_env_file=None, home=tmp_path / "home"), port=8000, web_port=8000)
    assert not (tmp_path / "home").exists()


def test_a_web_that_would_take_nobodys_tokens_is_refused_before_anything_starts(dagster_settings: Settings):
    with pytest.raises(InvalidSettings, match=r"MEMORY_JWT_ISSUER.*--no-web"):
        run_dev(dagster_settings, port=free_port(), web_port=free_port())


@pytest.mark.parametrize(("host", "port"), [("127.0.0.1", 70_000), ("203.0.113.7", 3000), ("no such host", 3000)])
def test_an_address_that_is_none_of_ours_is_a_clear_error(tmp_path: Path, host, port):
    with pytest.raises(InvalidInput, match="--port"):
        run_dev(load_settings(_env_file=None, home=tmp_path / "home"), host=host, port=port)


def test_over_a_migrated_archive_it_needs_no_owner(dagster_settings: Settings, monkeypatch):
    monkeypatch.setattr(dev, "_start", lambda *args: [])
    monkeypatch.setattr(dev, "_watch", lambda *args: 0)
    without = dagster_settings.model_copy(update={"owner_url": None})
    assert run_dev(without, port=free_port(), web_port=None) == 0
    with connected(dagster_settings.owner_url) as owner:
        owner.execute("UPDATE alembic_version SET version_num = '0001'")
    with pytest.raises(SchemaOutOfDate, match="run `memory-pipeline migrate`"):
        run_dev(without, port=free_port(), web_port=None)


def test_dagster_finds_the_code_server_at_one_place_where_its_path_is_short(tmp_path: Path):
    long = tmp_path / ("long" * 30)
    with ExitStack() as stack:
        assert dev._place_of_socket(stack, Path("/home/anna/.memory/dagster")) == Path("/home/anna/.memory/dagster")
        place = dev._place_of_socket(stack, long)
        assert place.is_dir()
        assert len(os.fsencode(place / "code")) < 100
    assert not place.exists()


def test_a_second_one_over_the_same_home_is_refused(dagster_settings: Settings, monkeypatch):
    # Two daemons would ask for every run twice.
    monkeypatch.setattr(dev, "_watch", lambda *args: run_dev(dagster_settings, port=free_port(), web_port=None))
    monkeypatch.setattr(dev, "_start", lambda *args: [])
    with pytest.raises(InvalidInput, match=rf"another.*dev {os.getpid()}\); end it with: kill {os.getpid()}$"):
        run_dev(dagster_settings, port=free_port(), web_port=None)


def test_what_a_killed_one_left_behind_keeps_a_second_one_out_and_is_named(settings: Settings):
    with dev._alone(settings) as hold:
        left = subprocess.Popen(["sleep", "600"], pass_fds=(hold.descriptor,))
        hold.add("daemon", left.pid)
        ended = subprocess.Popen(["true"])
        hold.add("UI", ended.pid)
        ended.wait()
        file = dagster_home(settings) / "dev.lock"
        others = file.read_text().replace(f"{os.getpid()} ", "1 ")  # of a process that is gone
        file.write_text(others)
    try:
        with pytest.raises(InvalidInput, match=rf"\(processes: daemon {left.pid}\); end it with: kill {left.pid}$"):
            dev._alone(settings).__enter__()
    finally:
        left.kill()
        left.wait()
    with dev._alone(settings):
        pass


def test_what_was_started_ends_when_its_starter_is_killed():
    with ExitStack() as stack:
        reading, writing = os.pipe()
        stack.callback(os.close, reading)
        code = (
            "import subprocess, sys; subprocess.Popen(['sleep', '600']); print('ready', flush=True); sys.stdin.read()"
        )
        module = stack.enter_context(tempfile.TemporaryDirectory())
        (Path(module) / "started_one.py").write_text(code)
        command = [sys.executable, "-m", "memory_pipeline.attached", str(reading), "started_one"]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([module, str(dev.CHECKOUT)])}
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            command, env=environment, pass_fds=(reading,), process_group=0, stdin=pipe, stdout=pipe
        )
        stack.enter_context(process)
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        os.close(writing)  # as the system does with whatever a killed process held
        assert process.wait(_SECONDS) == -signal.SIGTERM
        wait_for("the end of the group", lambda: not group_lives(process.pid))


def test_without_the_extra_it_says_what_to_install(tmp_path: Path, monkeypatch):
    monkeypatch.setitem(extras.NEEDED, "web", ("no_such_package",))
    with pytest.raises(InvalidSettings, match=r"memory-pipeline\[pipeline,web\]"):
        run_dev(load_settings(_env_file=None, home=tmp_path / "home"))
    monkeypatch.setitem(extras.NEEDED, "pipeline", ("no_such_package",))
    with pytest.raises(InvalidSettings, match=r"memory-pipeline\[pipeline\]"):
        run_dev(load_settings(_env_file=None, home=tmp_path / "home"), web_port=None)


def test_outside_a_checkout_it_says_so(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(dev, "CHECKOUT", tmp_path)
    with pytest.raises(InvalidSettings, match="checkout"):
        run_dev(load_settings(_env_file=None, home=tmp_path / "home"))


def test_the_death_of_one_process_stops_the_others(dagster_settings: Settings, monkeypatch):
    def broken(stack, hold, environment, at):
        children = []
        for name, code in (("UI", "import time; time.sleep(600)"), ("daemon", "import sys; sys.exit(3)")):
            popen = subprocess.Popen([sys.executable, "-c", code], process_group=0)
            children.append(dev._Child(name, popen))
            stack.callback(dev._stop, children[-1])
        started.extend(children)
        return children

    started: list[dev._Child] = []
    monkeypatch.setattr(dev, "_start", broken)
    assert run_dev(dagster_settings, port=free_port(), web_port=None) == 1
    assert all(child.process.poll() is not None for child in started)


def test_a_process_that_ignores_the_polite_signal_is_killed(monkeypatch):
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(600)"
    popen = subprocess.Popen([sys.executable, "-c", code], process_group=0, stdout=subprocess.PIPE)
    assert popen.stdout is not None
    with popen.stdout as ready:
        ready.readline()
    monkeypatch.setattr(dev, "_STOP_SECONDS", 0.3)
    dev._stop(dev._Child("daemon", popen))
    assert popen.returncode == -signal.SIGKILL
