"""Doubts about a whole recording: unit, rate, length, and whether anything moves."""

from collections.abc import Sequence

import numpy as np

from marey.cleaning.repairs import record_repair, scaled_lengths
from marey.numerics import Array, Float, geometry
from marey.numerics.noise import white_difference
from marey.numerics.resampling import evenly_spaced, frame_blocks
from marey.numerics.robust import finite_median
from marey.numerics.thresholds import (
    FEW,
    MIN_POSE_POINTS,
    MIN_SAMPLES,
    MOST,
    MOTION_TIME_S,
)
from marey.report import Finding, Severity
from marey.take import Take

MAX_EXTENT_M = 3.0
"""Largest extent of the markers of a person along an axis, in metres: an adult with
stretched arms. Higher doubts fewer units. Chosen by hand."""

PERSON_EXTENT_M = FEW * MAX_EXTENT_M, MAX_EXTENT_M
"""Smallest and largest extent of the same, in metres: from the trunk of a child on."""

USUAL_EXTENT_M = 0.5 * MAX_EXTENT_M
"""Usual extent of the same, in metres: of several units that fit, the one that comes
nearest is named."""

UNITS_M = {"mm": 1e-3, "cm": 1e-2, "in": 0.0254, "ft": 0.3048, "m": 1.0, "km": 1e3}
"""Metres per unit that a recording may have been meant in; inch and foot as published
in the international yard and pound agreement (1959)."""

MIN_RATE_HZ = 1.0 / MOTION_TIME_S
"""Rate below which the motion of people is not followed from frame to frame, in
hertz."""

MAX_SPEED_M_PER_S = 100.0
"""Speed that a tenth of all points never have, in metres per second; the head of a golf
club reaches 70. Higher doubts fewer rates. Chosen by hand."""

MOTION_RATIO = 2.0
"""Ratio of the variance of positions to that of their white noise from which on
something moves; of noise alone it is 1. Higher takes slow motion for noise."""

ROUNDING_M = float(np.sqrt(np.finfo(float).eps))
"""Spread of positions that is rounding only, in metres."""

DIFFERENCE_ORDER = 2
"""Order of the differences over time that show white noise."""


def correct_unit(take: Take, person: Sequence[Array], *, lies: bool = False) -> Take:
    """Return the take with the length unit that the size of a person shows.

    A unit that the file states, or that the caller gave, is doubted and kept. So is any
    unit if the person lies: animals do, and their legs have the same names.

    Args:
        take: The recording.
        person: Positions (frame, marker, 3) of each person in it, in metres.
        lies: Whether the trunk is level, by an up axis that is known.
    """
    extent = _impossible_extent(person)
    if not extent:
        return take
    if lies:
        return _add(take, find_doubtful_unit(take, person))
    finding, scale = _judge_unit(take, extent)
    notes = [f"lengths times {scale:g}"] if scale != 1.0 else []
    return record_repair(take, [finding], notes, **scaled_lengths(take, scale))


def find_doubtful_unit(take: Take, person: Sequence[Array]) -> Finding | None:
    """Return the warning that a person whom no label names has an impossible size.

    The unit is kept: what looks like a person may be a model of one.

    Args:
        take: The recording.
        person: Positions (frame, point, 3) of each figure that looks like a person.
    """
    extent = _impossible_extent(person)
    if not extent:
        return None
    unit, best, is_fitting = _best_unit(take, extent)
    can_be_read = is_fitting and best != "km"
    advice = f"if it is one, give unit={best}" if can_be_read else "check the numbers"
    message = (
        f"what looks like a person has a size of {_spell_length(extent)} in {unit}, "
        f"which is {take.source.unit.how}: {advice}"
    )
    return _finding("unit-doubtful", "warning", message, extent)


def _impossible_extent(person: Sequence[Array]) -> float:
    """Return the median extent of people if no person has it, else 0."""
    extents = [extent for points in person if (extent := _extent(points)) > 0.0]
    extent = float(np.median(extents)) if extents else 0.0
    low, high = PERSON_EXTENT_M
    return 0.0 if low <= extent <= high else extent


