"""The calibrated model as a skeleton: rest pose, joints, covariances, markers."""

from dataclasses import replace

import numpy as np

from marey.anatomy.landmarks import find_landmarks
from marey.anatomy.limb_roll import BodyTree, known_rolls, limb_sides
from marey.anatomy.names import (
    FOOT,
    HAND,
    HEAD,
    LEG,
    LOWER_ARM,
    LOWER_LEG,
    SIDES,
    TOES,
    side_of,
    without_side,
)
from marey.anatomy.t_pose import (
    UP,
    align_axes,
    shortest_rotation,
    stand_on_ground,
    t_pose_rotations,
)
from marey.calibration.init.generic import is_movable_girdle
from marey.calibration.problem import attached_points
from marey.calibration.solver.bundle_adjustment import CalibrationFit
from marey.numerics import Array, Bool, Float, geometry
from marey.numerics.procrustes import SENSOR_POINTS, poses_of_points
from marey.numerics.thresholds import FEW, OUTLIER_SD, SKIN_MOTION_M
from marey.skeleton import Kind, Skeleton, bone_length_sd


def to_skeletons(
    fit: CalibrationFit, covariance: Float[Array, "segment segment 3 3"]
) -> tuple[Skeleton, tuple[Skeleton, ...]]:
    """Return the calibrated skeleton in metres, and the same for each take.

    A person rests in a T-pose on the ground, with the root at the mean of its children.
    With landmarks all its joints are balls: a joint that seems to be a hinge is a ball
    that hardly rotated. Other skeletons keep their rest pose.
    """
    model, parameters = fit.estimate.model, fit.estimate.parameters
    is_person = fit.initial.problem.is_person
    n_segments = len(model.names)
    R = _t_pose(fit) if is_person else np.repeat(np.eye(3)[None], n_segments, axis=0)
    R = align_axes(R, model.parent, _hinge_axes(fit))
    root_children = model.children(0) if is_person else []
    o, m = parameters.joint_offset.copy(), _marker_offsets(fit)
    if root_children:
        root = o[root_children].mean(axis=0)
        o[root_children] -= root
        m[:, model.markers_of(0)] -= root
    o[1:] = np.einsum("sij,sj->si", R[model.parent[1:]], o[1:])
    m = np.einsum("kij,tkj->tki", R[model.marker_segment], m)
    bones = _build_bones(fit, o, m.mean(axis=0), R)
    bones = _add_covariances(fit, bones, covariance, R, root_children)
    if is_person:
        bones = stand_on_ground(_attach_markers(fit, bones, m.mean(axis=0)))
    return _skeleton_per_take(fit, bones, m)


def update_marker_offsets(
    fit: CalibrationFit,
) -> tuple[Skeleton, tuple[Skeleton, ...]]:
    """Return the skeleton of the problem with its calibrated marker offsets."""
    problem, parameters = fit.initial.problem, fit.estimate.parameters
    offset = problem.skeleton.offset.copy()
    for i in range(len(problem.model.names)):
        if is_movable_girdle(problem, i):
            joint = problem.segment_joint[i]
            in_segment = problem.joint_in_segment[problem.skeleton.parent[joint]]
            offset[joint] = parameters.joint_offset[i] - in_segment
    bones = replace(problem.skeleton, offset=offset)
    return _skeleton_per_take(fit, bones, _marker_offsets(fit))


def _marker_offsets(fit: CalibrationFit) -> Float[Array, "session marker 3"]:
    """Return the offset of each marker in its segment in every session, in metres.

    A marker that a session does not show has the mean offset of those that do.
    """
    m, problem = fit.estimate.parameters.marker_offset.copy(), fit.initial.problem
    seen = problem.seen
    for marker in np.flatnonzero(~seen.all(axis=0)):
        shown = seen[:, marker]
        m[~shown, marker] = m[shown, marker].mean(axis=0)
    return m


def _skeleton_per_take(
    fit: CalibrationFit,
    bones: Skeleton,
    marker_offset: Float[Array, "session marker 3"],
) -> tuple[Skeleton, tuple[Skeleton, ...]]:
    """Return the bones with mean marker offsets, and with those of each take."""
    mean = _attach_markers(fit, bones, marker_offset.mean(axis=0))
    sessions = [_attach_markers(fit, bones, m) for m in marker_offset]
    take_session = fit.initial.problem.take_session
    return mean, tuple(sessions[k] if k >= 0 else mean for k in take_session)


# --- rest pose ------------------------------------------------------------------------


