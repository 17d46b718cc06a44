"""Quality of a motion: marker residuals, contacts, foot skate and penetration."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from marey.articulated.tables import make_nodes
from marey.articulated.targets import TargetNames, match_targets
from marey.motion import Motion
from marey.numerics import geometry
from marey.pose.contact.ground_contacts import ground_contacts_of
from marey.take import Take

Array = np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class MotionMeasures:
    """Numbers of one motion; NaN where there is nothing to measure."""

    mean: float
    """Mean distance of markers from their model positions, in metres."""

    worst: float
    """Largest distance of a marker from its model position, in metres."""

    worst_marker: str
    """Label of that marker; empty if there is none."""

    worst_frame: int
    """Its frame; -1 if there is none."""

    plants: int
    """Number of contacts of the motion."""

    skate: float
    """Mean speed of points in contact (foot skate), in m/s."""

    depth: float
    """Largest depth of a bone's end below the ground (penetration), in metres."""


def measure_motion(motion: Motion, take: Take) -> MotionMeasures:
    """Return how well a motion fits its recording, and how its contacts hold.

    Args:
        motion: A motion of any method, with its contacts.
        take: The recording that it is from. Filled markers do not count.
    """
    residual_m, labels = marker_distances(motion, take)
    seen = residual_m[np.isfinite(residual_m)]
    frame, marker = -1, ""
    if len(seen):
        index = np.unravel_index(np.nanargmax(residual_m), residual_m.shape)
        frame, marker = int(index[0]), labels[index[1]]
    footing = ground_contacts_of(motion)
    return MotionMeasures(
        mean=float(seen.mean()) if len(seen) else np.nan,
        worst=float(seen.max()) if len(seen) else np.nan,
        worst_marker=marker,
        worst_frame=frame,
        plants=len(footing.plants),
        skate=footing.skate(motion),
        depth=footing.penetration(motion) if footing.points.is_sole.any() else np.nan,
    )


def marker_distances(
    motion: Motion, take: Take
) -> tuple[Float[Array, "frame marker"], tuple[str, ...]]:
    """Return distances of markers from their model positions, and the labels.

    In metres, NaN where unseen; of the markers that skeleton and take both have.
    """
    skeleton = motion.skeleton
    if not skeleton.marker_labels or not take.labels:
        return np.zeros((motion.n_frames, 0)), ()
    nodes = make_nodes(skeleton, limits=False)
    matches = match_targets(skeleton, nodes, TargetNames.of(take))
    joint = skeleton.marker_joint[matches.marker]
    model = geometry.apply(
        motion.T_world_joint()[:, joint], skeleton.marker_offset[matches.marker]
    )
    measured = take.measured.points[:, matches.column]
    labels = tuple(skeleton.marker_labels[m] for m in matches.marker)
    return np.asarray(np.linalg.norm(model - measured, axis=-1)), labels


def sensor_deviations(
    motion: Motion, take: Take
) -> dict[str, tuple[Float[Array, "frame 3"], Float[Array, "frame 3"]]]:
    """Return how far sensors are from their model poses, by name.

    Positions in metres and rotation vectors in radians, in the sensor's axes, NaN where
    it is not seen; of the sensors that skeleton and take both have.
    """
    skeleton, T_world_joint = motion.skeleton, motion.T_world_joint()
    deviations = {}
    for k, name in enumerate(skeleton.sensor_names):
        if name not in take.sensor_names:
            continue
        T = T_world_joint[:, skeleton.sensor_joint[k]] @ skeleton.T_joint_sensor[k]
        measured = take.T_world_sensor[:, take.sensor_names.index(name)]
        T = geometry.inverse(T) @ measured
        T[~np.isfinite(T).all(axis=(1, 2))] = np.nan
        deviations[name] = T[:, :3, 3], geometry.rotation_log(T[:, :3, :3])
    return deviations
