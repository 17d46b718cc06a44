"""Recognition of the marker set of a take by its labels, checked by the motion."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np

from marey.numerics import Array, Float
from marey.numerics.resampling import evenly_spaced
from marey.numerics.robust import logistic
from marey.numerics.thresholds import FEW
from marey.report import Finding, Severity, mark_name
from marey.segmentation.clusters.pair_statistics import PairStats, pair_statistics
from marey.segmentation.labels.label_check import LabelCheck, check_labels
from marey.segmentation.labels.marker_sets import (
    MIN_BODIES,
    MIN_MATCHED_FRACTION,
    MarkerSet,
    known_marker_sets,
)
from marey.segmentation.labels.side_by_trunk import names_with_sides
from marey.segmentation.labels.spelling import is_name, label_readings, normalise_label
from marey.segmentation.labels.unnamed import bodies_of_unnamed, unnamed_markers
from marey.segmentation.labels.word_set import (
    WORDS,
    add_missing_bodies,
    bodies_by_motion,
    word_set,
)
from marey.segmentation.marker_selection import list_labels
from marey.segmentation.template import contract_tree
from marey.take import Take

MIN_MARKERS_PER_BODY = 1.5
"""Mean number of markers per body: sets with fewer are joints, not markers. Higher
takes more sets for joints. Chosen by hand."""

MIN_MARKERS_LEFT = 2
"""Number of markers that a body must keep when doubtful ones are left out. Chosen by
hand."""


@dataclass(frozen=True, slots=True)
class MarkerSetMatch:
    """The marker set of a take, and whether the motion agrees with the labels."""

    name: str
    """The marker set, such as "Plug-in Gait"; several joined by "and"."""

    members: Mapping[str, tuple[int, ...]]
    """Markers of each body, by index; of several subjects as "JOE:Hips"."""

    parents: Mapping[str, str]
    """Parent of each body that has one, by name: the tree of the set, without the
    bodies that have no markers in the take."""

    present: float
    """Fraction of the set's bodies that are in the take; of several subjects the
    least."""

    explained: float
    """Fraction of the named and seen markers that the set lists."""

    unused: tuple[str, ...]
    """Labels of the markers that were left out."""

    stats: PairStats
    """Distances of all markers of the take."""

    label_probability: Mapping[int, float] = field(default_factory=dict)
    """Markers that do not move with the body of their label, by index, with the
    probability that their labels are right nevertheless."""

    trusted: bool = True
    """Whether the motion agrees with most labels."""

    findings: tuple[Finding, ...] = ()

    @property
    def used(self) -> list[int]:
        """The markers of all bodies, in order."""
        return sorted({i for markers in self.members.values() for i in markers})


@dataclass(frozen=True, slots=True)
class SubjectMatch:
    """The labels of one subject compared with one marker set."""

    subject: str
    marker_set: MarkerSet
    hits: Mapping[str, int]
    """The marker of each label that the set lists, by its normalised label."""

    markers: tuple[int, ...]
    """All markers of the subject that have a name."""

    @property
    def n_named(self) -> int:
        """Number of the subject's labels."""
        return len(self.markers)

    @property
    def bodies(self) -> list[str]:
        """The bodies that own a marker, in the order of the set."""
        owning = {self.marker_set.bodies_of[label][0] for label in self.hits}
        return [body for body in self.marker_set.template.markers if body in owning]

    @property
    def present(self) -> float:
        """Fraction of the set's bodies that own a marker."""
        return len(self.bodies) / len(self.marker_set.template.markers)

    @property
    def is_match(self) -> bool:
        """Whether enough bodies and labels are there to recognise the set."""
        n_bodies = len(self.bodies)
        explained = len(self.hits) / self.n_named
        return (
            n_bodies >= MIN_BODIES
            and len(self.hits) >= MIN_MARKERS_PER_BODY * n_bodies
            and max(self.present, explained) >= MIN_MATCHED_FRACTION
        )

    @property
    def bodies_of_marker(self) -> dict[int, tuple[str, ...]]:
        """Bodies of each marker, by index."""
        bodies_of = self.marker_set.bodies_of
        return {i: bodies_of[label] for label, i in self.hits.items()}

    def markers_of(self, body: str) -> tuple[int, ...]:
        """Return the markers of a body, shared ones included."""
        bodies_of = self.marker_set.bodies_of
        return tuple(i for label, i in self.hits.items() if body in bodies_of[label])


