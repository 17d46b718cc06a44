"""A motion bent as little as possible so that given points are where they should be."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int

from marey.motion import Motion
from marey.numerics import geometry
from marey.pose.contact.points import Spots
from marey.skeleton import Skeleton

Array = np.ndarray

# A body that turns moves as far as a point at this distance, in metres.
RADIUS = 0.1

# Most steps of Gauss-Newton, and the change, in metres or radians, below which one is
# the last; changes are small, and each step squares what is left.
STEPS, STILL = 20, 1e-6

# What keeps points of one body, whose places depend on each other, solvable.
RIDGE = 1e-9

# Frames at a time, to bound memory.
CHUNK = 256


@dataclass(frozen=True, slots=True, eq=False)
class Wishes:
    """Where points should be, along axes of their own."""

    axes: Float[Array, "3 3"]
    """Rows: two directions along the ground, and out of it."""

    goal: Float[Array, "frame spot 3"]
    """Places in the world, in metres; read only where `share` is above 0."""

    share: Float[Array, "frame spot"]
    """How much of the way each point goes: 0 stays, 1 arrives."""

    floor: Float[Array, "frame spot"]
    """What each point may not be below, along the last axis; -inf for nothing."""

    def cut(self, frames: Int[Array, " some"]) -> "Wishes":
        """Return the wishes of some frames."""
        return replace(
            self,
            goal=self.goal[frames],
            share=self.share[frames],
            floor=self.floor[frames],
        )


@dataclass(frozen=True, slots=True, eq=False)
class Freedoms:
    """The single turns of a skeleton's joints."""

    joint: Int[Array, " turn"]
    axis: Float[Array, "turn 3"]
    own: Bool[Array, " turn"]
    """Whether the axis is the joint's own, rather than its parent's."""

    carries: Bool[Array, "turn joint"]
    """Which joints each turn moves."""


def freedoms_of(skeleton: Skeleton) -> Freedoms:
    """Return three turns per ball, one per hinge, two per universal joint.

    A universal joint turns about its first axis in its parent's frame, then about the
    second in its own.
    """
    rows: list[tuple[int, Array, bool]] = []
    for joint, kind in enumerate(skeleton.kind):
        if kind in ("root", "ball"):
            rows += [(joint, axis, False) for axis in np.eye(3)]
        if kind == "hinge":
            rows.append((joint, skeleton.axes[joint, 0], True))
        if kind == "universal":
            rows.append((joint, skeleton.axes[joint, 0], False))
            rows.append((joint, skeleton.axes[joint, 1], True))
    moved = np.array([row[0] for row in rows], dtype=np.int64)
    below = np.eye(skeleton.n_joints, dtype=bool)
    for j, parent in enumerate(skeleton.parent):
        if parent >= 0:
            below[:, j] |= below[:, parent]
    axis = np.array([row[1] for row in rows], dtype=float)
    own = np.array([row[2] for row in rows])
    return Freedoms(moved, axis, own, below[moved])


def held(motion: Motion, spots: Spots, wishes: Wishes) -> Motion:
    """Return the motion changed as little as possible to fulfil the wishes.

    In every frame on its own: of all changes of the root and the joints' angles that
    bring the points to their goals, the one that moves all joints least (the sum of
    squared distances, turns counting as points at 10 cm). A wish with a share s < 1 is
    fulfilled by about s, so that wishes may come and go without a jump. Points below
    the ground are lifted onto it.

    Bones keep their lengths, hinges their axes; limits may be overstepped by what the
    wishes ask, which is millimetres.
    """
    root, wxyz = motion.T_world_root.copy(), motion.wxyz.copy()
    free = freedoms_of(motion.skeleton)
    for frames in _chunks(motion, spots, wishes):
        root[frames], wxyz[frames] = _bent(
            motion.skeleton, free, root[frames], wxyz[frames], spots, wishes.cut(frames)
        )
    return replace(motion, T_world_root=root, wxyz=wxyz)


def _chunks(
    motion: Motion, spots: Spots, wishes: Wishes
) -> Iterator[Int[Array, " some"]]:
    """Yield frames in which something is wished for, some at a time."""
    paths = spots.paths(motion.T_world_joint())
    busy = (wishes.share > 0.0).any(axis=1)
    busy |= (paths @ wishes.axes[2] < wishes.floor).any(axis=1)
    busy &= np.isfinite(paths).all(axis=(1, 2))
    frames = np.flatnonzero(busy)
    for start in range(0, len(frames), CHUNK):
        yield frames[start : start + CHUNK]


def _bent(
    skeleton: Skeleton,
    free: Freedoms,
    root: Float[Array, "frame 4 4"],
    wxyz: Float[Array, "frame joint 4"],
    spots: Spots,
    wishes: Wishes,
) -> tuple[Float[Array, "frame 4 4"], Float[Array, "frame joint 4"]]:
    """Return root poses and rotations that fulfil the wishes.

    Every step finds the least change for the slopes of the last. Where that swings to
    and fro, as with a foot that has to turn far, a frame takes half of its steps, then
    a quarter, until it comes to rest.
    """
    change = np.zeros((len(root), 3 + len(free.joint)))
    inertia = np.zeros((len(root), change.shape[1], change.shape[1]))
    forced = np.zeros(wishes.share.shape, dtype=bool)
    ease, last = np.ones(len(root)), np.full(len(root), np.inf)
    left = np.arange(len(root))
    now = root.copy(), wxyz.copy()
    for step in range(STEPS):
        T = skeleton.forward(now[0][left], now[1][left])
        turn = _world_axes(skeleton, free, T)
        if step == 0:
            inertia = _inertia(free, T, turn)
        places = spots.paths(T)
        slopes = _slopes(free, T, turn, places, spots.joint)
        some = wishes.cut(left)
        sunk = (places @ some.axes[2] < some.floor - 1e-9) & ~forced[left]
        forced[left] |= sunk
        last[left[sunk.any(axis=1)]] = np.inf
        new = _least(inertia[left], slopes, places, change[left], some, forced[left])
        size = np.abs(new - change[left]).max(axis=1)
        ease[left] = np.where(size > last[left], 0.5 * ease[left], ease[left])
        last[left] = size
        change[left] += ease[left, None] * (new - change[left])
        done = _applied(skeleton, free, root[left], wxyz[left], change[left])
        now[0][left], now[1][left] = done
        left = left[(size > STILL) | sunk.any(axis=1)]
        if not len(left):
            break
    return now


