r"""Gaussian priors and constraints on the parameters, as rows of equations.

Each linear row states :math:`\sum_c f_c\, p_c = y \pm \sigma` and adds its squared
residual to the cost. Priors (landmark regression, symmetry, proportions) have the
weight T of `prior_weight` in `bundle_adjustment` ("tempered"). Constraints, such as the
choice of each segment's axes (the gauge), have the weight 1.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from marey.anatomy import names as vrm
from marey.anatomy.whole_person import BONE_OF_STATURE, BONE_OF_STATURE_BY_SEX
from marey.calibration.model import (
    MEAN_STATURE_M,
    MIN_NOISE_M,
    KinematicModel,
    ModelParameters,
)
from marey.calibration.problem import CalibrationProblem
from marey.numerics import Array, Bool, Float, Int, geometry
from marey.numerics.thresholds import FEW, SKIN_MOTION_M, TINY_LENGTH_M

Terms = Sequence[tuple[Int[Array, " x"], Float[Array, "row x"]]]
"""Columns of some parameters, and their matrix."""

EYE = np.eye(3)

GAUGE_SD_M = 5e-4
"""Standard deviation of the constraints that choose each segment's axes, in metres.
Lower worsens the conditioning. Chosen by hand."""

JOINT_SD_M = 0.050
"""Standard deviation of a person's joint without landmarks from its initial position,
in metres. Lower trusts the initial positions more. Chosen by hand."""

STATURE_SD_M = 0.3
"""Standard deviation of the height of people, in metres, children included. Lower pulls
all bones towards those of an average person. Chosen by hand."""

BONE_OF_STATURE_SD = 0.05
"""Relative standard deviation of `BONE_OF_STATURE` between people of one sex. Lower
pulls bones towards the usual proportions. Chosen by hand, mostly on CMU 02 and 07,
Uhlrich 2 and Plug-in Gait, like all standard deviations here."""

ABOVE = {
    vrm.LOWER_LEG: vrm.UPPER_LEG,
    vrm.FOOT: vrm.LOWER_LEG,
    vrm.LOWER_ARM: vrm.UPPER_ARM,
    vrm.HAND: vrm.LOWER_ARM,
}
"""The segment whose bone ends in each joint of `BONE_OF_STATURE`."""

HIP_WIDTH_OF_STATURE, HIP_WIDTH_OF_STATURE_SD = 0.100, 0.08
"""Distance of the hip joints as a share of the stature, and its relative standard
deviation. Lower pulls the hips towards the usual width. Chosen by hand."""

EQUAL_BONES_SD_M = 0.005
"""Standard deviation of the difference of left and right bones, in metres. Lower makes
both sides more equal. Chosen by hand."""

MIRRORED_JOINTS_SD_M = 0.010
"""Standard deviation of hips, clavicles and shoulders from the mirror image of the
other side, in metres. Lower makes both sides more equal. Chosen by hand."""


def determine_rotation(markers: Float[Array, "marker 3"]) -> bool:
    """Return whether markers determine a rotation: three or more, not on a line."""
    if len(markers) < len(EYE):
        return False
    extent = np.linalg.svd(markers - markers.mean(axis=0), compute_uv=False)
    return bool(extent[1] > FEW * extent[0])


@dataclass(frozen=True, slots=True)
class LengthPrior:
    """A Gaussian prior on bone lengths: a proportion of the stature, or symmetry."""

    first: int
    """A segment: the bone from its parent's joint to its own."""

    second: int
    """Another segment, whose bone is subtracted; -1 for none."""

    ratio: float
    """Length as a share of the stature; 0 for two bones of equal length."""

    sd: float
    """Standard deviation, in metres."""

    is_distance: bool = False
    """Whether the length is the distance of the two joints, on one parent."""


