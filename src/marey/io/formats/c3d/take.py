"""A C3D file as a recording: markers named and split by subject, in metres, +Z up."""

from collections.abc import Sequence

import numpy as np

from marey.anatomy.names import split_subject
from marey.io.file import Facts, File
from marey.io.formats.c3d import computed as computing
from marey.io.formats.c3d import data
from marey.io.formats.c3d import file as files
from marey.io.formats.c3d.computed import PointName, PosesAsPoints
from marey.io.formats.c3d.file import C3dContents
from marey.io.formats.c3d.parameters import C3dParameters
from marey.io.units_axes import metres_per_unit, parse_unit, points_from_file
from marey.numerics import Float
from marey.numerics.geometry import R_Z_UP
from marey.take import Analog, Fact, Take

POSE_SUFFIX = "_4X4"
"""How labels of the ROTATION group end by custom."""

MISSTATED_UP_AXES = {("qualisys", "-z"): "z", ("advanced realtime tracking", "y"): "z"}
"""Exporters whose Y_SCREEN is known not to name the axis that points up."""

_MAX_DISTANCE_M = 100.0
"""Metres from the origin beyond which half the points cannot be."""

MAX_START_S = 1e9
"""Largest start time in seconds; larger ones are damage."""


def read_take(file: File) -> Take:
    """Return the recording of a C3D file, without what its software computed.

    Segments come as sensors: those of the ROTATION group, then those given as points.

    Raises:
        FormatError: If the file is not a C3D or damaged beyond reading.
    """
    contents = files.open_c3d(file)
    layout, parameters = contents.layout, contents.parameters
    seen = data.read_sample(file.path, layout)
    facts = _decide_facts(file, contents, seen)
    # The fact is rounded.
    exact = file.options.rate or layout.rate or facts.hertz
    given = _given_names(contents)
    names = _names(file, given)
    computed = _find_computed(file, parameters, given, names, seen)
    measured = [i for i in range(layout.points) if i not in computed]
    _check_positions(file, seen[:, measured], facts)
    poses = computing.find_poses_as_points(file.path, layout, names, computed)
    computing.note_poses_as_points(file, poses, names, facts.unit.value)
    markers = set(range(layout.points))
    if not file.options.computed:
        markers -= computed | poses.points
    columns = sorted(markers)
    sensor_names, T = _sensors(file, contents, poses, names)
    points, at_origin = data.read_markers(file.path, layout, columns, facts.points)
    file.note_count(
        "points-zero",
        at_origin,
        "{} positions are exactly zero: taken as not seen",
        severity="info",
    )
    return Take(
        rate=exact,
        points=points,
        labels=tuple(names[i][1] for i in columns),
        subjects=tuple(names[i][0] for i in columns),
        T_world_sensor=facts.poses(T),
        sensor_names=sensor_names,
        start=_start(contents, exact),
        events=files.read_events(file, contents),
        analog=_analog(file, contents, exact),
        computed=computing.read_quantities(file.path, layout, parameters, names),
        source=file.source(facts, parameters.to_plain()),
    )


def _decide_facts(
    file: File, contents: C3dContents, seen: Float[np.ndarray, "frame point 3"]
) -> Facts:
    """Return unit, up axis and rate of the file."""
    parameters, hertz = contents.parameters, contents.layout.rate
    unit = parse_unit(parameters.text("POINT", "UNITS"))
    rate = f"{hertz:.10g}" if hertz else None
    return Facts(
        file.decide_fact("unit", stated=unit, assumed="mm", note="POINT:UNITS"),
        _up(file, parameters, seen),
        file.decide_fact("rate", stated=rate, assumed="100", note="POINT:RATE"),
    )


def _up(
    file: File, parameters: C3dParameters, seen: Float[np.ndarray, "frame point 3"]
) -> Fact:
    """Return the up axis: Y_SCREEN, except for software that writes it wrongly."""
    x, y = (
        parameters.text("POINT", f"{axis}_SCREEN").strip().lower()
        for axis in ("X", "Y")
    )
    stated = y.removeprefix("+")
    if stated not in R_Z_UP:
        return file.decide_fact("up", assumed="z", note="POINT:Y_SCREEN")
    if x[-1:] == stated[-1]:
        text = f"X_SCREEN and Y_SCREEN both name the axis {stated[-1]}"
        file.note("up-doubtful", f"{text}; give up= if {stated} is not up")
    manufacturer = parameters.text("MANUFACTURER", "COMPANY").lower()
    for (maker, wrong), right in MISSTATED_UP_AXES.items():
        sound = stated.startswith("-") and not _is_below(seen, stated)
        if stated != wrong or not manufacturer.startswith(maker) or sound:
            continue
        fact = file.decide_fact(
            "up", stated=right, assumed=right, how="inferred", note=y
        )
        if fact.how != "given":
            text = f"Y_SCREEN says {y}, which this software writes for {right} up"
            file.note("up-misstated", f"{text}: {right} is used")
        return fact
    return file.decide_fact("up", stated=stated, assumed="z", note="POINT:Y_SCREEN")


def _is_below(seen: Float[np.ndarray, "frame point 3"], up: str) -> bool:
    """Whether most points lie below the floor when this axis points up."""
    positions = seen[np.isfinite(seen).all(axis=-1)]
    return bool(
        len(positions) and np.median(points_from_file(positions, "m", up)[:, 2]) < 0.0
    )


