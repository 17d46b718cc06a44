"""What all methods that fit poses to markers and sensors share.

A solver has the tables of a skeleton, and runs over the frames of a recording. A second
run may start from a reference motion, which is then a weak prior of the rotations.
"""

from typing import TYPE_CHECKING

import numpy as np

from marey.articulated.tables import make_nodes
from marey.articulated.targets import (
    Recording,
    TargetNames,
    frame_order,
    make_targets,
    marker_residuals,
    match_targets,
    target_weights,
)
from marey.motion import Motion, motion_on_clock
from marey.numerics import Array, Bool, Float, Int, geometry
from marey.numerics.robust import runs
from marey.numerics.thresholds import CERTAIN_SD
from marey.pose.both_ways import bridge_rotation, share_of_gap
from marey.pose.options import MAX_RMS_RESIDUAL_M, PoseOptions
from marey.pose.reference import warp_time
from marey.pose.retarget import local_rotations, retarget
from marey.pose.trace import PoseTrace
from marey.skeleton import Skeleton
from marey.take import Take

if TYPE_CHECKING:
    from marey.articulated.kinematics_kernel import KinematicTree, PoseWorkspace
    from marey.articulated.targets_kernel import Targets


def frames_worse_than(
    cost: Float[Array, " frame"], other: Float[Array, " frame"]
) -> Int[Array, " worse"]:
    """Return the frames whose cost is clearly above that of another solution.

    Costs are in squared standard deviations.
    """
    return np.flatnonzero(cost > other + CERTAIN_SD**2)


