"""A skeleton and what is seen of it, as the tables that the kernels read."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float, Int

from marey.errors import DataError
from marey.numerics import geometry
from marey.skeleton import Skeleton

if TYPE_CHECKING:
    from marey.articulated.kinematics_kernel import Tree

IDENTITY = np.array([1.0, 0.0, 0.0, 0.0])

# Sines this close to a limit's are looked at more closely.
MARGIN = 1e-9

# How far the axes of a joint may be from unit length and from square.
SQUARE = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Nodes:
    """The turning parts of a skeleton: the root, balls and hinges.

    A universal joint is two hinges in one place, the first of which carries nothing.
    Fixed joints belong to the node that moves them.
    """

    tree: "Tree"
    of_joint: Int[np.ndarray, " joint"]
    """The node that moves each joint."""

    first_of_joint: Int[np.ndarray, " joint"]
    """The first hinge of a universal joint; else as `of_joint`."""

    place: Float[np.ndarray, "joint 3"]
    """Each joint in its node, in metres."""

    turning: Int[np.ndarray, " turning"]
    """The joints that are not fixed."""

    def rotations(
        self, q: Float[np.ndarray, "frame node 4"]
    ) -> Float[np.ndarray, "frame joint 4"]:
        """Return R_parent_joint of every joint as quaternions."""
        from marey.articulated.kinematics_kernel import joint_rotations  # numba is slow

        wxyz = np.zeros((len(q), len(self.of_joint), 4))
        wxyz[..., 0] = 1.0
        joint_rotations(self.turning, self.first_of_joint, self.of_joint, q, wxyz)
        return wxyz

    def of_rotations(
        self, wxyz: Float[np.ndarray, "frame joint 4"]
    ) -> Float[np.ndarray, "frame node 4"]:
        """Return the rotations of the nodes: the inverse of `rotations`.

        Of a rotation that a hinge or a universal joint cannot make, the turns about
        its axes are taken.
        """
        q = np.tile(IDENTITY, (len(wxyz), len(self.tree.parent), 1))
        for joint in self.turning:
            first, last = self.first_of_joint[joint], self.of_joint[joint]
            if not self.tree.hinge[last]:
                q[:, last] = wxyz[:, joint]
                continue
            rest = wxyz[:, joint]
            for node in range(first, last + 1):
                q[:, node] = _twist(rest, self.tree.axis[node])
                rest = geometry.quat_multiply(geometry.quat_conjugate(q[:, node]), rest)
        return geometry.quat_continuous(q)


def _twist(
    wxyz: Float[np.ndarray, "frame 4"], axis: Float[np.ndarray, " 3"]
) -> Float[np.ndarray, "frame 4"]:
    """Return the turns about an axis that are in rotations."""
    half = np.arctan2(wxyz[:, 1:] @ axis, wxyz[:, 0])
    return np.concatenate([np.cos(half)[:, None], np.sin(half)[:, None] * axis], axis=1)


def nodes_of(skeleton: Skeleton, *, limits: bool) -> Nodes:
    """Return the nodes of a skeleton.

    Args:
        skeleton: The joints.
        limits: Whether their limits count.

    Raises:
        DataError: If a joint's kind or limits need axes that it does not have.
    """
    parent: list[int] = []
    offset: list[np.ndarray] = []
    joint_of: list[int] = []
    turn_of: list[int] = []
    n = skeleton.n_joints
    of_joint, first = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    place = np.zeros((n, 3))
    for joint, kind in enumerate(skeleton.kind):
        above = int(skeleton.parent[joint])
        node = int(of_joint[above]) if above >= 0 else -1
        at = place[above] + skeleton.offset[joint] if above >= 0 else np.zeros(3)
        turns = {"fixed": 0, "universal": 2}.get(kind, 1)
        for turn in range(turns):
            parent.append(node)
            offset.append(at if turn == 0 else np.zeros(3))
            joint_of.append(joint)
            turn_of.append(turn)
            node = len(parent) - 1
        of_joint[joint] = node
        first[joint] = node - max(turns - 1, 0)
        place[joint] = at if turns == 0 else np.zeros(3)
    tree = _tree(skeleton, parent, np.array(offset), joint_of, turn_of, limits=limits)
    turning = np.flatnonzero(np.array(skeleton.kind) != "fixed")
    return Nodes(tree, of_joint, first, place, turning)


def _tree(
    skeleton: Skeleton,
    parent: list[int],
    offset: Float[np.ndarray, "node 3"],
    joint_of: list[int],
    turn_of: list[int],
    *,
    limits: bool,
) -> "Tree":
    from marey.articulated.kinematics_kernel import Tree  # numba is slow to import

    n = len(parent)
    hinge = np.array([skeleton.kind[j] in ("hinge", "universal") for j in joint_of])
    axis, frame = np.zeros((n, 3)), np.zeros((n, 3, 3))
    low, high = np.full((n, 3), -np.inf), np.full((n, 3), np.inf)
    for i, (joint, turn) in enumerate(zip(joint_of, turn_of, strict=True)):
        if hinge[i]:
            axis[i] = _unit_axis(skeleton, joint, turn)
        if limits and i > 0:
            mine = slice(turn, turn + 1) if hinge[i] else slice(0, 3)
            _bound(skeleton, joint, mine, low[i], high[i])
    limited = np.isfinite(low).any(axis=1) | np.isfinite(high).any(axis=1)
    for ball in np.flatnonzero(limited & ~hinge):
        frame[ball] = _swing_frame(skeleton, joint_of[ball])
    turn_low, turn_high = _last_limits(low, high, hinge)
    chain, depth = _chains(parent)
    way, before = _ways(chain, np.concatenate([[False], hinge]))
    return Tree(
        parent=np.array(parent, dtype=np.int64),
        offset=offset,
        hinge=hinge,
        axis=axis,
        chain=chain,
        depth=depth,
        way=way,
        before=before,
        limited=limited,
        frame=frame,
        low=low,
        high=high,
        low_sine=_half_sine(turn_low) + MARGIN,
        high_sine=_half_sine(turn_high) - MARGIN,
    )


def _last_limits(low: np.ndarray, high: np.ndarray, hinge: np.ndarray) -> np.ndarray:
    """Return the limits of each node's turn about its own line: axis or bone."""
    last = [[low[:, 0], high[:, 0]], [low[:, 2], high[:, 2]]]
    return np.asarray(np.where(hinge, *last), dtype=float)


