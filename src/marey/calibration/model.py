r"""The kinematic model of a subject, its unknown parameters, and its poses.

The position of marker k on segment s in a frame is

.. math:: x_k = t + \sum_{j \in \mathrm{path}(s)} R_{p(j)}\, o_j + R_s\, m_k

with the position t of the root, one rotation R of every segment in the world, the
offset o of each joint in its parent p, and the offset m of the marker in its segment.
The parameters o, m and the joint axes are unknowns of the subject; t and all R are
unknowns of each frame.

Segments are sorted depth first. The columns of a segment and of all its descendants
are then adjacent.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from marey.articulated.tables import pad_lists
from marey.numerics import Array, Bool, Float, Int
from marey.numerics.procrustes import SENSOR_POINTS
from marey.numerics.thresholds import FEW, MARKER_NOISE_M, OUTLIER_SD
from marey.tree import children_of

if TYPE_CHECKING:
    from marey.calibration.solver.frame_equations_kernel import (
        CalibrationTables,
        KernelParameters,
    )


STUDENT_T_DOF = 8.0
"""Degrees of freedom of Student's t, the distribution of marker residuals. Higher gives
outliers more weight. Chosen by hand."""

FIRST_NOISE_M = OUTLIER_SD * MARKER_NOISE_M
"""Scale of a marker before it is estimated, in metres."""

MIN_NOISE_M, MIN_SKIN_NOISE_M = FEW**2 * MARKER_NOISE_M, 2e-4
"""Smallest scale of a marker on a rigid body, in metres: no camera is more accurate;
and of one on skin. A knee is no perfect joint: where the markers of a person are exact,
lower would move its centre along its axis (Arnold's synthetic walk: 9.7 mm off instead
of 4.9), higher leaves ankles and hips to the prior. Chosen on that walk."""

MECHANICAL_HINGE_SD_RAD = 0.005
"""Standard deviation of the axis of a mechanical hinge in one frame, in radians. Higher
lets a hinge leave its axis. Chosen by hand."""

SOFT_HINGE_SD_RAD = 0.1
"""Standard deviation of a person's knees and elbows from a hinge and a universal joint
in one frame, and of their axes from the perpendicular of their bones, in radians.
Higher gives them more freedom. Chosen by hand."""

KNEE_CENTER_SD_M = 0.004
"""Standard deviation of the motion of the centre of a person's knee with the sine and
with the cosine of its flexion (femoral rollback), along each axis, in metres. Higher
gives larger standard deviations of thigh and shank, and trusts landmarks of the knee
more where it bends about one axis. Chosen on the computed walks of Arnold: the thighs
of one are 3.8 mm off, those of the other 4.0 mm."""

MEAN_STATURE_M = 1.738
"""Mean height of the women and men of de Leva 1996, in metres, who also have the
proportions of `BONE_OF_STATURE`; only bone lengths are compared with it."""


@dataclass(frozen=True, slots=True)
class AxisConstraint:
    """A soft constraint on the rotation of a joint, applied in every frame."""

    child: int
    """The segment below the joint."""

    kind: Literal["hinge", "universal"]
    """A hinge has one axis that is fixed in both segments. A universal joint has one
    axis fixed in the parent, perpendicular to one fixed in the child."""

    sd: float
    """Standard deviation of the deviation from that in one frame, in radians."""

    center_sd: float = 0.0
    """Standard deviation of the motion of the centre with the angle about the axis, in
    metres; 0 for a centre that is fixed in both segments."""


@dataclass(frozen=True, eq=False)
class KinematicModel:
    """Segments sorted depth first, and markers sorted by segment."""

    names: tuple[str, ...]
    """Name of each segment."""

    parent: Int[Array, " segment"]
    labels: tuple[str, ...]
    """Label of each marker."""

    marker_segment: Int[Array, " marker"]
    """The segment of each marker, ascending."""

    axes: tuple[AxisConstraint, ...] = ()
    sensor_points: frozenset[int] = frozenset()
    """Which markers are points of 6-DoF sensors."""

    @cached_property
    def freedom(self) -> Float[Array, " marker"]:
        """Independent measurements per coordinate: 1 for a marker.

        The points of a sensor have twelve coordinates, but only six are measured.
        """
        freedom = np.ones(len(self.labels))
        freedom[list(self.sensor_points)] = 6 / SENSOR_POINTS.size
        return freedom

    @cached_property
    def first_marker(self) -> Int[Array, " segment_and_one"]:
        """First marker of each segment; one more at the end."""
        return np.searchsorted(self.marker_segment, np.arange(len(self.names) + 1))

    @cached_property
    def columns(self) -> "ParameterColumns":
        """The column of each parameter."""
        return _parameter_columns(self)

    @cached_property
    def moving_centers(self) -> tuple[int, ...]:
        """Numbers of the axes of joints whose centre moves."""
        return tuple(n for n, axis in enumerate(self.axes) if axis.center_sd > 0.0)

    @cached_property
    def markers_below_moving_centers(self) -> Bool[Array, "moving marker"]:
        """The markers that each moving centre displaces."""
        child = [self.axes[n].child for n in self.moving_centers]
        column = self.columns.marker_offset[:, 0]
        first = self.columns.subtree_start[child, None]
        end = self.columns.subtree_end[child, None]
        return np.asarray((column >= first) & (column < end))

    @cached_property
    def tables(self) -> "CalibrationTables":
        """The model as the kernels read it."""
        return _calibration_tables(self)

    @property
    def marker_segment_names(self) -> list[str]:
        """Name of each marker's segment."""
        return [self.names[i] for i in self.marker_segment]

    def children(self, segment: int) -> list[int]:
        """Return the segments whose parent is this one."""
        return children_of(self.parent, segment)

    def index(self, name: str) -> int:
        """Return the number of a segment, -1 if there is none of this name."""
        return self.names.index(name) if name in self.names else -1

    def markers_of(self, segment: int) -> list[int]:
        """Return the markers of a segment."""
        first = self.first_marker
        return list(range(int(first[segment]), int(first[segment + 1])))


