"""Stages 1 and 2: recordings to takes, and takes without the errors they show alone."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from os import PathLike

import numpy as np

from marey.anatomy import names as vrm
from marey.cleaning import (
    Person,
    axis_of_people,
    check_flatness,
    check_takes,
    clean,
    correct_unit,
    correct_up,
    drop_unused_sensors,
    find_stopped_sensors,
    find_swaps_between_takes,
    mask_outliers,
    mask_placeholders,
    mask_unsure,
    report_lost_frames,
    rescale,
    undo_swaps_between_takes,
)
from marey.errors import DataError, OptionError, check_choice
from marey.io import read
from marey.io.text.names import make_unique
from marey.joints import rigid_pair
from marey.motion import ROTATION_ROUNDING
from marey.numerics import Float, geometry
from marey.numerics.procrustes import points_seen
from marey.numerics.thresholds import (
    FRAMES_PER_CHUNK,
    MAX_NON_ROTATION,
    MIN_DETERMINANT,
)
from marey.pipeline.options import SolveOptions
from marey.pipeline.stages.common_labels import unite_labels
from marey.report import Finding
from marey.rig.ground import stands_on_zero
from marey.segmentation import (
    TimeOffset,
    estimate_time_offset,
    segment,
    synchronise_sensors,
)
from marey.segmentation.labels.joint_names import standing_points
from marey.segmentation.labels.match import match_subjects
from marey.segmentation.methods.sensors import recognise_program
from marey.take import Take

TRUNK = {vrm.HIPS, vrm.CHEST}
"""Bodies of which a person has one at least; a hand has none."""

UPPER, LOWER = (vrm.HIPS, vrm.SPINE, vrm.CHEST), (vrm.LOWER_LEG, vrm.FOOT)
"""Bodies that are above and below in a person who stands or sits."""

Recording = str | PathLike[str] | Take
"""A take, or the file that holds it."""


def read_takes(
    recordings: Recording | Sequence[Recording], subject: str
) -> tuple[Take, ...]:
    """Return the takes of recordings, with the markers of one subject only.

    If no take names more than one subject, `subject` is only a label for the result.

    Raises:
        DataError: If there are none.
        OptionError: If a take names several subjects but not this one, or only another
            one although some other take names this one.
        FormatError: If a file cannot be read.
    """
    is_single = isinstance(recordings, str | PathLike | Take)
    if not is_single and not isinstance(recordings, Iterable):
        kind = type(recordings).__name__
        raise DataError("solve", found=kind, needed="files or takes")
    several = (recordings,) if is_single else tuple(recordings)  # type: ignore[arg-type]
    if not several:
        raise DataError("solve", found="no recordings", needed="at least one")
    takes = tuple(r if isinstance(r, Take) else read(r) for r in several)  # type: ignore[arg-type]
    takes = unite_labels(tuple(map(_check_take, takes)), subject)
    if not subject:
        return takes
    is_named = any(subject in take.subjects for take in takes)
    return tuple(_select_subject(take, subject, is_named=is_named) for take in takes)


def _check_take(take: Take) -> Take:
    """Return a take that can be solved, with unique names of markers and sensors.

    Raises:
        DataError: If it has no frames, nothing that has a position, all its positions
            are one, or its sensors have no orientations.
    """
    name = take.source.path or "take"
    if not (take.labels or take.sensor_names):
        needed = "positions; analog channels and angles alone show no skeleton"
        raise DataError(name, found="neither markers nor sensors", needed=needed)
    if not take.n_frames:
        raise DataError(name, found="0 frames", needed="at least 1")
    if _are_one(take.positions):
        needed = "markers or sensors in different positions; check the columns"
        raise DataError(name, found="all in one position", needed=needed)
    R = take.T_world_sensor[take.sensor_seen][:, :3, :3]
    if take.sensor_names and not (len(R) or take.labels):
        needed = "poses; marey cannot solve orientations alone"
        raise DataError(name, found="sensors without positions", needed=needed)
    if len(R) and np.median(np.abs(np.linalg.det(R))) < MIN_DETERMINANT:
        needed = "rotation matrices; integers cannot hold them"
        raise DataError(name, found="sensors without orientations", needed=needed)
    take = _round_to_rotations(take)
    labels, sensors = make_unique(take.full_labels), make_unique(take.sensor_names)
    if (labels, sensors) == (take.full_labels, take.sensor_names):
        return take
    before = (*take.full_labels, *take.sensor_names)
    pairs = zip(before, (*labels, *sensors), strict=True)
    changed = [new for old, new in pairs if new != old]
    message = (
        f"{len(changed)} markers or sensors share a name with another: renamed, such "
        f"as {changed[0]}; give each its own"
    )
    count = float(len(changed))
    finding = Finding("labels-repeated", "read", "error", message, value=count)
    bare = tuple(map(vrm.without_subject, labels))
    take = replace(take, labels=bare, sensor_names=sensors)
    return take.with_findings(finding)


def _round_to_rotations(take: Take) -> Take:
    """Return the take with the nearest rotations of orientations with few digits.

    Those that scale or shear on average are left as they are, and reported later.
    """
    R = take.T_world_sensor[..., :3, :3]
    excess = np.nan_to_num(np.swapaxes(R, -1, -2) @ R - np.eye(3))
    deviation = np.abs(excess).max(axis=(0, 2, 3), initial=0.0)
    is_sheared = np.abs(excess.mean(axis=0)).max(axis=(1, 2)) > MAX_NON_ROTATION
    rounded = np.flatnonzero((deviation > ROTATION_ROUNDING) & ~is_sheared)
    if not len(rounded):
        return take
    T_world_sensor = take.T_world_sensor.copy()
    T_world_sensor[:, rounded, :3, :3] = geometry.nearest_rotation(R[:, rounded])
    return replace(take, T_world_sensor=T_world_sensor)


def _are_one(positions: Float[np.ndarray, "frame item 3"]) -> bool:
    """Return whether several items are always in the same position."""
    shown = points_seen(positions)
    several = np.flatnonzero(shown.sum(axis=1) > 1)
    for first in range(0, len(several), FRAMES_PER_CHUNK):
        frames = several[first : first + FRAMES_PER_CHUNK]
        seen, some = shown[frames, :, None], positions[frames]
        high = np.where(seen, some, -np.inf).max(axis=1)
        low = np.where(seen, some, np.inf).min(axis=1)
        if (high != low).any():
            return False
    return len(several) > 0


def _people_in(take: Take) -> list[Float[np.ndarray, "frame marker 3"]]:
    """Return the positions of the markers or sensors of each person, by their names."""
    people = [
        take.points[:, sorted(subject.hits.values())]
        for subject in match_subjects(take)
        if TRUNK & set(subject.bodies)
    ]
    is_program = bool(recognise_program(take.sensor_names)[0])
    if is_program or vrm.is_person(take.sensor_names):
        people.append(take.T_world_sensor[..., :3, 3])
    return people


def _standing_people(take: Take) -> list[Person]:
    """Return the people in a take whose names show a trunk and legs."""
    sensors = {
        vrm.without_subject(name): (i,) for i, name in enumerate(take.sensor_names)
    }
    figures = [(take.T_world_sensor[..., :3, 3], sensors)] + [
        (take.points, {body: subject.markers_of(body) for body in subject.bodies})
        for subject in match_subjects(take)
    ]
    if len(set(take.subjects)) <= 1:
        figures.append((take.points, standing_points(take.labels)))
    people = []
    for positions, items in figures:
        upper = [i for body in items if body in UPPER for i in items[body]]
        legs = [body for body in items if vrm.without_side(body) in LOWER]
        lower = [i for body in legs for i in items[body]]
        if upper and lower:
            people.append(Person(positions[:, upper], positions[:, lower]))
    return people


def _lies_down(take: Take) -> bool:
    """Return whether people reach along another axis than that which is known as up."""
    is_known = take.source.up.how in ("stated", "given")
    return is_known and axis_of_people(_standing_people(take)) not in ("", "z")


def _select_subject(take: Take, subject: str, *, is_named: bool) -> Take:
    """Return the take with one subject's markers only, if it names several.

    Args:
        take: The recording.
        subject: Name of the subject.
        is_named: Whether some take names this subject.
    """
    names = [name for name in dict.fromkeys(take.subjects) if name]
    if subject not in names:
        if len(names) > 1 or (is_named and names):
            raise OptionError(
                "subject",
                found=f"{subject}, whom {take.source.path or 'a take'} does not name",
                needed=f"one of {', '.join(names)}",
            )
        return take
    if set(take.subjects) == {subject}:
        return take
    return take.select([i for i, name in enumerate(take.subjects) if name == subject])


def clean_takes(takes: tuple[Take, ...], options: SolveOptions) -> tuple[Take, ...]:
    """Return the takes without the errors that they show before bodies are known.

    Keypoints of low confidence and placeholders are gaps. A length unit that nobody
    stated is corrected by the size of people, and an up axis by how people stand or by
    the floor. Outliers are masked, labels that were swapped within a take or between
    takes are swapped back, lengths are scaled by two sensors of known distance, sensors
    without information are left out, and sensors are synchronised with markers. Takes
    that cannot determine a skeleton get an error finding.
    """
    takes = tuple(mask_unsure(take, options.min_confidence) for take in takes)
    if options.clean:
        takes = tuple(_without_missing(take) for take in takes)
        takes = tuple(
            correct_unit(take, _people_in(take), lies=_lies_down(take))
            for take in takes
        )
        takes = tuple(
            correct_up(take, _standing_people(take), stands_on_zero) for take in takes
        )
    takes = tuple(
        check_flatness(take, has_people=bool(_people_in(take))) for take in takes
    )
    takes = check_takes(takes, known_skeleton=options.skeleton is not None)
    if options.clean:
        takes = tuple(clean(report_lost_frames(take)) for take in takes)
        takes = undo_swaps_between_takes(takes, find_swaps_between_takes(takes))
    takes = drop_unused_sensors(_scale_takes(takes, options))
    return tuple(_align_sensors(take, options) for take in takes)


def _without_missing(take: Take) -> Take:
    """Return the take without values that only stand for missing ones, in any unit."""
    take = mask_placeholders(take)
    return mask_outliers(take, find_stopped_sensors(take))


def _align_sensors(take: Take, options: SolveOptions) -> Take:
    """Return a take of markers and sensors with the sensors in time with the markers.

    The delay is given, or estimated from the sensors that move with bodies of markers.
    """
    if not (take.labels and take.sensor_names) or options.segment == "sensors":
        return take
    bodies = segment(
        take,
        method=options.segment,
        template=options.template,
        n_bodies=options.n_bodies,
    )
    if not bodies.is_mixed:
        return take
    if options.time_offset is not None:
        return synchronise_sensors(take, TimeOffset(options.time_offset, 0.0, 0))
    return synchronise_sensors(take, estimate_time_offset(replace(bodies, take=take)))


def _scale_takes(takes: tuple[Take, ...], options: SolveOptions) -> tuple[Take, ...]:
    """Return the takes in true lengths, if two sensors determine the scale."""
    if options.rigid_pair is None:
        return takes
    a, b, distance = options.rigid_pair
    scale = float(np.mean([_scale(take, a, b, distance) for take in takes]))
    return tuple(rescale(take, scale) for take in takes)


def _scale(take: Take, a: str, b: str, distance: float) -> float:
    """Return the factor to true lengths from two sensors `distance` metres apart."""
    names = take.sensor_names
    if not names:
        needed = "a recording with two 6-DoF sensors on a rod"
        raise OptionError("rigid_pair", found="markers only", needed=needed)
    for name in (a, b):
        check_choice("rigid_pair", name, names)
    bodies = segment(take, method="sensors")
    pair = names.index(a), names.index(b)
    return rigid_pair(bodies, pair, distance=distance).scale
