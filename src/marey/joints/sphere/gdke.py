"""Joint centres from the paths of single markers: sphere and circle fits.

The markers of one body, seen from another, turn about the joint between the two. Where
a sensor fit needs both bodies to have a pose, this needs one: the other may carry a
single marker.
"""

from dataclasses import dataclass, fields, replace
from typing import Any, get_args

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.linalg import block_diag

from marey.bodies import Bodies
from marey.errors import DataError, OptionError
from marey.joint_fits import JointFits
from marey.joints.ball.closed_form import FREE, System, system_of
from marey.joints.ball.fit import FAR, best_of
from marey.joints.ball.hinge import axis_covariance, hinge_axes
from marey.joints.ball.normal_equations import pairs_of, sum_pairs
from marey.joints.ball.pair_frames import Frames, Relative, anchored, correlation_of
from marey.joints.ball.third_body import mediation
from marey.joints.noise import PoseNoise, measure_noise
from marey.joints.sphere.fit import MIN_POSITIONS, Estimator
from marey.joints.sphere.fit import Sphere as Sphere
from marey.joints.sphere.fit import SphereAccumulator as SphereAccumulator
from marey.joints.sphere.fit import fit_sphere as fit_sphere
from marey.joints.sphere.geometric import scatter
from marey.joints.sphere.one_sided import (
    Side,
    at_least_a_place,
    completed,
    side_of,
    slid_together,
)
from marey.joints.sphere.two_sided import View, close
from marey.joints.stacked_takes import Crowd
from marey.numerics import geometry

Array = np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class GdkeOptions:
    """How joints are fitted to the paths of markers."""

    estimator: Estimator = "geometric"
    """"kasa" is Knight2007 to the letter, biased on less than a full sphere;
    "corrected" takes its bias out; "geometric" is the least squares of the radii."""

    def __post_init__(self) -> None:
        if self.estimator not in get_args(Estimator):
            raise OptionError(
                "estimator",
                found=self.estimator,
                needed=f"one of {', '.join(get_args(Estimator))}",
            )


@dataclass(frozen=True, slots=True, eq=False)
class _Draft:
    """One pair of bodies, as both sides see the joint between them."""

    T_a_b: Float[Array, "frame 4 4"]
    """NaN where one of them has no pose, or no axes."""

    in_a: Side
    in_b: Side
    axes: Float[Array, "6 6"]
    """Covariance of (axis_a, axis_b), in square radians."""

    covariance: Float[Array, "6 6"]
    """Of (center_a, center_b), without what the motion leaves free."""

    @property
    def both(self) -> Float[Array, "frame 4 4"]:
        """The frames that show both bodies."""
        return np.asarray(self.T_a_b[np.isfinite(self.T_a_b).all(axis=(1, 2))])

    @property
    def two_sided(self) -> bool:
        return len(self.both) >= MIN_POSITIONS

    @property
    def residual(self) -> float:
        """Root mean square gap of the centres, in metres."""
        gap = geometry.apply(self.both, self.in_b.center) - self.in_a.center
        return float(np.sqrt(np.mean(np.sum(gap**2, axis=-1))))


