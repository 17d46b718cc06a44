r"""Joints of a person's limbs, whose centres move.

Soft tissue displaces all markers of a segment together, in proportion to the rotation
of the joint (Bonci et al. 2014). To the markers that is a centre that moves, and no
residual from a rigid shape shows it. A knee moves by itself (femoral rollback). The
centre of a joint with the rotation R away from its mean, by :math:`\theta` about u, is
at

.. math:: o(R) = o + B\,(u \sin\theta - \overline{u \sin\theta})
                   + b\,(\cos\theta - \overline{\cos\theta})

in its parent, with a Gaussian prior on B and b. A motion that rotates a joint little
about some axis shows where its centre lies only by a displacement that a moving centre
could feign as well. With B and b among the unknowns the frames say no more about the
centre than they know, direction by direction, and the other priors decide the rest.

All markers below the joint are displaced by the same vector as by its offset o, times
one of four functions of the rotation. The equations of B and b are therefore sums over
the frames of the rows of o (`schur_kernel`).
"""

from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Float, Int

from marey.anatomy.names import (
    FOOT,
    HAND,
    LOWER_ARM,
    LOWER_LEG,
    UPPER_ARM,
    UPPER_LEG,
)
from marey.calibration.model import (
    MECHANICAL_HINGE_SD_RAD,
    MIN_NOISE_M,
    CenterMotion,
    Estimate,
    KinematicModel,
    ModelParameters,
)

Array = np.ndarray

KNEE_CENTER_SD_M = 0.004
"""Standard deviation of the motion of the centre of a knee with the sine and with the
cosine of its flexion (femoral rollback), along each axis, in metres. Higher gives
larger standard deviations of thigh and shank, and trusts landmarks of the knee more
where it bends about one axis. Chosen on the computed walks of Arnold: the thighs of one
are 3.8 mm off, those of the other 4.0 mm."""

COMMON_MOTION = 2.0
"""Displacement of all markers of a segment together by soft tissue, relative to that of
each among the others. Higher trusts priors more where joints rotate little. Chosen by
hand."""

LIMB_SEGMENTS = (UPPER_LEG, LOWER_LEG, FOOT, UPPER_ARM, LOWER_ARM, HAND)
"""Segments below joints whose centre moves. The trunk bends in many joints: what its
markers show beside a rigid shape is no soft tissue."""


def moving_joints(model: KinematicModel) -> list[int]:
    """Return the segments below those joints of a person whose centre moves."""
    return [
        i for i in range(1, len(model.names)) if model.names[i].endswith(LIMB_SEGMENTS)
    ]


def follow_centers(
    estimate: Estimate, artefact_share: float, min_noise: float
) -> Estimate:
    r"""Return the estimate with the motion of centres by the rotations of its poses.

    The prior of every element of B and b has the variance

    .. math:: s^2 = s_\mathrm{knee}^2 + \kappa^2\,\frac{\tau_p^2 + \tau_c^2}
                    {\mathrm{E}\,|(u \sin\theta, \cos\theta) - \mathrm{mean}|^2}

    with the soft-tissue artefact :math:`\tau` of the markers of parent and child, which
    is their residual without its white share, and :math:`\kappa` = `COMMON_MOTION`.

    Args:
        estimate: Parameters and poses.
        artefact_share: Share of the residual variance that is not white.
        min_noise: Smallest scale of a marker, in metres, which is no artefact.
    """
    model = estimate.model
    if not model.moving_centers:
        return estimate
    child = list(model.moving_centers)
    parent = model.parent[child]
    rotations = [
        _rotation_away_from_mean(estimate.parameters, poses.R_world_segment)
        for poses in estimate.poses
    ]
    every = np.concatenate(rotations)
    center = every.mean(axis=0)
    spread = np.mean(np.sum((every - center) ** 2, axis=-1), axis=0)
    artefact = artefact_share * (_segment_variance(estimate) - min_noise**2).clip(0.0)
    common = COMMON_MOTION**2 * (artefact[parent] + artefact[child])
    knee = [KNEE_CENTER_SD_M * model.names[i].endswith(LOWER_LEG) for i in child]
    variance = np.square(knee) + common / np.maximum(spread, MECHANICAL_HINGE_SD_RAD**2)
    center_sd = np.sqrt(variance + MIN_NOISE_M**2)
    motion = tuple(
        CenterMotion(rotation - center, poses.R_world_segment[:, parent])
        for rotation, poses in zip(rotations, estimate.poses, strict=True)
    )
    parameters = replace(estimate.parameters, center_sd=center_sd)
    return replace(estimate, parameters=parameters, motion=motion)


def _rotation_away_from_mean(
    parameters: ModelParameters, R: Float[Array, "frame segment 3 3"]
) -> Float[Array, "frame moving 4"]:
    """Return axis times sine, and cosine, of the rotation of each moving joint."""
    child = list(parameters.model.moving_centers)
    parent, mean = parameters.model.parent[child], parameters.mean_rotation[child]
    away = np.einsum("fnji,fnjk,nlk->fnil", R[:, parent], R[:, child], mean)
    twice = away - away.swapaxes(-1, -2)
    sine = 0.5 * twice[..., (2, 0, 1), (1, 2, 0)]
    cosine = 0.5 * (np.einsum("fnxx->fn", away) - 1.0)
    return np.concatenate([sine, cosine[..., None]], axis=-1)


def without_motion(estimate: Estimate) -> Estimate:
    """Return the estimate with centres that do not move, at their means."""
    parameters = estimate.parameters
    still = np.zeros_like(parameters.center_motion)
    parameters = replace(parameters, center_motion=still)
    return replace(estimate, parameters=parameters, motion=())


def _segment_variance(estimate: Estimate) -> Float[Array, " segment"]:
    """Return the mean variance of the markers of each segment, in square metres.

    That of a segment without markers is zero.
    """
    model = estimate.model
    variance = np.mean(estimate.parameters.marker_noise**2, axis=0)
    count = np.diff(model.first_marker)
    total = np.bincount(model.marker_segment, variance, minlength=len(count))
    return np.asarray(total / np.maximum(count, 1))


def points_with_fixed_centers(
    estimate: Estimate, session: int
) -> Float[Array, "frame marker _"]:
    """Return the observations of a session as they were if no centre had moved."""
    points = estimate.poses[session].points
    if not estimate.motion:
        return points
    moved = estimate.motion[session].in_world(estimate.parameters.center_motion)
    points = points.copy()
    below = _markers_below(estimate.model).astype(float)
    points[..., :3] -= np.einsum("fnx,nk->fkx", moved, below, optimize=True)
    return points


def displaced_columns(estimate: Estimate) -> Int[Array, " column"]:
    """Return the columns of the offsets of joints whose centre moves."""
    model = estimate.model
    moving = list(model.moving_centers if estimate.motion else ())
    return np.ascontiguousarray(model.columns.joint_offset[moving].ravel())


def _markers_below(model: KinematicModel) -> Bool[Array, "moving marker"]:
    """Return the markers that each moving centre displaces."""
    column, child = model.columns.marker_offset[:, 0], list(model.moving_centers)
    first = model.columns.subtree_start[child, None]
    end = model.columns.subtree_end[child, None]
    return np.asarray((column >= first) & (column < end))
