"""One figure for every program: 16 segments, 44 degrees of freedom, 53 markers.

It moves slowly, as people do, at 100 Hz, with 2 mm of noise.
"""

from typing import Any

import numpy as np

import marey
from marey.numerics import geometry
from marey.skeleton import Skeleton
from marey.take import Take

RATE, NOISE_M = 100.0, 2e-3

# name, parent, kind, offset in the parent, half sizes of the box of its markers, number
SEGMENTS: tuple[
    tuple[str, int, Any, tuple[float, ...], tuple[float, ...], int], ...
] = (
    ("pelvis", -1, "root", (0, 0, 1.0), (0.10, 0.12, 0.05), 4),
    ("abdomen", 0, "universal", (0, 0, 0.08), (0.06, 0.09, 0.05), 2),
    ("chest", 1, "ball", (0, 0, 0.18), (0.09, 0.13, 0.11), 5),
    ("head", 2, "ball", (0, 0, 0.30), (0.08, 0.07, 0.09), 4),
    ("upper_arm_l", 2, "ball", (0, 0.18, 0.22), (0.04, 0.04, 0.13), 3),
    ("forearm_l", 4, "universal", (0, 0, -0.30), (0.04, 0.04, 0.11), 3),
    ("hand_l", 5, "ball", (0, 0, -0.26), (0.04, 0.04, 0.06), 3),
    ("upper_arm_r", 2, "ball", (0, -0.18, 0.22), (0.04, 0.04, 0.13), 3),
    ("forearm_r", 7, "universal", (0, 0, -0.30), (0.04, 0.04, 0.11), 3),
    ("hand_r", 8, "ball", (0, 0, -0.26), (0.04, 0.04, 0.06), 3),
    ("thigh_l", 0, "ball", (0, 0.09, -0.08), (0.06, 0.06, 0.18), 4),
    ("shank_l", 10, "hinge", (0, 0, -0.42), (0.05, 0.05, 0.18), 3),
    ("foot_l", 11, "ball", (0, 0, -0.42), (0.09, 0.04, 0.03), 3),
    ("thigh_r", 0, "ball", (0, -0.09, -0.08), (0.06, 0.06, 0.18), 4),
    ("shank_r", 13, "hinge", (0, 0, -0.42), (0.05, 0.05, 0.18), 3),
    ("foot_r", 14, "ball", (0, 0, -0.42), (0.09, 0.04, 0.03), 3),
)
AXES = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
LIMIT = np.radians(100.0)


def make_skeleton() -> Skeleton:
    """Return the figure with its markers."""
    rng = np.random.default_rng(7)
    joint = np.repeat(np.arange(16), [s[5] for s in SEGMENTS])
    size = np.array([s[4] for s in SEGMENTS])[joint]
    return Skeleton(
        names=tuple(s[0] for s in SEGMENTS),
        parent=np.array([s[1] for s in SEGMENTS]),
        offset=np.array([s[3] for s in SEGMENTS], dtype=float),
        kind=tuple(s[2] for s in SEGMENTS),
        axes=np.tile(AXES, (16, 1, 1)),
        limits=np.tile([-LIMIT, LIMIT], (16, 3, 1)),
        marker_labels=tuple(f"M{i}" for i in range(len(joint))),
        marker_joint=joint,
        marker_offset=rng.uniform(-1.0, 1.0, (len(joint), 3)) * size,
    )


def perform(skeleton: Skeleton, n_frames: int) -> marey.Motion:
    """Return slow sums of sines at every joint, as people move."""
    rng = np.random.default_rng(3)
    t = np.arange(n_frames) / RATE
    f, phase = rng.uniform(0.15, 1.2, (2, 3, 16, 3)) * [[[[1.0]]], [[[5.0]]]]
    wave = np.sin(2.0 * np.pi * f * t[:, None, None, None] + phase)
    angles = (0.2 / (1.0 + np.arange(3.0))[:, None, None] * wave).sum(axis=1)
    wxyz = np.empty((n_frames, 16, 4))
    for i, kind in enumerate(skeleton.kind):
        if kind in ("root", "ball"):
            wxyz[:, i] = geometry.quat_exp(angles[:, i])
            continue
        wxyz[:, i] = geometry.quat_exp(angles[:, i, :1] * AXES[0])
        if kind == "universal":
            second = geometry.quat_exp(angles[:, i, 1:2] * AXES[1])
            wxyz[:, i] = geometry.quat_multiply(wxyz[:, i], second)
    position = skeleton.offset[0] + 0.5 * angles[:, 1]
    T = geometry.transform(geometry.matrix_from_quat(wxyz[:, 0]), position)
    return marey.Motion(skeleton=skeleton, T_world_root=T, wxyz=wxyz, rate=RATE)


def record(skeleton: Skeleton, n_frames: int) -> Take:
    """Return the take of the performance, with noise."""
    clean = perform(skeleton, n_frames).marker_points()
    noise = np.random.default_rng(5).normal(scale=NOISE_M, size=clean.shape)
    return Take(rate=RATE, points=clean + noise, labels=skeleton.marker_labels)
