"""Distortion and scale of the measuring volume, estimated or given, and removed.

OBrien2000 (Sec. 4) measures a rigid pair of sensors whose distance varies by 7 mm when
it is carried through the volume, and by much less when it is not: the volume is
distorted. A distorted volume opens each joint as a function of its position, so all
joints together determine the distortion.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement

import numpy as np

from marey.bodies import Bodies
from marey.cleaning.arrays import Array, Vectors
from marey.cleaning.repairs import record_repair, scaled_lengths
from marey.errors import DataError, OptionError
from marey.joint_fits import JointFits
from marey.numerics import Float, Int, geometry
from marey.numerics.noise import rms_length
from marey.numerics.robust import finite_median
from marey.numerics.thresholds import (
    CERTAIN_SD,
    FOLDS,
    MIN_SAMPLES,
    MOST,
    SAMPLE_FRAMES,
)
from marey.report import Finding
from marey.take import Take
from marey.tree import Tree

MAX_DEGREE = 4
"""Largest degree of the polynomial. Higher needs more motion in the volume. Chosen by
hand."""

MAX_FRAMES = MIN_SAMPLES * SAMPLE_FRAMES
"""Frames that are used: ten for each of a few hundred unknowns."""

FIT_ITERATIONS = 2
"""Linear fits, each about the joint centres of the one before. Chosen by hand."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Field:
    """A smooth distortion of the positions and orientations in a volume.

    A polynomial of the recorded position. Translation, rotation and scale of the whole
    volume open no joint, so the field has none of them on average over the recorded
    positions.
    """

    center: Float[Array, "3"]
    """Mean of the recorded positions, in metres."""

    rms_radius: float
    """Root mean square distance of the recorded positions from the centre, in
    metres."""

    exponents: Int[Array, "term 3"]
    """Exponents of x, y and z in each term."""

    coefficient: Float[Array, "term 3"]
    """Displacement by each term at a distance of `rms_radius`, in metres."""

    residual_before: float
    """Root mean square residual of the joints without the field, in metres, in frames
    that the fit did not use (cross-validation)."""

    residual_after: float
    """The same with the field removed, in metres."""

    rms: float
    """Root mean square displacement at the recorded positions, in metres."""

    @property
    def degree(self) -> int:
        """Degree of the polynomial; 0 = no field was found."""
        return int(self.exponents.sum(axis=1).max(initial=0))

    @property
    def significant(self) -> bool:
        """Whether the field reduces residuals of frames that the fit did not use."""
        return self.residual_after < MOST * self.residual_before

    def displacement(
        self, points: Float[Array, "*batch 3"]
    ) -> Float[Array, "*batch 3"]:
        """Return the apparent displacement at recorded positions, in metres."""
        value, _ = monomials((points - self.center) / self.rms_radius, self.exponents)
        return np.asarray(value @ self.coefficient)

    def rotation(self, points: Float[Array, "*batch 3"]) -> Float[Array, "*batch 3"]:
        """Return the apparent rotation vector, half the curl, in radians."""
        _, slope = monomials((points - self.center) / self.rms_radius, self.exponents)
        J = np.einsum("...td,tk->...kd", slope, self.coefficient) / self.rms_radius
        curl = [J[..., i, j] - J[..., j, i] for i, j in ((2, 1), (0, 2), (1, 0))]
        return 0.5 * np.stack(curl, axis=-1)


def fit_field(
    bodies: Bodies | Sequence[Bodies], joints: JointFits, tree: Tree
) -> Field:
    r"""Return the distortion of the volume that reduces the joint residuals most.

    With the displacement :math:`u(p)` of the field at the sensors :math:`a` and
    :math:`b` of a joint, and the rotation :math:`\omega = \tfrac12 \nabla \times u`
    acting on the lever arms :math:`r_a, r_b` to the joint centre, the residual is

    .. math:: (p_a + r_a) - (p_b + r_b)
        - (u(p_a) + \omega(p_a) \times r_a) + (u(p_b) + \omega(p_b) \times r_b).

    Field and joint centres are one linear least-squares problem, solved again about the
    better centres. Cross-validation over parts of the recording chooses the degree of
    the polynomial; degree 0 is no field. Two sensors on one stick are a joint like any
    other.

    Args:
        bodies: The moving bodies, in one or several takes of the same volume.
        joints: Their joints.
        tree: Which of the joints are real.

    Raises:
        DataError: If the tree has no joints, or no frame shows both ends of one.
    """
    takes = (bodies,) if isinstance(bodies, Bodies) else tuple(bodies)
    T = np.concatenate([take.T_world_body for take in takes])
    T = T[np.linspace(0, len(T) - 1, min(len(T), MAX_FRAMES)).astype(np.int64)]
    rows = tree.edge[tree.edge >= 0]
    rows = rows[joints.fitted[rows]]
    if not len(rows):
        raise DataError("field", found="no joints", needed="a tree with joints")
    problem = _FieldProblem(T, joints.pair[rows])
    centers = np.concatenate([joints.center_a[rows], joints.center_b[rows]], axis=1)
    for _ in range(FIT_ITERATIONS):
        A, g, square, count = problem.linearise(centers)
        degree, before, after = problem.choose_degree(A, g, square, count)
        unknown = problem.solve(A.sum(axis=0), g.sum(axis=0), degree)
        centers = unknown[problem.n_coefficients :].reshape(-1, 6)
    used = problem.exponents.sum(axis=1) <= (degree if degree else -1)
    field = Field(
        center=problem.center,
        rms_radius=problem.rms_radius,
        exponents=problem.exponents[used],
        coefficient=unknown[: problem.n_coefficients].reshape(-1, 3)[used],
        residual_before=before,
        residual_after=after,
        rms=0.0,
    )
    return replace(field, rms=rms_length(field.displacement(problem.positions)))


