"""Frames that are missing from a recording: everything jumps at once."""

from collections.abc import Iterator

import numpy as np

from marey.cleaning.options import CleanOptions
from marey.cleaning.outliers.runs import (
    JUMP_RATIO,
    MIN_FRAMES,
    local_median,
    step_deviation,
)
from marey.numerics import Array, Bool, Float
from marey.numerics.thresholds import FRAMES_PER_CHUNK, MIN_POSE_POINTS, MOST
from marey.report import Finding
from marey.take import Take


def report_lost_frames(take: Take, options: CleanOptions | None = None) -> Take:
    """Return the take with a warning if most of its points jump from frame to frame.

    A marker may jump alone; all do if frames were lost, if two recordings were put
    together, or if a frozen picture moves on. A jump is a step that deviates from the
    steps around it as an outlier does.

    Args:
        take: The recording.
        options: `min_spike` is the smallest jump.
    """
    jumps = np.flatnonzero(_all_jump(take, options or CleanOptions())) + 1
    if not len(jumps):
        return take
    positions = take.positions
    size = np.linalg.norm(positions[jumps] - positions[jumps - 1], axis=-1)
    sizes = np.nanmedian(size, axis=1)
    worst = int(jumps[np.argmax(sizes)])
    times = f" {len(jumps)} times, the most" if len(jumps) > 1 else ""
    message = (
        f"everything jumps{times} by {1e3 * sizes.max():.0f} mm from frame {worst - 1} "
        f"to {worst}: frames are missing, or another take begins there; cut it"
    )
    frames, value = (worst - 1, worst), float(sizes.max())
    finding = Finding("frames-lost", "clean", "warning", message, "", frames, value)
    return take.with_findings(finding)


def _all_jump(take: Take, options: CleanOptions) -> Bool[Array, " step"]:
    """Return in which steps most points that are seen jump, and at least three."""
    n_steps = max(take.n_frames - 1, 0)
    if take.n_frames < MIN_FRAMES:
        return np.zeros(n_steps, dtype=bool)
    n_seen, n_large = np.zeros(n_steps), np.zeros(n_steps)
    for deviation in _deviations(take):
        n_seen += np.isfinite(deviation).sum(axis=1)
        n_large += (np.nan_to_num(deviation) > options.min_spike).sum(axis=1)
    n_needed = np.maximum(MOST * n_seen, MIN_POSE_POINTS)
    if not (n_large >= n_needed).any():
        return np.zeros(n_steps, dtype=bool)
    n_jumps = np.zeros(n_steps)
    for deviation in _deviations(take):
        known = np.nan_to_num(deviation)
        limit = JUMP_RATIO * local_median(known.T, take.rate).T
        n_jumps += (known > np.maximum(limit, options.min_spike)).sum(axis=1)
    return np.asarray(n_jumps >= n_needed)


def _deviations(take: Take) -> Iterator[Float[Array, "step some"]]:
    """Yield how far steps deviate from those around them, for some points at a time."""
    for positions in (take.points, take.T_world_sensor[..., :3, 3]):
        n_together = max(FRAMES_PER_CHUNK // len(positions), 1)
        for first in range(0, positions.shape[1], n_together):
            some = positions[:, first : first + n_together]
            yield step_deviation(np.diff(some, axis=0))