def fit(takes: tuple[Bodies, ...], **options: Any) -> JointFits:
    """Fit a joint between every two bodies to the paths of their markers.

    `center_a` is the point about which the markers of b turn in the axes of a, all
    markers together; `center_b` the other way round. Several takes count as one.
    Implements Knight2007, Sec. 2, with the departures of `fit_sphere`, and these: all
    markers of a body are used, not one; both directions are fitted, and where both
    bodies have poses the gap between the two centres counts as well as the radii
    (`_closing`; for pairs that may be joints, "geometric" only); a hinge between two
    such bodies has the axis their turning shares and the centre midway between the feet
    of the two bodies' origins on it, both as in OBrien2000.

    A body that is not `determined` (one or two markers) has no axes to see others
    from: its own centre is NaN, and so are the pair's `spread` and `mediated`; the
    residual is that of the radii. A 6-DoF sensor without markers counts as one marker
    at its origin; if that sits in the joint and never moves, the centre is taken over
    from the other side. Bodies that do not move against each other are "fixed", with
    the point midway between them, or the mean place of the markers where one has no
    axes. No joint is ever called "universal": its markers run on a sphere like those of
    any ball, and only the turning of both bodies, which "ball" looks at, could tell.

    Args:
        takes: The same bodies in one or several takes.
        **options: Fields of `GdkeOptions`.

    Raises:
        DataError: If no body has axes from which to see the others.
        OptionError: If an option is not known.
    """
    unknown = set(options) - {field.name for field in fields(GdkeOptions)}
    if unknown:
        names = ", ".join(field.name for field in fields(GdkeOptions))
        raise OptionError(min(unknown), found=options[min(unknown)], needed=names)
    chosen = GdkeOptions(**options)
    crowd = Crowd(takes)
    if not crowd.determined.any():
        raise DataError(
            "joints by gdke",
            found="bodies of one or two markers, or of markers on a line, only",
            needed="one body with axes: three markers off a line, or a sensor",
        )
    pair = pairs_of(len(takes[0].names))
    poses = measure_noise(takes, noise=None, turn_noise=None)
    drafts = [_drafted(crowd, int(a), int(b), chosen, poses) for a, b in pair]
    if chosen.estimator == "geometric":
        near = _near(pair, drafts)
        drafts = [_closed(d) if n else d for d, n in zip(drafts, near, strict=True)]
    rows = [_joined(d) if d.two_sided else _one_sided(d) for d in drafts]
    columns = {
        name: np.array([row[name] for row in rows])
        for name in rows[0]
        if name != "kind"
    }
    return JointFits(
        pair=pair,
        noise=_noise(poses, pair, columns),
        mediated=_mediated(takes, poses, pair),
        kind=tuple(row["kind"] for row in rows),
        **columns,
    )


def _near(pair: Int[Array, "pair 2"], drafts: list[_Draft]) -> Bool[Array, " pair"]:
    """Return which pairs may be joints: their gap is not far above the best ones."""
    gap = np.array([d.residual if d.two_sided else np.nan for d in drafts])
    return np.asarray(gap <= FAR * best_of(pair, gap))


def _mediated(
    takes: tuple[Bodies, ...], poses: PoseNoise, pair: Int[Array, "pair 2"]
) -> Float[Array, " pair"]:
    if not all(take.determined.all() for take in takes):
        return np.full(len(pair), np.nan)
    frames = Frames(takes, poses.anchor)
    sums = sum_pairs(anchored(frames.T, poses.anchor), frames.seen)
    return mediation(takes, sums, pair)


def _drafted(
    crowd: Crowd, a: int, b: int, options: GdkeOptions, poses: PoseNoise
) -> _Draft:
    """Return a joint as each of its bodies sees it for itself."""

    def seen(body: int, moving: int, **known: Any) -> Side:
        chosen = options.estimator
        return side_of(crowd, body, moving, poses, estimator=chosen, **known)

    in_a, in_b = seen(a, b), seen(b, a)
    axes = np.full((6, 6), np.nan)
    T_a_b = geometry.inverse(crowd.T[:, a]) @ crowd.T[:, b]
    if not (crowd.determined[a] and crowd.determined[b]):
        T_a_b = np.full_like(T_a_b, np.nan)
    draft = _Draft(T_a_b, in_a, in_b, axes, np.full((6, 6), np.nan))
    if not draft.two_sided:
        return draft
    kinds = {side.kind for side in (in_a, in_b) if side.known}
    if kinds == {"hinge"}:
        axis_a, axis_b, axes = _common_axis(draft.both, poses, a, b)
        in_a = seen(a, b, kind="hinge", axis=axis_a)
        in_b = seen(b, a, kind="hinge", axis=axis_b)
    elif len(kinds) > 1:
        in_a, in_b = seen(a, b, kind="ball"), seen(b, a, kind="ball")
    in_a, in_b = completed(draft.both, in_a, in_b)
    moves = np.concatenate([in_a.moves, in_b.moves], axis=1)
    covariance = scatter(moves) + block_diag(in_a.extra, in_b.extra)
    return _Draft(T_a_b, in_a, in_b, axes, covariance)


# --- both bodies have a pose ----------------------------------------------------------


def _common_axis(
    T_a_b: Array, poses: PoseNoise, a: int, b: int
) -> tuple[Array, Array, Array]:
    """Return the axis in both bodies that their turning leaves most alike.

    R_a_b axis_b = axis_a in every frame of a perfect hinge (OBrien2000, Sec. 3.2).
    With the covariance of (axis_a, axis_b).
    """
    R_a_b = T_a_b[:, :3, :3]
    raw = Relative(R_a_b, T_a_b[:, :3, 3]).equations()
    system: System = system_of(raw, poses, np.array([[a, b]]))
    axis_a, axis_b = hinge_axes(system)
    apart = R_a_b @ axis_b[0] - axis_a[0]
    correlation = np.array([correlation_of(apart)])
    return axis_a[0], axis_b[0], axis_covariance(system, axis_a, axis_b, correlation)[0]


