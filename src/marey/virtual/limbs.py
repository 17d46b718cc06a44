"""Rules for the pose of every limb: measured by a sensor or inferred from others."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from marey.anatomy import names as vrm
from marey.anatomy.limits import human_ranges
from marey.errors import DataError, OptionError
from marey.numerics import Array, Bool, Float
from marey.skeleton import Skeleton, rotating_joints

Constraint = Literal["measured", "oriented", "aimed", "rigid"]


def _layout(trunk: Sequence[str], limbs: Sequence[str]) -> tuple[str, ...]:
    return (*trunk, *(name for part in limbs for name in vrm.both_sides(part)))


LAYOUTS = {
    "13": _layout(
        (vrm.HIPS, vrm.CHEST, vrm.HEAD),
        (vrm.SHOULDER, *vrm.ARM[2:], vrm.LOWER_LEG, vrm.FOOT),
    ),
    "18": _layout((vrm.HIPS, vrm.SPINE, vrm.CHEST, vrm.HEAD), (*vrm.ARM, *vrm.LEG[:3])),
}
"""Bones with a sensor, by layout. Bodenheimer1997, Fig. 1, shows 13 and 18 of them
without names; these are those of its Sec. 2.1, with the thighs, upper arms and belly
added for 18."""

ORIENTED_BONES = (vrm.HAND, vrm.FOOT, vrm.TOES)
AIMED_BONES = (*vrm.TRUNK[:3], vrm.SHOULDER, vrm.UPPER_ARM, vrm.UPPER_LEG)
BONES_ANCHORED_AT_END = (vrm.UPPER_ARM,)
BENDING_BONES = (vrm.LOWER_ARM, vrm.LOWER_LEG)

UP_OFFSETS = {vrm.UPPER_LEG: 0.35}
"""Distance of a limb's up point from its line, as a share of the distance behind its
end. A knee hardly twists, so this determines the thigh's twist even when the leg is
straight. Higher trusts the shin more. Chosen by hand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualLimb:
    """The rule that gives one bone its pose in every frame."""

    joint: str
    """The joint whose bone it is."""

    constraint: Constraint
    """"measured": its sensor gives its pose, as primary data; "oriented": its sensor
    gives its rotation, its parent the position; "aimed": it points from its joint to
    that of another limb; "rigid": it keeps its rotation in its parent."""

    sensor: str = ""
    """The sensor attached to it, if any."""

    aim_joint: str = ""
    """The joint that an aimed limb points to."""

    anchored_at_end: bool = False
    """Whether an aimed limb is positioned by its end, so that an error of its length
    shows at its own joint: the direction of the shoulder from the elbow is better known
    than its distance."""

    up_offset: float = 0.0
    """Distance of its up point from its line, as a share of that behind `aim_joint`."""


def make_limbs(
    skeleton: Skeleton, sensor_names: Sequence[str], layout: str | Sequence[str] = ""
) -> tuple[VirtualLimb, ...]:
    """Return the rules of all bones of a skeleton for the sensors of a layout.

    After Bodenheimer1997, Sec. 2.1: pelvis, head, forearms and lower legs are primary
    data; hands and feet start at wrists and ankles; bones between them point from one
    to the other. Bones of other names are measured if they have a sensor.

    Args:
        skeleton: With its sensors.
        sensor_names: The sensors of the recording.
        layout: A key of `LAYOUTS`, or names of bones whose sensors are used; all of
            them when empty.

    Raises:
        OptionError: If the layout is not known, or names a bone that is not there.
        DataError: If the root has no sensor.
    """
    used = _joints_of_layout(skeleton, layout)
    sensor_of: dict[int, str] = {}
    for name, joint in zip(skeleton.sensor_names, skeleton.sensor_joint, strict=True):
        if name in sensor_names and int(joint) in used:
            sensor_of.setdefault(int(joint), name)
    limbs = tuple(
        _make_limb(skeleton, joint, sensor_of)
        for joint, kind in enumerate(skeleton.kind)
        if kind != "fixed" or joint in sensor_of
    )
    if limbs[0].constraint != "measured":
        found = ", ".join(limb.joint for limb in limbs if limb.sensor)
        raise DataError(
            "virtual skeleton",
            found=f"sensors on {found or 'nothing'}",
            needed=f"one on {skeleton.names[0]}",
        )
    return limbs


