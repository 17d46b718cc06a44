"""Masses and moments of inertia of the bodies of a skeleton."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from marey.anatomy import names as vrm
from marey.articulated.tables import Nodes
from marey.skeleton import Skeleton

Array = np.ndarray

DENSITY = 1000.0
"""Density of a body, in kg/m^3. Higher makes every body heavier. That of water."""

RADIUS_PER_LENGTH = 0.15
"""Radius of the capsule around a bone, as a fraction of the bone's length, for figures
that are not people. Higher makes bodies heavier. Chosen by hand."""

MIN_MASS_FRACTION = 1e-3
"""Smallest mass of a body, as a fraction of the figure's mass. Lower makes simulations
stiff and unstable. Chosen by hand."""

LIGHT_BODY_GYRATION = 0.1
"""Radius of gyration of the mass added to a body that is too light, as a fraction of
the figure's size. Higher makes light bodies harder to rotate. Chosen by hand."""

BODY_MASS_INDEX = 22.5
"""Mass of a person over the square of the height, in kg/m^2. Higher makes people
heavier. That of a slender person."""

SEGMENT_MASS_FRACTIONS = {
    vrm.HIPS: 0.1117,
    vrm.SPINE: 0.1633,
    vrm.CHEST: 0.1596,
    vrm.HEAD: 0.0694,
    vrm.UPPER_ARM: 0.0271,
    vrm.LOWER_ARM: 0.0162,
    vrm.HAND: 0.0061,
    vrm.UPPER_LEG: 0.1416,
    vrm.LOWER_LEG: 0.0433,
    vrm.FOOT: 0.0137,
}
"""Fractions of a man's mass by the joint at which the segment begins: P. de Leva,
Adjustments to Zatsiorsky-Seluyanov's segment inertia parameters, J. Biomechanics 29
(1996) 1223-1230, table 4. The head includes the neck."""

LIMB_INERTIA = {
    vrm.UPPER_ARM: (0.5772, 0.277, 0.158),
    vrm.LOWER_ARM: (0.4574, 0.271, 0.121),
    vrm.UPPER_LEG: (0.4095, 0.329, 0.149),
    vrm.LOWER_LEG: (0.4395, 0.249, 0.102),
}
"""Of limbs, as fractions of their length, from the same table: distance of the centre
of mass from the upper end, radius of gyration across (the mean of both) and along."""

Bone = tuple[int, int, Float[Array, "2 3"]]
"""Joint at which a bone begins, node that carries it, and both ends in that node."""


@dataclass(frozen=True, slots=True, eq=False)
class Masses:
    """The nodes of a skeleton as rigid bodies."""

    mass: Float[Array, " node"]
    """In kg; 0 for the first hinge of a universal joint, which carries nothing."""

    centre: Float[Array, "node 3"]
    """Centre of mass in the node, in metres."""

    inertia: Float[Array, "node 3 3"]
    """Inertia tensor about the centre of mass, in kg m^2."""

    subtree_inertia: Float[Array, " node"]
    """Moment of inertia about each node of the node and all its descendants at rest, in
    kg m^2: about the axis of a hinge, else the mean over all directions."""


@dataclass(frozen=True, slots=True, eq=False)
class MassSegment:
    """The flesh around one bone."""

    node: int
    mass: float
    centre: Float[Array, " 3"]
    """Centre of mass in the node, in metres."""

    inertia: Float[Array, "3 3"]
    """About the centre of mass, in kg m^2."""


def estimate_masses(skeleton: Skeleton, nodes: Nodes) -> Masses:
    """Return mass and inertia of the bodies of a skeleton.

    Every bone carries a capsule. A person, identified by the names of the joints, has
    the mass that the height suggests, divided by the anthropometry of de Leva (1996);
    so have the centres and the inertia of the limbs. Other figures have capsules of one
    slenderness.
    """
    bones = _find_bones(skeleton, nodes)
    human = vrm.is_person(skeleton.names) and vrm.has_arms(skeleton.names)
    segments = (_human_segments if human else _plain_segments)(skeleton, bones)
    n = len(nodes.tree.parent)
    mass, first_moment, about_node = np.zeros(n), np.zeros((n, 3)), np.zeros((n, 3, 3))
    for segment in segments:
        mass[segment.node] += segment.mass
        first_moment[segment.node] += segment.mass * segment.centre
        about_node[segment.node] += (
            segment.inertia + segment.mass * parallel_axis_inertia(segment.centre)
        )
    min_mass = MIN_MASS_FRACTION * sum(segment.mass for segment in segments)
    bearing = np.unique(nodes.node_of_joint)
    light = bearing[mass[bearing] < min_mass]
    gyration = LIGHT_BODY_GYRATION * _extent(skeleton)
    about_node[light] += (min_mass - mass[light])[:, None, None] * (
        gyration**2 * np.eye(3)
    )
    mass[light] = min_mass
    centre = first_moment / np.where(mass > 0.0, mass, 1.0)[:, None]
    inertia = about_node - mass[:, None, None] * parallel_axis_inertia(centre)
    return Masses(mass, centre, inertia, _subtree_inertia(nodes, mass, centre, inertia))


def _find_bones(skeleton: Skeleton, nodes: Nodes) -> list[Bone]:
    """Return the bone from its parent to each joint."""
    bones = []
    for joint in range(1, skeleton.n_joints):
        parent = int(skeleton.parent[joint])
        start = nodes.joint_position[parent]
        ends = np.stack([start, start + skeleton.offset[joint]])
        bones.append((parent, int(nodes.node_of_joint[parent]), ends))
    return bones


