"""The joints of one tree in the order of a skeleton, each seen from both its bodies."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from marey.joint_fits import JointFits
from marey.tree import Tree

Array = np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class JointRecord:
    """A body and the joint to its parent."""

    body: int
    parent: int
    """Index of the parent among the records; -1 = root."""

    in_body: Float[Array, " 3"]
    """Centre of the joint in the body's frame, in metres."""

    in_parent: Float[Array, " 3"]
    """The same centre in the parent's frame, in metres."""

    body_covariance: Float[Array, "3 3"]
    """Covariance of `in_body`, in m^2."""

    parent_covariance: Float[Array, "3 3"]
    """Covariance of `in_parent`, in m^2."""


def breadth_first_order(parent: Int[Array, " item"], roots: Sequence[int]) -> list[int]:
    """Return some roots and all their descendants, every parent before its children."""
    order = list(roots)
    for item in order:
        order += np.flatnonzero(parent == item).tolist()
    return order


def make_joint_records(
    joints: JointFits, tree: Tree, order: list[int]
) -> list[JointRecord]:
    """Return one record per body; the joint of the root is the mean of its children's.

    Args:
        joints: The fitted joints.
        tree: The parent of every body.
        order: The bodies of one tree, parents first.
    """
    index = {body: i for i, body in enumerate(order)}
    records = []
    for body in order[1:]:
        edge = int(tree.edge[body])
        body_part, parent_part = slice(3), slice(3, 6)
        if joints.pair[edge, 0] != body:
            body_part, parent_part = parent_part, body_part
        centers = np.concatenate([joints.center_a[edge], joints.center_b[edge]])
        covariance = joints.covariance[edge]
        records.append(
            JointRecord(
                body,
                index[int(tree.parent[body])],
                centers[body_part],
                centers[parent_part],
                covariance[body_part, body_part],
                covariance[parent_part, parent_part],
            )
        )
    at_root = [record.in_parent for record in records if record.parent == 0]
    middle = np.mean(at_root, axis=0) if at_root else np.zeros(3)
    zero = np.zeros((3, 3))
    return [JointRecord(order[0], -1, middle, middle, zero, zero), *records]


def find_leaves(records: Sequence[JointRecord]) -> list[int]:
    """Return the indices of the records that are nobody's parent."""
    parents = {record.parent for record in records}
    return [i for i in range(len(records)) if i not in parents]
