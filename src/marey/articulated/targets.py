"""Which markers and sensors of a take belong to a skeleton, and where they sit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int

from marey.articulated.tables import Nodes
from marey.errors import DataError, OptionError
from marey.skeleton import Skeleton
from marey.take import match_labels

if TYPE_CHECKING:
    from marey.articulated.kinematics_kernel import Tree
    from marey.articulated.targets_kernel import Targets


@dataclass(frozen=True, slots=True, eq=False)
class Worn:
    """The skeleton's markers and sensors that a take has, node after node."""

    marker: Int[np.ndarray, " marker"]
    """Number among the skeleton's markers."""

    column: Int[np.ndarray, " marker"]
    """Number among the take's."""

    sensor: Int[np.ndarray, " sensor"]
    sensor_column: Int[np.ndarray, " sensor"]


def worn(
    skeleton: Skeleton,
    nodes: Nodes,
    labels: Sequence[str],
    full_labels: Sequence[str],
    sensor_names: Sequence[str],
) -> Worn:
    """Return what a take has of a skeleton, matched by label (`match_labels`).

    Raises:
        DataError: If nothing matches, or a label matches several markers.
    """
    marker_column = match_labels(skeleton.marker_labels, full_labels, labels)
    sensor_column = match_labels(skeleton.sensor_names, sensor_names)
    marker = _by_node(marker_column, nodes.of_joint[skeleton.marker_joint])
    sensor = _by_node(sensor_column, nodes.of_joint[skeleton.sensor_joint])
    if not len(marker) and not len(sensor):
        mine = (*skeleton.marker_labels, *skeleton.sensor_names)
        raise DataError(
            "pose",
            found=", ".join((*labels, *sensor_names)) or "no markers or sensors",
            needed=f"some of {', '.join(mine) or 'the markers of a skeleton'}",
        )
    return Worn(marker, marker_column[marker], sensor, sensor_column[sensor])


def _by_node(
    column: Int[np.ndarray, " item"], node: Int[np.ndarray, " item"]
) -> Int[np.ndarray, " worn"]:
    """Return the items that a take has, node after node."""
    order = np.argsort(node, kind="stable")
    return order[column[order] >= 0]


def targets_of(
    skeleton: Skeleton,
    nodes: Nodes,
    worn: Worn,
    weight: Float[np.ndarray, " marker"],
    sensor_weight: Float[np.ndarray, "sensor 2"],
) -> "Targets":
    """Return the table of targets that the kernels read, without robust scales."""
    from marey.articulated.targets_kernel import Targets  # numba is slow to import

    joint = skeleton.marker_joint[worn.marker]
    sensor_joint = skeleton.sensor_joint[worn.sensor]
    T = skeleton.T_joint_sensor[worn.sensor]
    n = len(nodes.tree.parent)
    return Targets(
        start=_starts(nodes.of_joint[joint], n),
        column=worn.column,
        place=nodes.place[joint] + skeleton.marker_offset[worn.marker],
        weight=weight,
        soft=np.zeros(len(joint)),
        sensor_start=_starts(nodes.of_joint[sensor_joint], n),
        sensor_column=worn.sensor_column,
        sensor_place=nodes.place[sensor_joint] + T[:, :3, 3],
        sensor_turn=np.ascontiguousarray(T[:, :3, :3]),
        sensor_weight=sensor_weight,
        sensor_soft=np.zeros((len(sensor_joint), 2)),
    )


def _starts(node: Int[np.ndarray, " item"], n: int) -> Int[np.ndarray, " start"]:
    count = np.bincount(node, minlength=n)
    return np.concatenate([[0], np.cumsum(count)]).astype(np.int64)


def owners(start: Int[np.ndarray, " start"]) -> Int[np.ndarray, " item"]:
    """Return the node of every target, from where those of each node begin."""
    return np.repeat(np.arange(len(start) - 1), np.diff(start))


def given_weights(
    weights: Mapping[str, float], skeleton: Skeleton, worn: Worn
) -> tuple[Float[np.ndarray, " marker"], Float[np.ndarray, " sensor"]]:
    """Return the caller's weight of every marker and sensor, 1 where none is given.

    Raises:
        OptionError: If a weight is below zero, or names nothing of the skeleton.
    """
    known = {*skeleton.marker_labels, *skeleton.sensor_names, *skeleton.names}
    strange = [name for name in weights if name not in known]
    bad = [name for name, w in weights.items() if not 0.0 <= w < np.inf]
    if strange or bad:
        raise OptionError(
            "weights",
            found={name: weights[name] for name in strange or bad},
            needed="weights of 0 or more, of the skeleton's markers, sensors or joints",
        )
    own = [(skeleton.marker_labels[i], skeleton.marker_joint[i]) for i in worn.marker]
    mine = [(skeleton.sensor_names[i], skeleton.sensor_joint[i]) for i in worn.sensor]
    marker, sensor = (
        np.array(
            [
                float(weights.get(label, weights.get(skeleton.names[joint], 1.0)))
                for label, joint in some
            ]
        ).reshape(-1)
        for some in (own, mine)
    )
    return marker, sensor


def frame_order(
    worn: Worn,
    points: Float[np.ndarray, "frame column 3"],
    sensors: Float[np.ndarray, "frame sensor 4 4"],
) -> Int[np.ndarray, " frame"]:
    """Return the frames from the first good one onward, then those before, back.

    Raises:
        DataError: If nothing of the skeleton is ever seen.
    """
    count = _count_seen(worn, points, sensors)
    if not count.any():
        raise DataError(
            "pose",
            found="no frame in which a marker or sensor of the skeleton is seen",
            needed="at least one",
        )
    # Most of what is ever seen is enough; the very best may come late.
    first = int(np.argmax(count >= 0.9 * count.max()))
    frames = np.arange(len(count))
    return np.concatenate([frames[first:], frames[:first][::-1]])


def frames_seen(
    worn: Worn,
    points: Float[np.ndarray, "frame column 3"],
    sensors: Float[np.ndarray, "frame sensor 4 4"],
) -> Int[np.ndarray, " seen"]:
    """Return the frames in which anything of the skeleton is seen."""
    return np.flatnonzero(_count_seen(worn, points, sensors))


def _count_seen(
    worn: Worn, points: np.ndarray, sensors: np.ndarray
) -> Int[np.ndarray, " frame"]:
    """Return how much every frame sees; a sensor is worth three markers."""
    seen = np.isfinite(points[:, worn.column, 0]).sum(axis=1)
    posed = np.isfinite(sensors[:, worn.sensor_column, 0, 0]).sum(axis=1)
    return np.asarray(seen + 3 * posed)


def residuals(
    targets: "Targets",
    tree: "Tree",
    points: Float[np.ndarray, "frame column 3"],
    root: Float[np.ndarray, "frame 3"],
    q: Float[np.ndarray, "frame node 4"],
) -> Float[np.ndarray, "frame marker"]:
    """Return how far every marker is from its place, in metres; NaN where unseen."""
    from marey.articulated.targets_kernel import distances  # numba is slow to import

    away = np.empty((len(q), len(targets.column)))
    plain = np.require(points, dtype=float, requirements=["C", "W"])
    distances(tree, targets, plain, root, q, away)
    return away
