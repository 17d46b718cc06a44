"""Automatic Learning of Articulated Skeletons from 3D Marker Trajectories, rebuilt."""

from collections.abc import Callable, Mapping

from marey.papers.deaguiar2006.clusters import clusters
from marey.papers.deaguiar2006.cmu import commercial
from marey.papers.deaguiar2006.figures import figures
from marey.papers.deaguiar2006.people import people
from marey.papers.deaguiar2006.times import runtime
from marey.papers.experiment import Effort, Experiment

EXPERIMENTS: Mapping[str, Callable[[Effort], Experiment]] = {
    "clusters": clusters,
    "people": people,
    "times": runtime,
    "commercial": commercial,
    "figures": figures,
}
