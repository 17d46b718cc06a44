"""Bodies of one tree on their way to being joints."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from marey.joint_fits import JointFits
from marey.tree import Tree

Array = np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """One body on its way to a joint: where it is hinged, in its own coordinates."""

    body: int
    parent: int
    """Position of the parent among the parts; -1 = root."""

    own: Float[Array, " 3"]
    """The joint to its parent, in its own coordinates."""

    above: Float[Array, " 3"]
    """The same joint in the parent's coordinates."""

    own_covariance: Float[Array, "3 3"]
    above_covariance: Float[Array, "3 3"]


def ordered(parent: Int[Array, " body"], root: int) -> list[int]:
    """Return the bodies of one tree, every parent before its children."""
    order = [root]
    for body in order:
        order += [int(child) for child in np.flatnonzero(parent == body)]
    return order


def parts_of(joints: JointFits, tree: Tree, order: list[int]) -> list[Part]:
    """Return the bodies with the joints they hang by; the root hangs by its middle."""
    place = {body: i for i, body in enumerate(order)}
    parts = []
    for body in order[1:]:
        edge = int(tree.edge[body])
        own, above = (slice(3), slice(3, 6))
        ends = np.concatenate([joints.center_a[edge], joints.center_b[edge]])
        if joints.pair[edge, 0] != body:
            own, above = above, own
        covariance = joints.covariance[edge]
        parts.append(
            Part(
                body,
                place[int(tree.parent[body])],
                ends[own],
                ends[above],
                covariance[own, own],
                covariance[above, above],
            )
        )
    hinges = [part.above for part in parts if part.parent == 0]
    middle = np.mean(hinges, axis=0) if hinges else np.zeros(3)
    none = np.zeros((3, 3))
    return [Part(order[0], -1, middle, middle, none, none), *parts]


def leaves_of(parts: list[Part]) -> list[int]:
    """Return the positions of the parts that nothing hangs on."""
    used = {part.parent for part in parts}
    return [i for i in range(len(parts)) if i not in used]
