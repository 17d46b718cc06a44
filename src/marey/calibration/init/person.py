"""Initialisation of a person with landmarks: reference frame, joints and shoulders.

Candidate frames, in each of which joints are regressed from landmarks, compete on the
residuals of a few posed frames. The shoulders move relative to the chest where the
markers on acromia do.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from marey.anatomy.landmarks import Landmarks
from marey.anatomy.limb_roll import MIN_COSINE
from marey.anatomy.names import (
    CHEST,
    LOWER_ARM,
    LOWER_LEG,
    SHOULDER,
    SIDES,
    UPPER_ARM,
    both_sides,
)
from marey.anatomy.whole_person import insert_joint
from marey.calibration.hinges import main_axes
from marey.calibration.init.joint_regression import (
    LANDMARK_SD_M,
    JointRegression,
    ReferencePose,
    regress_joints,
)
from marey.calibration.init.place_on_axis import move_to_middle, place_on_axis
from marey.calibration.init.poses import initial_poses
from marey.calibration.init.reference_frame import candidate_frames
from marey.calibration.model import (
    KNEE_CENTER_SD_M,
    MIN_SKIN_NOISE_M,
    SOFT_HINGE_SD_RAD,
    AxisConstraint,
    KinematicModel,
    ModelParameters,
)
from marey.calibration.options import CalibrateOptions
from marey.calibration.priors import (
    JOINT_SD_M,
    Initialisation,
    Prior,
    add_symmetry_and_proportions,
)
from marey.calibration.problem import CalibrationProblem, problem_of_sessions
from marey.calibration.solver.bundle_adjustment import pose_sampled_frames
from marey.calibration.solver.levenberg_marquardt import residuals
from marey.numerics import Array, Bool, Float, geometry
from marey.numerics.procrustes import fit_rigid
from marey.numerics.thresholds import FRAMES_PER_CHUNK, MIN_SAMPLES, SKIN_MOTION_M

TEST_FRAMES = 30
"""Frames of all takes together, but `MIN_SAMPLES` of each, on which candidates for
the reference frame compete. More take longer. Chosen by hand."""

MAX_REFERENCE_FRAMES = 2 * FRAMES_PER_CHUNK
"""Most frames, evenly in time, to seek a reference among. Higher takes more memory;
most recordings are shorter."""

AXIS_SD_RAD = 0.25
"""Standard deviation of the initial directions of the axes of knees and elbows, in
radians. Higher gives them more freedom. Chosen by hand."""


def init_person(
    problem: CalibrationProblem, landmarks: Landmarks, options: CalibrateOptions
) -> Initialisation | None:
    """Return the best initialisation of a person; None if no frame determines it."""
    person = problem
    if _have_clavicles(problem, landmarks, options.shoulders):
        person = _insert_clavicles(problem, landmarks)
    best = _choose_reference(problem, person, landmarks)
    return _with_priors(person, best) if best else None


def _choose_reference(
    problem: CalibrationProblem, person: CalibrationProblem, landmarks: Landmarks
) -> "RegressedPerson | None":
    """Return the best initial parameters; None if no frame determines all joints."""
    n_frames = sum(map(len, problem.sessions))
    points = problem.every_position(1 + n_frames // MAX_REFERENCE_FRAMES)
    n_test = max(TEST_FRAMES // problem.n_takes, MIN_SAMPLES)
    test_frames = np.concatenate(person.sample_positions(n_test))
    best, least = None, np.inf
    for frame in candidate_frames(points, landmarks):
        regressed = _regress_person(problem, person, landmarks, points, frame)
        if not np.isfinite(regressed.parameters.joint_offset).all():
            continue
        misfit = _misfit(regressed.parameters, test_frames)
        if best is None or misfit < least:
            best, least = regressed, misfit
    return best


def _misfit(
    parameters: ModelParameters, points: Float[Array, "frame marker 3"]
) -> float:
    """Return the mean distance of markers from their predictions, in metres.

    It is rounded to a tenth of a millimetre, so that the first of equally good
    candidates is taken.
    """
    estimate = pose_sampled_frames(parameters, (points,))
    (session,) = residuals(estimate)
    distance = geometry.lengths(session.vector)[session.seen]
    return round(float(np.mean(distance)), 4)


# --- clavicles ------------------------------------------------------------------------


def _have_clavicles(
    problem: CalibrationProblem, landmarks: Landmarks, shoulders: str
) -> bool:
    """Return whether the shoulders move, by the option `shoulders` or by themselves."""
    if shoulders == "fixed" or not _can_have_clavicles(problem.model, landmarks):
        return False
    return shoulders == "move" or _acromia_move(problem, landmarks)


def _acromia_move(problem: CalibrationProblem, landmarks: Landmarks) -> bool:
    r"""Return whether the acromia move on the chest, and not by noise alone.

    Noise differs in consecutive frames, motion lasts. With the displacement d of the
    markers on acromia from their places among those of the chest they move if

    .. math:: \mathrm{E}[d_f \cdot d_{f+1}] > \tfrac12\, \mathrm{E}|d|^2
    """
    chest = problem.model.markers_of(problem.model.index(CHEST))
    acromia = np.isin(chest, landmarks.either_side("acromion"))
    shared, square = [np.zeros(0)], [np.zeros(0)]
    for pairs in problem.sample_frame_pairs():
        points = pairs[:, :, chest, :3]
        rigid = fit_rigid(points.reshape(-1, len(chest), 3))
        T_body_world = geometry.inverse(rigid.T_world_body).reshape(-1, 2, 1, 4, 4)
        moved = (geometry.apply(T_body_world, points) - rigid.offset)[:, :, acromia]
        shared.append(np.sum(moved[:, 0] * moved[:, 1], axis=-1).ravel())
        square.append(np.mean(np.sum(moved**2, axis=-1), axis=1).ravel())
    each, whole = np.concatenate(shared), np.concatenate(square)
    return float(np.nansum(each)) > 0.5 * float(np.nansum(whole))


def _can_have_clavicles(model: KinematicModel, landmarks: Landmarks) -> bool:
    """Return whether clavicle segments can be added, with markers of their own."""
    return bool(landmarks.either_side("c7", "sternum")) and all(
        landmarks(side, "acromion")
        and model.index(side + UPPER_ARM) >= 0
        and model.index(side + SHOULDER) < 0
        and model.names[model.parent[model.index(side + UPPER_ARM)]] == CHEST
        for side in SIDES
    )


def _insert_clavicles(
    problem: CalibrationProblem, landmarks: Landmarks
) -> CalibrationProblem:
    """Return the problem with a segment from the chest to each shoulder.

    The markers on the acromia belong to these segments, which have the axes of the
    chest and are at first where its joint is.
    """
    skeleton, parameters = problem.skeleton, problem.parameters
    for side in SIDES:
        acromion = landmarks(side, "acromion")
        marker_offset = skeleton.marker_offset.copy()
        marker_offset[problem.order[acromion]] = parameters.marker_offset[0, acromion]
        offset, parent = skeleton.offset.copy(), skeleton.parent.copy()
        arm, chest = skeleton.index(side + UPPER_ARM), skeleton.index(CHEST)
        offset[arm] = parameters.joint_offset[problem.model.index(side + UPPER_ARM)]
        parent[arm] = chest
        skeleton = replace(
            skeleton, parent=parent, offset=offset, marker_offset=marker_offset
        )
        at_chest = skeleton.rest()[chest, :3, 3]
        skeleton = insert_joint(
            skeleton, side + SHOULDER, chest, [arm], at_chest, kind="ball"
        )
        skeleton.marker_joint[problem.order[acromion]] = arm
    return problem_of_sessions(
        skeleton, problem.sessions, problem.take_frames, problem.take_session
    )


# --- joint regression -----------------------------------------------------------------


class RegressedPerson(NamedTuple):
    """Initial parameters of a person by joint regression in one frame."""

    parameters: ModelParameters
    pose: ReferencePose
    axes: Float[Array, "segment 3 3"]
    """Axes of every segment in the frame, as columns."""

    order: list[int]
    """The landmarks' number of each marker of the model."""


