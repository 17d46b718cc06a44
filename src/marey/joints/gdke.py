"""Joint centres from the paths of single markers: sphere and circle fits.

The markers of one body, seen from another, turn about the joint between the two. Where
a sensor fit needs both bodies to have a pose, this needs one: the other may carry a
single marker.
"""

from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args

import numpy as np
from jaxtyping import Float, Int
from scipy.linalg import block_diag

from marey import geometry
from marey.bodies import Bodies
from marey.errors import OptionError
from marey.joints._closed import FREE
from marey.joints._crowd import Crowd
from marey.joints._gram import no_sums, pairs_of, sum_pairs
from marey.joints._mediation import mediation
from marey.joints._noise import PoseNoise, measure_noise
from marey.joints._radii import disagreement, scatter, tilt_step
from marey.joints._sphere import MIN_POSITIONS, Estimator, SphereKind, influence
from marey.joints._sphere import Sphere as Sphere
from marey.joints._sphere import SphereAccumulator as SphereAccumulator
from marey.joints._sphere import fit_sphere as fit_sphere
from marey.joints._types import JointFits

Array = np.ndarray
NONE = np.full(3, np.nan)


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
class _Side:
    """The joint in one body's axes, from the paths of the other body's markers."""

    points: Float[Array, "frame marker 3"]
    center: Float[Array, " 3"]
    axis: Float[Array, " 3"]
    kind: str
    noise: float
    spread: Float[Array, " 3"]
    moves: Float[Array, "frame 3"]
    """How far the noise of each frame moved the centre."""

    extra: Float[Array, "3 3"]
    """What the disagreement of markers adds to its covariance."""

    @property
    def known(self) -> bool:
        return bool(np.isfinite(self.center).all())


def fit(takes: tuple[Bodies, ...], **options: Any) -> JointFits:
    """Fit a joint between every two bodies to the paths of their markers.

    `center_a` is the point about which the markers of b turn in the axes of a, all
    markers together; `center_b` the other way round. Several takes count as one.
    Implements Knight2007, Sec. 2, with the departures of `fit_sphere`, and these: all
    markers of a body are used, not one; both directions are fitted, so the gap between
    them is a test that the paper has not; a hinge between two bodies with poses has the
    axis their turning shares and the centre midway between the feet of the two bodies'
    origins on it, both as in OBrien2000.

    A body that is not `determined` (one or two markers) has no axes to see others
    from: its own centre is NaN, and so are the pair's `spread` and `mediated`; the
    residual is that of the radii. A 6-DoF sensor without markers counts as one marker
    at its origin; if that sits in the joint and never moves, the centre is taken over
    from the other side. Bodies that do not move against each other are "fixed", with
    the point midway between them, or the mean place of the markers where one has no
    axes.

    Args:
        takes: The same bodies in one or several takes.
        **options: Fields of `GdkeOptions`.

    Raises:
        OptionError: If an option is not known.
    """
    unknown = set(options) - {field.name for field in fields(GdkeOptions)}
    if unknown:
        names = ", ".join(field.name for field in fields(GdkeOptions))
        raise OptionError(min(unknown), found=options[min(unknown)], needed=names)
    chosen = GdkeOptions(**options)
    crowd = Crowd(takes)
    pair = pairs_of(len(takes[0].names))
    poses = measure_noise(takes, noise=None, turn_noise=None)
    rows = [_fit_pair(crowd, int(a), int(b), chosen, poses) for a, b in pair]
    noise = _noise(poses, pair, rows)
    return JointFits(
        pair=pair,
        center_a=_stacked(rows, "center_a"),
        center_b=_stacked(rows, "center_b"),
        axis_a=_stacked(rows, "axis_a"),
        axis_b=_stacked(rows, "axis_b"),
        residual=_stacked(rows, "residual"),
        noise=noise,
        distance=_stacked(rows, "distance"),
        mediated=_mediated(takes, pair),
        spread=_stacked(rows, "spread"),
        covariance=_stacked(rows, "covariance"),
        kind=tuple(row["kind"] for row in rows),
    )


def _mediated(
    takes: tuple[Bodies, ...], pair: Int[Array, "pair 2"]
) -> Float[Array, " pair"]:
    if not all(take.determined.all() for take in takes):
        return np.full(len(pair), np.nan)
    sums = no_sums(len(takes[0].names))
    for take in takes:
        sums += sum_pairs(take.T_world_body, take.seen)
    return mediation(takes, sums, pair)


def _stacked(rows: list[dict[str, Any]], name: str) -> Array:
    return np.array([row[name] for row in rows])