def unknown_rolls(fit: CalibrationFit) -> tuple[str, ...]:
    """Return the segments of a person whose roll about their bones is a guess.

    Landmarks of the knee show that of a leg, even if it never bends. It is a guess too
    where most markers of a segment are outliers, as on a plate with swapped labels.
    """
    if not fit.initial.problem.is_person:
        return ()
    tree = _body_tree(fit)
    legs = [
        name
        for name in tree.names
        if name.endswith(LEG)
        and side_of(name) + LOWER_LEG in fit.initial.landmark_joints
    ]
    known = known_rolls(tree, _limb_sides(fit, tree), legs)
    noisy = find_noisy_markers(fit)
    doubtful = [
        bool(marked) and 2 * noisy[marked].sum() > len(marked)
        for marked in map(fit.estimate.model.markers_of, range(len(tree.names)))
    ]
    return tuple(tree.names[i] for i in np.flatnonzero(~known | doubtful).tolist())


def find_noisy_markers(fit: CalibrationFit) -> Bool[Array, " marker"]:
    """Return which markers have more noise than the others, and than skin motion."""
    noise = fit.estimate.parameters.marker_noise
    usual = float(np.median(noise))
    limit = max(OUTLIER_SD * usual, SKIN_MOTION_M)
    noisy = np.asarray(noise.max(axis=0) > limit, dtype=bool)
    noisy[list(fit.estimate.model.sensor_points)] = False
    return noisy


def _t_pose(fit: CalibrationFit) -> Float[Array, "segment 3 3"]:
    """Return the rotations of all segments of a person in a T-pose."""
    tree = _body_tree(fit)
    return t_pose_rotations(tree, _level_feet(fit), _limb_sides(fit, tree))


def _level_feet(fit: CalibrationFit) -> Float[Array, "segment 3 3"]:
    """Return rotations of the segments that make feet level; the identity for others.

    A foot is level as it stands: in the tenth of the frames in which its markers are
    lowest. One that is far from level there, as of somebody who lies, stays.
    """
    model, poses = fit.estimate.model, fit.estimate.poses
    R = np.repeat(np.eye(3)[None], len(model.names), axis=0)
    for i, name in enumerate(model.names):
        markers = model.markers_of(i)
        if without_side(name) != FOOT or not markers:
            continue
        height = np.concatenate(
            [one.points[:, markers, 2].mean(axis=1) for one in poses]
        )
        seen = np.isfinite(height)
        if not seen.any():
            continue
        standing = height <= np.quantile(height[seen], FEW)
        vertical = np.concatenate([one.R_world_segment[:, i, 2] for one in poses])
        up = np.median(vertical[standing], axis=0)
        if up @ UP > 0.5 * np.sqrt(2.0) * np.linalg.norm(up):
            R[i] = shortest_rotation(up, UP)
    return R


def _body_tree(fit: CalibrationFit) -> BodyTree:
    """Return the segments of a person; those without children end at their markers.

    Head and feet have no end: their markers do not show where they point. Landmarks of
    the pelvis give it axes of its own, of which the third is up.
    """
    model, o = fit.estimate.model, fit.estimate.parameters.joint_offset
    m = fit.estimate.parameters.marker_offset.mean(axis=0)
    joint, end = np.zeros_like(o), np.zeros_like(o)
    joint[0] = o[model.children(0)].mean(axis=0)
    for i, name in enumerate(model.names):
        markers = model.markers_of(i)
        if markers and without_side(name) not in (HEAD, FOOT, TOES):
            end[i] = m[markers].mean(axis=0)
    up = np.eye(3)[2] if fit.initial.landmark_joints else None
    return BodyTree(model.names, model.parent, o, joint, end, up)


def _limb_sides(fit: CalibrationFit, tree: BodyTree) -> Float[Array, "segment 3"]:
    """Return the sides of a person's limbs in the frames of the segments."""
    model = fit.estimate.model
    m = fit.estimate.parameters.marker_offset.mean(axis=0)
    landmarks = find_landmarks(model.labels, model.marker_segment_names)
    thumbs = {}
    for side in SIDES:
        radius, ulna = (landmarks(side, f"wrist_{n}") for n in ("outer", "inner"))
        if radius and ulna:
            thumb = m[radius].mean(axis=0) - m[ulna].mean(axis=0)
            thumbs[side + LOWER_ARM] = thumb
    R = np.concatenate([poses.R_world_segment for poses in fit.estimate.poses])
    return limb_sides(tree, R, thumbs)


def _hinge_axes(fit: CalibrationFit) -> dict[int, Float[Array, "2 3"]]:
    """Return the unit axis of each hinge in parent and child, by the segment below it.

    The axes of a person with landmarks are soft, and not those of hinges. Feet and
    hands that seem to have one axis are balls that hardly rotated.
    """
    problem, model = fit.initial.problem, fit.estimate.model
    if fit.initial.landmark_joints:
        return {}
    kind = [problem.skeleton.kind[joint] for joint in problem.segment_joint]
    balls = [without_side(name) in (FOOT, HAND, TOES) for name in model.names]
    axes = zip(model.axes, fit.estimate.parameters.axis, strict=True)
    return {
        constraint.child: axis
        for constraint, axis in axes
        if kind[constraint.child] == "hinge"
        and not constraint.center_sd
        and not (problem.is_person and balls[constraint.child])
    }


