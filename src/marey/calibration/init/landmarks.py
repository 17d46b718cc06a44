"""Initialisation of a person from the landmarks of one frame."""

from dataclasses import replace
from typing import Literal

import numpy as np
from jaxtyping import Float, Int

from marey.anatomy.landmarks import SIDES, Landmarks
from marey.calibration.init.initialisation import Initialisation
from marey.calibration.init.joint_regression import ReferencePose, regress_joints
from marey.calibration.init.person_priors import add_symmetry_and_proportions
from marey.calibration.model import (
    AxisConstraint,
    KinematicModel,
    ModelParameters,
    model_from_names,
)
from marey.calibration.priors import Prior
from marey.numerics import geometry

Array = np.ndarray

FIRST_NOISE_M = 6e-3
"""Scale of a marker on skin before it is estimated, in metres. Chosen by hand."""

MIN_SKIN_NOISE_M = 2e-4
"""Smallest scale of a marker on skin, in metres. Chosen by hand."""

SOFT_HINGE_SD_RAD, AXIS_SD_RAD = 0.1, 0.25
"""Standard deviations of knees and elbows from a hinge and a universal joint in one
frame, and of the initial directions of their axes, in radians. Higher gives them more
freedom. Chosen by hand."""

MARKER_SD_M = 0.2
"""Standard deviation of a marker from its position in the reference frame, in metres:
so wide that it decides only markers that are hardly seen. Chosen by hand."""

UNMARKED_JOINT_SD_M = 0.040
"""Standard deviation of an initial joint position without landmarks, in metres. Lower
trusts it more. Chosen by hand."""


def init_from_landmarks(
    parameters: ModelParameters,
    landmarks: Landmarks,
    points: Float[Array, "frame marker 3"],
    frame: int,
    *,
    clavicles: bool,
) -> Initialisation:
    """Return the initialisation of a person by joint regression in one frame.

    Args:
        parameters: Parameters of the problem, for joints without landmarks.
        landmarks: The landmarks among the markers.
        points: Frames of all sessions; the reference frame without occlusions.
        frame: The reference frame.
        clavicles: Whether the shoulders move relative to the chest.
    """
    model = parameters.model
    pose = regress_joints(model, landmarks, points, frame)
    person = _add_clavicles(model, landmarks) if clavicles else model
    number = {label: k for k, label in enumerate(model.labels)}
    order = np.array([number[label] for label in person.labels], dtype=np.int64)
    measured = points[frame]
    joints, axes = _complete_pose(person, parameters, pose, measured)
    o, m = np.zeros((len(person.names), 3)), np.zeros((len(order), 3))
    for i in range(1, len(o)):
        p = int(person.parent[i])
        o[i] = axes[p].T @ (joints[i] - joints[p])
    for k, i in enumerate(person.marker_segment):
        m[k] = axes[i].T @ (measured[order[k]] - joints[i])
    person = replace(person, axes=_soft_axis_constraints(person))
    n_sessions = len(parameters.marker_offset)
    initial = ModelParameters.initial(
        person, o, m, _initial_axes(person), n_sessions, FIRST_NOISE_M
    )
    prior = Prior(person)
    prior.add_gauge_constraints(m)
    _add_landmark_priors(prior, o, m, pose, order)
    add_symmetry_and_proportions(prior, mirror=True)
    for n in range(len(person.axes)):
        prior.add_axis_prior(n, initial, AXIS_SD_RAD)
    prior.add_marker_priors(m, MARKER_SD_M)
    return Initialisation(
        initial,
        prior,
        order,
        MIN_SKIN_NOISE_M,
        is_anatomical=True,
        landmark_joints=tuple(name for name in person.names if name in pose.joints),
    )


def can_have_clavicles(model: KinematicModel, landmarks: Landmarks) -> bool:
    """Return whether clavicle segments can be added, with markers of their own."""
    return all(
        landmarks(side, "acromion")
        and model.index(f"{side}UpperArm") >= 0
        and model.index(f"{side}Shoulder") < 0
        and model.names[model.parent[model.index(f"{side}UpperArm")]] == "Chest"
        for side in SIDES
    )


