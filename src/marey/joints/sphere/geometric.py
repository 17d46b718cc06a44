"""Centres by least squares of the radii themselves, with all positions at hand."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from scipy.linalg import eigh
from scipy.special import chdtri

ROUNDING = 1e-14
MOST_STEPS = 20

# Frames are summed over windows of this part of the take before their scatter is taken.
WINDOWS = 64

# Standard deviations by which these must scatter more than single frames to count.
SIGMAS = 2.0

# Markers that disagree more than chance would have them, but once in so many times,
# are held to do so for a reason.
CHANCE = 0.01

# Of the slopes seen, noise may have made up all but this share.
LEAST_LEFT = 0.05

# A step of this share of the radius is none that a second order could tell.
TOO_FAR = 0.5

# Share of the radius by which a centre is moved to see what the noise does there.
NUDGE = 1e-3

Basis = Float[np.ndarray, "3 directions"]
Center = Float[np.ndarray, " 3"]
Points = Float[np.ndarray, "frame marker 3"]
Pushes = Float[np.ndarray, "frame marker directions"]


@dataclass(frozen=True, slots=True, eq=False)
class Tilt:
    """Noise of the axes in which positions are seen."""

    turn: Float[np.ndarray, "3 3"]
    """Covariance of their turning as a rotation vector, in square radians."""

    anchor: Float[np.ndarray, " 3"]
    """The point about which they turn, in metres."""


@dataclass(frozen=True, slots=True, eq=False)
class Bias:
    """The mean push of a marker's positions that the noise of the axes makes."""

    center: Center
    """Where it was found."""

    push: Float[np.ndarray, "marker directions"]
    slope: Float[np.ndarray, "marker directions directions"]
    """How it changes as the centre moves."""


@dataclass(frozen=True, slots=True, eq=False)
class Equation:
    """What positions do to a centre: at the best one their pushes sum to zero."""

    push: Pushes
    """Of each marker in each frame; the last may be a tie instead."""

    slope: Float[np.ndarray, "marker directions directions"]
    """How the sum of each marker's pushes falls as the centre moves."""

    tied: bool = False
    """Whether something else than markers holds the centre too, the last one."""

    @property
    def step(self) -> Float[np.ndarray, " directions"]:
        """The way to the best centre, to first order."""
        return np.asarray(self._gain @ self.push.sum(axis=(0, 1)))

    @property
    def moves(self) -> Float[np.ndarray, "frame directions"]:
        """How far the noise of each frame moved the centre, in metres."""
        return np.asarray(self.push.sum(axis=1) @ self._gain)

    @property
    def _gain(self) -> np.ndarray:
        return _inverse(np.asarray(self.slope.sum(axis=0)))

    @property
    def disagreement(self) -> Float[np.ndarray, "directions directions"]:
        """What the markers' disagreement adds to the covariance of the centre.

        Markers on skin slide as the limb turns, frame after frame the same way: the
        frames agree and are wrong together. What shows it is that markers put the
        centre in different places. If they do so by more than chance, how far the
        centre goes as each one is left out (the jackknife) is added; else nothing.
        """
        n_markers, directions = self.push.shape[1] - self.tied, self.push.shape[2]
        pull = self.push.sum(axis=0)
        square, spare = 0.0, 0 if self.tied else -directions
        for m in range(n_markers):
            own = scatter(self.push[:, m])
            square += pull[m] @ _inverse(own, 1e-9) @ pull[m]
            spare += int(np.linalg.matrix_rank(own, hermitian=True))
        if n_markers < 2 or spare < 1 or square <= chdtri(spare, CHANCE):
            return np.zeros((directions, directions))
        total = self.slope.sum(axis=0)
        moves = np.stack(
            [_inverse(total - self.slope[m]) @ pull[m] for m in range(n_markers)]
        )
        return np.asarray((1.0 - 1.0 / n_markers) * moves.T @ moves)

    @property
    def covariance(self) -> Float[np.ndarray, "directions directions"]:
        """Covariance of the centre, in square metres."""
        return np.asarray(scatter(self.moves) + self.disagreement)


