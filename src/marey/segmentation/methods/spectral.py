"""Bodies of unlabelled markers by spectral clustering, after DeAguiar2006."""

from marey.bodies import Bodies
from marey.segmentation.contract import SegmentationTask, Suitability
from marey.segmentation.methods.overlap import bodies_from_clusters


def check_suitability(task: SegmentationTask) -> Suitability:
    """Return that "auto" never uses the method: "overlap" includes it."""
    return Suitability(suits=False)


def find_bodies(task: SegmentationTask) -> tuple[Bodies, ...]:
    """Return the bodies of all takes, see `marey.segmentation.clusters.spectral`."""
    return bodies_from_clusters(task, "spectral")