def _regress_person(
    problem: CalibrationProblem,
    person: CalibrationProblem,
    landmarks: Landmarks,
    points: Float[Array, "frame marker 3"],
    frame: int,
) -> RegressedPerson:
    """Return the initial parameters of a person by joint regression in one frame.

    Args:
        problem: The problem of the given skeleton.
        person: The same, perhaps with clavicles.
        landmarks: The landmarks among the markers of the problem.
        points: Frames of all sessions.
        frame: The reference frame.
    """
    parameters = problem.parameters.of_session(0)
    posed = initial_poses(parameters, points[frame, None])
    joints, markers = parameters.forward(posed.root_position, posed.R_world_segment)
    # Markers that are occluded, and joints without landmarks, are where the problem's
    # own parameters put them in this frame.
    measured = np.where(np.isnan(points[frame]), markers[0], points[frame])
    of_skeleton = dict(zip(problem.model.names, joints[0], strict=True))
    pose = regress_joints(problem.model, landmarks, points, measured)
    model = replace(person.model, axes=_soft_axis_constraints(person.model))
    number = {point: k for k, point in enumerate(problem.order.tolist())}
    order = [number[point] for point in person.order.tolist()]
    joint, axes = np.zeros((len(model.names), 3)), np.zeros((len(model.names), 3, 3))
    for i, name in enumerate(model.names):
        axes[i] = pose.axes.get(name, axes[model.parent[i]])
        regressed = pose.joints.get(name)
        joint[i] = of_skeleton[name] if regressed is None else regressed.position
    parent, segment = model.parent[1:], model.marker_segment
    o = np.zeros_like(joint)
    o[1:] = np.einsum("sji,sj->si", axes[parent], joint[1:] - joint[parent])
    m = np.einsum("kji,kj->ki", axes[segment], measured[order] - joint[segment])
    initial = ModelParameters.initial(
        model, o, m, _initial_axes(model), len(problem.sessions)
    )
    return RegressedPerson(initial, pose, axes, order)


