"""The choice among almost equal trees: one that matches a person's anatomy."""

from marey.bodies import Bodies
from marey.joints import JointFits
from marey.rig import has_default_name, name_bodies
from marey.topology import alternative_trees
from marey.tree import Tree

MIN_NAMING_FIT = 0.4
"""Smallest `Naming.fit` of a person for which another tree is preferred. Higher keeps
the cheapest tree more often. Chosen by hand."""


def prefer_nameable_tree(bodies: Bodies, joints: JointFits, tree: Tree) -> Tree:
    """Return the tree, or an almost equal one whose bodies can be named as a person's.

    Feet that keep their distance for a while, and thighs that swing together, fit each
    other as well as a leg fits the hips. If no tree of anonymous bodies matches a known
    anatomy, the trees that differ in one doubtful joint are tried
    (`marey.topology.alternative_trees`); the one that fits a person best is returned.
    """
    anonymous = any(map(has_default_name, bodies.names))
    if not anonymous or name_bodies(bodies, joints, tree)[1]:
        return tree
    best, best_fit = tree, MIN_NAMING_FIT
    for other in alternative_trees(joints, tree):
        for naming in name_bodies(bodies, joints, other)[1]:
            if naming.kind == "human" and naming.fit > best_fit:
                best, best_fit = other, naming.fit
    return best
