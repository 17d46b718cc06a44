"""The up axis that a recording shows: people stand on their feet, and on a floor.

What falls accelerates downward.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from marey.cleaning.repairs import record_repair
from marey.numerics import Array, Float, geometry
from marey.numerics.procrustes import points_seen
from marey.numerics.robust import mean_where
from marey.numerics.thresholds import FEW, GRAVITY, MIN_SAMPLES, MOST
from marey.report import Finding
from marey.take import Fact, Take, rotate_take

AXES = {name: R_z_up[2] for name, R_z_up in geometry.R_Z_UP.items()}
"""Directions that may point up, by name."""

FALL_WINDOW_S = 0.2
"""Time over which an acceleration is measured, and for which it must then be that of
gravity, in seconds. Higher misses more jumps, lower takes more other motion for a fall;
from 0.1 to 0.25 s no fall in 78 recordings was along a wrong axis. Chosen by hand."""

MAX_FALL_ERROR = 2.0 * FEW
"""Largest deviation of the acceleration in a fall, as a fraction of gravity: the mean
of all points is not the centre of mass. Higher finds more falls."""


class Person(NamedTuple):
    """Points of a person who stands upright for most of a take."""

    upper: Float[Array, "frame _ 3"]
    """Positions on the head and trunk, in metres."""

    lower: Float[Array, "frame _ 3"]
    """Positions on feet or legs, in metres."""


def correct_up(
    take: Take,
    people: Sequence[Person],
    stands_on_zero: Callable[[Take], bool] = lambda take: False,
) -> Take:
    """Return the take with the up axis that its people or its floor show.

    The up axis is the one nearest to the mean direction from the legs to the trunk, if
    these are near it. Without people it is the axis along which everything falls for a
    while, or the one with a floor: the height of the lowest point varies far less than
    along the assumed one. An axis that the file states, or that the caller gave, is
    doubted and kept; a floor never doubts it. So is an assumed one if there is a floor
    at zero across it and none across that of people: they lie, or stand on their hands.
    A take that was read from no file has +Z up.

    Args:
        take: The recording.
        people: People in it.
        stands_on_zero: Whether what is lowest in a take stands on a floor at z = 0.
    """
    if not take.source.up.value:
        return take
    is_stated = take.source.up.how in ("stated", "given")
    found, evidence = axis_of_people(people), "people stand along it"
    is_of_people = found != ""
    if not found:
        found, evidence = _axis_of_fall(take), "jumps or falls are along it"
    if not (found or is_stated):
        found, evidence = _axis_of_floor(take), "the floor is level across it"
    if found in ("", "z"):
        return take
    axis = geometry.nearest_axis(_rotation_read(take).T @ AXES[found])
    turned = _with_up(take, axis, evidence)
    up = take.source.up
    if is_stated:
        return _doubt(
            take, axis, f"{evidence}: up is {axis}, but {up.value} is {up.how}"
        )
    if is_of_people and stands_on_zero(take) and not stands_on_zero(turned):
        reason = f"people reach along {axis}, but the floor at 0 is across {up.value}"
        return _doubt(take, axis, f"{reason}, which is kept")
    message = f"took {axis} for the up axis: {evidence}; give up= if that is wrong"
    finding = Finding("up-corrected", "clean", "warning", message, "up")
    return record_repair(turned, [finding], [f"{axis} up"])


def _rotation_read(take: Take) -> Float[Array, "3 3"]:
    """Return the rotation of the axes of the file to those of the recording."""
    return geometry.R_Z_UP[take.source.up.value]


def _doubt(take: Take, axis: str, reason: str) -> Take:
    """Return the take with the warning that another axis may be up."""
    message = f"{reason}; read it with up={axis} if people stand"
    finding = Finding("up-doubtful", "clean", "warning", message, "up")
    return record_repair(take, [finding], [])


def _with_up(take: Take, axis: str, evidence: str) -> Take:
    """Return the take with another axis of its file as +Z."""
    R = geometry.R_Z_UP[axis] @ _rotation_read(take).T
    known = tuple(f for f in take.source.findings if f.code != "up-assumed")
    up = Fact(axis, "inferred", evidence)
    source = replace(take.source, up=up, findings=known)
    return replace(rotate_take(take, R), source=source)


def axis_of_people(people: Sequence[Person]) -> str:
    """Return the axis within 45 degrees of which people stand on average; "" if none.

    They must do so in most frames: who lies down for a while stands before and after.
    """
    directions = [_directions(person) for person in people]
    known = np.concatenate(directions) if directions else np.zeros((0, 3))
    if not len(known):
        return ""
    mean = known.mean(axis=0)
    axis = geometry.nearest_axis(mean)
    near = known @ AXES[axis] > np.sqrt(0.5)
    return axis if near.mean() > 0.5 else ""


def _directions(person: Person) -> Float[Array, "_ 3"]:
    """Return the unit vector from legs to trunk in the frames that show both."""
    upper, lower = (
        mean_where(points, points_seen(points)[..., None], axis=1)
        for points in (person.upper, person.lower)
    )
    unit = geometry.unit_vectors(upper - lower)
    return np.asarray(unit[np.isfinite(unit).all(axis=1)])


def _axis_of_fall(take: Take) -> str:
    r"""Return the axis against which all points accelerate by gravity; "" if none.

    In a jump or a fall the acceleration of the mean position :math:`x`,

    .. math:: a(t) = \frac{x(t + h) - 2 x(t) + x(t - h)}{h^2}

    stays :math:`-g` for as long as the window :math:`2h` in which it is measured, so
    that windows without a common frame agree.
    """
    h = round(0.5 * FALL_WINDOW_S * take.rate)
    positions = _often_seen(take)
    if h < 1 or len(positions) < 4 * h or not positions.shape[1]:
        return ""
    x = positions.mean(axis=1)
    a = (x[2 * h :] - 2.0 * x[h:-h] + x[: -2 * h]) * (take.rate / h) ** 2
    for name, axis in AXES.items():
        falls = np.linalg.norm(a + GRAVITY * axis, axis=1) < MAX_FALL_ERROR * GRAVITY
        rises_and_ends = np.flatnonzero(np.diff(falls, prepend=False, append=False))
        if np.diff(rises_and_ends)[::2].max(initial=0) > 2 * h:
            return name
    return ""


def _axis_of_floor(take: Take) -> str:
    """Return the axis along which the lowest point stays at one height; "" if none.

    Its height must vary by few per cent of what it does along the assumed axis. The
    lowest points must be feet: several in turn, each slower than most points.
    """
    positions = _often_seen(take)
    positions = positions[np.isfinite(positions).all(axis=(1, 2))]
    if len(positions) < MIN_SAMPLES or positions.shape[1] < 2:
        return ""
    spread = {name: _floor_spread(positions @ axis) for name, axis in AXES.items()}
    best = min(spread, key=lambda name: spread[name])
    is_level = spread[best] < FEW * spread["z"]
    return best if is_level and _are_feet(positions, AXES[best]) else ""


def _often_seen(take: Take) -> Float[Array, "frame point 3"]:
    """Return the positions of the markers and sensors that most frames show."""
    positions = take.positions
    often = np.isfinite(positions).all(axis=-1).mean(axis=0) >= MOST
    return np.asarray(positions[:, often])


def _floor_spread(height: Float[Array, "frame point"]) -> float:
    """Return the range of the height of the lowest point, without outliers."""
    low, high = np.quantile(height.min(axis=1), [FEW / 2.0, 1.0 - FEW / 2.0])
    return float(high - low)


def _are_feet(
    positions: Float[Array, "frame point 3"], axis: Float[Array, "3"]
) -> bool:
    """Return whether the lowest points stand on the floor in turn."""
    lowest = (positions @ axis).argmin(axis=1)[:-1]
    step = geometry.lengths(np.diff(positions, axis=0))
    is_slow = step[np.arange(len(step)), lowest] < 0.5 * np.median(step, axis=1)
    share = np.bincount(lowest) / len(lowest)
    return bool(is_slow.mean() > 0.5 and share.max() < MOST)
