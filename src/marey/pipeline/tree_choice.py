"""Of trees that fit almost alike, the one that looks like something."""

from marey.bodies import Bodies
from marey.joints import JointFits
from marey.rig import is_nameless, renamed
from marey.topology import alternatives
from marey.tree import Tree

LIKE = 0.4
"""How well bodies must be where their names have them, see `Naming.fit`."""


def likelier(bodies: Bodies, joints: JointFits, tree: Tree) -> Tree:
    """Return the tree, or one that is almost as good and looks like a person.

    Feet that keep their distance for a while, and thighs that swing alike, fit each
    other as well as a leg fits the hips. Where one joint of the tree is in doubt and
    its next best makes a person of what looks like nothing, that one is taken.
    """
    nameless = any(map(is_nameless, bodies.names))
    if not nameless or renamed(bodies, joints, tree)[1]:
        return tree
    best, like = tree, LIKE
    for other in alternatives(joints, tree):
        for naming in renamed(bodies, joints, other)[1]:
            if naming.kind == "human" and naming.fit > like:
                best, like = other, naming.fit
    return best
