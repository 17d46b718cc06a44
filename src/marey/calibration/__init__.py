"""Calibration: one skeleton per subject by bundle adjustment over all its takes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from marey.anatomy.landmarks import find_landmarks
from marey.anatomy.whole_person import observed_part
from marey.calibration.covariance import estimate_joint_covariance
from marey.calibration.findings import (
    calibration_findings,
    markers_kept,
    not_calibrated,
)
from marey.calibration.hinges import (
    detect_hinges,
    order_sessions_by_information,
    single_axes,
)
from marey.calibration.init.generic import (
    init_from_known_skeleton,
    init_generic,
)
from marey.calibration.init.person import init_person
from marey.calibration.init.unlabelled_person import init_unlabelled_person
from marey.calibration.options import CalibrateOptions as CalibrateOptions
from marey.calibration.priors import Initialisation
from marey.calibration.problem import CalibrationProblem, build_problem
from marey.calibration.sessions import find_sessions
from marey.calibration.shared_artefact import temper_shared_artefact
from marey.calibration.solver.bundle_adjustment import (
    MAX_ITERATIONS,
    CalibrationFit,
    bundle_adjust,
)
from marey.calibration.to_skeleton import (
    to_skeletons,
    unknown_rolls,
    update_marker_offsets,
)
from marey.errors import OptionError
from marey.kernels import one_blas_thread
from marey.numerics import Float, Int
from marey.numerics.thresholds import MIN_SAMPLES
from marey.report import Finding
from marey.skeleton import Skeleton
from marey.take import Take

MAX_RMS_INCREASE = 2.0
"""A calibration whose marker rms exceeds this multiple of the rms before it is
rejected. The robust loss can otherwise treat all markers of a limb as outliers. Higher
rejects fewer. Chosen by hand."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Calibration:
    """The result of `calibrate`."""

    skeleton: Skeleton
    """The subject's bones, with the covariance of offsets and the standard deviation of
    lengths, and with each marker's mean offset over the sessions."""

    skeletons: tuple[Skeleton, ...]
    """By take: the same bones with the marker offsets of its session."""

    rms: float
    """Root mean square distance of measured and predicted markers in the sampled
    frames, in metres."""

    marker_noise: Float[np.ndarray, "session marker"]
    """Noise of each of the skeleton's markers along each axis, in metres; NaN if it was
    not seen."""

    white_share: float
    """Share of the residual variance that is white noise, 0 to 1. The rest changes with
    the pose, as soft tissue does."""

    prior_weight: float
    """Weight of the priors relative to one frame."""

    findings: tuple[Finding, ...] = ()
    landmark_joints: tuple[str, ...] = ()
    """Joints whose estimate began at landmarks rather than at the skeleton given."""

    unknown_rolls: tuple[str, ...] = ()
    """Bodies of a person whose roll about their bones at rest is a guess, because knee
    or elbow hardly bend, no landmarks of the wrist are there, or most of their markers
    are outliers."""


@one_blas_thread()
def calibrate(
    skeleton: Skeleton,
    takes: Take | Sequence[Take],
    *,
    options: CalibrateOptions | None = None,
) -> Calibration:
    """Return the subject's skeleton, estimated from all its takes together.

    Bundle adjustment: joint offsets, hinge axes, marker offsets and the poses of
    sampled frames are estimated together. Levenberg-Marquardt minimises the cost, with
    the poses eliminated frame by frame (Schur complement). Marker residuals have
    Student's t distribution, so outliers lose their weight (iteratively reweighted
    least squares). Bones belong to the subject, marker offsets to each session.

    Soft tissue moves with the pose, and equally in every stride of a walk: more frames
    of the same motion do not determine joints better. The white share of the residuals
    separates noise from soft tissue, and sets the weight of the priors.

    A person with the labels of a known marker set has Gaussian priors from joint
    regression, symmetry and proportions. Whether its shoulders move relative to the
    chest is decided by the markers on its acromia. Other skeletons have only weak
    priors, and a joint that rotated about one axis only becomes a hinge.

    The order of the takes does not matter: the axes of the segments are defined by the
    markers of the session with most information about the joints.

    Args:
        skeleton: A skeleton with markers or sensors, as `build_skeleton` returns it.
            Joints that nothing observes are left out unless bones are kept.
        takes: All takes of the subject; markers and sensors are matched by label.
        options: Options of the calibration.

    Raises:
        DataError: If there are no takes, or none shows the skeleton's markers.
        OptionError: If `sessions` does not name one session per take.
    """
    options = options or CalibrateOptions()
    takes = (takes,) if isinstance(takes, Take) else tuple(takes)
    skeleton = skeleton if options.keep_bones else observed_part(skeleton)
    problem = _problem_in_sessions(skeleton, [take.measured for take in takes], options)
    if not problem.sessions:
        return _keep_skeleton(problem, f"fewer than {MIN_SAMPLES} frames show it")
    if len(problem.model.names) < 2:
        return _keep_skeleton(problem, "it has no joints")
    sampled = problem.sample_positions(options.frames_per_take(problem.n_takes))
    order = order_sessions_by_information(problem.parameters, sampled)
    problem = _reorder_sessions(problem, order)
    undetermined = "too few frames show it, or nothing of it moves"
    try:
        fit = fit_problem(problem, options)
    except np.linalg.LinAlgError:
        return _keep_skeleton(problem, undetermined)
    if not np.isfinite(fit.estimate.parameters.joint_offset).all():
        return _keep_skeleton(problem, undetermined)
    if fit.rms() > MAX_RMS_INCREASE * fit.rms_before:
        return _keep_skeleton(problem, "the markers would fit worse than before")
    if options.keep_bones and options.keep_markers and not fit.markers_displaced:
        kept = _keep_skeleton(problem, "")
        return replace(kept, rms=fit.rms_before, findings=(markers_kept(fit),))
    if options.keep_bones:
        mean, by_take = update_marker_offsets(fit)
    else:
        mean, by_take = to_skeletons(fit, estimate_joint_covariance(fit))
    return Calibration(
        skeleton=mean,
        skeletons=by_take,
        rms=fit.rms(),
        marker_noise=_skeleton_marker_noise(fit)[np.argsort(order)],
        white_share=fit.white_share,
        prior_weight=fit.prior_weight,
        findings=tuple(calibration_findings(mean, fit)),
        landmark_joints=fit.initial.landmark_joints,
        unknown_rolls=() if options.keep_bones else unknown_rolls(fit),
    )


