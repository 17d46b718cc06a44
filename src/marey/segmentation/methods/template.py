"""Bodies of a template: a map of which markers sit on which body."""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from itertools import chain

from marey.bodies import Bodies
from marey.errors import DataError, OptionError
from marey.report import Finding, mark_name
from marey.segmentation.body_poses import bodies_from_members
from marey.segmentation.contract import SegmentationTask, Suitability
from marey.segmentation.template import Template, read_template
from marey.take import Take


def check_suitability(task: SegmentationTask) -> Suitability:
    """Return whether a template was given."""
    return Suitability(task.template is not None)


def find_bodies(task: SegmentationTask) -> tuple[Bodies, ...]:
    """Return the bodies of the template in all takes.

    Raises:
        OptionError: If there is no template.
        DataError: If a body has none of its markers in a take.
    """
    if task.template is None:
        raise OptionError("template", found=None, needed="a marker map")
    template = read_template(task.template)
    return tuple(bodies_from_template(take, template) for take in task.takes)


def bodies_from_template(take: Take, template: Template) -> Bodies:
    """Return the bodies of a template, each with its pose in every frame.

    Poses are generalised Procrustes fits over all frames, see
    `marey.numerics.procrustes.fit_rigid`. Bodies of one or two markers, or of markers
    on a line, are `determined=False`; the rotation that they leave open is taken from
    the markers around them. A marker in two bodies serves those with fewer than three
    markers of their own; the first body that lists it owns it (`marker_body`). If
    markers of several subjects match, each subject gets its bodies: "JOE:pelvis".

    Raises:
        DataError: If a body has none of its markers in the take.
    """
    subjects = dict.fromkeys(take.subjects)
    matches = {subject: _match_markers(take, template, subject) for subject in subjects}
    present = [
        subject
        for subject, bodies in matches.items()
        if any(any(names.values()) for names in bodies.values())
    ]
    members: dict[str, list[int]] = {}
    parents: dict[str, str] = {}
    findings: list[Finding] = []
    for subject in present:
        prefix = f"{subject}:" if len(present) > 1 else ""
        parents |= {prefix + b: prefix + p for b, p in template.parent.items()}
        for body, names in matches[subject].items():
            members[prefix + body] = list(dict.fromkeys(chain(*names.values())))
            missing = (name for name, markers in names.items() if not markers)
            findings += [_missing_marker(subject, body, name) for name in missing]
    _check_all_found(take, template, members)
    return bodies_from_members(take, members, parents, tuple(findings))


def _match_markers(
    take: Take, template: Template, subject: str
) -> dict[str, dict[str, list[int]]]:
    """Return a subject's markers by the body and the name that they match."""
    owned = [i for i, owner in enumerate(take.subjects) if owner == subject]
    return {
        body: {name: [i for i in owned if _is_match(name, take, i)] for name in names}
        for body, names in template.markers.items()
    }


def _is_match(pattern: str, take: Take, marker: int) -> bool:
    """Return whether a name or pattern matches a marker, ignoring case.

    A subject in the pattern must match the marker's subject, if it has one.
    """
    wanted, label = pattern.casefold(), take.labels[marker].casefold()
    subject_pattern, _, label_pattern = wanted.replace("::", ":").rpartition(":")
    subject = take.subjects[marker].casefold()
    if subject_pattern and subject and not _fits(subject, subject_pattern):
        return False
    return wanted == label or _fits(label, label_pattern)


def _fits(name: str, pattern: str) -> bool:
    """Return whether a name is a pattern, or matches it; names may have brackets."""
    return name == pattern or fnmatchcase(name, pattern)


def _check_all_found(
    take: Take, template: Template, members: Mapping[str, list[int]]
) -> None:
    """Raise a DataError if a body has no marker."""
    empty = [name for name, markers in members.items() if not markers]
    if empty or not members:
        wanted = [name for names in template.markers.values() for name in names]
        raise DataError(
            f"template {template.path}".strip(),
            found=f"no marker of {', '.join(empty or template.markers)} among "
            f"{', '.join(take.labels) or 'no markers'}",
            needed=f"at least one per body of {', '.join(wanted)}",
        )


def _missing_marker(subject: str, body: str, marker: str) -> Finding:
    owner = f" of {subject}" if subject else ""
    return Finding(
        code="marker-missing",
        stage="segment",
        severity="warning",
        message=f"{marker} of the marker map is not in the take; "
        f"{mark_name(body)}{owner} is found without it",
        subject=marker,
    )
