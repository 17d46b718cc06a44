"""Bodies of markers by the words in their labels, and by motion where words fail."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from marey.anatomy import names as vrm
from marey.segmentation.clusters.pair_statistics import (
    CLEAR_LOG_ODDS,
    MIN_RIGID_MARKERS,
    log_odds,
    pair_statistics,
)
from marey.segmentation.labels.joint_names import are_joint_names, parse_joint_names
from marey.segmentation.labels.label_sides import bodies_of_labels
from marey.segmentation.labels.marker_sets import MarkerSet
from marey.segmentation.labels.words import (
    FINGER_BODIES,
    Bodies,
    bodies_of_label,
    names_an_animal,
    tree_of_words,
    vocabulary,
)
from marey.segmentation.template import Template
from marey.take import Take

WORDS = "words in the labels"
"""Name of the marker set that words make."""


def word_set(labels: Mapping[str, str]) -> MarkerSet | None:
    """Return the bodies that the words of a subject's labels name.

    Labels with an ambiguous word are left to the motion, see `bodies_by_motion`. None
    unless words are clear in most labels, or if the labels are names of joints.
    Fingers of three points or more are chains of joints, which words cannot divide.

    Args:
        labels: The labels as they are written, by their normalised spelling.
    """
    readings = _without_finger_chains(bodies_of_labels(labels))
    is_animal = any(map(names_an_animal, labels.values()))
    are_joints = are_joint_names(parse_joint_names(list(labels.values())))
    clear = {label: found[0] for label, found in readings.items() if len(found) == 1}
    if 2 * len(clear) <= len(labels) or is_animal or are_joints:
        return None
    return _make_set(_merge_small_clusters(clear))


def _without_finger_chains(
    readings: Mapping[str, tuple[Bodies, ...]],
) -> dict[str, tuple[Bodies, ...]]:
    """Return the readings of labels, none for fingers of three labels or more."""
    count = Counter(some[0][0] for some in readings.values() if len(some) == 1)
    chains = {
        body
        for body, n in count.items()
        if n >= MIN_RIGID_MARKERS and vrm.without_side(body) in FINGER_BODIES
    }
    return {
        label: () if some and some[0][0] in chains else some
        for label, some in readings.items()
    }


def add_missing_bodies(known: MarkerSet, labels: Mapping[str, str]) -> MarkerSet:
    """Return a set with the bodies that only words name, for labels that it matches.

    Only a set of people gets them: all its bodies are those of a person.

    Args:
        known: The set.
        labels: Labels of a subject as they are written, by normalised spelling.
    """
    parents = tree_of_words()
    hits = {label for label in labels if label in known.bodies_of}
    present = {body for label in hits for body in known.bodies_of[label]}
    if not set(known.template.markers) <= {vrm.HIPS, *parents}:
        return known
    others = {label: bodies_of_label(raw) for label, raw in labels.items()}
    readings = _without_finger_chains(
        {label: some for label, some in others.items() if label not in hits}
    )
    clear = {label: found[0] for label, found in readings.items() if len(found) == 1}
    new = {
        label: bodies
        for label, bodies in _merge_small_clusters(clear).items()
        if not present & set(bodies)
    }
    words = _make_set({**{k: known.bodies_of[k] for k in hits}, **new})
    template = replace(words.template, parent={**parents, **known.template.parent})
    return MarkerSet(known.name, template, {**known.bodies_of, **new}) if new else known


def _make_set(bodies_of: Mapping[str, Bodies]) -> MarkerSet:
    """Return the marker set of labels, with the tree of a person."""
    parents = tree_of_words()
    present = dict.fromkeys(body for bodies in bodies_of.values() for body in bodies)
    order = [body for body in (vrm.HIPS, *parents) if body in present]
    markers = {
        body: tuple(label for label, bodies in bodies_of.items() if body in bodies)
        for body in order
    }
    return MarkerSet(WORDS, Template(markers, parents), dict(bodies_of))


def _merge_small_clusters(bodies_of: Mapping[str, Bodies]) -> dict[str, Bodies]:
    """Return the bodies of labels without those that too few markers are on.

    A shoulder blade needs a cluster of markers; a single one counts with the chest.
    """
    merged = dict(bodies_of)
    for cluster, n_needed in vocabulary().clusters.items():
        for body in {cluster, *vrm.both_sides(cluster)}:
            labels = [label for label, bodies in bodies_of.items() if bodies[0] == body]
            is_small = len(labels) < n_needed
            for label in labels:
                merged[label] = bodies_of[label][1:] if is_small else (body,)
    return merged


def bodies_by_motion(take: Take, known: Mapping[int, Bodies]) -> dict[int, Bodies]:
    """Return the bodies of further markers, which words and motion agree on.

    The words of a label may mean several bodies. Those are taken with whose markers it
    moves best, by the mean log odds: clear, or clearly better than with most bodies,
    and with no other body clearly better.

    Args:
        take: The recording, with the markers to place and those that are known.
        known: Bodies of the markers that are known.
    """
    names = list(dict.fromkeys(body for bodies in known.values() for body in bodies))
    members = np.zeros((len(names), len(take.labels)), dtype=bool)
    for marker, bodies in known.items():
        members[[names.index(body) for body in bodies], marker] = True
    readings_of = bodies_of_labels(dict(zip(take.labels, take.labels, strict=True)))
    stats = pair_statistics([take.points])
    counts = members.astype(float) @ stats.is_known
    with np.errstate(invalid="ignore"):
        support = (members.astype(float) @ log_odds(stats, members)) / counts
    found: dict[int, Bodies] = {}
    for marker, label in enumerate(take.labels):
        if marker not in known:
            support_of = dict(zip(names, support[:, marker].tolist(), strict=True))
            readings = [
                tuple(body for body in bodies if body in names)
                for bodies in readings_of[label]
            ]
            bodies = _best_bodies(readings, support_of)
            found |= {marker: bodies} if bodies else {}
    return found


def _best_bodies(readings: Sequence[Bodies], support: Mapping[str, float]) -> Bodies:
    """Return the reading of a label that the motion supports best; () if none.

    Args:
        readings: What the words of the label may mean.
        support: Mean log odds of the marker with each body, NaN if unknown.
    """
    known = {body: odds for body, odds in support.items() if np.isfinite(odds)}
    if not known or not readings:
        return ()

    def score(bodies: Bodies) -> float:
        return max((known[body] for body in bodies if body in known), default=-np.inf)

    values = sorted(known.values())
    clear_of_most = min(float(np.median(values)), 0.0) + CLEAR_LOG_ODDS
    threshold = max(values[-1] - CLEAR_LOG_ODDS, clear_of_most)
    best = max(readings, key=score)
    return best if score(best) >= threshold else ()
