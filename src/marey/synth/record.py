"""Recordings of figures: markers, sensors and corruption, with the truth kept."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from marey.motion import Motion
from marey.numerics import geometry
from marey.synth.corruption.options import Corruption, corruption_of
from marey.synth.corruption.order import corrupt
from marey.synth.corruption.state import Work
from marey.synth.figures.figure import Figure
from marey.synth.markers import place_markers, place_sensors
from marey.synth.truth import Link, Recording, Truth
from marey.take import Fact, Source

Sensors = bool | str | tuple[str, ...]


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
        figure: Who is recorded.
        motion: What it performs; its usual motion when left out.
        seconds: Length; what suits the motion when left out.
        rate: Frames per second.
        markers: A marker set or a number per body; see `marey.synth.place_markers`.
        sensors: True or "all" for a 6-DoF sensor on every body, or joint names.
        labels: False for anonymous markers and sensors in shuffled order.
        seed: Draws performance, placement and corruption.
        subject: The subject's name, put on the labels.
        corruption: What goes wrong.
        **options: Single options of `Corruption`, such as noise=1e-3.

    Raises:
        OptionError: If an option is unknown or out of range.
    """
    performed = figure.perform(motion, seconds=seconds, rate=rate, seed=seed)
    return capture(
        (figure,),
        (performed,),
        names=(subject,),
        markers=markers,
        sensors=sensors,
        labels=labels,
        seed=seed,
        corruption=corruption_of(corruption, options),
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
        figures: Who is there.
        motions: What each does; all of one rate and length.
        names: The subjects' names.
        markers: As in `record`; a set a figure does not have gives it 6 per body.
        sensors: As in `record`.
        labels: As in `record`.
        seed: Draws placement and corruption.
        corruption: What goes wrong.
        links: Bodies of different figures that hold together for a while.
    """
    options = Corruption() if corruption is None else corruption
    truth = _truth(figures, motions, names, markers, sensors, seed, options.phantoms)
    truth = replace(truth, links=links)
    if not labels:
        truth = _shuffled(truth, np.random.default_rng([seed, 11]))
    work = Work(
        truth=truth,
        points=truth.points.copy(),
        T=truth.T_world_sensor.copy(),
        rate=motions[0].rate,
        options=options,
        seed=seed,
    )
    corrupt(work)
    return Recording(
        rate=motions[0].rate,
        points=work.points,
        labels=_labels(truth, labels),
        subjects=_subjects(truth, labels),
        T_world_sensor=work.T,
        sensor_names=_sensor_names(truth, labels),
        source=_source(motions[0].rate),
        history=tuple(dict.fromkeys(f"corrupted: {c.kind}" for c in work.log)),
        truth=replace(truth, log=tuple(work.log)),
    )


def _truth(
    figures: Sequence[Figure],
    motions: Sequence[Motion],
    names: Sequence[str],
    markers: str | int | None,
    sensors: Sensors,
    seed: int,
    phantoms: int,
) -> Truth:
    columns: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
    for i, (figure, motion) in enumerate(zip(figures, motions, strict=True)):
        rng, sensor_rng = (np.random.default_rng([seed, k, i]) for k in (12, 13))
        known = len(figures) == 1 or markers in _ANYONE or isinstance(markers, int)
        usual = known or markers in figure.marker_sets
        placed = place_markers(figure, markers if usual else None, rng)
        joint, T_body_sensor = place_sensors(figure, sensors, sensor_rng)
        T = motion.T_world_joint()
        columns["points"].append(geometry.apply(T[:, placed.joint], placed.offset))
        columns["labels"] += placed.labels
        columns["marker_subject"].append(np.full(len(placed.labels), i))
        columns["marker_joint"].append(placed.joint)
        columns["marker_offset"].append(placed.offset)
        columns["T_world_sensor"].append(T[:, joint] @ T_body_sensor)
        columns["sensor_subject"].append(np.full(len(joint), i))
        columns["sensor_joint"].append(joint)
        columns["T_body_sensor"].append(T_body_sensor)
    _add_phantoms(columns, phantoms, motions[0].n_frames)
    return Truth(
        figures=tuple(figures),
        motions=tuple(motions),
        names=tuple(names),
        points=np.concatenate(columns["points"], axis=1),
        marker_labels=tuple(columns["labels"]),
        marker_subject=np.concatenate(columns["marker_subject"]),
        marker_joint=np.concatenate(columns["marker_joint"]),
        marker_offset=np.concatenate(columns["marker_offset"]),
        T_world_sensor=np.concatenate(columns["T_world_sensor"], axis=1),
        sensor_subject=np.concatenate(columns["sensor_subject"]),
        sensor_joint=np.concatenate(columns["sensor_joint"]),
        T_body_sensor=np.concatenate(columns["T_body_sensor"]),
    )


_ANYONE = (None, "dense110", "mesh", "none")
_COLUMNS = (
    "points",
    "labels",
    "marker_subject",
    "marker_joint",
    "marker_offset",
    "T_world_sensor",
    "sensor_subject",
    "sensor_joint",
    "T_body_sensor",
)


def _add_phantoms(columns: dict[str, list[Any]], count: int, n_frames: int) -> None:
    none = np.full(count, -1)
    columns["points"].append(np.full((n_frames, count, 3), np.nan))
    columns["labels"] += [""] * count
    columns["marker_subject"].append(none)
    columns["marker_joint"].append(none)
    columns["marker_offset"].append(np.full((count, 3), np.nan))


def _shuffled(truth: Truth, rng: np.random.Generator) -> Truth:
    truth = truth.select(rng.permutation(len(truth.marker_labels)).tolist())
    order = rng.permutation(len(truth.sensor_joint))
    return replace(
        truth,
        T_world_sensor=truth.T_world_sensor[:, order],
        sensor_subject=truth.sensor_subject[order],
        sensor_joint=truth.sensor_joint[order],
        T_body_sensor=truth.T_body_sensor[order],
    )


def _labels(truth: Truth, real: bool) -> tuple[str, ...]:
    """Return the labels as a studio would have them: phantoms are "*0", "*1", ..."""
    if not real:
        return tuple(f"M{i:03d}" for i in range(len(truth.marker_labels)))
    count = iter(range(len(truth.marker_labels)))
    return tuple(label or f"*{next(count)}" for label in truth.marker_labels)


def _subjects(truth: Truth, real: bool) -> tuple[str, ...]:
    if not real:
        return ("",) * len(truth.marker_labels)
    return tuple(truth.names[i] if i >= 0 else "" for i in truth.marker_subject)


def _sensor_names(truth: Truth, real: bool) -> tuple[str, ...]:
    if not real:
        return tuple(f"S{i:02d}" for i in range(len(truth.sensor_joint)))
    names = []
    for subject, joint in zip(truth.sensor_subject, truth.sensor_joint, strict=True):
        owner, name = truth.names[subject], truth.figures[subject].skeleton.names[joint]
        names.append(f"{owner}:{name}" if owner else name)
    return tuple(names)


def _source(rate: float) -> Source:
    made = "synthetic"
    return Source(
        format=made,
        unit=Fact("m", "stated", made),
        up=Fact("z", "stated", made),
        rate=Fact(f"{rate:g}", "stated", made),
    )
