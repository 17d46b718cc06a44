"""The marker sets that are known by their labels, built in or of other packages.

A marker set is one TOML file: a marker map like a user's own (`read_template`) with a
`name`, and with all names that its markers have. Case, separators and the spelling of
the side do not matter. Our files are in `marker_sets`. Another package adds its sets by
entry points of the group `marey.marker_sets`; each refers to a package that holds TOML
files, or to a variable that holds the path of one file::

    [project.entry-points."marey.marker_sets"]
    lab = "my_lab.marker_sets"
    gait = "my_lab:GAIT_TOML"
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from types import ModuleType

from marey.errors import DataError
from marey.segmentation.labels.spelling import normalise_label
from marey.segmentation.template import Template, read_template, read_toml

ENTRY_POINTS = "marey.marker_sets"
"""Group of entry points by which another package adds marker sets."""

MIN_BODIES = 3
"""Number of bodies that must match: a few labels in common are chance. Higher
recognises fewer small sets. Chosen by hand."""

MIN_MATCHED_FRACTION = 0.8
"""Fraction of a set's bodies, or of a subject's labels, that must match; of sensors,
both fractions; of keypoints, the labels that must be words for joints. Higher
recognises fewer incomplete sets. Chosen by hand."""


@dataclass(frozen=True, slots=True)
class MarkerSet:
    """A marker set that is known by its labels."""

    name: str
    template: Template
    bodies_of: Mapping[str, tuple[str, ...]]
    """Bodies of each marker, by its normalised label; the owning body first."""


@cache
def known_marker_sets() -> tuple[MarkerSet, ...]:
    """Return all marker sets; those with few markers first.

    Raises:
        FormatError: If a file is not TOML.
        DataError: If a file is no marker map with a name.
    """
    built_in = _toml_files(files("marey.segmentation") / "marker_sets")
    marker_sets = [read_marker_set(file) for file in (*built_in, *_added_files())]
    return tuple(sorted(marker_sets, key=lambda one: len(one.bodies_of)))


def _added_files() -> Iterator[Traversable]:
    """Return the files of other packages, in the order of their entry points' names."""
    for entry in sorted(entry_points(group=ENTRY_POINTS), key=lambda one: one.name):
        source = entry.load()
        if isinstance(source, ModuleType):
            yield from _toml_files(files(source))
        else:
            yield Path(source)


def _toml_files(folder: Traversable) -> list[Traversable]:
    toml = (file for file in folder.iterdir() if file.name.endswith(".toml"))
    return sorted(toml, key=lambda file: file.name)


def read_marker_set(file: Traversable) -> MarkerSet:
    """Return the marker set of a TOML file.

    Raises:
        FormatError: If the file is not TOML.
        DataError: If it is no marker map with a name.
    """
    table = read_toml(file, str(file))
    name = table.get("name")
    if not isinstance(name, str) or "bodies" not in table:
        needed = 'name = "..." and a table [bodies]'
        raise DataError(str(file), found=sorted(table), needed=needed)
    template = read_template(table)
    bodies_of: dict[str, tuple[str, ...]] = {}
    for body, markers in template.markers.items():
        for label in dict.fromkeys(map(normalise_label, markers)):
            bodies_of[label] = (*bodies_of.get(label, ()), body)
    return MarkerSet(name, template, bodies_of)
