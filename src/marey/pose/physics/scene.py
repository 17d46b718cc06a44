"""A figure hung on springs: all that decides where it comes to rest."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float, Int

from marey.anatomy.masses import Masses, masses_of
from marey.articulated.tables import IDENTITY, Nodes
from marey.articulated.targets import owners
from marey.errors import DataError
from marey.motion import Motion
from marey.numerics import geometry
from marey.pose.gauss_newton.driver import Follower, Names, Trace
from marey.pose.gauss_newton.fit import led_back
from marey.pose.options import GaussNewtonOptions
from marey.pose.physics.ground import Soles, ground_under
from marey.pose.physics.options import Hold, PhysicsOptions
from marey.pose.reference_prior import lead, motion_of, plain
from marey.skeleton import Skeleton
from marey.take import Take

if TYPE_CHECKING:
    from marey.articulated.targets_kernel import Targets

Array = np.ndarray

OPEN = 100.0
"""A joint that markers know worse than this, in 1 / rad^2, is open: 0.1 rad."""

EASE = 0.5
"""Seconds in which a joint out of sight goes most of the way to the neutral posture."""

DOWN = np.array([0.0, 0.0, -1.0])


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """A figure, its springs in every frame, and a first guess of its poses.

    Weights are those of the fits: one over variances. Times `unit` they are N/m, and
    what is worth 1 / rad^2 is N m / rad.
    """

    fit: Follower
    options: PhysicsOptions
    trace: Trace
    """Where an outlier-proof fit has the figure."""

    masses: Masses
    unit: float
    targets: "Targets"
    """Markers and sensors, then markers that pull a second body, then holds."""

    points: Float[Array, "frame column 3"]
    """The take's, and where holds are; NaN where a spring is off."""

    sensors: Float[Array, "frame sensor 4 4"]
    pairs: Int[Array, "pair 3"]
    """Holds between two bodies: both targets, and the column of their middle."""

    neutral: Float[Array, "frame node 4"]
    """The posture that torques lead to; that of an open joint near where it is seen."""

    worth: Float[Array, "frame block"]
    """What the neutral posture is worth: nothing for the root's place, then by node."""

    soles: Soles
    """What the ground bears."""

    grounded: bool
    """Whether a ground was found, where one was asked for."""

    @property
    def nodes(self) -> Nodes:
        """The turning parts of the skeleton."""
        return self.fit.nodes

    @property
    def pushes(self) -> Float[Array, "node 3"]:
        """Gravity on every node, in the unit of weight times metre."""
        weight = self.masses.mass * self.options.gravity
        return np.asarray(weight[:, None] * DOWN / self.unit)


def scene_of(skeleton: Skeleton, take: Take, options: PhysicsOptions) -> Scene:
    """Return the springs that a recording hangs a skeleton on.

    Raises:
        DataError: If the take has, or ever sees, none of the skeleton's markers and
            sensors, or a hold names a joint that is not there.
    """
    habits = GaussNewtonOptions(
        marker_sd=options.marker_sd,
        sensor_sd=options.sensor_sd,
        turn_sd=options.turn_sd,
        weights=options.weights,
        limits=options.limits,
    )
    fit = Follower(skeleton, Names.of(take), take.rate, habits)
    points, sensors = plain(take.points), plain(take.T_world_sensor)
    trace = led_back(fit, fit.through(points, sensors))
    masses = masses_of(skeleton, fit.nodes)
    unit = options.stiffness * options.marker_sd**2
    springs = _Springs(fit, skeleton)
    springs.share(options.shared_within)
    off = _far_columns(fit, points, trace, options.cutoff)
    points = np.where(off[..., None], np.nan, points)
    motion = motion_of(skeleton, take, fit.nodes, trace.root, trace.q)
    soles, plants = ground_under(motion, fit.nodes, take, options)
    points, pairs = springs.hold((*options.holds, *plants), take, points)
    opened = _openness(trace, options)
    worth = np.concatenate([[0.0, 0.0], options.torque * masses.carried[1:] / unit])
    neutral = _neutral(motion, fit, options)
    return Scene(
        fit=fit,
        options=options,
        trace=trace,
        masses=masses,
        unit=unit,
        targets=springs.targets,
        points=plain(points),
        sensors=_near_sensors(fit, sensors, trace, options.cutoff),
        pairs=pairs,
        neutral=_eased(neutral, trace, opened, take.rate),
        worth=worth * opened,
        soles=soles,
        grounded=options.ground == "none" or len(soles.node) + len(plants) > 0,
    )


