"""The Process of Motion Capture: Dealing with the Data, rebuilt."""

from collections.abc import Mapping

from marey.papers.bodenheimer1997 import layouts, lengths, poses
from marey.papers.frame import Run

EXPERIMENTS: Mapping[str, Run] = {
    "virtual": layouts.virtual_skeleton,
    "lengths": lengths.collarbones,
    "walk": poses.walking,
    "reach": poses.reaching,
}
