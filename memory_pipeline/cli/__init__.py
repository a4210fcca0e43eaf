"""The command line: one command for each use of the library, errors as one line, `--json` for programs."""

from __future__ import annotations

import io
import signal
import sys
from typing import NoReturn

import click

from memory_pipeline.cli import administration, bulk, cards, pipeline
from memory_pipeline.cli.common import Commands
from memory_pipeline.errors import MemoryPipelineError

_INTERRUPTED = 130


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="memory-pipeline")
def cli() -> None:
    """The memory of a text-to-SQL assistant: session ledgers become verified, recallable cards."""


for module in (pipeline, cards, bulk, administration):
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
        sys.stdout.flush()
    except MemoryPipelineError as error:
        _fail(str(error), error.exit_code)
    except click.exceptions.Exit as exit_:
        sys.exit(exit_.exit_code)
    except click.ClickException as error:
        _fail(error.format_message(), error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        _fail("interrupted; what was committed stays, the rest is done by the next run", _INTERRUPTED)
    except OSError as error:
        _fail(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}", 1)
    sys.exit(0)


def _fail(message: str, code: int) -> NoReturn:
    click.echo(f"error: {' '.join(message.split())}", err=True)
    sys.exit(code)
