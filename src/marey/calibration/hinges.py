r"""Hinges, and the information of each session about the joints, from rotations alone.

Both use the mean rotation of a segment relative to its parent over the frames of a
session, :math:`M = \mathrm{E}[R_c^T R_p]`. Its singular values are the mean cosines of
the rotation away from each principal axis: a singular value of 1 belongs to an axis
that is fixed in both segments.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from marey.calibration.model import (
    MECHANICAL_HINGE_SD_RAD,
    AxisConstraint,
    ModelParameters,
)
from marey.calibration.priors import determine_rotation
from marey.calibration.problem import CalibrationProblem
from marey.numerics import Array, Float, Int, geometry
from marey.numerics.procrustes import fit_rigid
from marey.numerics.thresholds import (
    CERTAIN_SD,
    MIN_SAMPLES,
    MOST,
    OUTLIER_SD,
    SAMPLE_FRAMES,
)

MAX_HINGE_DEVIATION_RAD = 0.02
"""Largest deviation of a hinge from its axis, and largest rotation of a joint that does
not move, rms in radians. Higher finds more hinges. Chosen by hand."""

POSE_FREEDOM = 6
"""Coordinates of a rigid body: as many of its markers' residuals are zero."""

MAX_LAG = 16
"""Most frames between the two of a pair in which noise is independent; a power of two.
Higher finds more hinges where noise lasts for many frames. Chosen by hand."""


def detect_hinges(
    parameters: ModelParameters, sessions: Sequence[Float[Array, "_ marker 3"]]
) -> tuple[ModelParameters, frozenset[int]]:
    """Return the parameters with a hinge wherever a joint rotated about one axis.

    Along such an axis the frames determine nothing of the joint but noise. They
    determine nothing at all where two segments did not rotate relative to each other:
    the last value is the set of these segments. One session in which a joint rotated is
    enough to determine it, and one that left the axis is enough for a ball joint.

    Args:
        parameters: Parameters of the model, with the hinges that are known.
        sessions: Sampled frames of every session.
    """
    axes, values = [*parameters.model.axes], [*parameters.axis]
    known, immobile = {hinge.child for hinge in axes}, set()
    for i, M, count, uncertainty in _joint_rotations(parameters, sessions):
        if i in known or not count.any():
            continue
        M, count = M[count > 0], count[count > 0]
        s = np.linalg.svd(M, compute_uv=False)
        deviation, swing = _largest_angle(s[:, 0]), _largest_angle(s[:, 1])
        # The axis that fits all sessions best, and how far a session deviates from it.
        U, _, Vt = np.linalg.svd(np.einsum("s,sij->ij", count, M))
        off_axis = _largest_angle(np.einsum("i,sij,j->s", U[:, 0], M, Vt[0]))
        straight = max(deviation, off_axis - uncertainty) < MAX_HINGE_DEVIATION_RAD
        if swing < MAX_HINGE_DEVIATION_RAD:
            immobile.add(i)
        elif straight and swing > CERTAIN_SD * deviation:
            sd = max(deviation, MECHANICAL_HINGE_SD_RAD)
            axes.append(AxisConstraint(i, "hinge", sd))
            values.append(np.stack([Vt[0], U[:, 0]]))
    return parameters.with_axes(axes, values), frozenset(immobile)


class SegmentMotion(NamedTuple):
    """How a segment rotates, as its own markers show it."""

    rotation: list[Float[Array, "_ 3 3"]]
    """By session and frame; NaN where the segment was not seen."""

    uncertainty: float
    """Rotation of the segment's axes between sessions, in radians."""

    residual: list[Float[Array, "_ x"]]
    """Coordinates of all markers relative to the rigid shape in each session, in
    metres, in the axes of that shape; NaN where a marker was not seen."""

    lever: Float[Array, "3 3"]
    """Covariance of the rotation over the variance of a marker, in 1/m²."""

    @property
    def paired_residuals(self) -> Float[Array, "pair 2 x"]:
        """Residuals of pairs of frames that show all markers."""
        residual = np.concatenate(self.residual)
        pairs = residual.reshape(-1, 2, residual.shape[-1])
        return np.asarray(pairs[np.isfinite(pairs).all(axis=(1, 2))])


class SingleAxis(NamedTuple):
    """The axis of a joint that rotated about one axis only."""

    child: int
    """The segment below the joint."""

    direction: Float[Array, "2 3"]
    """Unit axis in the parent and in the child."""

    is_hinge: bool
    """Whether the joint stays on the axis but for noise."""


