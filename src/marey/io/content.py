"""What a table of a motion holds: angles, coordinates, joints or markers."""

from typing import Literal, get_args

import numpy as np

from marey.anatomy import names as vrm
from marey.anatomy.name_schemes import recognise_joints
from marey.errors import OptionError
from marey.io.contract import Format, QuantityTable, motion_as_take
from marey.io.options import WriteOptions
from marey.motion import Motion
from marey.skeleton import Skeleton
from marey.solution import Solution
from marey.take import Take

Content = Literal["angles", "coordinates", "joints", "markers"]


IN_TABLES = ("angles", "coordinates")
"""Contents that only tables hold; others are recordings."""


def usual_content(skeleton: Skeleton) -> Content:
    """Return what a table of a solution holds: angles of people, joints of others."""
    known = set(recognise_joints(skeleton.names).values())
    bare = [vrm.without_subject(name) for name in skeleton.names]
    is_person = vrm.is_person(known) and not vrm.has_tail(bare)
    return "angles" if is_person else "joints"


def choose_content(
    thing: Take | Motion | Skeleton | Solution, content: str | None, format: Format
) -> Content | None:
    """Return what a file of this thing is to hold; None if the format decides.

    Without a choice, tables of a solution hold clinical angles of a person, and the
    joints of other subjects.

    Raises:
        OptionError: If there is no such content, or the format cannot hold it.
    """
    if content is None:
        if format.write_table is None or not isinstance(thing, Solution):
            return None
        return usual_content(thing.skeleton)
    known: tuple[Content, ...] = get_args(Content)
    for name in known:
        if name == content:
            _check_holds(format, name)
            return name
    raise OptionError("content", found=content, needed=f"one of {', '.join(known)}")


def _check_holds(format: Format, content: Content) -> None:
    """Refuse a content that a format cannot hold.

    Raises:
        OptionError: If it cannot.
    """
    if content in IN_TABLES and format.write_table is None:
        needed = f"a table for {content}: .csv or .parquet"
        raise OptionError("content", found=format.name, needed=needed)
    if content not in IN_TABLES and format.write_take is None:
        needed = f"a format of recordings for {content}"
        raise OptionError("content", found=format.name, needed=needed)


def content_of(
    thing: Take | Motion | Skeleton | Solution, content: Content, options: WriteOptions
) -> Take | QuantityTable:
    """Return the part of a solution or motion that a file is to hold.

    Raises:
        DataError: If it has no such part.
        OptionError: If the thing is neither solution nor motion.
    """
    if content == "markers" and isinstance(thing, Take):
        return thing
    if content == "markers" and isinstance(thing, Solution):
        return thing.take
    motion = thing.motion if isinstance(thing, Solution) else thing
    if not isinstance(motion, Motion):
        kind = type(thing).__name__.lower()
        raise OptionError("content", found=f"a {kind}", needed="a solution or motion")
    if content == "joints":
        return motion_as_take(motion)
    if content == "markers":
        return _markers_as_take(motion)
    return (
        _angle_table(motion) if content == "angles" else _coordinates(motion, options)
    )


def _markers_as_take(motion: Motion) -> Take:
    """Return where a motion has the markers of its skeleton, as a recording."""
    labels = motion.skeleton.marker_labels
    points = motion.marker_points()
    return Take(rate=motion.rate, points=points, labels=labels, start=motion.start)


def _angle_table(motion: Motion) -> QuantityTable:
    """Return the clinical angles over time, in degrees (ISB)."""
    from marey.clinical import angles  # few files hold joint angles

    found = angles(motion)
    values = np.column_stack([found.times, found.degrees])
    units = ("s", *["deg"] * len(found.names))
    return QuantityTable(("time", *found.names), values, units)


def _coordinates(motion: Motion, options: WriteOptions) -> QuantityTable:
    """Return the coordinates of OpenSim's model over time, in degrees and metres."""
    from marey.io.formats import osim  # brings XML along

    names, values = osim.coordinate_table(motion, options)
    translations = ("_tx", "_ty", "_tz")
    units = ["m" if name.endswith(translations) else "deg" for name in names]
    return QuantityTable(("time", *names), values, ("s", *units))