def recognise_marker_set(take: Take) -> MarkerSetMatch | None:
    """Return the known marker set of a take's labels, None if they are of none.

    The set that lists most labels of a subject is taken. Either most bodies
    of the set must be there, whatever else is (joint centres that a program added, a
    racket), or most labels of the subject must be known, whatever is missing (the upper
    body). If the labels are of no set, the words in them name the bodies (`word_set`).
    Numbers in place of names and ghost markers ("RBAC-1") do not count; of equal labels
    the first marker that was seen counts.

    The labels are then checked by the motion: `MarkerSetMatch.trusted`. Labels that the
    set does not know join its bodies by their words and motion (`bodies_by_motion`),
    markers without a name by their motion (`bodies_of_unnamed`).
    """
    subjects = [_with_sides(take, one) for one in match_subjects(take)]
    if not subjects:
        return None
    stats = pair_statistics([take.points])
    match = _check_motion(take, _join_subjects(take, subjects, stats))
    if not match.trusted:
        return match
    wider = [_add_markers(take, subject) for subject in subjects]
    if wider != subjects:
        match = _check_motion(take, _join_subjects(take, wider, stats))
    return _join_unnamed(take, match) if match.trusted else match


def match_by_other_takes(
    take: Take, others: Sequence[tuple[Take, MarkerSetMatch]]
) -> MarkerSetMatch | None:
    """Return the bodies that a take's labels have in other takes, None if in none.

    Args:
        take: The recording, whose labels are too few to recognise a set.
        others: Takes of the same person, with their marker sets.
    """
    members: dict[str, tuple[int, ...]] = {}
    shown = np.flatnonzero(take.seen.any(axis=0)).tolist()
    marker = {take.full_labels[i]: i for i in shown}
    for other, match in others:
        for body, markers in match.members.items():
            labels = [other.full_labels[i] for i in markers]
            own = [marker[label] for label in labels if label in marker]
            members[body] = tuple(dict.fromkeys([*members.get(body, ()), *own]))
    members = {body: markers for body, markers in members.items() if markers}
    if not members:
        return None
    used = {i for markers in members.values() for i in markers}
    known = MarkerSetMatch(
        name=others[0][1].name,
        members=members,
        parents={},
        present=len(members) / len(others[0][1].members),
        explained=len(used) / len(shown),
        unused=tuple(
            label for i, label in enumerate(take.full_labels) if i not in used
        ),
        stats=pair_statistics([take.points]),
    )
    return _check_motion(take, known)


def match_subjects(take: Take) -> list[SubjectMatch]:
    """Return the subjects whose labels are of a known set, whatever their motion.

    If markers have equal positions, the first counts.
    """
    named = np.array([is_name(label) for label in take.labels], dtype=bool)
    shown = np.flatnonzero(named & take.seen.any(axis=0)).tolist()
    usable = _without_copies(take.points, shown)
    readings = [_match_subjects(reading, usable) for reading in label_readings(take)]
    return max(readings, key=lambda some: sum(len(one.hits) for one in some))


def _with_sides(take: Take, subject: SubjectMatch) -> SubjectMatch:
    """Return the match with a single arm or leg on its side of the trunk, if clear."""
    members = {body: subject.markers_of(body) for body in subject.bodies}
    names = names_with_sides(take, members)
    if not names:
        return subject

    def rename(body: str) -> str:
        return names.get(body, body)

    known = subject.marker_set
    template = replace(
        known.template,
        markers={rename(b): some for b, some in known.template.markers.items()},
    )
    bodies_of = {k: tuple(map(rename, some)) for k, some in known.bodies_of.items()}
    renamed = replace(known, template=template, bodies_of=bodies_of)
    return replace(subject, marker_set=renamed)


