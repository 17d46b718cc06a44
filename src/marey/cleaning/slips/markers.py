"""Slips of markers on the skin, found and undone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log

import numpy as np

from marey.bodies import Bodies
from marey.cleaning.arrays import Array, Frames, Markers, Path, Points, Poses, Vectors
from marey.cleaning.neighbours import MarkerPredictor, find_neighbours
from marey.cleaning.repairs import record_repair, repair_warning
from marey.cleaning.slips import change_point
from marey.numerics import Float, Int, geometry
from marey.numerics.noise import rms_length
from marey.numerics.procrustes import median_in_body
from marey.numerics.resampling import evenly_spaced
from marey.numerics.thresholds import (
    OUTLIER_SD,
    SKIN_MOTION_M,
    VELOCITY_TIME_S,
)
from marey.report import Finding, mark_name
from marey.take import Take

MIN_SLIP_M = 0.5 * SKIN_MOTION_M
"""Smallest slip of a marker, in metres. Skin moves by less all the time. Chosen by
hand."""

MAX_SLIP_M = 0.1
"""Largest slip of a marker, in metres. Beyond it the label is on another marker. Higher
takes more swaps for slips. Chosen by hand."""

MAX_CHANGE_RATIO = 0.5
"""Difference between the jump and the lasting displacement, relative to the jump.
Higher accepts more motions of the skin as slips. Chosen by hand."""

JUMP_WINDOW_S = VELOCITY_TIME_S
"""Seconds before and after a jump whose mean positions must differ by the jump."""

MIN_SIDE_S = 1.0
"""Seconds for which the marker must be seen before and after a slip. Skin that a bent
limb pulls along stays displaced for as long as the limb is bent. Chosen by hand."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class MarkerSlip:
    """One marker that moved on its body once and stayed there."""

    label: str
    column: int
    """The marker by index."""

    body: str
    neighbours: Int[Array, " neighbour"]
    """The other markers of the body, by index."""

    neighbour_positions: Float[Array, "neighbour 3"]
    """Their positions in the axes of the body, in metres."""

    frame: int
    """First frame after the slip."""

    displacement: Float[Array, "3"]
    """Displacement of the marker in the axes of the body, in metres."""

    p_value: float
    """Probability of such a likelihood ratio without a slip, over all frames and
    markers."""

    @property
    def size(self) -> float:
        """Length of the displacement, in metres."""
        return float(np.linalg.norm(self.displacement))

    def __str__(self) -> str:
        return f"slipped by {1e3 * self.size:.1f} mm at frame {self.frame}"

    @property
    def finding(self) -> Finding:
        """The finding for the report."""
        message = f"{self} on {mark_name(self.body)}; undone; {change_point.ADVICE}"
        frames = (self.frame, self.frame)
        return repair_warning("marker-slipped", message, self.label, frames, self.size)


def find_marker_slips(
    bodies: Bodies, *, level: float = change_point.FALSE_ALARM_LEVEL
) -> tuple[MarkerSlip, ...]:
    """Return the slips of markers on their bodies, in the order of time.

    A marker that slips jumps away from the prediction of its neighbours and then stays
    displaced in the axes of its body. The likelihood ratio of this change is compared
    with noise that is correlated in time, as skin motion is. The most likely slip of a
    body is undone and the search repeated (greedy search).

    Two other markers on the body determine the displacement in the plane of the three;
    its component out of the plane is taken from the jump. A marker whose body has fewer
    than two others is not tested. A slip within the noise of one step is not found.

    Args:
        bodies: Bodies made of markers.
        level: Accepted probability of a false alarm, above 0 and below 1.

    Raises:
        OptionError: If the level is out of range.
    """
    change_point.check_level(level)
    points = recorded = bodies.take.measured.points
    jumps = _find_jumps(points, bodies.take.rate)
    slips: list[MarkerSlip] = []
    for body in np.flatnonzero(bodies.determined).tolist():
        n_markers = int(bodies.shared[:, body].sum())
        of_body = {k: v for k, v in jumps.items() if bodies.marker_body[k] == body}
        for _ in range(change_point.MAX_SLIPS if n_markers > 2 else 0):
            slip = _find_most_likely(bodies, points, body, of_body, level)
            if slip is None:
                break
            slips.append(slip)
            points = recorded.copy() if points is recorded else points
            points[:, slip.column] = _undo_slip(points, slip)
            del of_body[slip.column]
    return tuple(sorted(slips, key=lambda slip: (slip.frame, slip.column)))


