"""Holds found in a motion: a hand on a rail, on a hip, in the other hand, on a prop."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from marey.errors import DataError
from marey.motion import Motion
from marey.numerics import geometry
from marey.pose.contact.footing import Footing, find_footing
from marey.pose.contact.hmm import noise_of, standing
from marey.pose.contact.points import Spots, tall, tips_of
from marey.pose.contact.stance import Plant, plants_of
from marey.pose.physics.options import Hold

Array = np.ndarray

# A shorter hold is none, in seconds.
SHORTEST = 0.4

# What is held is this near to the joint whose bone holds it, in heights of the figure.
REACH = 0.15

# The limb of what is held moves by this much meanwhile, in heights of the figure, and
# so many times as far as what is held strays: else nothing but rest holds it.
MOVES, FURTHER = 0.008, 4.0

# Joints on the way from what is held to what holds it, from which it may bend to it.
STEPS = 4

# Share of a hold's time for which another may have the same body.
OVERLAP = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    """A point that keeps its place somewhere for a while."""

    spot: int
    plant: Plant
    other: str
    """The joint of the figure that holds it; none for the world and for props."""

    path: Float[Array, "frame 3"] | None
    """Where a prop has it in the world."""

    spread: float
    apart: float
    """How far from what holds it, in metres."""


def find_holds(
    motion: Motion,
    props: Mapping[str, Motion] | None = None,
    *,
    strength: float = 10.0,
) -> tuple[Hold, ...]:
    """Return the points of a figure that are held for a while, found in its motion.

    The tips of its limbs are looked at from the world, from its own bones further away
    and from the bones of props. A tip is held where it keeps its place there, told as
    plants are by a model of two states, while the limb that it belongs to moves; by a
    bone or a prop only where it is near. Of several that might hold it, the one in
    which it strays least does; of those, the nearest. Feet on the ground are contacts,
    not holds: see `marey.pose.contact.footing`.

    Args:
        motion: A motion at one rate.
        props: Other figures of the same recording, by name, frame by frame with it.
        strength: Stiffness of each hold, as a multiple of a marker's; above 0.

    Returns:
        Holds in order of their beginning, for `solve_pose(..., method="physics")`.

    Raises:
        DataError: If frames are not evenly spaced, or a prop has others.
    """
    for name, prop in (props or {}).items():
        if prop.n_frames != motion.n_frames:
            raise DataError(
                f"prop {name}", found=prop.n_frames, needed=f"{motion.n_frames} frames"
            )
    footing = find_footing(motion)
    spots, high = tips_of(motion), tall(motion)
    if motion.n_frames < 2 or not high > 0.0:
        return ()
    found = [
        one
        for one in _candidates(motion, props or {}, spots, high)
        if not _stands(one, spots, footing)
    ]
    chosen: list[_Found] = []
    for one in sorted(found, key=_doubt):
        if not any(_rivals(one, other, spots) for other in chosen):
            chosen.append(one)
    chosen.sort(key=lambda one: (one.plant.start, one.spot))
    return tuple(_hold(one, motion, spots, strength) for one in chosen)


def _candidates(
    motion: Motion, props: Mapping[str, Motion], spots: Spots, high: float
) -> Iterator[_Found]:
    """Yield tips that keep their place, in the world, on bones and on props."""
    T, names = motion.T_world_joint(), motion.skeleton.names
    tips = _Tips(
        spots,
        spots.paths(T),
        _limbs(motion, spots),
        motion.rate,
        high,
    )
    world = np.broadcast_to(np.eye(4), (len(T), 4, 4))
    for spot, plant, spread, _ in tips.kept(world, np.inf):
        yield _Found(spot, plant, "", None, spread, 0.0)
    for joint in np.flatnonzero(np.array(motion.skeleton.kind) != "fixed").tolist():
        for spot, plant, spread, apart in tips.kept(T[:, joint], REACH):
            if _steps(motion, joint, int(spots.body[spot])) >= STEPS:
                yield _Found(spot, plant, names[joint], None, spread, apart)
    for prop in props.values():
        for pose in prop.T_world_joint().swapaxes(0, 1):
            for spot, plant, spread, apart in tips.kept(pose, REACH):
                path = geometry.apply(pose, plant.anchor)
                yield _Found(spot, plant, "", path, spread, apart)


@dataclass(frozen=True, slots=True, eq=False)
class _Tips:
    """The tips of a figure's limbs, on their ways through the world."""

    spots: Spots
    paths: Float[Array, "frame spot 3"]
    limbs: Float[Array, "frame spot two 3"]
    """Where the two joints above each tip's body are."""

    rate: float
    high: float

    def kept(
        self, T: Float[Array, "frame 4 4"], near: float
    ) -> Iterator[tuple[int, Plant, float, float]]:
        """Yield tips that keep their place in a frame of reference while limbs move.

        With how far they stray there, and how far they are from its origin.
        """
        back = geometry.inverse(T)
        mine = geometry.apply(back[:, None], self.paths)
        trust = np.ones(mine.shape[:2])
        state = standing(mine, trust, self.rate, self.high)
        away = np.linalg.norm(mine, axis=-1)
        state &= away < near * self.high
        noise = noise_of(mine)
        for plant in plants_of(state, mine, trust, self.rate, self.high):
            spot, frames = plant.spot, plant.frames
            apart = float(np.linalg.norm(plant.anchor))
            if len(frames) < SHORTEST * self.rate or apart > near * self.high:
                continue
            spread = max(_spread(mine[frames][:, spot, None]), float(noise[spot]))
            limb = geometry.apply(back[frames, None], self.limbs[frames, spot])
            if _spread(limb) > max(MOVES * self.high, FURTHER * spread):
                yield spot, plant, max(spread, 1e-4), apart


