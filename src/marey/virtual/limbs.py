"""Which limbs follow their sensors, and which are inferred from their neighbours."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float

from marey.errors import DataError, OptionError
from marey.skeleton import Skeleton

Array = np.ndarray
How = Literal["measured", "hung", "pointed", "carried"]

_SIDES = ("UpperArm", "LowerArm", "Hand", "UpperLeg", "LowerLeg", "Foot", "Shoulder")
_LEFT, _RIGHT = (
    {part: f"{side}{part}" for part in _SIDES} for side in ("Left", "Right")
)


def _both(*parts: str) -> tuple[str, ...]:
    return tuple(side[part] for part in parts for side in (_LEFT, _RIGHT))


LAYOUTS = {
    "13": (
        "Hips",
        "Chest",
        "Head",
        *_both("Shoulder", "LowerArm", "Hand", "LowerLeg", "Foot"),
    ),
    "18": (
        "Hips",
        "Spine",
        "Chest",
        "Head",
        *_both(
            "Shoulder", "UpperArm", "LowerArm", "Hand", "UpperLeg", "LowerLeg", "Foot"
        ),
    ),
}
"""Bones that wear a sensor, by layout. Bodenheimer1997, Fig. 1, shows 13 and 18 of
them without names; these are those of its Sec. 2.1, the thighs, upper arms and belly
added for 18."""

HUNG = ("Hand", "Foot", "Toes")
POINTED = ("Spine", "Chest", "UpperChest", "Shoulder", "UpperArm", "UpperLeg")
FAR = ("UpperArm",)

BENDS = {
    "LeftLowerLeg": (0.0, 1.0, 0.0),
    "RightLowerLeg": (0.0, 1.0, 0.0),
    "LeftLowerArm": (0.0, 0.0, -1.0),
    "RightLowerArm": (0.0, 0.0, 1.0),
}
"""Axes about which knees and elbows bend in a T-pose that faces +x."""

STEADY = {"UpperLeg": 0.35}
"""How far aside of a limb's line its up point lies, as a share of how far behind: a
knee hardly twists, so that the thigh's twist is known even when the leg is straight."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limb:
    """How one bone is placed in every frame."""

    joint: str
    """The joint whose bone it is."""

    how: How
    """"measured": its sensor tells its pose, as primary data; "hung": its sensor tells
    its rotation, its parent its place; "pointed": it points from its joint to that of
    another limb; "carried": it keeps its rotation in its parent."""

    sensor: str = ""
    """The sensor that it wears, if any."""

    to: str = ""
    """The joint that a pointed limb points to."""

    far: bool = False
    """Whether a pointed limb is rooted at its far end, so that what its length is off
    shows at its own joint: the direction of a shoulder from the elbow is better known
    than its distance."""

    aside: float = 0.0
    """How far aside its up point lies, as a share of how far behind `to`."""


def limbs_of(
    skeleton: Skeleton, sensor_names: Sequence[str], layout: str | Sequence[str] = ""
) -> tuple[Limb, ...]:
    """Return how the bones of a skeleton are placed by the sensors of a layout.

    After Bodenheimer1997, Sec. 2.1: pelvis, head, forearms and lower legs are primary
    data; hands and feet hang from wrists and ankles; what lies between points from one
    to the other. Bones of other names are measured if they wear a sensor.

    Args:
        skeleton: With its sensors.
        sensor_names: The sensors that there are.
        layout: A key of `LAYOUTS`, or names of bones whose sensors are used; all of
            them when empty.

    Raises:
        OptionError: If the layout is not known, or names a bone that is not there.
        DataError: If the root wears no sensor.
    """
    worn = _worn(skeleton, sensor_names, _chosen(skeleton, layout))
    limbs = tuple(_limb(skeleton, joint, worn) for joint in _placed(skeleton, worn))
    if limbs[0].how != "measured":
        found = ", ".join(limb.joint for limb in limbs if limb.sensor)
        raise DataError(
            "virtual skeleton",
            found=f"sensors on {found or 'nothing'}",
            needed=f"one on {skeleton.names[0]}",
        )
    return limbs


def _chosen(skeleton: Skeleton, layout: str | Sequence[str]) -> set[int]:
    """Return the joints whose sensors are used: those named and what carries them."""
    if not layout:
        return set(range(skeleton.n_joints))
    if isinstance(layout, str) and layout not in LAYOUTS:
        raise OptionError(
            "layout", found=layout, needed=f"one of {', '.join(LAYOUTS)}, or names"
        )
    names = LAYOUTS[layout] if isinstance(layout, str) else layout
    absent = [name for name in names if name not in skeleton.names]
    if absent and not isinstance(layout, str):
        raise OptionError(
            "layout",
            found=", ".join(absent),
            needed=f"some of {', '.join(skeleton.names)}",
        )
    mine = {skeleton.names.index(name) for name in names if name in skeleton.names}
    for joint in sorted(mine, reverse=True):
        while skeleton.kind[joint] == "fixed":
            joint = int(skeleton.parent[joint])
            mine.add(joint)
    return mine


