"""A known skeleton in a cloud of points without labels: where it is in one frame.

Bodies are placed in the space of the rest pose: markers that move together keep their
distances, and two bodies share the point of the joint between them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from marey.live.frame import Frame
from marey.live.labelling import GATE_M, assign_points
from marey.live.posing.tracking import SkeletonTracker
from marey.numerics import Array, Bool, Float, Int, geometry
from marey.numerics.thresholds import MIN_POSE_POINTS
from marey.skeleton import Skeleton, rotating_joints

MAX_ITERATIONS = 10
"""Most rounds of pose and labels; two or three are usual. Chosen by hand."""

MAX_SEEDS = 24
"""Places of the first body from which the others are searched. Higher survives more
look-alikes and takes longer. Chosen by hand."""


@dataclass(frozen=True, slots=True, eq=False)
class _RestBodies:
    """The bodies of a skeleton in its rest pose."""

    markers: dict[int, Int[Array, " _"]]
    """Markers of each body; empty for one that has none."""

    rest: Float[Array, "marker 3"]
    """Markers in the rest pose."""

    links: dict[int, list[tuple[int, Float[Array, " 3"]]]]
    """Bodies that a joint links each body to, and where the joint is."""


@dataclass(frozen=True, slots=True)
class Recognition:
    """Where a skeleton is in a cloud of points."""

    labels: Mapping[str, str]
    """Label of each point that is one of its markers, by the point's name."""

    cost: float
    """Mean distance of its markers from their points in metres, `GATE_M` for a marker
    without one."""


NOT_FOUND = Recognition({}, GATE_M)


def recognise_best(
    skeletons: Sequence[Skeleton], frame: Frame, rate: float
) -> Mapping[str, str]:
    """Return the labels of the skeleton that explains a frame best; empty if none does.

    One at a time: bodies of people are alike, and where the right skeleton is, others
    explain many points too.

    Args:
        skeletons: With their markers, whose labels differ.
        frame: Points by their names.
        rate: Frames per second.
    """
    found = [recognise_skeleton(skeleton, frame, rate) for skeleton in skeletons]
    return min(found, key=lambda one: one.cost, default=NOT_FOUND).labels


def recognise_skeleton(skeleton: Skeleton, frame: Frame, rate: float) -> Recognition:
    """Return which points of a frame are markers of a skeleton.

    The pose is solved with the labels of `find_markers`, and points are assigned to
    where it has the markers, until labels stay (iterative closest points).

    Args:
        skeleton: With its markers.
        frame: Points by their names.
        rate: Frames per second.
    """
    seen = np.flatnonzero(np.isfinite(frame.points[:, 0]))
    points = frame.points[seen]
    found = find_markers(skeleton, points)
    if not found:
        return NOT_FOUND
    tracker, cost = SkeletonTracker(skeleton, rate), GATE_M
    for _ in range(MAX_ITERATIONS):
        labels = tuple(skeleton.marker_labels[marker] for marker in found)
        known = Frame(number=0, points=points[[*found.values()]], labels=labels)
        pose = tracker.update(known)
        if pose is None:
            break
        T = pose.T_world_joint[skeleton.marker_joint]
        places = geometry.apply(T, skeleton.marker_offset)
        near = assign_points(points, places)
        apart = np.linalg.norm(places - points[near], axis=1)
        cost = float(np.where(near >= 0, apart, GATE_M).mean())
        before = found
        found = {int(marker): int(near[marker]) for marker in np.flatnonzero(near >= 0)}
        if found == before or not found:
            break
    named = {
        frame.labels[seen[point]]: skeleton.marker_labels[marker]
        for marker, point in found.items()
    }
    return Recognition(named, cost)


