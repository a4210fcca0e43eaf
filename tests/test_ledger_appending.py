"""Appending to a ledger: what is written, what is never touched, and what becomes of it when the disk gives out."""

from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from filelock import FileLock

from memory_pipeline.errors import LedgerUnavailable
from memory_pipeline.ledger import (
    LEDGER_FILE,
    LINE_LIMIT,
    LOCK_FILE,
    DecisionType,
    Entry,
    appending,
    open_for_appending,
    read_session,
)
from tests.builders import WORKSPACE, a_ledger, a_session, clarified

PROMOTION = Entry(DecisionType.MEMORY_PROMOTED, "active patient", detail="seq:1", phase=8)


@pytest.fixture
def session(tmp_path: Path) -> Path:
    return a_session(tmp_path, clarified(1), status="open")


@pytest.fixture
def read_only(session: Path) -> Iterator[None]:
    session.chmod(0o555)
    yield
    session.chmod(0o755)


def content(session: Path) -> bytes:
    return (session / LEDGER_FILE).read_bytes()


def append(session: Path, *entries: Entry):
    """Append behind whatever there is."""
    with open_for_appending(session, WORKSPACE) as writer:
        decisions = writer.read().decisions
        return writer.append(entries, after=decisions[-1].seq if decisions else 0)


class TestWhatIsWritten:
    def test_is_read_back_as_it_was_meant(self, session):
        entry = Entry(
            DecisionType.CONCEPT_CLARIFIED,
            "età «alta»",
            detail="età >= 80\n\u2028\\",
            rationale="from mem-0001",
            concepts=("età",),
            tables=("dim_paziente",),
        )
        [written] = append(session, entry)
        assert read_session(session, WORKSPACE).decisions[-1] == written
        shown = (written.type, written.subject, written.detail, written.rationale, written.concepts, written.tables)
        assert shown == ("concept_clarified", entry.subject, entry.detail, "from mem-0001", ("età",), ("dim_paziente",))
        assert written.line == 2

    def test_several_get_rising_seqs_in_their_order(self, session):
        assert [d.seq for d in append(session, PROMOTION, PROMOTION, PROMOTION)] == [2, 3, 4]

    def test_no_byte_of_what_stood_there_changes(self, session):
        before = content(session)
        append(session, PROMOTION)
        assert content(session).startswith(before)

    def test_of_no_entry_nothing_is_written(self, session):
        before = (session / LEDGER_FILE).stat()
        assert append(session) == ()
        assert (session / LEDGER_FILE).stat().st_mtime_ns == before.st_mtime_ns

    def test_goes_on_behind_the_seqs_that_the_archive_knows_of(self, session):
        with open_for_appending(session, WORKSPACE) as writer:
            assert [d.seq for d in writer.append([PROMOTION], after=41)] == [42]

    def test_a_ledger_that_does_not_exist_is_begun(self, session):
        (session / LEDGER_FILE).unlink()
        assert [d.seq for d in append(session, PROMOTION)] == [1]

    def test_a_directory_that_cannot_be_synced_denies_nothing(self, session, monkeypatch):
        (session / LEDGER_FILE).unlink()
        sync = os.fsync

        def only_files(descriptor):
            if stat.S_ISDIR(os.fstat(descriptor).st_mode):
                raise OSError(errno.EINVAL, "invalid argument")
            return sync(descriptor)

        monkeypatch.setattr(appending.os, "fsync", only_files)
        assert [d.seq for d in append(session, PROMOTION)] == [1]

    def test_is_one_write_and_reaches_the_disk(self, session, monkeypatch):
        calls = []
        write, sync = os.write, os.fsync
        monkeypatch.setattr(appending.os, "write", lambda fd, data: calls.append("write") or write(fd, data))
        monkeypatch.setattr(appending.os, "fsync", lambda fd: calls.append("fsync") or sync(fd))
        append(session, PROMOTION, PROMOTION)
        assert calls == ["write", "fsync"]

    def test_a_new_files_name_reaches_the_disk_too(self, session, monkeypatch):
        (session / LEDGER_FILE).unlink()
        synced = []
        sync = os.fsync
        monkeypatch.setattr(
            appending.os, "fsync", lambda fd: synced.append(stat.S_ISDIR(os.fstat(fd).st_mode)) or sync(fd)
        )
        append(session, PROMOTION)
        assert synced == [False, True]


