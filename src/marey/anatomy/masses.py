"""Masses and moments of inertia of the bodies of a skeleton."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from marey.anatomy import names as vrm
from marey.articulated.tables import Nodes
from marey.numerics import Array, Float
from marey.skeleton import Skeleton

DENSITY = 1000.0
"""Density of a body, in kg/m^3: that of water, as published in every table. Higher
makes every body heavier."""

RADIUS_PER_LENGTH = 0.15
"""Radius of the capsule around a bone, as a fraction of the bone's length, for figures
that are not people; of the mass added to a body that is too light, radius of gyration
as a fraction of the figure's size. Higher makes bodies heavier. Chosen by hand."""

TINY_MASS_FRACTION = 1e-3
"""Smallest mass of a body, as a fraction of the figure's mass. Guards simulations:
lower values make them stiff and unstable. Chosen by hand."""

BODY_MASS_INDEX = 22.5
"""Mass of a person over the square of the height, in kg/m^2. Higher makes people
heavier. That of a slender person, chosen by hand."""

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
"""Of limbs, as fractions of their length, published in the same table (de Leva 1996):
distance of the centre of mass from the upper end, radius of gyration across (the mean
of both) and along."""

SOLID_SPHERE = 2.0 / 5.0
"""Moment of inertia of a solid sphere of unit mass and radius about its centre, as
published in tables of moments of inertia."""

THIN_ROD = 1.0 / 12.0
"""Moment of inertia of a thin rod of unit mass and length across its middle, as
published in tables of moments of inertia."""

HEMISPHERE_CENTRE = 3.0 / 8.0
"""Distance of the centre of mass of a solid hemisphere from its flat side, in radii, as
published in tables of centroids."""

NEWTON_ITERATIONS = 12
"""Steps of Newton's method: rounding is reached after eight at most."""

SPHERE_OF_CYLINDER = 4.0 / 3.0
"""Volume of a sphere relative to that of a cylinder of the same radius whose length is
the radius, as published by Archimedes."""


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


class BoneMasses(NamedTuple):
    """The flesh around every bone, symmetric about it."""

    mass: Float[Array, " bone"]
    """In kg."""

    centre: Float[Array, " bone"]
    """Distance of the centre of mass from the upper end, over the length."""

    along: Float[Array, " bone"]
    """Moment of inertia about the bone, in kg m^2."""

    across: Float[Array, " bone"]
    """Moment of inertia about an axis across the bone through the centre of mass."""

    radius: Float[Array, " bone"]
    """Radius of the capsule around the bone, in metres; 0 without mass."""


def estimate_masses(skeleton: Skeleton, nodes: Nodes) -> Masses:
    """Return mass and inertia of the bodies of a skeleton.

    Every bone carries a capsule. A person, identified by the names of the joints, has
    the mass that the height suggests, divided by the anthropometry of de Leva (1996);
    so have the centres and the inertia of the limbs. Other figures have capsules of one
    slenderness. A body without length has a small mass.
    """
    bone, parent = skeleton.offset[1:], skeleton.parent[1:]
    flesh = estimate_bones(skeleton)
    in_node = nodes.joint_position[parent] + flesh.centre[:, None] * bone
    tensor = axial_inertia(bone, flesh.along, flesh.across)
    n = len(nodes.tree.parent)
    mass, first_moment, about_node = np.zeros(n), np.zeros((n, 3)), np.zeros((n, 3, 3))
    node = nodes.node_of_joint[parent]
    np.add.at(mass, node, flesh.mass)
    np.add.at(first_moment, node, flesh.mass[:, None] * in_node)
    np.add.at(about_node, node, tensor + point_mass_inertia(flesh.mass, in_node))
    min_mass = TINY_MASS_FRACTION * (mass.sum() or 1.0)
    carriers = np.unique(nodes.node_of_joint)
    light = carriers[mass[carriers] < min_mass]
    extent = np.ptp(skeleton.rest()[:, :3, 3], axis=0).max() or 1.0
    gyration = (RADIUS_PER_LENGTH * extent) ** 2 * np.eye(3)
    about_node[light] += (min_mass - mass[light])[:, None, None] * gyration
    mass[light] = min_mass
    centre = first_moment / np.where(mass > 0.0, mass, 1.0)[:, None]
    inertia = about_node - point_mass_inertia(mass, centre)
    return Masses(mass, centre, inertia, _subtree_inertia(nodes, mass, centre, inertia))


def estimate_bones(skeleton: Skeleton) -> BoneMasses:
    """Return the flesh around the bone to every joint but the root."""
    length = np.linalg.norm(skeleton.offset[1:], axis=1)
    human = vrm.is_person(skeleton.names) and vrm.has_arms(skeleton.names)
    return _human_bones(skeleton, length) if human else _plain_bones(length)


def _plain_bones(length: Float[Array, " bone"]) -> BoneMasses:
    """Return capsules of one slenderness."""
    radius = RADIUS_PER_LENGTH * length
    volume = np.pi * radius**2 * (length + SPHERE_OF_CYLINDER * radius)
    return capsules(length, DENSITY * volume, radius)


