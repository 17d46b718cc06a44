"""Poses by BFGS: the inverse kinematics of Bodenheimer1997."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from marey.articulated.targets import (
    Recording,
    TargetNames,
    recording_of,
    split_order,
)
from marey.motion import Motion
from marey.numerics import Array, Float, Int
from marey.options import options_from
from marey.pose.both_ways import bridge_gaps, choose_by_limb, reverse_recording
from marey.pose.findings import warn_of_runs
from marey.pose.options import MAX_RMS_RESIDUAL_M, BfgsOptions, GaussNewtonOptions
from marey.pose.solver import PoseSolver
from marey.pose.trace import PoseTrace
from marey.report import Finding
from marey.skeleton import Skeleton
from marey.take import Take

UNSEEN_MESSAGE = "nothing is seen in {frames}: the pose there is a guess"
LOST_MESSAGE = (
    "the skeleton does not fit in {frames}: look for swapped labels, "
    "or mask gross errors with `ignore`"
)


@dataclass(frozen=True, slots=True, eq=False)
class BfgsFit:
    """A motion fitted by BFGS, with fitness and iterations of every frame."""

    motion: Motion
    fitness: Float[Array, " frame"]
    """Least fitness found, in squared standard deviations."""

    seen: Float[Array, " frame"]
    """Weight of all positions seen, in 1 / m^2; 0 where there is none."""

    steps: Int[Array, " frame"]
    """Iterations of BFGS, those of other starts included."""


def solve(
    skeleton: Skeleton, take: Take, **options: Any
) -> tuple[Motion, tuple[Finding, ...]]:
    """Return the motion of least fitness in every frame.

    Args:
        skeleton: A skeleton with markers or sensors.
        take: The recording; markers and sensors are matched by label.
        **options: Fields of `BfgsOptions`.

    Returns:
        The motion, and the findings about it; `fit` returns more numbers.

    Raises:
        DataError: If none of the skeleton's markers and sensors is in the take, or
            ever seen.
        OptionError: If an option is not known or out of range.
    """
    fitted = fit_bfgs(skeleton, take, **options)
    return fitted.motion, _findings(fitted)


def fit_bfgs(skeleton: Skeleton, take: Take, **options: Any) -> BfgsFit:
    r"""Return the motion of least fitness, with the iterations of every frame.

    Implements Bodenheimer1997, Sec. 3.2. The fitness of a frame is the weighted sum of
    squares of the residuals of positions, of two orientation vectors of each sensor and
    of joint angles beyond their limits (`fitness_kernel` has the formula). BFGS with a
    line search minimises it, started where the last frame ended. Frames are visited
    from the first good one to the end, then backwards from there.

    The gradient along the angle of joint i sums over its subtree

    .. math:: 2 w (P - \tilde P) \cdot (u_i \times (P - o_i)),

    the same for both orientation vectors, and :math:`2 w C \, dC / d\alpha_i` of its
    own limits. The paper prints u_j, the axis of another joint, omits the dots and the
    derivative of the penalty, and does not define d_ji.

    Departures:

    - Weights are one over variances, because metres and unit vectors cannot be added.
    - The unknowns of a ball are rotation vectors from the last frame's quaternion,
      which the paper wishes for, or XYZ Euler angles as printed.
    - Limits are those of swing and twist, which do not depend on the order of axes.
    - The inverse Hessian of one frame is the first one of the next frame.
    - Frames that do not fit are started again from an initial pose.
    - The take is fitted in both directions of time (`both_ways`), because a limb may
      stay in a wrong minimum in one of them.

    Outliers keep their weight: mask them with `ignore`.

    With a reference, all frames are fitted a second time, each started from the
    reference as matched in time, and drawn to it. An error then stays in its frame.
    A frame that this makes worse starts at its pose without the reference.
    """
    chosen = options_from(BfgsOptions, options)
    solver = BfgsSolver(skeleton, TargetNames.of(take), chosen)
    recording = recording_of(take)
    trace = solver.fit_take(recording, take.rate)
    trace = solver.refine_with_reference(take, recording, trace, chosen)
    fitness, seen, _, steps = trace.info[:, :4].T
    return BfgsFit(solver.motion(take, trace), fitness, seen, steps.astype(np.int64))


class BfgsSolver(PoseSolver):
    """A skeleton and its targets, ready for BFGS."""

    def __init__(
        self, skeleton: Skeleton, names: TargetNames, options: BfgsOptions
    ) -> None:
        super().__init__(skeleton, names, options)
        self.options = options
        # Two orientation vectors per sensor: each has half the weight of a rotation,
        # which three of them measure.
        weight = self.targets.sensor_weight * [1.0, 2.0]
        self.targets = self.targets._replace(n_vectors=2, sensor_weight=weight)

    def fit_take(self, recording: Recording, rate: float) -> PoseTrace:
        """Return the poses of a take, in which limbs keep to the better direction."""
        forward = self.fit_in_order(recording)
        if not self.options.both_ways:
            return forward
        backward = self.fit_in_order(reverse_recording(recording)).reversed()
        n = len(self.nodes.tree.parent)
        prior = np.full(n + 1, rate / GaussNewtonOptions().drift ** 2)
        best = choose_by_limb(self, recording, (forward, backward), prior)
        # Limbs of both directions together are near a minimum, not in it.
        start = (best.q.copy(), np.zeros(n))
        self.run(recording, np.arange(len(best.q)), best, start)
        bridge_gaps(self, recording, forward, backward, best)
        best.info[:, 3] += forward.info[:, 3] + backward.info[:, 3]
        return best.continuous()

    def fit_in_order(self, recording: Recording) -> PoseTrace:
        """Return the poses of frames, each started where the last one ended."""
        order = self.frame_order(recording)
        trace = PoseTrace.empty(len(order), len(self.nodes.tree.parent))
        forward, backward = split_order(order)
        self.run(recording, forward, trace)
        if len(backward):
            self.run(recording, np.append(forward[:1], backward), trace)
        return trace.continuous()

    def run(
        self,
        recording: Recording,
        order: Int[Array, " some"],
        trace: PoseTrace,
        reference: tuple[Array, Array] | None = None,
    ) -> None:
        """Fit frames of a trace, from a reference or each from the frame before it."""
        # numba is slow to import
        from marey.pose.bfgs.bfgs_kernel import fit_frames
        from marey.pose.bfgs.fitness_kernel import FitnessTerms

        options, n = self.options, len(self.nodes.tree.parent)
        is_guided = reference is not None
        reference_q, prior = reference or (trace.q, np.zeros(n))
        fit_frames(
            self.problem,
            FitnessTerms(options.rotation == "euler", options.limit_sd**-2, prior),
            recording,
            order,
            reference_q,
            (is_guided, options.steps, options.tolerance, MAX_RMS_RESIDUAL_M),
            (trace.root, trace.q, trace.info),
        )


def _findings(fitted: BfgsFit) -> tuple[Finding, ...]:
    """Return the frames without any target, and those that do not fit."""
    lost = fitted.fitness > MAX_RMS_RESIDUAL_M**2 * fitted.seen
    return (
        *warn_of_runs("pose-unseen", fitted.seen == 0.0, UNSEEN_MESSAGE),
        *warn_of_runs("pose-lost", lost, LOST_MESSAGE),
    )
