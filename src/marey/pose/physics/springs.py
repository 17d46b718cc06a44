"""Springs between a skeleton and a recording, which determine its pose at rest."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from marey.anatomy import names as vrm
from marey.anatomy.masses import Masses, estimate_masses
from marey.articulated.tables import IDENTITY_QUATERNION, Nodes
from marey.articulated.targets import (
    Recording,
    TargetNames,
    as_c_float64,
    node_of_target,
    recording_of,
    start_of_nodes,
)
from marey.errors import DataError
from marey.numerics import Array, Float, Int, geometry
from marey.pose.contact.holds import Hold
from marey.pose.gauss_newton.fit import GaussNewtonSolver
from marey.pose.options import GaussNewtonOptions, PhysicsOptions
from marey.pose.physics.soles import Soles, find_soles
from marey.pose.trace import PoseTrace
from marey.skeleton import Skeleton
from marey.take import Take
from marey.tree import children_of

if TYPE_CHECKING:
    from marey.articulated.targets_kernel import Targets


OPEN_JOINT_INFORMATION = 100.0
"""Information of the markers on a joint's rotation, in 1/rad^2, below which the neutral
posture pulls with full torque (a standard deviation of 0.1 rad); above twice this value
it does not pull. Raising it pulls joints that markers determine. Chosen by hand."""

NEUTRAL_BLEND_S = 0.5
"""Time constant with which an unseen joint leaves its last seen rotation for the
neutral posture, in seconds. Raising it keeps unseen joints longer. Chosen by hand."""

DOWN = np.array([0.0, 0.0, -1.0])


@dataclass(frozen=True, slots=True, eq=False)
class SpringSystem:
    """A skeleton, its springs in every frame, and initial poses.

    Weights are those of the Gauss-Newton fit: one over variances. Multiplied by
    `force_unit`, a weight in 1/m^2 is a stiffness in N/m, and a weight in 1/rad^2 is a
    stiffness in N m/rad.
    """

    tracker: GaussNewtonSolver
    """The robust Gauss-Newton fit."""

    options: PhysicsOptions
    initial: PoseTrace
    """Poses of the robust fit."""

    masses: Masses
    force_unit: float
    targets: "Targets"
    """Markers and sensors, markers that pull a second body, and holds, by node."""

    points: Float[Array, "frame column 3"]
    """Recorded markers, then targets of holds, in metres; NaN where a spring is off."""

    sensors: Float[Array, "frame sensor 4 4"]
    hold_pairs: Int[Array, "pair 3"]
    """Holds between two bodies: both targets, and the column of their midpoint."""

    neutral: Float[Array, "frame node 4"]
    """The posture that torques lead to; for an unseen joint near its last rotation."""

    neutral_weight: Float[Array, "frame block"]
    """Weight of the neutral posture: zero for the root's position, then by node."""

    soles: Soles
    has_contact: bool
    """Whether a ground was found, if it was asked for."""

    @property
    def nodes(self) -> Nodes:
        """The nodes of the skeleton: its root, ball joints and hinges."""
        return self.tracker.nodes

    @property
    def free_points(self) -> Float[Array, "frame column 3"]:
        """The points without the midpoints of holds, which depend on the pose."""
        points = self.points.copy()
        points[:, self.hold_pairs[:, 2]] = np.nan
        return points

    @property
    def gravity(self) -> Float[Array, "node 3"]:
        """Force of gravity on every node, in newtons by `force_unit`."""
        newtons = self.masses.mass * self.options.gravity
        return np.asarray(newtons[:, None] * DOWN / self.force_unit)


