"""Tables of joints, surfaces and markers of a figure, read from its TOML file."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from marey.options import read_package_table
from marey.synth.figures.build import JointSpec, SurfaceRow, X, Y, Z

MarkerSet = tuple[tuple[str, str, float, float | int], ...]
DIRECTIONS = {"X": X, "Y": Y, "Z": Z, "-X": -X, "-Y": -Y, "-Z": -Z}


@dataclass(frozen=True, slots=True)
class FigureTables:
    """What a figure is built from, in the units of its file."""

    joints: tuple[JointSpec, ...]
    surfaces: tuple[SurfaceRow, ...]
    marker_sets: dict[str, MarkerSet]
    """By name: label, surface, share of its length, angle around it in degrees."""


@cache
def read_tables(figure: str) -> FigureTables:
    """Return the tables of the human or of the quadruped."""
    content = read_package_table("marey.synth.figures", f"{figure}.toml")
    return FigureTables(
        tuple(JointSpec(**_parse_row(row)) for row in content["joints"]),
        tuple(SurfaceRow(**_parse_row(row)) for row in content["surfaces"]),
        _marker_sets(content.get("markers", {})),
    )


def _parse_row(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _parse_value(value) for name, value in row.items()}


def _parse_value(value: Any) -> Any:
    """Return a list as a tuple and the name of a direction as its vector."""
    if isinstance(value, list):
        return tuple(map(_parse_value, value))
    return DIRECTIONS.get(value, value)


def _marker_sets(tables: Mapping[str, Mapping[str, Any]]) -> dict[str, MarkerSet]:
    """Return the sets of markers, each with those of the set before it.

    Markers on a surface of the left are mirrored.
    """
    sets: dict[str, MarkerSet] = {}
    markers: MarkerSet = ()
    for name, table in tables.items():
        given = [(label, *place) for label, place in table.items()]
        left = [row for row in given if row[1].startswith("L")]
        right = [(f"R{a[1:]}", f"R{b[1:]}", u, angle) for a, b, u, angle in left]
        markers = (*markers, *given, *right)
        sets[name] = markers
    return sets
