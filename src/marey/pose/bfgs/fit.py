"""Poses by BFGS: the inverse kinematics of Bodenheimer1997."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from marey.articulated.tables import Nodes
from marey.articulated.targets import Worn, frame_order
from marey.motion import Motion
from marey.numerics import geometry
from marey.pose.findings import stretches
from marey.pose.gauss_newton.driver import LOST, Names, dressed
from marey.pose.options import BfgsOptions as BfgsOptions
from marey.pose.options import options_of
from marey.pose.reference_prior import astray, bridged, lead, motion_of, plain
from marey.report import Finding
from marey.skeleton import Skeleton
from marey.take import Take

if TYPE_CHECKING:
    from marey.articulated.targets_kernel import Targets

Array = np.ndarray
Poses = tuple[
    Float[Array, "frame node 4"], Float[Array, "frame 3"], Float[Array, "frame number"]
]
"""Rotations of the nodes, places of the root; fitness, weight seen and steps."""

UNSEEN = "nothing is seen in {frames}: the pose there is the last one found"
ASTRAY = (
    "the skeleton does not fit in {frames}: look for gross errors, and have them "
    "ignored, or for swapped labels"
)


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """A motion, and what it took to find it."""

    motion: Motion
    fitness: Float[Array, " frame"]
    """What is left of the fitness, in squared standard deviations."""

    seen: Float[Array, " frame"]
    """Weight of all positions seen; 0 where nothing was."""

    steps: Int[Array, " frame"]
    """Iterations of BFGS, those begun afresh included."""


def solve(
    skeleton: Skeleton, take: Take, **options: Any
) -> tuple[Motion, tuple[Finding, ...]]:
    """Return the motion of least fitness in every frame.

    Args:
        skeleton: A skeleton with markers or sensors.
        take: The recording; markers and sensors are matched by label.
        **options: Fields of `BfgsOptions`.

    Returns:
        The motion, and what was found about it; `fit` says more.

    Raises:
        DataError: If the take has, or ever sees, none of the skeleton's markers and
            sensors.
        OptionError: If an option is not known or out of range.
    """
    fitted = fit(skeleton, take, **options)
    return fitted.motion, _findings(fitted)


def fit(skeleton: Skeleton, take: Take, **options: Any) -> Fitted:
    """Return the motion of least fitness, with the iterations of every frame.

    Implements Bodenheimer1997, Sec. 3.2. The fitness of a frame sums, over markers and
    sensors, the squared distance of each position, of two vectors of each sensor's
    orientation, and of joint angles beyond their limits, each by its weight. BFGS
    makes it least, begun where the last frame ended. Frames are visited from the first
    good one onward, then backwards from there.

    The slope along the angle of joint i sums over all that it carries: 2 w (P - P~) .
    (u_i x (P - o_i)), the same for both orientation vectors, and 2 w C dC/dangle of
    its own limits. The paper prints u_j, the axis of another joint, leaves the dots
    and the derivative of the penalty away, and does not say what d_ji is.

    Departures: weights are one over variances, since metres and unit vectors do not
    add; the unknowns of a ball are turns away from the last frame's quaternion, which
    the paper wishes for, or XYZ Euler angles as printed; limits are those of swing and
    twist, which do not depend on the order of axes; what is learnt of the curvature
    carries over from frame to frame; and frames that do not fit are begun afresh.
    Outliers are not weighed down: tag them, and have them ignored.

    With a reference, all frames are fitted a second time, each from the reference as
    matched in time, and drawn to it a little. An error then stays in its frame. Where
    that start leads astray, the frame begins where it was without the reference.
    """
    chosen = options_of(BfgsOptions, options)
    run = _Run(*dressed(skeleton, Names.of(take), chosen), chosen)
    points, sensors = plain(take.points), plain(take.T_world_sensor)
    order = frame_order(run.worn, points, sensors)
    q, root, info = run.follow(points, sensors, order)
    if chosen.reference is not None:
        motion = motion_of(skeleton, take, run.nodes, root, q)
        wish = lead(motion, run.nodes, chosen)
        q, root, info = run.led(points, sensors, (q, root, info), *wish)
    return Fitted(
        motion_of(skeleton, take, run.nodes, root, q),
        info[:, 0],
        info[:, 1],
        info[:, 2].astype(np.int64),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Run:
    """A skeleton and its targets, ready for BFGS."""

    nodes: Nodes
    worn: Worn
    targets: "Targets"
    options: BfgsOptions

    def follow(
        self, points: Array, sensors: Array, order: Int[Array, " frame"]
    ) -> Poses:
        """Return the poses of frames that begin where the last one ended."""
        nothing = np.empty((len(points), len(self.nodes.tree.parent), 4))
        poses = nothing.copy(), np.empty((len(points), 3)), np.zeros((len(points), 3))
        forward = len(order) - int(order[0])
        backward = np.concatenate([order[:1], order[forward:]])
        for part in (order[:forward], backward)[: 1 + (len(backward) > 1)]:
            self._search(points, sensors, part, poses, nothing, None, poses)
        return geometry.quat_continuous(poses[0]), *poses[1:]

    def led(
        self,
        points: Array,
        sensors: Array,
        alone: Poses,
        asked: Float[Array, "frame node 4"],
        worth: Float[Array, " node"],
    ) -> Poses:
        """Return the poses of frames that begin at a reference and are drawn to it.

        Args:
            points: Markers of the take, in metres.
            sensors: Sensors of the take.
            alone: The poses without the reference.
            asked: Rotations of the reference.
            worth: What they are worth, in 1 / rad^2.
        """
        best = asked.copy(), alone[1].copy(), np.zeros_like(alone[2])
        again = alone[0].copy(), alone[1].copy(), np.zeros_like(alone[2])
        every = np.arange(len(points))
        self._search(points, sensors, every, (asked, alone[1]), asked, worth, best)
        doubtful = astray(best[2][:, 0], alone[2][:, 0])
        self._search(points, sensors, doubtful, alone[:2], asked, worth, again)
        better = doubtful[again[2][doubtful, 0] < best[2][doubtful, 0]]
        steps = alone[2][:, 2] + best[2][:, 2] + again[2][:, 2]
        for to, of in zip(best, again, strict=True):
            to[better] = of[better]
        best[2][:, 2] = steps
        q = bridged(self.nodes, self.targets, points, sensors, best[0], asked)
        return q, *best[1:]

    def _search(
        self,
        points: Array,
        sensors: Array,
        order: Int[Array, " some"],
        starts: tuple[Array, ...],
        asked: Float[Array, "frame node 4"],
        worth: Float[Array, " node"] | None,
        out: Poses,
    ) -> None:
        """Fit frames: by a reference from their starts, else each from the last."""
        # numba is slow to import
        from marey.articulated.kinematics_kernel import workspace
        from marey.pose.bfgs.bfgs_kernel import follow, search_of
        from marey.pose.bfgs.fitness_kernel import Wishes, slopes_of

        tree, chosen = self.nodes.tree, self.options
        slopes = slopes_of(tree)
        prior = np.zeros(len(tree.parent)) if worth is None else worth
        follow(
            tree,
            self.targets,
            Wishes(chosen.rotation == "euler", chosen.limit_sd**-2, prior),
            slopes,
            search_of(int(slopes.start[-1])),
            workspace(tree, len(self.worn.marker), len(self.worn.sensor)),
            points,
            sensors,
            order,
            (starts[1], starts[0]),
            asked,
            worth is not None,
            chosen.steps,
            chosen.tolerance,
            *out,
        )


def _findings(fitted: Fitted) -> tuple[Finding, ...]:
    """Return the frames in which nothing was seen, and those that do not fit."""
    lost = fitted.fitness > LOST**2 * fitted.seen
    return (
        *stretches("pose-unseen", fitted.seen == 0.0, UNSEEN),
        *stretches("pose-lost", lost, ASTRAY),
    )