def _spread(path: Float[Array, "frame point 3"]) -> float:
    """Return how far points stray from their means, root mean square, the most."""
    away = np.sum((path - np.nanmean(path, axis=0)) ** 2, axis=-1)
    return float(np.sqrt(np.nanmean(away, axis=0).max()))


def _limbs(motion: Motion, spots: Spots) -> Float[Array, "frame spot two 3"]:
    """Return where the two joints above each tip's body are, which must move."""
    parent = motion.skeleton.parent
    above = parent[spots.body].clip(min=0)
    pairs = np.stack([above, parent[above].clip(min=0)], axis=1)
    return motion.T_world_joint()[:, pairs][..., :3, 3]


def _steps(motion: Motion, one: int, other: int) -> int:
    """Return how many joints are on the way from one joint to another."""
    return len(set(_line(motion, one)) ^ set(_line(motion, other)))


def _line(motion: Motion, joint: int) -> list[int]:
    line = [joint]
    while motion.skeleton.parent[line[-1]] >= 0:
        line.append(int(motion.skeleton.parent[line[-1]]))
    return line


def _stands(one: _Found, spots: Spots, footing: Footing) -> bool:
    """Return whether the tip's body stands on the ground meanwhile."""
    return any(
        footing.spots.body[plant.spot] == spots.body[one.spot]
        and _shared(plant, one.plant) > 0.0
        for plant in footing.plants
    )


def _shared(one: Plant, other: Plant) -> float:
    """Return the share of the shorter stretch that both have."""
    both = min(one.end, other.end) - max(one.start, other.start)
    return max(both, 0.0) / max(min(one.end - one.start, other.end - other.start), 1.0)


def _doubt(one: _Found) -> tuple[int, float]:
    return int(np.round(np.log2(one.spread))), one.apart


def _rivals(one: _Found, other: _Found, spots: Spots) -> bool:
    """Return whether two are of one body at one time, or hold each other."""
    mine, theirs = (spots.names[found.spot] for found in (one, other))
    same = mine == theirs or (one.other == theirs and other.other == mine)
    return same and _shared(one.plant, other.plant) > OVERLAP


def _hold(one: _Found, motion: Motion, spots: Spots, strength: float) -> Hold:
    plant = one.plant
    return Hold(
        joint=motion.skeleton.names[spots.joint[one.spot]],
        point=spots.place[one.spot],
        to=plant.anchor if one.path is None else one.path,
        other=one.other,
        start=motion.start + plant.start / motion.rate,
        end=motion.start + plant.end / motion.rate,
        strength=strength,
    )
