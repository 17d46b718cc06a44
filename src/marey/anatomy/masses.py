"""What the bodies of a figure weigh, and how hard they are to turn."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from marey.articulated.tables import Nodes
from marey.skeleton import Skeleton

Array = np.ndarray

DENSITY = 1000.0
"""Of a body, in kg/m^3: that of water."""

SLENDER = 0.15
"""Radius of a bone's flesh as a share of its length, where nothing else is known."""

LEAST = 1e-3
"""The least a body weighs, as a share of the figure: no simulation bears less."""

BODY_MASS_INDEX = 22.5
"""Of a slender person, in kg/m^2."""

# Shares of a man's mass by the joint at which the segment begins: P. de Leva,
# Adjustments to Zatsiorsky-Seluyanov's segment inertia parameters, J. Biomechanics 29
# (1996) 1223-1230, table 4. The head includes the neck.
SHARES = {
    "Hips": 0.1117,
    "Spine": 0.1633,
    "Chest": 0.1596,
    "Head": 0.0694,
    "UpperArm": 0.0271,
    "LowerArm": 0.0162,
    "Hand": 0.0061,
    "UpperLeg": 0.1416,
    "LowerLeg": 0.0433,
    "Foot": 0.0137,
}

# Of limbs, in shares of their length: where the centre of mass is from the upper end,
# and the radii of gyration across (the mean of both) and along; the same table.
LIMBS = {
    "UpperArm": (0.5772, 0.277, 0.158),
    "LowerArm": (0.4574, 0.271, 0.121),
    "UpperLeg": (0.4095, 0.329, 0.149),
    "LowerLeg": (0.4395, 0.249, 0.102),
}

# Who has these is a person.
PERSON = ("Hips", "LeftUpperLeg", "RightUpperLeg", "LeftUpperArm", "RightUpperArm")


@dataclass(frozen=True, slots=True, eq=False)
class Masses:
    """The nodes of a skeleton as rigid bodies."""

    mass: Float[Array, " node"]
    """In kg; 0 for the first hinge of a universal joint, which carries nothing."""

    centre: Float[Array, "node 3"]
    """Centre of mass in the node, in metres."""

    inertia: Float[Array, "node 3 3"]
    """About the centre of mass, in kg m^2."""

    carried: Float[Array, " node"]
    """Inertia about each node of all it carries, at rest: the mean over directions, or
    about its axis where it is a hinge."""


def masses_of(skeleton: Skeleton, nodes: Nodes) -> Masses:
    """Return mass and inertia of the bodies of a skeleton.

    Every bone is a capsule. People, known by the names of their joints, have the
    weight of their height, shared out by anthropometry (de Leva, 1996), which tells
    centres and inertia of their limbs too, and capsules as thick as that weighs;
    others have capsules of one slenderness.
    """
    n = len(nodes.tree.parent)
    bones = _bones(skeleton, nodes)
    weigh = _human if set(PERSON) <= set(skeleton.names) else _plain
    parts = weigh(skeleton, bones)
    total = sum(part.mass for part in parts)
    mass, moment = np.zeros(n), np.zeros((n, 3))
    about = np.zeros((n, 3, 3))
    for part in parts:
        mass[part.node] += part.mass
        moment[part.node] += part.mass * part.centre
        about[part.node] += part.inertia + part.mass * steiner(part.centre)
    bearing = np.unique(nodes.of_joint)
    light = bearing[mass[bearing] < LEAST * total]
    about[light] += (LEAST * total - mass[light])[:, None, None] * (
        (0.1 * _size(skeleton)) ** 2 * np.eye(3)
    )
    mass[light] = LEAST * total
    centre = moment / np.where(mass > 0.0, mass, 1.0)[:, None]
    inertia = about - mass[:, None, None] * steiner(centre)
    return Masses(mass, centre, inertia, _carried(nodes, mass, centre, inertia))


_Bone = tuple[int, int, Float[Array, "2 3"]]


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """The flesh of one bone, in its node; inertia about its centre."""

    node: int
    mass: float
    centre: Float[Array, " 3"]
    inertia: Float[Array, "3 3"]


def _bones(skeleton: Skeleton, nodes: Nodes) -> list[_Bone]:
    """Return the joint, the node and both ends, in the node, of every bone."""
    bones = []
    for joint in range(1, skeleton.n_joints):
        above = int(skeleton.parent[joint])
        start = nodes.place[above]
        ends = np.stack([start, start + skeleton.offset[joint]])
        bones.append((above, int(nodes.of_joint[above]), ends))
    return bones


def _size(skeleton: Skeleton) -> float:
    """Return how large the figure is at rest, in metres."""
    place = skeleton.rest()[:, :3, 3]
    return max(float(np.ptp(place, axis=0).max()), 1e-3)


