"""Bodies, joints and names of recordings with known bodies, their labels used.

For each folder: the share of markers in a right body, of all and of those whose label
is a name and not a number ("*52", "P1"); joints of the tree that are right; and names
that are right, wrong or none. "All" is over all markers, and has the mean of the
folders. "Set unknown" leaves out, for each take, the marker set
that its labels are of, so that words and motion have to do.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import numpy as np

import marey
from benchmarks.harness.task import Row, Setting
from benchmarks.recordings.known_bodies import (
    MIN_SEEN,
    Truth,
    contract_edges,
    count_names,
    find_cases,
    match_bodies,
)
from marey.errors import MareyError
from marey.pipeline.options import SolveOptions
from marey.pipeline.stages.bodies import BodyFit, fit_bodies, name_by_anatomy
from marey.pipeline.stages.takes import clean_takes, read_takes
from marey.segmentation.labels import marker_sets, match
from marey.segmentation.labels.spelling import is_name

HEADLINE = "markers right"
KEY_CASES = ("all", "all, set unknown")
LIMIT_S = 7200.0


@dataclass
class Score:
    """Counts of one recording, or sums over several."""

    markers: int = 0
    markers_right: int = 0
    named: int = 0
    named_right: int = 0
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

    def figures(self) -> dict[str, float]:
        """Return what a row shows."""
        return {
            "takes": self.takes,
            "markers right": self.markers_right / max(self.markers, 1),
            "with a name": self.named_right / max(self.named, 1),
            "joints right": self.edges_right,
            "of joints": self.edges,
            "names right": self.right,
            "wrong": self.wrong,
            "none": self.none,
        }


def measure(setting: Setting) -> Iterator[Row]:
    cases = find_cases()
    if not cases:
        yield Row("known bodies", skipped="no recordings: MAREY_DATA names no folder")
        return
    for words, without in (("", False), (", set unknown", True)):
        total, shares = Score(), []
        for folder, files in sorted(cases.items())[: setting.choose(len(cases), 2)]:
            if not setting.wants(folder):
                continue
            chosen = files[: setting.choose(len(files), 1)]
            scores = [score_file(*one, without=without) for one in chosen]
            of_folder = sum(scores, Score())
            figures = of_folder.figures()
            yield Row(folder + words, figures)
            total += of_folder
            shares.append(figures["markers right"])
        mean = {"mean of folders": float(np.mean(shares))} if shares else {}
        yield Row("all" + words, {**total.figures(), **mean})


def score_file(path: Path, truth: Truth, *, without: bool) -> Score:
    """Return the score of one recording; nothing is right where marey refuses it."""
    try:
        fit = solve_bodies(path, without=without)
    except MareyError:
        return Score(takes=1)
    return score_fit(fit, truth)


def solve_bodies(path: Path, *, without: bool) -> BodyFit:
    """Return the bodies with their tree and names."""
    options = SolveOptions()
    known = marker_sets.known_marker_sets()
    takes = read_takes(path, "")
    if without:
        found = {one.marker_set.name for one in match.match_subjects(takes[0])}
        known = tuple(one for one in known if one.name not in found)
    with patch.object(match, "known_marker_sets", lambda: known):
        takes = clean_takes(takes, options)
        return name_by_anatomy(fit_bodies(takes, options), options)


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
    joined = joints_found(fit, true_of)
    names = count_names(bodies.names, found, allowed, true_of)
    of_named = [one for one, label in zip(right, labels, strict=True) if is_name(label)]
    return Score(
        *(len(right), sum(right), len(of_named), sum(of_named)),
        *(len(edges), len(edges & joined), *names, 1),
    )


def joints_found(fit: BodyFit, true_of: Mapping[int, str]) -> set[frozenset[str]]:
    """Return the joints of the tree, bodies without a scored marker contracted.

    The true joints are contracted likewise: a sternum that is not scored may be a body
    between the head and the shoulder blades.
    """
    joints = {
        frozenset(
            (true_of.get(int(parent), f"?{parent}"), true_of.get(body, f"?{body}"))
        )
        for body, parent in enumerate(fit.tree.parent)
        if parent >= 0
    }
    return contract_edges(frozenset(joints), set(true_of.values()))


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
