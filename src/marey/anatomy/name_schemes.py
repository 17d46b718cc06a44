"""Joints of a person, recognised by the names that programs and formats give them.

The table `name_schemes.toml` lists the names.
"""

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

from marey.anatomy.names import is_person
from marey.anatomy.spellings import Meaning, read_spelling, spelling_table


def recognise_joints(names: Sequence[str]) -> dict[int, str]:
    """Return the anatomical name of each joint of a person whose name is known.

    All names are read in one scheme, that which has most of them; of several joints
    of one name the first counts. Names may begin with a subject ("mixamorig:LeftLeg").

    Args:
        names: Names of joints.

    Returns:
        Names as in `marey.anatomy.names`, by index; empty if the names are not those of
        a person's hips and legs in any scheme.
    """
    readings = [_read_names(names, table) for table in _schemes().values()]
    people = [found for found in readings if is_person(found)]
    best = max(people, key=len, default={})
    return {index: name for name, index in best.items()}


def _read_names(names: Sequence[str], table: Mapping[str, Meaning]) -> dict[str, int]:
    """Return the first joint of each anatomical name in one scheme."""
    found: dict[str, int] = {}
    for index, name in enumerate(names):
        meaning = read_spelling(name, table)
        if meaning is not None:
            found.setdefault("".join(meaning), index)
    return found


@cache
def _schemes() -> Mapping[str, Mapping[str, Meaning]]:
    """Return side and part by spelling, for each scheme."""
    text = (files("marey.anatomy") / "name_schemes.toml").read_text(encoding="utf-8")
    return {
        scheme: spelling_table(patterns)
        for scheme, patterns in tomllib.loads(text).items()
    }
