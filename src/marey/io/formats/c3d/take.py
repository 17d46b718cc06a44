"""A C3D file as a recording: markers named and split by subject, in metres, +Z up."""

from collections.abc import Sequence
from functools import partial

import numpy as np
from jaxtyping import Float

from marey.io.contract import File
from marey.io.formats.c3d.computed import CENTRES_OF_MASS, computed_names, segment_axes
from marey.io.formats.c3d.data import read_markers, read_poses, read_sample
from marey.io.formats.c3d.file import (
    C3dContents,
    open_c3d,
    parameters_as_dict,
    read_events,
    read_scaled_analog,
)
from marey.io.formats.c3d.parameters import C3dParameters
from marey.io.formats.c3d.poses_as_points import (
    PosesAsPoints,
    find_poses_as_points,
    note_poses_as_points,
)
from marey.io.units_axes import (
    R_MAREY_FILE,
    metres_per_unit,
    parse_unit,
    points_from_file,
    poses_from_file,
)
from marey.take import Analog, Fact, Take

POSE_SUFFIX = "_4X4"
"""How labels of the ROTATION group end by custom."""

MISSTATED_UP_AXES = {("qualisys", "-z"): "z", ("advanced realtime tracking", "y"): "z"}
"""Exporters whose Y_SCREEN is known not to name the axis that points up."""

_MAX_DISTANCE_M = 100.0
"""Metres from the origin beyond which half the points cannot be."""

_ASSUMED_RATE_HZ = 100.0


def read_take(file: File) -> Take:
    """Return the recording of a C3D file, without what its software computed.

    Segments come as sensors: those of the ROTATION group, then those given as points.

    Raises:
        FormatError: If the file is not a C3D or damaged beyond reading.
    """
    contents = open_c3d(file)
    layout = contents.layout
    seen = read_sample(file.path, layout)
    unit = _unit(file, contents.parameters)
    up = _up(file, contents.parameters, seen)
    rate, rate_fact = _rate(file, layout.rate)
    subjects, labels = _names(file, contents)
    computed = _find_computed(file, contents.parameters, subjects, labels, seen)
    measured = [i for i in range(layout.points) if i not in computed]
    _check_positions(file, seen[:, measured], unit.value, up.value)
    poses_as_points = find_poses_as_points(
        file.path, layout, subjects, labels, computed
    )
    note_poses_as_points(file, poses_as_points, labels, unit.value)
    markers = set(range(layout.points))
    if not file.options.computed:
        markers -= computed | poses_as_points.points
    columns = sorted(markers)
    sensor_names, poses = _sensors(file, contents, poses_as_points, subjects, labels)
    convert = partial(points_from_file, unit=unit.value, up=up.value)
    return Take(
        rate=rate,
        points=read_markers(file.path, layout, columns, convert),
        labels=tuple(labels[i] for i in columns),
        subjects=tuple(subjects[i] for i in columns),
        T_world_sensor=poses_from_file(poses, unit.value, up.value),
        sensor_names=sensor_names,
        start=_start(contents, rate),
        events=read_events(contents),
        analog=_analog(file, contents, rate),
        source=file.source(
            unit=unit,
            up=up,
            rate=rate_fact,
            parameters=parameters_as_dict(contents.parameters),
        ),
    )


def _unit(file: File, parameters: C3dParameters) -> Fact:
    text = "".join(parameters.texts("POINT", "UNITS")[:1])
    stated = parse_unit(text) if text else None
    return file.decide_fact("unit", stated=stated, assumed="mm", note="POINT:UNITS")


