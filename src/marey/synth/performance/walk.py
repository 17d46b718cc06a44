"""Walking with exact foot contacts: a foot in stance neither slides nor sinks.

The footprints are fixed on the ground. Each foot rolls over its footprint from heel to
toes and then swings to the next one. The pelvis moves above the feet, and closed-form
inverse kinematics gives the angles of the legs.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np

from marey.motion import Contact
from marey.numerics import Array, Float, geometry
from marey.synth.figures.figure import Figure, FigureLimb, PoseSequence, root_poses
from marey.synth.performance import curves
from marey.synth.performance.angles import angles_of_joint
from marey.synth.performance.curves import Angles, Poses, Times, bump, smoothstep
from marey.synth.performance.gait import Walk, draw_gait, leg_length
from marey.synth.performance.two_bone_ik import align_bone, joint_poses, solve_limb

UP = np.array([0.0, 0.0, 1.0])

CIRCLE_TURN_RATE = 0.5
"""Turning rate of the walk on a circle, in radians per second. Larger values make the
circle smaller. Chosen by hand."""

IDLE_ANGLE = 0.02
"""Largest amplitude of the small random motion of a walker, in radians. Chosen by
hand."""

ARM_FORWARD, ARM_SWING = 0.03, 0.36
"""Mean and amplitude of the forward swing of the upper arm, in radians. Chosen by
hand."""

MIN_ELBOW_BEND, ARM_ABDUCTION = 0.26, 0.14
"""Least bend of the elbow and sideways tilt of a hanging arm, in radians. Chosen by
hand."""


@dataclass(frozen=True, slots=True)
class FootPath:
    """The path of one foot of a walk, as a function of time.

    A stride begins with the touch-down of the foot; `share` is the share of the stride
    that has passed. A footprint is the position of the ankle and the yaw of the flat
    foot.
    """

    walk: Walk
    leg: FigureLimb

    def poses(self, times: Times) -> Poses:
        """Return T_world_foot: it rolls over each footprint and swings to the next."""
        strides = self.walk.phase(times, self.leg)
        number = np.floor(strides)
        share = strides - number
        current, following = self._footprints(number), self._footprints(number + 1.0)
        swing_share = self._swing_share(share)
        position = np.where(
            (swing_share > 0.0)[:, None],
            self._swing_position(current, following, share),
            self._stance_position(current, share),
        )
        yaw = current[:, 3] + smoothstep(swing_share) * (
            following[:, 3] - current[:, 3]
        )
        pitch = curves.quintic_spline(share, self.walk.gait.foot_pitch_knots)
        return geometry.transform(_yaw_rotation(yaw) @ _pitch_rotation(pitch), position)

    def contacts(self, number: int) -> list[Contact]:
        """Return the contacts of the heel and toes, or of the paw, in one stride."""
        leg, skeleton, period = self.leg, self.walk.figure.skeleton, self.walk.period
        footprint = self._footprints(np.array([float(number)]))[0]
        R = geometry.rotation_exp(footprint[3] * UP)
        touch_down = (number + leg.phase - self.walk.start_phase) * period
        flat_start, flat_end = (
            knot[0] for knot in self.walk.gait.foot_pitch_knots[1:3]
        )
        spans = [(0.0, flat_end), (flat_start, leg.stance)]
        if len(leg.tips) == 1:
            spans = [(0.0, leg.stance)]
        return [
            Contact(
                skeleton.names[tip],
                touch_down + start * period,
                touch_down + end * period,
                footprint[:3] + R @ skeleton.offset[tip],
            )
            for tip, (start, end) in zip(leg.tips, spans, strict=True)
        ]

    def _swing_share(self, share: Array) -> Array:
        """Return the share of the swing that has passed, 0 to 1."""
        stance = self.leg.stance
        return np.asarray(np.clip((share - stance) / (1.0 - stance), 0.0, 1.0))

    def _footprints(self, number: Array) -> Float[Array, "frame 4"]:
        """Return ankle position and yaw of the flat foot, for numbered strides."""
        leg, walk, gait = self.leg, self.walk, self.walk.gait
        time = (number + 0.5 * leg.stance + leg.phase - walk.start_phase) * walk.period
        heading = walk.heading(time)
        zero = np.zeros_like(time)
        forward = np.stack([np.cos(heading), np.sin(heading), zero], axis=-1)
        left = np.stack([-np.sin(heading), np.cos(heading), zero], axis=-1)
        rest = self.walk.figure.skeleton.rest()[:, :3, 3]
        hip_ahead = rest[leg.end, 0] - rest[0, 0]
        ahead = hip_ahead + gait.footprint_ahead * leg_length(self.walk.figure, leg)
        aside = gait.step_width * rest[leg.end, 1]
        position = walk.position(time) + ahead * forward + aside * left
        ankle_height = -self.walk.figure.skeleton.offset[leg.tips[-1], 2]
        yaw = heading + leg.side * gait.toe_out
        return np.concatenate([position + ankle_height * UP, yaw[:, None]], axis=-1)

    def _pivot(self, share: Array) -> Array:
        """Return the point about which the foot rotates, in the frame of the foot.

        It is the heel until the foot is flat, and the toes afterwards.
        """
        knots, offset = (
            self.walk.gait.foot_pitch_knots,
            self.walk.figure.skeleton.offset,
        )
        flat = 0.5 * (knots[1][0] + knots[2][0])
        heel, toes = offset[self.leg.tips[0]], offset[self.leg.tips[-1]]
        return np.asarray(np.where((share < flat)[:, None], heel, toes))

    def _stance_position(
        self, footprints: Array, share: Array
    ) -> Float[Array, "frame 3"]:
        """Return the position (m) of an ankle whose foot rolls over its footprint."""
        pitch = curves.quintic_spline(share, self.walk.gait.foot_pitch_knots)
        lift = _yaw_rotation(footprints[:, 3]) @ (np.eye(3) - _pitch_rotation(pitch))
        roll = np.einsum("fij,fj->fi", lift, self._pivot(share))
        return np.asarray(footprints[:, :3] + roll)

    def _swing_position(
        self, current: Array, following: Array, share: Array
    ) -> Float[Array, "frame 3"]:
        """Return the position of the ankle in swing.

        A quintic joins the two stance phases with equal velocity and acceleration.
        """
        span = 1.0 - self.leg.stance
        s = self._swing_share(share)
        t = s[:, None]
        start, start_slope, start_curve = self._stance_end(current, self.leg.stance)
        end, end_slope, end_curve = self._stance_end(following, 0.0)
        position = curves.quintic_hermite(
            t, start, span * start_slope, end, span * end_slope
        )
        position = position + curves.quintic_end_curvature(
            t, span**2 * start_curve, span**2 * end_curve
        )
        clearance = self.walk.gait.foot_clearance * leg_length(
            self.walk.figure, self.leg
        )
        return np.asarray(position + (clearance * bump(s))[:, None] * UP)

    def _stance_end(
        self, footprints: Array, share: float
    ) -> tuple[Array, Array, Array]:
        """Return position and two derivatives of the ankle where stance begins or ends.

        The foot pitch has a knot there, so its second derivative is zero.
        """
        knots = self.walk.gait.foot_pitch_knots
        _, pitch, slope = next(knot for knot in knots if knot[0] == share)
        shares = np.full(len(footprints), share)
        pivot = self._pivot(shares)
        R = _yaw_rotation(footprints[:, 3])
        sagittal = np.array([1.0, 0.0, 1.0])
        quarter, half = (
            _pitch_rotation(np.array([pitch + angle]))[0] * sagittal
            for angle in (0.5 * np.pi, np.pi)
        )
        first = -slope * np.einsum("fij,fj->fi", R @ quarter, pivot)
        second = -(slope**2) * np.einsum("fij,fj->fi", R @ half, pivot)
        return self._stance_position(footprints, shares), first, second


def _yaw_rotation(yaw: Times) -> Float[Array, "frame 3 3"]:
    """Return rotations about the vertical by angles in radians."""
    return geometry.rotation_exp(yaw[:, None] * UP)


def _pitch_rotation(pitch: Times) -> Float[Array, "frame 3 3"]:
    """Return rotations about y, which points to the left, by angles in radians."""
    return geometry.rotation_exp(pitch[:, None] * np.array([0.0, 1.0, 0.0]))


def pelvis_poses(walk: Walk, times: Times) -> Poses:
    """Return T_world_root along the path, with vertical and sideways oscillation."""
    figure, gait = walk.figure, walk.gait
    leg = figure.legs[0]
    length = leg_length(figure, leg)
    phase = 2.0 * np.pi * walk.phase(times, leg)
    mid_stance = 2.0 * np.pi * 0.5 * leg.stance
    heading = walk.heading(times)
    rest = figure.skeleton.offset[0, 2]
    z = rest - (1.0 - gait.pelvis_height) * length
    bob_phase = 2.0 * (phase - 2.0 * np.pi * gait.bob_phase)
    z = z + gait.pelvis_bob * length * np.cos(bob_phase)
    side = gait.pelvis_sway * length * np.cos(phase - mid_stance)
    left = np.stack([-np.sin(heading), np.cos(heading), np.zeros_like(z)], axis=-1)
    position = walk.position(times) + side[:, None] * left + z[:, None] * UP
    rotvec = np.stack(
        [
            gait.pelvis_obliquity * np.cos(phase - 0.8),
            np.full_like(z, gait.trunk_lean),
            heading - gait.pelvis_rotation * np.cos(phase),
        ],
        axis=-1,
    )
    return root_poses(position, rotvec)


def solve_legs(walk: Walk, times: Times, T_world_root: Poses, angles: Angles) -> Angles:
    """Return the angles with every leg solved for the path of its foot."""
    skeleton, gait = walk.figure.skeleton, walk.gait
    angles = angles.copy()
    T = joint_poses(skeleton, T_world_root, angles)
    for leg in walk.figure.legs:
        foot = FootPath(walk, leg).poses(times)
        heading = walk.heading(times) + 0.5 * leg.side * gait.toe_out
        axis = _yaw_rotation(heading) @ skeleton.axes[leg.middle, 0]
        stride = walk.phase(times, leg)
        twist = gait.knee_twist * np.sin(2.0 * np.pi * (stride - 0.45))
        angles[:, leg.joints] = solve_limb(skeleton, leg.joints, T, foot, axis, twist)
    return angles


def foot_contacts(walk: Walk, seconds: float) -> tuple[Contact, ...]:
    """Return the contacts of all feet, ordered by start time."""
    contacts = []
    for leg in walk.figure.legs:
        first = int(np.floor(walk.phase(np.array(0.0), leg)))
        last = int(np.ceil(walk.phase(np.array(seconds), leg)))
        for number in range(first, last + 1):
            contacts += FootPath(walk, leg).contacts(number)
    inside = [c for c in contacts if c.end > 0.0 and c.start < seconds]
    return tuple(sorted(inside, key=lambda contact: contact.start))


def upper_body_angles(walk: Walk, times: Times) -> Angles:
    """Return joint angles with trunk, head and arms in phase with the legs.

    The chest rotates against the pelvis, the head faces ahead, and each arm swings with
    the leg of the other side.
    """
    figure, gait = walk.figure, walk.gait
    angles = np.tile(figure.neutral, (len(times), 1, 1))
    phase = 2.0 * np.pi * walk.phase(times, figure.legs[0])
    rotation = gait.pelvis_rotation * np.cos(phase)
    names = figure.skeleton.names
    if "Spine" in names:
        spine = angles[:, names.index("Spine")]
        spine[:, 1] -= 0.8 * gait.pelvis_obliquity * np.cos(phase - 0.8)
        spine[:, 2] -= 1.6 * rotation
    if "Neck" in names:
        neck = angles[:, names.index("Neck")]
        neck[:, 0] -= gait.trunk_lean
        neck[:, 2] += 0.6 * rotation
    for arm in figure.arms:
        forward = ARM_FORWARD - arm.side * ARM_SWING * np.cos(phase - 0.15)
        bend = MIN_ELBOW_BEND + 0.5 * (forward - ARM_FORWARD + ARM_SWING)
        angles[:, arm.upper] = hanging_arm_angles(figure, arm, forward)
        angles[:, arm.middle, 0] = bend
    return angles


def hanging_arm_angles(
    figure: Figure, arm: FigureLimb, forward: Times
) -> Float[Array, "frame 3"]:
    """Return the shoulder angles (rad) of a hanging arm, swung forward by an angle."""
    skeleton = figure.skeleton
    out = np.full_like(forward, arm.side * ARM_ABDUCTION)
    goal = np.stack([np.sin(forward), out, -np.cos(forward)], axis=-1)
    bone, axis = skeleton.offset[arm.middle], skeleton.axes[arm.middle, 0]
    R = align_bone(bone, axis, goal, np.array([0.1, -1.0, 0.0]) * [arm.side, 1.0, 1.0])
    return angles_of_joint(skeleton, arm.upper, geometry.quat_from_matrix(R))


def idle_angles(
    figure: Figure, angles: Angles, times: Times, rng: np.random.Generator
) -> Angles:
    """Return small random angles that stay within the joint limits."""
    waves = curves.random_waves(rng, times, 3 * figure.skeleton.n_joints, hertz=0.3)
    limits = figure.skeleton.limits
    room = np.minimum(angles - limits[..., 0], limits[..., 1] - angles).min(axis=0)
    amplitude = np.clip(np.nan_to_num(room, nan=0.0), 0.0, IDLE_ANGLE)
    return np.asarray(waves.reshape(angles.shape) * amplitude)


def walk(
    figure: Figure,
    times: Times,
    seconds: float,
    rng: np.random.Generator,
    turn_rate: float = 0.0,
) -> PoseSequence:
    """Return a walk at a constant speed.

    Args:
        figure: A figure with legs.
        times: Seconds.
        seconds: Length of the whole walk.
        rng: Random stream of the gait and of the phase at time zero.
        turn_rate: Turning rate in radians per second; 0 = straight ahead.
    """
    gait = draw_gait(figure, rng, turn_rate=turn_rate)
    walk = Walk(figure, gait, rng.uniform(0.0, 1.0))
    T_world_root = pelvis_poses(walk, times)
    angles = upper_body_angles(walk, times)
    angles = angles + idle_angles(figure, angles, times, rng)
    angles = solve_legs(walk, times, T_world_root, angles)
    return PoseSequence(T_world_root, angles, foot_contacts(walk, seconds))


circle = partial(walk, turn_rate=CIRCLE_TURN_RATE)
"""A walk on a circle of about five metres diameter for a person."""