class TestATornLastLine:
    def test_is_ended_and_stays_what_it_is(self, session):
        with (session / LEDGER_FILE).open("ab") as file:
            file.write(b'{"seq": 2, "ts": "2026-')
        before = content(session)
        assert [d.seq for d in append(session, PROMOTION)] == [2]
        assert content(session).startswith(before + b"\n{")
        assert [d.seq for d in read_session(session, WORKSPACE).decisions] == [1, 2]

    def test_counts_if_only_its_newline_is_missing(self, session):
        whole = a_ledger(clarified(2, "other"))
        with (session / LEDGER_FILE).open("ab") as file:
            file.write(whole.removesuffix(b"\n"))
        assert [d.seq for d in append(session, PROMOTION)] == [3]
        assert [d.seq for d in read_session(session, WORKSPACE).decisions] == [1, 2, 3]

    def test_counts_on_when_it_is_as_long_as_a_line_may_be(self, session):
        whole = a_ledger(clarified(2, "other", detail="x")).removesuffix(b"\n")
        longest = whole.replace(b'"x"', b'"' + b"x" * (LINE_LIMIT - len(whole) + 1) + b'"')
        assert len(longest) == LINE_LIMIT
        with (session / LEDGER_FILE).open("ab") as file:
            file.write(longest)
        assert [d.seq for d in append(session, PROMOTION)] == [3]
        assert [d.seq for d in read_session(session, WORKSPACE).decisions] == [1, 2, 3]


class TestWhatCannotStandInALedger:
    @pytest.mark.parametrize(
        "entry",
        [
            Entry(DecisionType.CONCEPT_CLARIFIED, "  "),
            Entry(DecisionType.CONCEPT_CLARIFIED, "x", detail="nul \x00"),
            Entry(DecisionType.CONCEPT_CLARIFIED, "x", detail="half \ud800"),
            Entry(DecisionType.CONCEPT_CLARIFIED, "x", detail="x" * 1024**2),
            Entry(DecisionType.MEMORY_PROMOTED, "x", phase=9),
        ],
    )
    def test_is_refused_before_anything_is_written(self, session, entry):
        before = content(session)
        with pytest.raises(LedgerUnavailable, match="nothing was recorded"):
            append(session, PROMOTION, entry)
        assert content(session) == before

    def test_a_line_may_be_as_long_as_it_is_read_and_no_longer(self, session):
        def entry(length: int) -> Entry:
            return Entry(DecisionType.CONCEPT_CLARIFIED, "x", detail="x" * length)

        written = append(session, entry(1))[0]
        overhead = len(content(session).splitlines()[-1]) - len(written.detail)
        assert len(append(session, entry(LINE_LIMIT - overhead))) == 1
        with pytest.raises(LedgerUnavailable, match="longer than 1 MiB"):
            append(session, entry(LINE_LIMIT - overhead + 1))

    def test_a_seq_beyond_the_largest_is_refused(self, session):
        with open_for_appending(session, WORKSPACE) as writer, pytest.raises(LedgerUnavailable, match="seq"):
            writer.append([PROMOTION], after=2**31 - 1)

    def test_a_ledger_that_would_be_too_large_to_be_read_is_refused(self, session, monkeypatch):
        monkeypatch.setattr(appending, "LEDGER_LIMIT", len(content(session)) + 20)
        before = content(session)
        with pytest.raises(LedgerUnavailable, match="larger"):
            append(session, PROMOTION)
        assert content(session) == before


