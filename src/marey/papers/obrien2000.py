"""Automatic Joint Parameter Estimation from Magnetic Motion Capture Data, rebuilt."""

from collections.abc import Callable, Mapping

from marey.papers import _obrien_accuracy as accuracy
from marey.papers import _obrien_exact as exact
from marey.papers._experiment import Effort, Experiment
from marey.papers._obrien_hierarchy import hierarchy
from marey.papers._obrien_linkage import linkage
from marey.papers._obrien_people import people
from marey.papers._obrien_slips import slips

EXPERIMENTS: Mapping[str, Callable[[Effort], Experiment]] = {
    "simulation": exact.simulation,
    "hinges": exact.hinges,
    "stick": exact.rigid,
    "linkage": linkage,
    "people": people,
    "hierarchy": hierarchy,
    "timing": exact.timing,
    "slips": slips,
    "sensors": accuracy.sensors,
    "markers": accuracy.markers,
}
