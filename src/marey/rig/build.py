"""Construction of skeletons from bodies, fitted joints and a tree."""

from collections import Counter
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from marey.anatomy.names import is_person, without_subject
from marey.anatomy.t_pose import stand_on_ground, t_pose_rotations
from marey.bodies import Bodies
from marey.errors import DataError
from marey.joint_fits import JointFits
from marey.numerics import geometry
from marey.rig.joint_records import (
    JointRecord,
    breadth_first_order,
    find_leaves,
    make_joint_records,
)
from marey.rig.rest_pose import find_rest_frame, rest_rotations
from marey.skeleton import Kind, Skeleton, bone_length_sd
from marey.tree import Tree

Array = np.ndarray

END_KIND: Kind = "fixed"
"""Kind of the joint at the end of a leaf."""


def build_skeleton(bodies: Bodies, joints: JointFits, tree: Tree) -> Skeleton:
    """Return the skeleton of bodies that are connected in one tree.

    Raises:
        DataError: If there are several trees; `build_skeletons` takes those.
    """
    if len(tree.roots) != 1:
        names = ", ".join(bodies.names[root] for root in tree.roots)
        raise DataError(
            "tree",
            found=f"{len(tree.roots)} roots: {names}",
            needed="one; build_skeletons returns one skeleton for each",
        )
    return build_skeletons(bodies, joints, tree)[0]


def build_skeletons(
    bodies: Bodies, joints: JointFits, tree: Tree
) -> tuple[Skeleton, ...]:
    """Return one skeleton for every root of the tree.

    A joint is at the fitted centre of two bodies, a root at the mean of its joints, and
    the end of a leaf at the origin of its body. The rest pose is a T-pose for people,
    else the medoid frame. Joints that used two degrees of freedom stay balls: a take
    that does not use the third is no proof that it is missing. The subject in a body's
    name ("JOE:Hips") is dropped, unless two names in one tree would become equal.
    """
    return tuple(_build(bodies, joints, tree, int(root)) for root in tree.roots)


def _build(bodies: Bodies, joints: JointFits, tree: Tree, root: int) -> Skeleton:
    """Return the skeleton of one root."""
    order = breadth_first_order(tree.parent, [root])
    records = make_joint_records(joints, tree, order)
    names = _joint_names([bodies.names[body] for body in order])
    frame = find_rest_frame(bodies, order)
    R_rest = rest_rotations(bodies, order, frame)
    human = is_person(names)
    if human:
        R_rest = t_pose_rotations(
            names,
            np.array([record.parent for record in records]),
            np.array([record.in_parent for record in records]),
            np.array([record.in_body for record in records]),
            R_rest,
        )
    leaves = find_leaves(records)
    offset = np.array([_offset(records, R_rest, record) for record in records])
    offset[0] = np.zeros(3)
    if not human:
        T_world_root = bodies.T_world_body[frame, root]
        offset[0] = geometry.apply(T_world_root, records[0].in_body)
    ends = [-R_rest[i] @ records[i].in_body for i in leaves]
    axes, kind = _degrees_of_freedom(joints, tree, records, R_rest)
    covariance = np.array([_covariance(records, R_rest, record) for record in records])
    unknown = np.full(len(leaves), np.nan)
    skeleton = Skeleton(
        names=(*names, *(f"{names[i]}_end" for i in leaves)),
        parent=np.array([*(r.parent for r in records), *leaves], dtype=np.int64),
        offset=np.concatenate([offset, np.reshape(ends, (-1, 3))]),
        kind=(*kind, *(END_KIND for _ in leaves)),
        axes=np.concatenate([axes, np.full((len(leaves), 2, 3), np.nan)]),
        covariance=np.concatenate([covariance, np.full((len(leaves), 3, 3), np.nan)]),
        length_sd=np.concatenate([bone_length_sd(offset, covariance), unknown]),
    )
    skeleton = _attach_sources(skeleton, bodies, records, R_rest)
    return stand_on_ground(skeleton) if human else skeleton


def _joint_names(bodies: list[str]) -> list[str]:
    """Return the names of a tree's bodies, without the subject where that is unique."""
    short = [without_subject(name) for name in bodies]
    count = Counter(short)
    return [
        bare if count[bare] == 1 else name
        for name, bare in zip(bodies, short, strict=True)
    ]


def _offset(
    records: list[JointRecord], R_rest: Float[Array, "joint 3 3"], record: JointRecord
) -> Float[Array, " 3"]:
    """Return the vector from the parent's joint to a joint at rest, in metres."""
    start = records[record.parent].in_body
    return np.asarray(R_rest[record.parent] @ (record.in_parent - start))


def _covariance(
    records: list[JointRecord], R_rest: Float[Array, "joint 3 3"], record: JointRecord
) -> Float[Array, "3 3"]:
    """Return the covariance of an offset, in m^2; NaN for the root.

    The sum of the covariances of the two joints on the parent's body.
    """
    if record.parent < 0:
        return np.full((3, 3), np.nan)
    R = R_rest[record.parent]
    both = record.parent_covariance + records[record.parent].body_covariance
    return np.asarray(R @ both @ R.T)


def _degrees_of_freedom(
    joints: JointFits,
    tree: Tree,
    records: list[JointRecord],
    R_rest: Float[Array, "joint 3 3"],
) -> tuple[Float[Array, "joint 2 3"], list[Kind]]:
    """Return the axes at rest and the kinds of the joints: root, hinge or ball."""
    axes = np.full((len(records), 2, 3), np.nan)
    kinds: list[Kind] = ["root"]
    for i, record in enumerate(records[1:], start=1):
        edge = int(tree.edge[record.body])
        hinge = joints.kind[edge] == "hinge"
        kinds.append("hinge" if hinge else "ball")
        if hinge:
            is_a = joints.pair[edge, 0] == record.body
            axis = joints.axis_a[edge] if is_a else joints.axis_b[edge]
            axes[i, 0] = R_rest[i] @ axis
    return axes, kinds


def _attach_sources(
    skeleton: Skeleton,
    bodies: Bodies,
    records: list[JointRecord],
    R_rest: Float[Array, "joint 3 3"],
) -> Skeleton:
    """Return the skeleton with the markers or the sensors of its bodies."""
    in_body = np.array([record.in_body for record in records])
    if not bodies.shared.any():
        position = -np.einsum("bij,bj->bi", R_rest, in_body)
        return replace(
            skeleton,
            sensor_names=tuple(bodies.names[record.body] for record in records),
            sensor_joint=np.arange(len(records)),
            T_joint_sensor=geometry.transform(R_rest, position),
        )
    joint_of = {record.body: i for i, record in enumerate(records)}
    markers = [
        marker
        for marker, body in enumerate(bodies.marker_body.tolist())
        if body in joint_of and np.isfinite(bodies.marker_offset[marker]).all()
    ]
    joint = np.array([joint_of[int(bodies.marker_body[m])] for m in markers], dtype=int)
    local = bodies.marker_offset[markers] - in_body[joint]
    return replace(
        skeleton,
        marker_labels=tuple(bodies.take.full_labels[marker] for marker in markers),
        marker_joint=joint.astype(np.int64),
        marker_offset=np.einsum("mij,mj->mi", R_rest[joint], local),
    )
