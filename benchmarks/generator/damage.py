"""What cameras and skin do to markers: noise, gaps, swaps and slips."""

import numpy as np

from benchmarks.generator.person import Person
from benchmarks.generator.rotations import Array


def add_noise(points: Array, sd: float, seed: int = 0) -> Array:
    """Return points with white noise of so many metres per coordinate."""
    rng = np.random.default_rng([seed, 19])
    return np.asarray(points + rng.normal(scale=sd, size=points.shape))


def hide(
    points: Array, share: float, seed: int = 0, mean_frames: float = 25.0
) -> Array:
    """Return points with gaps, geometric in length, that cover a share of all."""
    rng = np.random.default_rng([seed, 23])
    points = points.copy()
    begin = share / (1.0 - share) / mean_frames
    for marker in range(points.shape[1]):
        hidden = False
        for frame, draw in enumerate(rng.random(len(points))):
            hidden = draw > 1.0 / mean_frames if hidden else draw < begin
            if hidden:
                points[frame, marker] = np.nan
    return points


def swap(points: Array, person: Person, count: int, seed: int = 0) -> Array:
    """Return points in which markers of one segment have changed places for a while."""
    rng = np.random.default_rng([seed, 29])
    points = points.copy()
    for _ in range(count):
        segment = rng.choice(person.marker_segment)
        pair = rng.choice(np.flatnonzero(person.marker_segment == segment), 2, False)
        first = rng.integers(len(points) * 3 // 4)
        frames = slice(first, first + rng.integers(20, 120))
        points[frames, pair] = points[frames, pair[::-1]]
    return points


def slip(
    points: Array, R: Array, person: Person, size: float, count: int, seed: int = 0
) -> Array:
    """Return points in which markers sit elsewhere on their segment from some time."""
    rng = np.random.default_rng([seed, 31])
    points = points.copy()
    for marker in rng.choice(len(person.marker), count, replace=False):
        first = rng.integers(len(points) // 4, len(points) * 3 // 4)
        direction = rng.normal(size=3)
        direction *= size / np.linalg.norm(direction)
        points[first:, marker] += R[first:, person.marker_segment[marker]] @ direction
    return points