def _up(
    file: File, parameters: C3dParameters, seen: Float[np.ndarray, "frame point 3"]
) -> Fact:
    """Return the up axis: Y_SCREEN, except for software that writes it wrongly."""
    x, y = (
        "".join(parameters.texts("POINT", f"{axis}_SCREEN")[:1]).strip().lower()
        for axis in ("X", "Y")
    )
    stated = y.removeprefix("+")
    if stated not in R_MAREY_FILE:
        return file.decide_fact("up", assumed="z", note="POINT:Y_SCREEN")
    if x[-1:] == stated[-1]:
        text = f"X_SCREEN and Y_SCREEN both name the axis {stated[-1]}"
        file.note("up-doubtful", f"{text}; give up= if {stated} is not up")
    manufacturer = "".join(parameters.texts("MANUFACTURER", "COMPANY")[:1]).lower()
    for (maker, wrong), right in MISSTATED_UP_AXES.items():
        sound = stated.startswith("-") and not _is_below(seen, stated)
        if stated != wrong or not manufacturer.startswith(maker) or sound:
            continue
        fact = file.decide_fact(
            "up", stated=right, assumed=right, how="inferred", note=y
        )
        if fact.how != "given":
            text = f"Y_SCREEN says {y}, which this software writes for {right} up"
            file.note("up-misstated", f"{text}: took {right}")
        return fact
    return file.decide_fact("up", stated=stated, assumed="z", note="POINT:Y_SCREEN")


def _is_below(seen: Float[np.ndarray, "frame point 3"], up: str) -> bool:
    """Whether most points lie below the floor when this axis points up."""
    positions = seen[np.isfinite(seen).all(axis=-1)]
    return bool(
        len(positions) and np.median(points_from_file(positions, "m", up)[:, 2]) < 0.0
    )


def _rate(file: File, stated: float) -> tuple[float, Fact]:
    fact = file.decide_fact(
        "rate",
        stated=f"{stated:.10g}" if stated else None,
        assumed=f"{_ASSUMED_RATE_HZ:g}",
        note="POINT:RATE",
    )
    return file.options.rate or stated or _ASSUMED_RATE_HZ, fact


def _start(contents: C3dContents, rate: float) -> float:
    """Return the time of the first frame: frame 1 of a C3D is at 0 s."""
    exact = contents.parameters.exact("START")
    if exact is not None and abs(exact) < 1e9:
        return exact
    return max(contents.layout.first_frame - 1, 0) / rate