@dataclass(frozen=True, slots=True, eq=False)
class ParameterColumns:
    """The column of each parameter in the equations of one session."""

    joint_offset: Int[Array, "segment 3"]
    """Columns by segment; -1 for the root."""

    marker_offset: Int[Array, "marker 3"]
    axis: Int[Array, "axis 2 3"]
    """Columns of the axis in the parent, then in the child."""

    subtree_start: Int[Array, " segment"]
    """First column of a segment and its descendants."""

    subtree_end: Int[Array, " segment"]
    """One after the last column of a segment and its descendants."""

    count: int

    @property
    def shared(self) -> Int[Array, " shared"]:
        """Columns of joint offsets and axes, which all sessions share."""
        return np.sort(np.append(self.joint_offset[1:], self.axis))

    @property
    def per_session(self) -> Int[Array, " per_session"]:
        """Columns of marker offsets, which each session has for itself."""
        return self.marker_offset.ravel()


@dataclass(frozen=True, slots=True, eq=False)
class ModelParameters:
    """Values of the parameters of a model, and of the noise of its markers."""

    model: KinematicModel
    joint_offset: Float[Array, "segment 3"]
    """Each joint in its parent's frame, in metres; the root's is not read."""

    marker_offset: Float[Array, "session marker 3"]
    """Each marker in its segment's frame, in metres."""

    axis: Float[Array, "axis 2 3"]
    """Unit axis of each constraint in the parent's frame, then in the child's."""

    marker_noise: Float[Array, "session marker"]
    """Noise of each marker along one axis, in metres."""

    mean_rotation: Float[Array, "segment 3 3"]
    """Mean rotation of each segment relative to its parent over all frames."""

    center_motion: Float[Array, "moving 2 3"]
    """Displacement of each moving centre in the parent's frame by sine and cosine of
    its angle, in metres."""

    stature: float = MEAN_STATURE_M
    """Height of the person, in metres; it connects the lengths of the bones."""

    tempering: Float[Array, "session marker"] | float = 1.0
    """Factor from the noise of a marker to its scale in the likelihood."""

    @staticmethod
    def initial(
        model: KinematicModel,
        joint_offset: Float[Array, "segment 3"],
        marker_offset: Float[Array, "marker 3"],
        axis: Float[Array, "axis 2 3"],
        n_sessions: int,
    ) -> "ModelParameters":
        """Return parameters with equal markers and noise in all sessions."""
        noise = FIRST_NOISE_M / np.sqrt(model.freedom)
        return ModelParameters(
            model,
            joint_offset,
            np.repeat(marker_offset[None], n_sessions, axis=0),
            axis,
            marker_noise=np.repeat(noise[None], n_sessions, axis=0),
            mean_rotation=np.repeat(np.eye(3)[None], len(joint_offset), axis=0),
            center_motion=np.zeros((len(model.moving_centers), 2, 3)),
        )

    def with_axes(
        self, axes: Sequence[AxisConstraint], values: Sequence[Float[Array, "2 3"]]
    ) -> "ModelParameters":
        """Return the parameters with other axis constraints, and the axes of these."""
        axis = np.array(values, dtype=float).reshape(-1, 2, 3)
        model = replace(self.model, axes=tuple(axes))
        still = np.zeros((len(model.moving_centers), 2, 3))
        return replace(self, model=model, axis=axis, center_motion=still)

    def of_session(self, session: int) -> "ModelParameters":
        """Return the parameters with the markers of one session alone."""
        noise = self.marker_noise[session][None]
        return replace(
            self,
            marker_offset=self.marker_offset[session][None],
            marker_noise=noise,
            tempering=self.marker_scale[session][None] / noise,
        )

    @property
    def marker_scale(self) -> Float[Array, "session marker"]:
        """Scale of Student's t of each marker along one axis, in metres."""
        return np.asarray(self.marker_noise * self.tempering)

    def forward(
        self,
        root_position: Float[Array, "frame 3"],
        R: Float[Array, "frame segment 3 3"],
    ) -> tuple[Float[Array, "frame segment 3"], Float[Array, "frame marker 3"]]:
        """Return joints and markers of session 0 in the world, in metres.

        Forward kinematics, the equation at the top of this module.
        """
        model = self.model
        joints = np.repeat(root_position[:, None], len(model.names), axis=1)
        for i, p in enumerate(model.parent[1:].tolist(), start=1):
            joints[:, i] = joints[:, p] + R[:, p] @ self.joint_offset[i]
        segment = model.marker_segment
        levers = np.einsum("fkij,kj->fki", R[:, segment], self.marker_offset[0])
        return joints, joints[:, segment] + levers

    def rest_markers(self) -> Float[Array, "marker 3"]:
        """Return the markers of session 0 with all segments unrotated, in metres."""
        R = np.broadcast_to(np.eye(3), (1, len(self.model.names), 3, 3))
        return np.asarray(self.forward(np.zeros((1, 3)), R)[1][0])

    @property
    def size(self) -> float:
        """Root mean square distance of the markers at rest from their mean."""
        rest = self.rest_markers()
        square = np.sum((rest - rest.mean(axis=0)) ** 2, axis=1)
        return float(np.sqrt(np.mean(square))) + MARKER_NOISE_M

    def for_kernel(self, session: int) -> "KernelParameters":
        """Return the parameters of one session as the kernels read them."""
        from marey.calibration.solver.frame_equations_kernel import KernelParameters

        return KernelParameters(
            self.joint_offset,
            self.marker_offset[session],
            self.axis,
            self.marker_scale[session],
            self.mean_rotation,
        )

    def vector(self, session: int) -> Float[Array, " column"]:
        """Return the parameters of one session in the order of `ParameterColumns`."""
        columns = self.model.columns
        values = np.zeros(columns.count)
        values[columns.joint_offset[1:]] = self.joint_offset[1:]
        values[columns.marker_offset] = self.marker_offset[session]
        values[columns.axis] = self.axis
        return values

    def add_step(
        self,
        steps: Float[Array, "session column"],
        stature_step: float,
        center_step: Float[Array, "moving 2 3"],
    ) -> "ModelParameters":
        """Return the parameters after a step; shared ones step as in session 0."""
        columns, shared_step = self.model.columns, steps[0]
        joint_offset = self.joint_offset.copy()
        joint_offset[1:] += shared_step[columns.joint_offset[1:]]
        return replace(
            self,
            joint_offset=joint_offset,
            marker_offset=self.marker_offset + steps[:, columns.marker_offset],
            axis=self.axis + shared_step[columns.axis],
            center_motion=self.center_motion + center_step,
            stature=self.stature + stature_step,
        )


