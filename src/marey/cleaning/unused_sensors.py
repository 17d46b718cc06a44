"""Sensors that tell nothing: never seen, or always where another one is."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from marey.report import Finding, mark_name
from marey.take import Take


def without_idle(takes: Sequence[Take]) -> tuple[Take, ...]:
    """Return recordings without the sensors that tell nothing in any of them.

    One that no take shows has no pose to hang a bone from. One whose poses are another
    one's, to the bit and in every take, is the same stream under a second name. Each is
    a finding in the takes that name it. Takes that show no sensor are returned as they
    are.

    Args:
        takes: All recordings of one subject.
    """
    idle = dict(_idle(takes))
    return tuple(_without(take, idle) for take in takes) if idle else tuple(takes)


def _idle(takes: Sequence[Take]) -> list[tuple[str, Finding]]:
    """Return the sensors that tell nothing, and why."""
    names = dict.fromkeys(name for take in takes for name in take.sensor_names)
    streams = {name: tuple(_stream(take, name) for take in takes) for name in names}
    shown = [name for name, stream in streams.items() if any(stream)]
    if not shown:
        return []
    first = {streams[name]: name for name in reversed(shown)}
    unseen = [
        (name, _finding("sensor-unseen", "never seen", name))
        for name in names
        if name not in shown
    ]
    repeated = [
        (name, _finding("sensor-repeated", f"always where {mark_name(other)} is", name))
        for name in shown
        if (other := first[streams[name]]) != name
    ]
    return unseen + repeated


def _stream(take: Take, name: str) -> bytes:
    """Return the poses of a sensor; nothing where it is never seen."""
    if name not in take.sensor_names:
        return b""
    column = take.sensor_names.index(name)
    seen = take.sensor_seen[:, column]
    return take.T_world_sensor[:, column].tobytes() if seen.any() else b""


def _finding(code: str, why: str, name: str) -> Finding:
    return Finding(code, "clean", "warning", f"{why}: left out", name)


def _without(take: Take, idle: Mapping[str, Finding]) -> Take:
    gone = [name for name in take.sensor_names if name in idle]
    if not gone:
        return take
    kept = [i for i, name in enumerate(take.sensor_names) if name not in idle]
    found = tuple(idle[name] for name in gone)
    return replace(
        take,
        T_world_sensor=take.T_world_sensor[:, kept],
        sensor_names=tuple(take.sensor_names[i] for i in kept),
        source=replace(take.source, findings=(*take.source.findings, *found)),
        history=(*take.history, f"left out sensors {', '.join(gone)}"),
    )
