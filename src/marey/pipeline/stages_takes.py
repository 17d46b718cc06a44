"""Stages 1 and 2: recordings to takes, and takes without the errors they show alone."""

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike

import numpy as np

from marey.cleaning import (
    clean,
    drop_unused_sensors,
    find_swaps_between_takes,
    rescale,
    undo_swaps_between_takes,
)
from marey.errors import DataError, OptionError
from marey.io import read
from marey.joints import rigid_pair
from marey.pipeline.options import SolveOptions
from marey.segmentation import (
    TimeOffset,
    estimate_time_offset,
    segment,
    synchronise_sensors,
)
from marey.take import Take

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
    several = (recordings,) if is_single else tuple(recordings)  # type: ignore[arg-type]
    if not several:
        raise DataError("solve", found="no recordings", needed="at least one")
    takes = tuple(r if isinstance(r, Take) else read(r) for r in several)  # type: ignore[arg-type]
    if not subject:
        return takes
    is_named = any(subject in take.subjects for take in takes)
    return tuple(_select_subject(take, subject, is_named=is_named) for take in takes)


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

    Outliers are masked, labels that were swapped within a take or between takes are
    swapped back, lengths are scaled by two sensors of known distance, sensors without
    information are left out, and sensors are brought in time with markers.
    """
    if options.clean:
        takes = tuple(clean(take) for take in takes)
        takes = undo_swaps_between_takes(takes, find_swaps_between_takes(takes))
    takes = drop_unused_sensors(_scale_takes(takes, options))
    return tuple(_align_sensors(take, options) for take in takes)


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
    for name in (a, b):
        if name not in names:
            needed = f"one of {', '.join(names)}"
            raise OptionError("rigid_pair", found=name, needed=needed)
    bodies = segment(take, method="sensors")
    pair = names.index(a), names.index(b)
    return rigid_pair(bodies, pair, distance=distance).scale