@dataclass(frozen=True, slots=True, eq=False)
class FramePoses:
    """Sampled frames of one session, and the pose of the model in each."""

    points: Float[Array, "frame marker _"]
    """Measured markers in the order of the model, in metres; NaN where occluded. A
    fourth component is the confidence, the factor of the marker's weight."""

    root_position: Float[Array, "frame 3"]
    """Position of the root in the world, in metres."""

    R_world_segment: Float[Array, "frame segment 3 3"]

    @property
    def confidence(self) -> Float[Array, "_ _"]:
        """Factor of each marker's weight, by frame and marker; 1 if there is none."""
        return self.points[..., 3] if self.points.shape[-1] > 3 else np.ones((1, 1))


class CenterMotion(NamedTuple):
    """How the centres of joints move in the frames of one session."""

    angle: Float[Array, "frame moving 2"]
    """Sine and cosine of each joint's angle, minus their means over all frames."""

    R_world_parent: Float[Array, "frame moving 3 3"]

    def in_parent(
        self, center_motion: Float[Array, "moving 2 3"]
    ) -> Float[Array, "frame moving 3"]:
        """Return each centre minus its mean in the parent's frame, in metres."""
        return np.asarray(np.einsum("fna,nax->fnx", self.angle, center_motion))

    def in_world(
        self, center_motion: Float[Array, "moving 2 3"]
    ) -> Float[Array, "frame moving 3"]:
        """Return each centre minus its mean in the world, in metres."""
        in_parent = self.in_parent(center_motion)
        return np.asarray(np.einsum("fnxy,fny->fnx", self.R_world_parent, in_parent))


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """All unknowns of the bundle adjustment: parameters, and poses of each session."""

    parameters: ModelParameters
    poses: tuple[FramePoses, ...]
    motion: tuple[CenterMotion, ...] = ()
    """By session, how centres of joints move; () if all are fixed."""

    @property
    def model(self) -> KinematicModel:
        """The kinematic model."""
        return self.parameters.model

    @property
    def n_frames(self) -> int:
        """Sampled frames of all sessions."""
        return sum(len(session.points) for session in self.poses)


