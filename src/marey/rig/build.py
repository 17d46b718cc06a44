"""Construction of skeletons from bodies, fitted joints and a tree."""

from collections import Counter
from dataclasses import replace

import numpy as np

from marey.anatomy.limb_roll import BodyTree, known_rolls, limb_sides
from marey.anatomy.names import is_person, without_subject
from marey.anatomy.t_pose import align_axes, stand_on_ground, t_pose_rotations
from marey.bodies import Bodies
from marey.errors import DataError
from marey.joint_fits import JointFits
from marey.numerics import Array, Float, geometry
from marey.numerics.resampling import evenly_spaced
from marey.rig.rest_pose import find_rest_frame, rest_rotations
from marey.rig.tree_joints import TreeJoints, find_tree_joints
from marey.skeleton import Kind, Skeleton, bone_length_sd
from marey.tree import Tree

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


def _build(bodies: Bodies, fits: JointFits, tree: Tree, root: int) -> Skeleton:
    """Return the skeleton of one root."""
    joints = find_tree_joints(fits, tree, root)
    names = _joint_names([bodies.names[body] for body in joints.body])
    frame = find_rest_frame(bodies, joints.body)
    R_rest = rest_rotations(bodies, joints.body, frame)
    human = is_person(names)
    if human:
        limbs = _body_tree(joints, names)
        R_rest = t_pose_rotations(limbs, R_rest, _limb_sides(bodies, joints, limbs))
        if not bodies.sensor_names:  # sensors measure rotations off the axis, too
            R_rest = align_axes(R_rest, joints.parent, _hinge_axes(fits, joints))
    offset = _rotate(
        R_rest[joints.parent], joints.in_parent - joints.in_body[joints.parent]
    )
    offset[0] = 0.0
    if not human:
        T_world_root = bodies.T_world_body[frame, root]
        offset[0] = geometry.apply(T_world_root, joints.in_body[0])
    leaves = joints.leaves
    ends = -_rotate(R_rest[leaves], joints.in_body[leaves])
    axes, kind = _degrees_of_freedom(fits, joints, R_rest)
    covariance = _offset_covariance(joints, R_rest)
    length_sd = bone_length_sd(offset, covariance)
    skeleton = Skeleton(
        names=(*names, *(f"{names[i]}_end" for i in leaves)),
        parent=np.array([*joints.parent, *leaves], dtype=np.int64),
        offset=np.concatenate([offset, ends]),
        kind=(*kind, *(END_KIND for _ in leaves)),
        axes=_with_unknown(axes, len(leaves)),
        covariance=_with_unknown(covariance, len(leaves)),
        length_sd=_with_unknown(length_sd, len(leaves)),
    )
    skeleton = _attach_sources(skeleton, bodies, joints, R_rest)
    return stand_on_ground(skeleton) if human else skeleton


def unknown_rolls(
    bodies: Bodies, fits: JointFits, tree: Tree
) -> tuple[tuple[str, ...], ...]:
    """Return the joints of each root whose roll about their bones at rest is a guess.

    Only people have such a rest pose; other figures have none of these joints.
    """
    return tuple(_unknown_rolls(bodies, fits, tree, int(root)) for root in tree.roots)


def _unknown_rolls(
    bodies: Bodies, fits: JointFits, tree: Tree, root: int
) -> tuple[str, ...]:
    joints = find_tree_joints(fits, tree, root)
    names = _joint_names([bodies.names[body] for body in joints.body])
    if not is_person(names):
        return ()
    limbs = _body_tree(joints, names)
    known = known_rolls(limbs, _limb_sides(bodies, joints, limbs))
    return tuple(names[i] for i in np.flatnonzero(~known))


def _body_tree(joints: TreeJoints, names: list[str]) -> BodyTree:
    """Return the bodies of a person; those without children end at their origins."""
    ends = np.zeros_like(joints.in_body)
    return BodyTree(names, joints.parent, joints.in_parent, joints.in_body, ends)


def _limb_sides(
    bodies: Bodies, joints: TreeJoints, tree: BodyTree
) -> Float[Array, "body 3"]:
    """Return the sides of a person's limbs by a sample of the frames."""
    sample = bodies.T_world_body[evenly_spaced(len(bodies.T_world_body))]
    return limb_sides(tree, sample[:, joints.body, :3, :3])


