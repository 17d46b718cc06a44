"""Frames of a long take solved side by side, in the lanes of the CPU.

The order of the frames is cut into as many parts as a register has lanes, and all parts
are tracked at once (parallel in time). Every part but the first starts from scratch; it
is then tracked in sequence, on from the end of the part before it, until both tracks
have met. The poses are therefore those of the sequential tracker (`track_kernel`),
which a stream uses, up to the difference at which tracks have met.
"""

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float, Int

from marey.articulated.targets import Recording
from marey.numerics.thresholds import MOTION_TIME_S

if TYPE_CHECKING:
    from marey.articulated.kinematics_kernel import KinematicTree, PoseWorkspace
    from marey.articulated.targets_kernel import Targets
    from marey.pose.gauss_newton.track_kernel import TrackSettings

Array = np.ndarray
Problem = tuple["KinematicTree", "Targets", "PoseWorkspace"]
Poses = tuple[Array, Array, Array]
"""By frame: position of the root, quaternions, statistics; see `track_frames`."""

N_PARTS = 4
"""Number of parts: the doubles in one register of AVX2 (`lanes_kernel.LANES`)."""

MIN_PART_S = MOTION_TIME_S
"""Least duration of a part, in seconds: in shorter ones tracks would hardly meet."""


def track_in_lanes(
    problem: Problem,
    recording: Recording,
    order: Int[Array, " frame"],
    state: tuple[Array, ...],
    settings: "TrackSettings",
    paths: tuple[Array, Array],
    out: Poses,
) -> None:
    """Track the skeleton through frames, in the order given; see `track_frames`."""
    tracking = _LaneTracking(problem, recording, order, state, settings, paths, out)
    tracking.advance()
    if not settings.given_start:
        tracking.join_parts()


class _LaneTracking:
    """The arguments of `track_frames`, and the tracks of all lanes."""

    def __init__(
        self,
        problem: Problem,
        recording: Recording,
        order: Int[Array, " frame"],
        state: tuple[Array, ...],
        settings: "TrackSettings",
        paths: tuple[Array, Array],
        out: Poses,
    ) -> None:
        # numba is slow to import
        from marey.pose.gauss_newton.track_lanes_kernel import (
            BEGIN,
            LaneOrder,
            make_lane_tracks,
            make_lane_workspace,
        )

        tree, targets, work = problem
        self.problem, self.state, self.out = problem, state, out
        self.arguments = (recording, order, settings, paths)
        self.parts = np.linspace(0, len(order), N_PARTS + 1).astype(np.int64)
        self.in_lanes = (tree, targets, make_lane_workspace(work))
        n_columns = (*recording[0].shape[1:], recording[1].shape[1])
        self.tracks = make_lane_tracks(len(tree.parent), n_columns)
        self.lanes = LaneOrder(
            status=np.full(N_PARTS, BEGIN),
            next=self.parts[:-1].copy(),
            stop=self.parts[1:],
            frames_unseen=np.full(N_PARTS, -1),
            restart_wait=np.zeros(N_PARTS, dtype=np.int64),
        )
        self._store_state(0)
        self.tracks.q[:], self.tracks.root[:] = state[1][..., None], state[0][:, None]

    def advance(self) -> None:
        """Solve all parts; frames that a lane leaves are tracked alone."""
        # numba is slow to import
        from marey.pose.gauss_newton.track_lanes_kernel import (
            ALONE,
            BEGIN,
            advance_lanes,
        )

        while True:
            advance_lanes(
                self.in_lanes, *self.arguments, self.lanes, self.tracks, self.out
            )
            waiting = np.flatnonzero(self.lanes.status == ALONE).tolist()
            if not waiting:
                return
            for lane in waiting:
                place = int(self.lanes.next[lane])
                self._load_state(lane)
                self._track_alone(place, place + 1)
                self._store_state(lane)
                self.in_lanes[2].prior_share[:, lane] = self.problem[2].prior_share
                self.lanes.next[lane], self.lanes.status[lane] = place + 1, BEGIN

    def join_parts(self) -> None:
        """Continue every part into the next one until both tracks have met."""
        # numba is slow to import
        from marey.articulated.levenberg_marquardt_kernel import MIN_STEP

        _, order, settings, _ = self.arguments
        n_frames = max(settings.max_unseen_frames, 1)
        ends = self.parts.tolist()
        self._load_state(0)
        for lane in range(1, N_PARTS):
            begin, end = ends[lane], ends[lane + 1]
            for first in range(begin, end, n_frames):
                last = min(first + n_frames, end)
                frames = order[first:last]
                root, q = self.out[0][frames], self.out[1][frames]
                self._track_alone(first, last)
                if _is_same_pose(root, q, self.out, frames, MIN_STEP).any():
                    self._load_state(lane)
                    break

    def _track_alone(self, first: int, last: int) -> None:
        """Track some places of the order in sequence."""
        from marey.pose.gauss_newton.track_kernel import track_frames  # numba is slow

        recording, order, settings, paths = self.arguments
        frames = order[first:last]
        where = (recording, frames, self.state, settings, paths)
        track_frames(self.problem, *where, self.out)

    def _load_state(self, lane: int) -> None:
        """Let the sequential tracker go on from the track of a lane."""
        root, q, velocity, frames_unseen, restart_wait = self.state
        root[:], q[:] = self.tracks.root[:, lane], self.tracks.q[..., lane]
        velocity[:] = self.tracks.velocity[..., lane]
        frames_unseen[0] = self.lanes.frames_unseen[lane]
        restart_wait[0] = self.lanes.restart_wait[lane]

    def _store_state(self, lane: int) -> None:
        """Let a lane go on from the state of the sequential tracker."""
        root, q, velocity, frames_unseen, restart_wait = self.state
        self.tracks.root[:, lane], self.tracks.q[..., lane] = root, q
        self.tracks.velocity[..., lane] = velocity
        self.lanes.frames_unseen[lane] = frames_unseen[0]
        self.lanes.restart_wait[lane] = restart_wait[0]


def _is_same_pose(
    root: Float[Array, "some 3"],
    q: Float[Array, "some node 4"],
    out: Poses,
    frames: Int[Array, " some"],
    tolerance: float,
) -> Bool[Array, " some"]:
    """Return the frames whose poses differ by no more than a tolerance, in m and rad.

    q and -q are one rotation.
    """
    new_root, new_q = out[0][frames], out[1][frames]
    away = np.minimum(*(np.abs(new_q + sign * q).max(axis=-1) for sign in (1.0, -1.0)))
    is_near = np.abs(new_root - root).max(axis=-1) <= tolerance
    return np.asarray(is_near & (2.0 * away.max(axis=-1) <= tolerance))
