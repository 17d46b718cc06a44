"""Motions much alike: matched in time, and compared in how they use their joints."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from marey.errors import DataError, OptionError
from marey.motion import Motion
from marey.numerics import geometry

Array = np.ndarray
Keys = Sequence[tuple[float, float]]

MOST_FRAMES = 400
"""Frames of each motion that are compared to match them in time."""

# What staying in a frame of one motion costs, in usual distances of neighbouring poses.
STAY = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class JointUse:
    """How alike two motions use their joints, matched in time."""

    names: tuple[str, ...]
    """The joints that both have and that turn."""

    angle: Float[Array, " joint"]
    """Rms angle between the rotations of each joint in its parent, in radians."""

    curves: Float[Array, " joint"]
    """Rms difference of the continuous XYZ Euler angles of each, in radians: what an
    animator who blends the curves has to cope with."""


def warped_times(
    reference: Motion, motion: Motion, keys: Keys = ()
) -> Float[Array, " frame"]:
    """Return the time in the reference that belongs to every frame of a motion.

    Implements Bodenheimer1997, Sec. 3.2: between key times marked by hand time runs
    evenly. Departure: without keys, frames are matched by dynamic time warping of
    poses, so that nobody has to mark anything. Beginnings and ends belong together,
    unless keys beyond them say otherwise.

    Args:
        reference: The motion whose time is wanted.
        motion: The motion to match.
        keys: Times that belong together, (in the reference, in the motion), in
            seconds on the clock of each.

    Raises:
        OptionError: If keys do not both rise, or lie outside the motions.
        DataError: If a motion has no frames, or without keys no joint in common.
    """
    for which in (reference, motion):
        if which.n_frames == 0 or not which.rate > 0.0:
            raise DataError(
                "reference", found="a motion without even frames", needed="frames"
            )
    if not keys:
        return _matched_times(reference, motion)
    pairs = np.array(sorted(keys, key=lambda pair: pair[1]), dtype=float).reshape(-1, 2)
    spans = [
        (which.start, which.start + which.duration) for which in (reference, motion)
    ]
    inside = all(
        (pairs[:, k] >= low - 1e-9).all() and (pairs[:, k] <= high + 1e-9).all()
        for k, (low, high) in enumerate(spans)
    )
    if not inside or (np.diff(pairs, axis=0) <= 0.0).any():
        raise OptionError(
            "keys",
            found=list(keys),
            needed="times that rise in both, within {:g} to {:g} s and {:g} to {:g} s"
            "".format(*spans[0], *spans[1]),
        )
    ends = np.array(spans).T
    first = ends[:1] if (pairs[0] > ends[0]).all() else ends[:0]
    last = ends[1:] if (pairs[-1] < ends[1]).all() else ends[:0]
    pairs = np.concatenate([first, pairs, last])
    return np.asarray(np.interp(motion.times, pairs[:, 1], pairs[:, 0]))


def warped(reference: Motion, motion: Motion, keys: Keys = ()) -> Motion:
    """Return the reference played in the time of another motion, frame for frame."""
    times = warped_times(reference, motion, keys)
    last = reference.start + reference.duration
    played = reference.at(np.clip(times, reference.start, last))
    return Motion(
        skeleton=reference.skeleton,
        T_world_root=played.T_world_root,
        wxyz=played.wxyz,
        rate=motion.rate,
        start=motion.start,
    )


def joint_use(motion: Motion, reference: Motion, keys: Keys = ()) -> JointUse:
    """Return how alike a motion uses its joints to a reference, matched in time.

    The comparison of Bodenheimer1997, Figs. 7-9, as a number: two reaches can only be
    blended into a third where their shoulders turn alike.

    Args:
        motion: One motion.
        reference: The other.
        keys: As in `warped_times`.

    Raises:
        DataError: If they have no turning joint in common.
    """
    mine, theirs = common_joints(motion, reference)
    if not len(mine):
        raise DataError(
            "joint use", found="no turning joint of the same name", needed="one or more"
        )
    other = warped(reference, motion, keys)
    q, p = motion.wxyz[:, mine], other.wxyz[:, theirs]
    turn = geometry.quat_log(geometry.quat_multiply(geometry.quat_conjugate(p), q))
    curves = motion.euler("XYZ")[:, mine] - other.euler("XYZ")[:, theirs]
    # Curves that are whole turns apart are the same curve.
    curves -= 2.0 * np.pi * np.round(np.nanmean(curves, axis=0) / (2.0 * np.pi))
    return JointUse(
        tuple(motion.skeleton.names[j] for j in mine),
        np.sqrt(np.nanmean(np.sum(turn**2, axis=-1), axis=0)),
        np.sqrt(np.nanmean(np.sum(curves**2, axis=-1), axis=0)),
    )


def common_joints(
    motion: Motion, reference: Motion
) -> tuple[Int[Array, " joint"], Int[Array, " joint"]]:
    """Return the turning joints that both have, by number in each."""
    place = {name: k for k, name in enumerate(reference.skeleton.names)}
    pairs = [
        (j, place[name])
        for j, (name, kind) in enumerate(
            zip(motion.skeleton.names, motion.skeleton.kind, strict=True)
        )
        if name in place and kind not in ("root", "fixed")
    ]
    both = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return both[:, 0], both[:, 1]


def _matched_times(reference: Motion, motion: Motion) -> Float[Array, " frame"]:
    mine, theirs = common_joints(motion, reference)
    if not len(mine):
        raise DataError(
            "reference",
            found="no turning joint of the same name",
            needed="a motion of the same joints, or keys",
        )
    frames, others = _some(motion.n_frames), _some(reference.n_frames)
    a = _features(motion, frames, mine)
    b = _features(reference, others, theirs)
    match = _aligned(np.linalg.norm(a[:, None] - b[None], axis=-1))
    times = np.interp(match, np.arange(len(others)), reference.times[others])
    return np.asarray(np.interp(motion.times, motion.times[frames], times))


def _some(count: int) -> Int[Array, " frame"]:
    return np.unique(np.linspace(0, count - 1, min(count, MOST_FRAMES)).astype(int))


def _features(
    motion: Motion, frames: Int[Array, " frame"], joints: Int[Array, " joint"]
) -> Float[Array, "frame number"]:
    """Return where the joints are, as seen from the root, in sizes of the figure.

    A joint's place tells where its parent points; the ends of its own bones are there
    to tell where it does.
    """
    skeleton = motion.skeleton
    T = skeleton.forward(motion.T_world_root[frames], motion.wxyz[frames])
    place = T[..., :3, 3]
    ends = [
        place[:, below].mean(axis=1)
        if (below := skeleton.parent == j).any()
        else place[:, j]
        for j in joints
    ]
    seen = geometry.apply(geometry.inverse(T[:, :1]), np.stack(ends, axis=1))
    size = max(float(skeleton.lengths.max()), np.finfo(float).tiny)
    return np.nan_to_num(seen.reshape(len(frames), -1) / size)


def _aligned(cost: Float[Array, "frame other"]) -> Float[Array, " frame"]:
    """Return the frame of the other, in fractions, that belongs to each: time warping.

    The way of least cost from both beginnings to both ends, by steps of one frame in
    either or in both.
    """
    n, m = cost.shape
    stay = STAY * float(np.median(cost.min(axis=1))) + 1e-9
    total = np.full((n + 1, m + 1), np.inf)
    total[0, 0] = 0.0
    # Along an antidiagonal all cells can be filled at once.
    for s in range(n + m - 1):
        a = np.arange(max(0, s - m + 1), min(n, s + 1))
        b = s - a
        one = np.minimum(total[a, b + 1], total[a + 1, b]) + stay
        total[a + 1, b + 1] = cost[a, b] + np.minimum(total[a, b], one)
    place, count = np.zeros(n), np.zeros(n)
    i, j = n, m
    while i > 0:
        place[i - 1] += j - 1
        count[i - 1] += 1
        ways = (total[i - 1, j - 1], total[i - 1, j] + stay, total[i, j - 1] + stay)
        step = int(np.argmin(ways))
        i, j = (i - 1, j - 1) if step == 0 else (i - 1, j) if step == 1 else (i, j - 1)
        if j == 0:
            break
    return np.asarray(place / np.maximum(count, 1))
