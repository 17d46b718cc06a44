r"""Rotations that markers hardly determine, drawn to those before and after them.

One or two markers on a bone leave a direction of its rotation nearly free, and noise
makes it step from frame to frame. The Viterbi choice (`both_ways`) takes rotations for
a random walk, whose steps have the information :math:`\pi` of the prior. In that model
a rotation is normal about the midpoint of those one frame before and after, with the
information :math:`2 \pi`. Where markers give less than that, a frame moves to the least
cost of its markers and this prior. Both directions of time count alike.

The cost of a frame is changed in two ways. The variance of markers is that of the
residuals of the take, which skin makes larger than `marker_sd`. Markers keep the
weights of the Cauchy loss at the poses before, which are the square roots of their
Geman-McClure weights: then a doubtful marker does not count in one frame and drop out
in the next.
"""

from typing import TYPE_CHECKING

import numpy as np

from marey.articulated.targets import Recording, as_c_float64
from marey.numerics import Array, Int
from marey.pose.gauss_newton.smoothing import MAX_ITERATIONS_SMOOTHING
from marey.pose.trace import PoseTrace

if TYPE_CHECKING:
    from marey.pose.gauss_newton.fit import GaussNewtonSolver


def smooth_weak_joints(
    fit: "GaussNewtonSolver", recording: Recording, trace: PoseTrace
) -> None:
    """Draw weakly determined joints to the midpoints of their neighbours, in place.

    Frames move in which such a joint is more than a standard deviation of the random
    walk from its midpoint: all at once, each from where it is (block Jacobi method),
    until none is left or `MAX_ITERATIONS_SMOOTHING` times.

    Args:
        fit: The solver.
        recording: Positions and poses.
        trace: Poses at the minima of their frames. Of its statistics only the steps
            change.
    """
    # numba is slow to import
    from marey.pose.gauss_newton.midpoints_kernel import write_midpoints

    walk, information = 2.0 * fit.settings.prior, as_c_float64(trace.information)
    prior = walk * _variance_ratio(fit, recording, trace)
    path, is_far = np.empty_like(trace.q), np.zeros(len(trace.q), dtype=bool)

    def find_far() -> Int[Array, " some"]:
        write_midpoints(trace.q, information, prior, walk, path, is_far)
        return np.flatnonzero(is_far)

    frames = find_far()
    if len(frames) == 0:
        return
    # From pass to pass a step spreads by one frame at most.
    spread = np.arange(-MAX_ITERATIONS_SMOOTHING, MAX_ITERATIONS_SMOOTHING + 1)
    near = np.unique(np.clip(frames[:, None] + spread, 0, len(path) - 1))
    weighted = _with_cauchy_weights(fit, recording, trace, near)
    settings, targets = fit.settings._replace(prior=prior), fit.targets
    fit.targets = targets._replace(softness=np.zeros_like(targets.softness))
    info = trace.info.copy()
    for _ in range(MAX_ITERATIONS_SMOOTHING):
        fit.move_to_minima(weighted, frames, trace, settings, (trace.root.copy(), path))
        info[frames, 3] += trace.info[frames, 3]
        frames = find_far()
        if len(frames) == 0:
            break
    fit.targets, trace.info[:] = targets, info


def _variance_ratio(
    fit: "GaussNewtonSolver", recording: Recording, trace: PoseTrace
) -> float:
    """Return the variance of residuals over that which weights assume.

    The reduced chi-square of a frame, in the median. Where a frame has fewer
    coordinates than unknowns, all of them count as free, which is a lower bound.
    """
    points, sensors = recording
    n_markers = np.isfinite(points[:, fit.matches.column, 0]).sum(axis=1)
    n_sensors = np.isfinite(sensors[:, fit.matches.sensor_column, 0, 0]).sum(axis=1)
    n_unknowns = 3 + np.where(fit.nodes.tree.is_hinge, 1, 3).sum()
    n_seen = 3 * n_markers + 6 * n_sensors
    freedom = np.where(n_seen > n_unknowns, n_seen - n_unknowns, n_seen)
    return float(np.median(trace.info[n_seen > 0, 0] / freedom[n_seen > 0]))


def _with_cauchy_weights(
    fit: "GaussNewtonSolver",
    recording: Recording,
    trace: PoseTrace,
    frames: Int[Array, " some"],
) -> Recording:
    """Return a recording with the robust weights of markers as their confidences.

    Only some frames of it are set.
    """
    points = recording[0][frames]
    residual_m = fit.marker_residuals(points, trace.at(frames))
    share = 1.0 / (1.0 + fit.targets.softness * residual_m**2)
    some = np.ones((*points.shape[:2], 4))
    some[..., : points.shape[2]] = points
    some[:, fit.targets.column, 3] *= np.where(np.isfinite(share), share, 1.0)
    weighted = np.empty((len(trace.q), *some.shape[1:]))
    weighted[frames] = some
    return weighted, recording[1]
