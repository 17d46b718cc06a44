"""A skeleton as a kinematic tree of rotating nodes, in the tables of the kernels."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from marey.errors import DataError
from marey.numerics import Array, Float, Int, geometry
from marey.skeleton import Skeleton

if TYPE_CHECKING:
    from marey.articulated.kinematics_kernel import KinematicTree


IDENTITY_QUATERNION = np.array([1.0, 0.0, 0.0, 0.0])

HALF_SINE_MARGIN = 1e-9
"""Distance of the sine of half an angle from that of its limit below which the angle
itself is compared. Higher compares more angles. Chosen by hand, above rounding."""

AXIS_ROUNDING = 1e-6
"""Largest deviation of a joint's axes from unit length and from a right angle that is
taken for rounding in a file."""

NODES_OF_KIND = {"fixed": 0, "universal": 2}
"""Number of nodes of a joint by its kind; 1 for all others."""


@dataclass(frozen=True, slots=True, eq=False)
class Nodes:
    """The rotating parts of a skeleton: the root, balls and hinges.

    A universal joint is two hinges at one position; the first of them has no targets
    of its own. A fixed joint belongs to the node that moves it.
    """

    tree: "KinematicTree"
    node_of_joint: Int[Array, " joint"]
    """The node that moves each joint."""

    first_node_of_joint: Int[Array, " joint"]
    """The first hinge of a universal joint; otherwise as `node_of_joint`."""

    joint_position: Float[Array, "joint 3"]
    """Position of each joint in its node, in metres; zero unless the joint is fixed."""

    moving_joints: Int[Array, " moving"]
    """The joints that are not fixed."""

    def joint_rotations(
        self, q: Float[Array, "frame node 4"]
    ) -> Float[Array, "frame joint 4"]:
        """Return R_parent_joint of every joint as quaternions (wxyz)."""
        # numba is slow to import
        from marey.articulated.kinematics_kernel import write_joint_rotations

        wxyz = np.tile(IDENTITY_QUATERNION, (len(q), len(self.node_of_joint), 1))
        write_joint_rotations(
            self.moving_joints, self.first_node_of_joint, self.node_of_joint, q, wxyz
        )
        return wxyz

    def joint_poses(
        self, root: Float[Array, " 3"], q: Float[Array, "node 4"]
    ) -> Float[Array, "joint 4 4"]:
        """Return T_world_joint of every joint in one frame, in metres."""
        # numba is slow to import
        from marey.articulated.joint_poses_kernel import write_joint_poses

        T = np.zeros((len(self.node_of_joint), 4, 4))
        T[:, 3, 3] = 1.0
        work = np.empty((len(q), 3, 3)), np.empty((len(q), 3))
        write_joint_poses(
            self.tree, self.node_of_joint, self.joint_position, (root, q), work, T
        )
        return T

    def node_rotations(
        self, wxyz: Float[Array, "frame joint 4"]
    ) -> Float[Array, "frame node 4"]:
        """Return the rotations of the nodes: the inverse of `joint_rotations`.

        A hinge takes the twist of the rotation about its axis (swing-twist
        decomposition); the second hinge of a universal joint takes that of the rest.
        """
        q = np.tile(IDENTITY_QUATERNION, (len(wxyz), len(self.tree.parent), 1))
        for joint in self.moving_joints:
            first, last = self.first_node_of_joint[joint], self.node_of_joint[joint]
            remainder = wxyz[:, joint]
            if not self.tree.is_hinge[last]:
                q[:, last] = remainder
                continue
            for node in range(first, last + 1):
                q[:, node] = _twist(remainder, self.tree.axis[node])
                inverse = geometry.quat_conjugate(q[:, node])
                remainder = geometry.quat_multiply(inverse, remainder)
        return geometry.quat_continuous(q)


def _twist(
    wxyz: Float[Array, "frame 4"], axis: Float[Array, " 3"]
) -> Float[Array, "frame 4"]:
    """Return the part of rotations about an axis: their twist."""
    half = np.arctan2(wxyz[:, 1:] @ axis, wxyz[:, 0])
    return np.concatenate([np.cos(half)[:, None], np.sin(half)[:, None] * axis], axis=1)


def make_nodes(skeleton: Skeleton, *, limits: bool) -> Nodes:
    """Return the nodes of a skeleton.

    Args:
        skeleton: The joints.
        limits: Whether the limits of the joints apply.

    Raises:
        DataError: If the kind or the limits of a joint need axes that are missing.
    """
    parent: list[int] = []
    offset: list[Array] = []
    joint_and_axis: list[tuple[int, int]] = []
    n = skeleton.n_joints
    node_of_joint, first_node = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    joint_position = np.zeros((n, 3))
    rotates = skeleton.rotates
    for joint, kind in enumerate(skeleton.kind):
        above = int(skeleton.parent[joint])
        node, position = -1, np.zeros(3)
        if above >= 0:
            node = int(node_of_joint[above])
            position = joint_position[above] + skeleton.offset[joint]
        n_nodes = NODES_OF_KIND.get(kind, 1) if rotates[joint] else 0
        for axis in range(n_nodes):
            parent.append(node)
            offset.append(position if axis == 0 else np.zeros(3))
            joint_and_axis.append((joint, axis))
            node = len(parent) - 1
        node_of_joint[joint] = node
        first_node[joint] = node - max(n_nodes - 1, 0)
        if n_nodes == 0:
            joint_position[joint] = position
    tree = _make_tree(skeleton, parent, np.array(offset), joint_and_axis, limits=limits)
    moving = np.flatnonzero(rotates)
    return Nodes(tree, node_of_joint, first_node, joint_position, moving)


def _make_tree(
    skeleton: Skeleton,
    parent: list[int],
    offset: Float[Array, "node 3"],
    joint_and_axis: list[tuple[int, int]],
    *,
    limits: bool,
) -> "KinematicTree":
    """Return the tables of the nodes, each the axis-th rotation of a joint."""
    # numba is slow to import
    from marey.articulated.kinematics_kernel import KinematicTree

    n = len(parent)
    is_hinge = np.array(
        [skeleton.kind[joint] in ("hinge", "universal") for joint, _ in joint_and_axis]
    )
    axis, swing_frame = np.zeros((n, 3)), np.zeros((n, 3, 3))
    low, high = np.full((n, 3), -np.inf), np.full((n, 3), np.inf)
    for i, (joint, k) in enumerate(joint_and_axis):
        if is_hinge[i]:
            axis[i] = _unit_axis(skeleton, joint, k)
        if limits and i > 0:
            rows = slice(k, k + 1) if is_hinge[i] else slice(0, 3)
            _set_limits(skeleton, joint, rows, low[i], high[i])
    has_limits = np.isfinite(low).any(axis=1) | np.isfinite(high).any(axis=1)
    for ball in np.flatnonzero(has_limits & ~is_hinge):
        swing_frame[ball] = _swing_frame(skeleton, joint_and_axis[ball][0])
    # The angle about the node's own line: the hinge angle, or the twist of a ball.
    line = np.arange(n), np.where(is_hinge, 0, 2)
    n_unknowns = np.where(np.append(False, is_hinge), 1, offset.shape[1])
    chains = _ancestor_chains(parent)
    unknowns = [
        [3 * b + k for b in row for k in range(n_unknowns[b])] for row in chains
    ]
    return KinematicTree(
        parent=np.array(parent, dtype=np.int64),
        offset=offset,
        is_hinge=is_hinge,
        axis=axis,
        chain=pad_lists(chains),
        depth=np.array([len(row) for row in chains]) - 1,
        ancestor_unknowns=pad_lists(unknowns),
        n_ancestor_unknowns=np.array([len(row) for row in unknowns]) - n_unknowns,
        has_limits=has_limits,
        swing_frame=swing_frame,
        low=low,
        high=high,
        low_half_sine=_half_sine(low[line]) + HALF_SINE_MARGIN,
        high_half_sine=_half_sine(high[line]) - HALF_SINE_MARGIN,
    )


def _ancestor_chains(parent: list[int]) -> list[list[int]]:
    """Return the blocks from the root's position to that of each node, in order."""
    chains = [[0]]
    for node, above in enumerate(parent):
        chains.append([*chains[above + 1], node + 1])
    return chains


