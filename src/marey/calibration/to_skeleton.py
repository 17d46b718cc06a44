"""The calibrated model as a skeleton: rest pose, joints, covariances, markers."""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from marey.anatomy.landmarks import SIDES
from marey.calibration.init.generic import SHOULDER_GIRDLE
from marey.calibration.model import KinematicModel
from marey.calibration.problem import SENSOR_POINTS, CalibrationProblem
from marey.calibration.solver.bundle_adjustment import CalibrationFit
from marey.numerics import geometry
from marey.numerics.procrustes import shortest_rotations
from marey.skeleton import Kind, Skeleton

Array = np.ndarray

ARMS = ("UpperArm", "LowerArm", "Hand")
LEGS = ("UpperLeg", "LowerLeg")
TRUNK = ("Hips", "Chest")


@dataclass(frozen=True, slots=True, eq=False)
class CalibratedSkeletons:
    """The calibrated skeletons of a subject."""

    skeleton: Skeleton
    """The bones with each marker's mean offset over the sessions."""

    skeletons: tuple[Skeleton, ...]
    """By take: the same bones with the marker offsets of its session."""


def to_skeletons(
    problem: CalibrationProblem,
    fit: CalibrationFit,
    covariance: Float[Array, "segment segment 3 3"],
    *,
    is_person: bool,
) -> CalibratedSkeletons:
    """Return the calibrated skeletons.

    A person rests in a T-pose on the ground, with the root at the mean of its children,
    and all its joints are balls: a joint that seems to be a hinge is a ball that hardly
    rotated. Other skeletons keep their rest pose.
    """
    model, parameters = fit.estimate.model, fit.estimate.parameters
    R = _t_pose(fit) if is_person else _align_hinge_axes(problem, fit)
    root_children = model.children(0)
    o = parameters.joint_offset.copy()
    root = o[root_children].mean(axis=0) if is_person and root_children else np.zeros(3)
    o[root_children] -= root
    on_root = np.where(model.marker_segment == 0, 1.0, 0.0)[None, :, None]
    m = parameters.marker_offset - on_root * root
    o[1:] = np.einsum("sij,sj->si", R[model.parent[1:]], o[1:])
    m = np.einsum("kij,tkj->tki", R[model.marker_segment], m)
    bones = _build_bones(problem, fit, o, m.mean(axis=0), R, is_person=is_person)
    offset_covariance, length_sd = _bone_covariances(
        model, bones, covariance, R, root_children if is_person else []
    )
    bones = replace(bones, covariance=offset_covariance, length_sd=length_sd)
    if is_person:
        bones = _stand_on_ground(_attach_markers(problem, fit, bones, m.mean(axis=0)))
    return _skeleton_per_take(problem, fit, bones, m)


def update_marker_offsets(
    problem: CalibrationProblem, fit: CalibrationFit
) -> CalibratedSkeletons:
    """Return the skeleton of the problem with its calibrated marker offsets."""
    parameters = fit.estimate.parameters
    offset = problem.skeleton.offset.copy()
    for i, name in enumerate(fit.estimate.model.names):
        if name in SHOULDER_GIRDLE:
            joint = problem.segment_joint[i]
            parent = problem.skeleton.parent[joint]
            offset[joint] = (
                parameters.joint_offset[i] - problem.joint_in_segment[parent]
            )
    bones = replace(problem.skeleton, offset=offset)
    return _skeleton_per_take(problem, fit, bones, parameters.marker_offset)


def _skeleton_per_take(
    problem: CalibrationProblem,
    fit: CalibrationFit,
    bones: Skeleton,
    marker_offset: Float[Array, "session marker 3"],
) -> CalibratedSkeletons:
    """Return the bones with mean marker offsets, and with those of each take."""
    mean = _attach_markers(problem, fit, bones, marker_offset.mean(axis=0))
    sessions = [_attach_markers(problem, fit, bones, m) for m in marker_offset]
    return CalibratedSkeletons(
        mean, tuple(sessions[k] if k >= 0 else mean for k in problem.take_session)
    )


# --- rest pose ------------------------------------------------------------------------


def _t_pose(fit: CalibrationFit) -> Float[Array, "segment 3 3"]:
    """Return the rotations of all segments of a person in a T-pose."""
    model, o = fit.estimate.model, fit.estimate.parameters.joint_offset
    R = np.repeat(np.eye(3)[None], len(model.names), axis=0)
    for i, name in enumerate(model.names):
        left = 1.0 if name.startswith("Left") else -1.0
        part = name.removeprefix("Left").removeprefix("Right")
        children = model.children(i)
        if part in TRUNK:
            R[i] = _upright_rotation(model, o, i)
        elif part in ARMS and fit.initial.is_anatomical:
            R[i] = geometry.rotation_exp(np.array([left * np.pi / 2.0, 0.0, 0.0]))
        if part in (*ARMS, *LEGS) and len(children) == 1:
            goal = np.array([0.0, left, 0.0] if part in ARMS else [0.0, 0.0, -1.0])
            R[i] = _shortest_rotation(R[i] @ o[children[0]], goal) @ R[i]
        elif not children and model.parent[i] >= 0 and part in ARMS:
            R[i] = R[model.parent[i]]
    return R


