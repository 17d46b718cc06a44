"""The whole fit of one figure: poses, steps, noise and temper in turn."""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int

from marey.calibration.init.landmarks import Start
from marey.calibration.init.poses import chosen_frames, first_poses
from marey.calibration.noise_model import noise_of, pairs_of, usual_turns, white_share
from marey.calibration.priors import Prior
from marey.calibration.solver.levenberg_marquardt import (
    FIRST,
    Poses,
    adjusted,
    rests,
    settled,
)
from marey.calibration.unknowns import Figure, Shape

Array = np.ndarray

ROUNDS = 16
"""Most turns, each of a step and the noise after it."""

SAME_NOISE = 0.05
"""Turns are over when no marker's scale changes by more than this share."""

BEFORE_WHITE = 4
"""Turns before the white share is asked for."""


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """A figure after its calibration."""

    figure: Figure
    shape: Shape
    poses: tuple[Poses, ...]
    prior: Prior
    temper: float
    white: float
    start: Start
    leverage: tuple[Float[Array, "_ marker"], ...]
    """How much of each position its pose takes up, 0 to 3."""

    rms_before: float
    """Root mean square distance of all markers at the start, in metres."""

    @property
    def order(self) -> Int[Array, " marker"]:
        """Number of each marker among those of the problem."""
        return self.start.order

    def rms(self) -> float:
        """Return the root mean square distance of all markers, in metres."""
        return rms_of(self.figure, self.shape, self.poses)


def rms_of(figure: Figure, shape: Shape, poses: tuple[Poses, ...]) -> float:
    """Return the root mean square distance of markers from their places, in metres."""
    total, count = 0.0, 0
    for session in range(len(poses)):
        rest, weight, _ = rests(figure, shape, poses, session)
        seen = weight > 0.0
        total += float(np.sum(rest[seen] ** 2))
        count += int(seen.sum())
    return float(np.sqrt(total / max(count, 1)))


def temper_of(white: float, n_frames: int, independent: float) -> float:
    """Return how much what is known beforehand counts against so many frames.

    Noise that is new in every frame makes each frame count. Skin that moves with the
    pose does not: however long a walk is, it tells one sample.
    """
    return white + (1.0 - white) * max(n_frames / independent, 1.0)


def posed(start: Start, sessions: tuple[Array, ...], most: int) -> tuple[Poses, ...]:
    """Return the chosen frames of all sessions with the poses of the first shape."""
    out = []
    for session, points in enumerate(sessions):
        some = points[np.ix_(chosen_frames(points, most), start.order)]
        out.append(first_poses(start.figure, start.shape, session, some))
    return settled(start.figure, start.shape, tuple(out), 12, 1e-3)


def fitted(
    start: Start,
    sessions: tuple[Float[Array, "_ marker 3"], ...],
    *,
    most: int = 80,
    independent: float = 1.0,
    rounds: int = ROUNDS,
    adapt: bool = True,
) -> Fit:
    """Return a figure calibrated over the chosen frames of all sessions.

    Args:
        start: The figure and what is known of it.
        sessions: Markers of every session at full rate, as the start's figure was
            made from.
        most: Most frames of a session.
        independent: Samples that all frames are worth where skin moves.
        rounds: Most turns of steps and noise.
        adapt: Whether the white share is found; else it is taken for none.
    """
    figure, shape = start.figure, start.shape
    poses = posed(start, sessions, most)
    before = rms_of(figure, shape, poses)
    n_frames = sum(len(some.points) for some in poses)
    prior = Prior.of(start.rows, len(poses))
    white, damping = 0.0, FIRST
    temper = temper_of(white, n_frames, independent)
    for turn in range(rounds):
        step = adjusted(figure, shape, poses, prior, temper, damping)
        shape, poses, damping = step.shape, step.poses, step.damping
        noise = noise_of(figure, shape, poses, step.leverage, start.least_noise)
        change = float(np.abs(np.log(noise / shape.noise)).max())
        shape = replace(shape, noise=noise, usual=usual_turns(figure, poses))
        if turn + 1 == BEFORE_WHITE and adapt:
            pairs = tuple(pairs_of(points[:, start.order]) for points in sessions)
            white = white_share(figure, shape, pairs)
            temper = temper_of(white, n_frames, independent)
        elif step.done and change < SAME_NOISE and turn + 1 >= BEFORE_WHITE:
            break
    leverage = step.leverage
    return Fit(
        figure, shape, poses, prior, temper, white, start, leverage, rms_before=before
    )
