"""The figures: people, animals and mechanisms with every length known."""

from dataclasses import replace
from typing import Any

import numpy as np

from marey.errors import OptionError
from marey.skeleton import Skeleton
from marey.synth.figures import human as _human
from marey.synth.figures import quadruped as _quadruped
from marey.synth.figures.build import (
    Flesh,
    Point,
    Row,
    Span,
    X,
    Y,
    Z,
    both_sides,
    neutral_of,
    shapes_of,
    skeleton_of,
)
from marey.synth.figures.figure import Figure, Limb

# How far a person's bones differ from the average proportions, as a share (one sd).
PROPORTION_SD = 0.02

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

# OBrien2000, Table 1, measured column, in metres.
NECK_TO_LEFT_SHOULDER, NECK_TO_RIGHT_SHOULDER = 0.390, 0.397
BETWEEN_SHOULDERS = 0.343
RIGHT_UPPER_ARM, LEFT_UPPER_ARM = 0.286, 0.314


def human(height: float = 1.8, *, seed: int = 0) -> Figure:
    """Return a person of 15 bodies, 14 ball joints and 48 degrees of freedom.

    OBrien2000, Sec. 4, tests on "a human containing 48 degrees of freedom" without
    listing them. Its method finds limb lengths only at joints that turn about two axes
    or more, and it found them all, so no joint was a plain hinge: 14 ball joints and a
    free root make 48. Knees and elbows are balls with narrow limits. Joints without
    freedom of their own (Chest, Head, Shoulders, Toes) are fixed and keep the usual
    humanoid names.

    Args:
        height: Stature in metres, 0.5 to 2.5.
        seed: Draws the person: each bone within a few per cent of the average, left
            and right alike.
    """
    _check_size("height", height, 0.5, 2.5)
    rng = np.random.default_rng([seed, 48])
    factor = {
        row.name: 1.0 + PROPORTION_SD * float(np.clip(rng.normal(), -2.5, 2.5))
        for row in _human.ROWS
    }
    rows = _grown(_human.ROWS, factor)
    skeleton = skeleton_of(rows, height)
    return Figure(
        name="human",
        skeleton=skeleton,
        shapes=shapes_of(_grown_flesh(_human.FLESH, factor), skeleton, height),
        neutral=neutral_of(rows),
        motions=BIPED_MOTIONS,
        legs=_legs(skeleton),
        arms=_arms(skeleton),
        marker_sets={"sparse41": _human.SPARSE41, "set53": _human.SET53},
    )


def _grown(rows: tuple[Row, ...], factor: dict[str, float]) -> list[Row]:
    """Scale the limbs' bones, and set the hips so that the soles are on the ground."""
    limbs = ("UpperArm", "LowerArm", "HandEnd", "LowerLeg")
    grown = []
    for row in rows:
        scaled = row.name.endswith(("Hand", "Foot", *limbs))
        k = factor[row.name] if scaled else 1.0
        x, y, z = (k * value for value in row.offset)
        grown.append(replace(row, offset=(x, y, z)))
    place = {row.name: row.offset for row in grown}
    chain = ("LeftUpperLeg", "LeftLowerLeg", "LeftFoot", "LeftToes")
    hips = -sum(place[name][2] for name in chain)
    grown[0] = replace(grown[0], offset=(0.0, 0.0, hips))
    return both_sides(grown)


def _grown_flesh(
    flesh: tuple[Flesh, ...], factor: dict[str, float]
) -> tuple[Flesh, ...]:
    """Stretch the flesh of each limb along with its bone."""
    bone_end = {
        "LUpperArm": "LeftLowerArm",
        "LForearm": "LeftHand",
        "LHand": "LeftHandEnd",
        "LThigh": "LeftLowerLeg",
        "LShank": "LeftFoot",
    }
    grown = []
    for f in flesh:
        k = factor[bone_end[f.name]] if f.name in bone_end else 1.0
        x, y, z = (k * value for value in f.end)
        grown.append(replace(f, end=(x, y, z)))
    return tuple(grown)


LEG = ("UpperLeg", "LowerLeg", "Foot")


def _limb(skeleton: Skeleton, side: str, parts: tuple[str, ...], **more: Any) -> Limb:
    """Return a limb by the names of its joints: three, then those of its tips."""
    upper, middle, end, *tips = (skeleton.index(f"{side}{part}") for part in parts)
    sign = 1.0 if side == "Left" else -1.0
    return Limb(upper, middle, end, tips=tuple(tips), side=sign, **more)


