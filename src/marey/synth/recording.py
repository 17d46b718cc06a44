"""Recordings of figures: markers, sensors and corruption, together with the truth."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from marey.motion import Motion
from marey.numerics import geometry
from marey.synth.corruption import corrupt
from marey.synth.corruption.options import Corruption, merge_options
from marey.synth.corruption.state import CorruptionState
from marey.synth.figures.figure import Figure
from marey.synth.markers import place_markers, place_sensors
from marey.synth.truth import Link, Recording, Truth
from marey.take import Fact, Source

Sensors = bool | str | tuple[str, ...]
ORIGIN = "synthetic"


def record(
    figure: Figure,
    motion: str = "",
    *,
    seconds: float | None = None,
    rate: float = 120.0,
    markers: str | int | None = None,
    sensors: Sensors = False,
    labels: bool = True,
    seed: int = 0,
    subject: str = "",
    corruption: Corruption | None = None,
    **options: Any,
) -> Recording:
    """Return a recording of one figure, with its truth.

    Args:
        figure: The figure that is recorded.
        motion: Name of the motion. Default: the first of `figure.motions`.
        seconds: Length. Default: 30 s for "exercise", 10 s for other motions.
        rate: Frames per second.
        markers: A marker set or a number per body; see `marey.synth.place_markers`.
        sensors: True or "all" for a 6-DoF sensor on every body, or joint names.
        labels: False for anonymous markers and sensors in shuffled order.
        seed: Seed of the performance, the marker placement and the corruption.
        subject: Name of the subject; the labels carry it.
        corruption: The errors to add. Default: none.
        **options: Single options of `Corruption`, such as noise=1e-3.

    Raises:
        OptionError: If an option is unknown or out of range.
    """
    performance = figure.perform(motion, seconds=seconds, rate=rate, seed=seed)
    return capture(
        (figure,),
        (performance,),
        names=(subject,),
        markers=markers,
        sensors=sensors,
        labels=labels,
        seed=seed,
        corruption=merge_options(corruption, options),
    )


def capture(
    figures: Sequence[Figure],
    motions: Sequence[Motion],
    *,
    names: Sequence[str],
    markers: str | int | None = None,
    sensors: Sensors = False,
    labels: bool = True,
    seed: int = 0,
    corruption: Corruption | None = None,
    links: tuple[Link, ...] = (),
) -> Recording:
    """Return one recording of several figures in one volume.

    Args:
        figures: The figures in the volume.
        motions: The motion of each figure, all with the same rate and length.
        names: The subjects' names.
        markers: As in `record`. A figure that lacks the marker set gets 6 per body.
        sensors: As in `record`.
        labels: As in `record`.
        seed: Seed of the marker placement and the corruption.
        corruption: The errors to add. Default: none.
        links: Holds between bodies of different figures.
    """
    options = Corruption() if corruption is None else corruption
    columns = _place_items(figures, motions, markers, sensors, seed)
    _add_phantoms(columns, options.phantoms, motions[0].n_frames)
    truth = Truth(
        figures=tuple(figures),
        motions=tuple(motions),
        names=tuple(names),
        links=links,
        **_join_figures(columns),
    )
    if not labels:
        truth = _shuffle(truth, np.random.default_rng([seed, 11]))
    state = CorruptionState(
        truth=truth,
        points=truth.points.copy(),
        T_world_sensor=truth.T_world_sensor.copy(),
        rate=motions[0].rate,
        options=options,
        seed=seed,
    )
    corrupt(state)
    return Recording(
        rate=motions[0].rate,
        points=state.points,
        T_world_sensor=state.T_world_sensor,
        source=_source(motions[0].rate),
        history=tuple(dict.fromkeys(f"corrupted: {c.kind}" for c in state.log)),
        truth=replace(truth, log=tuple(state.log)),
        **_names(truth, labels),
    )


_ANY_FIGURE_SETS = (None, "dense110", "mesh", "none")
"""Marker sets that every figure has."""

Columns = dict[str, list[Any]]


def _place_items(
    figures: Sequence[Figure],
    motions: Sequence[Motion],
    markers: str | int | None,
    sensors: Sensors,
    seed: int,
) -> Columns:
    """Return the array fields of `Truth`, as one part per figure."""
    columns: Columns = defaultdict(list)
    for i, (figure, motion) in enumerate(zip(figures, motions, strict=True)):
        rng, sensor_rng = (np.random.default_rng([seed, k, i]) for k in (12, 13))
        any_figure = markers in _ANY_FIGURE_SETS or isinstance(markers, int)
        has_set = any_figure or len(figures) == 1 or markers in figure.marker_sets
        placement = place_markers(figure, markers if has_set else None, rng)
        joint, T_body_sensor = place_sensors(figure, sensors, sensor_rng)
        T = motion.T_world_joint()
        points = geometry.apply(T[:, placement.joint], placement.offset)
        columns["points"].append(points)
        columns["marker_labels"] += placement.labels
        columns["marker_subject"].append(np.full(len(placement.labels), i))
        columns["marker_joint"].append(placement.joint)
        columns["marker_offset"].append(placement.offset)
        columns["T_world_sensor"].append(T[:, joint] @ T_body_sensor)
        columns["sensor_subject"].append(np.full(len(joint), i))
        columns["sensor_joint"].append(joint)
        columns["T_body_sensor"].append(T_body_sensor)
    return columns


_PER_FRAME = ("points", "T_world_sensor")
"""Fields of `Truth` whose first axis is the frame; their second axis is the item."""


def _join_figures(columns: Columns) -> dict[str, Any]:
    """Return the array fields of `Truth`, with all figures concatenated."""
    labels = tuple(columns.pop("marker_labels"))
    arrays = {
        name: np.concatenate(parts, axis=1 if name in _PER_FRAME else 0)
        for name, parts in columns.items()
    }
    return {"marker_labels": labels, **arrays}


def _add_phantoms(columns: Columns, count: int, n_frames: int) -> None:
    """Append phantom markers, which have no body and no true position."""
    none = np.full(count, -1)
    columns["points"].append(np.full((n_frames, count, 3), np.nan))
    columns["marker_labels"] += [""] * count
    columns["marker_subject"].append(none)
    columns["marker_joint"].append(none)
    columns["marker_offset"].append(np.full((count, 3), np.nan))


def _shuffle(truth: Truth, rng: np.random.Generator) -> Truth:
    """Return the truth with markers and sensors in random order."""
    truth = truth.select(rng.permutation(len(truth.marker_labels)).tolist())
    order = rng.permutation(len(truth.sensor_joint))
    return replace(
        truth,
        T_world_sensor=truth.T_world_sensor[:, order],
        sensor_subject=truth.sensor_subject[order],
        sensor_joint=truth.sensor_joint[order],
        T_body_sensor=truth.T_body_sensor[order],
    )


def _names(truth: Truth, named: bool) -> dict[str, Any]:
    """Return labels and subjects of markers, and names of sensors.

    Phantoms are "*0", "*1", ...; without names, markers and sensors have numbers.
    """
    n_markers, n_sensors = len(truth.marker_labels), len(truth.sensor_joint)
    if not named:
        return {
            "labels": tuple(f"M{i:03d}" for i in range(n_markers)),
            "subjects": ("",) * n_markers,
            "sensor_names": tuple(f"S{i:02d}" for i in range(n_sensors)),
        }
    count = iter(range(n_markers))
    names = []
    for subject, joint in zip(truth.sensor_subject, truth.sensor_joint, strict=True):
        owner, name = truth.names[subject], truth.figures[subject].skeleton.names[joint]
        names.append(f"{owner}:{name}" if owner else name)
    return {
        "labels": tuple(label or f"*{next(count)}" for label in truth.marker_labels),
        "subjects": tuple(
            truth.names[i] if i >= 0 else "" for i in truth.marker_subject
        ),
        "sensor_names": tuple(names),
    }


def _source(rate: float) -> Source:
    unit, up, hertz = (Fact(v, "stated", ORIGIN) for v in ("m", "z", f"{rate:g}"))
    return Source(format=ORIGIN, unit=unit, up=up, rate=hertz)