def _length(ends: Float[Array, "2 3"]) -> float:
    return float(np.linalg.norm(ends[1] - ends[0]))


def _extent(skeleton: Skeleton) -> float:
    """Return the largest side of the figure's bounding box at rest, in metres."""
    positions = skeleton.rest()[:, :3, 3]
    return max(float(np.ptp(positions, axis=0).max()), 1e-3)


def _plain_segments(skeleton: Skeleton, bones: list[Bone]) -> list[MassSegment]:
    """Return capsules of one slenderness; one unit mass if no bone has a length."""
    segments = []
    for _, node, ends in bones:
        length = _length(ends)
        radius = RADIUS_PER_LENGTH * length
        volume = np.pi * radius**2 * (length + 4.0 / 3.0 * radius)
        segments.append(capsule_segment(node, ends, DENSITY * volume, radius))
    if not sum(segment.mass for segment in segments) > 0.0:
        return [capsule_segment(0, np.zeros((2, 3)), 1.0, 0.1)]
    return segments


def _human_segments(skeleton: Skeleton, bones: list[Bone]) -> list[MassSegment]:
    """Return the segments of a person after de Leva (1996).

    A segment of several bones is divided by their lengths. Segments that the table has
    no inertia for are capsules as thick as their mass requires.
    """
    height = float(np.ptp(skeleton.rest()[:, 2, 3]))
    fraction = {
        name: SEGMENT_MASS_FRACTIONS.get(vrm.without_side(name), 0.0)
        for name in skeleton.names
    }
    if vrm.HEAD not in fraction and vrm.NECK in fraction:
        fraction[vrm.NECK] = SEGMENT_MASS_FRACTIONS[vrm.HEAD]
    lengths: dict[str, float] = {}
    for joint, _, ends in bones:
        name = skeleton.names[joint]
        lengths[name] = lengths.get(name, 0.0) + _length(ends)
    mass = BODY_MASS_INDEX * height**2 / sum(fraction[name] for name in lengths)
    segments = []
    for joint, node, ends in bones:
        name, length = skeleton.names[joint], _length(ends)
        share = mass * fraction[name] * length / max(lengths[name], 1e-9)
        part = vrm.without_side(name)
        if part in LIMB_INERTIA and 0.0 < length == lengths[name]:
            segments.append(_limb_segment(node, ends, share, *LIMB_INERTIA[part]))
        else:
            radius = np.sqrt(share / DENSITY / np.pi / max(length, 1e-3))
            segments.append(capsule_segment(node, ends, share, float(radius)))
    return segments


def _limb_segment(
    node: int,
    ends: Float[Array, "2 3"],
    mass: float,
    centre: float,
    gyration_across: float,
    gyration_along: float,
) -> MassSegment:
    """Return a limb whose centre and radii of gyration are fractions of its length."""
    bone = ends[1] - ends[0]
    inertia = gyration_across**2 * float(bone @ bone) * np.eye(3)
    inertia += (gyration_along**2 - gyration_across**2) * np.outer(bone, bone)
    return MassSegment(node, mass, ends[0] + centre * bone, mass * inertia)


def capsule_segment(
    node: int, ends: Float[Array, "2 3"], mass: float, radius: float
) -> MassSegment:
    """Return a capsule: a cylinder of uniform density with two hemispheres."""
    bone = ends[1] - ends[0]
    length = _length(ends)
    direction = bone / length if length > 0.0 else np.zeros(3)
    sphere = 4.0 / 3.0 * radius / (length + 4.0 / 3.0 * radius) * mass
    cylinder = mass - sphere
    along = 0.5 * cylinder * radius**2 + 0.4 * sphere * radius**2
    across = cylinder * (length**2 / 12.0 + 0.25 * radius**2)
    across += sphere * (0.4 * radius**2 + 0.25 * length**2 + 0.375 * length * radius)
    inertia = across * np.eye(3) + (along - across) * np.outer(direction, direction)
    return MassSegment(node, mass, ends.mean(axis=0), inertia)


def parallel_axis_inertia(centre: Float[Array, "*item 3"]) -> Float[Array, "*item 3 3"]:
    r"""Return the inertia tensor of a unit point mass about the origin.

    The term of the parallel axis theorem (Steiner):

    .. math:: |c|^2 I - c c^T
    """
    square = np.sum(centre**2, axis=-1)[..., None, None] * np.eye(3)
    return np.asarray(square - centre[..., :, None] * centre[..., None, :])


def _subtree_inertia(
    nodes: Nodes,
    mass: Float[Array, " node"],
    centre: Float[Array, "node 3"],
    inertia: Float[Array, "node 3 3"],
) -> Float[Array, " node"]:
    """Return `Masses.subtree_inertia`, summed from the leaves to the root."""
    tree = nodes.tree
    total, first_moment = mass.copy(), mass[:, None] * centre
    about_node = inertia + mass[:, None, None] * parallel_axis_inertia(centre)
    for i in range(len(tree.parent) - 1, 0, -1):
        parent, m = tree.parent[i], total[i]
        middle = first_moment[i] / m if m > 0.0 else np.zeros(3)
        in_parent = tree.offset[i] + middle
        about_centre = about_node[i] - m * parallel_axis_inertia(middle)
        total[parent] += m
        first_moment[parent] += m * in_parent
        about_node[parent] += about_centre + m * parallel_axis_inertia(in_parent)
    mean = np.trace(about_node, axis1=1, axis2=2) / 3.0
    hinge = np.einsum("ni,nij,nj->n", tree.axis, about_node, tree.axis)
    return np.asarray(np.where(tree.is_hinge, hinge, mean))