Jumps = tuple[Int[Array, " jump"], Float[Array, "jump 3"]]
"""Steps of one marker that its neighbours do not predict: the frame of each, and the
vector from the prediction to the position, in world axes, in metres."""


def _find_jumps(points: Points, rate: float) -> dict[int, Jumps]:
    """Return the steps of each marker that may be slips, by marker."""
    predictor = MarkerPredictor(points, find_neighbours(points, rate))
    steps = predictor.find_unpredicted_steps(OUTLIER_SD)
    vector = points[steps.end, steps.marker] - predictor.predict(*steps)
    size = np.linalg.norm(vector, axis=1)
    fits = (size >= MIN_SLIP_M) & (size <= MAX_SLIP_M)
    of_marker = {
        m: fits & (steps.marker == m) for m in set(steps.marker[fits].tolist())
    }
    return {m: (steps.end[rows], vector[rows]) for m, rows in sorted(of_marker.items())}


def _find_most_likely(
    bodies: Bodies, points: Array, body: int, jumps: Mapping[int, Jumps], level: float
) -> MarkerSlip | None:
    """Return the most likely slip of a body's markers; None if none is significant."""
    if not jumps:
        return None
    markers = np.flatnonzero(bodies.shared[:, body])
    sample = evenly_spaced(len(points))
    shape = median_in_body(bodies.T_world_body[sample, body], points[sample, markers])
    log_n_markers = log(max((bodies.marker_body >= 0).sum(), 1))
    n_axes = min(len(markers) - 1, points.shape[2])
    slips = []
    for marker, of_marker in jumps.items():
        others = markers != marker
        T = _body_poses(points, markers[others], shape[others], marker)
        change = _find_change(T, points[:, marker], of_marker, n_axes, bodies.take.rate)
        if change is None or change[0] + log_n_markers >= log(level):
            continue
        slip = MarkerSlip(
            label=bodies.take.full_labels[marker],
            column=marker,
            body=bodies.names[body],
            neighbours=markers[others],
            neighbour_positions=shape[others],
            frame=change[1],
            displacement=change[2],
            p_value=float(np.exp(change[0] + log_n_markers)),
        )
        slips.append((change[0], marker, slip))
    return min(slips)[2] if slips else None


def _body_poses(
    points: Points, neighbours: Markers, positions: Vectors, marker: int
) -> Poses:
    """Return the poses of a body by the neighbours of a marker.

    Two neighbours leave the rotation about their line open; it is taken from the marker
    itself.
    """
    if len(neighbours) > 2:
        return geometry.kabsch(positions, points[:, neighbours])
    one, two = points[:, neighbours[0]], points[:, neighbours[1]]
    x = geometry.unit_vectors(two - one)
    z = geometry.unit_vectors(geometry.cross(x, points[:, marker] - one))
    R = np.stack([x, geometry.cross(z, x), z], axis=-1)
    return geometry.transform(R, 0.5 * (one + two))


Change = tuple[float, int, Float[Array, "3"]]
"""Log probability without a change over all frames, frame, displacement in metres."""