def _with_priors(
    person: CalibrationProblem, regressed: RegressedPerson
) -> Initialisation:
    """Return the initialisation: regressed parameters with priors around them."""
    initial, pose, axes, order = regressed
    knees = _bare_knee_axes(person, initial, pose)
    for knee, axis in knees.items():
        initial = move_to_middle(initial, knee, axis)
    model, m = initial.model, initial.marker_offset[0]
    prior = Prior(model)
    prior.add_gauge_constraints(m, person.seen[0])
    _add_landmark_priors(prior, initial, pose, axes, order, person.seen)
    for knee, axis in knees.items():
        middle = place_on_axis(initial, knee, axis).terms
        prior.add(middle, np.zeros(1), LANDMARK_SD_M)
    add_symmetry_and_proportions(prior, mirror=True)
    for n in range(len(model.axes)):
        prior.add_axis_prior(n, initial, AXIS_SD_RAD)
    prior.add_marker_priors(m, 0.5 * initial.size)
    known = tuple(name for name in model.names if name in pose.joints)
    return Initialisation(
        person,
        initial,
        prior,
        MIN_SKIN_NOISE_M,
        landmark_joints=known,
        fits_center_motion=bool(known),
    )


def _bare_knee_axes(
    person: CalibrationProblem, initial: ModelParameters, pose: ReferencePose
) -> dict[int, Float[Array, "2 3"]]:
    """Return the axes of knees without landmarks, in thigh and shank.

    Of a leg that hardly bends it can be any axis: one that does not point to the side
    is left out.
    """
    bare = [initial.model.index(name) for name in both_sides(LOWER_LEG)]
    bare = [i for i in bare if i > 0 and initial.model.names[i] not in pose.joints]
    if not bare:
        return {}
    found = main_axes(replace(person, parameters=initial), bare)
    return {i: x for i, x in found.items() if np.abs(x[:, 1]).min() > MIN_COSINE}


