"""Fast Skeleton Estimation using the Generalized Delogne-Kåsa method, rebuilt."""

from collections.abc import Callable, Mapping

from marey.papers.experiment import Effort, Experiment
from marey.papers.knight2007.arcs import caps, circles
from marey.papers.knight2007.joints import hierarchy, hip
from marey.papers.knight2007.sphere import monte_carlo, speed

EXPERIMENTS: Mapping[str, Callable[[Effort], Experiment]] = {
    "monte-carlo": monte_carlo,
    "speed": speed,
    "caps": caps,
    "circles": circles,
    "hip": hip,
    "hierarchy": hierarchy,
}
