r"""Inverse kinematics: the least change of a motion that brings points to their goals.

In every frame the change :math:`x` of the root's position and of the joints' angles
minimises :math:`x^T M x` subject to :math:`J x = d`, where :math:`J` is the Jacobian of
the points, :math:`d` their distance to the goals, and :math:`x^T M x` the sum of
squared displacements of all joints. The solution with Lagrange multipliers
:math:`\lambda` is

.. math:: (J M^{-1} J^T)\, \lambda = d, \qquad x = M^{-1} J^T \lambda,

iterated with the Jacobian of the last pose (Gauss-Newton).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from marey.motion import Motion
from marey.numerics import Array, Bool, Float, Int, geometry
from marey.numerics.thresholds import LEVER_ARM_M
from marey.pose.contact.goals import PointGoals
from marey.pose.contact.points import ContactPoints
from marey.skeleton import Skeleton

MAX_ITERATIONS = 20
"""Most Gauss-Newton steps of a frame."""

TINY_CHANGE = 1e-6
"""Change of a step, in metres or radians, below which it is the last: convergence is
quadratic. Chosen by hand."""

RIDGE_ROUNDING = 1e-9
"""Ridge on the multipliers, relative to their diagonal: it keeps the system solvable
for points of one body, whose positions depend on each other."""

FRAMES_PER_CHUNK = 256
"""Frames that are solved at once; bounds the memory."""


@dataclass(frozen=True, slots=True, eq=False)
class RotationAxes:
    """The rotational degrees of freedom of a skeleton."""

    skeleton: Skeleton
    joint: Int[Array, " axis"]
    direction: Float[Array, "axis 3"]
    in_joint: Bool[Array, " axis"]
    """Whether the direction is in the joint's frame; otherwise in its parent's."""

    moves: Bool[Array, "axis joint"]
    """Which joints each rotation moves."""

    @classmethod
    def of(cls, skeleton: Skeleton) -> "RotationAxes":
        """Return three axes per ball joint, one per hinge, two per universal joint.

        The first axis of a universal joint is in its parent's frame, the second in its
        own.
        """
        rows: list[tuple[int, Array, bool]] = []
        for j in np.flatnonzero(skeleton.rotates).tolist():
            kind = skeleton.kind[j]
            first, second = skeleton.axes[j]
            if kind in ("root", "ball"):
                rows += [(j, axis, False) for axis in np.eye(3)]
            if kind == "hinge":
                rows.append((j, first, True))
            if kind == "universal":
                rows += [(j, first, False), (j, second, True)]
        is_descendant = np.eye(skeleton.n_joints, dtype=bool)
        for j, parent in enumerate(skeleton.parent):
            if parent >= 0:
                is_descendant[:, j] |= is_descendant[:, parent]
        joint, direction, in_joint = map(np.array, zip(*rows, strict=True))
        return cls(skeleton, joint, direction, in_joint, is_descendant[joint])

    def world_directions(
        self, T_world_joint: Float[Array, "frame joint 4 4"]
    ) -> Float[Array, "frame axis 3"]:
        """Return the unit axes of all angles in the world."""
        frame = np.where(self.in_joint, self.joint, self.skeleton.parent[self.joint])
        R = T_world_joint[:, frame, :3, :3].copy()
        R[:, frame < 0] = np.eye(3)
        return np.asarray(np.einsum("ftij,tj->fti", R, self.direction))

    def jacobian(
        self,
        T_world_joint: Float[Array, "frame joint 4 4"],
        positions: Float[Array, "frame point 3"],
        joint: Int[Array, " point"],
    ) -> Float[Array, "frame point 3 unknown"]:
        """Return derivatives (m/rad) of points by the root's position and by angles."""
        centres = T_world_joint[..., :3, 3][:, self.joint]
        lever = positions[:, :, None] - centres[:, None]
        by_angle = np.cross(self.world_directions(T_world_joint)[:, None], lever)
        by_angle = by_angle * self.moves[:, joint].T[None, :, :, None]
        by_root = np.broadcast_to(np.eye(3), (*positions.shape[:2], 3, 3))
        return np.concatenate([by_root, by_angle.swapaxes(-1, -2)], axis=-1)

    def displacement_cost(
        self, T_world_joint: Float[Array, "frame joint 4 4"]
    ) -> Float[Array, "frame unknown unknown"]:
        """Return the matrix M of the cost: squared displacements of all joints."""
        n, n_joints = T_world_joint.shape[:2]
        centres, every = T_world_joint[..., :3, 3], np.arange(n_joints)
        moved = self.jacobian(T_world_joint, centres, every)
        rotated = np.zeros_like(moved)
        lever = LEVER_ARM_M * self.world_directions(T_world_joint)
        rotated[..., 3:] = np.einsum("fti,tj->fjit", lever, self.moves)
        rows = np.concatenate([moved, rotated], axis=1).reshape(n, 6 * n_joints, -1)
        return np.asarray(rows.swapaxes(-1, -2) @ rows)

    def apply(
        self,
        root: Float[Array, "frame 4 4"],
        wxyz: Float[Array, "frame joint 4"],
        change: Float[Array, "frame unknown"],
    ) -> tuple[Float[Array, "frame 4 4"], Float[Array, "frame joint 4"]]:
        """Return the pose after a change of the root's position and of all angles."""
        rotation = change[:, 3:, None] * self.direction
        in_parent, in_joint = np.zeros((2, *wxyz.shape[:2], 3))
        for k, joint in enumerate(self.joint):
            (in_joint if self.in_joint[k] else in_parent)[:, joint] += rotation[:, k]
        rotated = geometry.quat_multiply(
            geometry.quat_multiply(geometry.quat_exp(in_parent), wxyz),
            geometry.quat_exp(in_joint),
        )
        position = root[:, :3, 3] + change[:, :3]
        R = geometry.matrix_from_quat(rotated[:, 0])
        return geometry.transform(R, position), rotated