def _upright_rotation(
    model: KinematicModel, o: Float[Array, "segment 3"], i: int
) -> Float[Array, "3 3"]:
    """Return the rotation of a trunk segment that puts it upright, facing forward.

    The line from its right to its left child points to the left, and the bone to its
    other children points up, as far as both can.
    """
    children = model.children(i)
    of_side = {
        side: [o[c] for c in children if model.names[c].startswith(side)]
        for side in SIDES
    }
    central = [o[c] for c in children if not model.names[c].startswith(SIDES)]
    if not all(of_side.values()) or not central:
        return np.eye(3)
    left, right = (offsets[0] for offsets in of_side.values())
    base = 0.5 * (left + right) if i == 0 else np.zeros(3)
    up = np.mean(central, axis=0) - base
    y = (left - right) / np.linalg.norm(left - right)
    z = up - (up @ y) * y
    z = z / np.linalg.norm(z)
    return np.stack([np.cross(y, z), y, z])


def _shortest_rotation(
    vector: Float[Array, " 3"], unit: Float[Array, " 3"]
) -> Float[Array, "3 3"]:
    """Return the shortest rotation of a vector into a unit vector."""
    length = float(np.linalg.norm(vector))
    if length < 1e-9:
        return np.eye(3)
    return geometry.matrix_from_quat(shortest_rotations(vector / length, unit))


def _stand_on_ground(skeleton: Skeleton) -> Skeleton:
    """Return the skeleton with its lowest joint or marker at height zero."""
    joints = skeleton.rest()[:, :3, 3]
    markers = joints[skeleton.marker_joint] + skeleton.marker_offset
    low = min(joints[:, 2].min(), markers[:, 2].min(initial=np.inf))
    offset = skeleton.offset.copy()
    offset[0] = [0.0, 0.0, skeleton.offset[0, 2] - low]
    return replace(skeleton, offset=offset)


def _align_hinge_axes(
    problem: CalibrationProblem, fit: CalibrationFit
) -> Float[Array, "segment 3 3"]:
    """Return rotations at rest that align the axes of hinges in parent and child."""
    model, parameters = fit.estimate.model, fit.estimate.parameters
    R = np.repeat(np.eye(3)[None], len(model.names), axis=0)
    for n, axis in sorted(enumerate(model.axes), key=lambda item: item[1].child):
        i = axis.child
        if _joint_kind(problem, model, model.names[i], is_person=False) == "hinge":
            goal = R[model.parent[i]] @ parameters.axis_in_parent[n]
            goal = goal / np.linalg.norm(goal)
            R[i] = _shortest_rotation(parameters.axis_in_child[n], goal)
    return R


# --- joints ---------------------------------------------------------------------------


def _build_bones(
    problem: CalibrationProblem,
    fit: CalibrationFit,
    o: Float[Array, "segment 3"],
    m: Float[Array, "marker 3"],
    R: Float[Array, "segment 3 3"],
    *,
    is_person: bool,
) -> Skeleton:
    """Return the skeleton of all joints, without markers.

    Joints keep the order of the skeleton, with new ones before their children. Fixed
    joints keep their positions relative to the markers of their segments.
    """
    skeleton, model = problem.skeleton, fit.estimate.model
    axis_in_child = fit.estimate.parameters.axis_in_child
    axis_number = {model.names[axis.child]: n for n, axis in enumerate(model.axes)}
    fixed_position = _fixed_joint_positions(problem, fit, m)
    names, parent_name = _joint_names(problem, model)
    position = {name: np.zeros(3) for name in names}
    offset, kinds = [], []
    axes = np.full((len(names), 2, 3), np.nan)
    limits = np.full((len(names), 3, 2), np.nan)
    for n, name in enumerate(names):
        parent = parent_name[name]
        i, j = model.index(name), _index(skeleton.names, name)
        if i >= 0:
            here = o[i] if parent else skeleton.offset[0]
            kinds.append(_joint_kind(problem, model, name, is_person=is_person))
        else:
            here = position[name] = fixed_position[j]
            kinds.append("fixed")
        offset.append(here - (position[parent] if parent else 0.0))
        if j >= 0 and not is_person:
            axes[n], limits[n] = skeleton.axes[j], skeleton.limits[j]
        if kinds[-1] == "hinge" and name in axis_number:
            axis = R[i] @ axis_in_child[axis_number[name]]
            axes[n, 0] = axis / np.linalg.norm(axis)
    parents = [_index(names, parent_name[name]) for name in names]
    return Skeleton(
        names=tuple(names),
        parent=np.array(parents, dtype=np.int64),
        offset=np.array(offset),
        kind=tuple(kinds),
        axes=axes,
        limits=limits,
    )


def _index(names: tuple[str, ...] | list[str], name: str) -> int:
    """Return the number of a name, -1 if there is none."""
    return names.index(name) if name in names else -1


