"""Frames that are missing from a recording: everything jumps at once."""

import numpy as np

from marey.cleaning.options import CleanOptions
from marey.cleaning.outliers.runs import (
    JUMP_RATIO,
    MIN_FRAMES,
    local_median,
    step_deviation,
)
from marey.numerics import Array, Bool
from marey.numerics.thresholds import MIN_POSE_POINTS, MOST
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
    size = np.linalg.norm(np.diff(take.positions, axis=0)[jumps - 1], axis=-1)
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
    if take.n_frames < MIN_FRAMES or not take.positions.shape[1]:
        return np.zeros(max(take.n_frames - 1, 0), dtype=bool)
    deviation = step_deviation(np.diff(take.positions, axis=0))
    is_seen = np.isfinite(deviation)
    large = is_seen & (np.nan_to_num(deviation) > options.min_spike)
    n_needed = np.maximum(MOST * is_seen.sum(axis=1), MIN_POSE_POINTS)
    if not (large.sum(axis=1) >= n_needed).any():
        return np.zeros(len(large), dtype=bool)
    usual = local_median(np.nan_to_num(deviation).T, take.rate).T
    large &= np.nan_to_num(deviation) > JUMP_RATIO * usual
    return np.asarray(large.sum(axis=1) >= n_needed)
