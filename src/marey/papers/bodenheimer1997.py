"""The Process of Motion Capture: Dealing with the Data, rebuilt."""

from collections.abc import Callable, Mapping

from marey.papers._bodenheimer_lengths import lengths
from marey.papers._bodenheimer_poses import reaching, walking
from marey.papers._bodenheimer_virtual import layouts
from marey.papers._experiment import Effort, Experiment

EXPERIMENTS: Mapping[str, Callable[[Effort], Experiment]] = {
    "virtual": layouts,
    "lengths": lengths,
    "walk": walking,
    "reach": reaching,
}
