"""Automatic Learning of Articulated Skeletons from 3D Marker Trajectories, rebuilt."""

from collections.abc import Callable, Mapping

from marey.papers._deaguiar_clusters import clusters
from marey.papers._deaguiar_cmu import commercial
from marey.papers._deaguiar_figures import figures
from marey.papers._deaguiar_people import people
from marey.papers._deaguiar_times import times
from marey.papers._experiment import Effort, Experiment

EXPERIMENTS: Mapping[str, Callable[[Effort], Experiment]] = {
    "clusters": clusters,
    "people": people,
    "times": times,
    "commercial": commercial,
    "figures": figures,
}
