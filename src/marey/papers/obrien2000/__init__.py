"""Automatic Joint Parameter Estimation from Magnetic Motion Capture Data, rebuilt."""

from collections.abc import Mapping

from marey.papers.frame import Run
from marey.papers.obrien2000 import accuracy, exact, hierarchy, linkage, people

EXPERIMENTS: Mapping[str, Run] = {
    "simulation": exact.simulation,
    "hinges": exact.hinges,
    "stick": exact.stick,
    "linkage": linkage.wooden_linkage,
    "people": people.limb_lengths,
    "hierarchy": hierarchy.hierarchy,
    "timing": exact.timing,
    "slips": hierarchy.slips,
    "sensors": accuracy.sensors,
    "markers": accuracy.markers,
}