@dataclass(eq=False)
class Prior:
    """Linear rows and length priors of one person, for all its sessions.

    Initialisations add all rows before the first equations are asked for.
    """

    model: KinematicModel
    rows: list[Float[Array, " column"]] = field(default_factory=list)
    targets: list[float] = field(default_factory=list)
    is_constraint: list[bool] = field(default_factory=list)
    """Whether a row has weight 1 rather than the weight of a prior."""

    row_sessions: list[tuple[int, ...]] = field(default_factory=list)
    """Sessions in which a row holds; () for all."""

    cluster_rows: list[int] = field(default_factory=list)
    """Constraints that hold in every session alike."""

    lengths: list[LengthPrior] = field(default_factory=list)
    _normals: dict[tuple[int, int], tuple[Array, Array]] = field(default_factory=dict)

    def add(
        self,
        terms: Terms,
        target: Float[Array, " row"],
        sd: float,
        *,
        constraint: bool = False,
        sessions: tuple[int, ...] = (),
    ) -> None:
        """Add rows: the sum of matrix times parameters is `target`, within `sd`.

        Args:
            terms: Columns of some parameters, and their matrix.
            target: Value of the sum.
            sd: Its standard deviation.
            constraint: Whether the rows have weight 1.
            sessions: Sessions in which the rows hold; all if there are none.
        """
        rows = np.zeros((len(target), self.model.columns.count))
        for columns, matrix in terms:
            rows[:, columns] += matrix / sd
        self.rows += [*rows]
        self.targets += (target / sd).tolist()
        self.is_constraint += [constraint] * len(target)
        self.row_sessions += [sessions] * len(target)

    def add_landmark_prior(
        self,
        segment: int,
        markers: list[int],
        offset: Float[Array, " 3"],
        precision: Float[Array, "3 3"],
        *,
        sessions: tuple[int, ...] = (),
    ) -> None:
        """Add: a joint has this offset from the mean of markers on its parent.

        Args:
            segment: The segment below the joint.
            markers: The markers.
            offset: The joint minus their mean.
            precision: Square root of the inverse of the covariance of this offset.
            sessions: Sessions in which it holds; all if there are none.
        """
        columns, n = self.model.columns, len(markers)
        terms = [(columns.marker_offset[k], -precision / n) for k in markers]
        terms.append((columns.joint_offset[segment], precision))
        self.add(terms, precision @ offset, 1.0, sessions=sessions)

    def add_mean_prior(
        self,
        markers: list[int],
        mean: Float[Array, " 3"],
        sd: float,
        *,
        sessions: tuple[int, ...],
    ) -> None:
        """Add: markers of one segment have this mean offset, in these sessions."""
        column = self.model.columns.marker_offset[markers]
        terms = [(start, EYE / len(markers)) for start in column]
        if sessions:
            self.add(terms, mean, sd, sessions=sessions)

    def add_mirror_prior(self, left: int, right: int, sd: float) -> None:
        """Add: two joints of one parent are mirror images; y points to the left."""
        column = self.model.columns.joint_offset
        mirror = np.diag([-1.0, 1.0, -1.0])
        self.add([(column[left], EYE), (column[right], mirror)], np.zeros(3), sd)

    def add_joint_prior(
        self,
        segment: int,
        offset: Float[Array, " 3"],
        sd: float,
        *,
        constraint: bool = False,
    ) -> None:
        """Add: a joint has this offset in its parent."""
        column = self.model.columns.joint_offset[segment]
        self.add([(column, EYE)], offset, sd, constraint=constraint)

    def add_marker_priors(self, offsets: Float[Array, "marker 3"], sd: float) -> None:
        """Add: every marker has its offset in its segment."""
        for column, offset in zip(
            self.model.columns.marker_offset, offsets, strict=True
        ):
            self.add([(column, EYE)], offset, sd)

    def add_axis_prior(self, axis: int, parameters: ModelParameters, sd: float) -> None:
        """Add: an axis has its present directions in parent and child."""
        columns = self.model.columns.axis[axis]
        for column, direction in zip(columns, parameters.axis[axis], strict=True):
            self.add([(column, EYE)], direction, sd)

    def add_gauge_constraints(
        self,
        offsets: Float[Array, "marker 3"],
        seen: Bool[Array, " marker"] | None = None,
    ) -> None:
        r"""Add the constraints that choose the axes of all segments.

        A rotation of a segment's axes together with its markers changes no distance.
        The markers of a segment must therefore not rotate about their mean as a whole,
        or about the joint where they are too few. The root has no joint: the mean of
        its markers stays too. For offsets m near the given m0:

        .. math:: \sum_k m_{0k} \times (m_k - m_{0k}) = 0

        Args:
            offsets: Markers in their segments.
            seen: Markers that the first session shows, which defines the axes; all if
                left out. Other markers of a segment could move in their place: sensors
                of another session, whose rotation on the segment is to be found.
        """
        shown = np.ones(len(offsets), dtype=bool) if seen is None else seen
        for i in range(len(self.model.names)):
            markers = self.model.markers_of(i)
            markers = [k for k in markers if shown[k]] or markers
            for name, terms, target in self._rigid_rows(i, offsets, markers):
                if name == "rotation" or i == 0:
                    self.add(terms, target, GAUGE_SD_M, constraint=True)

    def add_cluster_priors(self, offsets: Float[Array, "marker 3"], sd: float) -> None:
        """Add: the markers of each segment sit on it as a whole as they do here.

        Neither their mean nor their rotation about it differs by more than that of as
        many markers of which each is misplaced independently. Where a marker sits among
        the others is left open, because every frame shows it.

        Args:
            offsets: Markers in their segments.
            sd: Standard deviation of one marker, in metres.
        """
        for i in range(len(self.model.names)):
            markers = self.model.markers_of(i)
            of_mean = sd / np.sqrt(max(len(markers), 1))
            for _, terms, target in self._rigid_rows(i, offsets, markers):
                self.cluster_rows += range(len(self.rows), len(self.rows) + len(target))
                self.add(terms, target, of_mean, constraint=True)

    def _rigid_rows(
        self, segment: int, offsets: Float[Array, "marker 3"], markers: list[int]
    ) -> Iterator[tuple[str, Terms, Float[Array, " 3"]]]:
        """Return the rows of a segment's markers as a whole: "rotation" and "mean"."""
        if not markers:
            return
        m, column = offsets[markers], self.model.columns.marker_offset[markers]
        about_mean = segment == 0 or determine_rotation(m)
        lever = m - m.mean(axis=0) if about_mean else m
        size = np.sqrt(np.mean(np.sum(lever**2, axis=1))) + TINY_LENGTH_M
        cross = geometry.hat(lever) / (size * len(markers))
        target = np.einsum("nxz,nz->x", cross, m)
        yield "rotation", list(zip(column, cross, strict=True)), target
        yield "mean", [(start, EYE / len(markers)) for start in column], m.mean(axis=0)

    @cached_property
    def _matrices(self) -> tuple[Array, Array]:
        """Matrix and target of all rows."""
        shape = len(self.rows), self.model.columns.count
        return np.array(self.rows).reshape(shape), np.array(self.targets)

    @cached_property
    def _constraints(self) -> tuple[Array, Array, Array, Array]:
        """Which rows are constraints of axes and of clusters; their normal matrices."""
        of_axes = np.array(self.is_constraint, dtype=bool)
        of_clusters = np.zeros_like(of_axes)
        of_clusters[self.cluster_rows] = True
        of_axes &= ~of_clusters
        axes, clusters = self._matrices[0][of_axes], self._matrices[0][of_clusters]
        return of_axes, of_clusters, axes.T @ axes, clusters.T @ clusters

    def _session_prior(self, session: int, n_sessions: int) -> tuple[Array, Array]:
        """Return the share of each prior row in a session, and its normal matrix.

        A prior belongs to the person: it is divided among the sessions it holds in.
        """
        if (session, n_sessions) not in self._normals:
            everywhere = tuple(range(n_sessions))
            sessions = [one or everywhere for one in self.row_sessions]
            share = np.array([(session in one) / len(one) for one in sessions])
            share[np.array(self.is_constraint, dtype=bool)] = 0.0
            matrix = self._matrices[0]
            normal = (share[:, None] * matrix).T @ matrix
            self._normals[session, n_sessions] = share, normal
        return self._normals[session, n_sessions]

    def linear_equations(
        self, parameters: ModelParameters, session: int, weight: float
    ) -> tuple[Array, Array, float]:
        """Return normal matrix, gradient and cost of the linear rows of a session."""
        matrix, _ = self._matrices
        _, _, axes_normal, clusters_normal = self._constraints
        n_sessions = len(parameters.marker_offset)
        _, prior_normal = self._session_prior(session, n_sessions)
        residual, row_weight, constraint = self._linear_rows(
            parameters, session, weight
        )
        normal = weight * prior_normal + constraint * axes_normal + clusters_normal
        gradient = np.einsum("rc,r->c", matrix, row_weight * residual)
        return normal, gradient, float(row_weight @ residual**2)

    def _linear_rows(
        self, parameters: ModelParameters, session: int, weight: float
    ) -> tuple[Float[Array, " row"], Float[Array, " row"], float]:
        """Return residual and weight of the linear rows, and that of constraints.

        The axes of segments are chosen in session 0; in others the markers may have
        been replaced a little differently, which weakens the constraints.
        """
        n_sessions = len(parameters.marker_offset)
        matrix, target = self._matrices
        of_axes, of_clusters, _, _ = self._constraints
        share, _ = self._session_prior(session, n_sessions)
        replaced = weight / n_sessions * (GAUGE_SD_M / SKIN_MOTION_M) ** 2
        constraint = 1.0 if session == 0 else replaced
        # einsum, because the threads of the linear-algebra library would compete.
        residual = target - np.einsum("rc,c->r", matrix, parameters.vector(session))
        row_weight = np.where(of_axes, constraint, weight * share) + of_clusters
        return residual, row_weight, constraint

    def cost(self, parameters: ModelParameters, weight: float) -> float:
        """Return the cost of all rows in all sessions."""
        total = weight * float(np.sum(self.nonlinear_rows(parameters)[0] ** 2))
        for session in range(len(parameters.marker_offset)):
            residual, row_weight, _ = self._linear_rows(parameters, session, weight)
            total += float(row_weight @ residual**2)
        return total

    def nonlinear_rows(
        self, parameters: ModelParameters
    ) -> tuple[Float[Array, " row"], Float[Array, "row x"]]:
        """Return residual and Jacobian of the rows that are not linear.

        These are the length priors, the unit length of all axes, the motion of centres
        and the stature. The columns are those of a session, then the motion of centres
        and the stature.
        """
        columns = self.model.columns
        axes, axis_columns = (x.reshape(-1, 3) for x in (parameters.axis, columns.axis))
        motion = parameters.center_motion
        n, m = len(self.lengths), len(self.lengths) + len(axes)
        residual = np.zeros(m + motion.size + 1)
        jacobian = np.zeros((len(residual), columns.count + motion.size + 1))
        residual[:n] = _length_rows(self._lengths, parameters, jacobian[:n])
        residual[n:m] = (1.0 - np.sum(axes**2, axis=1)) / FEW
        jacobian[np.arange(n, m)[:, None], axis_columns] = 2.0 * axes / FEW
        moving = [self.model.axes[n].center_sd for n in self.model.moving_centers]
        sd = np.repeat(moving, motion[:1].size)
        residual[m:-1] = -motion.ravel() / sd
        jacobian[
            np.arange(m, len(residual) - 1), columns.count + np.arange(len(sd))
        ] = 1.0 / sd
        residual[-1] = (MEAN_STATURE_M - parameters.stature) / STATURE_SD_M
        jacobian[-1, -1] = 1.0 / STATURE_SD_M
        return residual, jacobian

    @cached_property
    def _lengths(self) -> tuple[Array, ...]:
        """Fields of all length priors, one array each, lengths in metres."""
        rows = [
            (one.first, one.second, one.ratio, one.sd, one.is_distance)
            for one in self.lengths
        ]
        first, second, ratio, sd, is_distance = np.array(rows).reshape(-1, 5).T
        return (
            first.astype(int),
            second.astype(int),
            ratio,
            sd,
            is_distance.astype(bool),
        )


