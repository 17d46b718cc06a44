"""Similar motions: matched in time, and compared by the rotations of their joints."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from marey.errors import DataError, OptionError
from marey.motion import Motion, motion_on_clock
from marey.numerics import Array, Float, Int, geometry
from marey.numerics.resampling import evenly_spaced
from marey.pose.retarget import retarget

Keys = Sequence[tuple[float, float]]

REPEAT_COST = 0.5
"""Cost of repeating a frame of one motion in dynamic time warping, in medians of the
distance between best-matching poses. Higher keeps time more even. Chosen by hand."""

TIME_ROUNDING_S = 1e-9
"""Distance of a key time outside a motion that counts as rounding, in seconds."""


@dataclass(frozen=True, slots=True, eq=False)
class JointUse:
    """Differences of the joint rotations of two motions matched in time."""

    names: tuple[str, ...]
    """The rotating joints that both motions have."""

    rotation_rms: Float[Array, " joint"]
    """Rms angle between the rotations of each joint in its parent, in radians."""

    euler_rms: Float[Array, " joint"]
    """Rms difference of the continuous XYZ Euler angles of each joint, in radians: the
    curves that an animator blends."""


def match_times(
    reference: Motion, motion: Motion, keys: Keys = ()
) -> Float[Array, " frame"]:
    """Return the time in the reference that belongs to every frame of a motion.

    Implements Bodenheimer1997, Sec. 3.2: time is linear between key times marked by
    hand. Departure: without keys, dynamic time warping of poses matches the frames.
    The two beginnings and the two ends belong together, unless keys beyond them say
    otherwise.

    Args:
        reference: The motion whose time is wanted.
        motion: The motion to match.
        keys: Pairs of corresponding times (in the reference, in the motion), in
            seconds on the clock of each.

    Raises:
        OptionError: If keys do not rise in both motions, or lie outside.
        DataError: If a motion has no frames, or without keys no joint in common.
    """
    for one in (reference, motion):
        if one.n_frames == 0 or not one.rate > 0.0:
            raise DataError(
                "reference", found="a motion without even frames", needed="frames"
            )
    if not keys:
        return _warp_frames(reference, motion)
    pairs = np.array(sorted(keys, key=lambda pair: pair[1]), dtype=float).reshape(-1, 2)
    start, end = np.array(
        [(one.start, one.start + one.duration) for one in (reference, motion)]
    ).T
    inside = (pairs >= start - TIME_ROUNDING_S) & (pairs <= end + TIME_ROUNDING_S)
    if not inside.all() or (np.diff(pairs, axis=0) <= 0.0).any():
        raise OptionError(
            "keys",
            found=list(keys),
            needed=f"times that rise in both, within {start[0]:g} to {end[0]:g} s "
            f"and {start[1]:g} to {end[1]:g} s",
        )
    if (pairs[0] > start).all():
        pairs = np.concatenate([[start], pairs])
    if (pairs[-1] < end).all():
        pairs = np.concatenate([pairs, [end]])
    return np.asarray(np.interp(motion.times, pairs[:, 1], pairs[:, 0]))


def warp_time(reference: Motion, motion: Motion, keys: Keys = ()) -> Motion:
    """Return the reference in the time of another motion, frame for frame."""
    times = match_times(reference, motion, keys)
    end = reference.start + reference.duration
    warped = reference.at(np.clip(times, reference.start, end))
    skeleton, T_world_root = reference.skeleton, warped.T_world_root
    return motion_on_clock(motion, skeleton, T_world_root, warped.wxyz)


def compare_joint_use(motion: Motion, reference: Motion, keys: Keys = ()) -> JointUse:
    """Return how much the joint rotations of two motions differ, matched in time.

    The comparison of Bodenheimer1997, Figs. 7-9, as a number: two reaches can only be
    blended into a third if their shoulders rotate similarly.

    Args:
        motion: One motion.
        reference: The other.
        keys: As in `match_times`.

    Raises:
        DataError: If they have no rotating joint in common.
    """
    reference, joints = retarget(reference, motion.skeleton)
    if not len(joints):
        raise DataError(
            "joint use", found="no rotating joint in common", needed="one or more"
        )
    other = warp_time(reference, motion, keys)
    q, p = motion.wxyz[:, joints], other.wxyz[:, joints]
    angle = geometry.quat_log(geometry.quat_multiply(geometry.quat_conjugate(p), q))
    euler = motion.euler("XYZ")[:, joints] - other.euler("XYZ")[:, joints]
    # Curves that differ by whole turns are the same curve.
    euler -= 2.0 * np.pi * np.round(np.nanmean(euler, axis=0) / (2.0 * np.pi))
    return JointUse(
        tuple(motion.skeleton.names[j] for j in joints),
        np.sqrt(np.nanmean(np.sum(angle**2, axis=-1), axis=0)),
        np.sqrt(np.nanmean(np.sum(euler**2, axis=-1), axis=0)),
    )


def _warp_frames(reference: Motion, motion: Motion) -> Float[Array, " frame"]:
    """Return the times in the reference by dynamic time warping of sampled frames."""
    reference, joints = retarget(reference, motion.skeleton)
    if not len(joints):
        raise DataError(
            "reference",
            found="no rotating joint in common",
            needed="a motion of the same joints, or keys",
        )
    frames = _sample_frames(motion.n_frames)
    reference_frames = _sample_frames(reference.n_frames)
    a = _pose_features(motion, frames, joints)
    b = _pose_features(reference, reference_frames, joints)
    match = dynamic_time_warping(np.linalg.norm(a[:, None] - b[None], axis=-1))
    times = np.interp(
        match, np.arange(len(reference_frames)), reference.times[reference_frames]
    )
    return np.asarray(np.interp(motion.times, motion.times[frames], times))


def _sample_frames(n: int) -> Int[Array, " frame"]:
    """Return evenly spaced frames and the last one of n."""
    return np.append(np.arange(n - 1)[evenly_spaced(n)], n - 1)


def _pose_features(
    motion: Motion, frames: Int[Array, " frame"], joints: Int[Array, " joint"]
) -> Float[Array, "frame number"]:
    """Return the positions of bone ends in the root's frame, by the longest bone.

    The end of a bone, the mean of a joint's children, shows the rotation of the joint;
    its own position shows only that of its parent.
    """
    skeleton = motion.skeleton
    T = skeleton.forward(motion.T_world_root[frames], motion.wxyz[frames])
    position = T[..., :3, 3]
    ends = [
        position[:, children].mean(axis=1)
        if (children := skeleton.parent == j).any()
        else position[:, j]
        for j in joints
    ]
    in_root = geometry.apply(geometry.inverse(T[:, :1]), np.stack(ends, axis=1))
    size = max(float(skeleton.lengths.max()), np.finfo(float).tiny)
    return np.nan_to_num(in_root.reshape(len(frames), -1) / size)


def dynamic_time_warping(cost: Float[Array, "frame other"]) -> Float[Array, " frame"]:
    r"""Return the frame of the other motion, in fractions, that matches each frame.

    Dynamic time warping (Sakoe and Chiba, 1978): the path of least cost from both
    beginnings to both ends, by the recursion

    .. math:: D_{ij} = c_{ij} + \min(D_{i-1,j-1}, D_{i-1,j} + r, D_{i,j-1} + r)

    with the cost r of repeating a frame. A frame that matches several gets their mean.
    """
    n, m = cost.shape
    repeat = REPEAT_COST * float(np.median(cost.min(axis=1))) + 1e-9
    total = np.full((n + 1, m + 1), np.inf)
    total[0, 0] = 0.0
    # All cells of an antidiagonal are filled at once.
    for s in range(n + m - 1):
        a = np.arange(max(0, s - m + 1), min(n, s + 1))
        b = s - a
        repeated = np.minimum(total[a, b + 1], total[a + 1, b]) + repeat
        total[a + 1, b + 1] = cost[a, b] + np.minimum(total[a, b], repeated)
    match, count = np.zeros(n), np.zeros(n)
    i, j = n, m
    while i > 0 and j > 0:
        match[i - 1] += j - 1
        count[i - 1] += 1
        steps = ((i - 1, j - 1, 0.0), (i - 1, j, repeat), (i, j - 1, repeat))
        i, j, _ = min(steps, key=lambda step: total[step[0], step[1]] + step[2])
    return np.asarray(match / np.maximum(count, 1))
