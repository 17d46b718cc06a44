"""Bodies of a template: a map of which markers sit on which body."""

from collections.abc import Mapping
from fnmatch import fnmatchcase

from marey.bodies import Bodies
from marey.errors import DataError, OptionError
from marey.report import Finding, mark_name
from marey.segmentation.body_poses import bodies_from_members
from marey.segmentation.contract import SegmentationTask, Suitability
from marey.segmentation.template import Template, read_template
from marey.take import Take

SubjectBody = tuple[str, str]
"""A subject of the take, and a body of the template."""


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
    subjects = list(dict.fromkeys(take.subjects))
    found: dict[SubjectBody, list[int]] = {}
    missing: dict[SubjectBody, list[str]] = {}
    for subject in subjects:
        for body, patterns in template.markers.items():
            matched = _match_markers(take, patterns, subject)
            found[subject, body], missing[subject, body] = matched
    present = [s for s in subjects if any(found[s, body] for body in template.markers)]
    _check_all_found(take, template, found, present)
    prefix = {subject: f"{subject}:" if len(present) > 1 else "" for subject in present}
    return bodies_from_members(
        take,
        {
            prefix[s] + body: found[s, body]
            for s in present
            for body in template.markers
        },
        parents={
            prefix[s] + body: prefix[s] + parent
            for s in present
            for body, parent in template.parent.items()
        },
        findings=tuple(
            _missing_marker(s, body, marker)
            for s in present
            for body in template.markers
            for marker in missing[s, body]
        ),
    )


def _match_markers(
    take: Take, patterns: tuple[str, ...], subject: str
) -> tuple[list[int], list[str]]:
    """Return the markers of a subject that match, and the patterns that match none."""
    markers = [i for i, owner in enumerate(take.subjects) if owner == subject]
    hits = {
        pattern: [i for i in markers if _is_match(pattern, take, i)]
        for pattern in patterns
    }
    found = dict.fromkeys(i for indices in hits.values() for i in indices)
    return list(found), [pattern for pattern in patterns if not hits[pattern]]


def _is_match(pattern: str, take: Take, marker: int) -> bool:
    """Return whether a name or pattern matches a marker, ignoring case.

    A subject in the pattern must match the marker's subject, if it has one.
    """
    wanted, label = pattern.casefold(), take.labels[marker].casefold()
    subject_pattern, _, label_pattern = wanted.replace("::", ":").rpartition(":")
    subject = take.subjects[marker].casefold()
    if subject_pattern and subject and not fnmatchcase(subject, subject_pattern):
        return False
    return wanted == label or fnmatchcase(label, label_pattern)


def _check_all_found(
    take: Take,
    template: Template,
    found: Mapping[SubjectBody, list[int]],
    present: list[str],
) -> None:
    """Raise a DataError if a body has no marker."""
    empty = [
        f"{subject}:{body}" if subject else body
        for subject in present
        for body in template.markers
        if not found[subject, body]
    ]
    if empty or not present:
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
