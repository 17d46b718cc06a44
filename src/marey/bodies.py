"""Rigid bodies moving through a take."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from marey.numerics import Bool, Float, Int, empty_array, geometry
from marey.numerics.procrustes import points_of_poses, poses_seen
from marey.report import Finding
from marey.take import Take

MarkerName = tuple[str, int]
"""Full label of a marker, and the number of earlier markers with the same label."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Bodies:
    """Rigid bodies moving through a take, one coordinate frame each.

    Optical markers reach this type through `segment`; a magnetic sensor is a body
    already. From here on the two kinds of capture are the same problem.
    """

    take: Take
    """The recording the bodies were found in."""

    names: tuple[str, ...]
    """One name per body, unique."""

    T_world_body: Float[np.ndarray, "frame body 4 4"]
    """Pose of each body in the world, in metres. NaN where the body was not seen."""

    determined: Bool[np.ndarray, " body"]
    """False for bodies of one or two markers, or of markers on a line, whose rotation
    about themselves the markers do not determine."""

    marker_body: Int[np.ndarray, " marker"]
    """Body of each marker; -1 = none."""

    shared: Bool[np.ndarray, "marker body"]
    """Every body a marker belongs to; a marker on a joint line may belong to two."""

    marker_confidence: Float[np.ndarray, " marker"]
    """Probability that `marker_body` is right, 0 to 1."""

    body_confidence: Float[np.ndarray, " body"]
    """Probability that the body is rigid, 0 to 1."""

    marker_offset: Float[np.ndarray, "marker 3"]
    """Position of each marker in the frame of its body, in metres; NaN without a
    body."""

    rms: Float[np.ndarray, " body"]
    """Root mean square residual of the rigid fit of each body's markers, in metres."""

    marker_noise: Float[np.ndarray, " estimated"] = empty_array(0)
    """Noise of each marker relative to the others of its body, one standard deviation
    per axis in metres; empty if it was not estimated."""

    keypoints: bool = False
    """Whether the points are joint centres: bodies that share a point rotate about
    it."""

    sensor_names: tuple[str, ...] = ()
    """6-DoF sensors on the bodies. Bodies without any marker are sensors, each by its
    own name, when left out."""

    sensor_body: Int[np.ndarray, " sensor"] = empty_array(0, dtype=np.int64)
    """Body of each sensor."""

    T_body_sensor: Float[np.ndarray, "sensor 4 4"] = empty_array(0, 4, 4)
    """Constant pose of each sensor in the frame of its body, in metres."""

    parents: Mapping[str, str] = field(default_factory=dict)
    """Parent of each body by name, if a marker map or the labels define it; else
    empty."""

    findings: tuple[Finding, ...] = ()
    """Findings of the segmentation: markers missing from a map, undetermined bodies."""

    def __post_init__(self) -> None:
        if not (self.sensor_names or self.shared.any()):
            n = len(self.names)
            object.__setattr__(self, "sensor_names", self.names)
            object.__setattr__(self, "sensor_body", np.arange(n))
            object.__setattr__(self, "T_body_sensor", np.tile(np.eye(4), (n, 1, 1)))

    def __repr__(self) -> str:
        return f"Bodies({len(self.names)} bodies of {self.take!r})"

    @property
    def is_mixed(self) -> bool:
        """Whether both markers and 6-DoF sensors are on the bodies."""
        return bool(self.sensor_names) and bool(self.shared.any())

    @property
    def seen(self) -> Bool[np.ndarray, "frame body"]:
        """Whether each body has a pose in each frame."""
        return poses_seen(self.T_world_body)

    @property
    def marker_names(self) -> tuple[MarkerName, ...]:
        """Name that identifies each marker in other takes."""
        used: Counter[str] = Counter()
        names = []
        for label in self.take.full_labels:
            names.append((label, used[label]))
            used[label] += 1
        return tuple(names)

    def rename(self, names: Sequence[str]) -> "Bodies":
        """Return the bodies with other names, also in parents and findings.

        Args:
            names: One per body, unique.
        """
        new = dict(zip(self.names, names, strict=True))
        parents = {new[child]: new[parent] for child, parent in self.parents.items()}
        findings = tuple(
            replace(
                finding.rename(new), subject=new.get(finding.subject, finding.subject)
            )
            for finding in self.findings
        )
        return replace(self, names=tuple(names), parents=parents, findings=findings)

    def align_axes(self, other: "Bodies") -> "Bodies":
        """Return the bodies with the body axes of another take.

        Both takes have the same bodies. The axes of a body are aligned by the markers
        that it has in both takes, or else by its sensors (Kabsch); a body with too few
        of either keeps its axes.
        """
        T, offset = self.T_world_body.copy(), self.marker_offset.copy()
        T_body_sensor = self.T_body_sensor.copy()
        markers = _marker_points(other), _marker_points(self)
        sensors = _sensor_points(other), _sensor_points(self)
        for body in np.flatnonzero(self.determined & other.determined).tolist():
            T_body_other = geometry.kabsch(*_common_points(*markers, body))
            if not np.isfinite(T_body_other).all():
                source, target = _common_points(*sensors, body)
                if np.array_equal(source, target):
                    continue
                T_body_other = geometry.kabsch(source, target)
            if np.isfinite(T_body_other).all():
                T_other_body = geometry.inverse(T_body_other)
                own, own_sensors = self.marker_body == body, self.sensor_body == body
                T[:, body] = T[:, body] @ T_body_other
                offset[own] = geometry.apply(T_other_body, offset[own])
                T_body_sensor[own_sensors] = T_other_body @ T_body_sensor[own_sensors]
        return replace(
            self, T_world_body=T, marker_offset=offset, T_body_sensor=T_body_sensor
        )


Points = dict[tuple[int, MarkerName], Float[np.ndarray, "_ 3"]]
"""Points in the axes of a body, by the body and the name of what they belong to."""


def _marker_points(bodies: Bodies) -> Points:
    """Return the marker offsets, in metres, by body and label."""
    names, owner = bodies.marker_names, bodies.marker_body.tolist()
    offset = bodies.marker_offset[:, None]
    return dict(zip(zip(owner, names, strict=True), offset, strict=True))


def _sensor_points(bodies: Bodies) -> Points:
    """Return four points of each sensor in its body, in metres, by body and name."""
    names, owner = bodies.sensor_names, bodies.sensor_body.tolist()
    keys = [(body, (name, 0)) for body, name in zip(owner, names, strict=True)]
    return dict(zip(keys, points_of_poses(bodies.T_body_sensor), strict=True))


def _common_points(
    a: Points, b: Points, body: int
) -> tuple[Float[np.ndarray, "point 3"], Float[np.ndarray, "point 3"]]:
    """Return the points of a body that both sets have, in each of them, in metres."""
    common = [key for key in a if key[0] == body and key in b]
    if not common:
        return np.zeros((0, 3)), np.zeros((0, 3))
    return (
        np.concatenate([a[key] for key in common]),
        np.concatenate([b[key] for key in common]),
    )