def _extent(points: Float[Array, "frame marker 3"]) -> float:
    """Return the median over frames of the extent along an axis; 0 if unseen."""
    extents = []
    for frames in frame_blocks(len(points)):
        some = points[frames]
        seen = np.isfinite(some)
        high = np.where(seen, some, -np.inf).max(axis=1, initial=-np.inf)
        low = np.where(seen, some, np.inf).min(axis=1, initial=np.inf)
        extents.append((high - low).max(axis=1, initial=-np.inf))
    return finite_median(np.concatenate(extents))


def _judge_unit(take: Take, extent: float) -> tuple[Finding, float]:
    """Return the finding about the unit of a person of an impossible extent.

    With it comes the factor of all lengths, 1 where the unit is kept.
    """
    fact = take.source.unit
    unit, best, is_fitting = _best_unit(take, extent)
    size = f"a person of {_spell_length(extent)} in {unit}"
    if not is_fitting:
        message = f"{size}, and no unit fits: check the numbers of the file"
        return _finding("unit-doubtful", "error", message, extent), 1.0
    if fact.how in ("stated", "given"):
        advice = f"{best} fits; read it with unit={best}"
        if best == "km":
            advice = "km fits, which no option reads; multiply the positions by 1000"
        message = f"{size}, which is {fact.how}: {advice}"
        return _finding("unit-doubtful", "error", message, extent), 1.0
    message = (
        f"{size}, which is {fact.how}: {best} is used; give unit= if that is wrong"
    )
    finding = _finding("unit-corrected", "warning", message, extent)
    return finding, UNITS_M[best] / UNITS_M[unit]


def _best_unit(take: Take, extent: float) -> tuple[str, str, bool]:
    """Return the unit of a take, that which fits people best, and whether it fits."""
    value = take.source.unit.value
    unit = value if value in UNITS_M else "m"
    extents = {other: extent * UNITS_M[other] / UNITS_M[unit] for other in UNITS_M}
    best = min(extents, key=lambda other: abs(np.log(extents[other] / USUAL_EXTENT_M)))
    low, high = PERSON_EXTENT_M
    return unit, best, low <= extents[best] <= high


def _spell_length(metres: float) -> str:
    """Return a length in the unit in which it is easy to read."""
    if metres < UNITS_M["cm"]:
        return f"{1e3 * metres:.2g} mm"
    return f"{metres:.2g} m" if metres < UNITS_M["km"] else f"{1e-3 * metres:.2g} km"


def _finding(code: str, severity: Severity, message: str, value: float) -> Finding:
    return Finding(code, "clean", severity, message, value=value)


def check_takes(takes: Sequence[Take], *, known_skeleton: bool) -> tuple[Take, ...]:
    """Return the takes with error findings about what cannot give a skeleton.

    A known skeleton can be posed in one frame, and without any motion.

    Args:
        takes: All recordings of one subject.
        known_skeleton: Whether bones need not be estimated.
    """
    doubted = [_add(take, _rate_finding(take)) for take in takes]
    if not known_skeleton:
        doubted[0] = _add(doubted[0], _motion_finding(takes))
    return tuple(doubted)


def _add(take: Take, finding: Finding | None) -> Take:
    """Return the take with a finding, if there is one that it does not have yet."""
    is_new = finding is not None and finding not in take.source.findings
    return record_repair(take, [finding], []) if finding and is_new else take


def _rate_finding(take: Take) -> Finding | None:
    """Return the finding that a rate is too low, or that it gives absurd speeds."""
    if take.rate < MIN_RATE_HZ:
        message = f"at {take.rate:.2g} Hz motion cannot be followed: "
        message += "check the rate, and give rate= if it is wrong"
        return _finding("rate-doubtful", "error", message, take.rate)
    speed = take.rate * _large_step(take)
    if speed > MAX_SPEED_M_PER_S:
        usual_speed = f"{float(f'{speed:.2g}'):,.0f}"
        message = f"at {take.rate:,.0f} Hz a tenth of all points exceeds {usual_speed} "
        message += "m/s: check rate and unit, and give rate= or unit= if one is wrong"
        return _finding("rate-doubtful", "error", message, take.rate)
    return None