def _start(contents: C3dContents, rate: float) -> float:
    """Return the time of the first frame: frame 1 of a C3D is at 0 s."""
    exact = contents.parameters.exact("START")
    if exact is not None and abs(exact) < MAX_START_S:
        return exact
    return max(contents.layout.first_frame - 1, 0) / rate


def _given_names(contents: C3dContents) -> list[PointName]:
    """Return the subject and the label of each point as the file has them."""
    prefixes = [
        prefix
        for prefix in contents.parameters.texts("SUBJECTS", "LABEL_PREFIXES")
        if len(prefix) > 1 and prefix.endswith(":")
    ]
    prefixes.sort(key=len, reverse=True)
    return [_split_subject(label, prefixes) for label in contents.labels]


def _names(file: File, given: Sequence[PointName]) -> list[PointName]:
    """Return one subject and one label per point, each pair unique."""
    names = _make_names_unique(given)
    unnamed = sum(not label for _, label in given)
    changed = sum(new != old for new, old in zip(names, given, strict=True))
    file.note_count(
        "labels-missing",
        unnamed,
        "{} points have no label: they are named by their number, *1, *2",
    )
    file.note_count(
        "labels-repeated",
        changed - unnamed,
        "{} labels occur more than once: a number was added to them",
    )
    return names


def _make_names_unique(given: Sequence[PointName]) -> list[PointName]:
    """Return subject and label of every point, all different and none empty."""
    taken = set(given)
    numbers: dict[PointName, int] = {}
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


def _split_subject(name: str, prefixes: Sequence[str]) -> PointName:
    """Return subject and label of "JOE:RTHI" or "JOE::RTHI"."""
    for prefix in prefixes:
        if name.startswith(prefix) and len(name) > len(prefix):
            return prefix.rstrip(":"), name[len(prefix) :].lstrip(":")
    subject, label = split_subject(name)
    subject = subject.rstrip(":")
    return (subject, label) if subject else ("", name)


def _find_computed(
    file: File,
    parameters: C3dParameters,
    given: Sequence[PointName],
    names: Sequence[PointName],
    seen: Float[np.ndarray, "frame point 3"],
) -> set[int]:
    """Return the points that were computed, not measured.

    A point whose label occurs more than once is computed if one of them is: programs
    that add points to a file write the others again.
    """
    listed = computing.computed_names(parameters)
    known = [{label, f"{subject}:{label}"} for subject, label in given]
    unknown = listed.difference(*known)
    if unknown:
        file.note(
            "computed-unknown",
            f"listed as computed, but not among the labels: {len(unknown)}, such as "
            f"{min(unknown)}",
            severity="info",
        )
    computed, partial = computing.segment_axes(names, seen)
    if computed and partial:
        file.note(
            "computed-doubtful",
            f"{partial} segments lack the name of one axis point: kept as markers",
        )
    listed |= set(computing.CENTRES_OF_MASS)
    computed |= {i for i, both in enumerate(known) if both & listed}
    repeated = {given[i] for i in computed if given[i][1]}
    computed |= {i for i, name in enumerate(given) if name in repeated}
    if not file.options.computed:
        file.note_count(
            "computed-left-out",
            len(computed),
            "left out {} points that the capture software computed (angles, forces, "
            "segment axes); computed=True keeps them",
            severity="info",
        )
    return computed


def _check_positions(
    file: File, seen: Float[np.ndarray, "frame point 3"], facts: Facts
) -> None:
    """Add findings when the points contradict the unit or the up axis."""
    unit, up = facts.unit.value, facts.up.value
    positions = seen[np.isfinite(seen).all(axis=-1)]
    if not len(positions):
        return
    with np.errstate(over="ignore"):
        distance = float(np.median(np.abs(positions).max(axis=-1)))
        distance *= metres_per_unit(unit)
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
        values=files.read_scaled_analog(file, contents),
        labels=tuple(name or f"analog{i + 1}" for i, name in enumerate(labels)),
        units=contents.channel_texts("UNITS"),
        rate=rate * contents.layout.samples,
    )


def _sensors(
    file: File, contents: C3dContents, poses: PosesAsPoints, names: Sequence[PointName]
) -> tuple[tuple[str, ...], Float[np.ndarray, "frame sensor 4 4"]]:
    """Return names and poses, in the axes of the file, of all that is 6-DoF.

    A segment is named with its subject where the file has several. A segment of
    the ROTATION group is not added again.
    """
    sensors = [
        name.removesuffix(POSE_SUFFIX) or f"sensor{i + 1}"
        for i, name in enumerate(contents.pose_labels)
    ]
    known = set(sensors)
    several = len({subject for subject, _ in names}) > 1
    new = []
    for k, (origin, *_) in enumerate(poses.axis_points):
        subject, label = names[origin]
        full = f"{subject}:{label}" if subject else label
        if not known & {label, full}:
            new.append(k)
            sensors.append(full if several else label)
    T = poses.T_world_segment
    if known:
        recorded = data.read_poses(file.path, contents.layout)
        T = np.concatenate([recorded, T[:, new]], axis=1)
    return tuple(sensors), T
