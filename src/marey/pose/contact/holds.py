"""Holds: hands on a rail, on a hip, in another hand or on a prop, found in a motion."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from marey.errors import DataError, OptionError
from marey.motion import Motion
from marey.numerics import Array, Float, empty_array, geometry
from marey.numerics.thresholds import (
    MARKER_NOISE_M,
    MAX_OVERLAP,
    MIN_DURATION_S,
    MIN_JOINTS_BETWEEN,
    OUTLIER_SD,
)
from marey.pose.contact.foot_plants import FootPlant, find_foot_plants
from marey.pose.contact.ground import GroundContacts
from marey.pose.contact.ground_contacts import (
    contact_frames,
    contact_offsets,
    find_ground_contacts,
)
from marey.pose.contact.points import (
    SAME_PLACE,
    ContactPoints,
    MotionPoses,
    PointTracks,
    find_limb_tips,
)
from marey.pose.contact.stance import detect_stance, estimate_noise
from marey.tree import ancestors_of

MAX_HOLD_DISTANCE = 0.15
"""Largest distance of a held tip from the joint whose bone holds it, in heights of the
figure. Raising it finds holds by bones further away. Chosen by hand."""

HOLD_STRENGTH = 10.0
"""Stiffness of the spring that holds, as a multiple of a marker's. Raising it pulls
further off the markers. Chosen by hand."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Hold:
    """A point of the figure that is held for a while: a hand on a rail, or on a hip."""

    joint: str
    """Name of the joint whose bone is held."""

    point: Float[np.ndarray, " 3"] = empty_array(3)
    """The held point in the joint's frame, in metres."""

    target: Float[np.ndarray, "*frame 3"]
    """Position at which it is held, in metres: in the world, or in the frame of
    `target_joint`. In the world it may be given by frame, for a target that moves."""

    target_joint: str = ""
    """Name of the joint whose bone holds it; empty when the world holds it."""

    start: float = -np.inf
    """Second at which the hold begins, on the take's clock."""

    end: float = np.inf
    """Second at which it ends."""

    strength: float = HOLD_STRENGTH
    """Stiffness of the spring that holds, as a multiple of a marker's; above 0."""

    def __post_init__(self) -> None:
        if not 0.0 < self.strength < np.inf:
            raise OptionError(
                "strength", found=self.strength, needed="a number above 0"
            )
        is_constant = self.target.ndim == 1
        is_finite = np.isfinite(self.point).all() and (
            np.isfinite(self.target).all() or not is_constant
        )
        has_shape = self.target.ndim <= 2 and (is_constant or not self.target_joint)
        if not (is_finite and has_shape):
            raise OptionError(
                f"hold of {self.joint}",
                found=[self.point.tolist(), np.round(self.target, 3).tolist()],
                needed="finite numbers, and one position in the frame of another bone",
            )


def contacts_as_holds(
    motion: Motion, *, strength: float = HOLD_STRENGTH
) -> tuple[Hold, ...]:
    """Return the contacts of a motion as holds: planted feet, a hand on a rail.

    Args:
        motion: A motion with contacts, such as `solve_pose(..., contacts=True)` gives.
        strength: Stiffness of each hold, as a multiple of a marker's; above 0.
    """
    contacts = [c for c in motion.contacts if contact_frames(motion, c)]
    places = contact_offsets(motion, contacts, MotionPoses(motion))
    return tuple(
        Hold(
            joint=contact.joint,
            point=place,
            target=contact.anchor,
            start=contact.start,
            end=contact.end,
            strength=strength,
        )
        for contact, place in zip(contacts, places, strict=True)
    )


@dataclass(frozen=True, slots=True, eq=False)
class _HoldCandidate:
    """A tip that stays in place in some frame of reference for a while."""

    plant: FootPlant
    target_joint: str
    """The joint of the figure that holds it; empty for the world and for props."""

    path: Float[Array, "frame 3"] | None
    """Position of a prop's target in the world; None for other targets."""

    spread: float
    """Root-mean-square motion of the tip in the frame of reference, in metres."""

    distance: float
    """Distance from the origin of the frame of reference, in metres."""

    @property
    def rank(self) -> tuple[int, float]:
        """Order of preference: the least spread by powers of two, then the nearest."""
        return int(np.round(np.log2(self.spread))), self.distance