def _half_sine(angle: Float[np.ndarray, " node"]) -> Float[np.ndarray, " node"]:
    """Return the sine of half an angle; out of reach beyond half a turn."""
    sine = np.sin(0.5 * np.clip(angle, -np.pi, np.pi))
    return np.asarray(np.where(np.abs(angle) < np.pi, sine, 2.0 * np.sign(angle)))


def _unit_axis(skeleton: Skeleton, joint: int, turn: int) -> np.ndarray:
    axis = skeleton.axes[joint, turn]
    length = np.linalg.norm(axis)
    if not abs(length - 1.0) < SQUARE:
        raise DataError(
            f"axes of {skeleton.names[joint]}",
            found=axis.tolist(),
            needed=f"a unit vector for a {skeleton.kind[joint]} joint",
        )
    return np.asarray(axis / length)


def _swing_frame(skeleton: Skeleton, joint: int) -> Float[np.ndarray, "3 3"]:
    """Return swing axes x and y and the bone of a ball that has limits, as rows."""
    x, y = skeleton.axes[joint]
    frame = np.stack([x, y, np.cross(x, y)])
    if not np.abs(frame @ frame.T - np.eye(3)).max() < SQUARE:
        raise DataError(
            f"axes of {skeleton.names[joint]}",
            found=[x.tolist(), y.tolist()],
            needed="two unit vectors square to each other, for the limits of a ball",
        )
    return frame


def _bound(
    skeleton: Skeleton, joint: int, mine: slice, low: np.ndarray, high: np.ndarray
) -> None:
    """Fill the limits of a node; those that are NaN do not bind."""
    limits = skeleton.limits[joint, mine]
    count = len(limits)
    low[:count] = np.where(np.isnan(limits[:, 0]), -np.inf, limits[:, 0])
    high[:count] = np.where(np.isnan(limits[:, 1]), np.inf, limits[:, 1])
    if (low > high).any():
        raise DataError(
            f"limits of {skeleton.names[joint]}",
            found=limits.tolist(),
            needed="least, then greatest angle",
        )


def _chains(parent: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Return the blocks on the way to every block, itself last, and how many before.

    Block 0 is the root's place, block i + 1 belongs to node i.
    """
    chains = [[0]]
    for i, p in enumerate(parent):
        chains.append([*chains[p + 1], i + 1])
    depth = np.array([len(chain) - 1 for chain in chains], dtype=np.int64)
    return _padded(chains), depth


def _ways(
    chain: Int[np.ndarray, "block step"], hinge: Bool[np.ndarray, " block"]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the unknowns on the way to every block, its own last, and how many before.

    Unknown 3 b + k is the k-th of block b; a hinge has only the first. Rows are padded
    to whole fours, because the kernel works on four at a time.
    """
    ways = [
        [3 * b + k for b in row if b >= 0 for k in range(1 if hinge[b] else 3)]
        for row in chain.tolist()
    ]
    own = np.where(hinge, 1, 3)
    before = np.array([len(way) for way in ways], dtype=np.int64) - own
    table = _padded(ways)
    spare = -table.shape[1] % 4
    return np.pad(table, ((0, 0), (0, spare)), constant_values=-1), before


def _padded(lists: list[list[int]]) -> Int[np.ndarray, "row column"]:
    table = np.full((len(lists), max(map(len, lists))), -1, dtype=np.int64)
    for i, values in enumerate(lists):
        table[i, : len(values)] = values
    return table