def _parameter_columns(model: KinematicModel) -> ParameterColumns:
    """Return the columns, segment by segment: joint offset, axes, marker offsets."""
    n, column = len(model.names), 0
    start, end = np.zeros(n, int), np.zeros(n, int)
    joint_offset = np.full((n, 3), -1)
    marker_offset = np.zeros((len(model.labels), 3), int)
    axis = np.zeros((len(model.axes), 2, 3), int)
    for i in range(n):
        start[i] = column
        vectors = [joint_offset[i]] if i > 0 else []
        for both, constraint in zip(axis, model.axes, strict=True):
            vectors += [*both] if constraint.child == i else []
        vectors += [marker_offset[k] for k in model.markers_of(i)]
        for vector in vectors:
            vector[:] = np.arange(column, column + 3)
            column += len(vector)
        end[i] = column
    for i in range(n - 1, 0, -1):
        p = int(model.parent[i])
        end[p] = max(end[p], end[i])
    return ParameterColumns(joint_offset, marker_offset, axis, start, end, column)


def _calibration_tables(model: KinematicModel) -> "CalibrationTables":
    """Return parents, paths, columns and constraints as arrays for the kernels."""
    from marey.calibration.solver.frame_equations_kernel import CalibrationTables

    columns = model.columns
    path, depth = _block_paths(model.parent)
    low = np.concatenate([[0], columns.subtree_start])
    high = np.concatenate([[columns.count], columns.subtree_end])
    return CalibrationTables(
        parent=model.parent,
        path=path,
        depth=depth,
        first_marker=model.first_marker.astype(np.int64),
        joint_column=columns.joint_offset[:, 0].copy(),
        marker_column=columns.marker_offset[:, 0].copy(),
        low=low,
        high=high,
        axis_child=np.array([axis.child for axis in model.axes], dtype=np.int64),
        axis_is_hinge=np.array([axis.kind == "hinge" for axis in model.axes], bool),
        axis_weight=np.array([axis.sd**-2 for axis in model.axes], dtype=float),
        axis_column=columns.axis[:, :, 0].copy(),
        student_t_dof=STUDENT_T_DOF,
    )


def _block_paths(
    parent: Int[Array, " segment"],
) -> tuple[Int[Array, "block step"], Int[Array, " block"]]:
    """Return the blocks from the root to each block, and how many come before it.

    Block 0 is the position of the root, block i + 1 the rotation of segment i.
    """
    paths = [[0]]
    for i, p in enumerate(parent.tolist()):
        paths.append([*paths[p + 1], i + 1])
    return pad_lists(paths), np.array([len(path) - 1 for path in paths], dtype=np.int64)
