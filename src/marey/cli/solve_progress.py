"""How far a solve is: its step, and the time that the rest will take."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.markup import escape

from marey.cli.application import err

BEGINS_AT = {
    "clean": 0.0,
    "segment": 0.3,
    "joints": 0.4,
    "tree": 0.5,
    "repair": 0.55,
    "name": 0.6,
    "skeleton": 0.6,
    "calibrate": 0.6,
    "attach": 0.85,
    "pose": 0.9,
}
"""Share of a solve's time at which each stage begins, for the time left: rough, from
one walk of 300 frames. It changes what is shown and nothing else."""

QUIET_SECONDS = 5.0
"""A solve that is shorter prints no steps when its output is piped."""


def share_done(stage: str) -> float | None:
    """Return the share of a solve that is done when a stage begins; None if unknown."""
    return BEGINS_AT.get(stage.partition(",")[0])


def describe_step(stage: str, elapsed: float) -> str:
    """Return the number of a stage, its name, and the time left if it can be said.

    Args:
        stage: Name of the stage, perhaps with a note behind a comma.
        elapsed: Seconds since the solve began.
    """
    name, share = stage.partition(",")[0], share_done(stage)
    if share is None:
        return stage
    step = list(BEGINS_AT).index(name) + 1
    left = elapsed * (1.0 - share) / share if share else 0.0
    rest = f", about {left:.0f} s left" if left >= 1.0 else ""
    return f"step {step} of {len(BEGINS_AT)}, {stage}{rest}"


@contextmanager
def show_solve_progress(
    title: str, quiet: bool = False
) -> Iterator[Callable[[str], None] | None]:
    """Show the steps of a solve: in a terminal with a bar, elsewhere one line each.

    Yields:
        What to call with the name of each stage as it begins; None if nothing is shown.
    """
    start = time.monotonic()

    def step(stage: str) -> str:
        return f"{title}: {describe_step(stage, time.monotonic() - start)}"

    def print_step(stage: str) -> None:
        if time.monotonic() - start >= QUIET_SECONDS:
            err.print(step(stage), markup=False)

    if quiet:
        yield None
    elif err.is_terminal:
        with _open_bar(title) as move:
            yield lambda stage: move(step(stage), share_done(stage))
    else:
        yield print_step


@contextmanager
def _open_bar(title: str) -> Iterator[Callable[[str, float | None], None]]:
    """Show a bar; yield what to call with a text and the share that is done."""
    from rich.progress import BarColumn, Progress, SpinnerColumn

    columns = (SpinnerColumn(), BarColumn(), "{task.description}")
    with Progress(*columns, console=err, transient=True) as progress:
        task = progress.add_task(escape(title), total=1.0)
        yield lambda text, share: progress.update(
            task, description=escape(text), completed=share
        )
