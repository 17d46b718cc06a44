"""The command line: the functions of the API, for people and for scripts.

Exit codes: 0 = no error, 1 = a finding of severity error, 2 = wrong usage or unreadable
input, 3 = some of the files could not be read.
"""

import atexit
import gc
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from cyclopts import CycloptsError

from marey.cli.application import (
    EXIT_BAD_INPUT,
    EXIT_OK,
    app,
    print_error,
    print_log,
)
from marey.cli.commands import COMMANDS
from marey.errors import MareyError
from marey.kernels.precompiled import prefer_compiled_kernels

EXIT_INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it: 128 + the number of SIGINT."""

MIN_ALLOCATIONS = 200_000
"""New objects after which Python looks for unreachable cycles. Imports make as many and
no cycles, and a search takes time in proportion to all that is loaded."""

for command in COMMANDS:
    app.command(command)


@contextmanager
def end_as_by_ctrl_c() -> Iterator[None]:
    """Clean up as after Ctrl-C if a process is asked to end or loses its terminal.

    A signal that is ignored, as below `nohup`, stays ignored.
    """
    names = ("SIGTERM", "SIGHUP")  # Windows has no SIGHUP
    found = (getattr(signal, name, None) for name in names)
    numbers = [n for n in found if n and signal.getsignal(n) is signal.SIG_DFL]
    for number in numbers:
        signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    gc.set_threshold(MIN_ALLOCATIONS)
    # At its end Python would look for cycles in all its memory.
    atexit.register(gc.freeze)
    prefer_compiled_kernels()
    try:
        with print_log(), end_as_by_ctrl_c():
            code = app(arguments, exit_on_error=False)
    except CycloptsError:
        code = EXIT_BAD_INPUT
    except MareyError as error:
        print_error(str(error))
        code = EXIT_BAD_INPUT
    except BrokenPipeError:
        sys.stderr.close()
        code = EXIT_OK
    except KeyboardInterrupt:
        print_error("interrupted; no incomplete file was left behind", label="")
        code = EXIT_INTERRUPTED
    sys.exit(code if isinstance(code, int) else EXIT_OK)
