"""The calibration of a person with known landmarks: which frame, which shoulders."""

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from marey.calibration.init.landmarks import Start, can_have_clavicles, person_start
from marey.calibration.init.poses import chosen_frames
from marey.calibration.init.reference_frame import candidates, without_gaps
from marey.calibration.landmarks import Landmarks
from marey.calibration.options import CalibrateOptions
from marey.calibration.solver.levenberg_marquardt import Poses, rests, settled
from marey.calibration.solver.loop import Fit, fitted, posed
from marey.calibration.unknowns import Figure, Shape

Array = np.ndarray

TRIED, FEWEST_TRIED = 20, 5
"""Frames of all sessions, and at least of each, on which candidates for the reference
compete."""

TRIED_FRAMES, FEWEST_FRAMES, TRIED_ROUNDS = 30, 12, 3
"""Frames of all sessions, at least of each, and turns that decide about the shoulders.
"""

FAR = 0.010
"""Errors much beyond this, in metres, are those of markers that nothing tells."""

BETTER = 1.05
"""Shoulders are fixed if that predicts better by this much: people have clavicles."""

UPPER = ("Chest", "Shoulder", "UpperArm", "LowerArm")


def person_fit(
    figure: Figure,
    shape: Shape,
    marks: Landmarks,
    sessions: tuple[Float[Array, "_ marker 3"], ...],
    *,
    options: CalibrateOptions,
) -> Fit | None:
    """Return the calibrated person; None if no frame shows it whole."""
    points = sessions[0] if len(sessions) == 1 else np.concatenate(sessions)
    possible = options.shoulders != "fixed" and can_have_clavicles(figure, marks)
    few = _some_of_all(sessions)
    best: tuple[float, int, Array, Start] | None = None
    for frame in candidates(points, marks):
        here = without_gaps(figure, points, frame)
        if not np.isfinite(here).all():
            continue
        whole = _with_frame(points, frame, here)
        start = person_start(figure, shape, marks, whole, frame, clavicles=possible)
        if not np.isfinite(start.shape.o).all():
            continue
        score = _misfit(start, few)
        if best is None or score < best[0]:
            best = score, frame, whole, start
    if best is None:
        return None
    _, frame, whole, start = best
    if possible and options.shoulders == "auto":
        fixed = person_start(figure, shape, marks, whole, frame, clavicles=False)
        starts = {True: start, False: fixed}
        tried = {m: _tried(start, sessions, options) for m, start in starts.items()}
        miss = {moving: _hidden_error(fit) for moving, fit in tried.items()}
        moving = miss[True] < BETTER * miss[False]
        start = replace(starts[moving], shape=tried[moving].shape)
    return fitted(
        start,
        sessions,
        most=options.per_session(len(sessions)),
        independent=options.independent,
    )


def _with_frame(points: Array, frame: int, here: Array) -> Array:
    """Return the points with one frame in place of theirs."""
    if np.isfinite(points[frame]).all():
        return points
    whole = points.copy()
    whole[frame] = here
    return whole


def _some_of_all(sessions: tuple[Array, ...]) -> Array:
    """Return the frames on which candidates compete."""
    most = max(TRIED // len(sessions), FEWEST_TRIED)
    return np.concatenate([some[chosen_frames(some, most)] for some in sessions])


def _misfit(start: Start, points: Float[Array, "frame marker 3"]) -> float:
    """Return how badly a start suits some frames, in metres.

    To a tenth of a millimetre: of starts as good as each other the first is taken.
    """
    poses = posed(start, (points,), len(points))
    rest, weight, _ = rests(start.figure, start.shape, poses, 0)
    off = np.linalg.norm(rest, axis=-1)[weight > 0.0]
    return round(float(np.median(off) + 0.2 * np.quantile(off, 0.9)), 4)


def _tried(start: Start, sessions: tuple[Array, ...], options: CalibrateOptions) -> Fit:
    """Return a figure fitted in haste."""
    return fitted(
        start,
        sessions,
        most=max(TRIED_FRAMES // len(sessions), FEWEST_FRAMES),
        independent=options.independent,
        rounds=TRIED_ROUNDS,
        adapt=False,
    )


def _hidden_error(fit: Fit) -> float:
    """Return how badly hidden markers of the upper body are predicted.

    Each is hidden in turn. The mean of log(1 + squared distance), so that no single
    one decides which nothing could tell.
    """
    upper = [i for i, name in enumerate(fit.figure.names) if name.endswith(UPPER)]
    hidden = np.flatnonzero(np.isin(fit.figure.segment, upper))
    seen, blind, places = [], [], []
    for some in fit.poses:
        frames = np.tile(np.arange(len(some.points)), len(hidden))
        places.append((np.arange(len(frames)), np.repeat(hidden, len(some.points))))
        seen.append(Poses(some.points[frames], some.t[frames], some.R[frames]))
        less = seen[-1].points.copy()
        less[places[-1]] = np.nan
        blind.append(replace(seen[-1], points=less))
    found = settled(fit.figure, fit.shape, tuple(blind), 10)
    shown = tuple(
        replace(pose, points=some.points)
        for pose, some in zip(found, seen, strict=True)
    )
    total, count = 0.0, 0
    for session, at in enumerate(places):
        rest, weight, _ = rests(fit.figure, fit.shape, shown, session)
        off = np.sum(rest[at] ** 2, axis=-1)[weight[at] > 0.0]
        total += float(np.sum(np.log1p(off / FAR**2)))
        count += len(off)
    return total / max(count, 1)