def _far_columns(
    fit: Follower, points: Array, trace: Trace, cutoff: float
) -> Bool[Array, "frame column"]:
    """Return the markers whose springs would be longer than they may be."""
    off = np.zeros(points.shape[:2], dtype=bool)
    off[:, fit.worn.column] = fit.away(points, trace) > cutoff
    return off


def _near_sensors(
    fit: Follower, sensors: Array, trace: Trace, cutoff: float
) -> Float[Array, "frame sensor 4 4"]:
    """Return the sensors, those too far from their place unseen."""
    if not len(fit.worn.sensor) or cutoff == np.inf:
        return sensors
    sensors, column = sensors.copy(), fit.worn.sensor_column
    away = placed_sensors(fit, trace.root, trace.q) - sensors[:, column]
    far = np.linalg.norm(away[..., :3, 3], axis=-1) > cutoff
    sensors[:, column] = np.where(far[..., None, None], np.nan, sensors[:, column])
    return sensors


def placed_sensors(
    fit: Follower, root: Float[Array, "frame 3"], q: Float[Array, "frame node 4"]
) -> Float[Array, "frame sensor 4 4"]:
    """Return where poses have the sensors worn."""
    skeleton, mine = fit.skeleton, fit.worn.sensor
    T_world_root = geometry.transform(geometry.matrix_from_quat(q[:, 0]), root)
    T = skeleton.forward(T_world_root, fit.nodes.rotations(q))
    return np.asarray(T[:, skeleton.sensor_joint[mine]] @ skeleton.T_joint_sensor[mine])


def _neutral(
    motion: Motion, fit: Follower, options: PhysicsOptions
) -> Float[Array, "frame node 4"]:
    """Return the posture that torques lead to: a reference's, or arms at the side."""
    skeleton = motion.skeleton
    if options.reference is not None:
        return lead(motion, fit.nodes, options)[0]
    wxyz = np.tile(IDENTITY, (1, skeleton.n_joints, 1))
    for joint, name in enumerate(skeleton.names):
        if name in ("LeftUpperArm", "RightUpperArm"):
            wxyz[0, joint] = _hanging(skeleton, joint)
    q = fit.nodes.of_rotations(wxyz)
    return np.tile(q, (motion.n_frames, 1, 1))


def _hanging(skeleton: Skeleton, joint: int) -> Float[Array, " 4"]:
    """Return the rotation that lets a bone hang down."""
    children = np.flatnonzero(skeleton.parent == joint)
    bone = skeleton.offset[children].sum(axis=0)
    length = float(np.linalg.norm(bone))
    axis = np.cross(bone, DOWN)
    sine = float(np.linalg.norm(axis))
    if not sine > 1e-9 * length:
        return IDENTITY
    angle = np.arctan2(sine, float(bone @ DOWN))
    return np.asarray(geometry.quat_exp(angle / sine * axis))


def _openness(trace: Trace, options: PhysicsOptions) -> Float[Array, "frame block"]:
    """Return how much the neutral posture may pull: 0 where markers know better."""
    if options.pull == "all":
        return np.ones_like(trace.known)
    return np.asarray(np.clip(2.0 - trace.known / OPEN, 0.0, 1.0))


def _eased(
    neutral: Float[Array, "frame node 4"],
    trace: Trace,
    opened: Float[Array, "frame block"],
    rate: float,
) -> Float[Array, "frame node 4"]:
    """Return the postures to lead to: open joints leave theirs little by little.

    A joint that is out of sight for a moment has not gone far; without this it would
    jump to the neutral posture and back.
    """
    eased = neutral.copy()
    for node in range(1, neutral.shape[1]):
        shut = np.flatnonzero(opened[:, node + 1] == 0.0)
        if not 0 < len(shut) < len(neutral):
            continue
        frames = np.arange(len(neutral))
        after = np.searchsorted(shut, frames)
        next_shut = shut[np.minimum(after, len(shut) - 1)]
        last_shut = shut[np.maximum(after - 1, 0)]
        away = np.minimum(np.abs(next_shut - frames), np.abs(frames - last_shut))
        share = 1.0 - np.exp(-away / rate / EASE)
        eased[:, node] = geometry.quat_slerp(trace.q[:, node], neutral[:, node], share)
    return eased


