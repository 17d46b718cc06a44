"""Removal of sensors without data of their own: never seen, copies, or the world."""

from collections.abc import Mapping, Sequence

import numpy as np

from marey.anatomy.names import without_subject
from marey.cleaning.repairs import record_repair, repair_warning
from marey.report import Finding, mark_name
from marey.take import Take


def drop_unused_sensors(takes: Sequence[Take]) -> tuple[Take, ...]:
    """Return the recordings without sensors that have no data of their own.

    A sensor that no take shows has no pose to fit a bone to. A sensor whose poses equal
    those of another one bit by bit, in every take, is a second name of the same data.
    One that is called the world and never leaves its origin (the "worldbody" of
    Theia3D) is no part of a figure. Each removed sensor is a finding in the takes that
    list it. If no take shows any sensor, the takes are returned unchanged.

    Args:
        takes: All recordings of one subject.
    """
    unused = _find_unused_sensors(takes)
    return tuple(_drop(take, unused) for take in takes)


def _find_unused_sensors(takes: Sequence[Take]) -> dict[str, Finding]:
    """Return a finding for each sensor without data of its own, by its name."""
    names = dict.fromkeys(name for take in takes for name in take.sensor_names)
    poses = {name: tuple(_pose_bytes(take, name) for take in takes) for name in names}
    findings, first_with_poses = {}, dict[tuple[bytes, ...], str]()
    for name in names:
        original = first_with_poses.setdefault(poses[name], name)
        if not any(poses[name]):
            findings[name] = repair_warning(
                "sensor-unseen", "never seen: left out", name
            )
        elif original != name:
            message = f"always at the pose of {mark_name(original)}: left out"
            findings[name] = repair_warning("sensor-repeated", message, name)
        elif all(_is_world(take, name) for take in takes):
            message = "is the origin of the world, no segment: left out"
            findings[name] = Finding("sensor-world", "clean", "info", message, name)
    return findings if any(map(any, poses.values())) else {}


def _pose_bytes(take: Take, name: str) -> bytes:
    """Return the poses of a sensor as bytes; empty if it is never seen."""
    if name not in take.sensor_names:
        return b""
    column = take.sensor_names.index(name)
    seen = take.sensor_seen[:, column]
    return take.T_world_sensor[:, column].tobytes() if seen.any() else b""


def _is_world(take: Take, name: str) -> bool:
    """Return whether a sensor is called the world and is always at its origin."""
    if "world" not in without_subject(name).lower():
        return False
    if name not in take.sensor_names:
        return True
    column = take.sensor_names.index(name)
    seen = take.sensor_seen[:, column]
    return bool(np.all(take.T_world_sensor[seen, column] == np.eye(4)))


def _drop(take: Take, unused: Mapping[str, Finding]) -> Take:
    """Return the take without the sensors in `unused`."""
    dropped = [name for name in take.sensor_names if name in unused]
    if not dropped:
        return take
    kept = [i for i, name in enumerate(take.sensor_names) if name not in unused]
    return record_repair(
        take,
        [unused[name] for name in dropped],
        [f"left out sensors {', '.join(dropped)}"],
        T_world_sensor=take.T_world_sensor[:, kept],
        sensor_names=tuple(take.sensor_names[i] for i in kept),
    )