def _without_copies(
    points: Float[Array, "frame marker 3"], markers: Sequence[int]
) -> list[int]:
    """Return the markers without those whose positions are those of an earlier one."""
    sample = points[evenly_spaced(len(points))]
    kept: dict[bytes, list[int]] = {}
    for marker in markers:
        alike = kept.setdefault(sample[:, marker].tobytes(), [])
        own = points[:, marker]
        if not any(np.array_equal(own, points[:, k], equal_nan=True) for k in alike):
            alike.append(marker)
    return sorted(marker for alike in kept.values() for marker in alike)


def _add_markers(take: Take, subject: SubjectMatch) -> SubjectMatch:
    """Return the match with the subject's other markers that words and motion place.

    If far more labels are not of the set than are, they are the outputs of a model.
    """
    others = [i for i in subject.markers if i not in subject.bodies_of_marker]
    if not others or len(others) > 2 * len(subject.hits):
        return subject
    used = [*subject.bodies_of_marker, *others]
    known = {used.index(i): bodies for i, bodies in subject.bodies_of_marker.items()}
    found = bodies_by_motion(take.select(used), known)
    if not found:
        return subject
    new = {take.full_labels[used[place]]: place for place in found}
    bodies_of = {label: found[place] for label, place in new.items()}
    bodies_of = {**subject.marker_set.bodies_of, **bodies_of}
    wider = replace(subject.marker_set, bodies_of=bodies_of)
    hits = {**subject.hits, **{label: used[place] for label, place in new.items()}}
    return replace(subject, marker_set=wider, hits=hits)


def _join_unnamed(take: Take, match: MarkerSetMatch) -> MarkerSetMatch:
    """Return the match with the markers without a name that move with a body.

    Not with names that nobody knows: these may be of points that a program computed.
    """
    candidates = unnamed_markers(take, match.stats, match.used, match.explained)
    candidates = [i for i in candidates if not is_name(take.labels[i])]
    found = bodies_of_unnamed(match.stats, match.members, candidates)
    if not found:
        return match
    members = {
        body: (*markers, *(i for i, joined in found.items() if joined == body))
        for body, markers in match.members.items()
    }
    full_labels = take.full_labels
    joined = [f"{full_labels[i]} ({body})" for i, body in found.items()]
    message = f"markers without a name that move with a body: {list_labels(joined)}"
    finding = _finding("markers-joined", message, match.name, float(len(found)), "info")
    labels = {full_labels[i] for i in found}
    return replace(
        match,
        members=members,
        unused=tuple(label for label in match.unused if label not in labels),
        findings=(*match.findings, finding),
    )


def _match_subjects(
    reading: list[tuple[str, str]], usable: Iterable[int]
) -> list[SubjectMatch]:
    """Return the subjects whose labels are of a known set."""
    labels: dict[str, dict[str, int]] = {}
    for i in usable:
        subject, label = reading[i]
        labels.setdefault(subject, {}).setdefault(normalise_label(label), i)
    raw = {i: label for i, (_, label) in enumerate(reading)}
    best = [_best_set(subject, indices, raw) for subject, indices in labels.items()]
    return [match for match in best if match is not None]


def _best_set(
    subject: str, labels: Mapping[str, int], raw: Mapping[int, str]
) -> SubjectMatch | None:
    """Return the match of a subject with the set that lists most of its labels.

    If it is no match, the words of the labels may make a set.

    Args:
        subject: Name of the subject.
        labels: Markers of the subject by normalised labels.
        raw: Label of each marker as it is written.
    """

    def compare(known: MarkerSet) -> SubjectMatch:
        hits = {label: i for label, i in labels.items() if label in known.bodies_of}
        return SubjectMatch(subject, known, hits, tuple(labels.values()))

    matches = [match for match in map(compare, known_marker_sets()) if match.is_match]
    written = {label: raw[i] for label, i in labels.items()}
    if matches:
        best = max(matches, key=lambda match: len(match.hits))
        return compare(add_missing_bodies(best.marker_set, written))
    words = word_set(written)
    match = compare(words) if words is not None else None
    return match if match is not None and match.is_match else None


