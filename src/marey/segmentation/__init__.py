"""Rigid bodies of a recording.

A 6-DoF sensor is a body already. Markers are grouped into bodies by a template, by the
labels of a known marker set, or by the distances that they keep. Where a recording has
both, a sensor shares the body of the markers it moves with. A new method is one
file in `methods` (see `marey.segmentation.contract`) and one line in `REGISTRY`; a new
marker set is one TOML file in `marker_sets`.
"""

from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from typing import overload

from marey.bodies import Bodies
from marey.errors import DataError, OptionError, check_choice
from marey.kernels import one_blas_thread
from marey.report import Finding
from marey.segmentation.body_poses import mean_log_odds as mean_log_odds
from marey.segmentation.body_poses import merge_bodies as merge_bodies
from marey.segmentation.candidates import Candidate as Candidate
from marey.segmentation.candidates import CandidateBodies as CandidateBodies
from marey.segmentation.clusters.model_selection import (
    cluster_markers as cluster_markers,
)
from marey.segmentation.clusters.pair_statistics import CLEAR_LOG_ODDS as CLEAR_LOG_ODDS
from marey.segmentation.clusters.pair_statistics import (
    pair_deviations as pair_deviations,
)
from marey.segmentation.clusters.pair_statistics import (
    pair_statistics as pair_statistics,
)
from marey.segmentation.clusters.spectral import spectral_labels as spectral_labels
from marey.segmentation.common_bodies import with_common_bodies as with_common_bodies
from marey.segmentation.contract import SegmentationTask, Suitability
from marey.segmentation.division import divide_at_joint as divide_at_joint
from marey.segmentation.division import divide_bodies as divide_bodies
from marey.segmentation.labels.label_check import (
    labels_contradict_motion as labels_contradict_motion,
)
from marey.segmentation.methods.sensors import recognise_program
from marey.segmentation.sensors_on_bodies import attach_sensors as attach_sensors
from marey.segmentation.template import Template as Template
from marey.segmentation.template import TemplateSource as TemplateSource
from marey.segmentation.template import read_template as read_template
from marey.segmentation.time_offset import TimeOffset as TimeOffset
from marey.segmentation.time_offset import (
    estimate_time_offset as estimate_time_offset,
)
from marey.segmentation.time_offset import synchronise_sensors as synchronise_sensors
from marey.segmentation.unused_takes import find_unused_takes, with_unused_takes
from marey.take import Take

REGISTRY = {
    "template": "marey.segmentation.methods.template",
    "sensors": "marey.segmentation.methods.sensors",
    "labels": "marey.segmentation.methods.labels",
    "keypoints": "marey.segmentation.methods.keypoints",
    "overlap": "marey.segmentation.methods.overlap",
    "spectral": "marey.segmentation.methods.spectral",
}
"""Module of each method, in the order in which "auto" asks them."""

COMPUTED_BODIES = {"motive": "Motive", "qualisys": "Qualisys Track Manager"}
"""Formats whose 6-DoF bodies a program computed from the markers beside them, by name:
they are no measurements of their own."""


@overload
def segment(
    takes: Take,
    *,
    method: str = ...,
    template: TemplateSource | None = ...,
    n_bodies: int = ...,
) -> Bodies: ...


@overload
def segment(
    takes: Sequence[Take],
    *,
    method: str = ...,
    template: TemplateSource | None = ...,
    n_bodies: int = ...,
) -> tuple[Bodies, ...]: ...


@one_blas_thread()
def segment(
    takes: Take | Sequence[Take],
    *,
    method: str = "auto",
    template: TemplateSource | None = None,
    n_bodies: int = 0,
) -> Bodies | tuple[Bodies, ...]:
    """Return the rigid bodies of a recording, or of several of the same subject.

    Args:
        takes: The recording. Several recordings have the same bodies, found from all of
            them together; a body that one of them does not show has no pose there, and
            a take that is of no use beside the others shows none, and is reported.
        method: "template": the bodies of a marker map. "sensors": every 6-DoF sensor is
            a body. "labels": the bodies of a marker set recognised by its labels.
            "keypoints": the bones between points that are joints. "overlap": markers
            that keep their distances, whatever their labels. "spectral": the same by
            spectral clustering (DeAguiar2006). "auto": the first of these that suits
            the recording. Beside any method but "sensors", sensors join the bodies of
            markers that they move with, or are bodies of their own.
        template: The marker map, see `read_template`.
        n_bodies: Number of bodies for "overlap" and "spectral"; 0 = found.

    Raises:
        OptionError: If the method is not known or its options do not go together.
        DataError: If the recording holds nothing that the method can use.
    """
    recordings = (takes,) if isinstance(takes, Take) else tuple(takes)
    task = SegmentationTask(
        tuple(take.measured for take in recordings), template, n_bodies
    )
    _check_options(task, method)
    is_mixed = task.has_markers and task.has_sensors and method != "sensors"
    unused = find_unused_takes(task, method)
    used = task.without(unused)
    found = _find_both(used, method) if is_mixed else _find_bodies(used, method)
    if isinstance(takes, Take):
        return found[0]
    return with_unused_takes(with_common_bodies(found), task.takes, unused)