def polish(points: Points, center: Center, basis: Basis) -> Center:
    """Return the centre nearby whose distances to each marker vary least.

    Gauss-Newton steps; a step that does not help ends them.
    """
    best, kept = np.inf, center
    for _ in range(MOST_STEPS):
        radii = _radii(points, center, basis)
        cost = float(np.sum(radii.error**2))
        if not cost < best:
            break
        best, kept = cost, center
        push = np.sum(radii.error[..., None] * radii.lean, axis=(0, 1))
        step = _inverse(_outer(radii.lean, radii.lean).sum(axis=0)) @ push
        center = center + basis @ step
        if np.sum(step**2) <= 1e-22 * radii.radius.max() ** 2:
            break
    return kept


def leveled(points: Points, center: Center, basis: Basis, bias: Bias) -> Center:
    """Return a polished centre freed from the noise of the axes it is seen in.

    Axes that turn with noise move markers sideways, further the further they are from
    the anchor, and along some directions more than along others. That lengthens some
    radii more than others and goes along with their slopes, so the fit is drawn aside.
    Here the push that is to be expected is taken off, until the rest vanishes.
    """
    moved = center
    for _ in range(MOST_STEPS):
        step = basis @ equation(points, moved, basis, bias).step
        moved = moved + step
        reach = np.nanmax(np.linalg.norm(points - moved, axis=-1))
        if not np.linalg.norm(moved - center) < TOO_FAR * reach:
            return center
        if np.linalg.norm(step) <= 1e-7 * reach:
            break
    return moved


def radial(
    points: Points, center: Center, basis: Basis
) -> tuple[Float[np.ndarray, "frame marker"], Pushes, Float[np.ndarray, " marker"]]:
    """Return what each radius is off, its slope as the centre moves, the mean radii.

    Zero where a marker was not seen; the radius of one never seen is NaN.
    """
    radii = _radii(points, center, basis)
    return radii.error, radii.lean, np.where(radii.count > 0, radii.radius, np.nan)


@dataclass(frozen=True, slots=True, eq=False)
class _Radii:
    """Radii of markers about a centre; zero where a marker was not seen."""

    known: Bool[np.ndarray, "frame marker"]
    count: Float[np.ndarray, " marker"]
    unit: Pushes
    length: Float[np.ndarray, "frame marker"]
    radius: Float[np.ndarray, " marker"]
    error: Float[np.ndarray, "frame marker"]
    lean: Pushes


def _radii(points: np.ndarray, center: np.ndarray, basis: np.ndarray) -> _Radii:
    known = np.isfinite(points).all(axis=-1)
    way = points - center
    if not known.all():
        way[~known] = 0.0
    way = way @ basis
    length = np.sqrt(np.einsum("fmi,fmi->fm", way, way))
    unit = way / np.where(length > 0.0, length, 1.0)[..., None]
    count = known.sum(axis=0).astype(float)
    per = 1.0 / np.maximum(count, 1.0)
    radius = length.sum(axis=0) * per
    error = (length - radius) * known
    lean = (unit - unit.sum(axis=0) * per[:, None]) * known[..., None]
    return _Radii(known, count, unit, length, radius, error, lean)


def equation(
    points: Points, center: Center, basis: Basis, bias: Bias | None = None
) -> Equation:
    """Return how each marker pushes the centre, the noise of the axes taken off.

    The first term of the slope is that of Gauss and Newton. Noise makes it larger than
    it is, for it turns the radii; the second term takes that off again.
    """
    radii = _radii(points, center, basis)
    bend = radii.error / np.where(radii.length > 0.0, radii.length, np.inf)
    seen = _outer(radii.lean, radii.lean)
    slope = seen + bend.sum(axis=0)[:, None, None] * np.eye(basis.shape[1])
    slope -= _outer(bend[..., None] * radii.unit, radii.unit)
    push = radii.error[..., None] * radii.lean
    if bias is not None:
        here = bias.push + bias.slope @ (basis.T @ (center - bias.center))
        push -= radii.known[..., None] * here
        slope += radii.count[:, None, None] * bias.slope
    return Equation(push, trusted(slope, seen))


