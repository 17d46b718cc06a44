"""The start of a calibration: segments, a first shape, and what is known beforehand."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Float, Int

from marey.calibration.init.joint_regression import Guess, Reader, Stance
from marey.calibration.landmarks import SIDES, Landmarks
from marey.calibration.priors import USUAL_STATURE, Lengths, Rows
from marey.calibration.unknowns import (
    HINGE,
    SQUARE,
    Axis,
    Figure,
    Shape,
    figure_of,
)
from marey.numerics import geometry

Array = np.ndarray

FIRST_NOISE = 6e-3
"""Scale of a marker before it is known, in metres."""

LEAST_NOISE = 2e-4
"""No marker on skin keeps its place better than this, in metres."""

SOFT_HINGE, AXIS_SD = 0.1, 0.25
"""How far knees and elbows keep from hinges, and how well their axes are known, in
radians."""

ANYWHERE = 0.2
"""How far a marker may sit from where it was in the frame of the start, in metres: so
wide that it settles only markers that are hardly seen."""

UNMARKED = 0.040
"""How well a joint without landmarks is known, in metres."""

SHARE = {"LowerLeg": 0.2425, "Foot": 0.249, "LowerArm": 0.1618, "Hand": 0.1545}
"""Bones that end in these joints, as a share of the stature (de Leva 1996)."""

SHARE_SD = 0.05
HIPS_APART, HIPS_APART_SD = 0.100, 0.08
EQUAL, EQUAL_CLAVICLES = 0.005, 0.010
MIRRORED_HIPS, MIRRORED_CLAVICLES, MIRRORED_SHOULDERS = 0.008, 0.010, 0.015
"""How alike the two sides of a person are, in metres."""


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """A figure with its first shape, and rows of what is known of it."""

    figure: Figure
    shape: Shape
    rows: Rows
    order: Int[Array, " marker"]
    """Number of each of its markers among those of the figure it was made from."""

    least_noise: float
    """Smallest scale of a marker, in metres."""

    anatomical: bool = False
    """Whether z points along the bones of arms, too, rather than up in a T-pose."""

    unknown: Mapping[int, Float[Array, "3 3"]] = field(default_factory=dict)
    """Covariance of joints that were put somewhere for want of knowledge, by segment,
    in square metres."""


def person_start(
    figure: Figure,
    shape: Shape,
    marks: Landmarks,
    points: Float[Array, "frame marker 3"],
    frame: int,
    *,
    clavicles: bool,
) -> Start:
    """Return a person as the landmarks of one frame show it.

    Args:
        figure: Segments and markers as they came.
        shape: Their shape, for joints that no landmark tells.
        marks: The landmarks among the markers.
        points: Frames of all sessions; the chosen frame without gaps.
        frame: The frame to read.
        clavicles: Whether the shoulders move against the chest.
    """
    stance = Reader(figure, marks, points, frame).read()
    built = _with_clavicles(figure, marks) if clavicles else figure
    place = {label: k for k, label in enumerate(figure.labels)}
    order = np.array([place[label] for label in built.labels], dtype=np.int64)
    here = points[frame]
    joints, axes = _completed(built, figure, shape, stance, here)
    o, m = np.zeros((len(built.names), 3)), np.zeros((len(order), 3))
    for i in range(1, len(o)):
        p = int(built.parent[i])
        o[i] = axes[p].T @ (joints[i] - joints[p])
    for k, i in enumerate(built.segment):
        m[k] = axes[i].T @ (here[order[k]] - joints[i])
    built = replace(built, axes=_soft_hinges(built))
    sessions = shape.m.shape[0]
    a, b = _first_axes(built)
    first = Shape(
        o=o,
        m=np.repeat(m[None], sessions, axis=0),
        a=a,
        b=b,
        noise=np.full((sessions, len(order)), FIRST_NOISE),
        usual=np.repeat(np.eye(3)[None], len(built.names), axis=0),
        stature=USUAL_STATURE,
    )
    rows = Rows(built)
    rows.hold_axes(m)
    where = {int(k): n for n, k in enumerate(order)}
    _landmark_rows(rows, built, o, m, stance, where)
    likeness_rows(rows, built, mirrored=True)
    for n in range(len(built.axes)):
        rows.axis_along(n, a[n], b[n], AXIS_SD)
    for k in range(len(m)):
        rows.marker_at(k, m[k], ANYWHERE)
    return Start(built, first, rows, order, LEAST_NOISE, anatomical=True)


def _with_clavicles(figure: Figure, marks: Landmarks) -> Figure:
    """Return the figure with a segment from the throat to each shoulder."""
    parents = {
        name: figure.names[p] if p >= 0 else ""
        for name, p in zip(figure.names, figure.parent.tolist(), strict=True)
    }
    home = {
        label: figure.names[i]
        for label, i in zip(figure.labels, figure.segment.tolist(), strict=True)
    }
    for side in SIDES:
        parents[f"{side}Shoulder"] = parents[f"{side}UpperArm"]
        parents[f"{side}UpperArm"] = f"{side}Shoulder"
        for k in marks(side, "acromion"):
            home[figure.labels[k]] = f"{side}Shoulder"
    return figure_of(parents, list(home.items()))


def can_have_clavicles(figure: Figure, marks: Landmarks) -> bool:
    """Return whether the shoulders have markers of their own to follow them by."""
    return all(
        marks(side, "acromion")
        and figure.index(f"{side}UpperArm") >= 0
        and figure.index(f"{side}Shoulder") < 0
        and figure.names[figure.parent[figure.index(f"{side}UpperArm")]] == "Chest"
        for side in SIDES
    )


def _completed(
    built: Figure, figure: Figure, shape: Shape, stance: Stance, here: Array
) -> tuple[Float[Array, "segment 3"], Float[Array, "segment 3 3"]]:
    """Return all joints and axes; what no landmark tells as the first shape has it."""
    joints = np.zeros((len(built.names), 3))
    axes = np.zeros((len(built.names), 3, 3))
    for i, name in enumerate(built.names):
        p = int(built.parent[i])
        axes[i] = stance.axes.get(name, axes[p])
        if name in stance.joints:
            joints[i] = stance.joints[name].place
        else:
            joints[i] = _carried(built.names[p], name, figure, shape, here)
    return joints, axes


def _carried(
    above: str, name: str, figure: Figure, shape: Shape, here: Array
) -> Float[Array, " 3"]:
    """Return a joint of the first shape, carried along by its parent's markers."""
    p, i = figure.index(above), figure.index(name)
    mine = list(figure.markers_of(p))
    if len(mine) >= 3:
        T = geometry.kabsch(shape.m[0, mine], here[mine])
        if np.isfinite(T).all():
            return np.asarray(geometry.apply(T, shape.o[i]))
    near = [*mine, *figure.markers_of(i)] or list(range(len(here)))
    return np.asarray(here[near].mean(axis=0))