def _add_landmark_priors(
    prior: Prior,
    initial: ModelParameters,
    pose: ReferencePose,
    axes: Float[Array, "segment 3 3"],
    order: list[int],
    shown: Bool[Array, "session marker"],
) -> None:
    """Add that each joint has the regressed offset from its landmarks.

    It holds in the sessions that show some of them, from those that are shown; the
    others are as uncertain as a marker on skin. Landmarks on the segment below a joint
    have their mean offset from it.
    """
    model, o, m = prior.model, initial.joint_offset, initial.marker_offset[0]
    for i, name in enumerate(model.names[1:], start=1):
        joint = pose.joints.get(name)
        landmarks = [order.index(k) for k in joint.markers] if joint else []
        parent = model.markers_of(int(model.parent[i]))
        on_parent = [k for k in landmarks if k in parent]
        own = [k for k in landmarks if k in model.markers_of(i)]
        if joint is not None and own:
            whole = tuple(n for n, one in enumerate(shown) if one[own].all())
            prior.add_mean_prior(own, m[own].mean(axis=0), joint.sd, sessions=whole)
        seen = [tuple(k for k in on_parent if one[k]) for one in shown]
        if joint is None or not any(seen):
            prior.add_joint_prior(i, o[i], JOINT_SD_M)
            continue
        for markers in sorted(set(seen) - {()}):
            offset = o[i] - m[list(markers)].mean(axis=0)
            is_whole = len(markers) == len(on_parent)
            sessions = tuple(n for n, one in enumerate(seen) if one == markers)
            precision = _offset_precision(joint, axes[model.parent[i]], is_whole)
            prior.add_landmark_prior(
                i, [*markers], offset, precision, sessions=sessions
            )


def _offset_precision(
    joint: JointRegression, axes: Float[Array, "3 3"], is_whole: bool
) -> Float[Array, "3 3"]:
    """Return the square root of the inverse covariance of an offset, in 1 / m.

    Args:
        joint: The joint.
        axes: Axes of its parent, as columns.
        is_whole: Whether all its landmarks are seen. Without some of them it is as
            uncertain as a marker on skin, and in all directions alike.
    """
    sd = joint.sd if is_whole else float(np.hypot(joint.sd, SKIN_MOTION_M))
    precision = np.eye(3) / sd
    if joint.along is not None and is_whole:
        along = axes.T @ joint.along
        square = float(along @ along)
        change = 1.0 / np.sqrt(square) - 1.0 / sd
        precision += change * np.outer(along, along) / square
    return precision


def _soft_axis_constraints(model: KinematicModel) -> tuple[AxisConstraint, ...]:
    """Return knees as soft hinges, and elbows as soft universal joints."""
    return tuple(
        AxisConstraint(
            model.index(name),
            "hinge" if name.endswith(LOWER_LEG) else "universal",
            SOFT_HINGE_SD_RAD,
            center_sd=KNEE_CENTER_SD_M if name.endswith(LOWER_LEG) else 0.0,
        )
        for name in (*both_sides(LOWER_LEG), *both_sides(LOWER_ARM))
        if model.index(name) > 0
    )


def _initial_axes(model: KinematicModel) -> Float[Array, "axis 2 3"]:
    """Return unit axes in parent and child: to the left; of forearms along the bone."""
    _, left, up = np.eye(3)
    axes = [(left, left if axis.kind == "hinge" else up) for axis in model.axes]
    return np.array(axes).reshape(-1, 2, 3)