def reach_goals(motion: Motion, points: ContactPoints, goals: PointGoals) -> Motion:
    """Return the motion with the least change that brings points to their goals.

    Every frame is solved on its own. The change is the sum of squared displacements of
    all joints, where a rotation counts as the displacement of a point at 10 cm. A goal
    with a share s < 1 is reached by about s, so that goals can fade in and out. Points
    below the ground are lifted onto it.

    Bones keep their lengths and hinges their axes. Joints may exceed their limits by
    the change, which is millimetres.
    """
    root, wxyz = motion.T_world_root.copy(), motion.wxyz.copy()
    axes = RotationAxes.of(motion.skeleton)
    for frames in _active_frames(motion, points, goals):
        root[frames], wxyz[frames] = _solve_frames(
            axes, root[frames], wxyz[frames], points, goals.at(frames)
        )
    return replace(motion, T_world_root=root, wxyz=wxyz)


def _active_frames(
    motion: Motion, points: ContactPoints, goals: PointGoals
) -> Iterator[Int[Array, " some"]]:
    """Yield the frames that have a goal or a point below the ground, in chunks."""
    positions = points.positions(motion.T_world_joint())
    active = (goals.share > 0.0).any(axis=1)
    active |= (positions @ goals.axes[2] < goals.ground_height).any(axis=1)
    active &= np.isfinite(positions).all(axis=(1, 2))
    frames = np.flatnonzero(active)
    for start in range(0, len(frames), FRAMES_PER_CHUNK):
        yield frames[start : start + FRAMES_PER_CHUNK]