def _rotate(
    R: Float[Array, "joint 3 3"], vectors: Float[Array, "joint 3"]
) -> Float[Array, "joint 3"]:
    """Return R v of each joint, in the unit of the vectors."""
    return np.asarray(np.einsum("jik,jk->ji", R, vectors))


def _with_unknown(values: Float[Array, "..."], count: int) -> Float[Array, "..."]:
    """Return the values of all joints, and NaN for the ends of leaves after them."""
    return np.concatenate([values, np.full((count, *values.shape[1:]), np.nan)])


def _joint_names(bodies: list[str]) -> list[str]:
    """Return the names of a tree's bodies, without the subject where that is unique."""
    short = [without_subject(name) for name in bodies]
    count = Counter(short)
    return [
        bare if count[bare] == 1 else name
        for name, bare in zip(bodies, short, strict=True)
    ]


def _offset_covariance(
    joints: TreeJoints, R_rest: Float[Array, "joint 3 3"]
) -> Float[Array, "joint 3 3"]:
    """Return the covariance of every offset, in m^2; NaN for the root.

    The sum of the covariances of the two joints on the parent's body.
    """
    R = R_rest[joints.parent]
    both = joints.parent_covariance + joints.body_covariance[joints.parent]
    covariance = R @ both @ R.swapaxes(1, 2)
    covariance[0] = np.nan
    return np.asarray(covariance)


def _hinge_axes(fits: JointFits, joints: TreeJoints) -> dict[int, Float[Array, "2 3"]]:
    """Return the unit axis of each hinge in parent and child, by its joint."""
    axes = np.stack([fits.axis_a, fits.axis_b], axis=1)[joints.edge]
    axes = np.where(joints.is_first[:, None, None], axes[:, ::-1], axes)
    return {
        joint: both
        for joint, (edge, both) in enumerate(zip(joints.edge, axes, strict=True), 1)
        if fits.kind[edge] == "hinge"
    }


def _degrees_of_freedom(
    fits: JointFits, joints: TreeJoints, R_rest: Float[Array, "joint 3 3"]
) -> tuple[Float[Array, "joint 2 3"], list[Kind]]:
    """Return the unit axes at rest and the kinds of the joints: root, hinge or ball."""
    axes = np.full((len(R_rest), 2, 3), np.nan)
    kinds: list[Kind] = ["ball"] * len(R_rest)
    kinds[0] = "root"
    for joint, (_, axis) in _hinge_axes(fits, joints).items():
        axes[joint, 0] = R_rest[joint] @ axis
        kinds[joint] = "hinge"
    return axes, kinds


def _attach_sources(
    skeleton: Skeleton,
    bodies: Bodies,
    joints: TreeJoints,
    R_rest: Float[Array, "joint 3 3"],
) -> Skeleton:
    """Return the skeleton with the markers and the sensors of its bodies."""
    joint_of = {body: i for i, body in enumerate(joints.body.tolist())}
    markers = [
        marker
        for marker, body in enumerate(bodies.marker_body.tolist())
        if body in joint_of and np.isfinite(bodies.marker_offset[marker]).all()
    ]
    joint = np.array([joint_of[int(bodies.marker_body[m])] for m in markers], dtype=int)
    local = bodies.marker_offset[markers] - joints.in_body[joint]
    sensor_rows = sorted(
        (joint_of[body], sensor)
        for sensor, body in enumerate(bodies.sensor_body.tolist())
        if body in joint_of
    )
    sensor_joint, sensors = np.array(sensor_rows, dtype=np.int64).reshape(-1, 2).T
    labels = bodies.take.full_labels
    T_joint_body = geometry.transform(R_rest, -_rotate(R_rest, joints.in_body))
    return replace(
        skeleton,
        sensor_names=tuple(bodies.sensor_names[sensor] for sensor in sensors),
        sensor_joint=sensor_joint.copy(),
        T_joint_sensor=T_joint_body[sensor_joint] @ bodies.T_body_sensor[sensors],
        marker_labels=tuple(labels[marker] for marker in markers),
        marker_joint=joint.astype(np.int64),
        marker_offset=_rotate(R_rest[joint], local),
    )
