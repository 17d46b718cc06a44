"""Bodies from labels: the marker sets that many laboratories share, known by name.

Each file in `sets` is a marker map like a user's own (`read_template`), with all the
names its markers go by. Case, separators and ways to write the side do not matter.
"""

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files

import numpy as np

from marey.bodies import Bodies
from marey.errors import DataError
from marey.report import Finding, mark_name
from marey.segmentation.labels.check import LabelCheck, check_labels
from marey.segmentation.labels.spelling import is_named, readings, spelled
from marey.segmentation.props import props_of
from marey.segmentation.template import (
    Template,
    bodies_of_members,
    contracted,
    read_template,
)
from marey.take import Take

ENOUGH = 0.8
"""Share of a set's bodies, or of a subject's labels, that must be there."""

FEWEST_BODIES = 3
"""Bodies that a match must have: a few labels in common are chance."""

FEWEST_PER_BODY = 1.5
"""Markers per body that a match must have: fewer are joints, not markers."""

MOST_MISPLACED = 0.25
"""Share of the markers that may move unlike their labels before none is believed."""

LYING = 0.1
"""Probability that a label is right below which its marker is left out."""

FEWEST_LEFT = 2
"""Markers that a body must have left for that."""


@dataclass(frozen=True, slots=True)
class Match:
    """What a take's labels say, and whether its motion agrees."""

    name: str
    """The marker set, such as "Plug-in Gait"; several joined by "and"."""

    members: Mapping[str, tuple[int, ...]]
    """Markers of each body, by index; of several subjects as "JOE:Hips"."""

    parents: Mapping[str, str]
    """Parent of each body that has one, by name: the tree of the set, without the
    bodies that have no markers in the take."""

    present: float
    """Share of the set's bodies that are in the take; of several subjects the least."""

    explained: float
    """Share of the named and seen markers that the set knows."""

    unused: tuple[str, ...]
    """Labels of the markers that were left out."""

    doubts: Mapping[int, float] = field(default_factory=dict)
    """Markers that do not move as their labels say, by index, with the probability
    that they are right nevertheless."""

    trusted: bool = True
    """Whether the motion agrees with the labels; a few doubts are forgiven."""

    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class KnownSet:
    """A marker set that is known by its labels."""

    name: str
    template: Template
    bodies_of: Mapping[str, tuple[str, ...]]
    """Bodies of each marker, by the common spelling of its label; its own first."""


@dataclass(frozen=True, slots=True)
class _Part:
    """One subject's labels as one of the known sets."""

    subject: str
    known: KnownSet
    hits: Mapping[str, int]
    """The marker of each label that the set knows, by its common spelling."""

    n_named: int

    @property
    def bodies(self) -> list[str]:
        """The bodies that have a marker of their own, in the order of the set."""
        own = {self.known.bodies_of[label][0] for label in self.hits}
        return [body for body in self.known.template.markers if body in own]

    @property
    def present(self) -> float:
        return len(self.bodies) / len(self.known.template.markers)

    @property
    def explained(self) -> float:
        return len(self.hits) / self.n_named

    @property
    def is_match(self) -> bool:
        n_bodies = len(self.bodies)
        return (
            n_bodies >= FEWEST_BODIES
            and len(self.hits) >= FEWEST_PER_BODY * n_bodies
            and max(self.present, self.explained) >= ENOUGH
        )


@cache
def known_sets() -> tuple[KnownSet, ...]:
    """Return the marker sets that are known by their labels, small ones first."""
    folder = files("marey.segmentation") / "marker_sets"
    tables = [
        tomllib.loads(file.read_text(encoding="utf-8"))
        for file in sorted(folder.iterdir(), key=lambda file: file.name)
        if file.name.endswith(".toml")
    ]
    sets = [_known_set(str(table["name"]), read_template(table)) for table in tables]
    return tuple(sorted(sets, key=lambda known: len(known.bodies_of)))


