"""Corruption in the instrument and behind it: fields, noise, gaps, wrong labels."""

import numpy as np
from jaxtyping import Int

from marey.numerics import geometry
from marey.synth.corruption.state import Work, directions
from marey.synth.performance.curves import waves

Array = np.ndarray

FIELD_WAVES = 60


def distort(work: Work) -> None:
    """Bend the magnetic field: sensors seem elsewhere, and turned, by where they are.

    A sum of random plane waves; the turn is half the curl, as of a deforming solid.
    """
    rng, options = work.rng("field"), work.options
    k = rng.normal(size=(FIELD_WAVES, 3)) / options.field_scale
    phase = rng.uniform(0.0, 2.0 * np.pi, FIELD_WAVES)
    a = rng.normal(size=(FIELD_WAVES, 3)) * options.field * np.sqrt(2.0 / FIELD_WAVES)
    argument = work.T[..., :3, 3] @ k.T + phase
    turn = -0.5 * np.sin(argument) @ np.cross(k, a)
    work.T[..., :3, 3] += np.cos(argument) @ a
    work.T[..., :3, :3] = geometry.rotation_exp(turn) @ work.T[..., :3, :3]
    work.note("field", size=options.field, item="sensor")


def rescale(work: Work) -> None:
    """Stretch all positions about the origin."""
    work.points *= work.options.scale
    work.T[..., :3, 3] *= work.options.scale
    work.note("scale", size=work.options.scale)


def colour(work: Work) -> None:
    """Add noise with a memory, in its steady state from the first frame on."""
    rng, options = work.rng("coloured"), work.options
    keep = np.exp(-1.0 / (options.coloured_time * work.rate))
    for values in (work.points, work.T[..., :3, 3]):
        state = rng.normal(size=values.shape[1:])
        for frame in values:
            frame += options.coloured * state
            fresh = rng.normal(size=state.shape)
            state = keep * state + np.sqrt(1.0 - keep**2) * fresh
    work.note("coloured", size=options.coloured)


def whiten(work: Work) -> None:
    """Add white noise to all positions."""
    rng = work.rng("noise")
    for values in (work.points, work.T[..., :3, 3]):
        values += work.options.noise * rng.normal(size=values.shape)
    work.note("noise", size=work.options.noise)


def shake(work: Work) -> None:
    """Add white orientation noise to the sensors, about their own axes."""
    shape = work.T.shape[:2]
    rotvec = work.options.turn_noise * work.rng("turn_noise").normal(size=(*shape, 3))
    work.T[..., :3, :3] = work.T[..., :3, :3] @ geometry.rotation_exp(rotvec)
    work.note("turn_noise", size=work.options.turn_noise, item="sensor")


def blunder(work: Work) -> None:
    """Throw every marker and sensor far off in some of its frames."""
    rng, n = work.rng("gross"), len(work.points)
    count = round(work.options.gross * n)
    for item, values in (("marker", work.points), ("sensor", work.T[..., :3, 3])):
        for index in range(values.shape[1]):
            frames = np.sort(rng.choice(n, count, replace=False))
            sizes = rng.exponential(work.options.gross_size, count)
            values[frames, index] += sizes[:, None] * directions(rng, count)
            for frame, size in zip(frames.tolist(), sizes.tolist(), strict=True):
                work.note(
                    "gross", size=size, item=item, index=index, first=frame, last=frame
                )


def haunt(work: Work) -> None:
    """Let each phantom wander near the figures for a while."""
    rng, n = work.rng("phantoms"), len(work.points)
    times = np.arange(n) / work.rate
    roots = [motion.T_world_root[:, :3, 3] for motion in work.truth.motions]
    for index in np.flatnonzero(work.truth.marker_joint < 0):
        first, last = np.sort(rng.choice(n, 2, replace=n < 2))
        near = roots[int(rng.integers(len(roots)))].mean(axis=0)
        path = near + rng.normal(size=3) * [0.8, 0.8, 0.5]
        drift = 0.05 * waves(rng, times, 3, hertz=0.2)
        shown = slice(int(first), int(last) + 1)
        work.points[shown, index] = (path + drift)[shown]
        where = {"index": int(index), "first": int(first), "last": int(last)}
        work.note("phantoms", size=0.0, item="marker", **where)


