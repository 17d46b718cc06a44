"""The joints of one tree in the order of a skeleton, each seen from both its bodies."""

from dataclasses import dataclass

import numpy as np

from marey.joint_fits import JointFits
from marey.numerics import Array, Bool, Float, Int
from marey.tree import Tree, breadth_first_order


@dataclass(frozen=True, slots=True, eq=False)
class TreeJoints:
    """The bodies of one tree, parents first, and the joint of each to its parent.

    The joint of the root is the mean of its children's.
    """

    body: Int[Array, " joint"]
    parent: Int[Array, " joint"]
    """Position of the parent in this order; -1 = root."""

    edge: Int[Array, " fitted"]
    """Index of the fitted joint of every body but the root."""

    is_first: Bool[Array, " fitted"]
    """Whether the body is the first of that joint's pair."""

    in_body: Float[Array, "joint 3"]
    """Centre of the joint in the body's frame, in metres."""

    in_parent: Float[Array, "joint 3"]
    """The same centre in the parent's frame, in metres."""

    body_covariance: Float[Array, "joint 3 3"]
    """Covariance of `in_body`, in m^2."""

    parent_covariance: Float[Array, "joint 3 3"]
    """Covariance of `in_parent`, in m^2."""

    @property
    def leaves(self) -> list[int]:
        """The joints that are nobody's parent."""
        return sorted({*range(len(self.parent))} - {*self.parent.tolist()})


def find_tree_joints(joints: JointFits, tree: Tree, root: int) -> TreeJoints:
    """Return the joints of the tree below a root."""
    order = np.array(breadth_first_order(tree.parent, [root]))
    parent = np.array([-1, *(order.tolist().index(p) for p in tree.parent[order[1:]])])
    edge = tree.edge[order[1:]]
    is_first = joints.pair[edge, 0] == order[1:]
    here, there = np.where(is_first, 0, 1), np.where(is_first, 1, 0)
    k = np.arange(len(edge))
    centers = np.stack([joints.center_a[edge], joints.center_b[edge]], axis=1)
    in_parent = centers[k, there]
    covariance = joints.covariance[edge].reshape(-1, 2, 3, 2, 3)
    at_root = in_parent[parent[1:] == 0]
    middle = at_root.mean(axis=0) if len(at_root) else np.zeros(3)
    unknown = np.zeros((1, 3, 3))
    return TreeJoints(
        body=order,
        parent=parent,
        edge=edge,
        is_first=is_first,
        in_body=np.vstack([middle, centers[k, here]]),
        in_parent=np.vstack([middle, in_parent]),
        body_covariance=np.concatenate([unknown, covariance[k, here, :, here]]),
        parent_covariance=np.concatenate([unknown, covariance[k, there, :, there]]),
    )
