"""Scales of the residuals of a stream's markers, frame by frame, compiled.

A whole take has the median of a marker's residuals (`GaussNewtonSolver`). A stream
follows the median by stochastic approximation (Robbins and Monro, 1951): the logarithm
of the scale moves by a constant step towards each new residual, so that one large
residual counts as little as a small one. Bodies have one scale each, from the lower
median of their markers: a swap of some of them does not widen it, and a limb that the
skeleton does not fit keeps its weight.
"""

# mypy: ignore-errors

from typing import NamedTuple

import numpy as np

from marey.articulated.targets_kernel import write_marker_residuals
from marey.numerics.arrays.new_kernel import empty
from marey.numerics.jit import njit


class ScaleSettings(NamedTuple):
    """How scales follow the residuals."""

    median_length: float  # of a vector of three independent normal numbers
    gain: float  # step of the logarithm of a scale, per frame
    least: float  # least scale, in metres
    outlier: float  # scale of the Geman-McClure loss, as a multiple; 0 leaves the loss
    max_ratio: float  # largest scale in the loss, as a multiple of their median


@njit(cache=True)
def _write_softness(targets, scale, settings):
    """Write the softness of the loss of every marker from the scales of the nodes."""
    usual = empty(len(targets.column))
    for i in range(len(scale)):
        for k in range(targets.start[i], targets.start[i + 1]):
            usual[k] = scale[i]
    largest = settings.max_ratio * np.median(usual)
    for k in range(len(usual)):
        length = settings.outlier * min(usual[k], largest)
        targets.softness[k] = 1.0 / (length * length)


@njit(cache=True)
def update_scales(problem, points, pose, settings, scale):
    """Move the scale of every node's markers towards their residuals in a frame.

    The softness of the markers in the table of targets follows.

    Args:
        problem: The kinematic tree, the table of targets and a `PoseWorkspace`.
        points: Markers of one frame, in metres; (1, marker, 3).
        pose: Position of the root, (1, 3), and quaternions, (1, node, 4).
        settings: A `ScaleSettings`, as a plain tuple, which is handed over faster.
        scale: Scale of the residuals of each node's markers along one axis, in metres;
            changed in place. That of a node without markers in the frame stays.
    """
    tree, targets, _ = problem
    chosen = ScaleSettings(*settings)
    residual = empty((1, len(targets.column)))
    write_marker_residuals(tree, targets, points, pose[0], pose[1], residual)
    for i in range(len(scale)):
        of_node = residual[0, targets.start[i] : targets.start[i + 1]]
        seen = np.sort(of_node[np.isfinite(of_node)])
        if len(seen) == 0:
            continue
        usual = seen[(len(seen) - 1) // 2] / chosen.median_length
        step = chosen.gain if usual > scale[i] else -chosen.gain
        scale[i] = max(scale[i] * np.exp(step), chosen.least)
    if chosen.outlier > 0.0 and len(targets.column) > 0:
        _write_softness(targets, scale, chosen)
