"""Centres by least squares of the radii themselves, with all positions at hand."""

import numpy as np
from jaxtyping import Float
from scipy.special import chdtri

from marey import geometry

ROUNDING = 1e-14
MOST_STEPS = 20

# Frames are summed over windows of this part of the take before their scatter is taken.
WINDOWS = 64

# Markers that disagree more than chance would have them, but once in so many times,
# are held to do so for a reason.
CHANCE = 0.01

Basis = Float[np.ndarray, "3 directions"]
Points = Float[np.ndarray, "frame marker 3"]


def polish(
    points: Points, center: Float[np.ndarray, " 3"], basis: Basis
) -> Float[np.ndarray, " 3"]:
    """Return the centre nearby whose distances to each marker vary least.

    Gauss-Newton steps; a step that does not help ends them.
    """
    best, kept = np.inf, center
    for _ in range(MOST_STEPS):
        error, lean, radius = radial(points, center, basis)
        cost = float(np.sum(error**2))
        if not cost < best:
            break
        best, kept = cost, center
        push = np.einsum("fmi,fm->i", lean, error, optimize=True)
        step = _inverse(_slopes(lean)) @ push
        center = center + basis @ step
        if np.sum(step**2) <= 1e-22 * np.nanmax(radius) ** 2:
            break
    return kept


def radial(
    points: Points, center: Float[np.ndarray, " 3"], basis: Basis
) -> tuple[
    Float[np.ndarray, "frame marker"],
    Float[np.ndarray, "frame marker directions"],
    Float[np.ndarray, " marker"],
]:
    """Return what each radius is off, its slope as the centre moves, the mean radii.

    Zero where a marker was not seen; the radius of one never seen is NaN.
    """
    known = np.isfinite(points).all(axis=-1)
    way = np.where(known[..., None], points - center, 0.0) @ basis
    length = np.sqrt(np.einsum("fmi,fmi->fm", way, way))
    unit = way / np.where(length > 0.0, length, 1.0)[..., None]
    count = known.sum(axis=0)
    share = known / np.maximum(count, 1)
    radius = np.sum(share * length, axis=0)
    error = np.where(known, length - radius, 0.0)
    lean = unit - np.einsum("fm,fmi->mi", share, unit)
    return error, lean * known[..., None], np.where(count > 0, radius, np.nan)


def tilt_step(
    points: Points,
    center: Float[np.ndarray, " 3"],
    basis: Basis,
    turn: Float[np.ndarray, "3 3"],
    anchor: Float[np.ndarray, " 3"],
) -> Float[np.ndarray, " 3"]:
    """Return the step that frees a centre from the noise of the axes it is seen in.

    Axes that turn with noise move markers sideways, further the further they are from
    the anchor, and along some directions more than along others. That lengthens some
    radii more than others and goes along with their slopes, so the fit is drawn aside.

    Args:
        points: Positions in the noisy axes.
        center: Where the radii vary least.
        basis: What the centre moves in.
        turn: Covariance of the axes' noise as a rotation vector, in square radians.
        anchor: The point about which they turn.
    """
    _, lean, radius = radial(points, center, basis)
    known = np.isfinite(points).all(axis=-1)
    y = np.where(known[..., None], points - anchor, 0.0)
    way = np.where(known[..., None], points - center, 0.0) @ basis @ basis.T
    length = np.linalg.norm(way, axis=-1, keepdims=True)
    unit = way / np.where(length > 0.0, length, 1.0)
    swing = np.cross(unit, y)
    shared = np.cross(y, swing @ turn)  # covariance of the noise with the radius
    along = np.einsum("fmi,fmi->fm", unit, shared)
    inside = np.trace(basis.T @ _tilted(y, turn) @ basis, axis1=-2, axis2=-1)
    R = np.where(known & (radius > 0.0), radius, np.inf)
    longer = 0.5 * (inside - along) / R
    across = (shared - along[..., None] * unit) @ basis
    push = np.einsum("fmi,fm->i", lean, longer) + np.sum(across / R[..., None], (0, 1))
    return np.asarray(-basis @ _inverse(_slopes(lean)) @ push)


def _tilted(y: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """Return the covariance [y] turn [y]^T of points moved by a noisy turn."""
    arm = geometry.hat(y)
    return np.asarray(arm @ turn @ np.swapaxes(arm, -1, -2))


def influence(
    points: Points, center: Float[np.ndarray, " 3"], basis: Basis
) -> Float[np.ndarray, "frame 3"]:
    """Return how far the noise of each frame moved the centre, in metres."""
    error, lean, _ = radial(points, center, basis)
    push = np.einsum("fm,fmi->fi", error, lean, optimize=True)
    return np.asarray(push @ _inverse(_slopes(lean)) @ basis.T)


def disagreement(
    points: Points, center: Float[np.ndarray, " 3"], basis: Basis
) -> Float[np.ndarray, "3 3"]:
    """Return what the markers' disagreement adds to the covariance of the centre.

    Markers on skin slide as the limb turns, frame after frame the same way: the frames
    agree and are wrong together. What shows it is that markers put the centre in
    different places. If they do so by more than chance, how far the centre goes as each
    one is left out (the jackknife) is added; else nothing.
    """
    error, lean, _ = radial(points, center, basis)
    push = error[..., None] * lean
    n_markers, directions = push.shape[1:]
    pull = push.sum(axis=0)
    square = sum(
        pull[m] @ _inverse(scatter(push[:, m]), 1e-9) @ pull[m]
        for m in range(n_markers)
    )
    spare = directions * (n_markers - 1)
    if n_markers < 2 or square <= chdtri(spare, CHANCE):
        return np.zeros((3, 3))
    H = _slopes(lean)
    away = [
        _inverse(H - _slopes(lean[:, m : m + 1])) @ pull[m] for m in range(n_markers)
    ]
    moves = np.array(away) @ basis.T
    return np.asarray((1.0 - 1.0 / n_markers) * moves.T @ moves)


def _slopes(lean: np.ndarray) -> np.ndarray:
    return np.asarray(np.einsum("fmi,fmj->ij", lean, lean, optimize=True))


def _inverse(H: np.ndarray, least: float = ROUNDING) -> np.ndarray:
    return np.asarray(np.linalg.pinv(H, rcond=least, hermitian=True))


def scatter(moves: Float[np.ndarray, "frame move"]) -> Float[np.ndarray, "move move"]:
    """Return the covariance of the sum over frames.

    From sums over all windows of a given length, so that noise which lasts from frame
    to frame counts as it should. Frames that moved nothing were not seen.
    """
    moves = moves[np.any(moves != 0.0, axis=1)]
    n = len(moves)
    if n == 0:
        return np.zeros((moves.shape[1],) * 2)
    length = -(-n // WINDOWS)
    total = np.concatenate([np.zeros((1, moves.shape[1])), np.cumsum(moves, axis=0)])
    sums = total[length:] - total[:-length]
    # The fit made the sums agree with it: what they scatter is that much too small.
    used = min(moves.shape[1], 3) + 1
    share = n / (length * len(sums)) * n / max(n - used * length, length)
    return np.asarray(share * sums.T @ sums)
