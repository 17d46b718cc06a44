"""Slips of sensors on skin: what is abrupt, and posture does not explain."""

from collections.abc import Sequence

import numpy as np

from marey.bodies import Bodies
from marey.cleaning.arrays import Array
from marey.cleaning.slips import change_point
from marey.cleaning.slips.sensor_likelihood import Basis, JointInSensor, constant_basis
from marey.cleaning.slips.sensor_search import SlipSearch
from marey.cleaning.slips.sensors import SensorSlip
from marey.joint_fits import JointFits
from marey.kernels import one_blas_thread
from marey.numerics import Int, geometry
from marey.numerics.noise import trimmed_variance, white_difference
from marey.numerics.thresholds import MIN_SAMPLES, MOTION_TIME_S, OUTLIER_SD
from marey.tree import Tree

MIN_SKIN_SHARE = 0.5
"""Smallest displacement of a joint centre by a slip, relative to the rms motion of the
skin. Higher misses slips, lower takes what is left of skin motion for slips. Chosen
among 0, 0.25 and 0.5 on generated takes with 10 mm of skin motion."""

MAX_FRAME_ERROR = 2
"""Frames by which the time of a slip may be wrong. Higher takes faster motions of the
skin for slips. Chosen by hand."""


@one_blas_thread()
def find_sensor_slips(
    bodies: Bodies | Sequence[Bodies],
    joints: JointFits,
    tree: Tree,
    *,
    level: float = change_point.FALSE_ALARM_LEVEL,
) -> tuple[SensorSlip, ...]:
    """Return the slips of sensors, in the order of time.

    In the axes of its own sensor a joint centre is constant. A slip displaces all joint
    centres of the sensor at once, and they stay there. For every frame the likelihood
    ratio of such a change is summed over the sensor's joints, relative to the long-run
    variance of each joint's residual, so that slow noise is no slip. The most likely
    slip is undone and the search repeated until none is significant (greedy search).
    Then each slip is estimated again with all others undone.

    Skin moves sensors with posture. If a recording seems to have slips, they are
    searched again with joint centres that depend linearly on the quaternions of the
    adjacent joints, so that a change at a new posture is no slip, and only abrupt
    changes count (`SkinSlipSearch`).

    Args:
        bodies: The moving bodies, or several takes of them in the order of recording: a
            slip lasts into the takes that follow.
        joints: Their joints.
        tree: Which of the joints are real.
        level: Accepted probability of a false alarm, above 0 and below 1.

    Raises:
        OptionError: If the level is out of range.
    """
    change_point.check_level(level)
    takes = (bodies,) if isinstance(bodies, Bodies) else tuple(bodies)
    pairs = _joined_pairs(joints, tree)
    if not SlipSearch(takes, pairs, level).has_slips():
        return ()
    search = SkinSlipSearch(takes, pairs, level)
    slips = search.find_all()
    is_open = search.find_open_joints(pairs)
    if is_open.any():
        search = SkinSlipSearch(takes, pairs[~is_open], level)
        slips = search.find_all()
    return search.in_time_order(slips)


def _joined_pairs(joints: JointFits, tree: Tree) -> Int[Array, "joint 2"]:
    """Return the pairs of bodies that are joined.

    A large slip can separate a body from the tree. A body without joints is therefore
    joined to the body with the smallest residual.
    """
    rows = tree.edge[tree.edge >= 0].tolist()
    bodies = np.arange(len(tree.parent))
    alone = bodies[(tree.parent < 0) & ~np.isin(bodies, tree.parent)]
    for body in alone.tolist() if rows else []:
        fits = np.flatnonzero((joints.pair == body).any(axis=1) & joints.fitted)
        if len(fits):
            rows.append(int(fits[joints.residual[fits].argmin()]))
    return np.asarray(joints.pair[sorted(set(rows))].reshape(-1, 2))


class SkinSlipSearch(SlipSearch):
    """Search for abrupt changes that the posture of a sensor does not explain."""

    def __init__(
        self, takes: tuple[Bodies, ...], pairs: Int[Array, "joint 2"], level: float
    ) -> None:
        super().__init__(takes, pairs, level)
        frames = round(MOTION_TIME_S * takes[0].take.rate)
        self.half_window = max(frames, MIN_SAMPLES)
        self.peak_distance = 2 * self.half_window
        self.bases: dict[int, Basis] = {}

    def posture_basis(self, body: int) -> Basis:
        """Return one and the quaternions of the joints of a body, less their means.

        Their linear functions do not depend on how sensors are attached: to turn a
        sensor is a linear map of quaternions.
        """
        if body not in self.bases:
            T = self.T[:, body]
            known = [self._quaternions(T, other) for other in self.adjacent[body]]
            parts = [q - q.mean(axis=0) for q in known if np.isfinite(q).all()]
            self.bases[body] = np.concatenate([constant_basis(len(T)), *parts], axis=1)
        return self.bases[body]

    def _quaternions(self, T: Array, other: int) -> Array:
        """Return unit quaternions of another body in the axes of one, without gaps."""
        R = T[:, :3, :3].swapaxes(1, 2) @ self.T[:, other, :3, :3]
        wxyz = geometry.quat_from_matrix(R)
        return geometry.hold_last(geometry.quat_continuous(wxyz))

    def forget_joints(self, body: int) -> None:
        """Forget the joints of a body and of its neighbours, whose posture changed."""
        for one in (body, *self.adjacent[body]):
            self.bases.pop(one, None)
            super().forget_joints(one)

    def is_slip(self, body: int, joints: Sequence[JointInSensor], frame: int) -> bool:
        """Return whether a significant change is large enough, and abrupt.

        A change at the time of a slip of a neighbouring sensor does not count: it is
        what is left of that slip after it was undone.
        """
        for other, when, _ in self.corrections:
            if other in self.adjacent[body] and abs(frame - when) <= self.half_window:
                return False
        largest = max(j.slip_size(frame) - MIN_SKIN_SHARE * j.skin_rms for j in joints)
        is_large = largest > 0.0 and super().is_slip(body, joints, frame)
        return is_large and smoothness(joints, frame, self.half_window) < OUTLIER_SD**2


def smoothness(joints: Sequence[JointInSensor], frame: int, half: int) -> float:
    """Return twice the log likelihood ratio of smooth motion against a slip.

    Near the frame, the centres of all joints are cubic functions of time, or linear
    functions of time that are displaced by the slip.

    Args:
        joints: The joints of one sensor.
        frame: First frame after the slip.
        half: Frames before and after the slip that are compared.
    """
    smooth = 0.0
    abrupt = np.zeros(2 * MAX_FRAME_ERROR + 1)
    for joint in joints:
        frames, centers, displacement = joint.deviations_around(frame, half)
        if len(frames) <= MIN_SAMPLES:
            continue
        step = np.sum(white_difference(centers, 1) ** 2, axis=1)
        variance = max(trimmed_variance(step), change_point.ROUNDING_SD_M**2)
        time = frames / half
        smooth += _misfit(centers, time, degree=3) / variance
        for k in range(len(abrupt)):
            after = frames >= k - MAX_FRAME_ERROR
            restored = centers - after[:, None] * displacement
            abrupt[k] += _misfit(restored, time, degree=1) / variance
    return float(abrupt.min() - smooth)


def _misfit(values: Array, time: Array, degree: int) -> float:
    """Return the sum of squared deviations from a polynomial in time."""
    powers = np.vander(time, degree + 1)
    fitted = powers @ np.linalg.lstsq(powers, values, rcond=None)[0]
    return float(np.sum((values - fitted) ** 2))
