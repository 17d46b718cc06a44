"""Bodies, joints and names of recordings with known bodies, their labels hidden.

    python benchmarks/unlabelled.py [--invariance] [FOLDER ...]

Folders are those of MAREY_DATA that hold a bodies*.json, see `labels.py`. For each
folder, with the scored markers only: the adjusted Rand index, where a marker on a joint
line may belong to any of its bodies; joints that are right of those possible with the
bodies found; and names that are right, wrong or none. `--invariance` counts instead how
many changes that must not matter leave the bodies as they are: the order of markers,
the direction of time, rotation, shift, unit and one frame less.
"""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from labels import (
    MIN_SEEN,
    Truth,
    contract_edges,
    count_names,
    find_cases,
    match_bodies,
)

import marey
from marey.errors import MareyError
from marey.pipeline.options import SolveOptions
from marey.pipeline.stages.bodies import fit_bodies, name_by_anatomy
from marey.segmentation import segment
from marey.segmentation.clusters.model_selection import rand_matrix

OPTIONS = SolveOptions(segment="overlap")
MIN_FRAMES = 100
"""Number of frames of a recording that is scored; shorter ones are poses."""

Points = np.ndarray
CHANGES: Mapping[str, Callable[[Points], Points]] = {
    "reversed": lambda points: points[::-1],
    "rotated": lambda points: points[..., [1, 2, 0]] * [1.0, -1.0, -1.0],
    "shifted": lambda points: np.add(points, [3.0, -2.0, 1.0]),
    "in another unit": lambda points: 1.7 * points,
    "one frame less": lambda points: points[1:],
    "other order": lambda points: points[:, ::-1],
}


def main() -> None:
    """Print a line per folder, and the mean."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folders", nargs="*")
    parser.add_argument("--invariance", action="store_true")
    arguments = parser.parse_args()
    agreements, total = [], np.zeros(5, dtype=int)
    for folder, files in sorted(find_cases().items()):
        if arguments.folders and folder not in arguments.folders:
            continue
        hidden = [one for path, truth in files for one in hide_labels(path, truth)]
        if arguments.invariance:
            changed = [name for take, _, _ in hidden for name in changes_of(take)]
            print(f"{folder:<34} {len(hidden):3} takes, changed: {changed}", flush=True)
            continue
        scores = [score for one in hidden for score in score_take(*one)]
        if scores:
            agreements.append(np.mean([agreement for agreement, _ in scores]))
            counts = np.sum([counts for _, counts in scores], axis=0)
            total += counts
            print(format_row(folder, len(scores), agreements[-1], counts), flush=True)
    if agreements:
        print(format_row("all", len(agreements), float(np.mean(agreements)), total))


def format_row(name: str, n: int, agreement: float, counts: np.ndarray) -> str:
    """Return one line of the table."""
    right, possible, *names = counts.tolist()
    return f"{name:<34} {n:3} {agreement:6.3f} {right:4}/{possible:<4} {names}"


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
) -> Iterator[tuple[float, tuple[int, ...]]]:
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


def changes_of(take: marey.Take) -> list[str]:
    """Return the changes of a take that change its bodies, which none should."""
    reference = partition(take, take.points)
    names = []
    for name, change in CHANGES.items():
        other = partition(take, change(take.points))
        if name == "other order":
            last = len(take.labels) - 1
            other = {frozenset(last - i for i in body) for body in other}
        if other != reference:
            names.append(name)
    return names


def partition(take: marey.Take, points: Points) -> set[frozenset[int]]:
    """Return the markers of every body."""
    changed = marey.Take(rate=take.rate, points=points.copy(), labels=take.labels)
    owner = segment(changed, method="overlap").marker_body
    return {frozenset(np.flatnonzero(owner == body).tolist()) for body in set(owner)}


if __name__ == "__main__":
    main()