def _legs(skeleton: Skeleton) -> tuple[Limb, ...]:
    foot = (*LEG, "Heel", "Toes")
    left = _limb(skeleton, "Left", foot)
    return left, _limb(skeleton, "Right", foot, phase=0.5)


def _arms(skeleton: Skeleton) -> tuple[Limb, ...]:
    parts = ("UpperArm", "LowerArm", "Hand")
    return _limb(skeleton, "Left", parts), _limb(skeleton, "Right", parts)


def robot(height: float = 1.5) -> Figure:
    """Return a walking robot of boxes: hinges at knees and elbows, balls elsewhere.

    In the manner of DeAguiar2006, Fig. 5a. Its hands are part of the forearms.

    Args:
        height: In metres, 0.1 to 5.
    """
    _check_size("height", height, 0.1, 5.0)
    rows = both_sides([_as_robot(row) for row in _human.ROWS])
    skeleton = skeleton_of(rows, height)
    boxes = [
        replace(
            f, square=10.0, blunt=12.0, width=_thick(f.width), depth=_thick(f.depth)
        )
        for f in _human.FLESH
    ]
    return Figure(
        name="robot",
        skeleton=skeleton,
        shapes=shapes_of(boxes, skeleton, height),
        neutral=neutral_of(rows),
        motions=("walk", *(name for name in BIPED_MOTIONS if name != "walk")),
        legs=_legs(skeleton),
        arms=_arms(skeleton),
    )


def _thick(size: Span) -> Span:
    mean = 0.5 * (size[0] + size[1])
    return mean, mean


def _as_robot(row: Row) -> Row:
    if "Lower" in row.name:
        return replace(row, kind="hinge", limits=row.limits[:1])
    if row.name == "LeftHand":
        return replace(row, kind="fixed", limits=(), neutral=(0.0, 0.0, 0.0))
    return row


def snowman(height: float = 1.6) -> Figure:
    """Return a snowman: three balls of snow stacked with two ball joints.

    In the manner of DeAguiar2006, Fig. 5b.

    Args:
        height: In metres, 0.1 to 5.
    """
    _check_size("height", height, 0.1, 5.0)
    free = ((-35, 35), (-35, 35), (-60, 60))
    rows = [
        Row("Base", "", (0.0, 0.0, 0.25), "root"),
        Row("Middle", "Base", (0.0, 0.0, 0.20), "ball", (Y, X), free),
        Row("Head", "Middle", (0.0, 0.0, 0.31), "ball", (Y, X), free),
        Row("HeadEnd", "Head", (0.0, 0.0, 0.24)),
        Row("Ground", "Base", (0.0, 0.0, -0.25)),
    ]
    skeleton = skeleton_of(rows, height)
    balls = [
        _ball_of("Base", (0, 0, -0.25), 0.50, 0.28),
        _ball_of("Middle", (0, 0, -0.03), 0.36, 0.20),
        _ball_of("Head", (0, 0, -0.03), 0.27, 0.14),
    ]
    return Figure(
        name="snowman",
        skeleton=skeleton,
        shapes=shapes_of(balls, skeleton, height),
        neutral=neutral_of(rows),
        motions=("jump", "exercise", "swing", "still"),
        roams=0.0,
    )


def _ball_of(joint: str, start: Point, tall: float, wide: float) -> Flesh:
    x, y, z = start
    size = (wide, wide)
    return Flesh(joint, joint, start, (x, y, z + tall), size, size, Y, X, 2.0)


def quadruped(height: float = 0.6) -> Figure:
    """Return a four-legged animal of the build of a dog: hinges in the legs' middle.

    Args:
        height: At the withers, in metres, 0.1 to 3.
    """
    _check_size("height", height, 0.1, 3.0)
    rows = both_sides(_quadruped.ROWS)
    skeleton = skeleton_of(rows, height)
    return Figure(
        name="quadruped",
        skeleton=skeleton,
        shapes=shapes_of(_quadruped.FLESH, skeleton, height),
        neutral=neutral_of(rows),
        motions=("walk", "exercise", "circle", "still"),
        legs=_paws(skeleton),
    )


def _paws(skeleton: Skeleton) -> tuple[Limb, ...]:
    """Return the legs in the order of a walk: hind, then fore, side after side."""
    hind, fore = (*LEG, "Toes"), ("UpperArm", "LowerArm", "Hand", "Fingers")
    return (
        _limb(skeleton, "Left", hind, phase=0.0),
        _limb(skeleton, "Left", fore, phase=0.25),
        _limb(skeleton, "Right", hind, phase=0.5),
        _limb(skeleton, "Right", fore, phase=0.75),
    )