def _known_set(name: str, template: Template) -> KnownSet:
    bodies_of: dict[str, tuple[str, ...]] = {}
    for body, markers in template.markers.items():
        for label in dict.fromkeys(spelled(marker) for marker in markers):
            bodies_of[label] = (*bodies_of.get(label, ()), body)
    return KnownSet(name, template, bodies_of)


def recognised(take: Take) -> Match | None:
    """Return the known marker set that a take's labels are of, None when of none.

    Of each subject the set that knows most of its markers is taken. It must hold
    most of the set's bodies, whatever else is there (joint centres that a program
    added, a racket), or have most of the subject's labels known, whatever is missing
    (a lower body alone). Numbers in place of names and ghosts ("RBAC-1") are no
    labels; of markers with the same label the first that was seen counts.

    The labels are then held against the motion, see `Match.trusted` and its findings.
    """
    named = [is_named(label) for label in take.labels]
    usable = np.asarray(named, dtype=bool) & take.seen.any(axis=0)
    tried = [_parts(reading, usable) for reading in readings(take)]
    parts = max(tried, key=lambda parts: sum(len(part.hits) for part in parts))
    return _checked(take, _joined(take, parts)) if parts else None


def _parts(reading: list[tuple[str, str]], usable: np.ndarray) -> list[_Part]:
    labels: dict[str, dict[str, int]] = {}
    for i in np.flatnonzero(usable):
        subject, label = reading[i]
        labels.setdefault(subject, {}).setdefault(spelled(label), int(i))
    best = [_best(subject, found) for subject, found in labels.items()]
    return [part for part in best if part.is_match]


def _best(subject: str, labels: Mapping[str, int]) -> _Part:
    parts = [
        _Part(
            subject,
            known,
            {label: i for label, i in labels.items() if label in known.bodies_of},
            len(labels),
        )
        for known in known_sets()
    ]
    return max(parts, key=lambda part: len(part.hits))


def _joined(take: Take, parts: list[_Part]) -> Match:
    members: dict[str, tuple[int, ...]] = {}
    parents: dict[str, str] = {}
    for part in parts:
        prefix = f"{part.subject}:" if len(parts) > 1 and part.subject else ""
        for body in part.bodies:
            mine = [i for x, i in part.hits.items() if body in part.known.bodies_of[x]]
            members[prefix + body] = tuple(mine)
        tree = contracted(part.known.template.parent, part.bodies)
        parents |= {prefix + body: prefix + above for body, above in tree.items()}
    used = {i for mine in members.values() for i in mine}
    unused = [label for i, label in enumerate(take.full_labels) if i not in used]
    return Match(
        name=" and ".join(dict.fromkeys(part.known.name for part in parts)),
        members=members,
        parents=parents,
        present=min(part.present for part in parts),
        explained=len(used) / sum(part.n_named for part in parts),
        unused=tuple(unused),
    )


# --- labels and motion ----------------------------------------------------------------


def _checked(take: Take, match: Match) -> Match:
    """Return the match with what the motion says of it."""
    used = sorted({i for mine in match.members.values() for i in mine})
    members = np.array([np.isin(used, mine) for mine in match.members.values()])
    check = check_labels(take.points[:, used], members)
    trusted = len(check.misplaced) <= MOST_MISPLACED * check.n_checked
    if trusted:
        findings = _findings(take, match, check, used)
    else:
        findings = [_contradiction(match, check)]
    doubts = {used[i]: chance for i, chance in _chances(check).items()}
    lying = {used[i] for i in check.doubtful if doubts.get(used[i], 1.0) < LYING}
    return replace(
        match,
        members={body: _without(mine, lying) for body, mine in match.members.items()},
        doubts=doubts,
        trusted=trusted,
        findings=(_recognition(match, len(used)), *findings),
    )


