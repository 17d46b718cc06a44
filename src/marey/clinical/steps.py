"""Steps of a walk: events, cadence, speed, step lengths and widths, gait cycles."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from marey.anatomy import names as vrm
from marey.anatomy.name_schemes import recognise_joints
from marey.clinical.joint_angles import JointAngles
from marey.errors import DataError
from marey.motion import Motion
from marey.numerics import Array, Float, Int, geometry

CYCLE_POINTS = 101
"""Points of a gait cycle, from 0 to 100 per cent, as published curves have them."""


@dataclass(frozen=True, slots=True, eq=False)
class Stance:
    """One stance of one foot."""

    side: str
    """"Left" or "Right"."""

    start: float
    """Second of the initial contact."""

    end: float
    """Second at which the foot leaves the ground."""

    position: Float[Array, " 3"]
    """Where the ankle is in the middle of the stance, in metres."""

    whole: bool
    """Whether both start and end lie inside the recording."""


@dataclass(frozen=True, slots=True, eq=False)
class Gait:
    """The steps of one walk; a number that the steps do not give is NaN."""

    plants: tuple[Stance, ...]
    """Stances in the order of their initial contacts."""

    cadence: float
    """Steps per minute."""

    speed: float
    """Mean speed of the root over the ground, in metres per second."""

    step_length: dict[str, Float[Array, " _"]]
    """Way forward from the other foot to this one, in metres, by side."""

    step_width: Float[Array, " _"]
    """Way across from each foot to the next, in metres."""

    stride_time: Float[Array, " _"]
    """Seconds from each initial contact to the next one of the same foot."""

    stance_share: Float[Array, " _"]
    """Share of each stride in which its foot stands."""

    double_support: float
    """Share of the time in which both feet stand, between the second and the last
    initial contact."""

    def initial_contacts(self, side: str, after: float) -> list[float]:
        """Return the seconds at which a foot strikes the ground.

        Args:
            side: "Left" or "Right".
            after: Start of the recording: a foot that stands there struck before it.
        """
        return [p.start for p in self.plants if p.side == side and p.start > after]

    def mean_cycle(
        self, angles: JointAngles, name: str, side: str
    ) -> tuple[Float[Array, " point"], Float[Array, " point"], int]:
        """Return mean and standard deviation of an angle over a gait cycle.

        Args:
            angles: The angles of the same motion.
            name: Which one: "left_knee_flexion".
            side: The foot whose initial contacts begin the cycles.

        Returns:
            Degrees at 0, 1 ... 100 per cent of the cycle, their standard deviation
            between cycles, and the number of cycles.

        Raises:
            DataError: If there is no whole cycle, or no such angle.
        """
        starts = self.initial_contacts(side, float(angles.times[0]))
        values = angles[name]
        known = np.isfinite(values)
        cycles = [
            np.interp(
                np.linspace(begin, end, CYCLE_POINTS),
                angles.times[known],
                values[known],
            )
            for begin, end in pairwise(starts)
            if known.any()
        ]
        if not cycles:
            found = f"{len(starts)} initial contacts of the foot {side!r}"
            raise DataError("gait cycle", found=found, needed="two or more")
        return np.mean(cycles, axis=0), np.std(cycles, axis=0), len(cycles)


def gait(motion: Motion) -> Gait:
    """Return the steps of a walk.

    A foot strikes the ground where its ankle is farthest ahead of the hips, and leaves
    it where its toes are farthest behind (Zeni and others, Gait Posture 27 (2008) 710).

    Args:
        motion: A person who walks or runs; forward may change.

    Raises:
        DataError: If it has no feet, or no steps of both.
    """
    plants = _find_plants(motion)
    sides = {plant.side for plant in plants}
    if sides != set(vrm.SIDES):
        raise DataError(
            "gait",
            found=f"steps of {', '.join(sorted(sides)) or 'no foot'}",
            needed="a walk of a person with a LeftFoot and a RightFoot",
        )
    lengths, widths = _step_sizes(plants)
    starts = [plant.start for plant in plants if plant.start > motion.start]
    duration = starts[-1] - starts[0] if len(starts) > 1 else np.nan
    strides, stances = _strides(plants, motion)
    return Gait(
        plants=plants,
        cadence=float(60.0 * (len(starts) - 1) / duration),
        speed=_speed(motion),
        step_length=lengths,
        step_width=widths,
        stride_time=strides,
        stance_share=stances,
        double_support=_double_support(plants),
    )


def _find_plants(motion: Motion) -> tuple[Stance, ...]:
    """Return the stances of both feet, by their initial contacts."""
    joints = {n: i for i, n in recognise_joints(motion.skeleton.names).items()}
    position = motion.T_world_joint()[..., :3, 3]
    forward = _walking_direction(motion)
    plants: list[Stance] = []
    for side in vrm.SIDES:
        ankle = joints.get(side + vrm.FOOT)
        if ankle is None:
            continue
        toes = joints.get(side + vrm.TOES, ankle)
        ahead = position[:, [ankle, toes]] - position[:, :1]
        ahead = np.einsum("fji,fi->fj", ahead, forward)
        strikes, leaves = _extrema(ahead[:, 0]), _extrema(-ahead[:, 1])
        plants += _pair_events(motion, side, strikes, leaves, position[:, ankle])
    return tuple(sorted(plants, key=lambda plant: plant.start))


def _walking_direction(motion: Motion) -> Float[Array, "frame 3"]:
    """Return the horizontal direction of the root within a second; else zero.

    Within a second a walker makes two steps, so that the hips' sway cancels.
    """
    root = motion.T_world_root[:, :3, 3] * [1.0, 1.0, 0.0]
    half = max(int(0.5 * motion.rate), 1)
    frame = np.arange(motion.n_frames)
    last = motion.n_frames - 1
    moved = root[np.minimum(frame + half, last)] - root[np.maximum(frame - half, 0)]
    return np.asarray(np.nan_to_num(geometry.unit_vectors(moved)))


def _extrema(ahead: Float[Array, " frame"]) -> Int[Array, " _"]:
    """Return the frames of the peaks that stand out by half of all that the foot does.

    The half divides steps from the wobbles between them. Beyond both ends of the
    recording the foot is taken to return; the ends themselves are no peaks.
    """
    from scipy.signal import find_peaks  # slow to import

    known = np.isfinite(ahead)
    if not known.any():
        return np.zeros(0, dtype=np.int64)
    filled = np.interp(np.arange(len(ahead)), np.flatnonzero(known), ahead[known])
    closed = np.pad(filled, 1, constant_values=filled.min())
    peaks = find_peaks(closed, prominence=0.5 * float(np.ptp(filled)))[0] - 1
    peaks = peaks[(peaks > 0) & (peaks < len(filled) - 1)]
    return np.asarray(peaks, dtype=np.int64)


def _pair_events(
    motion: Motion,
    side: str,
    strikes: Int[Array, " _"],
    leaves: Int[Array, " _"],
    ankle: Float[Array, "frame 3"],
) -> list[Stance]:
    """Return the stances between strikes and the next frames at which the foot leaves.

    A stance that the recording cuts begins or ends with it.
    """
    last = motion.n_frames - 1
    starts, ends = strikes.tolist(), leaves.tolist()
    if ends and (not starts or ends[0] < starts[0]):
        starts = [0, *starts]
    plants = []
    for k, start in enumerate(starts):
        limit = starts[k + 1] if k + 1 < len(starts) else last + 1
        end = next((frame for frame in ends if start < frame < limit), None)
        if end is None and limit <= last:
            continue
        whole = start in strikes and end is not None
        end = last if end is None else end
        place = ankle[(start + end) // 2]
        times = motion.times[[start, end]].tolist()
        plants.append(Stance(side, times[0], times[1], place, whole))
    return plants


def _step_sizes(
    plants: Sequence[Stance],
) -> tuple[dict[str, Float[Array, " _"]], Float[Array, " _"]]:
    """Return the lengths of steps by side, and their widths, in metres."""
    lengths: dict[str, list[float]] = {side: [] for side in vrm.SIDES}
    widths = []
    for before, now in pairwise(plants):
        forward = _forward(plants, now)
        if before.side == now.side or forward is None:
            continue
        step = (now.position - before.position)[:2]
        lengths[now.side].append(float(step @ forward))
        widths.append(abs(float(forward[0] * step[1] - forward[1] * step[0])))
    return {side: np.array(values) for side, values in lengths.items()}, np.array(
        widths
    )


def _forward(plants: Sequence[Stance], now: Stance) -> Array | None:
    """Return the horizontal unit vector from a foot's stance before to its stance now.

    For the first stance it leads to the next one; None without another.
    """
    same = [plant for plant in plants if plant.side == now.side]
    k = same.index(now)
    if len(same) < 2:
        return None
    a, b = (same[k - 1], now) if k else (now, same[1])
    step = (b.position - a.position)[:2]
    length = float(np.linalg.norm(step))
    return step / length if length > 0.0 else None


def _strides(
    plants: Sequence[Stance], motion: Motion
) -> tuple[Float[Array, " _"], Float[Array, " _"]]:
    """Return the times of strides, and the share of each in which its foot stands."""
    times, shares = [], []
    for side in vrm.SIDES:
        same = [plant for plant in plants if plant.side == side]
        for now, after in pairwise(same):
            if now.start > motion.start:
                times.append(after.start - now.start)
                shares.append((now.end - now.start) / times[-1])
    return np.array(times), np.array(shares)


def _speed(motion: Motion) -> float:
    """Return the mean horizontal speed of the root, in metres per second."""
    root = motion.T_world_root[:, :2, 3]
    known = np.flatnonzero(np.isfinite(root).all(axis=1))
    if len(known) < 2:
        return float("nan")
    distance = float(np.linalg.norm(root[known[-1]] - root[known[0]]))
    return distance * motion.rate / float(known[-1] - known[0])


def _double_support(plants: Sequence[Stance]) -> float:
    """Return the share of the time in which both feet stand.

    Counted from the second initial contact, the first at which the other foot is seen
    to stand, to the last one.
    """
    first, last = plants[1].start, plants[-1].start
    both = 0.0
    left, right = (
        [plant for plant in plants if plant.side == side] for side in vrm.SIDES
    )
    for one in left:
        for other in right:
            start = max(one.start, other.start, first)
            both += max(0.0, min(one.end, other.end, last) - start)
    return both / (last - first) if last > first else float("nan")
