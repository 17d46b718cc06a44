"""Bodies, joints and names of recordings with known bodies, their labels hidden.

For each folder, with the scored markers only: the adjusted Rand index, where a marker
on a joint line may belong to any of its bodies; joints that are right of those possible
with the bodies found; and names that are right, wrong or none. A person who stands
still shows no joints, so the last row leaves such recordings out.
"""

from collections.abc import Iterator, Sequence

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
from marey.pipeline.stages.bodies import fit_bodies, name_by_anatomy
from marey.segmentation.clusters.model_selection import rand_matrix
from marey.segmentation.clusters.pair_statistics import pair_statistics

HEADLINE = "ARI"
KEY_CASES = ("all", "all that move")
LIMIT_S = 7200.0
OPTIONS = SolveOptions(segment="overlap")
MIN_FRAMES = 100
"""Number of frames of a recording that is scored; shorter ones are poses."""

MIN_MOTION = 0.002
"""Least median spread of the distance of two markers, over that distance, of several
bodies that move. It is up to 0.0013 in 21 recordings of people who stand still, and
0.0044 or more in all others."""

Score = tuple[float, tuple[int, ...]]


def measure(setting: Setting) -> Iterator[Row]:
    cases = find_cases()
    if not cases:
        yield Row("known bodies", skipped="no recordings: MAREY_DATA names no folder")
        return
    found: dict[str, list[tuple[Score, bool]]] = {}
    for folder, files in sorted(cases.items())[: setting.choose(len(cases), 2)]:
        if not setting.wants(folder):
            continue
        chosen = files[: setting.choose(len(files), 1)]
        hidden = [one for path, truth in chosen for one in hide_labels(path, truth)]
        scores = [
            (score, moves(*one[:2])) for one in hidden for score in score_take(*one)
        ]
        if scores:
            found[folder] = scores
            yield Row(folder, figures_of([[score for score, _ in scores]]))
    if found:
        folders = [[score for score, _ in scores] for scores in found.values()]
        yield Row("all", figures_of(folders))
        moving = [[score for score, moved in s if moved] for s in found.values()]
        if any(moving):
            figures = figures_of([scores for scores in moving if scores])
            yield Row("all that move", figures)


def figures_of(folders: Sequence[Sequence[Score]]) -> dict[str, float]:
    """Return the figures of folders: mean agreement of the folders, and the counts."""
    scores = [score for folder in folders for score in folder]
    means = [np.mean([agreement for agreement, _ in folder]) for folder in folders]
    names = ("joints right", "of joints", "names right", "wrong", "none")
    total = np.sum([counts for _, counts in scores], axis=0)
    counted = dict(zip(names, total.tolist(), strict=True))
    return {"takes": len(scores), "ARI": float(np.mean(means)), **counted}


def moves(take: marey.Take, allowed: Sequence[Sequence[str]]) -> bool:
    """Return whether bodies move against each other; a single body may stand still."""
    if len({bodies[0] for bodies in allowed}) == 1:
        return True
    stats = pair_statistics([take.points])
    is_moving = stats.spread > MIN_MOTION * stats.distance
    return bool(np.median(is_moving[stats.is_known]) > 0.5)


def hide_labels(
    path: object, truth: Truth
) -> Iterator[tuple[marey.Take, list[Sequence[str]], Truth]]:
    """Return a take of the scored markers without labels, and their true bodies."""
    try:
        take = marey.read(path)
    except MareyError:
        return
    share = take.seen.mean(axis=0)
    stated = {i: label for label, i in truth.index.items()}
    chosen: dict[str, int] = {}
    for i in np.flatnonzero(share > MIN_SEEN * share.max(initial=0.0)).tolist():
        names = (stated.get(i, ""), take.full_labels[i], take.labels[i])
        label = next((name for name in names if name in truth.bodies), None)
        if label is not None:
            chosen.setdefault(label, i)
    if take.n_frames >= MIN_FRAMES and chosen:
        points = take.points[:, list(chosen.values())]
        labels = tuple(f"M{i}" for i in range(len(chosen)))
        hidden = marey.Take(rate=take.rate, points=points, labels=labels)
        yield hidden, [truth.bodies[label] for label in chosen], truth


def score_take(
    take: marey.Take, allowed: list[Sequence[str]], truth: Truth
) -> Iterator[Score]:
    """Return agreement; joints right and possible; names right, wrong and none."""
    try:
        fit = name_by_anatomy(fit_bodies((take,), OPTIONS), OPTIONS)
    except MareyError:
        return
    bodies = fit.bodies[0]
    found = bodies.marker_body.tolist()
    true_of = match_bodies(found, allowed)
    possible = contract_edges(truth.edges, set(true_of.values()))
    joined = {
        frozenset((true_of.get(int(parent), "?"), true_of.get(child, "?")))
        for child, parent in enumerate(fit.tree.parent)
        if parent >= 0
    }
    names = count_names(bodies.names, found, allowed, true_of)
    counts = (len(possible & joined), len(possible), *names)
    yield tolerant_agreement(bodies.marker_body, allowed), counts


def tolerant_agreement(found: np.ndarray, allowed: Sequence[Sequence[str]]) -> float:
    """Return the best adjusted Rand index over the bodies that markers may be on.

    Coordinate ascent: marker by marker, while the index grows.
    """
    alone = found.max(initial=0) + 1 + np.arange(len(found))
    found = np.where(found >= 0, found, alone)
    ids = {name: i for i, name in enumerate({b for a in allowed for b in a})}
    truth = np.array([ids[bodies[0]] for bodies in allowed])
    best, before = float(rand_matrix([truth, found])[0, 1]), -1.0
    while best > before:
        before = best
        for marker, bodies in enumerate(allowed):
            for name in bodies[1:] and bodies:
                other = truth.copy()
                other[marker] = ids[name]
                index = float(rand_matrix([other, found])[0, 1])
                if index > best:
                    best, truth = index, other
    return best
