"""A skeleton placed from constants, one frame at a time (Knight2007, Sec. 2.6)."""

from collections.abc import Sequence

import numpy as np

from marey.articulated.tables import IDENTITY_QUATERNION
from marey.articulated.targets import NO_SENSORS, TargetNames, as_c_float64
from marey.numerics import Array, Float
from marey.pose.options import PoseOptions
from marey.pose.solver import PoseSolver
from marey.skeleton import Skeleton


class SkeletonPlacer:
    """A skeleton whose joints are constants, placed in any frame in closed form.

    Implements Knight2007, Sec. 2.6. The markers of the root determine its pose. The
    pose of the parent gives the position of the joint of every other bone. The joint is
    one more point of the bone, with a weight by how well the parent is placed. Joint
    and markers then determine the pose of the bone: by Horn's closed form at a ball, by
    the closed form of the angle at a hinge. There is no inverse kinematics, so a frame
    costs next to nothing.

    Departures: all markers of a bone are used in one least-squares fit, not the first
    three; sensors count like markers. For one marker on a ball joint the paper takes
    the direction of least motion as an axis; here the twist is that of the rest pose.
    A joint that is not seen keeps its rotation.

    Each bone is a least-squares fit of its own. `solve_pose` and `PoseTracker` fit the
    whole figure, respect limits, reject outliers and use time; this one serves
    previews, games and streams of clean data.
    """

    def __init__(
        self,
        skeleton: Skeleton,
        labels: Sequence[str] = (),
        sensor_names: Sequence[str] = (),
    ) -> None:
        """Prepare the tables.

        Args:
            skeleton: A skeleton with markers or sensors, such as `solution.skeleton` or
                that of `estimate_hierarchy`.
            labels: One label per marker of the stream.
            sensor_names: One name per sensor of the stream.

        Raises:
            DataError: If the stream has none of the skeleton's markers and sensors.
        """
        # numba is slow to import
        from marey.pose.closed_form.placement_kernel import (
            BoneUncertainty,
            place_frame,
        )

        self._names = TargetNames.of_stream(labels, sensor_names)
        options = PoseOptions(limits=False)
        solver = PoseSolver(skeleton, self._names, options)
        nodes = solver.nodes
        self._place_frame, self._problem = place_frame, solver.problem
        self._joints = (
            nodes.moving_joints,
            nodes.first_node_of_joint,
            nodes.node_of_joint,
            options.marker_sd,
        )
        n = len(nodes.tree.parent)
        self._uncertainty = BoneUncertainty(
            mean=np.zeros((n, 3)), variance=np.zeros(n), rotation=np.zeros((n, 3, 3))
        )
        self._rest = np.tile(IDENTITY_QUATERNION, (skeleton.n_joints, 1))
        self._origin = np.zeros(3)
        self.reset()

    def place(
        self,
        points: Float[Array, "marker 3"],
        T_world_sensor: Float[Array, "sensor 4 4"] = NO_SENSORS,
    ) -> tuple[Float[Array, " 3"], Float[Array, "joint 4"]]:
        """Return the position of the root (m) and R_parent_joint as quaternions.

        The rotation of the root is that of the first joint. Joints that are not seen
        keep their rotations; before anything was seen, the position is NaN.

        Args:
            points: Positions of the stream's markers in metres, NaN where unseen.
            T_world_sensor: Poses of its sensors, NaN where unseen.

        Raises:
            DataError: If the frame is not of the stream's size.
        """
        self._names.check_frame(points, T_world_sensor)
        wxyz = self._rest.copy()
        frame = as_c_float64(points), as_c_float64(T_world_sensor), self._origin
        pose = self._root, self._q
        self._place_frame(
            self._problem, self._joints, frame, self._uncertainty, pose, wxyz
        )
        return self._root.copy(), wxyz

    def reset(self) -> None:
        """Forget the last pose: unseen joints are at rest again."""
        tree, _, _ = self._problem
        self._root = np.full(3, np.nan)
        self._q = np.tile(IDENTITY_QUATERNION, (len(tree.parent), 1))
