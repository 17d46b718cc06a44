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
from marey.numerics.thresholds import CERTAIN_SD, MIN_SAMPLES, MOST, OUTLIER_SD

MAX_HINGE_DEVIATION_RAD = 0.02
"""Largest deviation of a hinge from its axis, and largest rotation of a joint that does
not move, rms in radians. Higher finds more hinges. Chosen by hand."""

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
    tissue moves with the joint, and lasts as long. Axes of segments whose own markers
    do not determine their rotation are left out.

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
        R = [
            _paired_rotations(of_lag[parent][0], of_lag[child][0])
            for of_lag in rotations
            if parent in of_lag and child in of_lag
        ]
        R = [pairs for pairs in R if len(pairs) >= MIN_SAMPLES]
        if R:
            found.append(_single_axis(child, R))
    return tuple(found)


def _paired_rotations(
    parent: Sequence[Float[Array, "_ 3 3"]], child: Sequence[Float[Array, "_ 3 3"]]
) -> Float[Array, "pair 2 3 3"]:
    """Return the rotations of a segment relative to its parent in pairs of frames."""
    relative = [P.swapaxes(1, 2) @ Q for P, Q in zip(parent, child, strict=True)]
    R = np.concatenate(relative).reshape(-1, 2, 3, 3)
    return np.asarray(R[np.isfinite(R).all(axis=(1, 2, 3))])


def _single_axis(child: int, R: Sequence[Float[Array, "pair 2 3 3"]]) -> SingleAxis:
    """Return the axis of rotations of a segment relative to its parent.

    Args:
        child: The segment.
        R: The rotations in pairs of frames, of consecutive ones first.
    """
    U, s, Vt = np.linalg.svd(R[0].mean(axis=(0, 1)))
    lasting = 0.0
    for pairs in R:
        swing = pairs @ Vt[1]
        spread = swing - swing.mean(axis=(0, 1))
        if pairs is not R[0] and _shared_square(spread) < MOST * _square(spread):
            break
        lasting = _shared_square(U[:, 0] - pairs @ Vt[0])
    deviation = float(np.sqrt(max(lasting, 0.0)))
    is_hinge = deviation < min(
        MAX_HINGE_DEVIATION_RAD, _largest_angle(s[1:2]) / CERTAIN_SD
    )
    return SingleAxis(child, np.stack([U[:, 0], Vt[0]]), is_hinge)


def _square(x: Float[Array, "pair 2 3"]) -> float:
    """Return the mean square of vectors in pairs of frames."""
    return float(np.mean(np.sum(x**2, axis=-1)))


def _shared_square(x: Float[Array, "pair 2 3"]) -> float:
    """Return the mean square of vectors that both frames of a pair share."""
    return float(np.mean(np.sum(x[:, 0] * x[:, 1], axis=-1)))


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
        for P, Q in zip(rotations[p][0], rotations[i][0], strict=True):
            both = np.isfinite(P).all(axis=(1, 2)) & np.isfinite(Q).all(axis=(1, 2))
            total = np.einsum("fji,fjk->ik", Q[both], P[both])
            count.append(int(both.sum()))
            M.append(total / count[-1] if count[-1] else np.eye(3))
        yield i, np.array(M), np.array(count), rotations[p][1] + rotations[i][1]


def _segment_rotations(
    parameters: ModelParameters, sessions: Sequence[Array], segments: Iterable[int]
) -> dict[int, tuple[list[Float[Array, "_ 3 3"]], float]]:
    """Return the rotations of those segments that their own markers determine.

    They are by session and frame, NaN where the segment was not seen. With them comes
    the rotation of the segment's axes between sessions, in radians.
    """
    model, rotations = parameters.model, {}
    for i in segments:
        markers = model.markers_of(i)
        reference = parameters.marker_offset[0, markers]
        if not sessions or not determine_rotation(reference):
            continue
        R, offsets = [], []
        for points in sessions:
            rigid = fit_rigid(points[:, markers])
            T = geometry.kabsch(reference, rigid.offset)
            R.append(rigid.T_world_body[:, :3, :3] @ T[:3, :3])
            offsets.append(geometry.apply(geometry.inverse(T), rigid.offset))
        displacement = _relative_displacement(np.array(offsets))
        rotations[i] = R, OUTLIER_SD * displacement
    return rotations


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