class _Springs:
    """The table of targets while springs are added to it."""

    def __init__(self, fit: Follower, skeleton: Skeleton) -> None:
        self.skeleton, self.nodes = skeleton, fit.nodes
        self.base = fit.targets
        self.node = owners(fit.targets.start).tolist()
        self.place = list(fit.targets.place)
        self.column = fit.targets.column.tolist()
        self.weight = fit.targets.weight.tolist()
        self.marker_joint = skeleton.marker_joint[fit.worn.marker]
        self.usual = fit.options.marker_sd**-2

    def share(self, within: float) -> None:
        """Let markers near a joint pull both bodies, each where it is at rest."""
        skeleton, rest = self.skeleton, self.skeleton.rest()[:, :3, 3]
        for k, joint in enumerate(self.marker_joint):
            at = rest[joint] + self.place[k] - self.nodes.place[joint]
            for j in range(1, skeleton.n_joints):
                above = int(skeleton.parent[j])
                sides = {int(self.nodes.of_joint[i]): i for i in (above, j)}
                near = np.linalg.norm(at - rest[j]) < within
                if not near or self.node[k] not in sides or len(sides) < 2:
                    continue
                (other,) = (i for node, i in sides.items() if node != self.node[k])
                self._add(other, at - rest[other], self.column[k], self.weight[k])

    def _add(self, joint: int, place: Array, column: int, weight: float) -> None:
        self.node.append(int(self.nodes.of_joint[joint]))
        self.place.append(self.nodes.place[joint] + place)
        self.column.append(column)
        self.weight.append(weight)

    def hold(
        self, holds: Sequence[Hold], take: Take, points: Array
    ) -> tuple[Float[Array, "frame column 3"], Int[Array, "pair 3"]]:
        """Add the holds; return the points with theirs, and those between bodies."""
        pairs = []
        for hold in holds:
            column = points.shape[1]
            if hold.to.ndim > 1 and len(hold.to) != len(points):
                raise DataError(
                    f"hold of {hold.joint}",
                    found=f"{len(hold.to)} places",
                    needed=f"one, or {len(points)}",
                )
            there = np.where(hold.other, 0.0, hold.to)
            on = (take.times >= hold.start) & (take.times <= hold.end)
            path = np.where(on[:, None], there, np.nan)
            points = np.concatenate([points, path[:, None]], axis=1)
            weight = hold.strength * self.usual
            self._add(self._joint(hold.joint), hold.point, column, weight)
            if hold.other:
                # Each is drawn to the middle with twice the spring: the same force.
                self.weight[-1] *= 2.0
                self._add(self._joint(hold.other), hold.to, column, self.weight[-1])
                pairs.append((len(self.node) - 2, len(self.node) - 1, column))
        return points, self._sorted(np.array(pairs, dtype=np.int64).reshape(-1, 3))

    def _joint(self, name: str) -> int:
        if name not in self.skeleton.names:
            raise DataError(
                "hold",
                found=repr(name),
                needed=f"one of {', '.join(self.skeleton.names)}",
            )
        return self.skeleton.index(name)

    def _sorted(self, pairs: Int[Array, "pair 3"]) -> Int[Array, "pair 3"]:
        """Put the targets in the order of nodes; return the pairs with new numbers."""
        order = np.argsort(self.node, kind="stable")
        moved = np.empty(len(order), dtype=np.int64)
        moved[order] = np.arange(len(order))
        pairs[:, :2] = moved[pairs[:, :2]]
        for name in ("node", "place", "column", "weight"):
            setattr(self, name, [getattr(self, name)[i] for i in order])
        return pairs

    @property
    def targets(self) -> "Targets":
        """The table that the kernels read, all springs plain."""
        count = np.bincount(self.node, minlength=len(self.base.start) - 1)
        return self.base._replace(
            start=np.concatenate([[0], np.cumsum(count)]).astype(np.int64),
            column=np.array(self.column, dtype=np.int64),
            place=np.array(self.place).reshape(-1, 3),
            weight=np.array(self.weight, dtype=float),
            soft=np.zeros(len(self.node)),
            sensor_soft=np.zeros_like(self.base.sensor_soft),
        )
