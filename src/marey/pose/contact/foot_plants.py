"""Foot plants: intervals in which a point stays at one position, to half a frame.

They begin as runs of frames in which a point stands (`stance`). Those at one position
with a short pause between them are one plant, and a curve that is fitted to the path
around each end gives its time.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from marey.motion import Motion
from marey.numerics import Array, Bool, Float, Int, geometry
from marey.numerics.robust import runs
from marey.numerics.thresholds import CERTAIN_SD, FEW, MOTION_TIME_S, OUTLIER_SD
from marey.pose.contact.points import SAME_PLACE, PointTracks
from marey.pose.contact.stance import estimate_noise

MAX_CREEP = 0.0025
"""Largest distance of a planted point from its anchor without noise, in heights of the
figure. Raising it keeps frames in which the point creeps. Chosen by hand."""

WEISZFELD_ITERATIONS = 30
"""Steps of the geometric median."""

ROUNDING_M = 1e-6
"""Root-mean-square motion that is no departure, in metres."""

EDGE_STEP_FRAMES = 0.5
"""Resolution of the search for an edge, in frames. Chosen by hand."""


@dataclass(frozen=True, slots=True, eq=False)
class FootPlant:
    """An interval in which a contact point, of a foot or a hand, stays in place."""

    point: int
    """Index of the contact point."""

    start: float
    """Frame at which it begins to stand; need not be whole."""

    end: float
    """Frame at which it leaves."""

    anchor: Float[Array, " 3"]
    """Position at which it stands, in metres."""

    @property
    def frames(self) -> Array:
        """The whole frames of the plant."""
        return np.arange(math.ceil(self.start), math.floor(self.end) + 1)

    def times(self, motion: Motion) -> tuple[float, float]:
        """Return the seconds at which it begins and ends, on the clock of a motion."""
        start, end = (motion.start + f / motion.rate for f in (self.start, self.end))
        return start, end


def find_foot_plants(
    stands: Bool[Array, "frame point"], tracks: PointTracks
) -> list[FootPlant]:
    """Return the foot plants of all points, by start.

    Runs of standing frames become plants: neighbours at one position merge, the edges
    are fitted to half a frame, and frames at either end in which the point creeps away
    from its anchor are cut off.

    Args:
        stands: Frames in which each point stands; see `detect_stance`.
        tracks: The points through time.
    """
    coarse = _coarse_plants(stands, tracks.positions)
    merged = list(_merge_plants(coarse, tracks))
    sharp = _fit_edges(merged, tracks)
    sharp = _update_anchors(sharp, tracks.positions, merged)
    noise = estimate_noise(tracks.positions)
    tolerance = np.hypot(MAX_CREEP * tracks.figure_height, OUTLIER_SD * noise)
    cut = [_cut_creep(p, tracks.positions[:, p.point], tolerance) for p in sharp]
    cut = _update_anchors(cut, tracks.positions, sharp)
    found = [
        plant
        for plant, whole in zip(cut, merged, strict=True)
        if len(plant.frames) > 1 and _is_long(plant, whole, tracks)
    ]
    return sorted(found, key=lambda plant: plant.start)


def _is_long(plant: FootPlant, whole: FootPlant, tracks: PointTracks) -> bool:
    """Return whether a plant is longer than the window, or began or ends elsewhere."""
    is_cut = whole.start == 0.0 or whole.end == len(tracks.positions) - 1.0
    return is_cut or plant.end - plant.start >= 2.0 * tracks.half_window


def _coarse_plants(
    stands: Bool[Array, "frame point"], positions: Float[Array, "frame point 3"]
) -> list[FootPlant]:
    """Return the runs of standing frames of which a position is known, by point."""
    unplaced = [
        FootPlant(point, float(first), float(last), np.full(3, np.nan))
        for point in range(stands.shape[1])
        for first, last in runs(stands[:, point])
    ]
    placed = _update_anchors(unplaced, positions, [None] * len(unplaced))
    return [plant for plant in placed if np.isfinite(plant.anchor).all()]


def _update_anchors(
    plants: Sequence[FootPlant],
    positions: Float[Array, "frame point 3"],
    before: Sequence[FootPlant | None],
) -> list[FootPlant]:
    """Return the plants with the geometric medians of their frames as anchors.

    Plants that are the same as before, or of which no position is known, keep theirs.
    """
    updated = list(plants)
    changed = [k for k, plant in enumerate(plants) if plant is not before[k]]
    medians = _geometric_medians(
        [positions[plants[k].frames, plants[k].point] for k in changed]
    )
    for k, anchor in zip(changed, medians, strict=True):
        if np.isfinite(anchor).all():
            updated[k] = replace(plants[k], anchor=anchor)
    return updated


def _geometric_medians(
    groups: Sequence[Float[Array, "_ 3"]],
) -> Float[Array, "group 3"]:
    """Return the geometric median of each group of positions, in metres.

    It is the point with the least sum of distances to all of them.

    It is found by Weiszfeld's algorithm, for all groups at once, and is exact where
    most positions of a group are equal; NaN if none is known.
    """
    known = [group[np.isfinite(group).all(axis=1)] for group in groups]
    sizes = np.array([len(group) for group in known], dtype=np.int64)
    medians, filled = np.full((len(groups), 3), np.nan), sizes > 0
    if not filled.any():
        return medians
    sizes = sizes[filled]
    xyz = np.ascontiguousarray(np.concatenate(known).T)
    first = np.cumsum(sizes) - sizes
    median = np.add.reduceat(xyz, first, axis=1) / sizes
    for _ in range(WEISZFELD_ITERATIONS):
        off = xyz - np.repeat(median, sizes, axis=1)
        distance = np.sqrt(np.einsum("ij,ij->j", off, off))
        weight = 1.0 / np.maximum(distance, 1e-9)
        total = np.add.reduceat(weight, first)
        median = np.add.reduceat(weight * xyz, first, axis=1) / total
    medians[filled] = median.T
    return medians


def _merge_plants(
    plants: Sequence[FootPlant], tracks: PointTracks
) -> Iterator[FootPlant]:
    """Yield plants, those at one position with a short pause between them as one.

    Two plants stay apart where the point was seen to leave between them, as the point
    of a tapping foot does.
    """
    last: FootPlant | None = None
    for plant in plants:
        if last is not None and _is_one_plant(last, plant, tracks):
            longer = last.end - last.start >= plant.end - plant.start
            anchor = last.anchor if longer else plant.anchor
            last = replace(last, end=plant.end, anchor=anchor)
            continue
        if last is not None:
            yield last
        last = plant
    if last is not None:
        yield last


def _is_one_plant(before: FootPlant, after: FootPlant, tracks: PointTracks) -> bool:
    """Return whether a point's plants are close in time and space, and it stayed."""
    is_short = after.start - before.end < MOTION_TIME_S * tracks.rate
    same_place = SAME_PLACE * tracks.figure_height
    is_near = np.linalg.norm(after.anchor - before.anchor) < same_place
    if after.point != before.point or not is_short or not is_near:
        return False
    between = slice(int(before.end) + 1, int(after.start)), after.point
    distance = geometry.lengths(tracks.positions[between] - before.anchor)
    has_left = (distance > same_place) & (tracks.visibility[between] > 0.5)
    return not has_left.any()


