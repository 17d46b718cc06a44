"""Bodies from a map that says which markers sit on which body."""

import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from marey.bodies import Bodies
from marey.errors import DataError, FormatError
from marey.report import Finding, mark_name
from marey.segmentation.body_poses import assembled
from marey.skeleton import Skeleton
from marey.take import Take


@dataclass(frozen=True, slots=True)
class Template:
    """Which markers sit on which body, and which body hangs on which.

    Marker names may hold * and ? and may carry a subject, "JOE:RTHI".
    """

    markers: Mapping[str, tuple[str, ...]]
    """Names of the markers of each body, by the body's name."""

    parent: Mapping[str, str] = field(default_factory=dict)
    """Parent of each body that has one, by the body's name."""

    path: str = ""
    """The file it was read from."""


Map = str | PathLike[str] | Mapping[str, Any] | Template | Skeleton
"""A TOML file, a mapping of the same form, a template that was read before, or a
skeleton with markers on it."""


def read_template(source: Map) -> Template:
    """Return a marker map from a TOML file, a mapping of the same form or a skeleton.

    [bodies]
    pelvis = ["LFWT", "RFWT", "LBWT", "RBWT"]
    thigh = { markers = ["LTHI", "LKNE"], parent = "pelvis" }

    A marker may be in two bodies: one on a joint line belongs to both.

    A skeleton that carries markers, such as Vicon's subject file
    (`marey.read_skeleton("joe.vsk")`), is a map too: each joint with markers is a body.

    Raises:
        FormatError: If the file is not TOML.
        DataError: If a body has no markers, or hangs on one that is not there or,
            round some way, on itself; if a skeleton has no markers.
    """
    if isinstance(source, Template):
        return source
    if isinstance(source, Skeleton):
        return _of_skeleton(source)
    path = "" if isinstance(source, Mapping) else fspath(source)
    table = source if isinstance(source, Mapping) else _toml(path)
    bodies = table.get("bodies", None if path else table)
    what = path or "template"
    if not isinstance(bodies, Mapping) or not bodies:
        raise DataError(what, found=sorted(table), needed="a table [bodies]")
    markers = {str(name): _markers(what, name, body) for name, body in bodies.items()}
    parent = {
        str(name): str(body["parent"])
        for name, body in bodies.items()
        if isinstance(body, Mapping) and body.get("parent")
    }
    _check_parents(what, markers, parent)
    return Template(markers, parent, path)


def _of_skeleton(skeleton: Skeleton) -> Template:
    """Return the joints that carry markers; those without are shrunk away."""
    markers: dict[str, tuple[str, ...]] = {}
    for joint, name in enumerate(skeleton.names):
        mine = np.flatnonzero(skeleton.marker_joint == joint)
        if len(mine):
            markers[name] = tuple(skeleton.marker_labels[i] for i in mine)
    if not markers:
        raise DataError(
            "skeleton as a marker map", found="no markers", needed="markers on joints"
        )
    above = {
        name: skeleton.names[parent]
        for name, parent in zip(skeleton.names, skeleton.parent, strict=True)
        if parent >= 0
    }
    return Template(markers, contracted(above, markers))


def _toml(path: str) -> Mapping[str, Any]:
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        expected = "TOML (of a VSK give marey.read_skeleton(path))"
        raise FormatError(path, expected=expected, found=str(error)) from None


def _markers(what: str, name: str, body: Any) -> tuple[str, ...]:
    listed = body.get("markers") if isinstance(body, Mapping) else body
    listed = [listed] if isinstance(listed, str) else listed
    odd = set(body) - {"markers", "parent"} if isinstance(body, Mapping) else set()
    good = isinstance(listed, list | tuple) and all(isinstance(m, str) for m in listed)
    if not good or not listed or odd:
        raise DataError(
            f"{what}, body {name}",
            found=f"keys {sorted(odd)}" if odd else repr(listed),
            needed='["LTHI", ...] or { markers = ["LTHI", ...], parent = "pelvis" }',
        )
    return tuple(listed)


def _check_parents(
    what: str, markers: Mapping[str, Any], parent: Mapping[str, str]
) -> None:
    for name, above in parent.items():
        if above not in markers:
            raise DataError(
                f"{what}, parent of {name}",
                found=above,
                needed=f"one of {', '.join(markers)}",
            )
        seen = {name}
        while above in parent and above not in seen:
            seen.add(above)
            above = parent[above]
        if above in seen:
            raise DataError(
                f"{what}, parent of {name}",
                found="a circle " + " - ".join(sorted(seen)),
                needed="a tree",
            )


def contracted(parent: Mapping[str, str], present: Collection[str]) -> dict[str, str]:
    """Return the parents when bodies that are not present are shrunk away.

    A body hangs on the nearest ancestor that is present. Where a root is not, the
    first of the bodies below it takes its place.

    Args:
        parent: Parent of each body that has one, by name.
        present: The bodies that stay; their order says which is first.
    """
    tree: dict[str, str] = {}
    stand_in: dict[str, str] = {}
    for body in present:
        above = body
        while above in parent and (above == body or above not in present):
            above = parent[above]
        if above not in present:
            above = stand_in.setdefault(above, body)
        if above != body:
            tree[body] = above
    return tree


