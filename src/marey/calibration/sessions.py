"""Which takes are of one session: their markers sit where they sat before."""

from collections.abc import Callable, Sequence

import numpy as np

from marey.calibration.model import ModelParameters
from marey.calibration.priors import determine_rotation
from marey.numerics import Array, Float, geometry
from marey.numerics.procrustes import fit_rigid
from marey.numerics.thresholds import MARKER_NOISE_M, OUTLIER_SD

MIN_REATTACHMENT_M = OUTLIER_SD * MARKER_NOISE_M
"""Smallest median displacement of markers on their bodies between two takes, in metres,
that means they were attached again: an outlier of the noise. Higher merges more
sessions."""

MIN_REATTACHMENT_RMS = 2.0
"""The same displacement as a multiple of the median residual from rigid in the softer
take. Higher merges more sessions of soft bodies. Chosen by hand; of 16 subjects with
several takes of a day 15 are one session, and takes of two people never are."""


def group_takes(
    n_takes: int,
    displacement: Callable[[int, int], float],
    rms: Sequence[float],
) -> tuple[int, ...]:
    """Return the session of each take: single linkage of takes with markers in place.

    Args:
        n_takes: How many takes there are.
        displacement: Median distance in metres of the markers on the bodies of two
            takes; NaN if they have none in common.
        rms: By take, the median residual of its bodies from rigid, in metres.
    """
    session = list(range(n_takes))
    for j in range(n_takes):
        for i in range(j):
            softer = np.nanmax([rms[i], rms[j], 0.0])
            limit = max(MIN_REATTACHMENT_M, MIN_REATTACHMENT_RMS * softer)
            if session[i] != session[j] and displacement(i, j) <= limit:
                session = [session[i] if k == session[j] else k for k in session]
    numbers = list(dict.fromkeys(session))
    return tuple(numbers.index(k) for k in session)


def find_sessions(
    parameters: ModelParameters, takes: Sequence[Float[Array, "_ marker 3"]]
) -> tuple[int, ...]:
    """Return the session of each take of one subject, from the places of its markers.

    Args:
        parameters: Parameters of the model.
        takes: Sampled frames of each take, markers in the order of the model.
    """
    if len(takes) < 2:
        return (0,) * len(takes)
    placed = [_marker_places(parameters, points) for points in takes]
    offsets = [offset for offset, _ in placed]

    def displacement(i: int, j: int) -> float:
        distance = np.linalg.norm(offsets[i] - offsets[j], axis=1)
        known = distance[np.isfinite(distance)]
        return float(np.median(known)) if len(known) else float("nan")

    return group_takes(len(takes), displacement, [rms for _, rms in placed])


def _marker_places(
    parameters: ModelParameters, points: Float[Array, "frame marker 3"]
) -> tuple[Float[Array, "marker 3"], float]:
    """Return the markers of a take on their segments, and the residual from rigid.

    The axes are those of the parameters. Markers of segments whose markers do not
    determine a rotation are NaN, and so are the points of sensors, which are rigid
    wherever they sit.
    """
    model = parameters.model
    offset, rms = np.full((len(model.labels), 3), np.nan), [np.nan]
    shown = np.isfinite(points).all(axis=-1).any(axis=0)
    for i in range(len(model.names)):
        markers = [
            k for k in model.markers_of(i) if shown[k] and k not in model.sensor_points
        ]
        reference = parameters.marker_offset[0, markers]
        if determine_rotation(reference):
            rigid = fit_rigid(points[:, markers])
            T = geometry.kabsch(rigid.offset, reference)
            offset[markers] = geometry.apply(T, rigid.offset)
            rms.append(rigid.rms)
    known = np.array(rms)[np.isfinite(rms)]
    return offset, float(np.median(known)) if len(known) else float("nan")
