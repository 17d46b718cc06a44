"""Gap filling: short gaps of markers are filled from points that move with them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from marey.bodies import Bodies
from marey.cleaning.arrays import Array, Points, Vectors
from marey.cleaning.neighbours import find_neighbours
from marey.cleaning.outliers.joints import joint_centers
from marey.cleaning.repairs import record_repair
from marey.errors import OptionError
from marey.joint_fits import JointFits
from marey.numerics import Float, Int, geometry
from marey.numerics.resampling import evenly_spaced
from marey.numerics.robust import finite_median, rms, runs
from marey.numerics.thresholds import FEW, MIN_POSE_POINTS
from marey.report import Finding
from marey.take import Take
from marey.tree import Tree

MAX_DEVIATION_RATIO = 2.0
"""Deviation of the distance of two markers of one body, relative to that of the
steadiest neighbour and to the usual one. Used without bodies. Higher fills more gaps,
less accurately. Chosen by hand."""

RELATIVE_ROUNDING = 1e-9
"""Relative rounding error of a distance."""

MIN_WIDTH_RATIO = 0.2
"""Width of the supporting points relative to the marker's distance from the line
through them. Higher leaves more gaps open. Chosen by hand."""

Gap = tuple[int, int, int]
"""A marker, and the first and last frame in which it was not seen."""


@dataclass(frozen=True, slots=True, eq=False)
class GapSupport:
    """The points that move rigidly with each marker."""

    points: Float[Array, "frame point 3"]
    """Markers, then joint centres as their neighbouring bodies see them, in metres."""

    supporting: tuple[tuple[Int[Array, " _"], ...], ...]
    """For each marker one or more choices of points that move with it; the next choice
    is used if the points of the one before are not enough."""

    def predict(self, marker: int, first: int, last: int) -> Vectors | None:
        """Return a marker's predicted path in some frames; None if not determined."""
        for chosen in self.supporting[marker]:
            around = self.points[first - 1 : last + 2, chosen]
            around = around[:, np.isfinite(around).all(axis=(0, 2))]
            track = self.points[first - 1 : last + 2, marker]
            path = _blend_predictions(around, track[0], track[-1])
            if path is not None:
                return path
        return None


def fill_gaps(
    take: Take,
    max_gap: float,
    *,
    bodies: Bodies | None = None,
    joints: JointFits | None = None,
    tree: Tree | None = None,
) -> Take:
    """Return the take with short gaps of markers filled.

    The rigid motion of points that are seen throughout the gap predicts the marker from
    the frame before the gap and, backwards, from the frame after it. The two
    predictions are blended linearly, so the filled path has no step at its ends.

    The supporting points are the other markers of the body. If joints are given and
    those markers are not enough, joint centres as seen from the neighbouring bodies are
    added. Without bodies they are markers whose distances to the marker and to each
    other stay constant over the take.

    Gaps that are longer than `max_gap`, at either end of the take, or with fewer than
    three supporting points off one line stay NaN. Filled values are marked in
    `Take.filled`; no later stage uses them as measurements. The finding reports the
    error of artificial gaps.

    Args:
        take: The recording.
        max_gap: Longest gap that is filled, in seconds.
        bodies: The bodies of its markers, if known.
        joints: Their joints.
        tree: Which of the joints are real.

    Raises:
        OptionError: If `max_gap` is below zero.
    """
    if not max_gap >= 0.0:
        raise OptionError("max_gap", found=max_gap, needed="0 s or more")
    max_frames = int(max_gap * take.rate + RELATIVE_ROUNDING)
    if max_frames == 0 or take.seen.all():
        return take
    support = _find_support(take, bodies, joints, tree)
    points = take.points.copy()
    gaps = [
        (marker, first, last)
        for marker, seen in enumerate(take.seen.T)
        for first, last in runs(~seen)
        if last - first < max_frames and first > 0 and last < len(seen) - 1
    ]
    filled_gaps = []
    for gap in gaps:
        path = support.predict(*gap)
        if path is not None:
            points[gap[1] : gap[2] + 1, gap[0]] = path
            filled_gaps.append(gap)
    if not filled_gaps:
        return take
    return record_repair(
        take,
        [_finding(support, filled_gaps, len(gaps) - len(filled_gaps))],
        [f"filled {_count_frames(filled_gaps)} positions of markers"],
        points=points,
        filled=take.filled | (np.isfinite(points).all(axis=-1) & ~take.seen),
    )


def _count_frames(gaps: Sequence[Gap]) -> int:
    return sum(last - first + 1 for _, first, last in gaps)