def bodies_of_template(take: Take, template: Map) -> Bodies:
    """Return the bodies of a marker map, each with its pose in every frame.

    Poses are generalised Procrustes fits over all frames, see
    `marey.numerics.procrustes.fit_rigid`.
    Bodies of one or two markers, or of markers on a line, are `determined=False`; the
    turn they leave open is taken from the markers around. A marker in two bodies serves
    those with fewer than three of their own; its own body (`marker_body`) is the first
    that lists it. When markers of
    several subjects match, each subject gets bodies of its own, named "JOE:pelvis".

    Args:
        take: The recording.
        template: A TOML file, a mapping of the same form, a skeleton with markers, or
            what `read_template` gave.

    Raises:
        DataError: If a body has none of its markers in the take.
    """
    template = read_template(template)
    matched = {
        (subject, name): _matches(take, names, subject)
        for subject in dict.fromkeys(take.subjects)
        for name, names in template.markers.items()
    }
    alive = [
        subject
        for subject in dict.fromkeys(take.subjects)
        if any(matched[subject, name][0] for name in template.markers)
    ]
    _check_found(take, template, matched, alive)
    prefix = {subject: f"{subject}:" if len(alive) > 1 else "" for subject in alive}
    bodies = {
        prefix[subject] + name: matched[subject, name][0]
        for subject in alive
        for name in template.markers
    }
    parents = {
        prefix[subject] + name: prefix[subject] + above
        for subject in alive
        for name, above in template.parent.items()
    }
    findings = tuple(
        _missing(subject, name, missing)
        for subject in alive
        for name in template.markers
        for missing in matched[subject, name][1]
    )
    return bodies_of_members(take, bodies, parents=parents, findings=findings)


def _matches(
    take: Take, names: tuple[str, ...], subject: str
) -> tuple[list[int], list[str]]:
    """Return the markers of one subject that names match, and names that match none."""
    found: dict[int, None] = {}
    missing = []
    mine = [i for i, owner in enumerate(take.subjects) if owner == subject]
    for name in names:
        hits = [i for i in mine if _is_named(name, take, i)]
        found |= dict.fromkeys(hits)
        if not hits:
            missing.append(name)
    return list(found), missing


def _is_named(name: str, take: Take, i: int) -> bool:
    """Return whether a name or pattern means a marker; a subject in it must agree."""
    wanted, label = name.casefold(), take.labels[i].casefold()
    owner, _, bare = wanted.replace("::", ":").rpartition(":")
    mine = take.subjects[i].casefold()
    if owner and mine and not fnmatchcase(mine, owner):
        return False
    return wanted == label or fnmatchcase(label, bare)


def _check_found(
    take: Take,
    template: Template,
    matched: Mapping[tuple[str, str], tuple[list[int], list[str]]],
    alive: list[str],
) -> None:
    empty = [
        f"{subject}:{name}" if subject else name
        for subject in alive
        for name in template.markers
        if not matched[subject, name][0]
    ]
    if empty or not alive:
        wanted = [m for names in template.markers.values() for m in names]
        raise DataError(
            "template" + (f" {template.path}" if template.path else ""),
            found=f"no marker of {', '.join(empty or template.markers)} among "
            f"{', '.join(take.labels) or 'no markers'}",
            needed=f"at least one per body of {', '.join(wanted)}",
        )


def _missing(subject: str, body: str, marker: str) -> Finding:
    whose = f" of {subject}" if subject else ""
    return Finding(
        code="marker-missing",
        stage="segment",
        severity="warning",
        message=f"{marker} of the map is not in the take; {mark_name(body)}{whose} "
        "does without",
        subject=marker,
    )


def bodies_of_members(
    take: Take,
    members: Mapping[str, Sequence[int]],
    *,
    parents: Mapping[str, str] | None = None,
    doubts: Mapping[int, float] | None = None,
    findings: tuple[Finding, ...] = (),
) -> Bodies:
    """Return bodies of given markers, each with its pose in every frame.

    A marker's own body (`marker_body`) is the first that lists it.

    Args:
        take: The recording.
        members: Markers of each body by index, at least one, by the body's name.
        parents: Parent of each body that has one, by name.
        doubts: Probability that a marker is where it belongs, by index; the others
            are certain.
        findings: What finding them met.
    """
    inside = np.zeros((len(members), len(take.labels)), dtype=bool)
    for body, mine in enumerate(members.values()):
        inside[body, list(mine)] = True
    owner = np.where(inside.any(axis=0), inside.argmax(axis=0), -1)
    confidence = np.where(owner >= 0, 1.0, 0.0)
    for marker, chance in (doubts or {}).items():
        confidence[marker] = chance
    return assembled(
        take,
        tuple(members),
        inside,
        owner,
        marker_confidence=confidence,
        parents=parents,
        findings=findings,
    )