def _without(markers: tuple[int, ...], lying: set[int]) -> tuple[int, ...]:
    """Return a body's markers without those that lie, if two are left."""
    true = tuple(i for i in markers if i not in lying)
    return true if len(true) >= FEWEST_LEFT else markers


def _chances(check: LabelCheck) -> dict[int, float]:
    """Return the probability that each marker in doubt has its right label."""
    odds = {i: float(x) for i, x in enumerate(check.support) if x < 0.0}
    for pair, gain in zip(check.swaps, check.gains, strict=True):
        odds |= dict.fromkeys(pair, -gain)
    return {i: 1.0 / (1.0 + math.exp(-x)) for i, x in odds.items()}


def _recognition(match: Match, n_used: int) -> Finding:
    left = f"; not of it: {', '.join(match.unused)}" if match.unused else ""
    return Finding(
        code="labels-recognised",
        stage="segment",
        severity="info",
        message=f"{n_used} labels are of the marker set {match.name} and make "
        f"{len(match.members)} bodies{left}",
        subject=match.name,
        value=float(n_used),
    )


def _contradiction(match: Match, check: LabelCheck) -> Finding:
    return Finding(
        code="labels-contradicted",
        stage="segment",
        severity="warning",
        message=f"{len(check.misplaced)} of {check.n_checked} markers do not move with "
        f"the bodies that their labels put them on in {match.name}: the labels are not "
        "believed",
        subject=match.name,
        value=len(check.misplaced) / check.n_checked,
    )


def _findings(
    take: Take, match: Match, check: LabelCheck, used: list[int]
) -> list[Finding]:
    labels = [take.full_labels[i] for i in used]
    found = [
        _swap(labels[i], labels[j], gain)
        for (i, j), gain in zip(check.swaps, check.gains, strict=True)
    ]
    for i in check.doubtful:
        bodies = [body for body, mine in match.members.items() if used[i] in mine]
        found.append(_doubt(labels[i], bodies, float(check.support[i])))
    return found


def _swap(one: str, other: str, gain: float) -> Finding:
    return Finding(
        code="labels-swapped",
        stage="segment",
        severity="warning",
        message=f"{one} and {other} move as if each had the other's label: look at "
        "both and change their names",
        subject=f"{one}, {other}",
        value=gain,
    )


def _doubt(label: str, bodies: list[str], support: float) -> Finding:
    return Finding(
        code="label-doubtful",
        stage="segment",
        severity="warning",
        message=f"moves with no other marker of {' or '.join(map(mark_name, bodies))}, "
        "where its label puts it: look at its name. It is left out where that is "
        "beyond doubt",
        subject=label,
        value=support,
    )


def bodies_of_labels(take: Take, match: Match | None = None) -> Bodies:
    """Return the bodies of a known marker set, each with its pose in every frame.

    Names are those of the VRM humanoid: Hips, Chest, Head, LeftUpperArm ... of
    several subjects "JOE:Hips". Bodies without markers of their own are left out.
    Other subjects of the take whose labels are of no known set ("Stick:1") are things
    of their own, in bodies that their markers' distances show.

    Poses, soft bodies and shared markers are as with a marker map
    (`bodies_of_template`). Markers that do not move with their bodies stay in them
    and have a small `marker_confidence`.

    Args:
        take: The recording.
        match: What `recognised` gave for it; looked for when left out.

    Raises:
        DataError: If the labels are of no known set, or the motion contradicts them.
    """
    match = match or recognised(take)
    if match is None or not match.trusted:
        names = ", ".join(known.name for known in known_sets())
        raise DataError(
            "labels",
            found=match.findings[-1].message
            if match
            else ", ".join(take.labels) or "no markers",
            needed=f"markers of a known set ({names}), or a marker map (template=)",
        )
    used = {i for mine in match.members.values() for i in mine}
    return bodies_of_members(
        take,
        {**match.members, **props_of(take, used)},
        parents=match.parents,
        doubts=match.doubts,
        findings=match.findings,
    )
