"""Bundle adjustment: steps, marker noise, and the weight of the prior, alternating.

Each round takes one Levenberg-Marquardt step of all unknowns and then estimates the
noise of every marker again. After `MIN_ROUNDS` rounds the white share of
the residuals decides the weight of the prior.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from marey.calibration.init.poses import initial_poses
from marey.calibration.model import Estimate, ModelParameters
from marey.calibration.moving_centers import follow_centers
from marey.calibration.noise_model import (
    estimate_marker_noise,
    mean_relative_rotations,
    white_share,
)
from marey.calibration.priors import Initialisation
from marey.calibration.solver.levenberg_marquardt import (
    fit_poses,
    levenberg_marquardt_step,
    residuals,
)
from marey.numerics import Array, Float
from marey.numerics.thresholds import MIN_SAMPLES

MAX_ITERATIONS = 16
"""Most rounds of a step and an estimate of the noise."""

MAX_NOISE_CHANGE = 0.05
"""The rounds end when no marker's noise changes by more than this share, and the step
has converged. Higher ends earlier. Chosen by hand."""

MIN_ROUNDS = 4
"""Rounds before the white share is estimated: initial residuals contain the errors of
the initialisation, not noise alone. Higher keeps the full weight of the prior for
longer. Chosen by hand."""


@dataclass(frozen=True, slots=True, eq=False)
class CalibrationFit:
    """The result of a bundle adjustment."""

    estimate: Estimate
    prior_weight: float
    white_share: float
    initial: Initialisation
    leverage: tuple[Float[Array, "_ marker"], ...]
    """Share of each marker's residual that the pose absorbs, 0 to 3."""

    rms_before: float
    """Root mean square distance of markers before the first step, in metres."""

    def rms(self) -> float:
        """Return the root mean square distance of markers, in metres."""
        return marker_rms(self.estimate)

    @property
    def markers_displaced(self) -> bool:
        """Whether markers sit elsewhere than before the fit.

        Their displacement reduces the mean square residual by more than the variance of
        an offset: that of a residual over the number of independent frames, which is
        that of all frames over `prior_weight`.
        """
        share = self.prior_weight / self.estimate.n_frames
        return self.rms_before**2 > (1.0 + share) * self.rms() ** 2


def marker_rms(estimate: Estimate) -> float:
    """Return the root mean square of predicted minus measured positions, in metres."""
    total, count = 0.0, 0
    for session in residuals(estimate):
        total += float(np.sum(session.vector[session.seen] ** 2))
        count += int(session.seen.sum())
    return float(np.sqrt(total / max(count, 1)))


def prior_weight(white_share: float, n_frames: int, effective_samples: float) -> float:
    r"""Return the weight T of the prior relative to one frame.

    .. math:: T = \phi + (1 - \phi) \max(F / n_\mathrm{eff},\ 1)

    White noise differs in every frame, so each of the F frames is a sample. Soft-tissue
    artefact is a function of the pose: however long a walk is, all its frames together
    are worth about :math:`n_\mathrm{eff}` = 1 sample. The white share :math:`\phi` of
    the residuals chooses between the two. The weight T of the prior has the same effect
    as the weight 1/T of every frame (a tempered likelihood).
    """
    return white_share + (1.0 - white_share) * max(n_frames / effective_samples, 1.0)


def _marker_tempering(
    estimate: Estimate, white_share: float
) -> Float[Array, "session marker"]:
    """Return the factor of each marker's scale by the frames that show it.

    All frames that show a marker are worth as much as all frames of the session: a
    marker that only a standing person has is not outvoted by the frames without it.
    """
    tempering = np.ones_like(estimate.parameters.marker_noise)
    for session, poses in enumerate(estimate.poses):
        count = np.isfinite(poses.points).all(axis=-1).sum(axis=0)
        n = len(poses.points)
        shown = np.where(count > 0, np.clip(count, min(MIN_SAMPLES, n), n), n)
        tempering[session] = np.sqrt(white_share + (1.0 - white_share) * shown / n)
    return tempering


def pose_sampled_frames(
    parameters: ModelParameters, sampled: Sequence[Float[Array, "_ marker _"]]
) -> Estimate:
    """Return the parameters with the poses of sampled frames."""
    poses = [
        initial_poses(parameters.of_session(session), points)
        for session, points in enumerate(sampled)
    ]
    return fit_poses(Estimate(parameters, tuple(poses)))


def bundle_adjust(
    initial: Initialisation,
    *,
    frames_per_take: int,
    effective_samples: float,
    max_rounds: int,
) -> CalibrationFit:
    """Return the parameters and poses of least cost over sampled frames.

    Args:
        initial: Initial parameters and priors.
        frames_per_take: Most frames of a take on average.
        effective_samples: Samples that all frames together are worth where soft tissue
            moves.
        max_rounds: Most rounds of a step and an estimate of the noise. The white share
            is 0 if there are no more than `MIN_ROUNDS`.
    """
    problem = initial.problem
    sampled = problem.sample_observations(frames_per_take)
    estimate = pose_sampled_frames(initial.parameters, sampled)
    rms_before = marker_rms(estimate)
    white, damping = 0.0, 0.0
    weight = prior_weight(white, estimate.n_frames, effective_samples)
    for n_rounds in range(1, max_rounds + 1):
        if initial.fits_center_motion:
            estimate = follow_centers(estimate)
        estimate, leverage, damping, converged = levenberg_marquardt_step(
            estimate, initial.prior, weight, damping
        )
        noise = estimate_marker_noise(estimate, leverage, initial.min_noise)
        change = np.abs(np.log(noise / estimate.parameters.marker_noise)).max()
        parameters = replace(
            estimate.parameters,
            marker_noise=noise,
            mean_rotation=mean_relative_rotations(estimate),
            tempering=_marker_tempering(estimate, white),
        )
        estimate = replace(estimate, parameters=parameters)
        if n_rounds == MIN_ROUNDS < max_rounds:
            white = white_share(parameters, problem.sample_frame_pairs())
            weight = prior_weight(white, estimate.n_frames, effective_samples)
        elif n_rounds > MIN_ROUNDS and converged and change < MAX_NOISE_CHANGE:
            break
    return CalibrationFit(estimate, weight, white, initial, leverage, rms_before)
