"""Bodies, joints and names of recordings with known bodies, their labels used.

    python benchmarks/labels.py [--without-sets] [FOLDER ...]

Folders are those of MAREY_DATA that hold a bodies*.json: the bodies that may own each
marker, and the bodies that joints connect. For each folder: the share of markers in a
right body, joints of the tree that are right, and names that are right, wrong or none.
`--without-sets` leaves out, for each take, the marker set that its labels are of, so
that words and motion have to do.
"""

import argparse
import json
import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from scipy.optimize import linear_sum_assignment

import marey
from marey.errors import MareyError
from marey.pipeline.options import SolveOptions
from marey.pipeline.stages.bodies import BodyFit, fit_bodies, name_by_anatomy
from marey.pipeline.stages.takes import clean_takes, read_takes
from marey.rig import has_default_name
from marey.segmentation.labels import marker_sets, match

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


@dataclass
class Score:
    """Counts of one recording, or sums over several."""

    markers: int = 0
    markers_right: int = 0
    edges: int = 0
    edges_right: int = 0
    right: int = 0
    wrong: int = 0
    none: int = 0
    takes: int = 0

    def __add__(self, other: "Score") -> "Score":
        return Score(*(a + b for a, b in zip(self, other, strict=True)))

    def __iter__(self) -> Iterator[int]:
        return iter(vars(self).values())

    def __str__(self) -> str:
        share = self.markers_right / max(self.markers, 1)
        edges = f"{self.edges_right}/{self.edges}"
        names = f"{self.right:4} {self.wrong:4} {self.none:4}"
        return f"{self.takes:3} {share:7.3f} {edges:>9}   {names}"


def main() -> None:
    """Print a line per folder and the sum."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folders", nargs="*")
    parser.add_argument("--without-sets", action="store_true")
    parser.add_argument("--files", action="store_true", help="a line per recording")
    arguments = parser.parse_args()
    total = Score()
    print(f"{'':36} takes markers  joints   right wrong none")
    for folder, files in sorted(find_cases().items()):
        if arguments.folders and folder not in arguments.folders:
            continue
        sum_of_folder = Score()
        for path, truth in files:
            score, note = score_file(path, truth, without=arguments.without_sets)
            sum_of_folder += score
            if arguments.files:
                print(f"  {path.name:<34} {score}  {note}", flush=True)
        print(f"{folder:<36} {sum_of_folder}", flush=True)
        total += sum_of_folder
    print(f"{'all':<36} {total}")


def find_cases() -> Mapping[str, list[tuple[Path, Truth]]]:
    """Return the recordings of each folder, with their true bodies."""
    roots = [Path(r) for r in os.environ["MAREY_DATA"].split(os.pathsep)]
    cases = defaultdict(list)
    for table_path in sorted(p for r in roots for p in r.glob("*/bodies*.json")):
        table = json.loads(table_path.read_text())
        folder = table_path.parent.name
        for path in sorted(p for r in roots for p in (r / folder).glob("*")):
            listed = any(path.match(glob) for glob in table.get("files", ["*"]))
            if listed and path.suffix in SUFFIXES:
                cases[folder].append((path, Truth.read(table, path.name)))
    return cases


def score_file(path: Path, truth: Truth, *, without: bool) -> tuple[Score, str]:
    """Return the score of one recording, and what is worth a look."""
    try:
        fit, findings = solve_bodies(path, without=without)
    except MareyError as error:
        return Score(takes=1), str(error)[:150]
    return score_fit(fit, truth), findings


def solve_bodies(path: Path, *, without: bool) -> tuple[BodyFit, str]:
    """Return the bodies with their tree and names."""
    options = SolveOptions()
    known = marker_sets.known_marker_sets()
    takes = read_takes(path, "")
    if without:
        found = {one.marker_set.name for one in match.match_subjects(takes[0])}
        known = tuple(one for one in known if one.name not in found)
    with patch.object(match, "known_marker_sets", lambda: known):
        takes = clean_takes(takes, options)
        fit = name_by_anatomy(fit_bodies(takes, options), options)
    codes = [f.code for f in fit.bodies[0].findings]
    sets = [f.subject for f in fit.bodies[0].findings if f.code == "labels-recognised"]
    return fit, f"{' '.join(sets)}  {' '.join(c for c in codes if 'label' in c)}"


def score_fit(fit: BodyFit, truth: Truth) -> Score:
    """Return the score of bodies, tree and names."""
    bodies = fit.bodies[0]
    labels, found = scored_markers(bodies, truth)
    allowed = [truth.bodies[label] for label in labels]
    true_of = match_bodies(found, allowed)
    right = [
        f >= 0 and true_of.get(f) in a for f, a in zip(found, allowed, strict=True)
    ]
    present = {a[0] for a in allowed if len(a) == 1} | set(true_of.values())
    edges = contract_edges(truth.edges, present)
    joined = {
        frozenset((true_of.get(int(p), "?"), true_of.get(child, "?")))
        for child, p in enumerate(fit.tree.parent)
        if p >= 0
    }
    names = count_names(bodies.names, found, allowed, true_of)
    score = Score(len(right), sum(right), len(edges), len(edges & joined), *names)
    score.takes = 1
    return score


def scored_markers(bodies: marey.Bodies, truth: Truth) -> tuple[list[str], list[int]]:
    """Return the labels that are scored, and the body of each."""
    take = bodies.take
    share = take.seen.mean(axis=0)
    seen = share > MIN_SEEN * share.max(initial=0.0)
    stated = {i: label for label, i in truth.index.items()}
    owner = {}
    for i in np.flatnonzero(seen).tolist():
        names = (stated.get(i, ""), take.full_labels[i], take.labels[i])
        label = next((name for name in names if name in truth.bodies), None)
        if label is not None:
            owner.setdefault(label, int(bodies.marker_body[i]))
    return list(owner), list(owner.values())


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


if __name__ == "__main__":
    main()