def find_holds(
    motion: Motion,
    props: Mapping[str, Motion] | None = None,
    *,
    strength: float = HOLD_STRENGTH,
) -> tuple[Hold, ...]:
    """Return the points of a figure that are held for a while, found in its motion.

    The tips of the limbs are expressed in the world, in the frames of other bones of
    the figure and in those of props. A tip is held where it stays in place in one of
    these frames while its limb moves; stances are detected as for feet, by a two-state
    hidden Markov model. A bone or a prop holds a tip only where it is near. If there
    are several candidates at a time, the one in which the tip moves least is taken, and
    the nearest of equal ones. Feet on the ground are contacts, not holds: see
    `marey.pose.contact.ground_contacts`.

    Args:
        motion: A motion at one rate.
        props: Other figures of the same recording, by name, with the same frames.
        strength: Stiffness of each hold, as a multiple of a marker's; above 0.

    Returns:
        Holds by start, for `solve_pose(..., method="physics")`.

    Raises:
        DataError: If frames are not evenly spaced, or a prop has other frames.
    """
    props = props or {}
    for name, prop in props.items():
        if prop.n_frames != motion.n_frames:
            raise DataError(
                f"prop {name}", found=prop.n_frames, needed=f"{motion.n_frames} frames"
            )
    contacts = find_ground_contacts(motion)
    if motion.n_frames < 2 or not MotionPoses(motion).figure_height > 0.0:
        return ()
    tips = _LimbTips.of(motion)
    candidates = [
        candidate
        for candidate in _find_candidates(motion, props, tips)
        if not _is_foot_on_ground(candidate.plant, tips.points, contacts)
    ]
    chosen: list[_HoldCandidate] = []
    for candidate in sorted(candidates, key=lambda candidate: candidate.rank):
        if not any(_are_rivals(candidate, other, tips.points) for other in chosen):
            chosen.append(candidate)
    chosen.sort(key=lambda candidate: (candidate.plant.start, candidate.plant.point))
    return tuple(_make_hold(found, motion, tips.points, strength) for found in chosen)


@dataclass(frozen=True, slots=True, eq=False)
class _LimbTips:
    """The tips of a figure's limbs through time."""

    points: ContactPoints
    tracks: PointTracks
    limbs: Float[Array, "frame point two 3"]
    """Positions of the parent and the grandparent of each tip's body."""

    @classmethod
    def of(cls, motion: Motion) -> "_LimbTips":
        """Return the tips of a motion."""
        points, T_world_joint = find_limb_tips(motion), motion.T_world_joint()
        positions = points.positions(T_world_joint)
        height = MotionPoses(motion).figure_height
        visibility = np.ones(positions.shape[:2])
        parents = motion.skeleton.parent
        parent = parents[points.body].clip(min=0)
        pairs = np.stack([parent, parents[parent].clip(min=0)], axis=1)
        return cls(
            points,
            PointTracks(positions, visibility, motion.rate, height),
            T_world_joint[:, pairs][..., :3, 3],
        )

    def find_still_tips(
        self, T_world_frame: Float[Array, "frame 4 4"], reach: float
    ) -> Iterator[tuple[FootPlant, float, float]]:
        """Yield tips that are still in a frame of reference while their limbs move.

        Args:
            T_world_frame: The frame of reference.
            reach: Largest distance from its origin, in heights of the figure.

        Yields:
            The interval, the spread of the tip and its distance from the origin.
        """
        T_frame_world = geometry.inverse(T_world_frame)
        positions = geometry.apply(T_frame_world[:, None], self.tracks.positions)
        tracks, height = (
            replace(self.tracks, positions=positions),
            self.tracks.figure_height,
        )
        is_near = np.linalg.norm(positions, axis=-1) < reach * height
        noise = estimate_noise(positions)
        for plant in find_foot_plants(detect_stance(tracks) & is_near, tracks):
            point, frames = plant.point, plant.frames
            distance = float(np.linalg.norm(plant.anchor))
            if len(frames) < MIN_DURATION_S * tracks.rate or distance > reach * height:
                continue
            spread = _largest_rms(positions[frames][:, point, None])
            spread = max(spread, float(noise[point]))
            limb = geometry.apply(
                T_frame_world[frames, None], self.limbs[frames, point]
            )
            # Otherwise the tip is still because the whole limb is.
            needed = max(0.5 * SAME_PLACE * height, OUTLIER_SD * spread)
            if _largest_rms(limb) > needed:
                yield plant, max(spread, MARKER_NOISE_M), distance


