"""Bodies of an assignment of markers and sensors, posed as segmentation does."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from marey.bodies import Bodies
from marey.editing.assignment import BodyAssignment, TakeAssignment, assignment_of
from marey.numerics import Array, Float
from marey.report import Finding
from marey.segmentation.body_poses import make_bodies
from marey.segmentation.common_bodies import with_common_bodies, with_more_bodies
from marey.segmentation.methods.sensors import bodies_of_sensors
from marey.segmentation.sensors_on_bodies import put_sensors_on
from marey.take import Take

LINE_FINDING = "markers-on-a-line"
"""Code of a finding that is made again whenever bodies are assembled."""


def form_bodies(
    assignment: BodyAssignment, takes: Sequence[Take], found: Sequence[Bodies]
) -> tuple[Bodies, ...]:
    """Return the bodies of an assignment, each with its pose in every frame.

    Unchanged bodies in unchanged takes keep their poses; the others get theirs as
    `marey.segment` computes them.

    Args:
        assignment: Which markers make which body.
        takes: The recordings.
        found: Bodies as they were segmented.
    """
    bodies = [
        _form_take(assignment, attached, take.measured, old)
        for attached, take, old in zip(assignment.takes, takes, found, strict=True)
    ]
    return with_common_bodies(bodies)


def _form_take(
    assignment: BodyAssignment, attached: TakeAssignment, take: Take, old: Bodies
) -> Bodies:
    unchanged = dict(_unchanged_bodies(assignment, attached, old))
    confidence = np.ones(len(assignment.names))
    for body, before in unchanged.items():
        confidence[body] = old.body_confidence[before]
    bodies = _bodies_of_markers(assignment, attached, take, confidence)
    bodies = replace(bodies, findings=(*_lasting_findings(old), *bodies.findings))
    if (attached.sensor_body >= 0).any():
        bodies = put_sensors_on(bodies, attached.sensor_body)
    return _keep_unchanged(bodies, old, unchanged) if take is old.take else bodies


def _lasting_findings(old: Bodies) -> tuple[Finding, ...]:
    return tuple(f for f in old.findings if f.code != LINE_FINDING)


def _bodies_of_markers(
    assignment: BodyAssignment,
    attached: TakeAssignment,
    take: Take,
    confidence: Float[Array, " body"],
) -> Bodies:
    """Return the bodies posed by their markers; those without have no pose yet."""
    names, has_markers = assignment.names, attached.shared.any(axis=0)
    marked = np.flatnonzero(has_markers)
    number = np.append(np.cumsum(has_markers) - 1, -1)
    bodies = (
        _no_bodies(take)
        if not len(marked)
        else make_bodies(
            take,
            [names[body] for body in marked],
            attached.shared.T[marked],
            number[attached.marker_body],
            marker_confidence=attached.confidence,
            body_confidence=confidence[marked],
        )
    )
    facts = {n: (True, float(c)) for n, c in zip(names, confidence, strict=True)}
    determined = zip(bodies.names, bodies.determined, strict=True)
    facts |= {n: (bool(known), facts[n][1]) for n, known in determined}
    if bodies.names != names:
        bodies = with_more_bodies(bodies, names, facts)
    return replace(bodies, parents=assignment.parents)


def _no_bodies(take: Take) -> Bodies:
    """Return a take in which no marker belongs to a body."""
    no_poses = take.T_world_sensor[:, :0]
    bare = replace(take, T_world_sensor=no_poses, sensor_names=())
    return replace(bodies_of_sensors(bare), take=take)


def _keep_unchanged(
    bodies: Bodies, old: Bodies, unchanged: Mapping[int, int]
) -> Bodies:
    """Return the bodies of a take, those with the same members as they were before.

    Args:
        bodies: The bodies of the take.
        old: Those found in it.
        unchanged: Number before of each body that has the same members, by its number.
    """
    T, offset = bodies.T_world_body.copy(), bodies.marker_offset.copy()
    determined, rms = bodies.determined.copy(), bodies.rms.copy()
    T_body_sensor = bodies.T_body_sensor.copy()
    T_before = dict(zip(old.sensor_names, old.T_body_sensor, strict=True))
    for body, before in unchanged.items():
        T[:, body] = old.T_world_body[:, before]
        determined[body], rms[body] = old.determined[before], old.rms[before]
        markers = bodies.marker_body == body
        offset[markers] = old.marker_offset[markers]
        for sensor in np.flatnonzero(bodies.sensor_body == body).tolist():
            T_body_sensor[sensor] = T_before[bodies.sensor_names[sensor]]
    return replace(
        bodies,
        T_world_body=T,
        marker_offset=offset,
        determined=determined,
        rms=rms,
        T_body_sensor=T_body_sensor,
    )


def _unchanged_bodies(
    assignment: BodyAssignment, attached: TakeAssignment, old: Bodies
) -> Iterator[tuple[int, int]]:
    """Return the bodies with the same members as before: number now, number before."""
    found = assignment_of([old], {})
    members = found.takes[0]
    for body, name in enumerate(assignment.names):
        if name not in old.names:
            continue
        before = old.names.index(name)
        is_same = np.array_equal(attached.shared[:, body], members.shared[:, before])
        for now, then in zip(attached.members[1:], members.members[1:], strict=True):
            is_same &= np.array_equal(now == body, then == before)
        if is_same:
            yield body, before