def single_axes(problem: CalibrationProblem) -> tuple[SingleAxis, ...]:
    r"""Return the axes of the hinges among the parameters, and which are mechanical.

    A fitted joint is a hinge if the motion does not show where its centre is along the
    axis. Soft tissue hides rotations as noise does, so that many joints of people are
    such hinges. A mechanical one does not leave its axis but for noise: the deviation d
    of the axis in the child from that in the parent changes while the joint hardly
    swings,

    .. math:: \mathrm{E}[d_f \cdot d_{f+n}] \approx 0

    for the most frames n, up to `MAX_LAG`, over which most of the swing stays. Soft
    tissue moves with the joint, and lasts as long. Noise may last, too: what the
    residuals of both segments explain is subtracted, unless they are those of soft
    tissue. Axes of segments whose own markers do not determine their rotation are left
    out.

    Args:
        problem: What is calibrated; its parameters have the hinges that were fitted.
    """
    parameters = problem.parameters
    rotations, found = [], []
    children = [axis.child for axis in parameters.model.axes]
    segments = sorted({*children, *parameters.model.parent[children].tolist()})
    lags = (2**n for n in range(MAX_LAG.bit_length()) if children)
    for lag in lags:
        pairs = [x[..., :3] for x in problem.sample_frame_pairs(lag) if len(x)]
        frames = [x.reshape(-1, *x.shape[2:]) for x in pairs]
        rotations.append(_segment_rotations(parameters, frames, segments))
    for child in children:
        parent = int(parameters.model.parent[child])
        both = [
            (of_lag[parent], of_lag[child])
            for of_lag in rotations
            if parent in of_lag and child in of_lag
        ]
        R = [_paired_rotations(above, below) for above, below in both]
        R = [pairs for pairs in R if len(pairs) >= MIN_SAMPLES]
        if R:
            n_frames = sum(map(len, problem.sessions))
            found.append(_single_axis(child, R, _noise_by_lag(both, n_frames)))
    return tuple(found)


def _paired_rotations(
    parent: SegmentMotion, child: SegmentMotion
) -> Float[Array, "pair 2 3 3"]:
    """Return the rotations of a segment relative to its parent in pairs of frames."""
    both = zip(parent.rotation, child.rotation, strict=True)
    relative = [P.swapaxes(1, 2) @ Q for P, Q in both]
    R = np.concatenate(relative).reshape(-1, 2, 3, 3)
    return np.asarray(R[np.isfinite(R).all(axis=(1, 2, 3))])


def _noise_by_lag(
    both: Sequence[tuple[SegmentMotion, SegmentMotion]], n_frames: int
) -> Float[Array, "lag 2 3 3"]:
    r"""Return the covariance of noise in the rotations that pairs of frames share.

    In square radians, in the axes of parent and child. With the residuals r of N
    markers, at m from their centroid, it is

    .. math:: \frac{\mathrm{E}[r_f \cdot r_{f+n}]}{3 N - 6}
              \left(\sum_k |m_k|^2 I - m_k m_k^T\right)^{-1}

    and zero if the residuals of one of both are more than noise.

    Args:
        both: Parent and child in pairs of frames, of consecutive ones first.
        n_frames: Frames of all takes.
    """
    noise = np.zeros((len(both), 2, 3, 3))
    if not all(is_noise(one.paired_residuals, n_frames) for one in both[0]):
        return noise
    for lag, segments in enumerate(both):
        for side, one in enumerate(segments):
            residual = one.paired_residuals
            freedom = residual.shape[-1] - POSE_FREEDOM
            noise[lag, side] = _shared_square(residual) / freedom * one.lever
    return noise


