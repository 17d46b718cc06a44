"""How well a motion fits its recording, and how it stands."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from marey.articulated.tables import nodes_of
from marey.articulated.targets import worn
from marey.motion import Motion
from marey.numerics import geometry
from marey.pose.contact.footing import footing_of
from marey.take import Take

Array = np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class Measures:
    """Numbers of one motion; NaN where there is nothing to measure."""

    mean: float
    """Distance of markers from their places on the body, in metres."""

    worst: float
    """The largest, in metres."""

    worst_marker: str
    worst_frame: int
    """Where that is; -1 when there is none."""

    plants: int
    """Contacts that the motion has."""

    skate: float
    """Mean speed of planted points, in m/s."""

    depth: float
    """How far the end of a bone is below the ground at worst, in metres."""


def measured(motion: Motion, take: Take) -> Measures:
    """Return how well a motion fits its recording, and how it stands.

    Args:
        motion: A motion of any method; its contacts say where it stands.
        take: The recording that it is from. Markers that were filled do not count.
    """
    away, labels = marker_distances(motion, take)
    known = away[np.isfinite(away)]
    frame, marker = -1, -1
    if len(known):
        frame, marker = map(int, np.unravel_index(np.nanargmax(away), away.shape))
    footing = footing_of(motion)
    return Measures(
        mean=float(known.mean()) if len(known) else np.nan,
        worst=float(known.max()) if len(known) else np.nan,
        worst_marker=labels[marker] if len(known) else "",
        worst_frame=frame,
        plants=len(footing.plants),
        skate=footing.skate(motion),
        depth=footing.depth(motion) if footing.spots.sole.any() else np.nan,
    )


def marker_distances(
    motion: Motion, take: Take
) -> tuple[Float[Array, "frame marker"], tuple[str, ...]]:
    """Return how far markers are from their places on the body, and their labels.

    In metres, NaN where unseen; of the markers that skeleton and take both have.
    """
    skeleton = motion.skeleton
    if not skeleton.marker_labels or not take.labels:
        return np.zeros((motion.n_frames, 0)), ()
    have = worn(
        skeleton,
        nodes_of(skeleton, limits=False),
        take.labels,
        take.full_labels,
        take.sensor_names,
    )
    joint = skeleton.marker_joint[have.marker]
    on_body = geometry.apply(
        motion.T_world_joint()[:, joint], skeleton.marker_offset[have.marker]
    )
    seen = take.measured.points[:, have.column]
    labels = tuple(skeleton.marker_labels[m] for m in have.marker)
    return np.asarray(np.linalg.norm(on_body - seen, axis=-1)), labels
