"""Bodies from a map that says which markers sit on which body."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool

from marey.bodies import Bodies
from marey.errors import DataError, FormatError
from marey.report import Finding
from marey.rigid import RigidFit, fit_rigid
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


Map = str | PathLike[str] | Mapping[str, Any] | Template
"""A TOML file, a mapping of the same form, or a template that was read before."""


def read_template(source: Map) -> Template:
    """Return a marker map from a TOML file or a mapping of the same form.

    [bodies]
    pelvis = ["LFWT", "RFWT", "LBWT", "RBWT"]
    thigh = { markers = ["LTHI", "LKNE"], parent = "pelvis" }

    A marker may be in two bodies: one on a joint line belongs to both.

    Raises:
        FormatError: If the file is not TOML.
        DataError: If a body has no markers, or hangs on one that is not there or,
            round some way, on itself.
    """
    if isinstance(source, Template):
        return source
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


def _toml(path: str) -> Mapping[str, Any]:
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FormatError(path, expected="TOML", found=str(error)) from None


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


def bodies_of_template(take: Take, template: Map) -> Bodies:
    """Return the bodies of a marker map, each with its pose in every frame.

    Poses are generalised Procrustes fits over all frames (`marey.rigid.fit_rigid`).
    Bodies of one or two markers, or of markers on a line, are `determined=False` and
    have the pose of least turning. A marker in two bodies serves both poses; its own
    body (`marker_body`) is the first that lists it. When markers of several subjects
    match, each subject gets bodies of its own, named "JOE:pelvis".

    Args:
        take: The recording.
        template: A TOML file, a mapping of the same form, or what `read_template` gave.

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
    bodies = {
        f"{subject}:{name}" if len(alive) > 1 else name: matched[subject, name][0]
        for subject in alive
        for name in template.markers
    }
    findings = tuple(
        _missing(subject, name, missing)
        for subject in alive
        for name in template.markers
        for missing in matched[subject, name][1]
    )
    return _bodies(take, bodies, findings)


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
        message=f"{marker} of the map is not in the take; {body}{whose} does without",
        subject=marker,
    )


def _bodies(
    take: Take, members: Mapping[str, list[int]], findings: tuple[Finding, ...]
) -> Bodies:
    n_markers = len(take.labels)
    shared = np.zeros((n_markers, len(members)), dtype=bool)
    for body, index in enumerate(members.values()):
        shared[index, body] = True
    marker_body = np.where(shared.any(axis=1), shared.argmax(axis=1), -1)
    fits = [fit_rigid(take.points[:, index]) for index in members.values()]
    offset = np.full((n_markers, 3), np.nan)
    for body, (index, fit) in enumerate(zip(members.values(), fits, strict=True)):
        own = marker_body[index] == body
        offset[np.array(index)[own]] = fit.offset[own]
    notes = [_soft_note(name, fit) for name, fit in zip(members, fits, strict=True)]
    return Bodies(
        take=take,
        names=tuple(members),
        T_world_body=np.stack([fit.T_world_body for fit in fits], axis=1),
        determined=np.array([fit.determined for fit in fits]),
        marker_body=marker_body,
        shared=shared,
        marker_confidence=_certain(marker_body >= 0),
        body_confidence=np.ones(len(fits)),
        marker_offset=offset,
        rms=np.array([fit.rms for fit in fits]),
        findings=(*findings, *(note for note in notes if note is not None)),
    )


def _certain(known: Bool[np.ndarray, " marker"]) -> np.ndarray:
    return np.where(known, 1.0, 0.0)


def _soft_note(name: str, fit: RigidFit) -> Finding | None:
    if fit.determined or len(fit.offset) < 3:
        return None
    return Finding(
        code="markers-on-a-line",
        stage="segment",
        severity="warning",
        message=f"the {len(fit.offset)} markers of {name} are on a line or never seen "
        "together: its turn about itself is not known",
        subject=name,
    )
