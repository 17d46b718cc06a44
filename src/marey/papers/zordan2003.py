"""Mapping optical motion capture data to skeletal motion using a physical model."""

from collections.abc import Callable, Mapping

from marey.papers._experiment import Effort, Experiment
from marey.papers._zordan_contact import standing
from marey.papers._zordan_examples import fighting, gains, walking
from marey.papers._zordan_recordings import recorded

EXPERIMENTS: Mapping[str, Callable[[Effort], Experiment]] = {
    "martial": fighting,
    "walk": walking,
    "contact": standing,
    "gains": gains,
    "recordings": recorded,
}