def find_markers(skeleton: Skeleton, points: Float[Array, "point 3"]) -> dict[int, int]:
    """Return the point of each marker of a skeleton; empty if fewer than half are seen.

    Articulated registration without a start: the body with most markers is placed
    wherever three points have the distances of three of its markers; from there the
    next bodies follow, which rotate about joints whose place is known. The place that
    explains most markers counts, and the nearest points among equals. A body of which
    the three markers are not all seen is not the first; then another one is.

    Args:
        skeleton: With its markers.
        points: All points of a frame, in metres.
    """
    if 2 * len(points) <= len(skeleton.marker_labels):
        return {}
    bodies = _rest_bodies(skeleton)
    order = sorted(bodies.markers, key=lambda body: -len(bodies.markers[body]))
    for seed in order:
        if len(bodies.markers[seed]) < MIN_POSE_POINTS:
            break
        found = [
            _follow_links(bodies, seed, X, points)
            for X in _seed_transforms(bodies, seed, points)
        ]
        best = min(found, key=lambda one: one[0], default=(0.0, {}))[1]
        if 2 * len(best) > len(bodies.rest):
            return best
    return {}


def _rest_bodies(skeleton: Skeleton) -> _RestBodies:
    place = skeleton.offset.copy()
    for joint, parent in enumerate(skeleton.parent):
        if parent >= 0:
            place[joint] += place[parent]
    body = rotating_joints(skeleton)
    rest = place[skeleton.marker_joint] + skeleton.marker_offset
    on = body[skeleton.marker_joint]
    markers = {int(one): np.flatnonzero(on == one) for one in np.unique(body)}
    links: dict[int, list[tuple[int, Array]]] = {one: [] for one in markers}
    for joint, parent in enumerate(skeleton.parent):
        if parent >= 0 and body[joint] == joint:
            links[int(body[parent])].append((joint, place[joint]))
            links[joint].append((int(body[parent]), place[joint]))
    return _RestBodies(markers, rest, links)


# --- the first body -------------------------------------------------------------------


def _seed_transforms(
    bodies: _RestBodies, seed: int, points: Float[Array, "point 3"]
) -> list[Float[Array, "4 4"]]:
    """Return where a body may be, the best places first."""
    rest = bodies.rest[bodies.markers[seed]]
    chosen = rest[_widest_triangle(rest)]
    apart = _distances(points, points)
    a, b, c = _distances(chosen, chosen)[[0, 0, 1], [1, 2, 2]]
    is_near = [np.abs(apart - length) < GATE_M for length in (a, b, c)]
    triples = np.array(list(_triangles(*is_near)), dtype=np.int64).reshape(-1, 3)
    if not len(triples):
        return []
    X = geometry.kabsch(chosen, points[triples])
    X = X[np.isfinite(X).all(axis=(1, 2))]
    moved = geometry.apply(X[:, None], rest)
    miss = np.minimum(_distances(moved.reshape(-1, 3), points).min(axis=1), GATE_M)
    cost = miss.reshape(len(X), -1).sum(axis=1)
    return [X[i] for i in np.argsort(cost, kind="stable")[:MAX_SEEDS]]


def _widest_triangle(rest: Float[Array, "marker 3"]) -> Int[Array, " 3"]:
    """Return the two markers that are farthest apart and the one farthest from both."""
    apart = _distances(rest, rest)
    a, b = np.unravel_index(np.argmax(apart), apart.shape)
    third = np.minimum(apart[a], apart[b])
    return np.array([a, b, np.argmax(third)])


def _triangles(
    ab: Bool[Array, "point point"],
    ac: Bool[Array, "point point"],
    bc: Bool[Array, "point point"],
) -> Iterator[tuple[int, int, int]]:
    """Yield triples of points whose three distances fit."""
    for i, j in zip(*np.nonzero(ab), strict=True):
        if i != j:
            for k in np.flatnonzero(ac[i] & bc[j]):
                if k not in (i, j):
                    yield int(i), int(j), int(k)


# --- the other bodies -----------------------------------------------------------------


