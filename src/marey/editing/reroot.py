"""A skeleton hung from another of its bodies."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
from jaxtyping import Float, Int

from marey.skeleton import Kind, Skeleton

Array = np.ndarray


def rerooted(skeleton: Skeleton, root: int) -> Skeleton:
    """Return the same figure hung from another body: markers and joints stay in place.

    On the way from the old root to the new one every body hangs by the joint that it
    carried before. At rest all frames are aligned with the world, so only their origins
    move. The new root stands in the middle of its joints.

    Args:
        skeleton: A skeleton.
        root: The joint whose body is to be the root.
    """
    way = [root]
    while skeleton.parent[way[-1]] >= 0:
        way.append(int(skeleton.parent[way[-1]]))
    rest = skeleton.rest()[:, :3, 3]
    place, parent = rest.copy(), skeleton.parent.copy()
    # By which joint each body hangs now, as numbered before.
    by = np.arange(skeleton.n_joints)
    for below, above in pairwise(way):
        parent[above], by[above], place[above] = below, below, rest[below]
    parent[root], by[root] = -1, root
    fixed = np.array([kind == "fixed" for kind in skeleton.kind])
    around = (parent == root) & ~fixed
    place[root] = place[around].mean(axis=0) if around.any() else rest[root]
    moved = place - rest
    T = skeleton.T_joint_sensor.copy()
    T[:, :3, 3] -= moved[skeleton.sensor_joint]
    offset = place - np.where((parent >= 0)[:, None], place[parent], 0.0)
    kind, axes, limits = _joints(skeleton, way, by)
    covariance, sd = _doubts(skeleton, way, offset)
    order = _order(parent, root)
    back = np.argsort(order)
    return replace(
        skeleton,
        names=tuple(skeleton.names[joint] for joint in order),
        parent=np.array([back[p] if p >= 0 else -1 for p in parent[order]]),
        offset=offset[order],
        kind=tuple(kind[joint] for joint in order),
        axes=axes[order],
        limits=limits[order],
        covariance=covariance[order],
        length_sd=sd[order],
        marker_joint=back[skeleton.marker_joint],
        marker_offset=skeleton.marker_offset - moved[skeleton.marker_joint],
        sensor_joint=back[skeleton.sensor_joint],
        T_joint_sensor=T,
    )


def _order(parent: Int[Array, " joint"], root: int) -> list[int]:
    """Return the joints, parents first."""
    order = [root]
    for joint in order:
        order += [int(child) for child in np.flatnonzero(parent == joint)]
    return order


def _joints(
    skeleton: Skeleton, way: list[int], by: Int[Array, " joint"]
) -> tuple[list[Kind], Float[Array, "joint 2 3"], Float[Array, "joint 3 2"]]:
    """Return kinds, axes and limits of the joints by which bodies hang now."""
    kinds = [skeleton.kind[int(joint)] for joint in by]
    axes, limits = skeleton.axes[by], skeleton.limits[by]
    # Seen from the other body a joint turns the other way, its last axis first.
    for joint in way[1:]:
        limits[joint] = -limits[joint][:, ::-1]
        if kinds[joint] == "universal":
            axes[joint] = axes[joint][::-1]
            limits[joint, :2] = limits[joint, 1::-1]
        elif kinds[joint] == "ball":
            # Swing and twist the other way round are no swing and twist.
            axes[joint], limits[joint] = np.nan, np.nan
    kinds[way[0]] = "root"
    axes[way[0]], limits[way[0]] = np.nan, np.nan
    return kinds, axes, limits


def _doubts(
    skeleton: Skeleton, way: list[int], offset: Float[Array, "joint 3"]
) -> tuple[Float[Array, "joint 3 3"], Float[Array, " joint"]]:
    """Return what is known of the offsets now.

    A bone that is measured from its other end is known as before; one between two
    joints that both were measured from a third is known as the two together.
    """
    old = skeleton.covariance
    covariance, sd = old.copy(), skeleton.length_sd.copy()
    on = dict(zip(way[1:], way[:-1], strict=True))
    changed = [*way]
    for joint, parent in enumerate(skeleton.parent.tolist()):
        if parent in on and on[parent] != joint:
            covariance[joint] = old[joint] + old[on[parent]]
            changed.append(joint)
        elif parent == way[0]:
            covariance[joint] = np.nan
            changed.append(joint)
    for above, below in on.items():
        further = on.get(below)
        covariance[above] = np.nan if further is None else old[further]
    covariance[way[0]] = np.nan
    for joint in changed:
        length = float(np.linalg.norm(offset[joint]))
        variance = float(offset[joint] @ covariance[joint] @ offset[joint])
        known = variance >= 0.0 and length > 0.0
        sd[joint] = np.sqrt(variance) / length if known else np.nan
    return covariance, sd