def _add_clavicles(model: KinematicModel, landmarks: Landmarks) -> KinematicModel:
    """Return the model with a segment from the sternum to each shoulder."""
    parents = {
        name: model.names[p] if p >= 0 else ""
        for name, p in zip(model.names, model.parent.tolist(), strict=True)
    }
    segment = dict(zip(model.labels, model.marker_segment_names, strict=True))
    for side in SIDES:
        parents[f"{side}Shoulder"] = parents[f"{side}UpperArm"]
        parents[f"{side}UpperArm"] = f"{side}Shoulder"
        for k in landmarks(side, "acromion"):
            segment[model.labels[k]] = f"{side}Shoulder"
    return model_from_names(parents, list(segment.items()))


def _complete_pose(
    person: KinematicModel,
    parameters: ModelParameters,
    pose: ReferencePose,
    measured: Float[Array, "marker 3"],
) -> tuple[Float[Array, "segment 3"], Float[Array, "segment 3 3"]]:
    """Return joints and axes of all segments in the reference frame.

    A joint without landmarks is that of the problem, moved with its parent's markers.
    A segment without axes has its parent's.
    """
    joints = np.zeros((len(person.names), 3))
    axes = np.zeros((len(person.names), 3, 3))
    for i, name in enumerate(person.names):
        p = int(person.parent[i])
        axes[i] = pose.axes.get(name, axes[p])
        if name in pose.joints:
            joints[i] = pose.joints[name].position
        else:
            parent = person.names[p]
            joints[i] = _move_with_markers(parameters, parent, name, measured)
    return joints, axes


def _move_with_markers(
    parameters: ModelParameters,
    parent: str,
    child: str,
    measured: Float[Array, "marker 3"],
) -> Float[Array, " 3"]:
    """Return a joint of the problem in the reference frame, by its parent's markers."""
    model, i = parameters.model, parameters.model.index(child)
    markers = model.markers_of(model.index(parent))
    if len(markers) >= 3:
        T = geometry.kabsch(parameters.marker_offset[0, markers], measured[markers])
        if np.isfinite(T).all():
            return np.asarray(geometry.apply(T, parameters.joint_offset[i]))
    near = [*markers, *model.markers_of(i)] or list(range(len(measured)))
    return np.asarray(measured[near].mean(axis=0))


def _soft_axis_constraints(model: KinematicModel) -> tuple[AxisConstraint, ...]:
    """Return knees as soft hinges, and elbows as soft universal joints."""
    kinds: dict[str, Literal["hinge", "universal"]] = {
        "LeftLowerLeg": "hinge",
        "RightLowerLeg": "hinge",
        "LeftLowerArm": "universal",
        "RightLowerArm": "universal",
    }
    return tuple(
        AxisConstraint(model.index(name), kind, SOFT_HINGE_SD_RAD)
        for name, kind in kinds.items()
        if model.index(name) > 0
    )


def _initial_axes(
    model: KinematicModel,
) -> tuple[Float[Array, "axis 3"], Float[Array, "axis 3"]]:
    """Return all axes in parent and child: to the left; in forearms along the bone."""
    left, up = np.eye(3)[1], np.eye(3)[2]
    in_parent = np.array([left for _ in model.axes]).reshape(-1, 3)
    in_child = np.array([left if axis.kind == "hinge" else up for axis in model.axes])
    return in_parent, in_child.reshape(-1, 3)


def _add_landmark_priors(
    prior: Prior,
    o: Float[Array, "segment 3"],
    m: Float[Array, "marker 3"],
    pose: ReferencePose,
    order: Int[Array, " marker"],
) -> None:
    """Add that each joint has the regressed offset from its landmarks."""
    model = prior.model
    number = {int(k): n for n, k in enumerate(order)}
    for i in range(1, len(model.names)):
        joint = pose.joints.get(model.names[i])
        landmarks = [number[k] for k in joint.markers] if joint is not None else []
        parent = int(model.parent[i])
        on_parent = [k for k in landmarks if model.marker_segment[k] == parent]
        if joint is not None and on_parent:
            offset = o[i] - m[on_parent].mean(axis=0)
            prior.add_landmark_prior(i, on_parent, offset, joint.sd)
        else:
            prior.add_joint_prior(i, o[i], UNMARKED_JOINT_SD_M)