def _length_rows(
    priors: tuple[Array, ...],
    parameters: ModelParameters,
    jacobian: Float[Array, "row x"],
) -> Float[Array, " row"]:
    """Return the residuals of length priors and write their rows of the Jacobian."""
    first, second, ratio, sd, is_distance = priors
    offset, column = parameters.joint_offset, parameters.model.columns.joint_offset
    a, b = offset[first], offset[second]
    distance = a - b
    a, b = (np.where(is_distance[:, None], distance, x) for x in (a, b))
    length, other = (np.sqrt(np.sum(x**2, axis=1)) for x in (a, b))
    rows, has_second = np.arange(len(first))[:, None], second >= 0
    jacobian[rows, column[first]] = (
        a / (sd * np.maximum(length, TINY_LENGTH_M))[:, None]
    )
    both = rows[has_second]
    b = b / (sd * np.maximum(other, TINY_LENGTH_M))[:, None]
    jacobian[both, column[second[has_second]]] -= b[has_second]
    jacobian[:, -1] = -ratio / sd
    length = length - np.where(has_second & ~is_distance, other, 0.0)
    return np.asarray((ratio * parameters.stature - length) / sd)


def add_symmetry_and_proportions(prior: Prior, *, mirror: bool) -> None:
    """Add priors: bones are equal on both sides and have the usual proportions.

    A bone that another body divides, as at a knee whose landmarks move by themselves,
    has none of the two.

    Args:
        prior: Where to add them.
        mirror: Whether hips and shoulders are mirror images too; the y axes of pelvis
            and chest must then point to the left.
    """
    model, lengths = prior.model, prior.lengths

    def both_sides(name: str) -> tuple[int, int]:
        return model.index(f"Left{name}"), model.index(f"Right{name}")

    for name, share in BONE_OF_STATURE.items():
        left, right = (
            joint if model.parent[joint] == start else -1
            for joint, start in zip(
                both_sides(name), both_sides(ABOVE[name]), strict=True
            )
        )
        if left > 0 and right > 0:
            lengths.append(LengthPrior(left, right, 0.0, EQUAL_BONES_SD_M))
        sd = _share_sd(name) * MEAN_STATURE_M
        lengths += [LengthPrior(i, -1, share, sd) for i in (left, right) if i > 0]
    hips, clavicles = both_sides("UpperLeg"), both_sides("Shoulder")
    shoulders = both_sides("UpperArm")
    sd = HIP_WIDTH_OF_STATURE_SD * HIP_WIDTH_OF_STATURE * MEAN_STATURE_M
    lengths.append(LengthPrior(*hips, HIP_WIDTH_OF_STATURE, sd, is_distance=True))
    if mirror:
        prior.add_mirror_prior(*hips, MIRRORED_JOINTS_SD_M)
    if min(clavicles) > 0 and mirror:
        prior.add_mirror_prior(*clavicles, MIRRORED_JOINTS_SD_M)
    if min(*clavicles, *shoulders) > 0:
        lengths.append(LengthPrior(*shoulders, 0.0, MIRRORED_JOINTS_SD_M))
    elif min(shoulders) > 0 and mirror:
        prior.add_mirror_prior(*shoulders, MIRRORED_JOINTS_SD_M)


