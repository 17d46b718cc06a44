"""Recordings whose bodies are known, and how bodies, joints and names are counted.

Folders are those of MAREY_DATA that hold a bodies*.json: the bodies that may own each
marker, and the bodies that joints connect.
"""

import json
import os
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from marey.rig import has_default_name

SUFFIXES = (".c3d", ".trc", ".tsv")
MIN_SEEN = 0.3
"""Share of frames, of those of the best seen marker, that must show a scored one."""

PARTS = {
    "UpperArm": r"(uarm|arm|humerus_|(Left|Right)Arm)",
    "LowerArm": r"(farm|ulna_|(Left|Right)ForeArm)",
    "Hand": r"(hand_?|(Left|Right)Hand)",
    "UpperLeg": r"(thigh|femur_|(Left|Right)UpLeg)",
    "LowerLeg": r"(shank|tibia_|(Left|Right)Leg)",
    "Foot": r"(foot|talus_|(Left|Right)Foot)",
    "Toes": r"(toe|(Left|Right)Toe(Base)?)",
    "Shoulder": r"(clav|scap|(Left|Right)Shoulder)",
}
MIDDLE = {
    "Head": {"Head"},
    "head": {"Head"},
    "pelvis": {"Hips"},
    "Hips": {"Hips"},
    **{name: {"Chest", "Spine"} for name in ("torso", "thorax", "Spine", "Spine1")},
    **{name: set() for name in ("stick", "puck", "bar", "chair")},
}


@dataclass(frozen=True)
class Truth:
    """Bodies that may own each marker, and the joints."""

    bodies: Mapping[str, Sequence[str]]
    edges: frozenset[frozenset[str]]
    index: Mapping[str, int]
    """Markers whose labels in the file are others, by their number."""

    @classmethod
    def read(cls, table: Mapping[str, Any], file: str) -> "Truth":
        """Return the bodies of one file."""
        bodies = {**table["bodies"], **table.get("per_file", {}).get(file, {})}
        edges = frozenset(map(frozenset, table["edges"]))
        return cls(bodies, edges, table.get("point_index", {}))


def find_cases() -> Mapping[str, list[tuple[Path, Truth]]]:
    """Return the recordings of each folder, with their true bodies."""
    listed = os.environ.get("MAREY_DATA", "").split(os.pathsep)
    roots = [Path(r) for r in listed if r]
    cases: dict[str, list[tuple[Path, Truth]]] = defaultdict(list)
    for table_path in sorted(p for r in roots for p in r.glob("*/bodies*.json")):
        table = json.loads(table_path.read_text())
        folder = table_path.parent.name
        for path in sorted(p for r in roots for p in (r / folder).glob("*")):
            listed = any(path.match(glob) for glob in table.get("files", ["*"]))
            if listed and path.suffix in SUFFIXES:
                cases[folder].append((path, Truth.read(table, path.name)))
    return cases


def match_bodies(
    found: Sequence[int], allowed: Sequence[Sequence[str]]
) -> dict[int, str]:
    """Return the true body of each found one: one to one, most markers in common."""
    ids = sorted(set(found) - {-1})
    names = sorted({name for bodies in allowed for name in bodies})
    count = np.zeros((len(ids), len(names)))
    for f, bodies in zip(found, allowed, strict=True):
        for rank, name in enumerate(bodies if f >= 0 else ()):
            count[ids.index(f), names.index(name)] += 1.0 if rank == 0 else 0.9
    rows, columns = linear_sum_assignment(-count)
    pairs = zip(rows.tolist(), columns.tolist(), strict=True)
    return {ids[r]: names[c] for r, c in pairs if count[r, c]}


def contract_edges(
    edges: frozenset[frozenset[str]], present: set[str]
) -> set[frozenset[str]]:
    """Return the joints between present bodies after the others are contracted."""
    left = set(edges)
    for gone in sorted({body for edge in left for body in edge} - present):
        near = sorted({b for edge in left if gone in edge for b in edge} - {gone})
        left = {edge for edge in left if gone not in edge}
        left |= {frozenset((near[0], other)) for other in near[1:]}
    return left


def count_names(
    names: Sequence[str],
    found: Sequence[int],
    allowed: Sequence[Sequence[str]],
    true_of: Mapping[int, str],
) -> tuple[int, int, int]:
    """Return how many bodies have a right name, a wrong one, and none.

    A piece of a body may have its name; a body may have the name of any true body that
    all its markers may belong to.
    """
    counts = [0, 0, 0]
    for body in sorted(set(found) - {-1}):
        own = names[body].rpartition(":")[2]
        inside = [set(a) for f, a in zip(found, allowed, strict=True) if f == body]
        true = {true_of.get(body, ""), *set.intersection(*inside)} - {""}
        right = set().union(*map(right_names, true))
        if not right and true:
            continue
        kind = 2 if has_default_name(own) else (0 if own in right else 1)
        counts[kind] += 1
    return tuple(counts)  # type: ignore[return-value]


def right_names(true: str) -> set[str]:
    """Return the names that are right for a true body."""
    true = true.rpartition(".")[2]
    if true in MIDDLE:
        return MIDDLE[true]
    side = "Left" if true.startswith("Left") or true[-1] in "lL" else "Right"
    for part, pattern in PARTS.items():
        if re.fullmatch(f"{pattern}[lrLR]?", true):
            return {side + part} | ({side + "Foot"} if part == "Toes" else set())
    return set()