def _fit_edges(plants: Sequence[FootPlant], tracks: PointTracks) -> list[FootPlant]:
    """Return the plants with fitted edges; the same where they leave no frame.

    A point that never does more than creep, as in a standing trial, has no edges.
    """
    last = len(tracks.positions) - 1.0
    reverse = [replace(p, start=last - p.end, end=last - p.start) for p in plants]
    starts = last - _find_departures(reverse, tracks.reverse())
    ends = _find_departures(plants, tracks)
    keep = _only_creep(plants, tracks) | (starts >= ends)
    return [
        plant if kept else replace(plant, start=float(start), end=float(end))
        for plant, start, end, kept in zip(plants, starts, ends, keep, strict=True)
    ]


def _only_creep(
    plants: Sequence[FootPlant], tracks: PointTracks
) -> Bool[Array, " plant"]:
    """Return which plants are of a point that is never far from its anchor."""
    point = [plant.point for plant in plants]
    anchor = np.array([plant.anchor for plant in plants]).reshape(-1, 3)
    below = anchor - np.fmin.reduce(tracks.positions)[point]
    above = np.fmax.reduce(tracks.positions)[point] - anchor
    furthest = geometry.lengths(np.fmax(below, above))
    return furthest <= MAX_CREEP * tracks.figure_height


