"""A distorted magnetic field, found from joints that gape by where they are.

OBrien2000 (Sec. 4) measures a rigid pair of sensors whose distance varies by 7 mm when
it is carried about, and by much less when it is not: the volume is bent. A bent volume
opens joints by where they are, whoever passes there, and so all joints together show
the bend.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement

import numpy as np
from jaxtyping import Float, Int

from marey.bodies import Bodies
from marey.errors import DataError
from marey.joint_fits import JointFits
from marey.numerics import geometry
from marey.report import Finding
from marey.take import Take
from marey.tree import Tree

Array = np.ndarray

HIGHEST = 4
"""Largest degree of the polynomial that is tried."""

# Parts of the recording, each of which is predicted from the others.
PARTS = 5

# Frames looked at: enough for the few hundred unknowns of the field.
MOST_FRAMES = 4000

# Gaps this many times the median of their joint have no say.
FAR = 5.0

WORTH = 0.9
"""Share of the gaps, in parts of the recording that were not used, up to which a field
is worth correcting."""

# Degrees are added while each lowers the predicted gaps by this share at least.
STEP = 0.995


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Field:
    """A smooth distortion of position over the volume, with its turns.

    A polynomial of the recorded place. A move, a turn and a change of scale of the
    whole volume open no joint; the field has none of them over the places recorded.
    """

    middle: Float[Array, "3"]
    """Middle of the places recorded, in metres."""

    reach: float
    """Their root mean square distance from it, in metres."""

    powers: Int[Array, "term 3"]
    """Exponents of x, y and z of each term."""

    coefficient: Float[Array, "term 3"]
    """Displacement of each term at one reach, in metres."""

    before: float
    """Root mean square gap of the joints without the field, in metres; like `after`
    in parts of the recording that the fit did not see."""

    after: float
    """The same with the field taken out, in metres."""

    size: float
    """Root mean square displacement at the places recorded, in metres."""

    @property
    def degree(self) -> int:
        """Degree of the polynomial; 0 = no field was found."""
        return int(self.powers.sum(axis=1).max(initial=0))

    @property
    def significant(self) -> bool:
        """Whether taking it out closes joints that the fit did not see."""
        return self.after < WORTH * self.before

    def at(self, points: Float[Array, "*batch 3"]) -> Float[Array, "*batch 3"]:
        """Return how far things seem displaced at recorded places, in metres."""
        value, _ = _terms((points - self.middle) / self.reach, self.powers)
        return np.asarray(value @ self.coefficient)

    def turn(self, points: Float[Array, "*batch 3"]) -> Float[Array, "*batch 3"]:
        """Return how far they seem turned, half the curl, in radians."""
        _, slope = _terms((points - self.middle) / self.reach, self.powers)
        J = np.einsum("...td,tk->...kd", slope, self.coefficient) / self.reach
        curl = [J[..., i, j] - J[..., j, i] for i, j in ((2, 1), (0, 2), (1, 0))]
        return 0.5 * np.stack(curl, axis=-1)


def fit_field(
    bodies: Bodies | Sequence[Bodies], joints: JointFits, tree: Tree
) -> Field:
    """Return the distortion of the volume that closes the joints best.

    Every gap is the difference of the field at two places, with the turns there acting
    on the arms to the joint. All joints and the field are one linear fit, repeated with
    the better joints. The degree is the one that best predicts parts of the recording
    from the others; a field of degree 0 is none. Two sensors on one stick are a joint
    like any other.

    Args:
        bodies: The moving bodies, in one or several takes of the same volume.
        joints: Their joints.
        tree: Which of the joints are real.

    Raises:
        DataError: If the tree has no joints, or no frame shows both ends of one.
    """
    takes = (bodies,) if isinstance(bodies, Bodies) else tuple(bodies)
    T = np.concatenate([take.T_world_body for take in takes])
    T = T[np.linspace(0, len(T) - 1, min(len(T), MOST_FRAMES)).astype(np.int64)]
    rows = tree.edge[tree.edge >= 0]
    rows = rows[joints.fitted[rows]]
    if not len(rows):
        raise DataError("field", found="no joints", needed="a tree with joints")
    places = T[..., :3, 3].reshape(-1, 3)
    places = places[np.isfinite(places).all(axis=1)]
    middle = places.mean(axis=0)
    reach = float(np.sqrt(np.mean(np.sum((places - middle) ** 2, axis=1))))
    volume = _Volume(T, joints.pair[rows], middle, max(reach, 1e-9))
    centers = np.concatenate([joints.center_a[rows], joints.center_b[rows]], axis=1)
    for _ in range(2):
        sums = volume.equations(centers)
        degree, before, after = _best_degree(sums, volume)
        unknown = _solved(sums.A.sum(axis=0), sums.g.sum(axis=0), volume, degree)
        centers = unknown[volume.n_terms :].reshape(-1, 6)
    kept = volume.powers.sum(axis=1) <= (degree if degree else -1)
    coefficient = unknown[: volume.n_terms].reshape(-1, 3)[kept]
    field = Field(
        middle=middle,
        reach=volume.reach,
        powers=volume.powers[kept],
        coefficient=coefficient,
        before=before,
        after=after,
        size=0.0,
    )
    size = float(np.sqrt(np.mean(np.sum(field.at(places) ** 2, axis=1))))
    return replace(field, size=size)


@dataclass(frozen=True, slots=True, eq=False)
class _Sums:
    """Normal equations of field and joints in every part of the recording."""

    A: Float[Array, "part unknown unknown"]
    g: Float[Array, "part unknown"]
    square: Float[Array, " part"]
    count: Float[Array, " part"]

    def gap(self, part: int, unknown: Float[Array, " unknown"]) -> float:
        """Return the sum of squared gaps of one part."""
        A, g = self.A[part], self.g[part]
        return float(self.square[part] - 2.0 * unknown @ g + unknown @ A @ unknown)


class _Volume:
    """Where the joints are seen, and what a field does to them there."""

    def __init__(
        self,
        T: Float[Array, "frame body 4 4"],
        pair: Int[Array, "joint 2"],
        middle: Float[Array, "3"],
        reach: float,
    ) -> None:
        self.T, self.pair, self.middle, self.reach = T, pair, middle, reach
        self.powers = powers_up_to(HIGHEST)
        self.n_terms = 3 * len(self.powers)
        self.part = np.arange(len(T)) * PARTS // len(T)
        self.gauge = self._gauge()

    def _gauge(self) -> Float[Array, "7 term"]:
        """Return the sums that are zero for fields without move, turn and scale."""
        places = self.T[..., :3, 3].reshape(-1, 3)
        places = places[np.isfinite(places).all(axis=1)]
        z = (places - self.middle) / self.reach
        whole = np.concatenate(
            [np.broadcast_to(np.eye(3), (len(z), 3, 3)), geometry.hat(z), z[:, None]], 1
        )
        value, _ = _terms(z, self.powers)
        sums = np.einsum("pgk,pt->gtk", whole, value) / len(z)
        return np.asarray(sums.reshape(7, -1))

    def equations(self, centers: Float[Array, "joint 6"]) -> _Sums:
        """Return the sums of all joints, linear about the centres given."""
        n = self.n_terms + centers.size
        A, g = np.zeros((PARTS, n, n)), np.zeros((PARTS, n))
        square, count = np.zeros(PARTS), np.zeros(PARTS)
        for k, center in enumerate(centers):
            rows, known, right = self._joint(k, center)
            own = self.n_terms + 6 * k
            index = np.r_[: self.n_terms, own : own + 6]
            for part in range(PARTS):
                mine = known == part
                X = rows[mine].reshape(-1, len(index))
                y = right[mine].reshape(-1)
                A[part][np.ix_(index, index)] += X.T @ X
                g[part, index] += X.T @ y
                square[part] += y @ y
                count[part] += mine.sum()
        return _Sums(A, g, square, count)

    def _joint(self, k: int, center: Float[Array, "6"]) -> tuple[Array, Array, Array]:
        """Return the equations of one joint, the part of each frame, right sides."""
        A, B = (self.T[:, body, :3] for body in self.pair[k])
        both = np.isfinite(A + B).all(axis=(1, 2))
        A, B, part = A[both], B[both], self.part[both]
        right = B[..., 3] - A[..., 3]
        arm_a, arm_b = A[..., :3] @ center[:3], B[..., :3] @ center[3:]
        gap = np.sum((arm_a - arm_b - right) ** 2, axis=1)
        kept = (
            gap <= FAR**2 * max(float(np.median(gap)), 1e-18) if len(gap) else both[:0]
        )
        A, B = A[kept], B[kept]
        field = self._seen(A[..., 3], arm_a[kept]) - self._seen(B[..., 3], arm_b[kept])
        rows = np.concatenate([-field, A[..., :3], -B[..., :3]], axis=2)
        return rows, part[kept], right[kept]

    def _seen(
        self, place: Float[Array, "seen 3"], arm: Float[Array, "seen 3"]
    ) -> Float[Array, "seen 3 term"]:
        """Return what each term of the field does to the end of an arm."""
        value, slope = _terms((place - self.middle) / self.reach, self.powers)
        # The turn of the term v e_k is grad v x e_k / 2, and it swings the arm.
        swing = np.cross(slope[:, :, None] / (2.0 * self.reach), np.eye(3))
        swing = np.cross(swing, arm[:, None, None])
        both = value[:, :, None, None] * np.eye(3) + swing
        return np.asarray(both.transpose(0, 3, 1, 2).reshape(len(place), 3, -1))


def powers_up_to(degree: int) -> Int[Array, "term 3"]:
    """Return the exponents of all terms up to a degree, low degrees first."""
    axes = [
        combinations_with_replacement(range(3), total) for total in range(degree + 1)
    ]
    return np.array(
        [[term.count(axis) for axis in range(3)] for terms in axes for term in terms]
    )


def _terms(
    z: Float[Array, "*batch 3"], powers: Int[Array, "term 3"]
) -> tuple[Float[Array, "*batch term"], Float[Array, "*batch term 3"]]:
    """Return all terms of a polynomial and their slopes."""
    raised = np.stack([z**k for k in range(HIGHEST + 1)])
    factor = np.stack([raised[powers[:, axis], ..., axis] for axis in range(3)])
    lower = np.stack(
        [raised[np.maximum(powers[:, axis] - 1, 0), ..., axis] for axis in range(3)]
    )
    value = np.moveaxis(factor.prod(axis=0), 0, -1)
    slope = np.empty((*value.shape, 3))
    for axis in range(3):
        others = factor[[i for i in range(3) if i != axis]].prod(axis=0)
        slope[..., axis] = powers[:, axis] * np.moveaxis(others * lower[axis], 0, -1)
    return value, slope


def _best_degree(sums: _Sums, volume: _Volume) -> tuple[int, float, float]:
    """Return the degree that predicts best, and the gaps without and with it."""
    gaps = []
    for degree in range(HIGHEST + 1):
        square = 0.0
        for part in range(PARTS):
            A = sums.A.sum(axis=0) - sums.A[part]
            g = sums.g.sum(axis=0) - sums.g[part]
            square += sums.gap(part, _solved(A, g, volume, degree))
        gaps.append(float(np.sqrt(max(square, 0.0) / max(sums.count.sum(), 1.0))))
    best = 0
    for degree in range(1, HIGHEST + 1):
        if gaps[degree] < STEP ** (degree - best) * gaps[best]:
            best = degree
    return best, gaps[0], gaps[best]


def _solved(
    A: Float[Array, "unknown unknown"],
    g: Float[Array, " unknown"],
    volume: _Volume,
    degree: int,
) -> Float[Array, " unknown"]:
    """Return field and centres that solve the equations, without any gauge freedom."""
    used = np.repeat(volume.powers.sum(axis=1) <= degree, 3) & (degree > 0)
    index = np.r_[np.flatnonzero(used), volume.n_terms : len(g)]
    held = np.zeros((7, len(index)))
    held[:, : used.sum()] = volume.gauge[:, used]
    _, _, V = np.linalg.svd(held)
    free = V[7 if degree else 0 :].T
    inner = free.T @ A[np.ix_(index, index)] @ free
    step = np.linalg.pinv(inner, rcond=1e-10, hermitian=True) @ (free.T @ g[index])
    unknown = np.zeros(len(g))
    unknown[index] = free @ step
    return unknown


def straightened(take: Take, field: Field) -> Take:
    """Return the take with the field's distortion taken out of its sensors.

    Args:
        take: A recording in the volume that the field was found in.
        field: From `fit_field`.
    """
    T = take.T_world_sensor.copy()
    place = take.T_world_sensor[..., :3, 3]
    T[..., :3, 3] = place - field.at(place)
    T[..., :3, :3] = geometry.rotation_exp(-field.turn(place)) @ T[..., :3, :3]
    message = (
        f"the volume is bent by {1e3 * field.size:.1f} mm rms; taking that out closes "
        f"the joints from {1e3 * field.before:.1f} to {1e3 * field.after:.1f} mm in "
        "frames that the fit did not see"
    )
    found = Finding("field-bent", "clean", "info", message, value=field.size)
    note = (
        f"straightened: field of degree {field.degree}, {1e3 * field.size:.1f} mm rms"
    )
    return replace(
        take,
        T_world_sensor=T,
        source=replace(take.source, findings=(*take.source.findings, found)),
        history=(*take.history, note),
    )
