"""Mapping optical motion capture data to skeletal motion using a physical model."""

from collections.abc import Callable, Mapping

from marey.papers.experiment import Effort, Experiment
from marey.papers.zordan2003.contact import standing
from marey.papers.zordan2003.examples import fighting, gains, walking
from marey.papers.zordan2003.recordings import recorded

EXPERIMENTS: Mapping[str, Callable[[Effort], Experiment]] = {
    "martial": fighting,
    "walk": walking,
    "contact": standing,
    "gains": gains,
    "recordings": recorded,
}