def _cut_creep(
    plant: FootPlant,
    positions: Float[Array, "frame 3"],
    tolerance: Float[Array, " point"],
) -> FootPlant:
    """Return the plant without the ends in which the point has crept away."""
    distance = geometry.lengths(positions[plant.frames] - plant.anchor)
    close = plant.frames[~(distance > tolerance[plant.point])]
    if not len(close) or len(close) == len(distance):
        return plant
    start, end = max(plant.start, close[0]), min(plant.end, close[-1])
    return replace(plant, start=float(start), end=float(end))


def _find_departures(
    plants: Sequence[FootPlant], tracks: PointTracks
) -> Float[Array, " plant"]:
    r"""Return the frame at which each point begins to leave its anchor.

    The motion is smooth there, so speed exceeds a threshold only when the point has
    long left. The edge is instead a change point: the time from which a curve that
    grows as a power of the time since then fits the path best. The path is modelled as
    :math:`x(t) = a + b \max(t - e, 0)^3`, with continuous position, speed and
    acceleration. For every edge :math:`e` of a grid, :math:`a` and :math:`b` follow by
    weighted linear regression; the edge that explains the largest sum of squares is
    taken, if its F ratio exceeds `CERTAIN_SD` squared.
    """
    from marey.pose.contact.change_point_kernel import fit_change_points  # numba

    first, last = (
        np.array([getattr(plant, edge) for plant in plants], dtype=np.int64)
        for edge in ("start", "end")
    )
    point = np.array([plant.point for plant in plants], dtype=np.int64)
    begin = np.maximum((first + last) // 2, last - round(MOTION_TIME_S * tracks.rate))
    stop = last + _frames_near(plants, tracks, point, last)
    stop = np.minimum(np.maximum(stop, last + 2), len(tracks.positions) - 1)
    positions = np.ascontiguousarray(tracks.positions)
    weights = np.ascontiguousarray(tracks.visibility) + FEW**2
    edge, explained, residual, n_known = fit_change_points(
        positions, weights, point, begin, stop, EDGE_STEP_FRAMES
    ).T
    by_chance = CERTAIN_SD**2 * np.maximum(residual, 0.0) / (3.0 * n_known)
    is_edge = n_known > 2 * tracks.half_window
    is_edge &= explained > by_chance + ROUNDING_M**2
    return np.where(is_edge, edge, last)


def _frames_near(
    plants: Sequence[FootPlant],
    tracks: PointTracks,
    point: Int[Array, " plant"],
    last: Int[Array, " plant"],
) -> Int[Array, " plant"]:
    """Return for how many frames after its last a point stays near its anchor."""
    n_frames = len(tracks.positions)
    longest = min(max(round(0.5 * MOTION_TIME_S * tracks.rate), 1), n_frames)
    frames = last[:, None] + np.arange(longest)
    is_inside = frames < n_frames
    after = tracks.positions[np.where(is_inside, frames, 0), point[:, None]]
    anchor = np.array([plant.anchor for plant in plants]).reshape(-1, 1, 3)
    distance = geometry.lengths(after - anchor)
    is_away = (distance > SAME_PLACE * tracks.figure_height) | ~is_inside
    return np.where(is_away.any(axis=1), is_away.argmax(axis=1), longest)
