"""Automatic Joint Parameter Estimation from Magnetic Motion Capture Data, rebuilt."""

from collections.abc import Callable, Mapping

from marey.papers.experiment import Effort, Experiment
from marey.papers.obrien2000 import accuracy as accuracy
from marey.papers.obrien2000 import exact as exact
from marey.papers.obrien2000.hierarchy import hierarchy
from marey.papers.obrien2000.linkage import linkage
from marey.papers.obrien2000.people import people
from marey.papers.obrien2000.slips import slips

EXPERIMENTS: Mapping[str, Callable[[Effort], Experiment]] = {
    "simulation": exact.simulation,
    "hinges": exact.hinges,
    "stick": exact.stick,
    "linkage": linkage,
    "people": people,
    "hierarchy": hierarchy,
    "timing": exact.timing,
    "slips": slips,
    "sensors": accuracy.sensors,
    "markers": accuracy.markers,
}
