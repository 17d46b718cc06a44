"""Joint centres from the paths of single markers: sphere and circle fits (Knight2007).

In the axes of one body, the markers of another rotate about the joint between the two.
A sensor fit needs the poses of both bodies; this one needs only one of them, and the
other body may have a single marker.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from marey.bodies import Bodies
from marey.joint_fits import JointFits
from marey.joints.ball.assemble_fits import PairEstimates, assemble_joint_fits
from marey.joints.ball.closed_form import (
    FREE_SD_M,
    MAX_SD_M,
    bias_corrected_system,
    uncorrected_system,
)
from marey.joints.ball.evidence import mediation_ratios
from marey.joints.ball.fit import candidate_pairs, fit_roughly
from marey.joints.ball.hinge import (
    axis_covariance,
    axis_scatter,
    hinge_axes,
)
from marey.joints.ball.normal_equations import (
    Pairs,
    PerPair,
    all_pairs,
)
from marey.joints.ball.pair_frames import RelativePoses
from marey.joints.noise import PoseNoise, estimate_pose_noise
from marey.joints.sphere.fit import (
    MIN_POSITIONS,
    GdkeOptions,
    SphereEstimator,
)
from marey.joints.sphere.sandwich import sandwich_covariance
from marey.joints.sphere.sides import (
    MarkerPaths,
    OneSidedFit,
    align_along_hinge,
    block_diagonal,
    fallback_center,
    fill_missing_side,
    fit_both_centers,
    fit_one_side,
    remove_bias,
)
from marey.joints.stacked_takes import StackedTakes
from marey.numerics import Array, Bool, Float, Int
from marey.numerics.procrustes import poses_seen
from marey.numerics.robust import rms
from marey.options import options_from

Rows = Int[Array, " row"]

FITTED_COLUMNS = (
    *("center_a", "center_b", "axis_a", "axis_b", "residual", "distance"),
    *("spread", "covariance", "axis_covariance"),
)
"""Fields of `JointFits` that a fit to paths of markers determines."""


@dataclass(frozen=True, slots=True, eq=False)
class _PairFit:
    """The joint of one pair of bodies, in the axes of both."""

    T_a_b: Float[Array, "frame 4 4"]
    """NaN where one of them has no pose."""

    both_seen: Float[Array, "seen 4 4"]
    """T_a_b in the frames that show both bodies."""

    has_axes: bool
    """Whether both bodies have axes in which the joint is fitted."""

    in_a: OneSidedFit
    in_b: OneSidedFit
    axis_covariance: Float[Array, "6 6"]
    """Covariance of (axis_a, axis_b), in square radians."""

    covariance: Float[Array, "6 6"]
    """Covariance (m^2) of (center_a, center_b) without the free directions."""

    @property
    def two_sided(self) -> bool:
        """Whether the joint is fitted in both bodies, and enough frames show them."""
        return self.has_axes and len(self.both_seen) >= MIN_POSITIONS

    @property
    def residual(self) -> float:
        """Root mean square distance of the two centres, in metres."""
        from marey.joints.sphere.radii_kernel import sum_residuals  # numba is slow

        centers = self.in_a.center, self.in_b.center
        sums = sum_residuals(self.both_seen, *centers, np.eye(3))
        return float(np.sqrt(sums.square[0]))


def fit(takes: tuple[Bodies, ...], **options: Any) -> JointFits:
    """Return a joint for every two bodies, fitted to the paths of their markers.

    `center_a` is the point about which the markers of b rotate in the axes of a, all
    markers together; for `center_b` the roles are swapped. Several takes are one fit.

    Implements Knight2007, Sec. 2, with the departures of `fit_sphere` and these. All
    markers of a body are used, not one. Both bodies' axes are used; where both have
    poses, the joint residual counts as well as the radii (`fit_both_centers`; only for
    "geometric"). A hinge between two such bodies has the axis of the null space of
    their rotations and the minimum norm centre, both as in OBrien2000. Pairs of such
    bodies keep the least squares of OBrien2000 if these leave a residual far above that
    of other pairs: such bodies cannot be joined.

    A body that is not `determined` (one or two markers) has no axes of its own. The
    joint is then fitted in the axes of the other body alone: its residual is that of
    the radii, and `spread` is NaN. Its centre in the first body is the mean position of
    the joint in the pose that segmentation gave that body; the covariance is the
    scatter of these positions. Two such bodies are fitted in those poses. A 6-DoF
    sensor without markers counts as one marker at its origin. If the origin is in the
    joint and never moves, the centre is copied from the other side. Bodies that do not
    move relative to each other are "fixed". Their centre is the point midway between
    them, or the mean marker position where one has no axes. No joint is called
    "universal": its markers run on a sphere like those of any ball. Only the rotations
    of both bodies show that it is one, and only "ball" uses them.

    Args:
        takes: The same bodies in one or several takes.
        **options: Fields of `GdkeOptions`.

    Raises:
        OptionError: If an option is not known.
    """
    estimator = options_from(GdkeOptions, options).estimator
    stacked, poses = StackedTakes(takes), estimate_pose_noise(takes)
    rough = _fit_roughly(takes, stacked, poses)
    pair = rough.pair
    columns = {name: getattr(rough, name).copy() for name in FITTED_COLUMNS}
    kind = list(rough.kind)

    def fit_rows(rows: Rows, estimator: SphereEstimator) -> None:
        """Replace the joints of some pairs by fits to the paths of their markers."""
        for row in rows.tolist():
            a, b = pair[row].tolist()
            pair_fit = _fit_pair(stacked, a, b, estimator, poses)
            of_sides = _two_sided_row if pair_fit.two_sided else _one_sided_row
            fields = of_sides(pair_fit)
            kind[row] = fields.pop("kind")
            for name, value in fields.items():
                columns[name][row] = value

    has_axes = stacked.determined[pair].all(axis=1) & np.isfinite(rough.residual)
    joined = candidate_pairs(pair, np.where(has_axes, rough.residual, np.nan))
    if estimator == "geometric":
        # From moments alone, to see which pairs may be joined.
        fit_rows(np.flatnonzero(~has_axes), "corrected")
        joined |= ~has_axes & candidate_pairs(pair, columns["residual"])
    else:
        joined |= ~has_axes
    fit_rows(np.flatnonzero(joined), estimator)
    one_sided = np.isnan(columns["spread"]).all(axis=1)
    noise = _expected_residual(poses, pair, columns, one_sided)
    return replace(rough, kind=tuple(kind), noise=noise, **columns)


def _fit_roughly(
    takes: tuple[Bodies, ...], stacked: StackedTakes, poses: PoseNoise
) -> JointFits:
    """Return the joints of all pairs by the least squares of OBrien2000."""
    pair = all_pairs(len(takes[0].names))
    sums, raw, centers, _ = fit_roughly(stacked.T, poses, pair, MAX_SD_M)
    estimates = PairEstimates(pair, poses, uncorrected_system(raw), centers)
    mediated = mediation_ratios(takes, sums, pair)
    return assemble_joint_fits(estimates, takes[0], mediated)


def _fit_pair(
    takes: StackedTakes, a: int, b: int, estimator: SphereEstimator, poses: PoseNoise
) -> _PairFit:
    """Return the joint of a pair, fitted in the axes of each body separately.

    If neither body is determined, their poses by segmentation serve as axes.
    """
    determined = takes.determined[[a, b]]
    usable = (determined | ~determined.any()).tolist()
    has_axes = dict(zip((a, b), usable, strict=True))
    paths = [
        MarkerPaths.in_body(takes, body, moving, poses, has_axes=has_axes[body])
        for body, moving in ((a, b), (b, a))
    ]
    starts = [path.fit_moments(estimator) for path in paths]
    T_a_b = takes.relative_poses(a, b)
    both_seen = T_a_b[poses_seen(T_a_b[:, None])[:, 0]]
    two_sided = all(usable) and len(both_seen) >= MIN_POSITIONS
    axes = np.full((6, 6), np.nan)
    kinds = {start.kind for start in starts if not start.reason}
    is_hinge = two_sided and kinds == {"hinge"}
    if is_hinge:
        *known, axes = _common_axis(both_seen, poses, a, b)
        # A side whose markers do not move, as they lie on the axis, stays unknown.
        starts = [
            start if start.reason else path.fit_moments(estimator, "hinge", axis)
            for path, start, axis in zip(paths, starts, known, strict=True)
        ]
    elif two_sided and len(kinds) > 1:
        starts = [path.fit_moments(estimator, "ball") for path in paths]
    in_a, in_b = (
        fit_one_side(path, start, estimator, axis_given=is_hinge)
        for path, start in zip(paths, starts, strict=True)
    )
    unknown = np.full((6, 6), np.nan)
    pair_fit = _PairFit(T_a_b, both_seen, all(usable), in_a, in_b, axes, unknown)
    if not pair_fit.two_sided:
        return replace(pair_fit, in_a=remove_bias(in_a), in_b=remove_bias(in_b))
    if in_a.bias is None or in_b.bias is None:
        pair_fit = _from_single_sides(pair_fit)
    return _fit_both(pair_fit) if estimator == "geometric" else pair_fit


def _from_single_sides(pair_fit: _PairFit) -> _PairFit:
    """Return a joint whose centres are those of each side, or of the side there is."""
    in_a, in_b = remove_bias(pair_fit.in_a), remove_bias(pair_fit.in_b)
    in_a, in_b = fill_missing_side(pair_fit.both_seen, in_a, in_b)
    influence = np.concatenate([in_a.influence, in_b.influence], axis=1)
    disagreement = block_diagonal(in_a.disagreement, in_b.disagreement)
    covariance = sandwich_covariance(influence) + disagreement
    return replace(pair_fit, in_a=in_a, in_b=in_b, covariance=covariance)


def _common_axis(
    T_a_b: Array, poses: PoseNoise, a: int, b: int
) -> tuple[Array, Array, Array]:
    """Return the axis in both bodies that their rotations share, and its covariance.

    R_a_b axis_b = axis_a in every frame of an exact hinge (OBrien2000, Sec. 3.2).
    """
    equations = RelativePoses(T_a_b[:, :3, :3], T_a_b[:, :3, 3]).equations()
    system = bias_corrected_system(equations, poses, np.array([[a, b]]))
    axis_a, axis_b = hinge_axes(system)
    scatter = axis_scatter(T_a_b[:, :3, :3], axis_a[0], axis_b[0])
    axes = axis_covariance(system.A, axis_a, axis_b, scatter[None])
    return axis_a[0], axis_b[0], axes[0]


def _fit_both(pair_fit: _PairFit) -> _PairFit:
    """Return a joint whose two centres are fitted together, if it has any motion."""
    in_a, in_b = pair_fit.in_a, pair_fit.in_b
    if in_a.kind == "fixed":
        return pair_fit
    (center_a, center_b), covariance = fit_both_centers(pair_fit.T_a_b, (in_a, in_b))
    return replace(
        pair_fit,
        in_a=replace(in_a, center=center_a),
        in_b=replace(in_b, center=center_b),
        covariance=covariance,
    )


def _two_sided_row(pair_fit: _PairFit) -> dict[str, Any]:
    """Return the fields of `JointFits` of a pair with two poses."""
    in_a, in_b, T_a_b = pair_fit.in_a, pair_fit.in_b, pair_fit.both_seen
    free = np.zeros((6, 6))
    if in_a.kind == "hinge":
        in_a, in_b = align_along_hinge(T_a_b, in_a, in_b)
        along = np.concatenate([in_a.axis, in_b.axis])
        free = FREE_SD_M**2 * np.outer(along, along)
    elif in_a.kind == "fixed":
        free = FREE_SD_M**2 * np.eye(6)
    return {
        **_fields_of_sides(in_a, in_b),
        "residual": replace(pair_fit, in_a=in_a, in_b=in_b).residual,
        "covariance": pair_fit.covariance + free,
        "axis_covariance": pair_fit.axis_covariance,
    }


def _one_sided_row(pair_fit: _PairFit) -> dict[str, Any]:
    """Return the fields of `JointFits` of a pair hardly ever posed together.

    The side of a body without axes is the mean position of the joint in that body.
    """
    sides = [fallback_center(side) for side in (pair_fit.in_a, pair_fit.in_b)]
    noise = np.array([side.noise for side in sides if side.known])
    if len(noise) == 1 and len(pair_fit.both_seen):
        sides = list(fill_missing_side(pair_fit.both_seen, *sides))
    covariance = sandwich_covariance(np.concatenate([s.influence for s in sides], 1))
    covariance += block_diagonal(*(side.disagreement for side in sides))
    axes = np.full((6, 6), np.nan)
    for i, side in enumerate(sides):
        block = slice(3 * i, 3 * i + 3)
        if not side.known:
            covariance[block], covariance[:, block] = np.nan, np.nan
            continue
        if side.kind == "hinge":
            covariance[block, block] += FREE_SD_M**2 * np.outer(side.axis, side.axis)
        axes[block, block] = side.axis_covariance
    return {
        **_fields_of_sides(*sides),
        "residual": rms(noise),
        "spread": np.full(6, np.nan),
        "covariance": covariance,
        "axis_covariance": axes,
    }


def _fields_of_sides(in_a: OneSidedFit, in_b: OneSidedFit) -> dict[str, Any]:
    """Return centres, axes, mean distance from the markers, and kind."""
    known = [side for side in (in_a, in_b) if side.known]
    distances = [side.marker_distance for side in known]
    return {
        "center_a": in_a.center,
        "center_b": in_b.center,
        "axis_a": in_a.axis,
        "axis_b": in_b.axis,
        "distance": np.concatenate(distances).mean() if known else np.nan,
        "kind": known[0].kind if known else "ball",
    }


def _expected_residual(
    poses: PoseNoise,
    pair: Pairs,
    columns: dict[str, Array],
    one_sided: Bool[Array, " pair"],
) -> PerPair:
    """Return the residuals that noise alone leaves, in metres.

    Along one radius only, a third of the variance, if one body has no axes.
    """
    centers = np.stack([columns["center_a"], columns["center_b"]], axis=1)
    u = (centers - poses.anchor[pair]).reshape(-1, 6)
    square = poses.mean_square_residual(pair, np.where(np.isfinite(u), u, 0.0))
    square = np.where(one_sided, square / centers.shape[-1], square)
    return np.where(np.isfinite(columns["residual"]), np.sqrt(square), np.nan)