def build_spring_system(
    skeleton: Skeleton, take: Take, options: PhysicsOptions
) -> SpringSystem:
    """Return the springs between a skeleton and a recording.

    A robust Gauss-Newton fit gives the initial poses. Springs that are longer than
    `options.cutoff` there are off.

    Raises:
        DataError: If the take has, or ever sees, none of the skeleton's markers and
            sensors, or a hold names a joint that does not exist.
    """
    fit_options = GaussNewtonOptions(
        marker_sd=options.marker_sd,
        sensor_sd=options.sensor_sd,
        rotation_sd=options.rotation_sd,
        weights=options.weights,
        limits=options.limits,
        both_ways=options.both_ways,
    )
    tracker = GaussNewtonSolver(skeleton, TargetNames.of(take), take.rate, fit_options)
    recording = recording_of(take)
    initial = tracker.solve_take(recording)
    motion = tracker.motion(take, initial)
    soles, plants = find_soles(motion, tracker.nodes, take, options)
    table = _SpringTable(tracker)
    table.add_shared_markers(options.shared_within)
    points, sensors = _cut_far_targets(tracker, recording, initial, options.cutoff)
    points, hold_pairs = table.add_holds((*options.holds, *plants), take, points)
    masses = estimate_masses(skeleton, tracker.nodes)
    force_unit = options.stiffness * options.marker_sd**2
    openness = _openness(initial, options)
    torque = options.torque * masses.subtree_inertia[1:] / force_unit
    neutral = _neutral_posture(tracker, take, initial, options)
    return SpringSystem(
        tracker=tracker,
        options=options,
        initial=initial,
        masses=masses,
        force_unit=force_unit,
        targets=table.targets,
        points=as_c_float64(points),
        sensors=sensors,
        hold_pairs=hold_pairs,
        neutral=_blend_unseen(neutral, initial, openness, take.rate),
        neutral_weight=np.concatenate([[0.0, 0.0], torque]) * openness,
        soles=soles,
        has_contact=options.ground == "none" or len(soles.node) + len(plants) > 0,
    )


def _cut_far_targets(
    tracker: GaussNewtonSolver, recording: Recording, initial: PoseTrace, cutoff: float
) -> Recording:
    """Return markers and sensors; NaN where springs are longer than the cutoff.

    Springs of physics do not depend on confidences.
    """
    points, sensors = recording[0][..., :3].copy(), recording[1].copy()
    column = tracker.matches.column
    is_far = tracker.marker_residuals(points, initial) > cutoff
    points[:, column] = np.where(is_far[..., None], np.nan, points[:, column])
    column = tracker.matches.sensor_column
    residual = tracker.sensor_poses(initial) - sensors[:, column]
    is_far = np.linalg.norm(residual[..., :3, 3], axis=-1) > cutoff
    sensors[:, column] = np.where(is_far[..., None, None], np.nan, sensors[:, column])
    return points, sensors


def _neutral_posture(
    tracker: GaussNewtonSolver, take: Take, trace: PoseTrace, options: PhysicsOptions
) -> Float[Array, "frame node 4"]:
    """Return rotations of the posture without torque: a reference, or hanging arms."""
    skeleton = tracker.skeleton
    if options.reference is not None:
        return tracker.reference_rotations(take, trace, options)[0]
    wxyz = np.tile(IDENTITY_QUATERNION, (1, skeleton.n_joints, 1))
    for joint, name in enumerate(skeleton.names):
        if name in vrm.both_sides(vrm.UPPER_ARM):
            wxyz[0, joint] = _rotation_to_down(skeleton, joint)
    return np.tile(tracker.nodes.node_rotations(wxyz), (len(trace.q), 1, 1))


def _rotation_to_down(skeleton: Skeleton, joint: int) -> Float[Array, " 4"]:
    """Return the rotation that points a bone down."""
    children = children_of(skeleton.parent, joint)
    bone = skeleton.offset[children].sum(axis=0)
    axis = np.cross(bone, DOWN)
    sine = float(np.linalg.norm(axis))
    if not sine > 1e-9 * float(np.linalg.norm(bone)):
        return IDENTITY_QUATERNION
    angle = np.arctan2(sine, float(bone @ DOWN))
    return np.asarray(geometry.quat_exp(angle / sine * axis))


def _openness(
    initial: PoseTrace, options: PhysicsOptions
) -> Float[Array, "frame block"]:
    """Return the share of the neutral torque: 0 where markers determine a joint."""
    if options.pull == "all":
        return np.ones_like(initial.information)
    share = 2.0 - initial.information / OPEN_JOINT_INFORMATION
    return np.asarray(share.clip(0.0, 1.0))


def _blend_unseen(
    neutral: Float[Array, "frame node 4"],
    initial: PoseTrace,
    openness: Float[Array, "frame block"],
    rate: float,
) -> Float[Array, "frame node 4"]:
    """Return the neutral posture, reached exponentially by joints that go out of sight.

    A joint that is unseen for a moment has not gone far; without this it would jump to
    the neutral posture and back.
    """
    blended, frames = neutral.copy(), np.arange(len(neutral))
    for node in range(1, neutral.shape[1]):
        seen = np.flatnonzero(openness[:, node + 1] == 0.0)
        if not 0 < len(seen) < len(neutral):
            continue
        following = np.searchsorted(seen, frames)
        after = seen[np.minimum(following, len(seen) - 1)]
        before = seen[np.maximum(following - 1, 0)]
        n_unseen = np.minimum(np.abs(after - frames), np.abs(frames - before))
        share = 1.0 - np.exp(-n_unseen / rate / NEUTRAL_BLEND_S)
        blended[:, node] = geometry.quat_slerp(
            initial.q[:, node], neutral[:, node], share
        )
    return blended