def is_noise(residual: Float[Array, "pair 2 x"], n_frames: int) -> bool:
    r"""Return whether the residuals of a rigid fit are noise, and not soft tissue.

    Noise is as large in each of the k directions that the pose leaves to the residuals;
    soft tissue moves in few of them. The test of sphericity of John (1971): for the
    covariance S of n independent residuals,

    .. math:: \frac{n k}{2} \left(\frac{k \operatorname{tr} S^2}
              {(\operatorname{tr} S)^2} - 1\right) \sim \chi^2_{k (k + 1) / 2 - 1}

    With the correlation :math:`\rho` of neighbours, F frames show
    :math:`F (1 - \rho^2) / (1 + \rho^2)` independent squares, and
    :math:`F (1 - \rho) / (1 + \rho)` independent residuals. Too few of these show
    nothing.

    Args:
        residual: Coordinates of all markers of a segment in pairs of consecutive
            frames.
        n_frames: Frames of all takes.
    """
    k = residual.shape[-1] - POSE_FREEDOM
    square = _square(residual) if len(residual) else 0.0
    if k <= 0 or not square > 0.0:
        return False
    correlation = float(np.clip(_shared_square(residual) / square, 0.0, 1.0))
    if n_frames * (1.0 - correlation) < MIN_SAMPLES * (1.0 + correlation):
        return False
    n = min(n_frames * (1.0 - correlation**2) / (1.0 + correlation**2), len(residual))
    S = np.einsum("pfx,pfy->xy", residual, residual)
    statistic = 0.5 * n * k * (k * float(np.sum(S**2)) / np.trace(S) ** 2 - 1.0)
    freedom = 0.5 * k * (k + 1) - 1.0
    return bool(statistic < freedom + OUTLIER_SD * np.sqrt(2.0 * freedom))


def _single_axis(
    child: int,
    R: Sequence[Float[Array, "pair 2 3 3"]],
    noise: Float[Array, "lag 2 3 3"],
) -> SingleAxis:
    """Return the axis of rotations of a segment relative to its parent.

    Args:
        child: The segment.
        R: The rotations in pairs of frames, of consecutive ones first.
        noise: Covariance of the noise that both frames share, in parent and child.
    """
    U, s, Vt = np.linalg.svd(R[0].mean(axis=(0, 1)))
    lasting, axes = 0.0, np.stack([U[:, 0], Vt[0]])
    for pairs, C in zip(R, noise, strict=False):
        swing = pairs @ Vt[1]
        spread = swing - swing.mean(axis=(0, 1))
        if pairs is not R[0] and _shared_square(spread) < MOST * _square(spread):
            break
        of_noise = np.einsum("sxx->", C) - np.einsum("sx,sxy,sy->", axes, C, axes)
        lasting = _shared_square(U[:, 0] - pairs @ Vt[0]) - float(of_noise)
    deviation = float(np.sqrt(max(lasting, 0.0)))
    is_hinge = deviation < min(
        MAX_HINGE_DEVIATION_RAD, _largest_angle(s[1:2]) / CERTAIN_SD
    )
    return SingleAxis(child, axes, is_hinge)


def _square(x: Float[Array, "pair 2 x"]) -> float:
    """Return the mean square of vectors in pairs of frames."""
    return float(np.mean(np.sum(x**2, axis=-1)))


def _shared_square(x: Float[Array, "pair 2 x"]) -> float:
    """Return the mean square of vectors that both frames of a pair share."""
    return float(np.mean(np.sum(x[:, 0] * x[:, 1], axis=-1)))


def main_axes(
    problem: CalibrationProblem, segments: Sequence[int]
) -> dict[int, Float[Array, "2 3"]]:
    """Return the unit axes about which segments rotate most, in parent and child.

    Those whose own markers do not determine their rotation are left out.

    Args:
        problem: What is calibrated.
        segments: The segments.
    """
    axes = {}
    sampled = problem.sample_positions(SAMPLE_FRAMES)
    for i, M, count, _ in _joint_rotations(problem.parameters, sampled):
        if i in segments and count.any():
            U, _, Vt = np.linalg.svd(np.einsum("s,sij->ij", count, M))
            axes[i] = np.stack([Vt[0], U[:, 0]])
    return axes


def order_sessions_by_information(
    parameters: ModelParameters, sessions: Sequence[Float[Array, "_ marker 3"]]
) -> Int[Array, " session"]:
    r"""Return the sessions, the one with most information about the joints first.

    The markers of the first session define the axes of the segments: a joint that does
    not rotate in it could be anywhere in these axes. The information about a joint is
    the log determinant of the Fisher information on its centre in both segments, which
    for n frames depends on the singular values s of the mean rotation:

    .. math:: \sum_i \log\left((1 + n)\,(1 - s_i^2 + \epsilon^2)\right)

    Sessions with markers come before those of sensors alone: how a sensor lies on its
    segment is known only roughly before the fit, and must not decide the axes in which
    landmarks locate joints.
    """
    if len(sessions) == 1:
        return np.zeros(1, dtype=np.int64)
    information = np.zeros(len(sessions))
    for _, M, count, _ in _joint_rotations(parameters, sessions):
        s = np.linalg.svd(M, compute_uv=False)
        spread = np.maximum(1.0 - s**2, 0.0) + MAX_HINGE_DEVIATION_RAD**2
        information += np.log((1 + count)[:, None] * spread).sum(axis=1)
    is_marker = np.ones(len(parameters.model.labels), dtype=bool)
    is_marker[list(parameters.model.sensor_points)] = False
    no_marker = [not np.isfinite(points[:, is_marker]).any() for points in sessions]
    return np.lexsort(np.stack([-information, np.array(no_marker)]))


