"""What is known of a figure before its frames are looked at, as rows of equations."""

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Float

from marey.calibration.unknowns import Columns, Figure, Shape
from marey.numerics import geometry

Array = np.ndarray

GAUGE_SD = 5e-4
"""How well the free choice of each segment's axes is held, in metres."""

NARROW = 0.1
"""A segment whose markers are this much narrower than long is a line."""

PLACED = 0.010
"""How far the markers of a segment may sit turned from those of the first session, in
metres."""

UNIT_SD = 0.02
"""How well the square of an axis's length is held to one."""

USUAL_STATURE, STATURE_SD = 1.74, 0.3
"""Height of people, in metres."""


def spans(markers: Float[Array, "marker 3"]) -> bool:
    """Return whether markers fix the turn of their segment: three, not on a line."""
    if len(markers) < 3:
        return False
    size = np.linalg.svd(markers - markers.mean(axis=0), compute_uv=False)
    return bool(size[1] > NARROW * size[0])


@dataclass(frozen=True, slots=True)
class Lengths:
    """Bones of equal or known length, of a person of unknown stature."""

    first: int
    """A segment: the bone from its parent's joint to its own."""

    second: int
    """Another, or -1."""

    ratio: float
    """Share of the stature that the bone is long; 0 for two bones of equal length."""

    sd: float
    apart: bool = False
    """Whether the distance between the two joints is meant, on one parent."""


@dataclass(slots=True, eq=False)
class Rows:
    """Rows that hold in every session, and rows between lengths."""

    figure: Figure
    matrix: list[Array] = field(default_factory=list)
    target: list[float] = field(default_factory=list)
    firm: list[bool] = field(default_factory=list)
    """Whether a row is no guess, but a choice that nothing depends on."""

    lengths: list[Lengths] = field(default_factory=list)

    def add(
        self,
        parts: list[tuple[int, float]],
        target: float,
        sd: float,
        *,
        firm: bool = False,
    ) -> None:
        """Add the row: sum of factor times unknown is `target`, give or take `sd`."""
        row = np.zeros(self.figure.columns.count)
        for column, factor in parts:
            row[column] += factor / sd
        self.matrix.append(row)
        self.target.append(target / sd)
        self.firm.append(firm)

    def joint_near(
        self, segment: int, markers: list[int], away: Float[Array, " 3"], sd: float
    ) -> None:
        """Add: a joint stands so far away from the middle of markers on its parent."""
        columns = self.figure.columns
        for x in range(3):
            parts = [(int(columns.m[k]) + x, -1.0 / len(markers)) for k in markers]
            parts.append((int(columns.o[segment]) + x, 1.0))
            self.add(parts, float(away[x]), sd)

    def mirrored(self, left: int, right: int, sd: float) -> None:
        """Add: two joints of one parent mirror each other from left (y) to right."""
        o = self.figure.columns.o
        for x, sign in enumerate((-1.0, 1.0, -1.0)):
            parts = [(int(o[left]) + x, 1.0), (int(o[right]) + x, sign)]
            self.add(parts, 0.0, sd)

    def joint_at(
        self, segment: int, place: Float[Array, " 3"], sd: float, *, firm: bool = False
    ) -> None:
        """Add: a joint stands there in its parent."""
        for x in range(3):
            column = int(self.figure.columns.o[segment]) + x
            self.add([(column, 1.0)], float(place[x]), sd, firm=firm)

    def marker_at(self, marker: int, place: Float[Array, " 3"], sd: float) -> None:
        """Add: a marker sits there on its segment."""
        for x in range(3):
            column = int(self.figure.columns.m[marker]) + x
            self.add([(column, 1.0)], float(place[x]), sd)

    def axis_along(
        self, axis: int, a: Float[Array, " 3"], b: Float[Array, " 3"], sd: float
    ) -> None:
        """Add: the axis has these directions in the parent and in the child."""
        first = int(self.figure.columns.axis[axis])
        for x, value in enumerate((*a, *b)):
            self.add([(first + x, 1.0)], float(value), sd)

    def hold_axes(self, places: Float[Array, "marker 3"]) -> None:
        """Add what keeps the axes of all segments where they were chosen.

        A segment turned against its own axes is the same figure: its markers must not
        turn about their middle as a whole, or about the joint where they are too few.
        The root has no joint: its middle stays too.
        """
        columns = self.figure.columns
        for i in range(len(self.figure.names)):
            mine = list(self.figure.markers_of(i))
            if not mine:
                continue
            at = places[mine]
            arm = at - at.mean(axis=0) if i == 0 or spans(at) else at
            size = np.sqrt(np.mean(np.sum(arm**2, axis=1))) + 1e-9
            turn = geometry.hat(arm) / (size * len(mine))
            for x in range(3):
                parts = [
                    (int(columns.m[k]) + z, float(turn[n, x, z]))
                    for n, k in enumerate(mine)
                    for z in range(3)
                ]
                goal = float(np.einsum("nz,nz->", turn[:, x], at))
                self.add(parts, goal, GAUGE_SD, firm=True)
                if i == 0:
                    middle = [(int(columns.m[k]) + x, 1.0 / len(mine)) for k in mine]
                    goal = float(at[:, x].mean())
                    self.add(middle, goal, GAUGE_SD, firm=True)