class _SpringTable:
    """The table of targets while springs are added to it."""

    rows: list[tuple[int, Array, int, float]]
    """Node, offset in the node, column of the target position, and weight."""

    def __init__(self, tracker: GaussNewtonSolver) -> None:
        targets: Targets = tracker.targets
        self.skeleton, self.nodes, self.base = tracker.skeleton, tracker.nodes, targets
        node = node_of_target(targets.start).tolist()
        column, weight = targets.column.tolist(), targets.weight.tolist()
        self.rows = list(zip(node, targets.position, column, weight, strict=True))
        self.marker_joint = self.skeleton.marker_joint[tracker.matches.marker]
        self.marker_weight = tracker.options.marker_sd**-2

    def add_shared_markers(self, within: float) -> None:
        """Let markers near a joint pull both bodies, each at its rest position."""
        rest = self.skeleton.rest()[:, :3, 3]
        for k, marker_joint in enumerate(self.marker_joint):
            node, offset, column, weight = self.rows[k]
            position = rest[marker_joint] + offset
            position = position - self.nodes.joint_position[marker_joint]
            distance = np.linalg.norm(position - rest, axis=-1)
            for joint in np.flatnonzero(distance[1:] < within) + 1:
                sides = (int(self.skeleton.parent[joint]), int(joint))
                others = [j for j in sides if self.nodes.node_of_joint[j] != node]
                if len(others) == 1:
                    self._add(others[0], position - rest[others[0]], column, weight)

    def _add(self, joint: int, offset: Array, column: int, weight: float) -> None:
        in_node = self.nodes.joint_position[joint] + offset
        node = int(self.nodes.node_of_joint[joint])
        self.rows.append((node, in_node, column, weight))

    def add_holds(
        self, holds: Sequence[Hold], take: Take, points: Array
    ) -> tuple[Float[Array, "frame column 3"], Int[Array, "pair 3"]]:
        """Add holds; return the points with their targets, and holds between bodies."""
        pairs = []
        for hold in holds:
            column = points.shape[1]
            points = np.concatenate([points, _hold_path(hold, take)[:, None]], axis=1)
            weight = hold.strength * self.marker_weight
            if hold.target_joint:
                # Each body is drawn to the midpoint by twice the spring: equal force.
                weight *= 2.0
                pairs.append((len(self.rows) + 1, len(self.rows), column))
                self._add(self._joint(hold.target_joint), hold.target, column, weight)
            self._add(self._joint(hold.joint), hold.point, column, weight)
        # The table is sorted by node.
        order = np.argsort([row[0] for row in self.rows], kind="stable")
        self.rows = [self.rows[i] for i in order]
        table = np.array(pairs, dtype=np.int64).reshape(-1, 3)
        table[:, :2] = np.argsort(order)[table[:, :2]]
        return points, table

    def _joint(self, name: str) -> int:
        if name not in self.skeleton.names:
            raise DataError(
                "hold",
                found=repr(name),
                needed=f"one of {', '.join(self.skeleton.names)}",
            )
        return self.skeleton.index(name)

    @property
    def targets(self) -> "Targets":
        """The table that the kernels read; all springs are linear."""
        node = np.array([row[0] for row in self.rows], dtype=np.int64)
        return self.base._replace(
            start=start_of_nodes(node, len(self.base.start) - 1),
            column=np.array([row[2] for row in self.rows], dtype=np.int64),
            position=np.array([row[1] for row in self.rows]).reshape(-1, 3),
            weight=np.array([row[3] for row in self.rows], dtype=float),
            softness=np.zeros(len(self.rows)),
            sensor_softness=np.zeros_like(self.base.sensor_softness),
        )


def _hold_path(hold: Hold, take: Take) -> Float[Array, "frame 3"]:
    """Return a hold's target in the world, in metres; NaN while it is off.

    The path of a hold between two bodies only says when it is on.
    """
    if hold.target.ndim > 1 and len(hold.target) != take.n_frames:
        raise DataError(
            f"hold of {hold.joint}",
            found=f"{len(hold.target)} positions",
            needed=f"one, or {take.n_frames}",
        )
    target = np.zeros(3) if hold.target_joint else hold.target
    is_on = (take.times >= hold.start) & (take.times <= hold.end)
    return np.where(is_on[:, None], target, np.nan)
