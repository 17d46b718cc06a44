"""The figures: people, animals and mechanisms whose dimensions are all known."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from marey.errors import OptionError
from marey.skeleton import Kind
from marey.synth.figures.build import (
    JointSpec,
    Point,
    Span,
    SurfaceRow,
    X,
    Y,
    Z,
    add_right_side,
    build_figure,
)
from marey.synth.figures.figure import Figure
from marey.synth.figures.tables import read_tables

PROPORTION_SD = 0.02
"""Standard deviation of a person's bone lengths, as a share of the average length.
Larger values make people differ more. Chosen by hand."""

BIPED_MOTIONS = (
    "exercise",
    "walk",
    "circle",
    "chicken_walk",
    "kick_punch",
    "swing",
    "jump",
    "still",
)

FOOT = ("UpperLeg", "LowerLeg", "Foot", "Heel", "Toes")
ARM = ("UpperArm", "LowerArm", "Hand")
BIPED_LEGS = (("Left", FOOT, 0.0), ("Right", FOOT, 0.5))
BIPED_ARMS = (("Left", ARM, 0.0), ("Right", ARM, 0.0))

HIND, FORE = ("UpperLeg", "LowerLeg", "Foot", "Toes"), (*ARM, "Fingers")
QUADRUPED_LEGS = (
    ("Left", HIND, 0.0),
    ("Left", FORE, 0.25),
    ("Right", HIND, 0.5),
    ("Right", FORE, 0.75),
)
"""The legs in the order of a lateral-sequence walk."""

NECK_TO_LEFT_SHOULDER_M, NECK_TO_RIGHT_SHOULDER_M = 0.390, 0.397
BETWEEN_SHOULDERS_M = 0.343
RIGHT_UPPER_ARM_M, LEFT_UPPER_ARM_M = 0.286, 0.314
"""Distances of the joints of the wooden linkage, in metres: measured column of Table 1
of OBrien2000."""


def human(height: float = 1.8, *, seed: int = 0) -> Figure:
    """Return a person of 15 bodies, 14 ball joints and 48 degrees of freedom.

    OBrien2000, Sec. 4, tests on "a human containing 48 degrees of freedom" without
    a list of them. Its method finds limb lengths only at joints that rotate about two
    axes or more. It found all lengths, so no joint was a plain hinge: 14 ball joints
    and a free root make 48. Knees and elbows are ball joints with narrow limits. The
    joints without a degree of freedom (Chest, Head, Shoulders, Toes) are fixed and
    have the usual humanoid names.

    Args:
        height: Stature in metres, 0.5 to 2.5.
        seed: Seed of the bone lengths, which lie within a few per cent of the
            average. Left and right are equal.
    """
    _check_size("height", height, 0.5, 2.5)
    rng, tables = np.random.default_rng([seed, 48]), read_tables("human")
    factor = {
        row.name: 1.0 + PROPORTION_SD * float(np.clip(rng.normal(), -2.5, 2.5))
        for row in tables.joints
    }
    return build_figure(
        "human",
        _scale_bones(tables.joints, factor),
        _scale_surfaces(tables.surfaces, factor),
        BIPED_MOTIONS,
        scale=height,
        legs=BIPED_LEGS,
        arms=BIPED_ARMS,
        marker_sets=tables.marker_sets,
    )


def _scale_bones(
    rows: tuple[JointSpec, ...], factor: dict[str, float]
) -> list[JointSpec]:
    """Return both sides with scaled limb bones, and the soles on the ground."""
    limbs = ("UpperArm", "LowerArm", "HandEnd", "LowerLeg")
    scaled = []
    for row in rows:
        is_limb = row.name.endswith(("Hand", "Foot", *limbs))
        k = factor[row.name] if is_limb else 1.0
        x, y, z = (k * value for value in row.offset)
        scaled.append(replace(row, offset=(x, y, z)))
    offset = {row.name: row.offset for row in scaled}
    chain = ("LeftUpperLeg", "LeftLowerLeg", "LeftFoot", "LeftToes")
    hips = -sum(offset[name][2] for name in chain)
    scaled[0] = replace(scaled[0], offset=(0.0, 0.0, hips))
    return add_right_side(scaled)


def _scale_surfaces(
    rows: tuple[SurfaceRow, ...], factor: dict[str, float]
) -> tuple[SurfaceRow, ...]:
    """Return the surfaces, those of the limbs scaled like their bones."""
    bone_end = {
        "LUpperArm": "LeftLowerArm",
        "LForearm": "LeftHand",
        "LHand": "LeftHandEnd",
        "LThigh": "LeftLowerLeg",
        "LShank": "LeftFoot",
    }
    scaled = []
    for row in rows:
        k = factor[bone_end[row.name]] if row.name in bone_end else 1.0
        x, y, z = (k * value for value in row.end)
        scaled.append(replace(row, end=(x, y, z)))
    return tuple(scaled)


def robot(height: float = 1.5) -> Figure:
    """Return a walking robot of boxes with hinge knees and elbows, like DeAguiar2006.

    It resembles Fig. 5a of that paper. All other joints are ball joints, and the hands
    are part of the forearms.

    Args:
        height: Height in metres, 0.1 to 5.
    """
    _check_size("height", height, 0.1, 5.0)
    tables = read_tables("human")
    boxes = [
        replace(
            row,
            section_exponent=10.0,
            end_exponent=12.0,
            width=_mean_span(row.width),
            depth=_mean_span(row.depth),
        )
        for row in tables.surfaces
    ]
    return build_figure(
        "robot",
        add_right_side([_robot_row(row) for row in tables.joints]),
        boxes,
        ("walk", *(name for name in BIPED_MOTIONS if name != "walk")),
        scale=height,
        legs=BIPED_LEGS,
        arms=BIPED_ARMS,
    )


def _mean_span(size: Span) -> Span:
    mean = 0.5 * (size[0] + size[1])
    return mean, mean


def _robot_row(row: JointSpec) -> JointSpec:
    if "Lower" in row.name:
        return replace(row, kind="hinge", limits=row.limits[:1])
    if row.name == "LeftHand":
        return replace(row, kind="fixed", limits=(), neutral=(0.0, 0.0, 0.0))
    return row


def snowman(height: float = 1.6) -> Figure:
    """Return a snowman: three stacked spheres with two ball joints.

    It resembles Fig. 5b of DeAguiar2006.

    Args:
        height: Height in metres, 0.1 to 5.
    """
    _check_size("height", height, 0.1, 5.0)
    limits = ((-35, 35), (-35, 35), (-60, 60))
    rows = [
        JointSpec("Base", "", (0.0, 0.0, 0.25), "root"),
        JointSpec("Middle", "Base", (0.0, 0.0, 0.20), "ball", (Y, X), limits),
        JointSpec("Head", "Middle", (0.0, 0.0, 0.31), "ball", (Y, X), limits),
        JointSpec("HeadEnd", "Head", (0.0, 0.0, 0.24)),
        JointSpec("Ground", "Base", (0.0, 0.0, -0.25)),
    ]
    spheres = [
        _sphere_row("Base", (0, 0, -0.25), 0.50, 0.28),
        _sphere_row("Middle", (0, 0, -0.03), 0.36, 0.20),
        _sphere_row("Head", (0, 0, -0.03), 0.27, 0.14),
    ]
    motions = ("jump", "exercise", "swing", "still")
    return build_figure(
        "snowman", rows, spheres, motions, scale=height, root_travel=0.0
    )


def _sphere_row(
    joint: str, start: Point, height: float, half_width: float
) -> SurfaceRow:
    x, y, z = start
    width = (half_width, half_width)
    return SurfaceRow(joint, joint, start, (x, y, z + height), width, width, Y, X, 2.0)


def quadruped(height: float = 0.6) -> Figure:
    """Return a four-legged animal like a dog, with hinges in the middle of its legs.

    Args:
        height: Height at the withers in metres, 0.1 to 3.
    """
    _check_size("height", height, 0.1, 3.0)
    tables = read_tables("quadruped")
    return build_figure(
        "quadruped",
        add_right_side(tables.joints),
        tables.surfaces,
        ("walk", "exercise", "circle", "still"),
        scale=height,
        legs=QUADRUPED_LEGS,
    )


def linkage() -> Figure:
    """Return the wooden linkage of OBrien2000: six bodies, five ball joints.

    The distances between joints are the measured ones of Table 1. The lengths beyond
    the elbows and above the neck are not published; the values here are arbitrary.
    """
    half = 0.5 * BETWEEN_SHOULDERS_M
    left, right = NECK_TO_LEFT_SHOULDER_M, NECK_TO_RIGHT_SHOULDER_M
    neck_y = (right**2 - left**2) / (2.0 * BETWEEN_SHOULDERS_M)
    neck_z = float(np.sqrt(left**2 - (neck_y - half) ** 2))
    limits = ((-50, 50), (-50, 50), (-50, 50))
    ball = partial(JointSpec, kind="ball", axes=(Y, X), limits=limits)
    rows = [
        JointSpec("Torso", "", (0.0, 0.0, 1.0), "root"),
        ball("Head", "Torso", (0.0, neck_y, neck_z)),
        JointSpec("HeadEnd", "Head", (0.0, 0.0, 0.25)),
        ball("LeftUpperArm", "Torso", (0.0, half, 0.0)),
        ball("LeftLowerArm", "LeftUpperArm", (0, 0, -LEFT_UPPER_ARM_M)),
        JointSpec("LeftHand", "LeftLowerArm", (0.0, 0.0, -0.27)),
        ball("RightUpperArm", "Torso", (0.0, -half, 0.0)),
        ball("RightLowerArm", "RightUpperArm", (0, 0, -RIGHT_UPPER_ARM_M)),
        JointSpec("RightHand", "RightLowerArm", (0.0, 0.0, -0.27)),
    ]
    return _bar_mechanism("linkage", rows)


def hinge_pair(*, seed: int = 0) -> Figure:
    """Return two bodies joined by one hinge, whose axis is drawn from the seed."""
    axis = _random_axes(seed)[0]
    return _pair("hinge_pair", "hinge", (axis, axis), ((-80, 80),))


def universal_pair(*, seed: int = 0) -> Figure:
    """Return two bodies joined by a universal joint, whose axes come from the seed."""
    limits = ((-60, 60), (-60, 60))
    return _pair("universal_pair", "universal", _random_axes(seed), limits)


def _pair(
    name: str, kind: Kind, axes: tuple[np.ndarray, np.ndarray], limits: tuple[Span, ...]
) -> Figure:
    rows = [
        JointSpec("Base", "", (0.0, 0.0, 1.0), "root"),
        JointSpec("Arm", "Base", (0.30, 0.0, 0.0), kind, axes, limits),
        JointSpec("ArmEnd", "Arm", (0.25, 0.0, 0.0)),
    ]
    return _bar_mechanism(name, rows)


def pendulum(*, link: float = 0.52) -> Figure:
    """Return a triple pendulum: four bodies, three parallel hinges, a fixed mount.

    Args:
        link: Distance between neighbouring hinges in metres, 0.05 to 5.
    """
    _check_size("link", link, 0.05, 5.0)
    hinge = partial(JointSpec, kind="hinge", axes=(Y, Y), limits=((-70, 70),))
    rows = [
        JointSpec("Mount", "", (0.0, 0.0, 4.0), "root"),
        hinge("Upper", "Mount", (0.0, 0.0, -0.2)),
        hinge("Middle", "Upper", (0.0, 0.0, -1.0)),
        hinge("Lower", "Middle", (0.0, 0.0, -1.0)),
        JointSpec("LowerEnd", "Lower", (0.0, 0.0, -1.0)),
    ]
    return _bar_mechanism("pendulum", rows, link, root_travel=0.0)


def _bar_mechanism(
    name: str, rows: Sequence[JointSpec], scale: float = 1.0, root_travel: float = 1.0
) -> Figure:
    """Return a mechanism with one bar along every bone."""
    bars = [
        SurfaceRow(
            f"{row.parent}-{row.name}",
            row.parent,
            (0.0, 0.0, 0.0),
            row.offset,
            (0.04, 0.03),
            (0.03, 0.025),
            *_perpendicular_axes(np.array(row.offset, dtype=float)),
            6.0,
            6.0,
        )
        for row in rows[1:]
    ]
    motions = ("swing", "exercise", "still")
    return build_figure(name, rows, bars, motions, scale=scale, root_travel=root_travel)


def _perpendicular_axes(bone: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return two unit directions perpendicular to a bone and to each other."""
    helper = X if abs(bone[0]) < 0.5 * np.linalg.norm(bone) else Z
    side = np.cross(bone, helper)
    side = side / np.linalg.norm(side)
    front = np.cross(bone / np.linalg.norm(bone), side)
    return side, front


def _random_axes(seed: int) -> tuple[np.ndarray, np.ndarray]:
    q = np.linalg.qr(np.random.default_rng([seed, 7]).normal(size=(3, 3)))[0]
    return q[:, 0].copy(), q[:, 1].copy()


def _check_size(option: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise OptionError(option, found=value, needed=f"{low} to {high} m")