def _join_subjects(
    take: Take, subjects: list[SubjectMatch], stats: PairStats
) -> MarkerSetMatch:
    """Return the bodies of all subjects."""
    members: dict[str, tuple[int, ...]] = {}
    parents: dict[str, str] = {}
    for one in subjects:
        prefix = f"{one.subject}:" if len(subjects) > 1 and one.subject else ""
        members |= {prefix + body: one.markers_of(body) for body in one.bodies}
        tree = contract_tree(one.marker_set.template.parent, one.bodies)
        parents |= {prefix + body: prefix + parent for body, parent in tree.items()}
    used = {i for markers in members.values() for i in markers}
    unused = [label for i, label in enumerate(take.full_labels) if i not in used]
    return MarkerSetMatch(
        name=" and ".join(dict.fromkeys(one.marker_set.name for one in subjects)),
        members=members,
        parents=parents,
        present=min(one.present for one in subjects),
        explained=len(used) / sum(one.n_named for one in subjects),
        unused=tuple(unused),
        stats=stats,
    )


# --- doubts that the motion raises ---------------------------------------------------


def _check_motion(take: Take, match: MarkerSetMatch) -> MarkerSetMatch:
    """Return the match with the doubts that the motion raises."""
    used = match.used
    inside = np.array([np.isin(used, markers) for markers in match.members.values()])
    check = check_labels(match.stats.select(np.array(used)), inside)
    trusted = not check.contradicts_labels
    odds = {used[i]: float(x) for i, x in enumerate(check.support) if x < 0.0}
    for pair, gain in check.swaps.items():
        odds |= {used[i]: -gain for i in pair}
    probability = {i: float(logistic(x)) for i, x in odds.items()}
    doubtful = [used[i] for i in check.doubtful]
    wrong = {i for i in doubtful if probability.get(i, 1.0) < FEW}
    members = dict(match.members)
    for body, markers in members.items():
        right = tuple(i for i in markers if i not in wrong)
        members[body] = right if len(right) >= MIN_MARKERS_LEFT else markers
    kept = set(chain(*members.values()))
    left_out = [i for i in doubtful if i not in kept]
    return replace(
        match,
        members=members,
        label_probability=probability,
        trusted=trusted,
        findings=(
            _recognition_finding(match),
            *(_label_findings(take, match, check, left_out) if trusted else ()),
            *(() if trusted else [_contradiction_finding(match, check)]),
        ),
    )


def _recognition_finding(match: MarkerSetMatch) -> Finding:
    n_used = len(match.used)
    origin = "named by" if match.name == WORDS else "of the marker set"
    n_bodies = len(match.members)
    message = f"{n_used} labels are {origin} {match.name} and make {n_bodies} bodies"
    if match.unused:
        message += f"; not of this set: {list_labels(match.unused)}"
    return _finding("labels-recognised", message, match.name, float(n_used), "info")


def _contradiction_finding(match: MarkerSetMatch, check: LabelCheck) -> Finding:
    message = (
        f"the labels are ignored: {len(check.misplaced)} of {check.n_checked} markers "
        f"do not move with the body of their label in {match.name}"
    )
    misplaced = len(check.misplaced) / check.n_checked
    return _finding("labels-contradicted", message, match.name, misplaced)


def _label_findings(
    take: Take, match: MarkerSetMatch, check: LabelCheck, left_out: Sequence[int]
) -> Iterator[Finding]:
    """Yield the swaps, the doubtful labels and those that are left out."""
    used = match.used
    full_labels = take.full_labels
    labels = [full_labels[i] for i in used]
    for (i, j), gain in check.swaps.items():
        message = (
            f"{labels[i]} and {labels[j]} are probably swapped: each moves with the "
            "other's body. Check both labels"
        )
        yield _finding("labels-swapped", message, f"{labels[i]}, {labels[j]}", gain)
    for i in check.doubtful:
        bodies = [body for body, markers in match.members.items() if used[i] in markers]
        code, consequence = "label-doubtful", ""
        if used[i] in left_out:
            code, consequence = "label-wrong", " and is left out"
        message = (
            f"moves with no other marker of {' or '.join(map(mark_name, bodies))}"
            f"{consequence}. Check its label"
        )
        yield _finding(code, message, labels[i], float(check.support[i]))


def _finding(
    code: str, message: str, subject: str, value: float, severity: Severity = "warning"
) -> Finding:
    return Finding(code, "segment", severity, message, subject, value=value)