def _follow_links(
    bodies: _RestBodies,
    seed: int,
    X_seed: Float[Array, "4 4"],
    points: Float[Array, "point 3"],
) -> tuple[float, dict[int, int]]:
    """Return the cost of a place of the first body, and the points of all markers.

    The cost is the sum of distances, `GATE_M` for a marker without a point.
    """
    X, found = {seed: X_seed}, {}
    left = np.ones(len(points), dtype=bool)
    cost, queue = 0.0, [seed]
    while queue:
        body = queue.pop(0)
        markers = bodies.markers[body]
        predicted = geometry.apply(X[body], bodies.rest[markers])
        near = assign_points(np.where(left[:, None], points, np.inf), predicted)
        for marker in np.flatnonzero(near >= 0):
            point = int(near[marker])
            found[int(markers[marker])] = point
            left[point] = False
            cost += float(np.linalg.norm(points[point] - predicted[marker])) - GATE_M
        cost += GATE_M * len(markers)
        for other, centre in bodies.links[body]:
            if other not in X:
                X[other] = _transform_about_joint(
                    bodies, other, centre, X[body], points[left]
                )
                queue.append(other)
    return cost, found


def _transform_about_joint(
    bodies: _RestBodies,
    body: int,
    centre: Float[Array, " 3"],
    X_before: Float[Array, "4 4"],
    points: Float[Array, "point 3"],
) -> Float[Array, "4 4"]:
    """Return the transform of a body about a joint whose place is known.

    Two of its markers and the joint determine it; pairs are tried, those with the
    largest triangles first, until all markers have a point. A body of which fewer are
    seen keeps the angles of the rest pose.
    """
    rest = bodies.rest[bodies.markers[body]]
    best, least = X_before, np.inf
    if not len(rest) or not len(points):
        return best
    place = geometry.apply(X_before, centre)
    candidates = X_before[None]
    for pair in ((), *_pairs_by_area(rest - centre)):
        if pair:
            chosen = np.vstack([centre, rest[list(pair)]])
            candidates = _transforms_about(place, chosen, points)
        if len(candidates):
            moved = geometry.apply(candidates[:, None], rest)
            apart = _distances(moved.reshape(-1, 3), points).min(axis=1)
            miss = np.minimum(apart, GATE_M).reshape(len(candidates), -1)
            first = int(np.argmin(miss.sum(axis=1)))
            if miss[first].sum() < least:
                best, least = candidates[first], miss[first].sum()
            if pair and miss[first].max() < GATE_M:
                break
    return best


def _pairs_by_area(arms: Float[Array, "marker 3"]) -> list[tuple[int, int]]:
    """Return pairs of markers, those with the largest triangles at a joint first."""
    a, b = np.triu_indices(len(arms), 1)
    area = np.linalg.norm(np.cross(arms[a], arms[b]), axis=1)
    order = np.argsort(-area, kind="stable")
    return list(zip(a[order].tolist(), b[order].tolist(), strict=True))


def _transforms_about(
    place: Float[Array, " 3"],
    chosen: Float[Array, "corner 3"],
    points: Float[Array, "point 3"],
) -> Float[Array, "candidate 4 4"]:
    """Return transforms that carry a joint to its place and two markers to points."""
    a, b, c = _distances(chosen, chosen)[[0, 0, 1], [1, 2, 2]]
    reach = _distances(points, place[None])[:, 0]
    fits = np.abs(_distances(points, points) - c) < GATE_M
    fits &= (np.abs(reach - a) < GATE_M)[:, None] & (np.abs(reach - b) < GATE_M)
    np.fill_diagonal(fits, False)
    i, j = np.nonzero(fits)
    if not len(i):
        return np.zeros((0, 4, 4))
    places = np.broadcast_to(place, (len(i), 3))
    X = geometry.kabsch(chosen, np.stack([places, points[i], points[j]], axis=1))
    return np.asarray(X[np.isfinite(X[:, 0, 0])])


def _distances(a: Float[Array, "a 3"], b: Float[Array, "b 3"]) -> Float[Array, "a b"]:
    return np.asarray(np.linalg.norm(a[:, None] - b, axis=-1))
