"""The Process of Motion Capture: Dealing with the Data, rebuilt."""

from collections.abc import Callable, Mapping

from marey.papers.bodenheimer1997.lengths import lengths
from marey.papers.bodenheimer1997.poses import reaching, walking
from marey.papers.bodenheimer1997.virtual import layouts
from marey.papers.experiment import Effort, Experiment

EXPERIMENTS: Mapping[str, Callable[[Effort], Experiment]] = {
    "virtual": layouts,
    "lengths": lengths,
    "walk": walking,
    "reach": reaching,
}