def _half_sine(angle: Float[Array, " node"]) -> Float[Array, " node"]:
    """Return the sine of half an angle; 2 or -2, out of reach, from half a turn on."""
    sine = np.sin(0.5 * np.clip(angle, -np.pi, np.pi))
    return np.asarray(np.where(np.abs(angle) < np.pi, sine, 2.0 * np.sign(angle)))


def _unit_axis(skeleton: Skeleton, joint: int, k: int) -> Float[Array, " 3"]:
    """Return unit axis k of a joint, without the rounding of its length."""
    axis = skeleton.axes[joint, k]
    length = np.linalg.norm(axis)
    if not abs(length - 1.0) < AXIS_ROUNDING:
        raise DataError(
            f"axes of {skeleton.names[joint]}",
            found=axis.tolist(),
            needed=f"a unit vector for a {skeleton.kind[joint]} joint",
        )
    return np.asarray(axis / length)


def _swing_frame(skeleton: Skeleton, joint: int) -> Float[Array, "3 3"]:
    """Return the swing axes x and y and the bone of a ball with limits, as rows."""
    x, y = skeleton.axes[joint]
    frame = np.stack([x, y, np.cross(x, y)])
    if not np.abs(frame @ frame.T - np.eye(3)).max() < AXIS_ROUNDING:
        raise DataError(
            f"axes of {skeleton.names[joint]}",
            found=[x.tolist(), y.tolist()],
            needed="two perpendicular unit vectors, for the limits of a ball",
        )
    return frame


def _set_limits(
    skeleton: Skeleton, joint: int, rows: slice, low: Array, high: Array
) -> None:
    """Write the limits of a node, in radians; a NaN means no limit."""
    limits = skeleton.limits[joint, rows]
    count = len(limits)
    low[:count] = np.where(np.isnan(limits[:, 0]), -np.inf, limits[:, 0])
    high[:count] = np.where(np.isnan(limits[:, 1]), np.inf, limits[:, 1])
    if (low > high).any():
        raise DataError(
            f"limits of {skeleton.names[joint]}",
            found=limits.tolist(),
            needed="least, then greatest angle",
        )


def pad_lists(lists: list[list[int]]) -> Int[Array, "row column"]:
    """Return lists of different length as rows of a table, padded with -1."""
    table = np.full((len(lists), max(map(len, lists))), -1, dtype=np.int64)
    for i, values in enumerate(lists):
        table[i, : len(values)] = values
    return table
