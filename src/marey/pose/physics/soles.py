"""Soles: the points of a figure that the ground pushes up (Zordan2003, Sec. 3)."""

from dataclasses import dataclass, replace

import numpy as np

from marey.articulated.tables import Nodes
from marey.motion import GroundPlane, Motion
from marey.numerics import Array, Bool, Float, Int
from marey.pose.contact.ground import GroundContacts
from marey.pose.contact.ground_contacts import (
    find_ground_contacts,
    reconcile_anchors,
)
from marey.pose.contact.holds import Hold
from marey.pose.contact.points import MotionPoses, find_contact_points
from marey.pose.options import PhysicsOptions
from marey.take import Take

ALONG_SOLE = (0.0, 0.5, 1.0)
"""Positions of points along a sole, from heel (0) to toe (1)."""

SOLE_HALF_WIDTH = 0.2
"""Half the width of a sole, by its length. Raising it lets feet resist rolling
sideways. Chosen by hand."""

PLANT_STRENGTH = 100.0
"""Stiffness of an anchored foot plant, as a multiple of a marker's. Raising it leaves
less skate and pulls further off the markers. Chosen by hand."""


@dataclass(frozen=True, slots=True, eq=False)
class Soles:
    """Points of a figure that the ground pushes up."""

    node: Int[Array, " sole"]
    offset: Float[Array, "sole 3"]
    """Position in the node's frame, in metres."""

    share: Float[Array, " sole"]
    """Share of the ground's stiffness under a body; those of one body sum to 1."""

    normal: Float[Array, " 3"]
    """Normal of the ground."""

    ground_height: Float[Array, "frame sole"]
    """The ground along the normal, in metres; -inf where there is none."""

    is_planted: Bool[Array, "frame sole"]
    """Whether the body is planted, so that friction acts on it."""


def no_soles(n_frames: int) -> Soles:
    """Return the soles of a figure without ground."""
    return Soles(
        np.zeros(0, dtype=np.int64),
        np.zeros((0, 3)),
        np.zeros(0),
        np.array([0.0, 0.0, 1.0]),
        np.zeros((n_frames, 0)),
        np.zeros((n_frames, 0), dtype=bool),
    )


def find_soles(
    motion: Motion, nodes: Nodes, take: Take, options: PhysicsOptions
) -> tuple[Soles, tuple[Hold, ...]]:
    """Return the soles, and the foot plants as holds at their anchors.

    Args:
        motion: The motion of a robust fit.
        nodes: The nodes of its skeleton.
        take: The recording.
        options: Whether there is a ground, known or to be found in the motion.
    """
    if options.ground == "none":
        return no_soles(motion.n_frames), ()
    contacts = find_ground_contacts(motion, take)
    if isinstance(options.ground, GroundPlane):
        contacts = _move_to_plane(contacts, motion, options.ground)
    contacts = reconcile_anchors(motion, contacts)
    soles = _make_soles(contacts, motion, nodes)
    if options.friction < np.inf:
        return soles, ()
    points = contacts.points
    return soles, tuple(
        Hold(
            joint=motion.skeleton.names[points.joint[plant.point]],
            point=points.offset[plant.point],
            target=plant.anchor,
            start=motion.start + (plant.frames[0] - 0.5) / motion.rate,
            end=motion.start + (plant.frames[-1] + 0.5) / motion.rate,
            strength=PLANT_STRENGTH,
        )
        for plant in contacts.plants
    )


def _move_to_plane(
    contacts: GroundContacts, motion: Motion, plane: GroundPlane
) -> GroundContacts:
    """Return the same plants on a known plane, which pushes all soles."""
    every, planted = find_contact_points(motion), contacts.points
    same = (every.offset[:, None] == planted.offset).all(axis=-1)
    same &= every.joint[:, None] == planted.joint
    keep = every.is_sole | same.any(axis=1)
    index = np.cumsum(keep) - 1
    plants = tuple(
        replace(plant, point=int(index[same[:, plant.point].argmax()]))
        for plant in contacts.plants
    )
    height = np.full(int(keep.sum()), plane.height)
    return GroundContacts(every.select(keep), plants, replace(plane, height=height))