def linkage() -> Figure:
    """Return the wooden linkage of OBrien2000: six bodies, five ball joints.

    The joint-to-joint distances are the measured ones of its Table 1. The lengths
    beyond the elbows and above the neck are not published and mean nothing here.
    """
    half = 0.5 * BETWEEN_SHOULDERS
    left, right = NECK_TO_LEFT_SHOULDER, NECK_TO_RIGHT_SHOULDER
    aside = (right**2 - left**2) / (2.0 * BETWEEN_SHOULDERS)
    up = float(np.sqrt(left**2 - (aside - half) ** 2))
    free = ((-50, 50), (-50, 50), (-50, 50))
    rows = [
        Row("Torso", "", (0.0, 0.0, 1.0), "root"),
        Row("Head", "Torso", (0.0, aside, up), "ball", (Y, X), free),
        Row("HeadEnd", "Head", (0.0, 0.0, 0.25)),
        Row("LeftUpperArm", "Torso", (0.0, half, 0.0), "ball", (Y, X), free),
        Row(
            "LeftLowerArm",
            "LeftUpperArm",
            (0, 0, -LEFT_UPPER_ARM),
            "ball",
            (Y, X),
            free,
        ),
        Row("LeftHand", "LeftLowerArm", (0.0, 0.0, -0.27)),
        Row("RightUpperArm", "Torso", (0.0, -half, 0.0), "ball", (Y, X), free),
        Row(
            "RightLowerArm",
            "RightUpperArm",
            (0, 0, -RIGHT_UPPER_ARM),
            "ball",
            (Y, X),
            free,
        ),
        Row("RightHand", "RightLowerArm", (0.0, 0.0, -0.27)),
    ]
    return _bars("linkage", rows)


def hinge_pair(*, seed: int = 0) -> Figure:
    """Return two bodies joined by one hinge, its axis drawn by the seed."""
    axis = _random_axes(seed)[0]
    rows = [
        Row("Base", "", (0.0, 0.0, 1.0), "root"),
        Row("Arm", "Base", (0.30, 0.0, 0.0), "hinge", (axis, axis), ((-80, 80),)),
        Row("ArmEnd", "Arm", (0.25, 0.0, 0.0)),
    ]
    return _bars("hinge_pair", rows)


def universal_pair(*, seed: int = 0) -> Figure:
    """Return two bodies joined by a universal joint, its axes drawn by the seed."""
    axes = _random_axes(seed)
    both = ((-60, 60), (-60, 60))
    rows = [
        Row("Base", "", (0.0, 0.0, 1.0), "root"),
        Row("Arm", "Base", (0.30, 0.0, 0.0), "universal", axes, both),
        Row("ArmEnd", "Arm", (0.25, 0.0, 0.0)),
    ]
    return _bars("universal_pair", rows)


def pendulum(*, link: float = 0.52) -> Figure:
    """Return a triple pendulum: four bodies, three parallel hinges, a mount at rest.

    Args:
        link: Distance of neighbouring hinges in metres, 0.05 to 5.
    """
    _check_size("link", link, 0.05, 5.0)
    limits = ((-70, 70),)
    rows = [
        Row("Mount", "", (0.0, 0.0, 4.0), "root"),
        Row("Upper", "Mount", (0.0, 0.0, -0.2), "hinge", (Y, Y), limits),
        Row("Middle", "Upper", (0.0, 0.0, -1.0), "hinge", (Y, Y), limits),
        Row("Lower", "Middle", (0.0, 0.0, -1.0), "hinge", (Y, Y), limits),
        Row("LowerEnd", "Lower", (0.0, 0.0, -1.0)),
    ]
    return replace(_bars("pendulum", rows, link), roams=0.0)


def _bars(name: str, rows: list[Row], scale: float = 1.0) -> Figure:
    """Return a mechanism: one bar along every bone."""
    skeleton = skeleton_of(rows, scale)
    flesh = []
    for row in rows[1:]:
        carrier = row.parent
        side, front = _across(np.array(row.offset, dtype=float))
        flesh.append(
            Flesh(
                f"{carrier}-{row.name}",
                carrier,
                (0.0, 0.0, 0.0),
                row.offset,
                (0.04, 0.03),
                (0.03, 0.025),
                side,
                front,
                6.0,
                6.0,
            )
        )
    return Figure(
        name=name,
        skeleton=skeleton,
        shapes=shapes_of(flesh, skeleton, scale, twins=False),
        neutral=neutral_of(rows),
        motions=("swing", "exercise", "still"),
    )


def _across(bone: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return two unit directions square to a bone and to each other."""
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