def _problem_in_sessions(
    skeleton: Skeleton, takes: Sequence[Take], options: CalibrateOptions
) -> CalibrationProblem:
    """Return the problem of takes in the sessions that are given or found."""
    if options.sessions:
        if len(options.sessions) != len(takes):
            raise OptionError(
                "sessions", found=options.sessions, needed=f"{len(takes)} numbers"
            )
        return build_problem(skeleton, takes, options.sessions)
    apart = build_problem(skeleton, takes, range(len(takes)))
    sampled = apart.sample_positions(options.frames_per_take(max(apart.n_takes, 1)))
    found = find_sessions(apart.parameters, sampled)
    if len(set(found)) == len(found):
        return apart
    numbers = [found[k] if k >= 0 else -1 - n for n, k in enumerate(apart.take_session)]
    return build_problem(skeleton, takes, numbers)


def fit_problem(
    problem: CalibrationProblem, options: CalibrateOptions
) -> CalibrationFit:
    """Return the bundle adjustment from the initialisation that suits the problem."""
    fit = bundle_adjust(
        _initialise(problem, options),
        frames_per_take=options.frames_per_take(problem.n_takes),
        effective_samples=options.effective_samples,
        # Markers may be far from their initial offsets on a known skeleton.
        max_rounds=2 * MAX_ITERATIONS if options.keep_bones else MAX_ITERATIONS,
    )
    return fit if options.keep_bones else temper_shared_artefact(fit)


def _initialise(
    problem: CalibrationProblem, options: CalibrateOptions
) -> Initialisation:
    """Return initial parameters and priors: known bones, a person, or any skeleton."""
    model, parameters = problem.model, problem.parameters
    if options.keep_bones:
        return init_from_known_skeleton(problem, options.known_markers)
    if not problem.is_person:
        sampled = problem.sample_positions(options.frames_per_take(problem.n_takes))
        parameters, immobile = detect_hinges(parameters, sampled)
        problem = replace(problem, parameters=parameters)
        return init_generic(problem, immobile)
    landmarks = find_landmarks(model.labels, model.marker_segment_names)
    initial = None
    if landmarks.has_pelvis:
        free = replace(problem, parameters=parameters.with_axes((), ()))
        initial = init_person(free, landmarks, options)
    return initial or init_unlabelled_person(problem, single_axes(problem))


def _reorder_sessions(
    problem: CalibrationProblem, order: Int[np.ndarray, " session"]
) -> CalibrationProblem:
    """Return the problem with its sessions in this order.

    Initial parameters are equal in all sessions and need no reordering.
    """
    new_number = [*np.argsort(order).tolist(), -1]
    return replace(
        problem,
        sessions=tuple(problem.sessions[k] for k in order),
        take_frames=tuple(problem.take_frames[k] for k in order),
        take_session=tuple(new_number[k] for k in problem.take_session),
    )


def _skeleton_marker_noise(
    fit: CalibrationFit,
) -> Float[np.ndarray, "session marker"]:
    """Return the noise of each marker, in metres; NaN for markers not in the model."""
    problem, noise = fit.initial.problem, fit.estimate.parameters.marker_noise
    of_points = np.full((len(noise), problem.sessions[0].shape[1]), np.nan)
    of_points[:, problem.order] = noise
    return of_points[:, : len(problem.skeleton.marker_labels)]


def _keep_skeleton(problem: CalibrationProblem, reason: str) -> Calibration:
    """Return the skeleton as it is, with the reason as a finding."""
    skeleton = problem.skeleton
    n_sessions = len(problem.sessions)
    return Calibration(
        skeleton=skeleton,
        skeletons=(skeleton,) * len(problem.take_session),
        rms=float("nan"),
        marker_noise=np.full((n_sessions, len(skeleton.marker_labels)), np.nan),
        white_share=float("nan"),
        prior_weight=1.0,
        findings=(not_calibrated(reason),),
    )