class _FieldProblem:
    """The least-squares problem of the field and the joint centres.

    The unknowns are three coefficients per term, then six coordinates per joint.
    """

    def __init__(
        self, T: Float[Array, "frame body 4 4"], pair: Int[Array, "joint 2"]
    ) -> None:
        self.T, self.pair = T, pair
        positions = T[..., :3, 3].reshape(-1, 3)
        self.positions = positions[np.isfinite(positions).all(axis=1)]
        self.center = self.positions.mean(axis=0)
        self.rms_radius = max(rms_length(self.positions - self.center), 1e-9)
        self.exponents = exponents_up_to(MAX_DEGREE)
        self.n_coefficients = self.exponents.size  # three for each term
        self.part = np.arange(len(T)) * FOLDS // len(T)
        # The sums that are zero without translation, rotation and scale.
        z = (self.positions - self.center) / self.rms_radius
        translations = np.broadcast_to(np.eye(3), (len(z), 3, 3))
        similarity = np.concatenate([translations, geometry.hat(z), z[:, None]], 1)
        value, _ = monomials(z, self.exponents)
        sums = np.einsum("pgk,pt->gtk", similarity, value) / len(z)
        self.gauge = sums.reshape(7, self.n_coefficients)

    def linearise(
        self, centers: Float[Array, "joint 6"]
    ) -> tuple[Array, Array, Array, Array]:
        """Return the normal equations of all joints about the given centres.

        For each part of the recording the matrix, the right side, the sum of squares of
        what is fitted, and the number of positions.
        """
        n = self.n_coefficients + centers.size
        A, g = np.zeros((FOLDS, n, n)), np.zeros((FOLDS, n))
        square, count = np.zeros(FOLDS), np.zeros(FOLDS)
        for k, center in enumerate(centers):
            rows, part_of_row, right = self._joint_equations(k, center)
            first = self.n_coefficients + k * len(center)
            index = np.r_[: self.n_coefficients, first : first + len(center)]
            for part in range(FOLDS):
                in_part = part_of_row == part
                X = rows[in_part].reshape(-1, len(index))
                y = right[in_part].reshape(-1)
                A[part][np.ix_(index, index)] += X.T @ X
                g[part, index] += X.T @ y
                square[part] += y @ y
                count[part] += in_part.sum()
        return A, g, square, count

    def choose_degree(
        self, A: Array, g: Array, square: Array, count: Array
    ) -> tuple[int, float, float]:
        """Return the degree that predicts best, and the residuals without and with it.

        Cross-validation: each part is predicted from the others. Root mean square
        residuals in metres.
        """
        residuals = []
        rounding = g.shape[1] * np.finfo(np.float64).eps * float(square.sum())
        for degree in range(MAX_DEGREE + 1):
            total = 0.0
            for part in range(FOLDS):
                x = self.solve(A.sum(axis=0) - A[part], g.sum(axis=0) - g[part], degree)
                total += float(square[part] - 2.0 * x @ g[part] + x @ A[part] @ x)
            mean = max(total, rounding) / max(count.sum(), 1.0)
            residuals.append(float(np.sqrt(mean)))
        best = int(np.argmin(residuals))
        return best, residuals[0], residuals[best]

    def _joint_equations(
        self, k: int, center: Float[Array, "6"]
    ) -> tuple[Array, Array, Array]:
        """Return the linear equations of one joint, the part of each, and right sides.

        A frame in which both bodies are seen has three of them, in metres: the distance
        between the two centres is zero after the displacements of the field.
        """
        A, B = (self.T[:, body, :3] for body in self.pair[k])
        seen = np.isfinite(A + B).all(axis=(1, 2))
        A, B, part = A[seen], B[seen], self.part[seen]
        right = B[..., 3] - A[..., 3]
        arm_a, arm_b = A[..., :3] @ center[:3], B[..., :3] @ center[3:]
        square = np.sum((arm_a - arm_b - right) ** 2, axis=1)
        kept = square <= CERTAIN_SD**2 * max(finite_median(square), 1e-18)
        A, B = A[kept], B[kept]
        of_a = self._term_displacements(A[..., 3], arm_a[kept])
        of_b = self._term_displacements(B[..., 3], arm_b[kept])
        rows = np.concatenate([-(of_a - of_b), A[..., :3], -B[..., :3]], axis=2)
        return rows, part[kept], right[kept]

    def _term_displacements(
        self, position: Vectors, arm: Vectors
    ) -> Float[Array, "seen 3 term"]:
        """Return the displacement of the end of a lever arm by a unit of each term.

        Args:
            position: Sensor in the world, in metres.
            arm: From there to the end, in the world, in metres.
        """
        z = (position - self.center) / self.rms_radius
        value, slope = monomials(z, self.exponents)
        # The rotation by the term v e_k is grad v x e_k / 2.
        rotation = np.cross(slope[:, :, None] / (2.0 * self.rms_radius), np.eye(3))
        swing = np.cross(rotation, arm[:, None, None])
        total = value[:, :, None, None] * np.eye(3) + swing
        return np.asarray(total.transpose(0, 3, 1, 2).reshape(len(position), 3, -1))

    def solve(
        self,
        A: Float[Array, "unknown unknown"],
        g: Float[Array, " unknown"],
        degree: int,
    ) -> Float[Array, " unknown"]:
        """Return the least-squares field of a degree, and the joint centres.

        The solution is restricted to the null space of the gauge.
        """
        used = np.repeat(self.exponents.sum(axis=1) <= degree, 3) & (degree > 0)
        index = np.r_[np.flatnonzero(used), self.n_coefficients : len(g)]
        constraints = np.zeros((len(self.gauge), len(index)))
        constraints[:, : used.sum()] = self.gauge[:, used]
        _, _, V = np.linalg.svd(constraints)
        null_space = V[len(constraints) if degree else 0 :].T
        reduced = null_space.T @ A[np.ix_(index, index)] @ null_space
        pseudoinverse = np.linalg.pinv(reduced, rcond=1e-10, hermitian=True)
        unknown = np.zeros(len(g))
        unknown[index] = null_space @ (pseudoinverse @ (null_space.T @ g[index]))
        return unknown