def _fit_pair(
    crowd: Crowd, a: int, b: int, options: GdkeOptions, poses: PoseNoise
) -> dict[str, Any]:
    in_a = _side(crowd, a, b, options, poses)
    in_b = _side(crowd, b, a, options, poses)
    T_a_b = geometry.inverse(crowd.T[:, a]) @ crowd.T[:, b]
    T_a_b = T_a_b[np.isfinite(T_a_b).all(axis=(-1, -2))]
    both = crowd.determined[a] and crowd.determined[b]
    if not both or len(T_a_b) < MIN_POSITIONS:
        return _one_sided(in_a, in_b)
    kinds = {side.kind for side in (in_a, in_b) if side.known}
    if kinds == {"hinge"}:
        axis_a, axis_b = _common_axis(T_a_b[:, :3, :3])
        in_a = _side(crowd, a, b, options, poses, kind="hinge", axis=axis_a)
        in_b = _side(crowd, b, a, options, poses, kind="hinge", axis=axis_b)
    elif len(kinds) > 1:
        in_a = _side(crowd, a, b, options, poses, kind="ball")
        in_b = _side(crowd, b, a, options, poses, kind="ball")
    return _joined(T_a_b, *_completed(T_a_b, in_a, in_b))


def _side(
    crowd: Crowd,
    body: int,
    moving: int,
    options: GdkeOptions,
    poses: PoseNoise,
    *,
    kind: SphereKind | Literal["auto"] = "auto",
    axis: Array | None = None,
) -> _Side:
    """Return the joint in a body's axes; unknown where it has none."""
    n, none = len(crowd.T), np.zeros((3, 3))
    if not crowd.determined[body]:
        nothing = np.full((n, 0, 3), np.nan)
        return _Side(nothing, NONE, NONE, "fixed", np.nan, NONE, np.zeros((n, 3)), none)
    points = crowd.seen_from(body, moving)
    chosen = options.estimator
    noise = crowd.noise(points, poses, body, moving)
    sphere = fit_sphere(points, estimator=chosen, kind=kind, axis=axis, noise=noise)
    if sphere.reason:
        spread = sphere.spread
        return _Side(
            points, NONE, NONE, "fixed", np.nan, spread, np.zeros((n, 3)), none
        )
    moves = influence(points, sphere, estimator=chosen)
    center, extra = sphere.center, none
    if chosen == "geometric":
        turn, anchor = poses.turn[body], poses.anchor[body]
        extra = disagreement(points, center, sphere.basis)
        aside = tilt_step(points, center, sphere.basis, turn, anchor)
        # A step as long as the radius is none that a first order could tell.
        if np.linalg.norm(aside) < 0.5 * np.nanmax(sphere.radius):
            center = center + aside
    return _Side(
        points,
        center,
        sphere.axis,
        sphere.kind,
        sphere.noise,
        sphere.spread,
        moves,
        extra,
    )


# --- both bodies have a pose ----------------------------------------------------------


def _common_axis(R_a_b: Array) -> tuple[Array, Array]:
    """Return the axis in both bodies that their turning leaves most alike.

    R_a_b axis_b = axis_a in every frame of a perfect hinge (OBrien2000, Sec. 3.2).
    """
    U, _, Vt = np.linalg.svd(R_a_b.mean(axis=0))
    return U[:, 0], Vt[0]


def _completed(T_a_b: Array, in_a: _Side, in_b: _Side) -> tuple[_Side, _Side]:
    """Return both sides known: what one does not show is taken from the other."""
    if not in_a.known and not in_b.known:
        middle = 0.5 * T_a_b[:, :3, 3].mean(axis=0)
        in_a = replace(in_a, center=middle)
        return in_a, replace(in_b, center=_carried(geometry.inverse(T_a_b), middle))
    if not in_b.known:
        return in_a, _taken_over(geometry.inverse(T_a_b), in_b, in_a)
    if not in_a.known:
        return _taken_over(T_a_b, in_a, in_b), in_b
    return in_a, in_b


def _taken_over(T: Array, side: _Side, other: _Side) -> _Side:
    """Return a side with the centre and axis of the other, carried by T_side_other."""
    R = T[:, :3, :3].mean(axis=0)
    axis = R @ other.axis
    return replace(
        side,
        center=_carried(T, other.center),
        axis=axis / np.linalg.norm(axis),
        kind=other.kind,
        moves=other.moves @ R.T,
        extra=R @ other.extra @ R.T,
    )


def _carried(T: Array, point: Array) -> Array:
    return np.asarray(geometry.apply(T, point).mean(axis=0))