def bias_of(points: Points, center: Center, basis: Basis, tilt: Tilt) -> Bias:
    """Return the push that the noise of the axes is expected to make near a centre."""
    step = NUDGE * float(np.nanmax(np.linalg.norm(points - center, axis=-1)))
    here = _tilted(points, center, basis, tilt)
    slope = np.zeros((*here.shape, here.shape[1]))
    for i, way in enumerate(basis.T):
        there = _tilted(points, center + step * way, basis, tilt)
        slope[:, :, i] = (there - here) / step
    return Bias(center, here, 0.5 * (slope + np.swapaxes(slope, 1, 2)))


def _outer(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the sums over frames of a b^T, one for each marker."""
    return np.asarray(a.transpose(1, 2, 0) @ b.transpose(1, 0, 2))


def trusted(
    slope: Float[np.ndarray, "part n n"], seen: Float[np.ndarray, "part n n"]
) -> Float[np.ndarray, "part n n"]:
    """Return slopes of which, in their sum, noise has not made up almost all."""
    total, most = slope.sum(axis=0), seen.sum(axis=0)
    most = most + ROUNDING * np.trace(most) * np.eye(len(most))
    if not np.trace(most) > 0.0:
        return slope
    least = eigh(total, most, eigvals_only=True)[0]
    # Towards the slopes seen, as far as needed.
    share = np.clip((LEAST_LEFT - least) / max(1.0 - least, ROUNDING), 0.0, 1.0)
    return np.asarray(slope + share * (seen - slope))


def _tilted(
    points: np.ndarray, center: np.ndarray, basis: np.ndarray, tilt: Tilt
) -> np.ndarray:
    """Return the mean push of each marker that the noise of the axes is to make."""
    radii = _radii(points, center, basis)
    y = points - tilt.anchor
    if not radii.known.all():
        y[~radii.known] = 0.0
    unit = radii.unit @ basis.T
    # Covariance of the noise with the radius, along that and across it.
    shared = np.cross(y, np.cross(unit, y) @ tilt.turn)
    along = np.sum(unit * shared, axis=-1)
    sides = np.cross(basis.T[:, None, None], y)
    inside = np.sum((sides @ tilt.turn) * sides, axis=(0, -1))
    R = np.where(radii.radius > 0.0, radii.radius, np.inf)
    longer = 0.5 * (inside - along) / R
    across = (shared - along[..., None] * unit) @ basis
    push = np.sum(longer[..., None] * radii.lean + across / R[:, None], axis=0)
    return np.asarray(push / np.maximum(radii.count, 1.0)[:, None])


def _inverse(H: np.ndarray, least: float = ROUNDING) -> np.ndarray:
    """Return the inverse of a symmetric matrix, zero in directions that it lacks."""
    return np.asarray(np.linalg.pinv(H, rcond=least, hermitian=True))


def scatter(moves: Float[np.ndarray, "frame move"]) -> Float[np.ndarray, "move move"]:
    """Return the covariance of the sum over frames.

    From the frames one by one, or, if those say more by more than chance, from sums
    over all windows of a given length: noise that lasts from frame to frame then counts
    as it should. Frames that moved nothing were not seen.
    """
    moves = moves[np.any(moves != 0.0, axis=1)]
    n, size = moves.shape
    if n == 0:
        return np.zeros((size, size))
    # The fit made the sums agree with it: what they scatter is that much too small.
    used = min(size, 3) + 1
    single = n / max(n - used, 1) * moves.T @ moves
    length = -(-n // WINDOWS)
    total = np.concatenate([np.zeros((1, size)), np.cumsum(moves, axis=0)])
    sums = total[length:] - total[:-length]
    share = n / (length * len(sums)) * n / max(n - used * length, length)
    joint = share * sums.T @ sums
    more = np.trace(_inverse(single, 1e-12) @ joint) / size
    chance = SIGMAS * np.sqrt(2.0 / (size * WINDOWS))
    return np.asarray(joint if more > 1.0 + chance else single)