def _plain(skeleton: Skeleton, bones: list[_Bone]) -> list[_Part]:
    parts = []
    for _, node, ends in bones:
        length = float(np.linalg.norm(ends[1] - ends[0]))
        radius = SLENDER * length
        volume = np.pi * radius**2 * (length + 4.0 / 3.0 * radius)
        parts.append(_capsule(node, ends, DENSITY * volume, radius))
    if not sum(part.mass for part in parts) > 0.0:
        return [_capsule(0, np.zeros((2, 3)), 1.0, 0.1)]
    return parts


def _human(skeleton: Skeleton, bones: list[_Bone]) -> list[_Part]:
    height = float(np.ptp(skeleton.rest()[:, 2, 3]))
    share = {name: _share(name) for name in skeleton.names}
    if "Head" not in share and "Neck" in share:
        share["Neck"] = SHARES["Head"]
    named = {skeleton.names[joint] for joint, _, _ in bones}
    whole = sum(share[name] for name in named)
    weight = BODY_MASS_INDEX * height**2 / whole
    length = {
        name: sum(
            float(np.linalg.norm(ends[1] - ends[0]))
            for joint, _, ends in bones
            if skeleton.names[joint] == name
        )
        for name in named
    }
    parts = []
    for joint, node, ends in bones:
        name = skeleton.names[joint]
        own = float(np.linalg.norm(ends[1] - ends[0]))
        mass = weight * share[name] * own / max(length[name], 1e-9)
        if _plainly(name) in LIMBS and 0.0 < own == length[name]:
            parts.append(_limb(node, ends, mass, *LIMBS[_plainly(name)]))
        else:
            radius = np.sqrt(mass / DENSITY / np.pi / max(own, 1e-3))
            parts.append(_capsule(node, ends, mass, float(radius)))
    return parts


def _plainly(name: str) -> str:
    """Return the name of a joint without its side."""
    return name.removeprefix("Left").removeprefix("Right")


def _share(name: str) -> float:
    return SHARES.get(_plainly(name), 0.0)


def _limb(
    node: int,
    ends: Float[Array, "2 3"],
    mass: float,
    centre: float,
    across: float,
    along: float,
) -> _Part:
    """Return a limb of known centre and radii of gyration, in shares of its length."""
    bone = ends[1] - ends[0]
    square = float(bone @ bone)
    inertia = across**2 * square * np.eye(3)
    inertia += (along**2 - across**2) * np.outer(bone, bone)
    return _Part(node, mass, ends[0] + centre * bone, mass * inertia)


def _capsule(node: int, ends: Float[Array, "2 3"], mass: float, radius: float) -> _Part:
    """Return a cylinder with round ends."""
    bone = ends[1] - ends[0]
    length = float(np.linalg.norm(bone))
    along = bone / length if length > 0.0 else np.zeros(3)
    ball = 4.0 / 3.0 * radius / (length + 4.0 / 3.0 * radius) * mass
    tube = mass - ball
    own = 0.5 * tube * radius**2 + 0.4 * ball * radius**2
    across = tube * (length**2 / 12.0 + 0.25 * radius**2)
    across += ball * (0.4 * radius**2 + 0.25 * length**2 + 0.375 * length * radius)
    inertia = across * np.eye(3) + (own - across) * np.outer(along, along)
    return _Part(node, mass, ends.mean(axis=0), inertia)


def steiner(centre: Float[Array, "*item 3"]) -> Float[Array, "*item 3 3"]:
    """Return |c|^2 I - c c^T: the inertia of a unit mass away from a point."""
    square = np.sum(centre**2, axis=-1)[..., None, None] * np.eye(3)
    return np.asarray(square - centre[..., :, None] * centre[..., None, :])


def _carried(
    nodes: Nodes,
    mass: Float[Array, " node"],
    centre: Float[Array, "node 3"],
    inertia: Float[Array, "node 3 3"],
) -> Float[Array, " node"]:
    """Return the inertia about each node of all that it carries, at rest."""
    tree, n = nodes.tree, len(nodes.tree.parent)
    total, moment, about = mass.copy(), mass[:, None] * centre, np.zeros((n, 3, 3))
    about += inertia + mass[:, None, None] * steiner(centre)
    for i in range(n - 1, 0, -1):
        p, m = tree.parent[i], total[i]
        middle = moment[i] / m if m > 0.0 else np.zeros(3)
        away = tree.offset[i] + middle
        own = about[i] - m * steiner(middle)
        total[p] += m
        moment[p] += m * away
        about[p] += own + m * steiner(away)
    mean = np.trace(about, axis1=1, axis2=2) / 3.0
    hinge = np.einsum("ni,nij,nj->n", tree.axis, about, tree.axis)
    return np.asarray(np.where(tree.hinge, hinge, mean))
