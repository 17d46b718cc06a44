"""Plants: stretches in which a point stays where it is, to a fraction of a frame."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float

from marey.numerics.robust import runs
from marey.pose.contact.hmm import noise_of

Array = np.ndarray

# A shorter stand is none, in seconds.
SHORTEST = 0.04

# Stands this close in time (seconds) and place (heights of the figure) are one.
PAUSE, APART = 0.25, 0.012

# An edge is looked for so long before and after the change of state, in seconds, and
# until the point is this far away, in heights of the figure.
INSIDE, OUTSIDE, AWAY = 0.25, 0.15, 0.018

# A point leaves its stand with this power of time: speed and acceleration do not jump.
POWER = 3.0

# What a place that was guessed is worth beside one that was seen.
UNSEEN = 0.02

# A planted point is this close to its anchor: a share of the figure's height, and so
# many standard deviations of its noise.
NEAR, NOISE = 0.0025, 4.0

MEDIAN_STEPS = 30

# An edge must explain so many times as much as noise explains by chance along one axis;
# motions below this, in metres, are none.
SURE, EXACT = 25.0, 1e-6

# Fewer frames do not tell an edge.
FEWEST = 5

# Edges are looked for in steps of so many frames.
STEP = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class Plant:
    """A point that stays where it is for a while."""

    spot: int
    start: float
    """Frame at which it comes to stand; need not be whole."""

    end: float
    """Frame at which it leaves."""

    anchor: Float[Array, " 3"]
    """Where it stands, in metres."""

    @property
    def frames(self) -> Array:
        """The whole frames of the stand."""
        return np.arange(int(np.ceil(self.start)), int(np.floor(self.end)) + 1)


def plants_of(
    state: Bool[Array, "frame spot"],
    paths: Float[Array, "frame spot 3"],
    trust: Float[Array, "frame spot"],
    rate: float,
    tall: float,
) -> list[Plant]:
    """Return the plants of all points, in order of their beginning.

    Args:
        state: Frames in which each point stands, roughly.
        paths: Where it is; NaN where not known.
        trust: How well that is known, 0 to 1.
        rate: Frames per second.
        tall: Height of the figure, in metres.
    """
    found = []
    near = np.hypot(NEAR * tall, NOISE * noise_of(paths))
    for spot in range(state.shape[1]):
        path = paths[:, spot]
        stands = [_stand(spot, a, b, path) for a, b in runs(state[:, spot])]
        stands = [p for p in stands if np.isfinite(p.anchor).all()]
        for plant in _joined(stands, path, trust[:, spot], rate, tall):
            sharp = _sharpened(plant, path, trust[:, spot], rate, tall)
            sharp = _trimmed(sharp, path, float(near[spot]))
            cut = plant.start == 0.0 or plant.end == len(path) - 1.0
            long = cut or sharp.end - sharp.start >= SHORTEST * rate
            if long and len(sharp.frames) > 1:
                found.append(sharp)
    return sorted(found, key=lambda plant: plant.start)


def _stand(spot: int, first: int, last: int, path: Float[Array, "frame 3"]) -> Plant:
    return Plant(spot, float(first), float(last), _middle(path[first : last + 1]))


def _middle(path: Float[Array, "frame 3"]) -> Float[Array, " 3"]:
    """Return the place with the least sum of distances to all, NaN if none is known.

    The median in space (Weiszfeld's steps): exact where most places are the same.
    """
    known = path[np.isfinite(path).all(axis=1)]
    if not len(known):
        return np.full(3, np.nan)
    middle = known.mean(axis=0)
    for _ in range(MEDIAN_STEPS):
        away = np.linalg.norm(known - middle, axis=-1)
        weight = 1.0 / np.maximum(away, 1e-9)
        middle = weight @ known / weight.sum()
    return np.asarray(middle)


def _joined(
    stands: list[Plant],
    path: Float[Array, "frame 3"],
    trust: Float[Array, " frame"],
    rate: float,
    tall: float,
) -> Iterator[Plant]:
    """Yield stands, those in one place with a short pause between as one.

    Unless the point was seen to go away in between, as a foot that taps does.
    """
    now: Plant | None = None
    for after in stands:
        if now is None:
            now = after
            continue
        between = slice(int(now.end) + 1, int(after.start))
        away = np.linalg.norm(path[between] - now.anchor, axis=-1)
        left = ((away > AWAY * tall) & (trust[between] > 0.5)).any()
        apart = float(np.linalg.norm(after.anchor - now.anchor))
        near = after.start - now.end < PAUSE * rate and apart < APART * tall
        if near and not left:
            longer = now.end - now.start >= after.end - after.start
            anchor = now.anchor if longer else after.anchor
            now = replace(now, end=after.end, anchor=anchor)
        else:
            yield now
            now = after
    if now is not None:
        yield now


def _sharpened(
    plant: Plant,
    path: Float[Array, "frame 3"],
    trust: Float[Array, " frame"],
    rate: float,
    tall: float,
) -> Plant:
    """Return the plant with edges, and an anchor from what is between them."""
    last = len(path) - 1.0
    turned = replace(plant, start=last - plant.end, end=last - plant.start)
    start = last - _leaves(turned, path[::-1], trust[::-1], rate, tall)
    end = _leaves(plant, path, trust, rate, tall)
    if start >= end:
        return plant
    sharp = replace(plant, start=start, end=end)
    anchor = _middle(path[sharp.frames])
    return replace(sharp, anchor=anchor) if np.isfinite(anchor).all() else sharp


def _trimmed(plant: Plant, path: Float[Array, "frame 3"], near: float) -> Plant:
    """Return the plant without ends in which the point has crept away."""
    away = np.linalg.norm(path[plant.frames] - plant.anchor, axis=-1)
    close = plant.frames[~(away > near)]
    if not len(close) or len(close) == len(away):
        return plant
    start, end = max(plant.start, close[0]), min(plant.end, close[-1])
    trimmed = replace(plant, start=float(start), end=float(end))
    anchor = _middle(path[trimmed.frames])
    return replace(trimmed, anchor=anchor) if np.isfinite(anchor).all() else trimmed


def _leaves(
    plant: Plant,
    path: Float[Array, "frame 3"],
    trust: Float[Array, " frame"],
    rate: float,
    tall: float,
) -> float:
    """Return the frame at which a point begins to leave its stand.

    A stand is smooth at its edges: speed tells of its end only when the point is well
    on its way. So the edge is the time from which a curve that starts there, growing
    as a power of the time since, fits the path best.
    """
    first, last = int(plant.start), int(plant.end)
    begin = max((first + last) // 2, last - round(INSIDE * rate))
    away = np.linalg.norm(path[last:] - plant.anchor, axis=-1)
    far = np.flatnonzero(away > AWAY * tall)
    stop = last + min(int(far[0]) if len(far) else len(away), round(OUTSIDE * rate))
    frames = np.arange(begin, min(max(stop, last + 2), len(path) - 1) + 1)
    known = frames[np.isfinite(path[frames]).all(axis=1)]
    if len(known) < FEWEST:
        return plant.end
    return _best_edge(known.astype(float), path[known], trust[known], plant.end)


def _best_edge(
    frames: Float[Array, " frame"],
    path: Float[Array, "frame 3"],
    trust: Float[Array, " frame"],
    fallback: float,
) -> float:
    """Return the edge whose curve leaves the least squares of a path unexplained.

    A curve that explains no more than noise would is no edge.
    """
    edges = np.arange(frames[0] + 1.0, frames[-1] - 1.0 + STEP, STEP)
    weight = (trust + UNSEEN) / np.sum(trust + UNSEEN)
    curve = np.clip(frames - edges[:, None], 0.0, None) ** POWER
    curve = curve - (curve @ weight)[:, None]
    around = path - weight @ path
    size = np.maximum(curve**2 @ weight, 1e-30)
    along = curve @ (around * weight[:, None])
    explained = np.sum(along**2, axis=-1) / size
    best = int(explained.argmax())
    left = weight @ np.sum(around**2, axis=-1) - explained[best]
    by_chance = SURE * max(left, 0.0) / (3.0 * len(frames)) + EXACT**2
    return float(edges[best]) if explained[best] > by_chance else fallback
