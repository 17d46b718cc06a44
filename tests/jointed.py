"""Candidate joints of recorded sensors by plain least squares, pair by pair."""

from itertools import combinations

import numpy as np

import marey
from marey.segmentation import segment


def record_sensors(figure, motion="", **options):
    """A recording of 6-DoF sensors, and its bodies."""
    take = figure.record(motion, markers="none", sensors=True, rate=60.0, **options)
    return take, segment(take)


def ball_joint(T_world_a, T_world_b):
    """Stack the equations of one pair (OBrien2000, Eq. 13) and solve them."""
    both = np.isfinite(T_world_a + T_world_b).all(axis=(-1, -2))
    A, B = T_world_a[both], T_world_b[both]
    Q = np.concatenate([A[:, :3, :3], -B[:, :3, :3]], axis=-1).reshape(-1, 6)
    d = (B[:, :3, 3] - A[:, :3, 3]).reshape(-1)
    u = np.linalg.lstsq(Q, d, rcond=1e-6)[0]
    return u[:3], u[3:], np.sqrt(np.sum((Q @ u - d) ** 2) / len(A))


def fit_all_pairs(bodies):
    """Plain least-squares joints of all pairs, without mediation."""
    T = bodies.T_world_body
    pairs = list(combinations(range(T.shape[1]), 2))
    found = [ball_joint(T[:, a], T[:, b]) for a, b in pairs]
    n = len(pairs)
    distance = np.nanmean(
        [np.linalg.norm(T[:, a, :3, 3] - T[:, b, :3, 3], axis=-1) for a, b in pairs],
        axis=1,
    )
    unknown = np.full((n, 3), np.nan)
    return marey.JointFits(
        pair=np.array(pairs).reshape(-1, 2),
        center_a=np.array([c for c, _, _ in found]).reshape(-1, 3),
        center_b=np.array([c for _, c, _ in found]).reshape(-1, 3),
        axis_a=unknown,
        axis_b=unknown,
        residual=np.array([e for _, _, e in found]),
        noise=np.zeros(n),
        distance=0.5 * distance,
        mediated=np.ones(n),
        spread=np.zeros((n, 6)),
        covariance=np.zeros((n, 6, 6)),
        kind=("ball",) * n,
    )