def check_limbs(
    limbs: Sequence[Limb], skeleton: Skeleton, sensor_names: Sequence[str]
) -> None:
    """Make sure that all that limbs name is there.

    Raises:
        OptionError: If a joint is not the skeleton's, a pointed limb points to none,
            or a sensor is not both the skeleton's and the stream's.
    """
    sensors = [name for name in skeleton.sensor_names if name in sensor_names]
    for limb in limbs:
        _check_known(limb, "joint", limb.joint, skeleton.names)
        if limb.how == "pointed" or limb.to:
            _check_known(limb, "to", limb.to, skeleton.names)
        if limb.sensor:
            _check_known(limb, "sensor", limb.sensor, sensors)


def _check_known(limb: Limb, what: str, name: str, known: Sequence[str]) -> None:
    if name not in known:
        raise OptionError(
            f"{what} of limb {limb.joint}",
            found=name,
            needed=f"one of {', '.join(known)}",
        )


def _worn(
    skeleton: Skeleton, sensor_names: Sequence[str], chosen: set[int]
) -> dict[int, str]:
    """Return the sensor of each joint that has one."""
    worn: dict[int, str] = {}
    for name, joint in zip(skeleton.sensor_names, skeleton.sensor_joint, strict=True):
        if name in sensor_names and int(joint) in chosen:
            worn.setdefault(int(joint), name)
    return worn


def _placed(skeleton: Skeleton, worn: dict[int, str]) -> Iterator[int]:
    """Return the joints that turn or wear a sensor, parents first."""
    for joint, kind in enumerate(skeleton.kind):
        if kind != "fixed" or joint in worn:
            yield joint


def _limb(skeleton: Skeleton, joint: int, worn: dict[int, str]) -> Limb:
    name, sensor = skeleton.names[joint], worn.get(joint, "")
    bare = name.removeprefix("Left").removeprefix("Right")
    to = _next(skeleton, joint, worn)
    if joint > 0 and bare in HUNG and sensor:
        return Limb(joint=name, how="hung", sensor=sensor)
    if joint > 0 and to and (not sensor or bare in POINTED):
        return Limb(
            joint=name,
            how="pointed",
            sensor=sensor,
            to=to,
            far=bare in FAR,
            aside=STEADY.get(bare, 0.0),
        )
    return Limb(joint=name, how="measured" if sensor else "carried", sensor=sensor)


def _next(skeleton: Skeleton, joint: int, worn: dict[int, str]) -> str:
    """Return the joint that a bone points to: the next one out, in the middle if any.

    It must be seen, by its own sensor or by the bone's.
    """
    turning = [j for j, kind in enumerate(skeleton.kind) if kind != "fixed"]
    out = [j for j in turning if j > 0 and _base(skeleton, j, turning) == joint]
    middle = [j for j in out if not skeleton.names[j].startswith(("Left", "Right"))]
    for j in middle or (out if len(out) == 1 else []):
        if j in worn or joint in worn:
            return skeleton.names[j]
    return ""


def _base(skeleton: Skeleton, joint: int, turning: Sequence[int]) -> int:
    """Return the turning joint that carries a joint."""
    above = int(skeleton.parent[joint])
    while above not in turning:
        above = int(skeleton.parent[above])
    return above


def drivers(skeleton: Skeleton, limbs: Sequence[Limb]) -> Bool[Array, "joint joint"]:
    """Return which limbs' sensors have part in the pose of each joint."""
    by_joint = {skeleton.index(limb.joint): limb for limb in limbs}
    driven = np.zeros((skeleton.n_joints, skeleton.n_joints), dtype=bool)
    for joint, parent in enumerate(skeleton.parent):
        limb = by_joint.get(joint)
        if limb is None or limb.how != "measured":
            driven[joint] = driven[parent]
        if limb is None:
            continue
        driven[joint, joint] |= bool(limb.sensor)
        to = by_joint.get(skeleton.index(limb.to)) if limb.to else None
        if to is not None and to.sensor:
            driven[joint, skeleton.index(to.joint)] = True
    return driven


def bend_axis(skeleton: Skeleton, joint: int) -> Float[Array, " 3"]:
    """Return the axis about which a joint bends, at rest; NaN where none is known."""
    axis = skeleton.axes[joint, 0]
    if np.isfinite(axis).all():
        return np.asarray(axis)
    return np.array(BENDS.get(skeleton.names[joint], (np.nan,) * 3))