def _human_bones(skeleton: Skeleton, length: Float[Array, " bone"]) -> BoneMasses:
    """Return the segments of a person after de Leva (1996).

    A segment of several bones is divided by their lengths. Segments that the table has
    no inertia for are capsules as thick as their mass requires.
    """
    parent, names = skeleton.parent[1:], skeleton.names
    part = [vrm.without_side(name) for name in names]
    fraction = np.array([SEGMENT_MASS_FRACTIONS.get(name, 0.0) for name in part])
    if vrm.HEAD not in names and vrm.NECK in names:
        fraction[names.index(vrm.NECK)] = SEGMENT_MASS_FRACTIONS[vrm.HEAD]
    segment_length = np.bincount(parent, length, len(names))
    height = float(np.ptp(skeleton.rest()[:, 2, 3]))
    person = BODY_MASS_INDEX * height**2 / fraction[np.unique(parent)].sum()
    share = length / np.where(segment_length > 0.0, segment_length, 1.0)[parent]
    mass = person * fraction[parent] * share
    flesh = capsules(length, mass, capsule_radius(mass / DENSITY, length))
    for i, joint in enumerate(parent):
        if part[joint] in LIMB_INERTIA and 0.0 < length[i] == segment_length[joint]:
            centre, across, along = LIMB_INERTIA[part[joint]]
            flesh.centre[i] = centre
            flesh.across[i] = mass[i] * (across * length[i]) ** 2
            flesh.along[i] = mass[i] * (along * length[i]) ** 2
    return flesh


def capsule_radius(
    volume: Float[Array, " bone"], length: Float[Array, " bone"]
) -> Float[Array, " bone"]:
    r"""Return the radius of capsules of given volumes, without volume 0.

    The root of :math:`\pi r^2 (L + \frac43 r) = V` by Newton's method. It begins at the
    radius of a sphere of this volume, above the root, and so descends to it.

    Args:
        volume: Volumes in cubic metres.
        length: Lengths between the centres of the two hemispheres, in metres.
    """
    radius = np.cbrt(np.where(volume > 0.0, volume, 1.0) / (np.pi * SPHERE_OF_CYLINDER))
    for _ in range(NEWTON_ITERATIONS):
        excess = radius**2 * (length + SPHERE_OF_CYLINDER * radius) - volume / np.pi
        radius -= excess / (radius * (2.0 * length + 3.0 * SPHERE_OF_CYLINDER * radius))
    return np.where(volume > 0.0, radius, 0.0)


def capsules(
    length: Float[Array, " bone"],
    mass: Float[Array, " bone"],
    radius: Float[Array, " bone"],
) -> BoneMasses:
    """Return capsules: cylinders of uniform density with two hemispheres.

    Args:
        length: Length of each cylinder, in metres.
        mass: Mass of each capsule, in kilograms.
        radius: Radius of each, in metres.
    """
    ends = SPHERE_OF_CYLINDER * radius
    sphere = np.divide(ends, length + ends, out=np.ones_like(ends), where=ends > 0.0)
    sphere = sphere * mass
    cylinder = mass - sphere
    along = (0.5 * cylinder + SOLID_SPHERE * sphere) * radius**2
    across = cylinder * (THIN_ROD * length**2 + (0.5 * radius) ** 2)
    across += sphere * (
        SOLID_SPHERE * radius**2
        + (0.5 * length) ** 2
        + HEMISPHERE_CENTRE * length * radius
    )
    return BoneMasses(mass, np.full(len(mass), 0.5), along, across, radius)


def axial_inertia(
    bone: Float[Array, "bone 3"],
    along: Float[Array, " bone"],
    across: Float[Array, " bone"],
) -> Float[Array, "bone 3 3"]:
    """Return the inertia tensors of bodies that are symmetric about their bones.

    Args:
        bone: Vectors from joint to end, of any length.
        along: Moment of inertia about each bone, in kg m^2.
        across: Moment about the axes across it, in kg m^2.
    """
    square = np.sum(bone**2, axis=1)
    outer = bone[:, :, None] * bone[:, None]
    outer = outer / np.where(square > 0.0, square, 1.0)[:, None, None]
    isotropic = across[:, None, None] * np.eye(3)
    return np.asarray(isotropic + (along - across)[:, None, None] * outer)


def point_mass_inertia(
    mass: Float[Array, "*item"] | float, centre: Float[Array, "*item 3"]
) -> Float[Array, "*item 3 3"]:
    r"""Return the inertia tensor of point masses about the origin, in kg m^2.

    The term of the parallel axis theorem (Steiner):

    .. math:: m \left(|c|^2 I - c c^T\right)
    """
    square = np.sum(centre**2, axis=-1)[..., None, None] * np.eye(3)
    of_unit_mass = square - centre[..., :, None] * centre[..., None, :]
    return np.asarray(np.expand_dims(mass, (-2, -1)) * of_unit_mass)


def _subtree_inertia(
    nodes: Nodes,
    mass: Float[Array, " node"],
    centre: Float[Array, "node 3"],
    inertia: Float[Array, "node 3 3"],
) -> Float[Array, " node"]:
    """Return `Masses.subtree_inertia` (kg m^2), summed from the leaves to the root."""
    tree = nodes.tree
    total, first_moment = mass.copy(), mass[:, None] * centre
    about_node = inertia + point_mass_inertia(mass, centre)
    for i in range(len(tree.parent) - 1, 0, -1):
        parent, m = tree.parent[i], total[i]
        middle = first_moment[i] / m if m > 0.0 else np.zeros(3)
        in_parent = tree.offset[i] + middle
        about_centre = about_node[i] - point_mass_inertia(m, middle)
        total[parent] += m
        first_moment[parent] += m * in_parent
        about_node[parent] += about_centre + point_mass_inertia(m, in_parent)
    mean = np.trace(about_node, axis1=1, axis2=2) / about_node.shape[-1]
    hinge = np.einsum("ni,nij,nj->n", tree.axis, about_node, tree.axis)
    return np.asarray(np.where(tree.is_hinge, hinge, mean))
