"""Walking with exact foot contacts: a foot in stance neither slides nor sinks.

The footprints are fixed on the ground. Each foot rolls over its footprint from heel to
toes and then swings to the next one. The pelvis moves above the feet, and closed-form
inverse kinematics gives the angles of the legs.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from marey.motion import Contact
from marey.numerics import geometry
from marey.synth.figures.figure import Figure, FigureLimb, PoseSequence, root_poses
from marey.synth.performance.curves import (
    bump,
    quintic_end_curvature,
    quintic_hermite,
    quintic_spline,
    smoothstep,
)
from marey.synth.performance.gait import (
    Gait,
    WalkPath,
    draw_gait,
    leg_length,
    walk_path,
)
from marey.synth.performance.two_bone_ik import joint_poses, solve_limb
from marey.synth.performance.upper_body import idle_angles, upper_body_angles

Array = np.ndarray
UP = np.array([0.0, 0.0, 1.0])

CIRCLE_TURN_RATE = 0.5
"""Turning rate of the walk on a circle, in radians per second. Larger values make the
circle smaller. Chosen by hand."""


@dataclass(frozen=True, slots=True)
class FootPath:
    """The path of one foot of a walk, as a function of time.

    A stride begins with the touch-down of the foot; `share` is the share of the stride
    that has passed. A footprint is the position of the ankle and the yaw of the flat
    foot.
    """

    figure: Figure
    leg: FigureLimb
    gait: Gait
    path: WalkPath

    def poses(self, times: Float[Array, " frame"]) -> Float[Array, "frame 4 4"]:
        """Return T_world_foot: it rolls over each footprint and swings to the next."""
        strides = self.path.phase(times, self.leg)
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
        pitch = quintic_spline(share, self.gait.foot_pitch_knots)
        return geometry.transform(_yaw_rotation(yaw) @ _pitch_rotation(pitch), position)

    def contacts(self, number: int) -> list[Contact]:
        """Return the contacts of the heel and toes, or of the paw, in one stride."""
        leg, skeleton, period = self.leg, self.figure.skeleton, self.path.period
        footprint = self._footprints(np.array([float(number)]))[0]
        R = geometry.rotation_exp(footprint[3] * UP)
        touch_down = (number + leg.phase - self.path.start_phase) * period
        flat_start, flat_end = (knot[0] for knot in self.gait.foot_pitch_knots[1:3])
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
        stance = self.leg.stance
        return np.asarray(np.clip((share - stance) / (1.0 - stance), 0.0, 1.0))

    def _footprints(self, number: Array) -> Float[Array, "frame 4"]:
        """Return ankle position and yaw of the flat foot, for numbered strides."""
        leg, path, gait = self.leg, self.path, self.gait
        time = (number + 0.5 * leg.stance + leg.phase - path.start_phase) * path.period
        heading = path.heading(time)
        zero = np.zeros_like(time)
        forward = np.stack([np.cos(heading), np.sin(heading), zero], axis=-1)
        left = np.stack([-np.sin(heading), np.cos(heading), zero], axis=-1)
        rest = self.figure.skeleton.rest()[:, :3, 3]
        hip_ahead = rest[leg.end, 0] - rest[0, 0]
        ahead = hip_ahead + gait.footprint_ahead * leg_length(self.figure, leg)
        aside = gait.step_width * rest[leg.end, 1]
        position = path.position(time) + ahead * forward + aside * left
        ankle_height = -self.figure.skeleton.offset[leg.tips[-1], 2]
        yaw = heading + leg.side * gait.toe_out
        return np.concatenate([position + ankle_height * UP, yaw[:, None]], axis=-1)

    def _pivot(self, share: Array) -> Array:
        """Return the point about which the foot rotates, in the frame of the foot.

        It is the heel until the foot is flat, and the toes afterwards.
        """
        knots, offset = self.gait.foot_pitch_knots, self.figure.skeleton.offset
        flat = 0.5 * (knots[1][0] + knots[2][0])
        heel, toes = offset[self.leg.tips[0]], offset[self.leg.tips[-1]]
        return np.asarray(np.where((share < flat)[:, None], heel, toes))

    def _stance_position(
        self, footprints: Array, share: Array
    ) -> Float[Array, "frame 3"]:
        """Return the position of the ankle of a foot that rolls over its footprint."""
        pitch = quintic_spline(share, self.gait.foot_pitch_knots)
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
        position = quintic_hermite(t, start, span * start_slope, end, span * end_slope)
        position = position + quintic_end_curvature(
            t, span**2 * start_curve, span**2 * end_curve
        )
        clearance = self.gait.foot_clearance * leg_length(self.figure, self.leg)
        return np.asarray(position + (clearance * bump(s))[:, None] * UP)

    def _stance_end(
        self, footprints: Array, share: float
    ) -> tuple[Array, Array, Array]:
        """Return position and two derivatives of the ankle where stance begins or ends.

        The foot pitch has a knot there, so its second derivative is zero.
        """
        knots = self.gait.foot_pitch_knots
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


def _yaw_rotation(yaw: Float[Array, " frame"]) -> Float[Array, "frame 3 3"]:
    return geometry.rotation_exp(yaw[:, None] * UP)


def _pitch_rotation(pitch: Float[Array, " frame"]) -> Float[Array, "frame 3 3"]:
    return geometry.rotation_exp(pitch[:, None] * np.array([0.0, 1.0, 0.0]))


def pelvis_poses(
    figure: Figure, gait: Gait, path: WalkPath, times: Float[Array, " frame"]
) -> Float[Array, "frame 4 4"]:
    """Return T_world_root along the path, with vertical and sideways oscillation."""
    leg = figure.legs[0]
    length = leg_length(figure, leg)
    phase = 2.0 * np.pi * path.phase(times, leg)
    mid_stance = 2.0 * np.pi * 0.5 * leg.stance
    heading = path.heading(times)
    rest = figure.skeleton.offset[0, 2]
    z = rest - (1.0 - gait.pelvis_height) * length
    bob_phase = 2.0 * (phase - 2.0 * np.pi * gait.bob_phase)
    z = z + gait.pelvis_bob * length * np.cos(bob_phase)
    side = gait.pelvis_sway * length * np.cos(phase - mid_stance)
    left = np.stack([-np.sin(heading), np.cos(heading), np.zeros_like(z)], axis=-1)
    position = path.position(times) + side[:, None] * left + z[:, None] * UP
    rotvec = np.stack(
        [
            gait.pelvis_obliquity * np.cos(phase - 0.8),
            np.full_like(z, gait.trunk_lean),
            heading - gait.pelvis_rotation * np.cos(phase),
        ],
        axis=-1,
    )
    return root_poses(position, rotvec)


def solve_legs(
    figure: Figure,
    gait: Gait,
    path: WalkPath,
    times: Float[Array, " frame"],
    T_world_root: Float[Array, "frame 4 4"],
    angles: Float[Array, "frame joint 3"],
) -> Float[Array, "frame joint 3"]:
    """Return the angles with every leg solved for the path of its foot."""
    angles = angles.copy()
    T = joint_poses(figure.skeleton, T_world_root, angles)
    for leg in figure.legs:
        foot = FootPath(figure, leg, gait, path).poses(times)
        heading = path.heading(times) + 0.5 * leg.side * gait.toe_out
        axis = _yaw_rotation(heading) @ figure.skeleton.axes[leg.middle, 0]
        stride = path.phase(times, leg)
        twist = gait.knee_twist * np.sin(2.0 * np.pi * (stride - 0.45))
        angles[:, leg.joints] = solve_limb(
            figure.skeleton, leg.joints, T, foot, axis, twist
        )
    return angles


def foot_contacts(
    figure: Figure, gait: Gait, path: WalkPath, seconds: float
) -> tuple[Contact, ...]:
    """Return the contacts of all feet, ordered by start time."""
    contacts = []
    for leg in figure.legs:
        first = int(np.floor(path.phase(np.array(0.0), leg)))
        last = int(np.ceil(path.phase(np.array(seconds), leg)))
        for number in range(first, last + 1):
            contacts += FootPath(figure, leg, gait, path).contacts(number)
    inside = [c for c in contacts if c.end > 0.0 and c.start < seconds]
    return tuple(sorted(inside, key=lambda contact: contact.start))


def walk(
    figure: Figure, times: Float[Array, " frame"], *, seconds: float, seed: int
) -> PoseSequence:
    """Return a walk straight ahead at a constant speed.

    Args:
        figure: A figure with legs.
        times: Seconds.
        seconds: Length of the whole walk.
        seed: Seed of the gait and of the phase at time zero.
    """
    return _walk(figure, times, seconds, seed, turn_rate=0.0)


def circle(
    figure: Figure, times: Float[Array, " frame"], *, seconds: float, seed: int
) -> PoseSequence:
    """Return a walk on a circle of about five metres diameter for a person."""
    return _walk(figure, times, seconds, seed, turn_rate=CIRCLE_TURN_RATE)


def _walk(
    figure: Figure, times: Array, seconds: float, seed: int, *, turn_rate: float
) -> PoseSequence:
    rng = np.random.default_rng([seed, 1])
    gait = draw_gait(figure, rng, turn_rate=turn_rate)
    path = walk_path(figure, gait, start=rng.uniform(0.0, 1.0))
    T_world_root = pelvis_poses(figure, gait, path, times)
    angles = upper_body_angles(figure, gait, path, times)
    angles = angles + idle_angles(figure, angles, times, rng)
    angles = solve_legs(figure, gait, path, times, T_world_root, angles)
    contacts = foot_contacts(figure, gait, path, seconds)
    return PoseSequence(T_world_root, angles, contacts)