def _solve_frames(
    axes: RotationAxes,
    root: Float[Array, "frame 4 4"],
    wxyz: Float[Array, "frame joint 4"],
    points: ContactPoints,
    goals: PointGoals,
) -> tuple[Float[Array, "frame 4 4"], Float[Array, "frame joint 4"]]:
    """Return root poses and rotations that reach the goals.

    Gauss-Newton with step halving: where steps grow, as with a foot that has to rotate
    far, the frame takes half of its steps, then a quarter, until it converges. A point
    that gets below the ground is held on it from then on (active set).
    """
    change = np.zeros((len(root), 3 + len(axes.joint)))
    cost = np.zeros((len(root), change.shape[1], change.shape[1]))
    on_ground = np.zeros(goals.share.shape, dtype=bool)
    step_length, last_size = np.ones(len(root)), np.full(len(root), np.inf)
    left = np.arange(len(root))
    new_root, new_wxyz = root.copy(), wxyz.copy()
    for iteration in range(MAX_ITERATIONS):
        T = axes.skeleton.forward(new_root[left], new_wxyz[left])
        if iteration == 0:
            cost = axes.displacement_cost(T)
        positions = points.positions(T)
        jacobian = axes.jacobian(T, positions, points.joint)
        active = goals.at(left)
        is_below = positions @ active.axes[2] < active.ground_height - 1e-9
        sinks = is_below & ~on_ground[left]
        on_ground[left] |= sinks
        last_size[left[sinks.any(axis=1)]] = np.inf
        step = _least_change(
            cost[left], jacobian, positions, change[left], active, on_ground[left]
        )
        step -= change[left]
        size = np.abs(step).max(axis=1)
        step_length[left] *= np.where(size > last_size[left], 0.5, 1.0)
        last_size[left] = size
        change[left] += step_length[left, None] * step
        new_root[left], new_wxyz[left] = axes.apply(
            root[left], wxyz[left], change[left]
        )
        left = left[(size > TINY_CHANGE) | sinks.any(axis=1)]
        if not len(left):
            break
    return new_root, new_wxyz


def _least_change(
    cost: Float[Array, "frame unknown unknown"],
    jacobian: Float[Array, "frame point 3 unknown"],
    positions: Float[Array, "frame point 3"],
    change: Float[Array, "frame unknown"],
    goals: PointGoals,
    on_ground: Bool[Array, "frame point"],
) -> Float[Array, "frame unknown"]:
    r"""Return the change of least cost that reaches the goals, linearised.

    With shares :math:`s` the multipliers solve

    .. math:: (\sqrt S\, A\, \sqrt S + \sqrt{I - S}\, A_b\, \sqrt{I - S})\, \lambda
              = \sqrt S\, d, \qquad A = J M^{-1} J^T,

    where :math:`A_b` is the 3 x 3 block diagonal of :math:`A`: a single point with a
    share :math:`s` moves by :math:`s\,d`.
    """
    n, n_points = positions.shape[:2]
    jacobian = goals.axes @ jacobian
    share = np.repeat(goals.share[..., None], 3, axis=-1)
    distance = np.where(share > 0.0, (goals.position - positions) @ goals.axes.T, 0.0)
    lift = goals.ground_height - positions @ goals.axes[2]
    share[..., 2] = np.where(on_ground, 1.0, share[..., 2])
    distance[..., 2] = np.where(on_ground, lift, distance[..., 2])
    distance = distance + np.einsum("fsid,fd->fsi", jacobian, change)
    distance = distance.reshape(n, 3 * n_points)
    root = np.sqrt(share.reshape(n, 3 * n_points))
    rows = jacobian.reshape(n, 3 * n_points, -1)
    response = np.linalg.solve(cost, rows.swapaxes(-1, -2))
    compliance = rows @ response
    system = root[:, :, None] * compliance * root[:, None, :]
    slack = np.sqrt(1.0 - share).reshape(n, 3 * n_points)
    for first in range(0, 3 * n_points, 3):
        k = slice(first, first + 3)
        block = compliance[:, k, k]
        system[:, k, k] += slack[:, k, None] * block * slack[:, None, k]
        ridge = RIDGE_ROUNDING * np.trace(block, axis1=1, axis2=2)
        system[:, k, k] += ridge[:, None, None] * np.eye(3)
    multiplier = np.linalg.solve(system, (root * distance)[..., None])[..., 0]
    return np.asarray(np.einsum("fdr,fr->fd", response, root * multiplier))
