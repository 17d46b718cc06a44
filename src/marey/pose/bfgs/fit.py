"""Poses by BFGS: the inverse kinematics of Bodenheimer1997."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from marey.articulated.tables import Nodes
from marey.articulated.targets import TargetMatches, frame_order
from marey.motion import Motion
from marey.numerics import geometry
from marey.options import options_from
from marey.pose.findings import warn_of_runs
from marey.pose.gauss_newton.driver import TargetNames, prepare_targets
from marey.pose.options import MAX_RMS_RESIDUAL_M
from marey.pose.options import BfgsOptions as BfgsOptions
from marey.pose.reference_prior import (
    as_c_float64,
    blend_reference_across_gaps,
    make_motion,
    reference_rotations,
    refine_with_reference,
)
from marey.pose.trace import PoseTrace
from marey.report import Finding
from marey.skeleton import Skeleton
from marey.take import Take

if TYPE_CHECKING:
    from marey.articulated.targets_kernel import Targets

Array = np.ndarray

UNSEEN_MESSAGE = "nothing is seen in {frames}: the pose there is the last one found"
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
    fitted = fit(skeleton, take, **options)
    return fitted.motion, _findings(fitted)


def fit(skeleton: Skeleton, take: Take, **options: Any) -> BfgsFit:
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

    Departures: weights are one over variances, since metres and unit vectors do not
    add; the unknowns of a ball are rotation vectors from the last frame's quaternion,
    which the paper wishes for, or XYZ Euler angles as printed; limits are those of
    swing and twist, which do not depend on the order of axes; the inverse Hessian
    carries over from frame to frame; and frames that do not fit are started again from
    an initial pose. Outliers keep their weight: mask them with `ignore`.

    With a reference, all frames are fitted a second time, each started from the
    reference as matched in time, and drawn to it. An error then stays in its frame.
    A frame that this makes worse starts at its pose without the reference.
    """
    chosen = options_from(BfgsOptions, options)
    solver = _BfgsSolver(*bfgs_targets(skeleton, TargetNames.of(take), chosen), chosen)
    points, sensors = as_c_float64(take.points), as_c_float64(take.T_world_sensor)
    order = frame_order(solver.matches, points, sensors)
    trace = solver.fit_in_order(points, sensors, order)
    if chosen.reference is not None:
        motion = make_motion(skeleton, take, solver.nodes, trace.root, trace.q)
        reference = reference_rotations(motion, solver.nodes, chosen)
        trace = solver.refine_with_reference(points, sensors, trace, *reference)
    return BfgsFit(
        make_motion(skeleton, take, solver.nodes, trace.root, trace.q),
        trace.info[:, 0],
        trace.info[:, 1],
        trace.info[:, 2].astype(np.int64),
    )


def bfgs_targets(
    skeleton: Skeleton, names: TargetNames, options: BfgsOptions
) -> tuple[Nodes, TargetMatches, "Targets"]:
    """Return what `prepare_targets` does, with two orientation vectors per sensor."""
    nodes, matches, targets = prepare_targets(skeleton, names, options)
    # A vector has half the weight of a rotation, which three of them measure.
    weight = targets.sensor_weight * [1.0, 2.0]
    return nodes, matches, targets._replace(n_vectors=2, sensor_weight=weight)


@dataclass(frozen=True, slots=True, eq=False)
class _BfgsSolver:
    """A skeleton and its targets, ready for BFGS."""

    nodes: Nodes
    matches: TargetMatches
    targets: "Targets"
    options: BfgsOptions

    def fit_in_order(
        self, points: Array, sensors: Array, order: Int[Array, " frame"]
    ) -> PoseTrace:
        """Return the poses of frames, each started where the last one ended."""
        trace = PoseTrace.empty(len(points), len(self.nodes.tree.parent), 3)
        n_forward = len(order) - int(order[0])
        self._run(points, sensors, order[:n_forward], trace)
        if n_forward < len(order):
            backward = np.concatenate([order[:1], order[n_forward:]])
            self._run(points, sensors, backward, trace)
        return PoseTrace(geometry.quat_continuous(trace.q), trace.root, trace.info)

    def refine_with_reference(
        self,
        points: Array,
        sensors: Array,
        alone: PoseTrace,
        reference_q: Float[Array, "frame node 4"],
        prior: Float[Array, " node"],
    ) -> PoseTrace:
        """Return the poses of frames that start at a reference and are drawn to it.

        Args:
            points: Markers of the take, in metres.
            sensors: Sensors of the take.
            alone: The poses without the reference.
            reference_q: Rotations of the reference.
            prior: Their information, in 1 / rad^2.
        """
        best, spent = refine_with_reference(
            lambda frames, trace: self._run(
                points, sensors, frames, trace, (reference_q, prior)
            ),
            alone,
            reference_q,
        )
        best.info[:, 2] = alone.info[:, 2] + spent[:, 2]
        q = blend_reference_across_gaps(
            self.nodes, self.targets, points, sensors, best.q, reference_q
        )
        return PoseTrace(q, best.root, best.info)

    def _run(
        self,
        points: Array,
        sensors: Array,
        order: Int[Array, " some"],
        trace: PoseTrace,
        reference: tuple[Array, Array] | None = None,
    ) -> None:
        """Fit frames of a trace: with a reference each where it is, else in turn."""
        # numba is slow to import
        from marey.articulated.kinematics_kernel import make_workspace
        from marey.pose.bfgs.bfgs_kernel import fit_frames
        from marey.pose.bfgs.fitness_kernel import FitnessTerms

        tree, chosen = self.nodes.tree, self.options
        work = make_workspace(tree, len(self.matches.marker), len(self.matches.sensor))
        reference_q, prior = reference or (trace.q, np.zeros(len(tree.parent)))
        fit_frames(
            (tree, self.targets, work),
            FitnessTerms(chosen.rotation == "euler", chosen.limit_sd**-2, prior),
            (points, sensors),
            order,
            reference_q,
            (reference is not None, chosen.steps, chosen.tolerance, MAX_RMS_RESIDUAL_M),
            (trace.root, trace.q, trace.info),
        )


def _findings(fitted: BfgsFit) -> tuple[Finding, ...]:
    """Return the frames without any target, and those that do not fit."""
    lost = fitted.fitness > MAX_RMS_RESIDUAL_M**2 * fitted.seen
    return (
        *warn_of_runs("pose-unseen", fitted.seen == 0.0, UNSEEN_MESSAGE),
        *warn_of_runs("pose-lost", lost, LOST_MESSAGE),
    )
