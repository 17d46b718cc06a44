"""Fast Skeleton Estimation using the Generalized Delogne-Kåsa method, rebuilt."""

from collections.abc import Mapping

from marey.papers.frame import Run
from marey.papers.knight2007 import arcs, joints, performers, sphere

EXPERIMENTS: Mapping[str, Run] = {
    "monte-carlo": sphere.monte_carlo,
    "speed": sphere.speed,
    "caps": arcs.caps,
    "circles": arcs.circles,
    "hip": joints.hip,
    "hierarchy": joints.hierarchy,
    "performers": performers.performers,
}