# --- rows -----------------------------------------------------------------------------


def _soft_hinges(figure: Figure) -> tuple[Axis, ...]:
    """Return knees as hinges, and elbows as two axes that stay square."""
    found = []
    for name, kind in (("LowerLeg", HINGE), ("LowerArm", SQUARE)):
        for side in SIDES:
            i = figure.index(f"{side}{name}")
            if i > 0:
                found.append(Axis(i, kind, SOFT_HINGE))
    return tuple(found)


def _first_axes(figure: Figure) -> tuple[Array, Array]:
    """Return the axes to the left; of forearms along the bone."""
    a = np.array([[0.0, 1.0, 0.0] for _ in figure.axes]).reshape(-1, 3)
    b = a.copy()
    for n, axis in enumerate(figure.axes):
        if axis.kind == SQUARE:
            b[n] = [0.0, 0.0, 1.0]
    return a, b


def _landmark_rows(
    rows: Rows,
    figure: Figure,
    o: Array,
    m: Array,
    stance: Stance,
    where: dict[int, int],
) -> None:
    for i in range(1, len(figure.names)):
        p = int(figure.parent[i])
        guess: Guess | None = stance.joints.get(figure.names[i])
        near = [where[k] for k in guess.markers] if guess is not None else []
        near = [k for k in near if figure.segment[k] == p]
        if guess is not None and near:
            rows.joint_near(i, near, o[i] - m[near].mean(axis=0), guess.sd)
        else:
            rows.joint_at(i, o[i], UNMARKED)


def likeness_rows(rows: Rows, figure: Figure, *, mirrored: bool) -> None:
    """Add that left and right are alike, and that people have proportions."""
    add = rows.lengths.append
    for name, share in SHARE.items():
        left, right = (figure.index(f"{side}{name}") for side in SIDES)
        if left > 0 and right > 0:
            add(Lengths(left, right, 0.0, EQUAL))
        for i in (left, right):
            if i > 0:
                add(Lengths(i, -1, share, SHARE_SD * share * USUAL_STATURE))
    pairs = {
        name: tuple(figure.index(f"{side}{name}") for side in SIDES)
        for name in ("UpperLeg", "UpperArm", "Shoulder")
    }
    left, right = pairs["UpperLeg"]
    sd = HIPS_APART_SD * HIPS_APART * USUAL_STATURE
    add(Lengths(left, right, HIPS_APART, sd, apart=True))
    if mirrored:
        rows.mirrored(left, right, MIRRORED_HIPS)
    left, right = pairs["Shoulder"]
    if left > 0 and right > 0:
        first, second = pairs["UpperArm"]
        add(Lengths(first, second, 0.0, EQUAL_CLAVICLES))
    else:
        left, right = pairs["UpperArm"]
    if mirrored and left > 0 and right > 0:
        clavicle = figure.names[left].endswith("Shoulder")
        sd = MIRRORED_CLAVICLES if clavicle else MIRRORED_SHOULDERS
        rows.mirrored(left, right, sd)
