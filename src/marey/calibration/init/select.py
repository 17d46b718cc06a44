"""Initialisation of a person with landmarks: choice of reference frame and shoulders.

Candidate frames compete on the residuals of a few posed frames. Whether the shoulders
move relative to the chest is decided by cross-validation on occluded markers.
"""

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from marey.anatomy.landmarks import Landmarks
from marey.calibration.init.initialisation import Initialisation
from marey.calibration.init.landmarks import can_have_clavicles, init_from_landmarks
from marey.calibration.init.poses import sample_frames
from marey.calibration.init.reference_frame import candidate_frames, fill_occlusions
from marey.calibration.model import (
    Estimate,
    FramePoses,
    KinematicModel,
    ModelParameters,
)
from marey.calibration.options import CalibrateOptions
from marey.calibration.solver.bundle_adjustment import (
    bundle_adjust,
    pose_sampled_frames,
)
from marey.calibration.solver.levenberg_marquardt import fit_poses, residuals

Array = np.ndarray

CANDIDATE_TEST_FRAMES, MIN_CANDIDATE_TEST_FRAMES = 20, 5
"""Frames of all sessions, and at least of each, on which candidates for the reference
frame compete. More take longer. Chosen by hand."""

SHOULDER_TEST_FRAMES, MIN_SHOULDER_TEST_FRAMES, SHOULDER_TEST_ROUNDS = 30, 12, 3
"""Frames of all sessions, at least of each, and rounds of the bundle adjustments that
decide about the shoulders. More take longer. Chosen by hand."""

PREDICTION_ERROR_SCALE_M = 0.010
"""Prediction errors far above this length, in metres, count only by their logarithm:
they belong to markers that the others do not determine. Chosen by hand."""

MIN_FIXED_SHOULDER_GAIN = 1.05
"""Shoulders are fixed if moving ones predict worse by this factor. Higher favours
moving shoulders, because people have clavicles. Chosen by hand."""

UPPER_BODY = ("Chest", "Shoulder", "UpperArm", "LowerArm")

HIDDEN_POSE_STEPS = 10
"""Levenberg-Marquardt steps of a pose with one marker hidden. Chosen by hand."""


def init_person(
    parameters: ModelParameters,
    landmarks: Landmarks,
    sessions: tuple[Float[Array, "_ marker 3"], ...],
    options: CalibrateOptions,
) -> Initialisation | None:
    """Return the best initialisation of a person; None if no frame shows it whole."""
    clavicles = options.shoulders != "fixed" and can_have_clavicles(
        parameters.model, landmarks
    )
    best = _choose_reference(parameters, landmarks, sessions, clavicles)
    if best is None:
        return None
    moving, points, frame = best
    if not clavicles or options.shoulders == "move":
        return moving
    fixed = init_from_landmarks(parameters, landmarks, points, frame, clavicles=False)
    return _choose_shoulders(moving, fixed, sessions, options.effective_samples)


def _choose_reference(
    parameters: ModelParameters,
    landmarks: Landmarks,
    sessions: tuple[Array, ...],
    clavicles: bool,
) -> tuple[Initialisation, Float[Array, "frame marker 3"], int] | None:
    """Return the best initialisation, its points without occlusions, and its frame.

    None if no frame shows all markers.
    """
    points = sessions[0] if len(sessions) == 1 else np.concatenate(sessions)
    n_test = max(CANDIDATE_TEST_FRAMES // len(sessions), MIN_CANDIDATE_TEST_FRAMES)
    test_frames = np.concatenate([x[sample_frames(x, n_test)] for x in sessions])
    best, least = None, np.inf
    for frame in candidate_frames(points, landmarks):
        filled = _fill_frame(parameters.model, points, frame)
        if not np.isfinite(filled[frame]).all():
            continue
        initial = init_from_landmarks(
            parameters, landmarks, filled, frame, clavicles=clavicles
        )
        if not np.isfinite(initial.parameters.joint_offset).all():
            continue
        misfit = _misfit(initial, test_frames)
        if best is None or misfit < least:
            best, least = (initial, filled, frame), misfit
    return best


def _fill_frame(
    model: KinematicModel, points: Float[Array, "frame marker 3"], frame: int
) -> Float[Array, "frame marker 3"]:
    """Return the points with the occlusions of one frame filled."""
    if np.isfinite(points[frame]).all():
        return points
    filled = points.copy()
    filled[frame] = fill_occlusions(model, points, frame)
    return filled


def _misfit(initial: Initialisation, points: Float[Array, "frame marker 3"]) -> float:
    """Return the median plus 0.2 times the 0.9 quantile of the distances, in metres.

    It is rounded to a tenth of a millimetre, so that the first of equally good
    candidates is taken.
    """
    estimate = pose_sampled_frames(initial, (points,), len(points))
    (session,) = residuals(estimate)
    distance = np.linalg.norm(session.vector, axis=-1)[session.seen]
    return round(float(np.median(distance) + 0.2 * np.quantile(distance, 0.9)), 4)


def _choose_shoulders(
    moving: Initialisation,
    fixed: Initialisation,
    sessions: tuple[Array, ...],
    effective_samples: float,
) -> Initialisation:
    """Return the initialisation whose short fit predicts hidden markers better."""
    n = max(SHOULDER_TEST_FRAMES // len(sessions), MIN_SHOULDER_TEST_FRAMES)
    fits = [
        bundle_adjust(
            initial,
            sessions,
            max_frames=n,
            effective_samples=effective_samples,
            max_rounds=SHOULDER_TEST_ROUNDS,
            estimate_white_share=False,
        )
        for initial in (moving, fixed)
    ]
    error_moving, error_fixed = (_hidden_marker_error(fit.estimate) for fit in fits)
    is_moving = error_moving < MIN_FIXED_SHOULDER_GAIN * error_fixed
    best = fits[0] if is_moving else fits[1]
    return replace(best.initial, parameters=best.estimate.parameters)


def _hidden_marker_error(estimate: Estimate) -> float:
    r"""Return the error of predicting hidden markers of the upper body.

    Each marker is hidden in turn and all frames are posed without it (leave one out).
    The error is the mean of :math:`\log(1 + d^2 / s^2)` of the distances d, so that no
    single marker decides that the others do not determine.
    """
    model = estimate.model
    upper = [i for i, name in enumerate(model.names) if name.endswith(UPPER_BODY)]
    hidden = np.flatnonzero(np.isin(model.marker_segment, upper))
    shown, masked, masks = [], [], []
    for poses in estimate.poses:
        frames = np.tile(np.arange(len(poses.points)), len(hidden))
        mask = np.arange(len(frames)), np.repeat(hidden, len(poses.points))
        points = poses.points[frames]
        without = points.copy()
        without[mask] = np.nan
        t, R = poses.root_position[frames], poses.R_world_segment[frames]
        shown.append(points)
        masked.append(FramePoses(without, t, R))
        masks.append(mask)
    posed = fit_poses(replace(estimate, poses=tuple(masked)), HIDDEN_POSE_STEPS)
    unmasked = tuple(
        replace(poses, points=points)
        for poses, points in zip(posed.poses, shown, strict=True)
    )
    total, count = 0.0, 0
    for session, mask in zip(
        residuals(replace(estimate, poses=unmasked)), masks, strict=True
    ):
        square = np.sum(session.vector[mask] ** 2, axis=-1)[session.seen[mask]]
        total += float(np.sum(np.log1p(square / PREDICTION_ERROR_SCALE_M**2)))
        count += len(square)
    return total / max(count, 1)
