"""Quality of a motion: marker residuals, contacts, foot skate and penetration."""

from dataclasses import dataclass

import numpy as np

from marey.articulated.tables import make_nodes
from marey.articulated.targets import TargetNames, match_targets
from marey.motion import Motion
from marey.numerics import Array, Float, geometry
from marey.pose.contact.ground import GroundContacts
from marey.pose.contact.ground_contacts import (
    ground_contacts_of,
    planted_spans,
)
from marey.pose.contact.points import MotionPoses
from marey.take import Take

Deviations = dict[str, tuple[Float[Array, "frame 3"], Float[Array, "frame 3"]]]


@dataclass(frozen=True, slots=True, eq=False)
class MotionMeasures:
    """Numbers of one motion; NaN where there is nothing to measure."""

    labels: tuple[str, ...]
    """The markers that skeleton and recording both have."""

    distances: Float[Array, "frame marker"]
    """Distances of these from their model positions, in metres; NaN where unseen."""

    sensors: Deviations
    """Deviations of sensors from their model poses; see `sensor_deviations`."""

    plants: dict[str, list[tuple[float, float]]]
    """Times between which each joint is planted, in seconds (`planted_spans`)."""

    skate: float
    """Mean speed of points in contact (foot skate), in m/s."""

    skate_of_joint: dict[str, float]
    """The same for each joint with contacts, in the order of its first one."""

    depth: float
    """Largest depth of a bone's end below the ground (penetration), in metres."""

    @property
    def seen(self) -> Float[Array, " distance"]:
        """The distances of markers where they were seen, in metres."""
        return np.asarray(self.distances[np.isfinite(self.distances)])

    @property
    def mean(self) -> float:
        """Mean distance of markers from their model positions, in metres."""
        return float(self.seen.mean()) if len(self.seen) else np.nan

    @property
    def worst(self) -> float:
        """Largest distance of a marker from its model position, in metres."""
        return float(self.seen.max()) if len(self.seen) else np.nan


def measure_motion(motion: Motion, take: Take) -> MotionMeasures:
    """Return how well a motion fits its recording, and how its contacts hold.

    Args:
        motion: A motion of any method, with its contacts.
        take: The recording that it is from. Filled markers do not count.
    """
    poses = MotionPoses(motion)
    distances, labels = marker_distances(motion, take, poses)
    footing = ground_contacts_of(motion, poses)
    has_soles = footing.points.is_sole.any()
    return MotionMeasures(
        labels=labels,
        distances=distances,
        sensors=sensor_deviations(motion, take, poses),
        plants=planted_spans(motion.contacts),
        skate=footing.skate(motion, poses),
        skate_of_joint=_skate_of_joints(motion, footing, poses),
        depth=footing.penetration(motion, poses) if has_soles else np.nan,
    )


def _skate_of_joints(
    motion: Motion, footing: GroundContacts, poses: MotionPoses
) -> dict[str, float]:
    """Return the mean speed of each joint's points in contact, in m/s."""
    speed, point = footing.planted_speeds(motion, poses)
    names = footing.points.names
    skate = {}
    for joint in dict.fromkeys(contact.joint for contact in motion.contacts):
        points = [k for k, name in enumerate(names) if name == joint]
        own = speed[np.isin(point, points)]
        skate[joint] = float(np.nanmean(own)) if len(own) else np.nan
    return skate


def marker_distances(
    motion: Motion, take: Take, poses: MotionPoses | None = None
) -> tuple[Float[Array, "frame marker"], tuple[str, ...]]:
    """Return distances of markers from their model positions, and the labels.

    In metres, NaN where unseen; of the markers that skeleton and take both have.

    Args:
        motion: A motion of any method.
        take: The recording that it is from. Filled markers do not count.
        poses: The poses of the motion, if they are at hand.
    """
    skeleton = motion.skeleton
    if not skeleton.marker_labels or not take.labels:
        return np.zeros((motion.n_frames, 0)), ()
    nodes = make_nodes(skeleton, limits=False)
    matches = match_targets(skeleton, nodes, TargetNames.of(take))
    joint = skeleton.marker_joint[matches.marker]
    offset = skeleton.marker_offset[matches.marker]
    measured = take.measured.points
    distances = np.empty((motion.n_frames, len(joint)))
    for frames, T in (poses or MotionPoses(motion)).blocks():
        model = geometry.apply_selected(T, joint, offset)
        between = model - measured[frames][:, matches.column]
        distances[frames] = geometry.lengths(between)
    return distances, tuple(skeleton.marker_labels[m] for m in matches.marker)


def sensor_deviations(motion: Motion, take: Take, poses: MotionPoses) -> Deviations:
    """Return how far sensors are from their model poses, by name.

    Positions in metres and rotation vectors in radians, in the sensor's axes, NaN where
    it is not seen; of the sensors that skeleton and take both have.

    Args:
        motion: A motion of any method.
        take: The recording that it is from.
        poses: The poses of the motion.
    """
    skeleton = motion.skeleton
    deviations: Deviations = {}
    if not skeleton.sensor_names:
        return deviations
    T_world_joint = poses.map(lambda T: T[:, skeleton.sensor_joint])
    for k, name in enumerate(skeleton.sensor_names):
        if name not in take.sensor_names:
            continue
        T = T_world_joint[:, k] @ skeleton.T_joint_sensor[k]
        measured = take.T_world_sensor[:, take.sensor_names.index(name)]
        T = geometry.inverse(T) @ measured
        T[~np.isfinite(T).all(axis=(1, 2))] = np.nan
        deviations[name] = T[:, :3, 3], geometry.rotation_log(T[:, :3, :3])
    return deviations