def _make_soles(contacts: GroundContacts, motion: Motion, nodes: Nodes) -> Soles:
    """Return points spread along and across every sole, and the ground under them."""
    points, normal = contacts.points, contacts.ground.normal
    height = contacts.ground_heights(motion.n_frames)
    stands = np.zeros(height.shape, dtype=bool)
    # A marker stands at a height of its own, and nowhere while its foot is in the air.
    nowhere = _lowest_anchor(contacts) - MotionPoses(motion).figure_height
    height[:, ~points.is_sole] = nowhere
    for plant in contacts.plants:
        stands[plant.frames, plant.point] = True
        if not points.is_sole[plant.point]:
            height[plant.frames, plant.point] = plant.anchor @ normal
    is_sole = points.is_sole | ~np.isin(points.body, points.body[points.is_sole])
    in_node = nodes.joint_position[points.joint] + points.offset
    node_of_point = nodes.node_of_joint[points.joint]
    empty = no_soles(motion.n_frames)
    by_sole = [(empty.node, empty.offset, empty.share)]
    by_frame = [(empty.ground_height, empty.is_planted)]
    for node in np.unique(node_of_point[is_sole]):
        ends = np.flatnonzero(is_sole & (node_of_point == node))
        up = _up_in_foot(motion, int(points.body[ends[0]]), stands[:, ends], normal)
        weights, aside = _spread_points(in_node[ends], up)
        n, is_planted = len(weights), stands[:, ends].any(axis=1, keepdims=True)
        offset = weights @ in_node[ends] + aside
        by_sole.append((np.full(n, node), offset, np.full(n, 1.0 / n)))
        by_frame.append((height[:, ends] @ weights.T, np.repeat(is_planted, n, axis=1)))
    node, offset, share = map(np.concatenate, zip(*by_sole, strict=True))
    ground_height, planted = map(np.hstack, zip(*by_frame, strict=True))
    return Soles(node, offset, share, normal, ground_height, planted)


def _lowest_anchor(contacts: GroundContacts) -> float:
    """Return the height of the lowest foot plant along the normal, in metres."""
    normal = contacts.ground.normal
    return min((float(plant.anchor @ normal) for plant in contacts.plants), default=0.0)


def _up_in_foot(
    motion: Motion,
    joint: int,
    stands: Bool[Array, "frame end"],
    normal: Float[Array, " 3"],
) -> Float[Array, " 3"]:
    """Return the ground's normal in the frame of a foot that stands flat.

    It is the mean over the frames in which all ends stand, or the normal itself.
    """
    is_flat = stands.all(axis=1) & np.isfinite(motion.T_world_root).all(axis=(1, 2))
    if not is_flat.any():
        return normal
    R = motion.T_world_joint()[is_flat, joint, :3, :3]
    up = (R.swapaxes(-1, -2) @ normal).mean(axis=0)
    return np.asarray(up / np.linalg.norm(up))


def _spread_points(
    ends: Float[Array, "end 3"], up: Float[Array, " 3"]
) -> tuple[Float[Array, "point end"], Float[Array, "point 3"]]:
    """Return points of a sole: weights of its ends, and offsets across it in metres.

    "An array of such contact forces ... along and across the bottom of the foot"
    (Zordan2003, Sec. 3). Ends that are spread already, as those of a box or a hoof, are
    enough.
    """
    distance = np.linalg.norm(ends[:, None] - ends, axis=-1)
    heel, toe = np.unravel_index(int(distance.argmax()), distance.shape)
    length = ends[toe] - ends[heel]
    across = np.cross(up, length)
    area = np.linalg.norm(np.cross(ends - ends[heel], length), axis=-1).max()
    is_wide = area > 0.5 * SOLE_HALF_WIDTH * distance.max() ** 2
    weights, aside = [*np.eye(len(ends))], [np.zeros(3)] * len(ends)
    if heel == toe or is_wide:
        return np.array(weights), np.array(aside)
    for t in ALONG_SOLE:
        weight = np.zeros(len(ends))
        weight[heel], weight[toe] = 1.0 - t, t
        for side in (-SOLE_HALF_WIDTH, SOLE_HALF_WIDTH):
            weights.append(weight)
            aside.append(side * across)
    return np.array(weights), np.array(aside)