# --- joints ---------------------------------------------------------------------------


def _build_bones(
    fit: CalibrationFit,
    o: Float[Array, "segment 3"],
    m: Float[Array, "marker 3"],
    R: Float[Array, "segment 3 3"],
) -> Skeleton:
    """Return the skeleton with calibrated joints.

    Fixed joints keep their positions relative to the markers of their segments.
    """
    problem = fit.initial.problem
    skeleton = problem.skeleton
    is_fixed = np.array([kind == "fixed" for kind in skeleton.kind])
    in_segment = _fixed_joint_positions(fit, m)
    position = np.where(is_fixed[:, None], in_segment, o[problem.joint_segment])
    offset = position - in_segment[skeleton.parent]
    offset[0] = 0.0 if problem.is_person else skeleton.offset[0]
    axes = skeleton.axes.copy()
    hinges = _hinge_axes(fit)
    for i, (_, axis) in hinges.items():
        direction = R[i] @ axis
        axes[problem.segment_joint[i], 0] = direction / np.linalg.norm(direction)
    if not problem.is_person:
        return replace(skeleton, offset=offset, axes=axes)
    is_hinge = np.isin(np.arange(len(offset)), problem.segment_joint[[*hinges]])
    axes[~is_hinge] = np.nan
    moving = np.where(is_hinge, "hinge", "ball")
    kinds: list[Kind] = np.where(is_fixed, "fixed", moving).tolist()
    return Skeleton(
        names=skeleton.names,
        parent=skeleton.parent,
        offset=offset,
        kind=("root", *kinds[1:]),
        axes=axes,
        observed=skeleton.observed,
    )


def _fixed_joint_positions(
    fit: CalibrationFit, m: Float[Array, "marker 3"]
) -> Float[Array, "joint 3"]:
    """Return the position of every fixed joint in its segment, in metres.

    The end of a person's limb is the mean of its markers, whatever it was before. Other
    fixed joints move with the points of their segment.
    """
    problem = fit.initial.problem
    model, positions = problem.model, problem.joint_in_segment.copy()
    for j, kind in enumerate(problem.skeleton.kind):
        segment = int(problem.joint_segment[j])
        points = model.markers_of(segment)
        markers = [k for k in points if k not in model.sensor_points]
        if kind != "fixed" or not points:
            continue
        if problem.is_person and markers and not model.children(segment):
            positions[j] = m[markers].mean(axis=0)
            continue
        before = problem.parameters.marker_offset[0, points]
        T = geometry.kabsch(before, m[points])
        if not np.isfinite(T).all():
            translation = m[points].mean(axis=0) - before.mean(axis=0)
            T = geometry.transform(np.eye(3), translation)
        positions[j] = geometry.apply(T, positions[j])
    return positions


def _add_covariances(
    fit: CalibrationFit,
    bones: Skeleton,
    covariance: Float[Array, "segment segment 3 3"],
    R: Float[Array, "segment 3 3"],
    root_children: list[int],
) -> Skeleton:
    """Return the bones with covariance of offsets and standard deviation of lengths.

    The root is at the mean of `root_children`, if there are any. Their offsets are then
    differences to that mean.
    """
    C = np.einsum("iixy->ixy", covariance).copy()
    if root_children:
        with_mean = covariance[np.ix_(root_children, root_children)].mean(axis=1)
        C[root_children] += with_mean.mean(axis=0)
        C[root_children] -= with_mean + with_mean.swapaxes(1, 2)
    G = R[fit.estimate.model.parent[1:]]
    of_offsets = np.full((bones.n_joints, 3, 3), np.nan)
    of_offsets[fit.initial.problem.segment_joint[1:]] = G @ C[1:] @ G.swapaxes(1, 2)
    length_sd = bone_length_sd(bones.offset, of_offsets)
    return replace(bones, covariance=of_offsets, length_sd=length_sd)


# --- markers --------------------------------------------------------------------------


def _attach_markers(
    fit: CalibrationFit, bones: Skeleton, m: Float[Array, "marker 3"]
) -> Skeleton:
    """Return the bones with markers and sensors; unseen ones keep their offsets.

    A calibrated marker of a fixed joint belongs to the joint of its segment.
    """
    problem, skeleton = fit.initial.problem, fit.initial.problem.skeleton
    _, joint, offset = attached_points(skeleton)
    joint[problem.order] = problem.segment_joint[problem.model.marker_segment]
    offset[problem.order] = m
    n, n_points = len(skeleton.marker_labels), len(SENSOR_POINTS)
    T = poses_of_points(offset[n:].reshape(-1, n_points, 3))
    return replace(
        bones,
        marker_labels=skeleton.marker_labels,
        marker_joint=joint[:n],
        marker_offset=offset[:n],
        sensor_names=skeleton.sensor_names,
        sensor_joint=joint[n::n_points],
        T_joint_sensor=T,
    )