def exponents_up_to(degree: int) -> Int[Array, "term 3"]:
    """Return the exponents of all monomials up to a degree, low degrees first."""
    terms = [
        term
        for total in range(degree + 1)
        for term in combinations_with_replacement(range(3), total)
    ]
    return np.array([[term.count(axis) for axis in range(3)] for term in terms])


def monomials(
    z: Float[Array, "*batch 3"], exponents: Int[Array, "term 3"]
) -> tuple[Float[Array, "*batch term"], Float[Array, "*batch term 3"]]:
    r"""Return the values and gradients of monomials up to `MAX_DEGREE`.

    .. math:: x^i y^j z^k \quad\text{with exponents } (i, j, k)

    Args:
        z: Positions over the size of the volume, without unit.
        exponents: Exponents of each term.
    """
    powers = np.stack([z**k for k in range(MAX_DEGREE + 1)])
    factor = np.stack([powers[exponents[:, axis], ..., axis] for axis in range(3)])
    value = np.moveaxis(factor.prod(axis=0), 0, -1)
    slope = np.empty((*value.shape, 3))
    for axis in range(3):
        lower = powers[np.maximum(exponents[:, axis] - 1, 0), ..., axis]
        others = np.delete(factor, axis, axis=0).prod(axis=0)
        slope[..., axis] = exponents[:, axis] * np.moveaxis(others * lower, 0, -1)
    return value, slope


def undistort(take: Take, field: Field) -> Take:
    """Return the take with the distortion of a field removed from its sensors.

    Args:
        take: A recording in the volume in which the field was estimated.
        field: From `fit_field`.
    """
    T = take.T_world_sensor.copy()
    position = take.T_world_sensor[..., :3, 3]
    T[..., :3, 3] = position - field.displacement(position)
    T[..., :3, :3] = geometry.rotation_exp(-field.rotation(position)) @ T[..., :3, :3]
    rms = f"{1e3 * field.rms:.1f} mm rms"
    message = (
        f"the magnetic field is distorted by {rms}; its correction reduces joint "
        f"residuals from {1e3 * field.residual_before:.1f} to "
        f"{1e3 * field.residual_after:.1f} mm"
    )
    finding = Finding("field-bent", "clean", "info", message, value=field.rms)
    note = f"undistorted: field of degree {field.degree}, {rms}"
    return record_repair(take, [finding], [note], T_world_sensor=T)


def rescale(take: Take, factor: float) -> Take:
    """Return the take with all lengths multiplied by a factor.

    The instrument of OBrien2000 (Sec. 4) measured lengths 0.94 times the true ones.
    `marey.joints.rigid_pair` estimates the factor from two sensors on one stick.

    Args:
        take: The recording.
        factor: True length divided by recorded length, above 0.

    Raises:
        OptionError: If the factor is not above 0.
    """
    if not 0.0 < factor < np.inf:
        raise OptionError("factor", found=factor, needed="a number above 0")
    note = f"lengths multiplied by {factor:.6g}"
    finding = Finding("take-scaled", "clean", "info", note, value=factor)
    return record_repair(take, [finding], [note], **scaled_lengths(take, factor))
