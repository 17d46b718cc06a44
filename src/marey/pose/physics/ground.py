"""The ground under a figure on springs: soles, floor, plants (Zordan2003, Sec. 3)."""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int

from marey.articulated.tables import Nodes
from marey.motion import Motion
from marey.pose.contact.footing import Footing, find_footing, firmed
from marey.pose.contact.goals import floor_of
from marey.pose.contact.ground import Floor, Ground
from marey.pose.contact.points import Spots, spots_of
from marey.pose.physics.options import Hold, PhysicsOptions
from marey.take import Take

Array = np.ndarray

ALONG = (0.0, 0.5, 1.0)
"""Where points are spread along a sole, from one end to the other."""

BROAD = 0.2
"""Half the breadth of a sole, by its length."""

PLANTED = 100.0
"""How many markers a plant outweighs that is held at its anchor."""


@dataclass(frozen=True, slots=True, eq=False)
class Soles:
    """Points of a figure that the ground bears."""

    node: Int[Array, " sole"]
    place: Float[Array, "sole 3"]
    """In the node, in metres."""

    share: Float[Array, " sole"]
    """Of what bears a body: those of one body make 1."""

    normal: Float[Array, " 3"]
    """Out of the ground."""

    floor: Float[Array, "frame sole"]
    """The ground along the normal, in metres; -inf where there is none."""

    planted: Bool[Array, "frame sole"]
    """Whether the body is planted, so that friction holds it."""


def nothing_under(n_frames: int) -> Soles:
    """Return soles of a figure that knows no ground."""
    return Soles(
        np.zeros(0, dtype=np.int64),
        np.zeros((0, 3)),
        np.zeros(0),
        np.array([0.0, 0.0, 1.0]),
        np.zeros((n_frames, 0)),
        np.zeros((n_frames, 0), dtype=bool),
    )


def ground_under(
    motion: Motion, nodes: Nodes, take: Take, options: PhysicsOptions
) -> tuple[Soles, tuple[Hold, ...]]:
    """Return what the ground bears, and plants held at their anchors.

    Args:
        motion: Where an outlier-proof fit has the figure.
        nodes: Its turning parts.
        take: The recording.
        options: Whether there is a ground, given or to be found in the motion.
    """
    if options.ground == "none":
        return nothing_under(motion.n_frames), ()
    footing = find_footing(motion, take)
    if isinstance(options.ground, Floor):
        footing = _onto(footing, motion, options.ground)
    footing = firmed(motion, footing)
    soles = _soles(footing, motion, nodes)
    if options.friction < np.inf:
        return soles, ()
    return soles, tuple(
        Hold(
            joint=motion.skeleton.names[footing.spots.joint[plant.spot]],
            point=footing.spots.place[plant.spot],
            to=plant.anchor,
            start=motion.start + (plant.frames[0] - 0.5) / motion.rate,
            end=motion.start + (plant.frames[-1] + 0.5) / motion.rate,
            strength=PLANTED,
        )
        for plant in footing.plants
    )


def _onto(footing: Footing, motion: Motion, floor: Floor) -> Footing:
    """Return the same plants on a floor that is known, which bears all soles."""
    every, used = spots_of(motion), footing.spots
    there = (every.place[:, None] == used.place).all(axis=-1)
    same = (every.joint[:, None] == used.joint) & there
    keep = every.sole | same.any(axis=1)
    number = np.cumsum(keep) - 1
    plants = tuple(
        replace(plant, spot=int(number[same[:, plant.spot].argmax()]))
        for plant in footing.plants
    )
    height = np.full(int(keep.sum()), floor.height)
    ground = Ground(np.array(floor.slope, dtype=float), height)
    return Footing(every.only(keep), plants, ground)


def _soles(footing: Footing, motion: Motion, nodes: Nodes) -> Soles:
    """Return points spread along and across every sole, and the ground under them."""
    spots, normal = footing.spots, footing.ground.normal
    floor = floor_of(spots, footing.plants, footing.ground, motion.n_frames)
    stands = np.zeros(floor.shape, dtype=bool)
    for plant in footing.plants:
        stands[plant.frames, plant.spot] = True
    found = nothing_under(motion.n_frames)
    parts = [(found.node, found.place, found.share, found.floor, found.planted)]
    at = nodes.place[spots.joint] + spots.place
    body = nodes.of_joint[spots.joint]
    for node in np.unique(body[spots.sole]):
        mine = np.flatnonzero(spots.sole & (body == node))
        up = _up(motion, spots, mine, stands, normal)
        mix, across = _spread(at[mine], up)
        count = len(mix)
        parts.append(
            (
                np.full(count, node),
                mix @ at[mine] + across,
                np.full(count, 1.0 / count),
                floor[:, mine] @ mix.T,
                np.repeat(stands[:, mine].any(axis=1, keepdims=True), count, axis=1),
            )
        )
    node, place, share, under, planted = zip(*parts, strict=True)
    return Soles(
        np.concatenate(node),
        np.concatenate(place),
        np.concatenate(share),
        normal,
        np.concatenate(under, axis=1),
        np.concatenate(planted, axis=1),
    )


def _up(
    motion: Motion,
    spots: Spots,
    mine: Int[Array, " some"],
    stands: Bool[Array, "frame spot"],
    normal: Float[Array, " 3"],
) -> Float[Array, " 3"]:
    """Return the way out of the ground in a foot that stands flat; else at rest."""
    flat = stands[:, mine].all(axis=1)
    flat &= np.isfinite(motion.T_world_root).all(axis=(1, 2))
    if not flat.any():
        return normal
    R = motion.T_world_joint()[flat, spots.body[mine[0]], :3, :3]
    up = (R.swapaxes(-1, -2) @ normal).mean(axis=0)
    return np.asarray(up / np.linalg.norm(up))


def _spread(
    ends: Float[Array, "end 3"], up: Float[Array, " 3"]
) -> tuple[Float[Array, "point end"], Float[Array, "point 3"]]:
    """Return points of a sole: how they mix its ends, and how far they are aside.

    "An array of such contact forces ... along and across the bottom of the foot". Ends
    that are spread already, as those of a box or a hoof, are enough.
    """
    apart = np.linalg.norm(ends[:, None] - ends, axis=-1)
    heel, toe = np.unravel_index(int(apart.argmax()), apart.shape)
    aside = np.cross(up, ends[toe] - ends[heel])
    off = np.cross(ends - ends[heel], ends[toe] - ends[heel])
    broad = np.linalg.norm(off, axis=-1).max() > 0.5 * BROAD * apart.max() ** 2
    if heel == toe or broad:
        return np.eye(len(ends)), np.zeros((len(ends), 3))
    mix, across = [*np.eye(len(ends))], [np.zeros(3)] * len(ends)
    for t in ALONG:
        row = np.zeros(len(ends))
        row[heel], row[toe] = 1.0 - t, t
        for side in (-BROAD, BROAD):
            mix.append(row)
            across.append(side * aside)
    return np.array(mix), np.array(across)
