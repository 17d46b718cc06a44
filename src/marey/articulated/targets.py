"""Targets of a kinematic tree: the markers and sensors that skeleton and take share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from marey.articulated.tables import Nodes
from marey.errors import DataError, OptionError
from marey.numerics import Array, Float, Int
from marey.numerics.thresholds import MIN_POSE_POINTS, MOST
from marey.skeleton import Skeleton
from marey.take import Take, match_labels

if TYPE_CHECKING:
    from marey.articulated.kinematics_kernel import KinematicTree
    from marey.articulated.targets_kernel import Targets

Recording = tuple[Float[Array, "frame column _"], Float[Array, "frame sensor 4 4"]]
"""Positions of markers in metres and poses of sensors, NaN where unseen. A fourth
component of a marker is its confidence, the factor of its weight in that frame."""

NO_SENSORS = np.zeros((0, 4, 4))
"""The poses of no sensors, in one frame."""


def as_c_float64(values: Array) -> Array:
    """Return values in the layout of the compiled kernels; a copy only if needed."""
    return np.require(values, dtype=float, requirements=["C", "W"])


def points_with_confidence(take: Take) -> Float[Array, "frame marker _"]:
    """Return the positions of markers, with their confidences if there are any.

    Information is proportional to confidence: a point of confidence c has the variance
    of a sure one divided by c. Points without a confidence are sure.
    """
    if not np.isfinite(take.confidence).any():
        return take.points
    factor = np.clip(np.where(np.isnan(take.confidence), 1.0, take.confidence), 0, 1)
    return np.concatenate([take.points, factor[..., None]], axis=-1)


def recording_of(take: Take) -> Recording:
    """Return the recording of a take in the layout of the compiled kernels."""
    points = points_with_confidence(take)
    return as_c_float64(points), as_c_float64(take.T_world_sensor)


class TargetNames(NamedTuple):
    """Labels of the markers and names of the sensors of a recording."""

    labels: Sequence[str]
    full_labels: Sequence[str]
    sensors: Sequence[str]

    @classmethod
    def of(cls, take: Take) -> "TargetNames":
        """Return the names of a take."""
        return cls(take.labels, take.full_labels, take.sensor_names)

    @classmethod
    def of_stream(
        cls, labels: Sequence[str], sensor_names: Sequence[str]
    ) -> "TargetNames":
        """Return the names of a stream, whose labels have no subjects."""
        return cls(tuple(labels), tuple(labels), tuple(sensor_names))

    def check_frame(
        self,
        points: Float[Array, "marker 3"],
        T_world_sensor: Float[Array, "sensor 4 4"],
    ) -> None:
        """Raise a DataError if a frame has another number of markers or sensors."""
        if (len(points), len(T_world_sensor)) != (len(self.labels), len(self.sensors)):
            raise DataError(
                "frame",
                found=f"{len(points)} markers, {len(T_world_sensor)} sensors",
                needed=f"{len(self.labels)} markers, {len(self.sensors)} sensors",
            )


@dataclass(frozen=True, slots=True, eq=False)
class TargetMatches:
    """The markers and sensors of a skeleton that a take has, sorted by node."""

    marker: Int[Array, " marker"]
    """Index among the markers of the skeleton."""

    column: Int[Array, " marker"]
    """Index of the same marker in the take."""

    sensor: Int[Array, " sensor"]
    """Index among the sensors of the skeleton."""

    sensor_column: Int[Array, " sensor"]
    """Index of the same sensor in the take."""


def match_targets(
    skeleton: Skeleton, nodes: Nodes, names: TargetNames
) -> TargetMatches:
    """Return the targets that skeleton and take share, by label (`match_labels`).

    Raises:
        DataError: If nothing matches, or a label matches several markers.
    """
    marker_column = match_labels(
        skeleton.marker_labels, names.full_labels, names.labels
    )
    sensor_column = match_labels(skeleton.sensor_names, names.sensors)
    marker = _matched_by_node(marker_column, nodes.node_of_joint[skeleton.marker_joint])
    sensor = _matched_by_node(sensor_column, nodes.node_of_joint[skeleton.sensor_joint])
    if not len(marker) and not len(sensor):
        expected = (*skeleton.marker_labels, *skeleton.sensor_names)
        raise DataError(
            "pose",
            found=", ".join((*names.labels, *names.sensors)) or "no markers or sensors",
            needed=f"some of {', '.join(expected) or 'the markers of a skeleton'}",
        )
    return TargetMatches(marker, marker_column[marker], sensor, sensor_column[sensor])


def _matched_by_node(
    column: Int[Array, " item"], node: Int[Array, " item"]
) -> Int[Array, " matched"]:
    """Return the items that a take has, sorted by node."""
    order = np.argsort(node, kind="stable")
    return order[column[order] >= 0]


def make_targets(
    skeleton: Skeleton,
    nodes: Nodes,
    matches: TargetMatches,
    weight: Float[Array, " marker"],
    sensor_weight: Float[Array, "sensor 2"],
) -> "Targets":
    """Return the table of targets that the kernels read, for plain least squares.

    Args:
        skeleton: Its markers and sensors, with their offsets in metres.
        nodes: Kinematic tree of the skeleton.
        matches: Which of them the recording has.
        weight: Inverse variance of each marker, in 1/m^2.
        sensor_weight: Inverse variances of the position (1/m^2) and of the rotation
            (1/rad^2) of each sensor.
    """
    from marey.articulated.targets_kernel import Targets  # numba is slow to import

    joint = skeleton.marker_joint[matches.marker]
    sensor_joint = skeleton.sensor_joint[matches.sensor]
    T_joint_sensor = skeleton.T_joint_sensor[matches.sensor]
    n = len(nodes.tree.parent)
    return Targets(
        start=start_of_nodes(nodes.node_of_joint[joint], n),
        column=matches.column,
        position=nodes.joint_position[joint] + skeleton.marker_offset[matches.marker],
        weight=weight,
        softness=np.zeros(len(joint)),
        sensor_start=start_of_nodes(nodes.node_of_joint[sensor_joint], n),
        sensor_column=matches.sensor_column,
        sensor_position=nodes.joint_position[sensor_joint] + T_joint_sensor[:, :3, 3],
        sensor_rotation=np.ascontiguousarray(T_joint_sensor[:, :3, :3]),
        sensor_weight=sensor_weight,
        sensor_softness=np.zeros((len(sensor_joint), 2)),
        n_vectors=T_joint_sensor.shape[-1] - 1,
    )


def start_of_nodes(node: Int[Array, " item"], n: int) -> Int[Array, " start"]:
    """Return where the items of each of n nodes begin, for items sorted by node."""
    count = np.bincount(node, minlength=n)
    return np.concatenate([[0], np.cumsum(count)]).astype(np.int64)


def node_of_target(start: Int[Array, " start"]) -> Int[Array, " item"]:
    """Return the node of every target; the inverse of `start_of_nodes`."""
    return np.repeat(np.arange(len(start) - 1), np.diff(start))


def target_weights(
    weights: Mapping[str, float], skeleton: Skeleton, matches: TargetMatches
) -> tuple[Float[Array, " marker"], Float[Array, " sensor"]]:
    """Return the caller's weight of every marker and sensor; 1 where none is given.

    The weight of a label comes before that of its joint.

    Raises:
        OptionError: If a weight is negative, or names nothing of the skeleton.
    """
    names = {*skeleton.marker_labels, *skeleton.sensor_names, *skeleton.names}
    unknown = [name for name in weights if name not in names]
    bad = [name for name, weight in weights.items() if not 0.0 <= weight < np.inf]
    if unknown or bad:
        raise OptionError(
            "weights",
            found={name: weights[name] for name in unknown or bad},
            needed="weights of 0 or more, of the skeleton's markers, sensors or joints",
        )

    def weights_of(
        items: Array, item_names: Sequence[str], joints: Array
    ) -> Float[Array, " item"]:
        """Return the weight of each item: its own, or that of its joint, or 1."""
        labels = [(item_names[i], skeleton.names[joints[i]]) for i in items]
        given = [weights.get(name, weights.get(joint, 1.0)) for name, joint in labels]
        return np.array(given, dtype=float)

    return (
        weights_of(matches.marker, skeleton.marker_labels, skeleton.marker_joint),
        weights_of(matches.sensor, skeleton.sensor_names, skeleton.sensor_joint),
    )


def frame_order(matches: TargetMatches, recording: Recording) -> Int[Array, " frame"]:
    """Return all frames: from the first good one to the end, then back to the start.

    Raises:
        DataError: If no target of the skeleton is visible in any frame.
    """
    count = count_visible(matches, recording)
    if not count.any():
        raise DataError(
            "pose",
            found="no frame in which a marker or sensor of the skeleton is seen",
            needed="at least one",
        )
    first = int(np.argmax(count >= MOST * count.max()))
    frames = np.arange(len(count))
    return np.concatenate([frames[first:], frames[:first][::-1]])


def split_order(
    order: Int[Array, " frame"],
) -> tuple[Int[Array, " some"], Int[Array, " others"]]:
    """Return the frames from the first good one on, and those before it backwards."""
    n_forward = len(order) - int(order[0])
    return order[:n_forward], order[n_forward:]


def count_visible(matches: TargetMatches, recording: Recording) -> Int[Array, " frame"]:
    """Return the number of visible targets of every frame, in markers."""
    points, sensors = recording
    n_markers = np.isfinite(points[:, matches.column, 0]).sum(axis=1)
    n_sensors = np.isfinite(sensors[:, matches.sensor_column, 0, 0]).sum(axis=1)
    return np.asarray(n_markers + MIN_POSE_POINTS * n_sensors)


def marker_residuals(
    targets: "Targets",
    tree: "KinematicTree",
    points: Float[Array, "frame column _"],
    root: Float[Array, "frame 3"],
    q: Float[Array, "frame node 4"],
) -> Float[Array, "frame marker"]:
    """Return the distance of every marker from its model position, in metres.

    NaN where the marker is not seen.
    """
    # numba is slow to import
    from marey.articulated.targets_kernel import write_marker_residuals

    residual_m = np.empty((len(q), len(targets.column)))
    points, root, q = map(as_c_float64, (points, root, q))
    write_marker_residuals(tree, targets, points, root, q, residual_m)
    return residual_m
