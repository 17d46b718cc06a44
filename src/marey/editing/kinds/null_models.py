"""Edits "place-sensor" and "null-model": how sensors sit on their bones.

A null model (Bodenheimer1997, Sec. 2.2) is the pose of a sensor on its bone. It is set
by hand, or taken in frames in which the performer stands in the rest pose. While
skeletons are edited, a null model that holds from a later frame on is a sensor of its
own on the same bone (`later_name`), so that all that changes a joint's frame changes
it; `marey.editing.kinds.moved_sensors` brings the two together at the end.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from marey.editing.draft import EditStep, PlanDraft
from marey.edits import Edit
from marey.numerics import Array, Bool, Float, geometry
from marey.numerics.procrustes import points_of_poses, poses_of_points
from marey.pipeline.stages.subjects import SubjectFit
from marey.pose import fit_pose
from marey.skeleton import Skeleton, marker_columns
from marey.take import Take
from marey.tree import children_of
from marey.virtual import calibrate_sensors

Start = tuple[int, int]
"""Take and frame from which a null model holds."""

LATER = "\0"
"""Separates the name of a sensor from its start; no name contains it."""

# --- plan -----------------------------------------------------------------------------


def plan_place_sensor(draft: PlanDraft, step: EditStep) -> None:
    """Look up a sensor and the body it is attached to."""
    body = draft.find_body_of_sensor(step, step.edit.sensor)
    draft.steps.append(replace(step, bodies=(body,)))


def plan_null_model(draft: PlanDraft, step: EditStep) -> None:
    """Look up the sensors of a null model; all that sit on a body by default."""
    for sensor in step.edit.sensors:
        draft.find_body_of_sensor(step, sensor)
    if not any((take.sensor_body >= 0).any() for take in draft.assignment.takes):
        raise step.refuse("sensors", "bodies without sensors", "6-DoF sensors")
    draft.steps.append(step)


# --- null models on a skeleton --------------------------------------------------------


def later_name(sensor: str, start: Start) -> str:
    """Return the name of a sensor on a skeleton from a start on; its own at (0, 0)."""
    return LATER.join([sensor, *map(str, start)]) if start > (0, 0) else sensor


def starts_of(skeleton: Skeleton, sensor: str) -> list[Start]:
    """Return from where each null model of a sensor holds, in order."""
    names = (name.split(LATER) for name in skeleton.sensor_names)
    later = [(int(n[1]), int(n[2])) for n in names if len(n) == 3 and n[0] == sensor]
    return [(0, 0), *sorted(later)]


def null_model(skeleton: Skeleton, sensor: str, at: Start) -> Float[Array, "4 4"]:
    """Return the pose of a sensor on its bone at a take and frame."""
    start = max(start for start in starts_of(skeleton, sensor) if start <= at)
    row = skeleton.sensor_names.index(later_name(sensor, start))
    return np.asarray(skeleton.T_joint_sensor[row])


def _set_null_model(
    skeleton: Skeleton, sensor: str, start: Start, T: Float[Array, "4 4"]
) -> Skeleton:
    """Return a skeleton with another pose of a sensor on its bone, from a start on."""
    name, T_joint_sensor = later_name(sensor, start), skeleton.T_joint_sensor.copy()
    if name in skeleton.sensor_names:
        T_joint_sensor[skeleton.sensor_names.index(name)] = T
        return replace(skeleton, T_joint_sensor=T_joint_sensor)
    joint = skeleton.sensor_joint[skeleton.sensor_names.index(sensor)]
    return replace(
        skeleton,
        sensor_names=(*skeleton.sensor_names, name),
        sensor_joint=np.append(skeleton.sensor_joint, joint),
        T_joint_sensor=np.concatenate([T_joint_sensor, T[None]]),
    )


def place_sensor(skeleton: Skeleton, step: EditStep) -> Skeleton:
    """Return the skeleton with a sensor placed and turned on its bone by hand.

    Raises:
        OptionError: If the skeleton has no such sensor.
    """
    edit = step.edit
    if edit.sensor not in skeleton.sensor_names:
        found = f"{edit.sensor}, never seen with its body"
        raise step.refuse("sensor", found, f"one of {', '.join(skeleton.sensor_names)}")
    T = null_model(skeleton, edit.sensor, edit.start).copy()
    if edit.offset:
        T[:3, 3] = edit.offset
    if edit.rotation:
        T[:3, :3] = geometry.rotation_exp(np.array(edit.rotation))
    return _set_null_model(skeleton, edit.sensor, edit.start, T)


def retake_null_models(
    subject: SubjectFit, step: EditStep, takes: Sequence[Take]
) -> SubjectFit:
    """Return a subject with the null models of frames in which it stands at rest.

    Where other sensors or markers show the pose of a bone, the sensors that are named
    sit on bones that are at rest relative to the nearest such bone. If nothing else is
    seen, all sensors are turned as in `marey.virtual.calibrate_sensors`
    (Bodenheimer1997, Sec. 2.2) and keep their places.

    Args:
        subject: With its skeleton in each take.
        step: The edit.
        takes: The recordings with all that was seen.

    Raises:
        OptionError: If a sensor is not seen in these frames.
        DataError: If the sensors do not determine where the performer stands.
    """
    edit = step.edit
    take = takes[edit.take].cut(edit.first, edit.last + 1)
    skeleton = skeleton_at(subject.take_skeletons[edit.take], (edit.take, edit.first))
    names = [take.sensor_names[i] for i in named_sensors(edit, take)]
    names = [name for name in names if name in skeleton.sensor_names]
    if not names:
        return subject
    T_world_sensor = take.T_world_sensor[:, list(map(take.sensor_names.index, names))]
    unseen = ~np.isfinite(T_world_sensor).all(axis=(2, 3)).any(axis=0)
    if unseen.any():
        found = f"{names[int(unseen.argmax())]}, not seen in these frames"
        raise step.refuse("sensors", found, "frames that show it")
    kept = hide_sensors(take, named_sensors(edit, take), slice(None))
    if _posed_joints(skeleton, kept).any():
        T = _poses_at_rest(skeleton, kept, names, T_world_sensor)
    else:
        T = _rotations_at_rest(skeleton, names, T_world_sensor)
    for name, T_joint_sensor in zip(names, T, strict=True):
        subject = subject.change_skeletons(
            _set_null_model, name, edit.start, T_joint_sensor
        )
    return subject


def skeleton_at(skeleton: Skeleton, at: Start) -> Skeleton:
    """Return a skeleton with the null models of one take and frame, and no others."""
    own = [i for i, name in enumerate(skeleton.sensor_names) if LATER not in name]
    names = tuple(skeleton.sensor_names[i] for i in own)
    T = [null_model(skeleton, name, at) for name in names]
    return replace(
        skeleton,
        sensor_names=names,
        sensor_joint=skeleton.sensor_joint[own],
        T_joint_sensor=np.array(T).reshape(-1, 4, 4),
    )


def _posed_joints(skeleton: Skeleton, take: Take) -> Bool[Array, " joint"]:
    """Return whether each joint has a marker or a sensor that the take shows."""
    posed = np.zeros(skeleton.n_joints, dtype=bool)
    for sensor, joint in zip(skeleton.sensor_names, skeleton.sensor_joint, strict=True):
        column = take.sensor_names.index(sensor) if sensor in take.sensor_names else -1
        posed[joint] |= column >= 0 and take.sensor_seen[:, column].any()
    for column, joint in zip(
        marker_columns(skeleton, take), skeleton.marker_joint, strict=True
    ):
        posed[joint] |= column >= 0 and take.seen[:, column].any()
    return posed


def _poses_at_rest(
    skeleton: Skeleton,
    kept: Take,
    names: Sequence[str],
    T_world_sensor: Float[Array, "frame sensor 4 4"],
) -> Float[Array, "sensor 4 4"]:
    """Return the poses of sensors on bones that are at rest relative to the others.

    Args:
        skeleton: With its null models.
        kept: Some frames, without the sensors.
        names: The sensors.
        T_world_sensor: Their poses in these frames.
    """
    motion, _ = fit_pose(skeleton, kept, method="gauss_newton")
    T_world_joint, rest = motion.T_world_joint(), skeleton.rest()
    posed = _posed_joints(skeleton, kept)
    T_joint_sensor = []
    for k, name in enumerate(names):
        joint = int(skeleton.sensor_joint[skeleton.sensor_names.index(name)])
        near = _nearest_joint(skeleton, joint, posed)
        T_near_joint = geometry.inverse(rest[near]) @ rest[joint]
        T_world_bone = T_world_joint[:, near] @ T_near_joint
        T_joint_sensor.append(
            _mean_pose(geometry.inverse(T_world_bone) @ T_world_sensor[:, k])
        )
    return np.array(T_joint_sensor)


def _nearest_joint(skeleton: Skeleton, joint: int, posed: Array) -> int:
    """Return the first posed joint on the way out from a joint, parents first."""
    reached = [joint]
    for one in reached:
        if posed[one]:
            return one
        around = [int(skeleton.parent[one]), *children_of(skeleton.parent, one)]
        reached += [j for j in around if j >= 0 and j not in reached]
    return joint


def _mean_pose(T: Float[Array, "frame 4 4"]) -> Float[Array, "4 4"]:
    points = points_of_poses(T)
    return poses_of_points(points[np.isfinite(points).all(axis=(1, 2))].mean(axis=0))


def _rotations_at_rest(
    skeleton: Skeleton,
    names: Sequence[str],
    T_world_sensor: Float[Array, "frame sensor 4 4"],
) -> Float[Array, "sensor 4 4"]:
    """Return the poses of all sensors that are seen, turned as the rest pose asks."""
    rows = [skeleton.sensor_names.index(name) for name in names]
    seen = replace(
        skeleton,
        sensor_names=tuple(names),
        sensor_joint=skeleton.sensor_joint[rows],
        T_joint_sensor=skeleton.T_joint_sensor[rows],
    )
    return calibrate_sensors(seen, T_world_sensor).T_joint_sensor


def named_sensors(edit: Edit, take: Take) -> list[int]:
    """Return the sensors of a take that an edit is about; all if it names none."""
    names = edit.sensors or ((edit.sensor,) if edit.sensor else take.sensor_names)
    return [i for i, name in enumerate(take.sensor_names) if name in names]


def hide_sensors(take: Take, sensors: Sequence[int], frames: slice) -> Take:
    """Return a take in which some sensors, by number, are not seen in some frames."""
    T = take.T_world_sensor.copy()
    T[frames, sensors] = np.nan
    return replace(take, T_world_sensor=T)
