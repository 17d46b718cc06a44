"""The whole way from recordings to skeletons and their motion."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from os import PathLike

import numpy as np

from marey.clean import clean, scaled
from marey.errors import DataError, OptionError
from marey.io import read
from marey.joints import rigid_pair
from marey.report import Report
from marey.segment import segment
from marey.solution import Solution
from marey.solve._figures import calibrated, figures_of, posed, with_known
from marey.solve._fit import Clock, fit_all, mended_fit
from marey.solve._options import SolveOptions as SolveOptions
from marey.solve._report import joint_table
from marey.take import Take

Recorded = str | PathLike[str] | Take


def solve(
    recordings: Recorded | Sequence[Recorded],
    *,
    options: SolveOptions | None = None,
    progress: Callable[[str], None] | None = None,
) -> Solution:
    """Return the skeletons and motions of one recording, or of several of one subject.

    Args:
        recordings: Files or takes. Several share one skeleton: their sums are one fit.
        options: How to solve.
        progress: Called with the name of each stage as it begins.

    Raises:
        DataError: If there is nothing to solve, or the takes differ in their bodies.
        FormatError: If a file cannot be read.
    """
    chosen = with_known(options or SolveOptions())
    clock = Clock(progress)
    with clock.stage("read"):
        takes = tuple(_of(take, chosen.subject) for take in _takes(recordings))
    with clock.stage("clean"):
        takes = tuple(clean(take) for take in takes) if chosen.clean else takes
        takes = _to_scale(takes, chosen)
    fitted = mended_fit(fit_all(takes, chosen, clock), chosen, clock)
    takes, bodies = fitted.takes, fitted.bodies
    with clock.stage("skeleton"):
        figures = figures_of(fitted, chosen)
    with clock.stage("calibrate"):
        figures = calibrated(figures, fitted, chosen)
    with clock.stage("pose"):
        subjects, met = posed(figures, takes, chosen)
    return Solution(
        takes=takes,
        bodies=bodies,
        joints=fitted.joints,
        tree=fitted.tree,
        subjects=subjects,
        report=Report(
            findings=(
                *(finding for take in takes for finding in take.source.findings),
                *fitted.findings(),
                *met,
            ),
            tables={"joints": joint_table(fitted.joints, fitted.tree, bodies[0])},
            seconds=clock.seconds,
        ),
        options=asdict(chosen),
    )


def _takes(recordings: Recorded | Sequence[Recorded]) -> tuple[Take, ...]:
    alone = isinstance(recordings, str | PathLike | Take)
    several = (recordings,) if alone else tuple(recordings)  # type: ignore[arg-type]
    if not several:
        raise DataError("solve", found="no recordings", needed="at least one")
    return tuple(r if isinstance(r, Take) else read(r) for r in several)  # type: ignore[arg-type]


def _of(take: Take, subject: str) -> Take:
    """Return the take with one subject's markers only, if it names several."""
    if not subject or subject not in take.subjects or set(take.subjects) == {subject}:
        return take
    return take.select([i for i, who in enumerate(take.subjects) if who == subject])


def _to_scale(takes: tuple[Take, ...], chosen: SolveOptions) -> tuple[Take, ...]:
    """Return the takes in true lengths, when two sensors on a stick tell them."""
    if chosen.rigid_pair is None:
        return takes
    a, b, distance = chosen.rigid_pair
    for name in (a, b):
        if any(name not in take.sensor_names for take in takes):
            names = ", ".join(takes[0].sensor_names)
            raise OptionError("rigid_pair", found=name, needed=f"one of {names}")
    pair = takes[0].sensor_names.index(a), takes[0].sensor_names.index(b)
    found = [rigid_pair(segment(take), pair, distance=distance) for take in takes]
    factor = float(np.mean([stick.scale for stick in found]))
    return tuple(scaled(take, factor) for take in takes)
