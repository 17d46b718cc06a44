"""Names for points without labels: prediction and assignment, frame after frame."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from marey.live.frame import MAX_NAMES, UNLABELLED, Frame
from marey.live.posing.tracking import LivePose
from marey.numerics import Array, Float, Int, geometry
from marey.numerics.thresholds import MIN_POSE_POINTS, OUTLIER_SD, SKIN_MOTION_M

GATE_M = OUTLIER_SD * SKIN_MOTION_M
"""Largest distance of a point from its prediction, in metres. Higher follows faster
markers, and confuses more of those that come close."""

COASTING_FRAMES = 12
"""Frames for which a point that is not seen is predicted by its own velocity. Higher
bridges longer gaps, less surely. A point that was seen in fewer is forgotten with its
name when it goes: a reflection. Chosen by hand."""

N_NEIGHBOURS = 6
"""Points around a lost one that predict where it is. Higher is surer on rigid parts and
worse across joints. Chosen by hand."""


MAX_POINTS = 64
"""Points that are compared with those of the frame before as parts. Higher takes longer
in a frame of many reflections."""


Places = Mapping[str, Float[Array, " 3"]]
"""Positions by name, in metres."""


@dataclass(slots=True)
class _Track:
    """One point over time."""

    position: Float[Array, " 3"]
    velocity: Float[Array, " 3"]
    """Metres per frame."""

    age: int = 1
    """Frames in which it was seen."""

    missed: int = 0
    """Frames since it was seen, those that were lost on their way included."""

    around: Mapping[str, Float[Array, " 3"]] | None = None
    """Where its neighbours were when it was seen last."""


class PointLabeller:
    """Names the points of a stream that come without labels.

    Every point continues the track whose predicted position it is nearest to, all
    together at the least total distance (linear assignment) and within a gate. Tracks
    are predicted by constant velocity over the frames that passed, lost ones included;
    a new one moves as its neighbours do. Points that struck or were struck are beyond
    the gate: they are found where their rigid part is, then where the nearest point
    that was found leads, each by their velocity and by their last position. A point
    that was lost is expected where the tracked skeleton has it or, before one is known,
    where its neighbours have carried it. Points that last for a few frames only are
    ghosts: their names are used again.
    """

    def __init__(self) -> None:
        self._tracks: dict[str, _Track] = {}
        self._expected: Mapping[str, Float[Array, " 3"]] = {}
        self._names: list[str] = []
        self._number, self._n_frames = 0, 1
        self._renames: deque[Mapping[str, str]] = deque()
        self._labels: tuple[str, ...] = ()
        self._is_bare = np.zeros(0, dtype=bool)
        self.is_used = False
        """Whether points without labels have come."""

    def expect(self, pose: LivePose) -> None:
        """Keep where skeletons have their markers, to find them again."""
        if not self.is_used:
            return
        expected: dict[str, Float[Array, " 3"]] = {}
        for subject in pose.subjects:
            skeleton = subject.skeleton
            T = subject.T_world_joint[skeleton.marker_joint]
            positions = geometry.apply(T, skeleton.marker_offset)
            expected |= dict(zip(skeleton.marker_labels, positions, strict=True))
        self._expected = expected

    def rename(self, labels: Mapping[str, str]) -> None:
        """Give points that have a name the label of a marker, from the next frame on.

        Any thread may call this.
        """
        self._renames.append(labels)

    def _apply_renames(self, labels: Mapping[str, str]) -> None:
        for name, label in labels.items():
            if name in self._tracks:
                track = self._tracks.pop(name)
                if track.age < COASTING_FRAMES:  # it may come from another marker
                    track.velocity = self._velocity_at(track.position)
                self._tracks[label] = track
                self._names.remove(name)
                if label not in self._names:
                    self._names.append(label)

    def label(self, frame: Frame) -> Frame:
        """Return the frame with a lasting name for every point without a label."""
        if frame.labels != self._labels:
            self._labels = frame.labels
            bare = [label.startswith(UNLABELLED) for label in frame.labels]
            self._is_bare = np.array(bare, dtype=bool)
            self.is_used |= any(bare)
        if not self.is_used:
            return frame
        while self._renames:
            self._apply_renames(self._renames.popleft())
        self._n_frames = max(1, frame.number - self._number)
        self._number = frame.number
        is_bare = self._is_bare
        points = frame.points[is_bare]
        points = points[np.isfinite(points[:, 0])]
        named = {
            label: point
            for label, point, bare in zip(
                frame.labels, frame.points, is_bare, strict=True
            )
            if not bare
        }
        seen = {label for label, point in named.items() if np.isfinite(point[0])}
        found = self._assign(points, seen)
        self._update(found)
        self._names += [name for name in self._tracks if name not in self._names]
        unseen = np.full(3, np.nan)
        values = named | {name: found.get(name, unseen) for name in self._names}
        values |= {label: named[label] for label in seen}
        return replace(
            frame,
            labels=tuple(values),
            points=np.array([*values.values()]).reshape(-1, 3),
        )

    def _assign(
        self, points: Float[Array, "point 3"], seen: set[str]
    ) -> dict[str, Float[Array, " 3"]]:
        """Return the points by name: of known tracks, then of new ones."""
        found: dict[str, Float[Array, " 3"]] = {}
        for match, places in self._expect_in_turn(seen, found):
            if not len(points):
                break
            left = {name: at for name, at in places.items() if name not in found}
            found |= (matched := match(points, left))
            taken = [tuple(point) for point in matched.values()]
            points = np.array([p for p in points if tuple(p) not in taken])
            points = points.reshape(-1, 3)
        for point in points:
            name = self._new_name(found)
            if name:
                found[name] = point
        return found

    def _expect_in_turn(
        self, seen: set[str], found: Places
    ) -> Iterator[tuple[Callable[[Array, Places], Places], Places]]:
        """Yield where points are expected, and how they are matched, the surest first.

        Args:
            seen: Names that the sender gave to points of this frame.
            found: The points by name so far, which grow meanwhile.
        """
        predicted = {n: p for n, p in self._predict().items() if n not in seen}
        known = {n: p for n, p in predicted.items() if n in self._expected}
        others = {n: p for n, p in predicted.items() if n not in known}
        yield _match, known  # markers of a skeleton
        yield _match, {n: p for n, p in self._expected.items() if n not in seen}
        yield _match, others
        ahead = {n: p for n, p in predicted.items() if self._is_seen(n)}
        before = {name: self._tracks[name].position for name in ahead}
        for places in (ahead, before):
            yield _match_parts, places
        for places in (ahead, before):
            n_before = -1
            while len(found) > n_before:  # each may lead to the next
                n_before = len(found)
                yield _match, self._move_along(places, found)

    def _move_along(self, places: Places, found: Places) -> Places:
        """Return places of points not found yet, moved as the nearest one that was.

        It is away from its own place by as much.
        """
        names = [name for name in found if name in places]
        left = [name for name in places if name not in found]
        if not names or not left:
            return {}
        positions = np.array([self._tracks[name].position for name in names])
        steps = np.array([found[name] - places[name] for name in names])
        moved = {}
        for name in left:
            apart = np.linalg.norm(positions - self._tracks[name].position, axis=1)
            moved[name] = places[name] + steps[int(np.argmin(apart))]
        return moved

    def _predict(self) -> dict[str, Float[Array, " 3"]]:
        """Return where every known point is expected."""
        predicted = dict(self._expected)
        for name, track in self._tracks.items():
            steps = track.missed + self._n_frames
            if steps <= COASTING_FRAMES:
                predicted[name] = track.position + steps * track.velocity
            elif name not in predicted:
                predicted[name] = self._carry(track)
        return predicted

    def _carry(self, track: _Track) -> Float[Array, " 3"]:
        """Return where the neighbours have carried a lost point (Kabsch)."""
        around = track.around or {}
        now = {n: self._tracks[n].position for n in around if self._is_seen(n)}
        if len(now) < MIN_POSE_POINTS:
            return track.position
        before = np.array([around[name] for name in now])
        T = geometry.kabsch(before, np.array([*now.values()]))
        carried = geometry.apply(T, track.position)
        return carried if np.isfinite(carried).all() else track.position

    def _is_seen(self, name: str) -> bool:
        return name in self._tracks and not self._tracks[name].missed

    def _update(self, found: dict[str, Float[Array, " 3"]]) -> None:
        """Move the tracks on; forget ghosts."""
        for name, track in [*self._tracks.items()]:
            if name in found:
                continue
            if track.missed == 0:
                track.around = self._neighbours(name)
            track.missed += self._n_frames
            if track.age < COASTING_FRAMES and track.missed > COASTING_FRAMES:
                del self._tracks[name]
        for name, point in found.items():
            old = self._tracks.get(name)
            if old is None:
                self._tracks[name] = _Track(point, self._velocity_at(point))
                continue
            steps = old.missed + self._n_frames
            is_near = steps <= COASTING_FRAMES
            old.velocity = (point - old.position) / steps if is_near else np.zeros(3)
            old.position, old.missed, old.age = point, 0, old.age + 1

    def _velocity_at(self, point: Float[Array, " 3"]) -> Float[Array, " 3"]:
        """Return the median velocity of the nearest points seen before, or zero."""
        known = [one for one in self._tracks.values() if one.age > 1 and not one.missed]
        if not known:
            return np.zeros(3)
        apart = np.linalg.norm([one.position - point for one in known], axis=1)
        nearest = np.argsort(apart, kind="stable")[:N_NEIGHBOURS]
        return np.asarray(np.median([known[i].velocity for i in nearest], axis=0))

    def _neighbours(self, name: str) -> dict[str, Float[Array, " 3"]]:
        """Return where the nearest points are now, by name."""
        own = self._tracks[name].position
        others = [
            (float(np.linalg.norm(track.position - own)), other)
            for other, track in self._tracks.items()
            if other != name and not track.missed
        ]
        nearest = [other for _, other in sorted(others)[:N_NEIGHBOURS]]
        return {other: self._tracks[other].position for other in nearest}

    def _new_name(self, used: Mapping[str, object]) -> str:
        """Return a name that is free; "" if there are too many."""
        for number in range(1, MAX_NAMES + 1):
            name = f"P{number}"
            if name not in self._tracks and name not in used:
                return name
        return ""


def assign_points(
    points: Float[Array, "point 3"], places: Float[Array, "place 3"]
) -> Int[Array, " place"]:
    """Return the point at each place, or -1: the least total distance within the gate.

    Linear assignment by the Hungarian method.

    Args:
        points: In metres.
        places: Where points are expected, in metres.
    """
    from scipy.optimize import linear_sum_assignment  # slow to import

    apart = np.linalg.norm(places[:, None] - points, axis=-1)
    # Beyond the gate all are equally far: they must not draw others along.
    rows, columns = linear_sum_assignment(np.minimum(apart, GATE_M))
    near = apart[rows, columns] < GATE_M
    found = np.full(len(places), -1)
    found[rows[near]] = columns[near]
    return found


def _match(
    points: Float[Array, "point 3"], places: Places
) -> dict[str, Float[Array, " 3"]]:
    """Return points by the names of the places that they are assigned to."""
    if not places or not len(points):
        return {}
    found = assign_points(points, np.array([*places.values()]))
    named = zip(places, found.tolist(), strict=True)
    return {name: points[point] for name, point in named if point >= 0}


def _match_parts(
    points: Float[Array, "point 3"], places: Places
) -> dict[str, Float[Array, " 3"]]:
    """Return points by the names of places that lie alike, one rigid part at a time.

    A part that is seen for the second time has no velocity yet, and one that strikes
    has another: it may be beyond the gate, but no further than it is long. Of all steps
    from a place to a point, the one after which most points are near places is its
    step.
    """
    found: dict[str, Float[Array, " 3"]] = {}
    if max(len(points), len(places)) > MAX_POINTS:
        return found
    places = dict(places)
    while min(len(points), len(places)) >= MIN_POSE_POINTS:
        before = np.array([*places.values()])
        step = _common_step(points, before)
        best = assign_points(points, before + step)
        part = before[best >= 0]
        if len(part) < MIN_POSE_POINTS or np.linalg.norm(step) > _length(part):
            break
        pairs = zip(places, best.tolist(), strict=True)
        found |= {name: points[point] for name, point in pairs if point >= 0}
        places = {name: at for name, at in places.items() if name not in found}
        points = np.delete(points, best[best >= 0], axis=0)
    return found


def _common_step(
    points: Float[Array, "point 3"], places: Float[Array, "place 3"]
) -> Float[Array, " 3"]:
    """Return the step from a place to a near point after which all are nearest points.

    Not farther than the places are apart; zero if there is no such point.
    """
    steps = points[:, None] - places
    far = np.linalg.norm(steps, axis=-1)
    rank = far.argsort(axis=0, kind="stable").argsort(axis=0, kind="stable")
    steps = steps[(rank < N_NEIGHBOURS) & (far < _length(places))]
    if not len(steps):
        return np.zeros(3)
    moved = (places + steps[:, None]).reshape(-1, 3)
    apart = np.linalg.norm(moved[:, None] - points, axis=-1).min(axis=1)
    cost = np.minimum(apart, GATE_M).reshape(len(steps), -1).sum(axis=1)
    return np.asarray(steps[int(np.argmin(cost))])


def _length(places: Float[Array, "place 3"]) -> float:
    """Return the largest distance between two places, in metres."""
    return float(np.linalg.norm(places[:, None] - places, axis=-1).max())