class TestADiskThatGivesOut:
    def test_in_the_middle_of_a_write_leaves_the_ledger_as_it_was(self, session):
        # A real limit of the operating system, of which a write of two lines takes up the first and a half.
        before = content(session)
        limit = len(before) + 250
        program = (
            "import resource, sys\n"
            "from pathlib import Path\n"
            "from tests.test_ledger_appending import PROMOTION, append\n"
            "from memory_pipeline.errors import LedgerUnavailable\n"
            f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))\n"
            "try:\n"
            "    append(Path(sys.argv[1]), PROMOTION, PROMOTION, PROMOTION)\n"
            "except LedgerUnavailable as error:\n"
            "    print(error)\n"
        )
        done = subprocess.run([sys.executable, "-c", program, str(session)], capture_output=True, text=True, check=True)
        assert "nothing was recorded" in done.stdout
        assert content(session) == before

    @pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
    @pytest.mark.parametrize("call", ["write", "fsync"])
    def test_is_a_clear_error_and_the_ledger_is_as_it_was(self, session, monkeypatch, code, call):
        before = content(session)
        monkeypatch.setattr(appending.os, call, lambda *_: (_ for _ in ()).throw(OSError(code, os.strerror(code))))
        with pytest.raises(LedgerUnavailable, match=f"(?i){os.strerror(code)}.*nothing was recorded"):
            append(session, PROMOTION)
        assert content(session) == before

    def test_before_a_first_line_leaves_no_ledger_behind(self, session, monkeypatch):
        (session / LEDGER_FILE).unlink()
        monkeypatch.setattr(
            appending.os, "write", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "no space left on device"))
        )
        with pytest.raises(LedgerUnavailable, match="no space left"):
            append(session, PROMOTION)
        assert not (session / LEDGER_FILE).exists()

    def test_that_is_read_only_is_a_clear_error(self, session, monkeypatch):
        opened = os.open

        def read_only(path, flags, *mode, **others):
            if str(path).endswith(LEDGER_FILE) and flags & os.O_RDWR:
                raise OSError(errno.EROFS, os.strerror(errno.EROFS))
            return opened(path, flags, *mode, **others)

        monkeypatch.setattr(appending.os, "open", read_only)
        before = content(session)
        with pytest.raises(LedgerUnavailable, match="read-only file system"):
            append(session, PROMOTION)
        assert content(session) == before

    @pytest.mark.usefixtures("read_only", "permissions")
    def test_a_directory_without_the_right_to_write_is_a_clear_error(self, session):
        before = content(session)
        with pytest.raises(LedgerUnavailable, match=r"permission denied.*nothing was recorded"):
            append(session, PROMOTION)
        assert content(session) == before


class TestOtherWriters:
    def test_who_holds_the_lock_is_waited_for_and_then_said(self, session, monkeypatch):
        monkeypatch.setattr(appending, "_WAIT", 0.1)
        with FileLock(session / LOCK_FILE), pytest.raises(LedgerUnavailable, match="locked"):
            append(session, PROMOTION)

    def test_the_lock_is_flock_of_the_lock_file_that_any_program_can_take(self, session):
        probe = ["flock", "--nonblock", str(session / LOCK_FILE), "true"]
        with open_for_appending(session, WORKSPACE):
            assert subprocess.run(probe, check=False).returncode == 1
        assert subprocess.run(probe, check=False).returncode == 0

    def test_threads_repeat_no_seq_and_lose_no_line(self, session):
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda _: append(session, PROMOTION), range(40)))
        lines = content(session).splitlines()
        assert [json.loads(line)["seq"] for line in lines] == list(range(1, 42))

    def test_one_that_took_no_lock_and_the_same_seq_is_noticed(self, session, monkeypatch):
        write = os.write

        def overtaken(descriptor, data):
            with (session / LEDGER_FILE).open("ab") as file:
                file.write(a_ledger(clarified(2, "somebody else's")))
            return write(descriptor, data)

        monkeypatch.setattr(appending.os, "write", overtaken)
        with pytest.raises(LedgerUnavailable, match="another program"):
            append(session, PROMOTION)
        assert read_session(session, WORKSPACE).decisions[-1].subject == "somebody else's"

    @pytest.mark.parametrize("before_the_write", [True, False])
    def test_one_that_replaces_the_file_is_noticed_and_nobody_decides_about_another_text(
        self, session, monkeypatch, before_the_write
    ):
        other = a_ledger(clarified(1, "never reviewed"))

        def replace():
            (session / "new").write_bytes(other)
            (session / "new").replace(session / LEDGER_FILE)

        if not before_the_write:
            write = os.write
            monkeypatch.setattr(appending.os, "write", lambda fd, data: replace() or write(fd, data))
        with open_for_appending(session, WORKSPACE) as writer:
            writer.read()
            if before_the_write:
                replace()
            with pytest.raises(LedgerUnavailable, match="another program"):
                writer.append([PROMOTION], after=1)
        assert content(session) == other

    def test_a_fifo_in_the_ledgers_place_is_a_clear_error(self, session):
        (session / LEDGER_FILE).unlink()
        os.mkfifo(session / LEDGER_FILE)
        with pytest.raises(LedgerUnavailable, match="no regular file"):
            append(session, PROMOTION)
