"""Centres of ball joints against the Cramér-Rao bound.

Two bodies of four markers each rotate about a common centre. Nothing is known but the
markers: shapes, poses and the centre are estimated from the same noisy frames, and the
bound is that of all of these together. A ratio of 1 is the best that any unbiased
estimator can do. Generated here, without `marey.synth`.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

import marey
from benchmarks.generator.rotations import Array, align, smooth_noise, turn
from benchmarks.harness.task import Figure, Row, Setting

HEADLINE = "x bound"
KEY_CASES = ("*, auto",)
MARKERS = 4
ESTIMATORS = ("least_squares", "corrected", "auto")
NOISES_M = (0.2e-3, 1e-3, 3e-3)
SWINGS = {"wide": 0.5, "narrow": 0.15}
"""Standard deviation of the angles between the bodies, in radians."""


@dataclass(frozen=True)
class Pair:
    """Two bodies with a common point.

    Attributes:
        parent: Markers of the first body in its frame.
        child: Markers of the second, from the joint.
        center: The joint in the frame of the first.
        R_parent: Rotations of the first in the world.
        R_child: Rotations of the second in the frame of the first.
        shift: Positions of the first.
    """

    parent: Array
    child: Array
    center: Array
    R_parent: Array
    R_child: Array
    shift: Array

    @property
    def points(self) -> Array:
        """Markers in the world, (frame, marker, 3)."""
        local = np.einsum("fij,mj->fmi", self.R_child, self.child) + self.center
        first = np.broadcast_to(self.parent, (len(local), MARKERS, 3))
        both = np.concatenate([first, local], axis=1)
        turned = np.einsum("fij,fmj->fmi", self.R_parent, both)
        return np.asarray(turned + self.shift[:, None])


def measure(setting: Setting) -> Iterator[Row]:
    n_frames, draws = setting.choose((1000, 50), (300, 20))
    for swing in SWINGS:
        for noise in NOISES_M:
            pair = make_pair(n_frames, SWINGS[swing])
            bound = cramer_rao_bound(pair, noise)
            errors = np.array([errors_of(pair, noise, seed) for seed in range(draws)])
            for estimator, error in zip(ESTIMATORS, errors.T, strict=True):
                rms = float(np.sqrt(np.mean(error**2)))
                figures: dict[str, Figure] = {
                    "error, rms [mm]": 1e3 * rms,
                    "bound [mm]": 1e3 * bound,
                    "x bound": rms / bound,
                }
                yield Row(f"{swing}, {1e3 * noise:g} mm, {estimator}", figures)


def make_pair(n_frames: int, swing: float, seed: int = 0) -> Pair:
    """Return a thigh-like body that swings on a pelvis-like one."""
    rng = np.random.default_rng([seed, 37])
    time = np.arange(n_frames) / 100.0
    sway = smooth_noise(rng, time, 6, 0.7)
    return Pair(
        rng.uniform(-0.12, 0.12, (MARKERS, 3)),
        rng.uniform(-0.06, 0.06, (MARKERS, 3)) - np.array([0.0, 0.0, 0.2]),
        np.array([0.02, 0.08, -0.07]),
        turn(0.3 * sway[:, :3]),
        turn(swing * smooth_noise(rng, time, 3, 0.8)),
        0.3 * sway[:, 3:],
    )


def errors_of(pair: Pair, noise: float, seed: int) -> list[float]:
    """Return the error of the centre by each estimator, in metres."""
    rng = np.random.default_rng([seed, 41])
    points = pair.points + rng.normal(scale=noise, size=pair.points.shape)
    found = [find_center(points, estimator) for estimator in ESTIMATORS]
    return [error_of(pair, shape, center) for shape, center in found]


def find_center(points: Array, estimator: str) -> tuple[Array, Array]:
    """Return the shape of the first body, and the centre in its frame."""
    labels = tuple(f"{body}{i}" for body in "ab" for i in range(MARKERS))
    take = marey.Take(rate=100.0, points=points, labels=labels)
    template = {"a": labels[:MARKERS], "b": labels[MARKERS:]}
    bodies = marey.segment(take, method="template", template=template)
    fits = marey.fit_joints(bodies, method="ball", estimator=estimator)
    first = bodies.names.index("a")
    center = fits.center_a[0] if first == 0 else fits.center_b[0]
    return bodies.marker_offset[bodies.marker_body == first], center


def error_of(pair: Pair, shape: Array, center: Array) -> float:
    """Return the error of a centre against the markers of its body, in metres."""
    R, shift = align(shape, pair.parent)
    return float(np.linalg.norm(R @ center + shift - pair.center))


def cramer_rao_bound(pair: Pair, noise: float) -> float:
    """Return the least rms error of the centre against the markers of the first body.

    Per frame, three rotations of each body and a position are unknown; they are
    eliminated (Schur complement). The frames of the bodies are free, so that the
    information matrix has a null space that the error does not see.
    """
    k, eye = MARKERS, np.eye(3)
    information = np.zeros((6 * k + 3, 6 * k + 3))
    for R in pair.R_child:
        frame = np.zeros((6 * k, 9))
        shared = np.zeros((6 * k, 6 * k + 3))
        for i in range(2 * k):
            rows = slice(3 * i, 3 * i + 3)
            place = pair.parent[i] if i < k else pair.center + R @ pair.child[i - k]
            frame[rows, :3], frame[rows, 3:6] = -cross_matrix(place), eye
            shared[rows, rows] = eye if i < k else R
            if i >= k:
                frame[rows, 6:] = -R @ cross_matrix(pair.child[i - k])
                shared[rows, 6 * k :] = eye
        hat, *_ = np.linalg.lstsq(frame, shared, rcond=None)
        information += shared.T @ (shared - frame @ hat)
    rigid = np.concatenate([np.hstack([eye, -cross_matrix(m)]) for m in pair.parent])
    error = np.zeros((3, 6 * k + 3))
    error[:, 6 * k :] = eye
    at_center = np.hstack([eye, -cross_matrix(pair.center)])
    error[:, : 3 * k] = -at_center @ np.linalg.pinv(rigid)
    covariance = error @ np.linalg.pinv(information, rcond=1e-10) @ error.T
    return noise * float(np.sqrt(np.trace(covariance)))


def cross_matrix(v: Array) -> Array:
    """Return the matrix of the cross product with a vector."""
    x, y, z = v
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