def _find_change(
    T_world_body: Poses, track: Path, jumps: Jumps, n_axes: int, rate: float
) -> Change | None:
    """Return the clearest lasting change that a jump began; None if there is none.

    The jump, the change of the mean around it and the change of the mean over the take
    must agree. Jumps too near either end of the take are left out.

    Args:
        T_world_body: Poses of the body by the marker's neighbours.
        track: The marker in the world.
        jumps: Its steps that may be slips.
        n_axes: How many axes of the body, the first ones, determine a displacement.
        rate: Frames per second.
    """
    local = geometry.apply(geometry.inverse(T_world_body), track)
    frames = np.flatnonzero(np.isfinite(local).all(axis=1))
    n, window = len(frames), max(round(JUMP_WINDOW_S * rate), 2)
    margin = max(change_point.MIN_SIDE_FRAMES, round(MIN_SIDE_S * rate))
    first = np.searchsorted(frames, jumps[0])
    inner = np.flatnonzero((first >= margin) & (first <= n - margin))
    if not len(inner):
        return None
    first = first[inner]
    y = local[frames] - np.median(local[frames], axis=0)
    lasting = _mean_change(y, first, 0, n)
    around = _mean_change(y, first, first - window, first + window)
    R_body_world = T_world_body[frames[first], :3, :3].mT
    jump = (R_body_world @ jumps[1][inner, :, None])[..., 0]
    size, jump_size, lasting_error, around_error = (
        np.linalg.norm(v[:, :n_axes], axis=1)
        for v in (lasting, jump, lasting - jump, around - jump)
    )
    error = np.maximum(lasting_error, around_error)
    agrees = (error <= MAX_CHANGE_RATIO * jump_size) & (size >= MIN_SLIP_M)
    if not agrees.any():
        return None
    best = int(np.argmax(np.where(agrees, first * (n - first) * size**2, 0.0)))
    k = int(first[best])
    noise = y - lasting[best] * (np.arange(n) >= k)[:, None]
    noise -= np.median(noise, axis=0)
    if size[best] < OUTLIER_SD * rms_length(noise):
        return None
    log_p = _log_p_value(noise, k, size[best], n_axes)
    displacement = np.where(np.arange(3) < n_axes, lasting[best], jump[best])
    return log_p, int(jumps[0][inner[best]]), displacement


def _mean_change(
    y: Path, first: Frames, start: Array | int, end: Array | int
) -> Vectors:
    """Return the mean from `first` to `end` minus that from `start` to `first`.

    In the unit of the path y; ends are excluded.
    """
    sums = np.concatenate([np.zeros((1, 3)), np.cumsum(y, axis=0)])
    after = (sums[end] - sums[first]) / (end - first)[:, None]
    return np.asarray(after - (sums[first] - sums[start]) / (first - start)[:, None])


def _log_p_value(noise: Path, first: int, size: float, n_axes: int) -> float:
    """Return the log probability of a change of this size in noise, at any frame.

    The likelihood ratio is that of a t distribution, see `slip_likelihood_ratio`.
    """
    n = len(noise)
    variance, dof = change_point.long_run_variance(noise)
    variance = max(variance * noise.shape[1] / n_axes, change_point.ROUNDING_SD_M**2)
    statistic = first * (n - first) / n * size**2 / variance
    if np.isfinite(dof):
        statistic = dof * float(np.log1p(statistic / dof))
    margin = change_point.MIN_SIDE_FRAMES / n
    return change_point.log_exceedance(statistic, n_axes, (margin, margin))


def _undo_slip(points: Array, slip: MarkerSlip) -> Path:
    """Return the track of a marker as if it had not slipped."""
    track = points[:, slip.column].copy()
    T = _body_poses(
        points[slip.frame :], slip.neighbours, slip.neighbour_positions, slip.column
    )
    track[slip.frame :] -= T[:, :3, :3] @ slip.displacement
    return np.asarray(track)


def undo_marker_slips(take: Take, slips: Sequence[MarkerSlip]) -> Take:
    """Return the take with markers where they were on their bodies before they slipped.

    Positions after a slip are moved back by its displacement, in the axes of the body
    in each frame. If the body is not seen in a frame, the position is set to NaN.

    Args:
        take: The recording.
        slips: From `find_marker_slips`.
    """
    if not slips:
        return take
    points = take.points.copy()
    for slip in slips:
        points[:, slip.column] = _undo_slip(points, slip)
    return record_repair(
        take,
        [slip.finding for slip in slips],
        [f"undid slip: {slip.label} {slip}" for slip in slips],
        points=points,
        filled=take.filled & np.isfinite(points).all(axis=-1),
    )
