"""Names for bodies that have none, from the shape and motion of the figure."""

import re

from marey.anatomy.names import FOOT, HAND, HIPS, TOES, subject_of, without_subject
from marey.anatomy.naming import Naming, NamingInput, find_names
from marey.bodies import Bodies
from marey.joint_fits import JointFits
from marey.numerics import Array, Int, geometry
from marey.numerics.resampling import evenly_spaced
from marey.tree import Tree, breadth_first_order

CERTAIN_NAMES = (HIPS, HAND, FOOT, TOES)
"""Bodies that the tree determines, whatever markers they have: where the legs meet, and
the ends of limbs."""


def has_default_name(name: str) -> bool:
    """Return whether a body has a number in place of a name, as "body7"."""
    return re.fullmatch(r"body\d+", without_subject(name)) is not None


def name_bodies(
    bodies: Bodies, joints: JointFits, tree: Tree
) -> tuple[Bodies, list[Naming]]:
    """Return the bodies with anatomical names, and the naming of each figure.

    Only figures all of whose bodies have default names ("body7") are named. If there
    are several figures, each name begins with the subject that the bodies have in
    theirs ("JOE:body7"), or else with the number of the figure ("1:Hips"). A single
    marker has a name only where the legs meet and at the tip of a limb: elsewhere it is
    more often than not a piece of its neighbour. Guesses are no names.
    """
    names = list(bodies.names)
    n_markers = bodies.shared.sum(axis=0)
    namings = []
    for root in tree.roots:
        order = breadth_first_order(tree.parent, [int(root)])
        if not all(has_default_name(bodies.names[body]) for body in order):
            continue
        naming = find_names(_figure(bodies, joints, tree, order))
        if naming is None or naming.names.keys() <= naming.unsure:
            continue
        namings.append(naming)
        number = "" if len(tree.roots) == 1 else str(len(namings))
        for body, name in _sure_names(naming, n_markers).items():
            subject = subject_of(bodies.names[body]) or number
            names[body] = f"{subject}:{name}".removeprefix(":")
    return bodies.rename(names), namings


def _sure_names(naming: Naming, n_markers: Int[Array, " bodies"]) -> dict[int, str]:
    """Return the certain names, except those of single markers in a limb."""
    return {
        body: name
        for body, name in naming.names.items()
        if body not in naming.unsure
        and (n_markers[body] != 1 or name.endswith(CERTAIN_NAMES))
    }


def names_by_looks(bodies: Bodies, joints: JointFits, tree: Tree) -> list[Naming]:
    """Return what each figure looks like whose bodies have names, if anything.

    It is independent of the names, and so a check of them.
    """
    orders = [breadth_first_order(tree.parent, [int(root)]) for root in tree.roots]
    named = [
        order
        for order in orders
        if not any(has_default_name(bodies.names[body]) for body in order)
    ]
    looks = [find_names(_figure(bodies, joints, tree, order)) for order in named]
    return [naming for naming in looks if naming is not None]


def anonymous_figures(
    bodies: Bodies, joints: JointFits, tree: Tree
) -> list[NamingInput]:
    """Return the figures all of whose bodies have default names."""
    orders = (breadth_first_order(tree.parent, [int(root)]) for root in tree.roots)
    return [
        _figure(bodies, joints, tree, order)
        for order in orders
        if all(has_default_name(bodies.names[body]) for body in order)
    ]


def _figure(
    bodies: Bodies, joints: JointFits, tree: Tree, order: list[int]
) -> NamingInput:
    """Return a sample of the positions of one figure's bodies and joints."""
    T_world_body = bodies.T_world_body[evenly_spaced(len(bodies.T_world_body))]
    neighbours: dict[int, list[int]] = {body: [] for body in order}
    centers = {}
    for body in order[1:]:
        parent, edge = int(tree.parent[body]), int(tree.edge[body])
        neighbours[body].append(parent)
        neighbours[parent].append(body)
        a, b = (int(i) for i in joints.pair[edge])
        centers[a, b] = geometry.apply(T_world_body[:, a], joints.center_a[edge])
    return NamingInput(T_world_body[..., :3, 3], centers, neighbours)