def _joint_rotations(
    parameters: ModelParameters, sessions: Sequence[Float[Array, "_ marker 3"]]
) -> Iterator[tuple[int, Float[Array, "session 3 3"], Int[Array, " session"], float]]:
    """Yield the mean rotation of each segment relative to its parent by session.

    With each segment come its mean rotations, the number of their frames, and the
    rotation of the axes of both segments between sessions, in radians. The mean is the
    identity of no frames in sessions that never show both segments. Segments whose own
    markers do not determine their rotation, or that of their parent, are left out.
    """
    every = range(len(parameters.model.names))
    rotations = _segment_rotations(parameters, sessions, every)
    for i, p in enumerate(parameters.model.parent.tolist()):
        if i not in rotations or p not in rotations:
            continue
        M, count = [], []
        both = zip(rotations[p].rotation, rotations[i].rotation, strict=True)
        for P, Q in both:
            both = np.isfinite(P).all(axis=(1, 2)) & np.isfinite(Q).all(axis=(1, 2))
            total = np.einsum("fji,fjk->ik", Q[both], P[both])
            count.append(int(both.sum()))
            M.append(total / count[-1] if count[-1] else np.eye(3))
        uncertainty = rotations[p].uncertainty + rotations[i].uncertainty
        yield i, np.array(M), np.array(count), uncertainty


def _segment_rotations(
    parameters: ModelParameters, sessions: Sequence[Array], segments: Iterable[int]
) -> dict[int, SegmentMotion]:
    """Return the motion of those segments that their own markers determine."""
    model, motions = parameters.model, {}
    for i in segments:
        markers = model.markers_of(i)
        reference = parameters.marker_offset[0, markers]
        if not sessions or not determine_rotation(reference):
            continue
        R, offsets, residuals = [], [], []
        for points in sessions:
            rigid = fit_rigid(points[:, markers])
            T = geometry.kabsch(reference, rigid.offset)
            R.append(rigid.T_world_body[:, :3, :3] @ T[:3, :3])
            offsets.append(geometry.apply(geometry.inverse(T), rigid.offset))
            T_body_world = geometry.inverse(rigid.T_world_body)[:, None]
            off_shape = geometry.apply(T_body_world, points[:, markers]) - rigid.offset
            residuals.append(off_shape.reshape(len(points), -1))
        displacement = _relative_displacement(np.array(offsets))
        motions[i] = SegmentMotion(
            R, OUTLIER_SD * displacement, residuals, _rotation_per_square(reference)
        )
    return motions


def _rotation_per_square(markers: Float[Array, "marker 3"]) -> Float[Array, "3 3"]:
    """Return the covariance of the rotation of markers with noise of unit variance."""
    m = markers - markers.mean(axis=0)
    return np.asarray(np.linalg.inv(np.sum(m**2) * np.eye(3) - m.T @ m))


def _relative_displacement(offsets: Float[Array, "session marker 3"]) -> float:
    """Return the rms deviation of markers from their mean over the sessions.

    It is a share of the size of the segment.
    """
    seen = np.isfinite(offsets).all(axis=-1, keepdims=True)
    count = np.maximum(seen.sum(axis=0), 1)
    mean = np.where(seen, offsets, 0.0).sum(axis=0) / count
    deviation = np.where(seen, offsets - mean, 0.0)
    size = float(np.sum((mean - mean.mean(axis=0)) ** 2)) / len(mean)
    total = float(np.sum(deviation**2)) / max(int(seen.sum()), 1)
    return float(np.sqrt(total / size)) if size > 0.0 else 0.0


def _largest_angle(mean_cosine: Float[Array, " session"]) -> float:
    """Return the largest rms angle of all sessions, in radians."""
    return float(np.sqrt(2.0 * max(1.0 - mean_cosine.min(), 0.0)))
