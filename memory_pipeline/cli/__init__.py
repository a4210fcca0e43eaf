"""The command line: one command for each use of the library, errors as one line, `--json` for programs."""

from __future__ import annotations

import io
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from itertools import takewhile
from typing import Any, NoReturn

import click

from memory_pipeline.cli import administration, bulk, cards, diagnosis, pipeline, review
from memory_pipeline.cli.common import print_json
from memory_pipeline.errors import ArchiveUnavailable, EmbedderUnavailable, IndexUnavailable, MemoryPipelineError

_INTERRUPTED = 130
_OF_SERVICES = {error.exit_code for error in (ArchiveUnavailable, EmbedderUnavailable, IndexUnavailable)}


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="memory-pipeline")
def cli() -> None:
    """The memory of a text-to-SQL assistant: session ledgers become verified, recallable cards."""


for module in (pipeline, review, cards, bulk, administration, diagnosis):
    for command in module.COMMANDS:
        cli.add_command(command)


def main() -> NoReturn:
    """The program's entry point: translates errors into one line on standard error and an exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # not every terminal can show every card
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)  # an ordinary stop leaves no server running
    try:
        cli.main(standalone_mode=False)
        _flush()
    except MemoryPipelineError as error:
        _fail(error.exit_code, error.as_json())
    except click.exceptions.Exit as exit_:
        sys.exit(exit_.exit_code)
    except click.ClickException as error:
        kind = "UsageError" if isinstance(error, click.UsageError) else type(error).__name__
        _fail(error.exit_code, {"kind": kind, "message": error.format_message()})
    except (click.Abort, KeyboardInterrupt):
        what_stays = "interrupted; what was committed stays, the rest is done by the next run"
        _fail(_INTERRUPTED, {"kind": "Interrupted", "message": what_stays})
    except OSError as error:
        message = f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}"
        _fail(1, {"kind": type(error).__name__, "message": message})
    sys.exit(0)


def _flush() -> None:
    if sys.stdout is not None:  # it may be closed altogether
        sys.stdout.flush()


def _fail(code: int, error: Mapping[str, Any]) -> NoReturn:
    """End with an error in one line on standard error; where JSON is asked for, also as `{"error": …}`."""
    # By what was typed, since a command line with a fault is never parsed to its end. After -- there are no options.
    if "--json" in takewhile(lambda argument: argument != "--", sys.argv[1:]):
        with suppress(OSError):  # where standard output is what fails, standard error says so
            print_json({"error": error})
    said = " ".join(error["message"].split())
    if code in _OF_SERVICES and "`memory-pipeline " not in said:
        said += "; `memory-pipeline doctor` looks for what is to be mended"
    click.echo(f"error: {said}", err=True)
    sys.exit(code)
