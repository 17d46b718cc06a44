"""Rigid bodies out of a recording.

A 6-DoF sensor is a body already. Markers become bodies by a map, by labels that many
laboratories share, or by the distances they keep.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import overload

from marey.bodies import Bodies
from marey.errors import DataError, OptionError
from marey.segmentation.common_bodies import alike
from marey.segmentation.labels.match import Match, bodies_of_labels, recognised
from marey.segmentation.markers import bodies_of_markers
from marey.segmentation.sensors import bodies_of_sensors
from marey.segmentation.template import Map as Map
from marey.segmentation.template import Template as Template
from marey.segmentation.template import bodies_of_template
from marey.segmentation.template import read_template as read_template
from marey.take import Take

METHODS = (
    "auto",
    "overlap",
    "spectral",
    "keypoints",
    "labels",
    "template",
    "sensors",
)


@overload
def segment(
    takes: Take, *, method: str = ..., template: Map | None = ..., n_bodies: int = ...
) -> Bodies: ...


@overload
def segment(
    takes: Sequence[Take],
    *,
    method: str = ...,
    template: Map | None = ...,
    n_bodies: int = ...,
) -> tuple[Bodies, ...]: ...


def segment(
    takes: Take | Sequence[Take],
    *,
    method: str = "auto",
    template: Map | None = None,
    n_bodies: int = 0,
) -> Bodies | tuple[Bodies, ...]:
    """Return the rigid bodies of a recording, or of several of the same subject.

    Args:
        takes: The recording; several have the same bodies, found from all together. A
            body of which one of them shows nothing has no pose there.
        method: "sensors": every 6-DoF sensor is a body. "template": the bodies of a
            marker map. "labels": of a marker set known by its labels. "keypoints": of
            points that are joints, the bones between them. "overlap": of markers that
            keep their distances, whatever their names. "spectral": the same by the way
            of DeAguiar2006. "auto": the first of these that the recording allows, in
            this order.
        template: The marker map, see `read_template`.
        n_bodies: How many bodies "overlap" and "spectral" are to find; 0 = as many
            as there are.

    Raises:
        OptionError: If the method is not known or its options do not go together.
        DataError: If the recording holds nothing the method can use.
    """
    given = (takes,) if isinstance(takes, Take) else tuple(takes)
    several = tuple(take.measured for take in given)
    _check(several, method, template, n_bodies)
    if method == "auto" and template is not None:
        method = "template"
    if method == "auto" and all(take.sensor_names for take in several):
        method = "sensors"
    matches: list[Match | None] = []
    if method == "labels" or (method == "auto" and n_bodies == 0):
        matches = [recognised(take) for take in several]
    if method == "labels" or (
        matches and all(match and match.trusted for match in matches)
    ):
        found = tuple(map(bodies_of_labels, several, matches))
    elif method == "sensors":
        found = tuple(bodies_of_sensors(take) for take in several)
    elif template is not None and method == "template":
        found = tuple(bodies_of_template(take, template) for take in several)
    else:
        found = bodies_of_markers(several, method=method, n_bodies=n_bodies)
        found = tuple(map(_with_doubts, found, matches or [None] * len(found)))
    return found[0] if isinstance(takes, Take) else alike(found)


def _with_doubts(bodies: Bodies, match: Match | None) -> Bodies:
    """Return the bodies with word of labels that the motion contradicts."""
    if match is None or match.trusted:
        return bodies
    return replace(bodies, findings=(*match.findings, *bodies.findings))


def _check(
    takes: tuple[Take, ...], method: str, template: Map | None, n_bodies: int
) -> None:
    if method not in METHODS:
        raise OptionError("method", found=method, needed=f"one of {', '.join(METHODS)}")
    if not takes:
        raise DataError("segment", found="no takes", needed="at least one")
    if method == "template" and template is None:
        raise OptionError("template", found=None, needed="a marker map")
    most = max(len(take.labels) for take in takes)
    if n_bodies < 0 or n_bodies > most > 0:
        raise OptionError("n_bodies", found=n_bodies, needed=f"0 to {most}")