def _share_sd(name: str) -> float:
    """Return the standard deviation of a bone's share of the stature, of both sexes."""
    between_sexes = float(np.std(BONE_OF_STATURE_BY_SEX[name]))
    return float(np.hypot(BONE_OF_STATURE_SD * BONE_OF_STATURE[name], between_sexes))


@dataclass(frozen=True, slots=True, eq=False)
class Initialisation:
    """Initial parameters of a kinematic model and priors on them."""

    problem: CalibrationProblem
    """What is calibrated; its parameters are those of the given skeleton."""

    parameters: ModelParameters
    prior: Prior
    min_noise: float = MIN_NOISE_M
    """Smallest scale of a marker, in metres."""

    landmark_joints: tuple[str, ...] = ()
    """Joints whose initial position comes from landmarks. That of the others comes from
    the skeleton that is calibrated."""

    fits_center_motion: bool = False
    """Whether the motion of centres is fitted, or only makes joints uncertain. Only
    landmarks hold a knee in place while its centre may move."""

    undetermined: Mapping[int, Float[Array, "2 displacement 3"]] = field(
        default_factory=dict
    )
    """By segment, how far a joint may be elsewhere that the motion does not determine:
    independent displacements of one standard deviation, in metres, in the frame of the
    parent, and in that of the segment as far as its bones change with them."""