def check_flatness(take: Take, *, has_people: bool) -> Take:
    """Return the take with a finding if its markers lie in one plane or on a line.

    A mechanism may move in a plane; people and lines have no rotations there.

    Args:
        take: The recording.
        has_people: Whether its labels are those of a person.
    """
    points = take.points[evenly_spaced(take.n_frames)]
    points = points[np.isfinite(points).all(axis=-1)]
    if len(take.labels) < MIN_POSE_POINTS or len(points) < MIN_POSE_POINTS:
        return take
    sd = np.linalg.svd(points - points.mean(axis=0), compute_uv=False)
    sd /= np.sqrt(len(points))
    n_flat = int(np.count_nonzero(sd <= ROUNDING_M))
    if not 0 < n_flat < len(sd):
        return take
    severity: Severity = "error" if has_people or n_flat > 1 else "warning"
    shape = "on one line" if n_flat > 1 else "in one plane, as if recorded in 2-D"
    message = f"all markers lie {shape}: check the columns of x, y and z"
    return _add(take, _finding("points-flat", severity, message, float(sd[0])))


def _large_step(take: Take) -> float:
    """Return the step from frame to frame that most are smaller than, in metres."""
    positions = take.positions
    steps = [
        geometry.lengths(np.diff(positions[block.start : block.stop + 1], axis=0))
        for block in frame_blocks(take.n_frames - 1)
    ]
    step = np.concatenate(steps).ravel()
    step = step[np.isfinite(step)]
    return float(np.quantile(step, MOST)) if len(step) else 0.0


def _motion_finding(takes: Sequence[Take]) -> Finding | None:
    """Return the finding that takes are too short, or that nothing moves in them."""
    n_frames = sum(take.n_frames for take in takes)
    if n_frames < MIN_SAMPLES:
        show = "frame shows" if n_frames == 1 else "frames show"
        message = (
            f"{n_frames} {show} no motion, "
            f"so joints are guesses: record at least {MIN_SAMPLES} frames, or give the "
            "skeleton"
        )
        return _finding("take-short", "error", message, float(n_frames))
    spreads = [_spread(take) for take in takes]
    ratio = max((moved for moved, _ in spreads), default=np.inf)
    if ratio >= MOTION_RATIO:
        return None
    noise = max(sd for _, sd in spreads)
    beyond = (
        f" beyond its noise of {_spell_length(noise)}" if noise > ROUNDING_M else ""
    )
    message = (
        f"nothing moves{beyond}, so joints are "
        "guesses: record a motion that bends every joint, or check the columns"
    )
    return _finding("no-motion", "error", message, noise)


def _spread(take: Take) -> tuple[float, float]:
    """Return the ratio of variance to white noise, and the standard deviation per axis.

    The ratio is that of the markers and sensors that move most, of which a few are
    enough; rotations of sensors count on a lever of one metre.
    """
    sensors = take.T_world_sensor[:, :, :3].reshape(take.n_frames, -1, 12)
    ratios, sizes = [], []
    for values in (take.points, sensors):
        is_seen = np.isfinite(np.einsum("fik->fi", values))
        for item in range(values.shape[1]):
            seen = values[is_seen[:, item], item]
            if len(seen) < MIN_SAMPLES:
                continue
            # One row per axis: NumPy adds long rows many times faster than short ones.
            rows = np.ascontiguousarray(seen.T)
            total = float(np.var(rows, axis=1).sum())
            differences = (white_difference(row, DIFFERENCE_ORDER) for row in rows)
            white = float(sum(d @ d / len(d) for d in differences))
            smooth = np.inf if total > ROUNDING_M**2 else 0.0
            ratios.append(total / white if white > ROUNDING_M**2 else smooth)
            sizes.append(np.sqrt(total / 3.0))
    if not ratios:
        return np.inf, 0.0
    # Not infinite: a quantile between two infinite ratios would be unknown.
    ratios = np.nan_to_num(ratios).tolist()
    return float(np.quantile(ratios, MOST)), float(np.median(sizes))