def _joint_names(
    problem: CalibrationProblem, model: KinematicModel
) -> tuple[list[str], dict[str, str]]:
    """Return all joints, parents first, and the parent of each; "" for the root."""
    names: list[str] = []
    parents = {}
    for name in problem.skeleton.names:
        parents[name] = parent = _parent_name(problem, model, name)
        if parent and parent not in names:
            names.append(parent)
            parents[parent] = _parent_name(problem, model, parent)
        names.append(name)
    return names, parents


def _parent_name(problem: CalibrationProblem, model: KinematicModel, name: str) -> str:
    """Return the parent of a joint in the calibrated skeleton; "" for the root."""
    skeleton = problem.skeleton
    i, j = model.index(name), _index(skeleton.names, name)
    p = int(skeleton.parent[j]) if j >= 0 else -1
    if i >= 0 and model.parent[i] >= 0:
        segment = str(model.names[model.parent[i]])
        if p < 0 or problem.model.names[problem.joint_segment[p]] != segment:
            return segment
    return skeleton.names[p] if p >= 0 else ""


def _joint_kind(
    problem: CalibrationProblem, model: KinematicModel, name: str, *, is_person: bool
) -> Kind:
    if model.parent[model.index(name)] < 0:
        return "root"
    if is_person:
        return "ball"
    return problem.skeleton.kind[problem.skeleton.names.index(name)]


def _fixed_joint_positions(
    problem: CalibrationProblem, fit: CalibrationFit, m: Float[Array, "marker 3"]
) -> Float[Array, "joint 3"]:
    """Return every fixed joint in its segment, moved with the segment's markers."""
    model = fit.estimate.model
    positions = problem.joint_in_segment.copy()
    for j, kind in enumerate(problem.skeleton.kind):
        segment = problem.model.names[problem.joint_segment[j]]
        markers = model.markers_of(model.index(segment))
        if kind != "fixed" or not markers:
            continue
        before = problem.parameters.marker_offset[0, fit.order[markers]]
        T = geometry.kabsch(before, m[markers])
        if not np.isfinite(T).all():
            translation = m[markers].mean(axis=0) - before.mean(axis=0)
            T = geometry.transform(np.eye(3), translation)
        positions[j] = geometry.apply(T, positions[j])
    return positions


def _bone_covariances(
    model: KinematicModel,
    bones: Skeleton,
    covariance: Float[Array, "segment segment 3 3"],
    R: Float[Array, "segment 3 3"],
    root_joints: list[int],
) -> tuple[Float[Array, "joint 3 3"], Float[Array, " joint"]]:
    """Return the covariance of every offset, and the standard deviation of lengths.

    The root is at the mean of `root_joints`, if there are any. Their offsets are then
    differences to that mean.
    """
    offset_covariance = np.full((bones.n_joints, 3, 3), np.nan)
    length_sd = np.full(bones.n_joints, np.nan)
    for joint, name in enumerate(bones.names):
        i = model.index(name)
        if i <= 0:
            continue
        C = covariance[i, i]
        if i in root_joints:
            with_mean = covariance[i, root_joints].mean(axis=0)
            of_mean = covariance[np.ix_(root_joints, root_joints)].mean(axis=(0, 1))
            C = C - with_mean - with_mean.T + of_mean
        G = R[model.parent[i]]
        offset_covariance[joint] = G @ C @ G.T
        offset = bones.offset[joint]
        length = float(np.linalg.norm(offset))
        if length > 0.0:
            variance = float(offset @ offset_covariance[joint] @ offset)
            length_sd[joint] = np.sqrt(max(variance, 0.0)) / length
    return offset_covariance, length_sd


# --- markers --------------------------------------------------------------------------


def _attach_markers(
    problem: CalibrationProblem,
    fit: CalibrationFit,
    bones: Skeleton,
    m: Float[Array, "marker 3"],
) -> Skeleton:
    """Return the bones with markers and sensors; unseen ones keep their offsets."""
    skeleton, model = problem.skeleton, fit.estimate.model
    # A calibrated marker of a fixed joint belongs to the joint of its segment.
    marker_joint = np.array(
        [bones.names.index(skeleton.names[j]) for j in skeleton.marker_joint],
        dtype=np.int64,
    )
    marker_offset = skeleton.marker_offset.copy()
    sensor_joint = skeleton.sensor_joint.copy()
    T_joint_sensor = skeleton.T_joint_sensor.copy()
    sensor_points: dict[int, dict[int, Array]] = {}
    for k, segment in enumerate(model.marker_segment_names):
        kind, number, point = problem.marker_source[int(fit.order[k])]
        joint = bones.names.index(segment)
        if kind == "marker":
            marker_joint[number], marker_offset[number] = joint, m[k]
        else:
            sensor_joint[number] = joint
            sensor_points.setdefault(number, {})[point] = m[k]
    for sensor, points in sensor_points.items():
        T = geometry.kabsch(SENSOR_POINTS[list(points)], np.array([*points.values()]))
        if np.isfinite(T).all():
            T_joint_sensor[sensor] = T
    return replace(
        bones,
        marker_labels=skeleton.marker_labels,
        marker_joint=marker_joint,
        marker_offset=marker_offset,
        sensor_names=skeleton.sensor_names,
        sensor_joint=sensor_joint,
        T_joint_sensor=T_joint_sensor,
    )