def _find_bodies(
    task: SegmentationTask, method: str, without: str = ""
) -> tuple[Bodies, ...]:
    """Return the bodies of each take by one method; "auto" is never `without`."""
    rejections: list[tuple[Finding, ...]] = [()] * len(task.takes)
    if method == "auto":
        method, rejections = _choose_method(task, without)
    found: tuple[Bodies, ...] = import_module(REGISTRY[method]).find_bodies(task)
    return tuple(
        replace(bodies, findings=(*reasons, *bodies.findings)) if reasons else bodies
        for bodies, reasons in zip(found, rejections, strict=True)
    )


def _find_both(task: SegmentationTask, method: str) -> tuple[Bodies, ...]:
    """Return the bodies of markers and sensors together, see `attach_sensors`.

    In a take without markers every sensor is a body. If the method is "auto", markers
    may be left out (`_find_marker_bodies`): then every sensor is a body, too.
    """
    marked = replace(task, takes=tuple(take for take in task.takes if take.labels))
    of_markers, reason = _find_marker_bodies(marked, method)
    if reason:
        return tuple(
            replace(one, findings=(*one.findings, _markers_unused(reason)))
            for one in _find_bodies(task, "sensors")
        )
    found = iter(of_markers)
    return tuple(
        _with_sensors(next(found)) if take.labels else _sensors_only(task, take)
        for take in task.takes
    )


def _find_marker_bodies(
    task: SegmentationTask, method: str
) -> tuple[tuple[Bodies, ...], str]:
    """Return the bodies of markers, or the reason why there are none beside sensors.

    With the method "auto", markers are left out if no method can group them, if they
    are joints, or if a program computed the segments from them.
    """
    programs = [_program_of_sensors(take) for take in task.takes]
    if method == "auto" and any(programs):
        return (), f"the 6-DoF bodies are those that {max(programs)} computed"
    try:
        found = _find_bodies(task, method, without="sensors")
    except DataError as error:
        if method != "auto":
            raise
        return (), f"no bodies were found among them ({error.found})"
    is_unfit = method == "auto" and found[0].keypoints
    return found, "they are joints" if is_unfit else ""


def _program_of_sensors(take: Take) -> str:
    """Return the program that computed the 6-DoF bodies of a take; "" if none did."""
    if not take.sensor_names:
        return ""
    by_format = COMPUTED_BODIES.get(take.source.format, "")
    return recognise_program(take.sensor_names)[0] or by_format


def _with_sensors(bodies: Bodies) -> Bodies:
    return attach_sensors(bodies) if bodies.take.sensor_names else bodies


def _sensors_only(task: SegmentationTask, take: Take) -> Bodies:
    return _find_bodies(replace(task, takes=(take,)), "sensors")[0]


def _markers_unused(reason: str) -> Finding:
    message = f"the markers are not used: {reason}; segment=overlap uses both"
    return Finding("markers-unused", "segment", "warning", message)


def _choose_method(
    task: SegmentationTask, without: str = ""
) -> tuple[str, list[tuple[Finding, ...]]]:
    """Return the first method that suits, and each take's findings of those before."""
    rejections: list[tuple[Finding, ...]] = [()] * len(task.takes)
    for name, module in REGISTRY.items():
        if name == without:
            continue
        suitability: Suitability = import_module(module).check_suitability(task)
        if suitability.suits:
            return name, rejections
        if suitability.findings:
            pairs = zip(rejections, suitability.findings, strict=True)
            rejections = [(*before, *more) for before, more in pairs]
    raise OptionError("method", found="auto", needed="a method that suits all takes")


def _check_options(task: SegmentationTask, method: str) -> None:
    check_choice("method", method, ("auto", *REGISTRY))
    if not task.takes:
        raise DataError("segment", found="no takes", needed="at least one")
    n_markers = max(len(take.labels) for take in task.takes)
    if task.n_bodies < 0 or task.n_bodies > n_markers > 0:
        raise OptionError("n_bodies", found=task.n_bodies, needed=f"0 to {n_markers}")