def _names(
    file: File, contents: C3dContents
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return one subject and one label per point, each pair unique."""
    prefixes = [
        prefix
        for prefix in contents.parameters.texts("SUBJECTS", "LABEL_PREFIXES")
        if len(prefix) > 1 and prefix.endswith(":")
    ]
    prefixes.sort(key=len, reverse=True)
    given = [_split_subject(label, prefixes) for label in contents.labels]
    names = _make_names_unique(given)
    unnamed = sum(not label for _, label in given)
    renamed = sum(new != old for new, old in zip(names, given, strict=True))
    _note_names(file, unnamed, renamed - unnamed)
    return tuple(s for s, _ in names), tuple(label for _, label in names)


def _make_names_unique(given: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return subject and label of every point, all different and none empty."""
    taken = set(given)
    numbers: dict[tuple[str, str], int] = {}
    names = []
    for i, (subject, label) in enumerate(given):
        name = base = (subject, label or f"*{i + 1}")
        is_free = base not in numbers if label else base not in taken
        numbers.setdefault(base, 1)
        while not is_free:
            numbers[base] += 1
            name = (subject, f"{base[1]}_{numbers[base]}")
            is_free = name not in taken
        taken.add(name)
        names.append(name)
    return names


def _note_names(file: File, unnamed: int, repeated: int) -> None:
    if unnamed:
        file.note(
            "labels-missing",
            f"{unnamed} points have no label: they are named by their number, *1, *2",
            value=float(unnamed),
        )
    if repeated:
        file.note(
            "labels-repeated",
            f"{repeated} labels occur more than once: a number was added to them",
            value=float(repeated),
        )


def _split_subject(name: str, prefixes: Sequence[str]) -> tuple[str, str]:
    """Return subject and label of "JOE:RTHI" or "JOE::RTHI"."""
    for prefix in prefixes:
        if name.startswith(prefix) and len(name) > len(prefix):
            return prefix.rstrip(":"), name[len(prefix) :].lstrip(":")
    subject, _, label = name.rpartition(":")
    subject = subject.rstrip(":")
    return (subject, label) if subject and label else ("", name)


def _find_computed(
    file: File,
    parameters: C3dParameters,
    subjects: tuple[str, ...],
    labels: tuple[str, ...],
    seen: Float[np.ndarray, "frame point 3"],
) -> set[int]:
    """Return the points that were computed, not measured."""
    listed = computed_names(parameters)
    full = [f"{s}:{label}" for s, label in zip(subjects, labels, strict=True)]
    unknown = listed - set(labels) - set(full)
    if unknown:
        file.note(
            "computed-unknown",
            f"{len(unknown)} points listed as computed are not among the labels",
            severity="info",
        )
    listed |= set(CENTRES_OF_MASS)
    computed, partial = segment_axes(subjects, labels, seen)
    if computed and partial:
        file.note(
            "computed-doubtful",
            f"{partial} segments lack the name of one axis point: kept as markers",
        )
    computed |= {
        i for i in range(len(labels)) if labels[i] in listed or full[i] in listed
    }
    if computed and not file.options.computed:
        file.note(
            "computed-left-out",
            f"left out {len(computed)} points that the capture software computed "
            "(angles, forces, segment axes); computed=True keeps them",
            severity="info",
            value=float(len(computed)),
        )
    return computed


def _check_positions(
    file: File, seen: Float[np.ndarray, "frame point 3"], unit: str, up: str
) -> None:
    """Add findings when the points contradict the unit or the up axis."""
    positions = seen[np.isfinite(seen).all(axis=-1)]
    if not len(positions):
        return
    with np.errstate(over="ignore"):
        distance = float(np.median(np.abs(positions).max(axis=-1))) * metres_per_unit(
            unit
        )
    if distance > _MAX_DISTANCE_M:
        text = f"half the points lie over {distance:.3g} m from the origin"
        file.note("place-doubtful", f"{text}: is the unit {unit}?", value=distance)
    if up.startswith("-") and _is_below(seen, up):
        text = f"with {up} up most points lie below the floor"
        file.note("up-doubtful", f"{text}; give up= if that is wrong")


def _analog(file: File, contents: C3dContents, rate: float) -> Analog:
    if not file.options.analog or not contents.layout.channels:
        return Analog()
    labels = contents.channel_texts("LABELS")
    return Analog(
        values=read_scaled_analog(file, contents),
        labels=tuple(name or f"analog{i + 1}" for i, name in enumerate(labels)),
        units=contents.channel_texts("UNITS"),
        rate=rate * contents.layout.samples,
    )


def _sensors(
    file: File,
    contents: C3dContents,
    poses_as_points: PosesAsPoints,
    subjects: tuple[str, ...],
    labels: tuple[str, ...],
) -> tuple[tuple[str, ...], Float[np.ndarray, "frame sensor 4 4"]]:
    """Return names and poses, in the axes of the file, of all that is 6-DoF.

    A segment is named with its subject where the file has several. A segment of
    the ROTATION group is not added again.
    """
    names = [
        name.removesuffix(POSE_SUFFIX) or f"sensor{i + 1}"
        for i, name in enumerate(contents.pose_labels)
    ]
    known = set(names)
    several = len(set(subjects)) > 1
    new = []
    for k, (origin, *_) in enumerate(poses_as_points.axis_points):
        label = labels[origin]
        full = f"{subjects[origin]}:{label}" if subjects[origin] else label
        if not known & {label, full}:
            new.append(k)
            names.append(full if several else label)
    if not known:
        return tuple(names), poses_as_points.T_world_segment
    poses = read_poses(file.path, contents.layout)
    poses = np.concatenate([poses, poses_as_points.T_world_segment[:, new]], axis=1)
    return tuple(names), poses