def swap(work: Work) -> None:
    """Trade two near markers for a while, again and again."""
    rng, n = work.rng("swaps"), len(work.points)
    real = np.flatnonzero(work.truth.marker_joint >= 0)
    if len(real) < 2:
        return
    for _ in range(work.options.swaps):
        first = int(rng.integers(n))
        length = rng.exponential(work.options.swap_seconds * work.rate)
        last = min(first + int(length), n - 1)
        a = int(rng.choice(real))
        away = np.linalg.norm(
            work.truth.points[first] - work.truth.points[first, a], axis=-1
        )
        away[a] = np.inf
        b = int(np.nanargmin(away))
        shown = slice(first, last + 1)
        work.points[shown, [a, b]] = work.points[shown, [b, a]]
        where = {"index": a, "other": b, "first": first, "last": last}
        work.note("swaps", size=away[b], item="marker", **where)


def occlude(work: Work) -> None:
    """Hide markers and sensors in gaps; each loses its share of frames exactly."""
    options, truth = work.options, work.truth
    rng = work.rng("gaps")
    for index, label in enumerate(truth.marker_labels):
        share = options.gap_of.get(label, options.gaps)
        hidden = _gaps(rng, len(work.points), share, options.gap_seconds * work.rate)
        if truth.marker_joint[index] >= 0:
            _hide(work, work.points, "gaps", "marker", index, hidden)
    rng = work.rng("sensor_gaps")
    for index in range(work.T.shape[1]):
        length = options.gap_seconds * work.rate
        hidden = _gaps(rng, len(work.T), options.sensor_gaps, length)
        _hide(work, work.T, "sensor_gaps", "sensor", index, hidden)


def _gaps(
    rng: np.random.Generator, n: int, share: float, length: float
) -> list[tuple[int, int]]:
    """Return spans of frames, none touching another, that hold a share of all."""
    lost = round(share * n)
    if lost == 0:
        return []
    count = min(max(round(lost / max(length, 1.0)), 1), lost, n - lost + 1)
    sizes = 1 + _parts(rng, lost - count, count)
    apart = np.ones(count + 1, dtype=np.int64)
    apart[[0, -1]] = 0
    apart += _parts(rng, n - lost - (count - 1), count + 1)
    starts = np.cumsum(apart[:-1]) + np.concatenate([[0], np.cumsum(sizes[:-1])])
    return [(int(a), int(a + k - 1)) for a, k in zip(starts, sizes, strict=True)]


def _parts(rng: np.random.Generator, total: int, count: int) -> Int[Array, " count"]:
    """Return a total cut at random places into whole parts, some perhaps empty."""
    cuts = np.sort(rng.integers(0, total + 1, count - 1))
    return np.diff(np.concatenate([[0], cuts, [total]])).astype(np.int64)


def _hide(
    work: Work,
    values: Array,
    kind: str,
    item: str,
    index: int,
    spans: list[tuple[int, int]],
) -> None:
    for first, last in spans:
        values[first : last + 1, index] = np.nan
        seconds = (last - first + 1) / work.rate
        work.note(kind, size=seconds, item=item, index=index, first=first, last=last)


def drop(work: Work) -> None:
    """Lose whole frames: leave them empty, or show the one before again."""
    n = len(work.points)
    lost = 1 + work.rng("dropped").permutation(n - 1)[: round(work.options.dropped * n)]
    for frame in np.sort(lost).tolist():
        for values in (work.points, work.T):
            repeat = work.options.drop_style == "repeat"
            values[frame] = values[frame - 1] if repeat else np.nan
        work.note("dropped", size=1.0 / work.rate, first=frame, last=frame)
