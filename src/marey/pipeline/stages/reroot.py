"""The same skeleton with another of its bodies as the root."""

from dataclasses import replace
from itertools import pairwise

import numpy as np

from marey.numerics import Array, Float, Int
from marey.skeleton import Kind, Skeleton, bone_length_sd
from marey.tree import ancestors_of, breadth_first_order


def reroot_skeleton(skeleton: Skeleton, root: int) -> Skeleton:
    """Return the skeleton with another root; at rest markers and joints stay in place.

    On the path from the new root to the old one every body changes the joint to its
    parent: it is now the joint that it carried before. At rest all frames are aligned
    with the world, so only their origins move. The new root stands in the middle of its
    joints.

    Args:
        skeleton: A skeleton.
        root: The joint whose body becomes the root.
    """
    path = ancestors_of(skeleton.parent, root)
    rest = skeleton.rest()[:, :3, 3]
    position, parent = rest.copy(), skeleton.parent.copy()
    # The old index of the joint by which each body is attached to its new parent.
    old_joint = np.arange(skeleton.n_joints)
    for child, ancestor in pairwise(path):
        parent[ancestor], old_joint[ancestor] = child, child
        position[ancestor] = rest[child]
    parent[root] = -1
    is_fixed = np.array([kind == "fixed" for kind in skeleton.kind])
    children = (parent == root) & ~is_fixed
    position[root] = position[children].mean(axis=0) if children.any() else rest[root]
    moved = position - rest
    T = skeleton.T_joint_sensor.copy()
    T[:, :3, 3] -= moved[skeleton.sensor_joint]
    offset = position - np.where((parent >= 0)[:, None], position[parent], 0.0)
    kind, axes, limits = _reverse_joints(skeleton, path, old_joint)
    covariance, sd = _propagate_covariance(skeleton, path, offset)
    order = breadth_first_order(parent, [root])
    new_index = np.argsort(order)
    return replace(
        skeleton,
        names=tuple(skeleton.names[joint] for joint in order),
        parent=np.array([new_index[p] if p >= 0 else -1 for p in parent[order]]),
        offset=offset[order],
        kind=tuple(kind[joint] for joint in order),
        axes=axes[order],
        limits=limits[order],
        covariance=covariance[order],
        length_sd=sd[order],
        observed=skeleton.observed[order],
        marker_joint=new_index[skeleton.marker_joint],
        marker_offset=skeleton.marker_offset - moved[skeleton.marker_joint],
        sensor_joint=new_index[skeleton.sensor_joint],
        T_joint_sensor=T,
    )


def _reverse_joints(
    skeleton: Skeleton, path: list[int], old_joint: Int[Array, " joint"]
) -> tuple[list[Kind], Float[Array, "joint 2 3"], Float[Array, "joint 3 2"]]:
    """Return kinds, axes and limits after parent and child change places on the path.

    The rotation of a reversed joint is the inverse: angles change sign, and the axes of
    a universal joint change their order.
    """
    kinds = [skeleton.kind[int(joint)] for joint in old_joint]
    axes, limits = skeleton.axes[old_joint], skeleton.limits[old_joint]
    for joint in path[1:]:
        limits[joint] = -limits[joint][:, ::-1]
        if kinds[joint] == "universal":
            axes[joint] = axes[joint][::-1]
            limits[joint, :2] = limits[joint, 1::-1]
        elif kinds[joint] == "ball":
            # The inverse of swing times twist is not a swing times a twist.
            axes[joint], limits[joint] = np.nan, np.nan
    kinds[path[0]] = "root"
    axes[path[0]], limits[path[0]] = np.nan, np.nan
    return kinds, axes, limits


def _propagate_covariance(
    skeleton: Skeleton, path: list[int], offset: Float[Array, "joint 3"]
) -> tuple[Float[Array, "joint 3 3"], Float[Array, " joint"]]:
    r"""Return the covariance of the new offsets, and the sd of the bones' lengths.

    A bone that is measured from its other end keeps its covariance. The covariance of a
    bone between two joints that both were measured from a third is the sum of theirs.
    The variance of a length is

    .. math:: \sigma^2 = \frac{o^T C\, o}{o^T o}

    with the offset o and its covariance C.
    """
    old = skeleton.covariance
    covariance, sd = old.copy(), skeleton.length_sd.copy()
    child_on_path = dict(zip(path[1:], path[:-1], strict=True))
    changed = [*path]
    for joint, parent in enumerate(skeleton.parent.tolist()):
        if parent in child_on_path and child_on_path[parent] != joint:
            covariance[joint] = old[joint] + old[child_on_path[parent]]
            changed.append(joint)
        elif parent == path[0]:
            covariance[joint] = np.nan
            changed.append(joint)
    for ancestor, child in child_on_path.items():
        grandchild = child_on_path.get(child)
        covariance[ancestor] = np.nan if grandchild is None else old[grandchild]
    covariance[path[0]] = np.nan
    sd[changed] = bone_length_sd(offset[changed], covariance[changed])
    return covariance, sd
