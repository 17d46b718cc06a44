"""The contract of segmentation methods.

A method is a module with two functions:

* ``find_bodies(task: SegmentationTask) -> tuple[Bodies, ...]``: one `Bodies` per take.
* ``check_suitability(task: SegmentationTask) -> Suitability``: whether "auto" may use
  the method.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from marey.report import Finding
from marey.segmentation.clusters.pair_statistics import PairStats, pair_statistics
from marey.segmentation.labels.match import (
    MarkerSetMatch,
    match_by_other_takes,
    recognise_marker_set,
)
from marey.segmentation.marker_selection import select_common_markers
from marey.segmentation.template import TemplateSource
from marey.take import Take


class Suitability(NamedTuple):
    """Whether a method suits a task."""

    suits: bool
    findings: tuple[tuple[Finding, ...], ...] = ()
    """If it does not: findings of each take that say why. May be empty."""


@dataclass(frozen=True, eq=False)
class SegmentationTask:
    """Takes of one subject and the options of `segment`.

    What several methods need is computed once.
    """

    takes: tuple[Take, ...]
    """Measured values only."""

    template: TemplateSource | None = None
    n_bodies: int = 0
    """Number of bodies wanted; 0 = found."""

    @property
    def has_markers(self) -> bool:
        """Whether a take has markers."""
        return any(take.labels for take in self.takes)

    @property
    def has_sensors(self) -> bool:
        """Whether a take has 6-DoF sensors."""
        return any(take.sensor_names for take in self.takes)

    @cached_property
    def label_matches(self) -> tuple[MarkerSetMatch | None, ...]:
        """The known marker set of each take's labels.

        Labels that are too few to recognise a set have the bodies of other takes.
        """
        found = [recognise_marker_set(take) for take in self.takes]
        trusted = [
            (take, match)
            for take, match in zip(self.takes, found, strict=True)
            if match is not None and match.trusted
        ]
        return tuple(
            match_by_other_takes(take, trusted) if match is None else match
            for take, match in zip(self.takes, found, strict=True)
        )

    def without(self, numbers: Collection[int]) -> "SegmentationTask":
        """Return the task without some takes."""
        kept = [take for k, take in enumerate(self.takes) if k not in numbers]
        return replace(self, takes=tuple(kept)) if numbers else self

    @cached_property
    def marker_takes(self) -> tuple[Take, ...]:
        """The takes with the markers that all of them have, in one order."""
        return select_common_markers(self.takes)

    @cached_property
    def pair_stats(self) -> PairStats:
        """Distances of all pairs of the common markers, over all takes."""
        return pair_statistics([take.points for take in self.marker_takes])
