"""The estimate of a worker: skeletons from chosen frames, and how well they predict."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from marey.errors import DataError
from marey.numerics import Array, Float, Int, geometry
from marey.numerics.thresholds import FOLDS, LEVER_ARM_M
from marey.pipeline import SolveOptions
from marey.pipeline.progress import Clock
from marey.pipeline.reporting.readiness import JointReadiness, assess_joints
from marey.pipeline.run import estimate_bodies, estimate_skeletons
from marey.pipeline.stages.takes import clean_takes, read_takes
from marey.pose import solve_pose
from marey.skeleton import Skeleton, marker_columns
from marey.take import Take

TEST_PIECES, TEST_FRAMES = 4, 24
"""Pieces of the frames in which hidden markers are predicted, and frames of each.
Raised, skeletons are compared more surely, which takes longer. Chosen by hand."""

WORKER_NICENESS = 10
"""Niceness of the worker, 0 to 19. Higher learns later on a busy machine, and delays
poses less."""

MISSED_M = LEVER_ARM_M
"""Error that counts for a marker that a skeleton does not have, in metres, and the
largest of any. Raised, skeletons with more markers are preferred."""


@dataclass(frozen=True, slots=True, eq=False)
class Learnt:
    """Skeletons that were estimated from the frames of a stream."""

    names: tuple[str, ...]
    """Names of the subjects, the largest first."""

    skeletons: tuple[Skeleton, ...]
    readiness: tuple[tuple[JointReadiness, ...], ...]
    """How far each joint of each subject is determined."""

    marker_error: Float[Array, " marker"]
    """Distance of each marker of the stream from where the others predict it, in
    metres, at most `MISSED_M`; NaN if it was hardly seen."""

    better: bool
    """Whether they predict hidden markers at least as well as those before."""

    n_frames: int
    """Frames that they were estimated from."""

    seconds: float
    """Time that it took."""


def estimate_beside_stream(take: Take, before: Sequence[Skeleton] | None) -> Learnt:
    """Return what `estimate_skeletons_of_stream` does, at low priority.

    For a worker process: the system lets the stream go first.
    """
    if hasattr(os, "setpriority"):  # Windows has none
        os.setpriority(os.PRIO_PROCESS, 0, WORKER_NICENESS)
    return estimate_skeletons_of_stream(take, before)


def estimate_skeletons_of_stream(
    take: Take, before: Sequence[Skeleton] | None
) -> Learnt:
    """Return the skeletons of chosen frames, by the stages of `marey.solve`.

    Poses are not solved: the stream does that.

    Args:
        take: The chosen frames.
        before: The skeletons that the stream has now; None if there are none.

    Raises:
        DataError: If the frames show nothing to solve yet.
    """
    options, clock = SolveOptions(), Clock(None)
    takes = clock.run("clean", clean_takes, read_takes(take, ""), options)
    _, fit = estimate_bodies(takes, options, clock)
    subjects = sorted(
        estimate_skeletons(fit, options, clock),
        key=lambda subject: -subject.skeleton.n_joints,
    )
    subjects = [one for one in subjects if one.skeleton.n_joints > 1]
    if not subjects:
        raise DataError("stream", found="no joint that moves", needed="some motion")
    skeletons = tuple(subject.skeleton for subject in subjects)
    with clock.stage("compare"):
        test = _test_frames(take)
        error = hidden_marker_errors(skeletons, test)
        better = before is None or _is_no_worse(
            error, hidden_marker_errors(before, test)
        )
    return Learnt(
        names=tuple(subject.name for subject in subjects),
        skeletons=skeletons,
        readiness=tuple(map(assess_joints, skeletons)),
        marker_error=error,
        better=better,
        n_frames=take.n_frames,
        seconds=sum(clock.seconds.values()),
    )


def _is_no_worse(new: Float[Array, " marker"], old: Float[Array, " marker"]) -> bool:
    """Return whether errors did not grow by more than their standard error.

    More data give the better skeleton unless the paired differences say otherwise.
    """
    change = (new - old)[np.isfinite(new - old)]
    if not len(change):
        return True
    return bool(change.mean() <= change.std() / np.sqrt(len(change)))


def _test_frames(take: Take) -> Take:
    """Return some pieces of a take, one after the other."""
    n = take.n_frames
    starts = np.linspace(0, max(n - TEST_FRAMES, 0), TEST_PIECES).astype(int)
    rows = np.unique(starts[:, None] + np.arange(min(TEST_FRAMES, n)))
    return replace(
        take,
        points=take.points[rows],
        T_world_sensor=take.T_world_sensor[rows],
        filled=take.filled[rows],
        confidence=take.confidence[rows],
    )


def hidden_marker_errors(
    skeletons: Sequence[Skeleton], take: Take
) -> Float[Array, " marker"]:
    """Return how far hidden markers are from where skeletons predict them, in metres.

    A quarter of the markers is hidden at a time, and the poses are solved from the
    others (cross-validation); the median over the frames counts.
    """
    error = np.full(len(take.labels), MISSED_M)
    error[~take.seen.any(axis=0)] = np.nan
    for skeleton in skeletons:
        column = marker_columns(skeleton, take)
        for fold in range(FOLDS):
            _predict_fold(skeleton, take, column, fold, error)
    return error


def _predict_fold(
    skeleton: Skeleton,
    take: Take,
    column: Int[Array, " marker"],
    fold: int,
    error: Array,
) -> None:
    """Write the errors of one part of a skeleton's markers."""
    order = np.argsort(skeleton.marker_joint, kind="stable")
    hidden = order[fold::FOLDS]
    hidden = hidden[column[hidden] >= 0]
    points = take.points.copy()
    points[:, column[hidden]] = np.nan
    shown = np.isfinite(points[:, column[column >= 0]]).any()
    if not len(hidden) or not (shown or take.sensor_names):
        return
    motion = solve_pose(skeleton, replace(take, points=points))
    predicted = geometry.apply_selected(
        motion.T_world_joint(),
        skeleton.marker_joint[hidden],
        skeleton.marker_offset[hidden],
    )
    apart = np.linalg.norm(predicted - take.points[:, column[hidden]], axis=-1)
    for k, marker in enumerate(column[hidden]):
        known = apart[np.isfinite(apart[:, k]), k]
        if len(known):
            error[marker] = min(float(np.median(known)), MISSED_M)
