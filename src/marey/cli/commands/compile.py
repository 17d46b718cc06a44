"""`marey compile`."""

import time
from typing import TYPE_CHECKING

from marey.cli.application import EXIT_OK, err, out

if TYPE_CHECKING:
    from marey.cli.compiling import Step


def compile_(*, all_: bool = False, quiet: bool = False) -> int:
    """Compile all kernels now, once, so that no other command has to wait for them.

    Args:
        all_: Also those of methods that have to be asked for, such as physics.
        quiet: Print errors only.
    """
    from marey.kernels.precompiled import find_outdated

    reason = find_outdated(rare=all_)
    if reason and not quiet:
        err.print(f"compiling kernels: {reason}")
    if reason:
        _compile(rare=all_, quiet=quiet)
    if not quiet:
        out.print("all kernels are compiled")
    return EXIT_OK


def _compile(*, rare: bool, quiet: bool) -> None:
    """Compile with a bar in a terminal, and with one line per step elsewhere."""
    from marey.cli.compiling import compile_kernels

    if quiet:
        compile_kernels(rare=rare, report=lambda step: None)
    elif not err.is_terminal:
        start = time.monotonic()
        compile_kernels(rare=rare, report=lambda step: _print_step(step, start))
    else:
        _compile_with_bar(rare)


def _print_step(step: "Step", start: float) -> None:
    """Print the number of a step, and the time that the rest will take."""
    left = (time.monotonic() - start) * (1.0 - step.share) / step.share
    rest = f", about {left:.0f} s left" if left >= 1.0 else ""
    err.print(f"compiled {step.number} of {step.n_steps}: {step.title}{rest}")


def _compile_with_bar(rare: bool) -> None:
    from rich.progress import BarColumn, Progress, SpinnerColumn, TimeRemainingColumn

    from marey.cli.compiling import compile_kernels

    columns = ("{task.description}", BarColumn(), TimeRemainingColumn())
    with Progress(SpinnerColumn(), *columns, console=err) as progress:
        task = progress.add_task("compiling kernels", total=1.0)

        def report(step: "Step") -> None:
            description = f"compiled {step.number} of {step.n_steps}: {step.title}"
            progress.update(task, completed=step.share, description=description)

        compile_kernels(rare=rare, report=report)