def _find_candidates(
    motion: Motion, props: Mapping[str, Motion], tips: _LimbTips
) -> Iterator[_HoldCandidate]:
    """Yield tips that are still in the world, on bones and on props."""
    T_world_joint, skeleton = motion.T_world_joint(), motion.skeleton
    T_world_world = np.broadcast_to(np.eye(4), (len(T_world_joint), 4, 4))
    for plant, spread, _ in tips.find_still_tips(T_world_world, np.inf):
        yield _HoldCandidate(plant, "", None, spread, 0.0)
    for joint in np.flatnonzero(skeleton.rotates).tolist():
        T_world_bone = T_world_joint[:, joint]
        for plant, *measures in tips.find_still_tips(T_world_bone, MAX_HOLD_DISTANCE):
            body = int(tips.points.body[plant.point])
            between = set(ancestors_of(skeleton.parent, joint))
            between ^= set(ancestors_of(skeleton.parent, body))
            if len(between) >= MIN_JOINTS_BETWEEN:
                yield _HoldCandidate(plant, skeleton.names[joint], None, *measures)
    poses = (prop.T_world_joint().swapaxes(0, 1) for prop in props.values())
    for T_world_prop in chain.from_iterable(poses):
        for plant, *measures in tips.find_still_tips(T_world_prop, MAX_HOLD_DISTANCE):
            path = geometry.apply(T_world_prop, plant.anchor)
            yield _HoldCandidate(plant, "", path, *measures)


def _largest_rms(positions: Float[Array, "frame point 3"]) -> float:
    """Return the largest root-mean-square distance of a point from its mean."""
    square = np.sum((positions - np.nanmean(positions, axis=0)) ** 2, axis=-1)
    return float(np.sqrt(np.nanmean(square, axis=0).max()))


def _is_foot_on_ground(
    plant: FootPlant, points: ContactPoints, contacts: GroundContacts
) -> bool:
    """Return whether the tip's body stands on the ground at the same time."""
    return any(
        contacts.points.body[other.point] == points.body[plant.point]
        and _overlap(other, plant) > 0.0
        for other in contacts.plants
    )


def _overlap(first: FootPlant, second: FootPlant) -> float:
    """Return the common time of two intervals as a share of the shorter one."""
    common = min(first.end, second.end) - max(first.start, second.start)
    shorter = min(first.end - first.start, second.end - second.start)
    return max(common, 0.0) / max(shorter, 1.0)


def _are_rivals(
    first: _HoldCandidate, second: _HoldCandidate, points: ContactPoints
) -> bool:
    """Return whether two holds are of one body at one time, or hold each other."""
    names = [points.names[candidate.plant.point] for candidate in (first, second)]
    is_mutual = [first.target_joint, second.target_joint] == names[::-1]
    is_same = names[0] == names[1] or is_mutual
    return is_same and _overlap(first.plant, second.plant) > MAX_OVERLAP


def _make_hold(
    found: _HoldCandidate, motion: Motion, points: ContactPoints, strength: float
) -> Hold:
    """Return a candidate as a hold, its point in metres and its times in seconds."""
    plant, (start, end) = found.plant, found.plant.times(motion)
    return Hold(
        joint=motion.skeleton.names[points.joint[plant.point]],
        point=points.offset[plant.point],
        target=plant.anchor if found.path is None else found.path,
        target_joint=found.target_joint,
        start=start,
        end=end,
        strength=strength,
    )
