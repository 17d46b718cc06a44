"""Changes of a recording that must not matter, and those that do change its bodies.

The order of markers, the direction of time, rotation, shift, unit and one frame less;
labels are hidden. The first recording of each folder.
"""

from collections.abc import Callable, Iterator, Mapping

import numpy as np

import marey
from benchmarks.harness.task import Row, Setting
from benchmarks.recordings.known_bodies import find_cases
from benchmarks.recordings.unlabelled import hide_labels
from marey.segmentation import segment

HEADLINE = "changes that matter"
KEY_CASES = ("all",)
LIMIT_S = 7200.0
Points = np.ndarray
CHANGES: Mapping[str, Callable[[Points], Points]] = {
    "reversed": lambda points: points[::-1],
    "rotated": lambda points: points[..., [1, 2, 0]] * [1.0, -1.0, -1.0],
    "shifted": lambda points: np.add(points, [3.0, -2.0, 1.0]),
    "in another unit": lambda points: 1.7 * points,
    "one frame less": lambda points: points[1:],
    "other order": lambda points: points[:, ::-1],
}


def measure(setting: Setting) -> Iterator[Row]:
    cases = find_cases()
    if not cases:
        yield Row("known bodies", skipped="no recordings: MAREY_DATA names no folder")
    total = dict.fromkeys(("takes", HEADLINE, *CHANGES), 0.0)
    for folder, files in sorted(cases.items())[: setting.choose(len(cases), 1)]:
        if not setting.wants(folder):
            continue
        hidden = list(hide_labels(*files[0]))
        changed = [name for take, _, _ in hidden for name in changes_of(take)]
        counts = {name: float(changed.count(name)) for name in CHANGES}
        figures = {"takes": len(hidden), HEADLINE: len(changed), **counts}
        yield Row(folder, figures)
        total = {name: sum_so_far + figures[name] for name, sum_so_far in total.items()}
    yield Row("all", total)


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