def _closed(draft: _Draft) -> _Draft:
    """Return a joint whose two centres were fitted together."""
    in_a, in_b = draft.in_a, draft.in_b
    if in_a.kind == "fixed" or not (in_a.moves.any() and in_b.moves.any()):
        return draft
    views = _view(in_a), _view(in_b)
    start = np.stack([in_a.center, in_b.center])
    (center_a, center_b), covariance = close(draft.T_a_b, views, start)
    return replace(
        draft,
        in_a=replace(in_a, center=center_a),
        in_b=replace(in_b, center=center_b),
        covariance=covariance,
    )


def _view(side: Side) -> View:
    return View(side.points, side.basis, side.tilt, side.bias)


def _joined(draft: _Draft) -> dict[str, Any]:
    in_a, in_b, kind = draft.in_a, draft.in_b, draft.in_a.kind
    free = np.zeros((6, 6))
    if kind == "hinge":
        in_a, in_b = slid_together(draft.both, in_a, in_b)
        along = np.concatenate([in_a.axis, in_b.axis])
        free = FREE**2 * np.outer(along, along)
    elif kind == "fixed":
        free = FREE**2 * np.eye(6)
    return {
        "center_a": in_a.center,
        "center_b": in_b.center,
        "axis_a": in_a.axis,
        "axis_b": in_b.axis,
        "residual": replace(draft, in_a=in_a, in_b=in_b).residual,
        "distance": np.concatenate([in_a.away, in_b.away]).mean(),
        "spread": _spread(draft.both[:, :3, :3]),
        "covariance": draft.covariance + free,
        "axis_covariance": draft.axes,
        "kind": kind,
    }


def _spread(R_a_b: Array) -> Array:
    """Return how much the turning of two bodies excites, as OBrien2000's fit has it."""
    s = np.linalg.svd(R_a_b.mean(axis=0), compute_uv=False)
    return np.asarray(np.sqrt(np.sort(np.concatenate([1.0 - s, 1.0 + s])).clip(0.0)))


# --- only one body has a pose ---------------------------------------------------------


def _one_sided(draft: _Draft) -> dict[str, Any]:
    """Return a joint of bodies that are hardly ever posed together, each for itself."""
    sides = [at_least_a_place(side) for side in (draft.in_a, draft.in_b)]
    covariance, axes = np.full((2, 6, 6), np.nan)
    for i, side in enumerate(sides):
        if side.known:
            block = slice(3 * i, 3 * i + 3)
            free = FREE**2 * np.outer(side.axis, side.axis)
            covariance[block, block] = scatter(side.moves) + side.extra
            covariance[block, block] += free if side.kind == "hinge" else 0.0
            axes[block, block] = side.axis_covariance
    known = [side for side in sides if side.known]
    noises = np.array([side.noise for side in known])
    away = [side.away for side in known]
    return {
        "center_a": sides[0].center,
        "center_b": sides[1].center,
        "axis_a": sides[0].axis,
        "axis_b": sides[1].axis,
        "residual": np.sqrt(np.mean(noises**2)) if known else np.nan,
        "distance": np.concatenate(away).mean() if known else np.nan,
        "spread": np.full(6, np.nan),
        "covariance": covariance,
        "axis_covariance": axes,
        "kind": known[0].kind if known else "ball",
    }


def _noise(
    poses: PoseNoise, pair: Int[Array, "pair 2"], columns: dict[str, Array]
) -> Float[Array, " pair"]:
    """Return the gaps that noise alone leaves; along one radius if one side is soft."""
    center_a, center_b = columns["center_a"], columns["center_b"]
    both = np.isfinite(center_a + center_b).all(axis=1)
    u = np.concatenate(
        [center_a - poses.anchor[pair[:, 0]], center_b - poses.anchor[pair[:, 1]]],
        axis=1,
    )
    square = poses.gap(pair, np.where(np.isfinite(u), u, 0.0))
    square = np.where(both, square, square / 3.0)
    return np.where(np.isfinite(columns["residual"]), np.sqrt(square), np.nan)
