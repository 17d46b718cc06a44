"""What a calibration says of its answer: what is known, what is left open."""

from collections.abc import Iterator

import numpy as np

from marey.calibration.solver.loop import Fit
from marey.report import Finding, mark_name
from marey.skeleton import Skeleton

Array = np.ndarray

OPEN = 0.03
"""A joint known worse than this along some direction is told, in metres."""

STRAYS = 4.0
"""A marker that strays so many times as far as usual is told."""

STRAYS_LEAST = 0.01
"""And by this at least, in metres."""

WHITE = 0.5
"""Below this share of white noise, skin or slack moves the markers."""


def verdicts(skeleton: Skeleton, fit: Fit, *, person: bool) -> Iterator[Finding]:
    """Return what is worth telling of a calibration."""
    n_frames = sum(len(some.points) for some in fit.poses)
    yield Finding(
        "calibrated",
        "calibrate",
        "info",
        f"{len(fit.figure.names)} segments fitted to {n_frames} frames of "
        f"{len(fit.poses)} session{'s' if len(fit.poses) > 1 else ''}: markers are "
        f"{1e3 * fit.rms():.1f} mm off (rms)",
        value=fit.rms(),
    )
    if fit.white < WHITE:
        yield Finding(
            "markers-drift",
            "calibrate",
            "info",
            "markers stray with the pose rather than at random, as skin does: all "
            "frames together count as one sample, and doubts are as wide",
            value=fit.white,
        )
    if person and "LeftShoulder" in fit.figure.names:
        yield Finding(
            "shoulders-move",
            "calibrate",
            "info",
            "the shoulders move against the chest: each has a joint of its own",
            subject="LeftShoulder, RightShoulder",
        )
    yield from _open_joints(skeleton, fit, person=person)
    yield from _strays(fit)


def _open_joints(skeleton: Skeleton, fit: Fit, *, person: bool) -> Iterator[Finding]:
    hinges = {fit.figure.names[axis.child] for axis in fit.figure.axes}
    for joint, name in enumerate(skeleton.names):
        C = skeleton.covariance[joint]
        if not np.isfinite(C).all():
            continue
        values, ways = np.linalg.eigh(C)
        sd, way = float(np.sqrt(max(values[-1], 0.0))), ways[:, -1]
        if sd <= OPEN:
            continue
        where = ", ".join(f"{x:.2f}" for x in way * np.sign(way[np.abs(way).argmax()]))
        advice = "bend and twist it more, about two axes"
        if name in hinges and not person:
            advice = "it turned about one axis only, along which any place would do"
        elif fit.figure.index(name) in fit.start.unknown:
            advice = "it did not turn, and stays where it was: bend and twist it"
        yield Finding(
            "joint-open",
            "calibrate",
            "info" if person or name in hinges else "warning",
            f"known to ±{1e3 * sd:.0f} mm only along ({where}) of "
            f"{mark_name(skeleton.names[skeleton.parent[joint]])}: {advice}",
            subject=name,
            value=sd,
        )


def _strays(fit: Fit) -> Iterator[Finding]:
    usual = float(np.median(fit.shape.noise))
    worst = fit.shape.noise.max(axis=0)
    for label, far in zip(fit.figure.labels, worst.tolist(), strict=True):
        if far > max(STRAYS * usual, STRAYS_LEAST):
            yield Finding(
                "marker-strays",
                "calibrate",
                "warning",
                f"strays by {1e3 * far:.0f} mm, the others by {1e3 * usual:.0f}: look "
                "whether it slipped, hangs on cloth or has another's label",
                subject=label,
                value=far,
            )


def failed(why: str) -> Finding:
    """Return that a calibration came to nothing."""
    return Finding(
        "not-calibrated",
        "calibrate",
        "warning",
        f"the skeleton stays as it was: {why}",
    )