def _joints_of_layout(skeleton: Skeleton, layout: str | Sequence[str]) -> set[int]:
    """Return the joints whose sensors are used: those named, and what moves them."""
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
    joints = {skeleton.names.index(name) for name in names if name in skeleton.names}
    for joint in sorted(joints, reverse=True):
        while skeleton.kind[joint] == "fixed":
            joint = int(skeleton.parent[joint])
            joints.add(joint)
    return joints


def check_limbs(
    limbs: Sequence[VirtualLimb], skeleton: Skeleton, sensor_names: Sequence[str]
) -> None:
    """Check that all joints and sensors that limbs name exist.

    Raises:
        OptionError: If a joint is not the skeleton's, an aimed limb has no joint to
            point to, or a sensor is not both the skeleton's and the stream's.
    """
    sensors = [name for name in skeleton.sensor_names if name in sensor_names]
    for limb in limbs:
        checks = [("joint", limb.joint, skeleton.names)]
        if limb.constraint == "aimed" or limb.aim_joint:
            checks.append(("aim_joint", limb.aim_joint, skeleton.names))
        if limb.sensor:
            checks.append(("sensor", limb.sensor, tuple(sensors)))
        for field, name, known in checks:
            if name not in known:
                raise OptionError(
                    f"{field} of limb {limb.joint}",
                    found=name,
                    needed=f"one of {', '.join(known)}",
                )


def _make_limb(
    skeleton: Skeleton, joint: int, sensor_of: dict[int, str]
) -> VirtualLimb:
    """Return the rule of one bone."""
    name, sensor = skeleton.names[joint], sensor_of.get(joint, "")
    bone = vrm.without_side(name)
    aim_joint = _next_joint(skeleton, joint, sensor_of)
    if joint > 0 and bone in ORIENTED_BONES and sensor:
        return VirtualLimb(joint=name, constraint="oriented", sensor=sensor)
    if joint > 0 and aim_joint and (not sensor or bone in AIMED_BONES):
        return VirtualLimb(
            joint=name,
            constraint="aimed",
            sensor=sensor,
            aim_joint=aim_joint,
            anchored_at_end=bone in BONES_ANCHORED_AT_END,
            up_offset=UP_OFFSETS.get(bone, 0.0),
        )
    constraint: Constraint = "measured" if sensor else "rigid"
    return VirtualLimb(joint=name, constraint=constraint, sensor=sensor)


def _next_joint(skeleton: Skeleton, joint: int, sensor_of: dict[int, str]) -> str:
    """Return the joint that a bone points to: its moving child, a central one if any.

    The joint must be measured, by its own sensor or by the bone's. Empty if none is.
    """
    rotating = rotating_joints(skeleton)
    children = [
        j
        for j, up in enumerate(skeleton.parent.tolist())
        if up >= 0 and rotating[j] == j and rotating[up] == joint
    ]
    central = [j for j in children if not vrm.side_of(skeleton.names[j])]
    for j in central or (children if len(children) == 1 else []):
        if j in sensor_of or joint in sensor_of:
            return skeleton.names[j]
    return ""


def driving_sensors(
    skeleton: Skeleton, limbs: Sequence[VirtualLimb]
) -> Bool[Array, "joint joint"]:
    """Return whether the pose of joint i depends on the sensor of joint j's limb."""
    limb_of = {skeleton.index(limb.joint): limb for limb in limbs}
    depends = np.zeros((skeleton.n_joints, skeleton.n_joints), dtype=bool)
    for joint, parent in enumerate(skeleton.parent):
        limb = limb_of.get(joint)
        if limb is None or limb.constraint != "measured":
            depends[joint] = depends[parent]
        if limb is None:
            continue
        depends[joint, joint] |= bool(limb.sensor)
        aim = limb_of.get(skeleton.index(limb.aim_joint)) if limb.aim_joint else None
        if aim is not None and aim.sensor:
            depends[joint, skeleton.index(aim.joint)] = True
    return depends


def bend_axis(skeleton: Skeleton, joint: int) -> Float[Array, " 3"]:
    """Return the unit axis about which a joint bends, at rest; NaN if none is known.

    Without an axis of their own, knees and elbows bend as in a T-pose that faces +x.
    """
    axis, name = skeleton.axes[joint, 0], skeleton.names[joint]
    if np.isnan(axis).any() and vrm.without_side(name) in BENDING_BONES:
        axis = human_ranges()[name].axes[0]
    return np.asarray(axis)