def _world_axes(
    skeleton: Skeleton, free: Freedoms, T: Float[Array, "frame joint 4 4"]
) -> Float[Array, "frame turn 3"]:
    frame = np.where(free.own, free.joint, skeleton.parent[free.joint])
    R = T[:, frame, :3, :3].copy()
    R[:, frame < 0] = np.eye(3)
    return np.asarray(np.einsum("ftij,tj->fti", R, free.axis))


def _slopes(
    free: Freedoms,
    T: Float[Array, "frame joint 4 4"],
    turn: Float[Array, "frame turn 3"],
    places: Float[Array, "frame point 3"],
    joint: Int[Array, " point"],
) -> Float[Array, "frame point 3 unknown"]:
    """Return how points move with the root's place and with every turn."""
    centre = T[..., :3, 3][:, free.joint]
    arm = places[:, :, None] - centre[:, None]
    moved = np.cross(turn[:, None], arm) * free.carries[:, joint].T[None, :, :, None]
    still = np.broadcast_to(np.eye(3), (*places.shape[:2], 3, 3))
    return np.concatenate([still, moved.swapaxes(-1, -2)], axis=-1)


def _inertia(
    free: Freedoms,
    T: Float[Array, "frame joint 4 4"],
    turn: Float[Array, "frame turn 3"],
) -> Float[Array, "frame unknown unknown"]:
    """Return what changes cost: how far they move all joints, squared."""
    n, joints = T.shape[:2]
    moved = _slopes(free, T, turn, T[..., :3, 3], np.arange(joints))
    turned = np.zeros_like(moved)
    turned[..., 3:] = np.einsum("fti,tj->fjit", RADIUS * turn, free.carries)
    rows = np.concatenate([moved, turned], axis=1).reshape(n, 6 * joints, -1)
    return np.asarray(rows.swapaxes(-1, -2) @ rows)


def _least(
    inertia: Float[Array, "frame unknown unknown"],
    slopes: Float[Array, "frame spot 3 unknown"],
    places: Float[Array, "frame spot 3"],
    change: Float[Array, "frame unknown"],
    wishes: Wishes,
    forced: Bool[Array, "frame spot"],
) -> Float[Array, "frame unknown"]:
    """Return the cheapest change that fulfils the wishes, linearised."""
    n, spots = places.shape[:2]
    slopes = wishes.axes @ slopes
    share = np.repeat(wishes.share[..., None], 3, axis=-1)
    to_go = np.where(share > 0.0, (wishes.goal - places) @ wishes.axes.T, 0.0)
    lift = wishes.floor - places @ wishes.axes[2]
    share[..., 2] = np.where(forced, 1.0, share[..., 2])
    to_go[..., 2] = np.where(forced, lift, to_go[..., 2])
    to_go = (to_go + np.einsum("fsid,fd->fsi", slopes, change)).reshape(n, 3 * spots)
    root = np.sqrt(share.reshape(n, 3 * spots))
    rows = slopes.reshape(n, 3 * spots, -1)
    paid = np.linalg.solve(inertia, rows.swapaxes(-1, -2))
    gives = rows @ paid
    system = root[:, :, None] * gives * root[:, None, :]
    slack = np.sqrt(1.0 - share).reshape(n, 3 * spots)
    for first in range(0, 3 * spots, 3):
        at = slice(first, first + 3)
        own = gives[:, at, at]
        system[:, at, at] += slack[:, at, None] * own * slack[:, None, at]
        system[:, at, at] += (
            RIDGE * np.trace(own, axis1=1, axis2=2)[:, None, None] * np.eye(3)
        )
    pull = np.linalg.solve(system, (root * to_go)[..., None])[..., 0]
    return np.asarray(np.einsum("fdr,fr->fd", paid, root * pull))


def _applied(
    skeleton: Skeleton,
    free: Freedoms,
    root: Float[Array, "frame 4 4"],
    wxyz: Float[Array, "frame joint 4"],
    change: Float[Array, "frame unknown"],
) -> tuple[Float[Array, "frame 4 4"], Float[Array, "frame joint 4"]]:
    """Return the pose after the root has moved and all joints have turned."""
    turns = change[:, 3:, None] * free.axis
    before, after = np.zeros((2, len(root), skeleton.n_joints, 3))
    for t, joint in enumerate(free.joint):
        (after if free.own[t] else before)[:, joint] += turns[:, t]
    turned = geometry.quat_multiply(
        geometry.quat_multiply(geometry.quat_exp(before), wxyz),
        geometry.quat_exp(after),
    )
    place = root[:, :3, 3] + change[:, :3]
    T = geometry.transform(geometry.matrix_from_quat(turned[:, 0]), place)
    return T, turned