def _joined(T_a_b: Array, in_a: _Side, in_b: _Side) -> dict[str, Any]:
    kind = in_a.kind
    if kind == "hinge":
        in_a, in_b = _slid_together(T_a_b, in_a, in_b)
    gap = geometry.apply(T_a_b, in_b.center) - in_a.center
    moves = np.concatenate([in_a.moves, in_b.moves], axis=1)
    free = np.zeros((6, 6))
    if kind == "hinge":
        along = np.concatenate([in_a.axis, in_b.axis])
        free = FREE**2 * np.outer(along, along)
    elif kind == "fixed":
        free = FREE**2 * np.eye(6)
    away = np.concatenate([_away(in_a), _away(in_b)])
    return {
        "center_a": in_a.center,
        "center_b": in_b.center,
        "axis_a": in_a.axis,
        "axis_b": in_b.axis,
        "residual": np.sqrt(np.mean(np.sum(gap**2, axis=-1))),
        "distance": away.mean(),
        "spread": _spread(T_a_b[:, :3, :3]),
        "covariance": scatter(moves) + free + block_diag(in_a.extra, in_b.extra),
        "kind": kind,
    }


def _slid_together(T_a_b: Array, in_a: _Side, in_b: _Side) -> tuple[_Side, _Side]:
    """Return a hinge's two centres at the point midway between its bodies' feet."""
    foot_b = in_b.center - (in_b.center @ in_b.axis) * in_b.axis
    foot_a = in_a.center - (in_a.center @ in_a.axis) * in_a.axis
    half = 0.5 * (_carried(T_a_b, foot_b) - foot_a) @ in_a.axis
    return (
        replace(in_a, center=foot_a + half * in_a.axis),
        replace(in_b, center=foot_b - half * in_b.axis),
    )


def _away(side: _Side) -> Array:
    """Return the mean distance of each marker from the centre, in metres."""
    away = np.linalg.norm(side.points - side.center, axis=-1)
    known = np.isfinite(away)
    seen = known.any(axis=0)
    total = np.where(known, away, 0.0).sum(axis=0)[seen]
    return np.asarray(total / known.sum(axis=0)[seen])


def _spread(R_a_b: Array) -> Array:
    """Return how much the turning of two bodies excites, as OBrien2000's fit has it."""
    s = np.linalg.svd(R_a_b.mean(axis=0), compute_uv=False)
    return np.asarray(np.sqrt(np.sort(np.concatenate([1.0 - s, 1.0 + s])).clip(0.0)))


# --- only one body has a pose ---------------------------------------------------------


def _one_sided(in_a: _Side, in_b: _Side) -> dict[str, Any]:
    """Return what one body sees of a joint whose other body has no axes."""
    if in_a.points.shape[1] and not in_b.points.shape[1]:
        in_a = known = _at_least_a_place(in_a)
        block = slice(0, 3)
    else:
        in_b = known = _at_least_a_place(in_b)
        block = slice(3, 6)
    covariance = np.full((6, 6), np.nan)
    distance = np.nan
    if known.known:
        covariance[block, block] = scatter(known.moves) + known.extra
        if known.kind == "hinge":
            covariance[block, block] += FREE**2 * np.outer(known.axis, known.axis)
        distance = float(_away(known).mean())
    return {
        "center_a": in_a.center,
        "center_b": in_b.center,
        "axis_a": in_a.axis,
        "axis_b": in_b.axis,
        "residual": known.noise,
        "distance": distance,
        "spread": np.full(6, np.nan),
        "covariance": covariance,
        "kind": known.kind if known.known else "ball",
    }


def _at_least_a_place(side: _Side) -> _Side:
    """Return a side that shows no centre with the markers' mean place as one."""
    seen = np.isfinite(side.points).all(axis=-1)
    if side.known or seen.sum(axis=0).max(initial=0) < MIN_POSITIONS:
        return side
    return replace(
        side,
        center=side.points[seen].mean(axis=0),
        noise=float(np.linalg.norm(side.spread)),
        extra=FREE**2 * np.eye(3),
    )


def _noise(
    poses: PoseNoise, pair: Int[Array, "pair 2"], rows: list[dict[str, Any]]
) -> Float[Array, " pair"]:
    """Return the gaps that noise alone leaves; along one radius if one side is soft."""
    center_a, center_b = _stacked(rows, "center_a"), _stacked(rows, "center_b")
    both = np.isfinite(center_a + center_b).all(axis=1)
    u = np.concatenate(
        [center_a - poses.anchor[pair[:, 0]], center_b - poses.anchor[pair[:, 1]]],
        axis=1,
    )
    square = poses.gap(pair, np.where(np.isfinite(u), u, 0.0))
    square = np.where(both, square, square / 3.0)
    fitted = np.isfinite(_stacked(rows, "residual"))
    return np.where(fitted, np.sqrt(square), np.nan)
