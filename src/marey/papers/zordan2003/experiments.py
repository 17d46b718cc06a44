"""Mapping optical motion capture data to skeletal motion using a physical model."""

from collections.abc import Callable, Mapping

from marey.papers.experiment import Effort, Experiment
from marey.papers.zordan2003.cmu import real_recordings
from marey.papers.zordan2003.contact import ground_contact
from marey.papers.zordan2003.performances import gains, martial_arts, walking

EXPERIMENTS: Mapping[str, Callable[[Effort], Experiment]] = {
    "martial": martial_arts,
    "walk": walking,
    "contact": ground_contact,
    "gains": gains,
    "recordings": real_recordings,
}
