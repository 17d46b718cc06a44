"""Rigid bodies of a recording.

A 6-DoF sensor is a body already. Markers are grouped into bodies by a template, by the
labels of a known marker set, or by the distances that they keep. A new method is one
file in `methods` (see `marey.segmentation.contract`) and one line in `REGISTRY`; a new
marker set is one TOML file in `marker_sets`.
"""

from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from typing import overload

from marey.bodies import Bodies
from marey.errors import DataError, OptionError
from marey.report import Finding
from marey.segmentation.clusters.model_selection import (
    cluster_markers as cluster_markers,
)
from marey.segmentation.clusters.pair_statistics import (
    pair_deviations as pair_deviations,
)
from marey.segmentation.clusters.pair_statistics import (
    pair_statistics as pair_statistics,
)
from marey.segmentation.clusters.spectral import spectral_labels as spectral_labels
from marey.segmentation.common_bodies import with_common_bodies
from marey.segmentation.contract import SegmentationTask, Suitability
from marey.segmentation.labels.match import (
    labels_contradict_motion as labels_contradict_motion,
)
from marey.segmentation.template import Template as Template
from marey.segmentation.template import TemplateSource as TemplateSource
from marey.segmentation.template import read_template as read_template
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
            them together; a body that one of them does not show has no pose there.
        method: "template": the bodies of a marker map. "sensors": every 6-DoF sensor is
            a body. "labels": the bodies of a marker set recognised by its labels.
            "keypoints": the bones between points that are joints. "overlap": markers
            that keep their distances, whatever their labels. "spectral": the same by
            spectral clustering (DeAguiar2006). "auto": the first of these that suits
            the recording.
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
    rejections: list[tuple[Finding, ...]] = [()] * len(recordings)
    if method == "auto":
        method, rejections = _choose_method(task)
    found: tuple[Bodies, ...] = import_module(REGISTRY[method]).find_bodies(task)
    found = tuple(
        replace(bodies, findings=(*reasons, *bodies.findings)) if reasons else bodies
        for bodies, reasons in zip(found, rejections, strict=True)
    )
    return found[0] if isinstance(takes, Take) else with_common_bodies(found)


def _choose_method(task: SegmentationTask) -> tuple[str, list[tuple[Finding, ...]]]:
    """Return the first method that suits, and each take's findings of those before."""
    rejections: list[tuple[Finding, ...]] = [()] * len(task.takes)
    for name, module in REGISTRY.items():
        suitability: Suitability = import_module(module).check_suitability(task)
        if suitability.suits:
            return name, rejections
        if suitability.findings:
            pairs = zip(rejections, suitability.findings, strict=True)
            rejections = [(*before, *more) for before, more in pairs]
    raise OptionError("method", found="auto", needed="a method that suits all takes")


def _check_options(task: SegmentationTask, method: str) -> None:
    methods = ("auto", *REGISTRY)
    if method not in methods:
        raise OptionError("method", found=method, needed=f"one of {', '.join(methods)}")
    if not task.takes:
        raise DataError("segment", found="no takes", needed="at least one")
    n_markers = max(len(take.labels) for take in task.takes)
    if task.n_bodies < 0 or task.n_bodies > n_markers > 0:
        raise OptionError("n_bodies", found=task.n_bodies, needed=f"0 to {n_markers}")
