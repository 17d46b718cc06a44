"""The points of a figure that may touch the ground, and their paths."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from marey.motion import Motion
from marey.numerics import geometry
from marey.skeleton import Skeleton

Array = np.ndarray

# Per cent of the frames in which a point is lower than what is called its low height.
LOW = 10.0

# Places closer than this, in metres, are one.
SAME = 1e-3

# Heights that differ by less than this share of the figure's are alike.
ALIKE = 0.01


@dataclass(frozen=True, slots=True, eq=False)
class Spots:
    """Points on the outermost bodies: heels, toes, fingertips, or markers there."""

    joint: Int[Array, " spot"]
    """The joint in whose frame each point rests."""

    place: Float[Array, "spot 3"]
    """Its place there, in metres."""

    names: tuple[str, ...]
    """The joint each is called by: an end by its own name, a marker by its bone's."""

    body: Int[Array, " spot"]
    """The turning joint that moves each; points of one body keep their distances."""

    sole: Bool[Array, " spot"]
    """Whether it is the end of a bone. A marker or sensor sits on top of a foot, and
    may dip below where it stands when the foot rolls over its toes: it tells no
    floor."""

    def paths(
        self, T_world_joint: Float[Array, "frame joint 4 4"]
    ) -> Float[Array, "frame spot 3"]:
        """Return where the points are in every frame."""
        return geometry.apply(T_world_joint[:, self.joint], self.place)

    def only(self, which: Int[Array, " some"] | Bool[Array, " spot"]) -> "Spots":
        """Return some of the points."""
        names = tuple(np.array(self.names, dtype=object)[which])
        return Spots(
            self.joint[which],
            self.place[which],
            names,
            self.body[which],
            self.sole[which],
        )


def spots_of(motion: Motion) -> Spots:
    """Return the points of a figure that may touch the ground.

    They sit on the outermost bodies, and on those one further in that get as low: the
    heel of a foot that has toes of its own. Ends of bones are taken where they get
    lower than the markers of their body, as soles do; else the markers, because a
    single end of a bone may be no more than the middle of them.
    """
    every = _candidates(motion.skeleton)
    is_end = np.arange(len(every.joint)) < motion.skeleton.is_end.sum()
    height = every.paths(motion.T_world_joint())[..., 2]
    height = height[np.isfinite(height).all(axis=1)]
    if not height.size:
        return every.only(np.zeros(0, dtype=np.int64))
    low = np.percentile(height, LOW, axis=0)
    alike = ALIKE * tall(motion)
    above, outer = _body_above(motion.skeleton), _outermost(motion.skeleton)
    keep = np.zeros(len(low), dtype=bool)
    for body in set(every.body.tolist()):
        mine = every.body == body
        tips = [b for b in outer if above[b] == body]
        deepest = low[np.isin(every.body, tips)].min(initial=-np.inf)
        if body in outer or (tips and low[mine].min() < deepest + alike):
            keep |= _lower_kind(mine, is_end, low, alike)
    return every.only(keep)


def tips_of(motion: Motion) -> Spots:
    """Return points of every outermost body: its joint, its ends, and its middle.

    A hand may be held by its palm, by a finger or at the wrist.
    """
    skeleton = motion.skeleton
    every, rest = _candidates(skeleton), skeleton.rest()
    joint, place = [], []
    for body in _outermost(skeleton):
        mine = every.only(every.body == body)
        at = geometry.apply(rest[mine.joint], mine.place)
        marks = geometry.apply(geometry.inverse(rest[body]), at)
        ends = marks[skeleton.is_end[mine.joint]]
        points = [np.zeros((1, 3)), ends, marks.mean(axis=0)[None] if len(at) else ends]
        place.append(np.concatenate(points))
        joint += [body] * len(place[-1])
    places = np.concatenate([np.zeros((0, 3)), *place])
    none = np.zeros(len(joint), dtype=bool)
    return spots_at(skeleton, np.array(joint, dtype=np.int64), places, none)


def _outermost(skeleton: Skeleton) -> list[int]:
    """Return the bodies that nothing hangs from; a lone root's too."""
    above = _body_above(skeleton)
    hang = list(above.values())
    return [b for b in above if hang.count(b) == 0 or (b == 0 and hang.count(b) == 1)]


def _lower_kind(
    mine: Bool[Array, " spot"],
    is_end: Bool[Array, " spot"],
    low: Float[Array, " spot"],
    alike: float,
) -> Bool[Array, " spot"]:
    """Return the ends of a body, or its markers where these are lower."""
    ends, markers = mine & is_end, mine & ~is_end
    below = low[markers].min(initial=np.inf) - low[ends].min(initial=np.inf)
    lower = below > (0.0 if ends.sum() > 1 else alike)
    return np.asarray(ends if lower else markers)


def _candidates(skeleton: Skeleton) -> Spots:
    """Return all ends of bones and all markers."""
    ends = np.flatnonzero(skeleton.is_end)
    joint = np.concatenate([ends, skeleton.marker_joint]).astype(np.int64)
    place = np.concatenate([np.zeros((len(ends), 3)), skeleton.marker_offset])
    return spots_at(skeleton, joint, place, np.arange(len(joint)) < len(ends))


def spots_at(
    skeleton: Skeleton,
    joint: Int[Array, " spot"],
    place: Float[Array, "spot 3"],
    is_end: Bool[Array, " spot"],
) -> Spots:
    """Return points of a skeleton, of which some are ends of bones."""
    sole = is_end.copy()
    sole[is_end] &= ~_on_sensor(skeleton, joint[is_end])
    names = tuple(skeleton.names[j] for j in joint)
    return Spots(joint, place, names, _moved_by(skeleton)[joint], sole)


def _on_sensor(skeleton: Skeleton, ends: Int[Array, " end"]) -> Bool[Array, " end"]:
    """Return which ends of bones are no more than where a sensor sits."""
    away = skeleton.offset[ends][:, None] - skeleton.T_joint_sensor[:, :3, 3]
    same = np.linalg.norm(away, axis=-1) < SAME
    same &= skeleton.parent[ends][:, None] == skeleton.sensor_joint
    return np.asarray(same.any(axis=1))


def _moved_by(skeleton: Skeleton) -> Int[Array, " joint"]:
    """Return the joint that turns each joint: itself, or the last that is not fixed."""
    moved = np.arange(skeleton.n_joints)
    for joint, kind in enumerate(skeleton.kind):
        if kind == "fixed":
            moved[joint] = moved[skeleton.parent[joint]]
    return moved


def _body_above(skeleton: Skeleton) -> dict[int, int]:
    """Return the body that each turning joint hangs from; -1 for the root's."""
    moved = _moved_by(skeleton)
    return {
        int(j): int(moved[skeleton.parent[j]]) if j else -1 for j in np.unique(moved)
    }


def tall(motion: Motion) -> float:
    """Return metres from the lowest to the highest marker, or joint, usually."""
    marked = len(motion.skeleton.marker_labels) > 1
    places = motion.marker_points() if marked else motion.T_world_joint()[..., :3, 3]
    z = places[np.isfinite(places).all(axis=(1, 2)), :, 2]
    return float(np.median(np.ptp(z, axis=1))) if len(z) else float("nan")