class PoseSolver:
    """A skeleton with its targets, ready for a method."""

    targets: "Targets"

    def __init__(
        self, skeleton: Skeleton, names: TargetNames, options: PoseOptions
    ) -> None:
        """Prepare the tables; weights are one over variances, times those given.

        Raises:
            DataError: If the recording has none of the skeleton's markers and sensors.
        """
        from marey.articulated.kinematics_kernel import make_workspace  # numba is slow

        self.skeleton, self.marker_sd = skeleton, options.marker_sd
        self.nodes = make_nodes(skeleton, limits=options.limits)
        self.matches = match_targets(skeleton, self.nodes, names)
        marker, sensor = target_weights(options.weights, skeleton, self.matches)
        sensor_sd = np.array([options.sensor_sd, options.rotation_sd])
        self.targets = make_targets(
            skeleton,
            self.nodes,
            self.matches,
            marker / options.marker_sd**2,
            sensor[:, None] / sensor_sd**2,
        )
        self.work = make_workspace(self.nodes.tree, len(marker), len(sensor))

    @property
    def problem(self) -> "tuple[KinematicTree, Targets, PoseWorkspace]":
        """The tables that the kernels take."""
        return self.nodes.tree, self.targets, self.work

    def run(
        self,
        recording: Recording,
        order: Int[Array, " some"],
        trace: PoseTrace,
        reference: tuple[Array, Array] | None = None,
    ) -> None:
        """Solve frames of a trace in this order, in place.

        Args:
            recording: Markers and sensors of the take.
            order: Numbers of the frames.
            trace: Gets the poses.
            reference: Rotations to start from and to be drawn to, by frame, and their
                information by node, in 1 / rad^2; None for no reference.
        """
        raise NotImplementedError

    def frame_order(self, recording: Recording) -> Int[Array, " frame"]:
        """Return the order in which frames are visited; see `targets.frame_order`."""
        return frame_order(self.matches, recording)

    def marker_residuals(
        self, points: Float[Array, "frame column _"], trace: PoseTrace
    ) -> Float[Array, "frame marker"]:
        """Return the distance of every marker from its model position, in metres.

        NaN where the marker is not seen.
        """
        return marker_residuals(
            self.targets, self.nodes.tree, points, trace.root, trace.q
        )

    def leaves_markers(
        self,
        residual_m: Float[Array, "frame marker"],
        joint: int,
        min_markers: int = 1,
    ) -> Bool[Array, " frame"]:
        """Return in which frames a joint is far from most of its markers.

        Args:
            residual_m: Distance of every marker from its model position, in metres.
            joint: Number of a joint that moves.
            min_markers: Least number of its markers that must be seen.
        """
        node = self.nodes.node_of_joint[joint]
        own = residual_m[:, slice(*self.targets.start[node : node + 2])]
        n_seen = np.isfinite(own).sum(axis=1)
        n_far = (own > MAX_RMS_RESIDUAL_M).sum(axis=1)
        return np.asarray((2 * n_far > n_seen) & (n_seen >= min_markers))

    def motion(self, take: Take, trace: PoseTrace) -> Motion:
        """Return the motion of a trace, on the clock of its take."""
        return motion_on_clock(take, self.skeleton, *self._rotations(trace))

    def joint_poses(self, trace: PoseTrace) -> Float[Array, "frame joint 4 4"]:
        """Return T_world_joint of all joints, in metres."""
        return self.skeleton.forward(*self._rotations(trace))

    def sensor_poses(self, trace: PoseTrace) -> Float[Array, "frame sensor 4 4"]:
        """Return T_world_sensor of the attached sensors, in metres."""
        sensor = self.matches.sensor
        joint = self.skeleton.sensor_joint[sensor]
        T_joint_sensor = self.skeleton.T_joint_sensor[sensor]
        return np.asarray(self.joint_poses(trace)[:, joint] @ T_joint_sensor)

    def _rotations(self, trace: PoseTrace) -> tuple[Array, Array]:
        """Return the pose of the root, and the rotations of all joints (wxyz)."""
        R_world_root = geometry.matrix_from_quat(trace.q[:, 0])
        T_world_root = geometry.transform(R_world_root, trace.root)
        return T_world_root, self.nodes.joint_rotations(trace.q)

    def reference_rotations(
        self, take: Take, trace: PoseTrace, options: PoseOptions
    ) -> tuple[Float[Array, "frame node 4"], Float[Array, " node"]]:
        """Return the rotations of the reference at every frame, and their information.

        They are those of bones in the world, whatever the reference's rest pose is.

        Args:
            take: The recording.
            trace: The poses without the reference. The reference is matched to them in
                time, and joints that the reference does not have keep their rotations.
            options: The reference, its keys and its standard deviation.

        Returns:
            Rotations of all nodes, and one over their variance, in 1 / rad^2; 0 for
            joints that the reference does not have.
        """
        assert options.reference is not None
        motion = self.motion(take, trace)
        retargeted, joints = retarget(options.reference, self.skeleton)
        reference = warp_time(retargeted, motion, options.keys)
        R = reference.T_world_joint()[..., :3, :3]
        known = np.isin(np.arange(self.skeleton.n_joints), [0, *joints])
        wxyz = local_rotations(self.skeleton, R, known, motion.wxyz)
        information = np.zeros(len(self.nodes.tree.parent))
        for ends in (self.nodes.first_node_of_joint, self.nodes.node_of_joint):
            information[ends[joints]] = options.reference_sd**-2
        return self.nodes.node_rotations(wxyz), information

    def refine_with_reference(
        self, take: Take, recording: Recording, alone: PoseTrace, options: PoseOptions
    ) -> PoseTrace:
        """Return poses that start at the rotations of a reference and are drawn to it.

        A frame that the reference makes worse starts at its pose without it instead.
        Steps of all attempts are counted. Without a reference the poses stay.
        """
        if options.reference is None:
            return alone
        q, information = self.reference_rotations(take, alone, options)
        nothing = np.zeros_like(alone.info)
        best = PoseTrace(q, alone.root, nothing).copy()
        again = PoseTrace(alone.q, alone.root, nothing).copy()
        self.run(recording, np.arange(len(q)), best, (q, information))
        worse = frames_worse_than(best.info[:, 0], alone.info[:, 0])
        self.run(recording, worse, again, (q, information))
        steps = alone.info[:, 3] + best.info[:, 3] + again.info[:, 3]
        best.replace_frames(worse[again.info[worse, 0] < best.info[worse, 0]], again)
        best.info[:, 3] = steps
        blended = self._blend_reference_across_gaps(recording, best.q, q)
        return PoseTrace(blended, best.root, best.info)

    def _blend_reference_across_gaps(
        self,
        recording: Recording,
        q: Float[Array, "frame node 4"],
        reference_q: Float[Array, "frame node 4"],
    ) -> Float[Array, "frame node 4"]:
        """Return the rotations with the reference's inside gaps, joined at the ends.

        An unseen limb has the rotations of the reference. These may differ from the
        data before and after the gap: the differences at both ends are interpolated
        over the gap (slerp) and applied to the reference.
        """
        filled, is_unseen = q.copy(), self.unseen_nodes(recording)
        for node in range(1, q.shape[1]):
            reference = reference_q[:, node]
            for first, last in runs(is_unseen[:, node]):
                if last - first + 1 < len(q):
                    share = share_of_gap(first, last, len(q))
                    paths = reference, reference, filled[:, node]
                    bridge_rotation((first, last), *paths, share)
        return geometry.quat_continuous(filled)

    def unseen_nodes(self, recording: Recording) -> Bool[Array, "frame node"]:
        """Return the frames in which no target of a node's whole subtree is seen."""
        points, sensors = recording
        targets, parent = self.targets, self.nodes.tree.parent
        is_seen = np.zeros((len(points), len(parent)), dtype=bool)
        markers = np.isfinite(points[:, targets.column, 0]) & (targets.weight > 0.0)
        has_weight = (targets.sensor_weight > 0.0).any(axis=1)
        posed = np.isfinite(sensors[:, targets.sensor_column, 0, 0]) & has_weight
        for start, seen in ((targets.start, markers), (targets.sensor_start, posed)):
            for node in range(len(parent)):
                is_seen[:, node] |= seen[:, start[node] : start[node + 1]].any(axis=1)
        for node in range(len(parent) - 1, 0, -1):
            is_seen[:, parent[node]] |= is_seen[:, node]
        return ~is_seen