def _blend_predictions(
    supporting: Points, start: Float[Array, "3"], end: Float[Array, "3"]
) -> Vectors | None:
    """Return the path from start to end that the supporting points predict.

    None if they do not determine a rotation, or if their prediction of the end is far
    from the end: then they do not move with the marker.
    """
    first, last = supporting[0], supporting[-1]
    if not (_determines_rotation(first, start) and _determines_rotation(last, end)):
        return None
    forward = geometry.apply(geometry.kabsch(first, supporting), start)
    backward = geometry.apply(geometry.kabsch(last, supporting), end)
    distance = np.linalg.norm(start - first, axis=1).mean()
    if not np.linalg.norm(forward[-1] - end) <= FEW * distance:
        return None
    share = np.linspace(0.0, 1.0, len(supporting))[1:-1, None]
    path = (1.0 - share) * forward[1:-1] + share * backward[1:-1]
    return np.asarray(path) if np.isfinite(path).all() else None


def _determines_rotation(supporting: Vectors, position: Float[Array, "3"]) -> bool:
    """Return whether three points or more determine the rotation about their line."""
    if len(supporting) < MIN_POSE_POINTS or not np.isfinite(position).all():
        return False
    mean = supporting.mean(axis=0)
    _, size, axes = np.linalg.svd(supporting - mean, full_matrices=False)
    arm = position - mean
    lever = np.linalg.norm(arm - (arm @ axes[0]) * axes[0])
    return bool(size[1] > max(MIN_WIDTH_RATIO * lever, RELATIVE_ROUNDING * size[0]))


def _finding(support: GapSupport, filled: Sequence[Gap], n_open: int) -> Finding:
    sample = filled[evenly_spaced(len(filled))]
    errors = [error for gap in sample for error in _trial_errors(support, gap)]
    rms_error = rms(np.array(errors))
    markers = {marker for marker, _, _ in filled}
    message = (
        f"{_count_frames(filled)} positions of {len(markers)} markers filled in "
        f"{len(filled)} gaps from the markers around"
    )
    if errors:
        message += f", error about {1e3 * rms_error:.1f} mm"
    if n_open:
        message += f"; {n_open} gaps stay open"
    return Finding(
        "gaps-filled",
        "clean",
        "info",
        message,
        frames=(min(g[1] for g in filled), max(g[2] for g in filled)),
        value=rms_error,
    )


def _trial_errors(support: GapSupport, gap: Gap) -> Iterator[float]:
    """Yield the errors of an equally long artificial gap just before a real one."""
    marker, first, last = gap
    length = last - first + 1
    start = first - 1 - length
    if start < 1:
        return
    path = support.predict(marker, start, start + length - 1)
    if path is not None:
        true = support.points[start : start + length, marker]
        yield from np.linalg.norm(path - true, axis=1)[np.isfinite(true[:, 0])].tolist()


# --- supporting points ----------------------------------------------------------------


def _find_support(
    take: Take, bodies: Bodies | None, joints: JointFits | None, tree: Tree | None
) -> GapSupport:
    """Return the points that move with each marker, by bodies if they are known."""
    points = take.measured.points
    if bodies is None:
        rigid = _rigid_neighbours(points, take.rate)
        return GapSupport(points, tuple((chosen,) for chosen in rigid))
    body = bodies.marker_body
    same_body = [np.flatnonzero((body == b) & (b >= 0)) for b in body]
    same_body = [others[others != marker] for marker, others in enumerate(same_body)]
    if joints is None or tree is None:
        return GapSupport(points, tuple((chosen,) for chosen in same_body))
    pair, centers = joint_centers(bodies, joints, tree)
    # Each body gets the centres as its neighbours see them.
    centers = centers[:, :, ::-1].reshape(len(points), -1, 3)
    of_joints = [len(body) + np.flatnonzero(pair.ravel() == b) for b in body]
    choices = [
        (markers, np.concatenate([markers, ends]))
        for markers, ends in zip(same_body, of_joints, strict=True)
    ]
    return GapSupport(np.concatenate([points, centers], axis=1), tuple(choices))


def _rigid_neighbours(points: Points, rate: float) -> Iterator[Int[Array, " _"]]:
    """Yield for each marker the neighbours at constant distances to it and each other.

    Neighbours are added one by one, the steadiest first, if their distances to the
    marker and to all neighbours added before are steady.
    """
    neighbours = find_neighbours(points, rate)
    if not neighbours.index.shape[1]:
        yield from [np.zeros(0, dtype=np.int64)] * len(neighbours.index)
        return
    best_sd, nearest = neighbours.distance_sd[:, 0], neighbours.distance[:, 0]
    usual_sd = np.maximum(best_sd, finite_median(best_sd))
    limit = np.maximum(MAX_DEVIATION_RATIO * usual_sd, RELATIVE_ROUNDING * nearest)
    sd = np.full((len(limit), len(limit)), np.inf)
    np.put_along_axis(sd, neighbours.index, neighbours.distance_sd, axis=1)
    sd = np.minimum(sd, sd.T)
    for marker, candidates in enumerate(neighbours.index.tolist()):
        chosen: list[int] = []
        for candidate in candidates:
            if sd[[marker, *chosen], candidate].max() <= limit[marker]:
                chosen.append(candidate)
        yield np.array(chosen, dtype=np.int64)
