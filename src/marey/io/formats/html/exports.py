"""Formats in which what a page shows can be written."""

from typing import Any

from marey.io.content import usual_content
from marey.io.registry import formats_for
from marey.motion import Motion
from marey.solution import Solution
from marey.take import Take


def list_exports(thing: Solution | Motion | Take) -> list[dict[str, Any]]:
    """Return title, suffixes and contents of the formats of a thing, for the header.

    A format of tables has one suffix, and the contents that `write` accepts of this
    thing; any other format has no contents to choose from.
    """
    contents = _table_contents(thing)
    exports = []
    for format in formats_for(thing):
        is_table = format.write_table is not None and bool(contents)
        exports.append(
            {
                "title": format.title,
                "suffixes": format.suffixes[:1] if is_table else format.suffixes,
                "contents": contents if is_table else [],
            }
        )
    return exports


def _table_contents(thing: Solution | Motion | Take) -> list[str]:
    """Return what tables of a thing can hold; [] if there is nothing to choose."""
    if isinstance(thing, Take) or (isinstance(thing, Solution) and not thing.subjects):
        return []
    motion = thing if isinstance(thing, Motion) else thing.subjects[0].motions[0]
    skeleton = motion.skeleton
    usual = usual_content(skeleton)
    markers = ["markers"] if len(skeleton.marker_labels) else []
    return [usual, *(["joints"] if usual != "joints" else []), *markers]
