"""Automatic Learning of Articulated Skeletons from 3D Marker Trajectories, rebuilt."""

from collections.abc import Mapping

from marey.papers.deaguiar2006 import character, clusters, people, robots
from marey.papers.frame import Run

EXPERIMENTS: Mapping[str, Run] = {
    "clusters": clusters.clustering,
    "people": people.constant_bones,
    "times": people.runtime,
    "commercial": people.commercial,
    "figures": robots.robot_and_snowman,
    "character": character.character,
}