@dataclass(frozen=True, slots=True, eq=False)
class Prior:
    """Rows ready for use in so many sessions."""

    columns: Columns
    matrix: Float[Array, "row column"]
    target: Float[Array, " row"]
    firm: Bool[Array, " row"]
    normal: tuple[Float[Array, "column column"], Float[Array, "column column"]]
    """Normal matrix of the guesses, and of the choices."""

    lengths: tuple[Lengths, ...]
    sessions: int

    @staticmethod
    def of(rows: Rows, sessions: int) -> "Prior":
        """Return the rows for so many sessions."""
        firm = np.array(rows.firm, dtype=bool)
        matrix = np.array(rows.matrix).reshape(len(firm), rows.figure.columns.count)
        return Prior(
            rows.figure.columns,
            matrix,
            np.array(rows.target),
            firm,
            (matrix[~firm].T @ matrix[~firm], matrix[firm].T @ matrix[firm]),
            tuple(rows.lengths),
            sessions,
        )

    def _weights(self, session: int, temper: float) -> tuple[float, float]:
        """Return how much guesses and choices count.

        A guess is made of one person, and shared out among the sessions. Axes are
        chosen in the first session; in others markers may sit a little elsewhere.
        """
        guess = temper / self.sessions
        return guess, 1.0 if session == 0 else guess * (GAUGE_SD / PLACED) ** 2

    def equations(
        self, shape: Shape, session: int, temper: float
    ) -> tuple[Array, Array, float]:
        """Return normal matrix, slope and cost of one session's rows."""
        guess, choice = self._weights(session, temper)
        left = self._left(shape, session)
        weight = np.where(self.firm, choice, guess)
        normal = guess * self.normal[0] + choice * self.normal[1]
        push = np.einsum("rc,r->c", self.matrix, weight * left)
        return normal, push, float(weight @ left**2)

    def _left(self, shape: Shape, session: int) -> Float[Array, " row"]:
        """Return what is left of one session's rows."""
        # Without the linear-algebra library, whose threads would be in the way.
        there = np.einsum("rc,c->r", self.matrix, shape.vector(self.columns, session))
        return np.asarray(self.target - there)

    def cost(self, shape: Shape, temper: float) -> float:
        """Return the cost of all rows."""
        total = temper * float(np.sum(self.bent(shape)[0] ** 2))
        for session in range(self.sessions):
            weight = np.where(self.firm, *self._weights(session, temper)[::-1])
            total += float(weight @ self._left(shape, session) ** 2)
        return total

    def bent(self, shape: Shape) -> tuple[Float[Array, " row"], Float[Array, "row x"]]:
        """Return what is left of the rows that are not linear, and their slopes.

        Columns are those of a session, and the stature as one more.
        """
        count = self.columns.count
        axes = np.concatenate([shape.a, shape.b])
        start = np.concatenate([self.columns.axis, self.columns.axis + 3])
        left = np.zeros(len(self.lengths) + len(axes) + 1)
        slope = np.zeros((len(left), count + 1))
        for n, row in enumerate(self.lengths):
            left[n] = _length_row(row, shape, self.columns, slope[n])
        for n, (axis, column) in enumerate(
            zip(axes, start, strict=True), start=len(self.lengths)
        ):
            left[n] = (1.0 - axis @ axis) / UNIT_SD
            slope[n, column : column + 3] = 2.0 * axis / UNIT_SD
        left[-1] = (USUAL_STATURE - shape.stature) / STATURE_SD
        slope[-1, -1] = 1.0 / STATURE_SD
        return left, slope


def _length_row(row: Lengths, shape: Shape, columns: Columns, slope: Array) -> float:
    """Return what is left of a row between lengths; fill its slope."""
    if row.apart:
        way = shape.o[row.first] - shape.o[row.second]
        length = float(np.linalg.norm(way))
        _fill(slope, columns.o[row.first], way, length, 1.0 / row.sd)
        _fill(slope, columns.o[row.second], way, length, -1.0 / row.sd)
    else:
        way = shape.o[row.first]
        length = float(np.linalg.norm(way))
        _fill(slope, columns.o[row.first], way, length, 1.0 / row.sd)
        if row.second >= 0:
            other = shape.o[row.second]
            far = float(np.linalg.norm(other))
            _fill(slope, columns.o[row.second], other, far, -1.0 / row.sd)
            length -= far
    slope[-1] = -row.ratio / row.sd
    return (row.ratio * shape.stature - length) / row.sd


def _fill(
    slope: Array, column: int | np.integer, way: Array, length: float, factor: float
) -> None:
    slope[column : column + 3] += factor * way / max(length, 1e-9)
