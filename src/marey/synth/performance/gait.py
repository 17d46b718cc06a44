"""Gait parameters, and the path of a walk over the ground."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from marey.motion import Contact
from marey.numerics import Array, Float
from marey.skeleton import Skeleton
from marey.synth.figures.figure import Figure, FigureLimb


@dataclass(frozen=True, slots=True, kw_only=True)
class GaitParameters:
    """Parameters of a gait. Lengths are shares of the leg length, angles in radians.

    The values were chosen by hand, so that hip and knee follow the normal curves of
    gait textbooks.
    """

    stride_length: float = 1.45
    """Length of a stride (two steps)."""

    stride_seconds: float = 1.13
    """Time of a stride for a leg of one metre. It grows with the root of the length."""

    step_width: float = 0.55
    """Distance of the footprints from the midline, as a share of that of the hips."""

    toe_out: float = 0.10
    pelvis_height: float = 0.962
    """Mean height of the pelvis above the ankles: 1 = as in the rest pose."""

    pelvis_bob: float = 0.017
    """Amplitude of the vertical motion of the pelvis."""

    bob_phase: float = 0.28
    """Phase of the stride at which the pelvis is highest, as a share."""

    pelvis_sway: float = 0.022
    """Amplitude of the sideways motion of the pelvis, towards the stance leg."""

    footprint_ahead: float = -0.088
    """Distance of the footprint ahead of the pelvis at mid-stance."""

    pelvis_rotation: float = 0.09
    pelvis_obliquity: float = 0.05
    trunk_lean: float = 0.075
    foot_pitch_knots: tuple[tuple[float, float, float], ...] = (
        (0.0, -0.36, 3.4),
        (0.10, 0.0, 0.0),
        (0.39, 0.0, 0.0),
        (0.62, 0.75, 7.0),
        (1.0, -0.36, 3.4),
    )
    """Knots of the foot's pitch, toes down: share of the stride, angle, slope. The foot
    is flat between the second knot and the third."""

    foot_clearance: float = 0.024
    """Extra height of the ankle at mid-swing, above the smooth path."""

    knee_twist: float = 0.08
    """Amplitude of the twist of the knee, in radians."""

    turn_rate: float = 0.0
    """Turning rate of the path, in radians per second."""


@dataclass(frozen=True, slots=True)
class Walk:
    """A gait of a figure: its path over the ground and the timing of its strides."""

    figure: Figure
    gait: GaitParameters
    start_phase: float
    """Phase of the first leg at time zero, as a share of the stride."""

    @property
    def period(self) -> float:
        """Time of a stride, in seconds."""
        length = leg_length(self.figure, self.figure.legs[0])
        return self.gait.stride_seconds * float(np.sqrt(length))

    @property
    def speed(self) -> float:
        """Speed over the ground, in metres per second."""
        length = leg_length(self.figure, self.figure.legs[0])
        return self.gait.stride_length * length / self.period

    def phase(
        self, times: Float[Array, "*batch"], leg: FigureLimb
    ) -> Float[Array, "*batch"]:
        """Return the number of strides of a leg since its first touch-down."""
        return np.asarray(times / self.period + self.start_phase - leg.phase)

    def heading(self, times: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
        """Return the direction of travel in radians from +x."""
        return np.asarray(self.gait.turn_rate * times)

    def position(self, times: Float[Array, "*batch"]) -> Float[Array, "*batch 3"]:
        """Return the position on the ground, on a line or a circle, in metres."""
        half = 0.5 * self.gait.turn_rate * times
        chord = self.speed * times * np.sinc(half / np.pi)
        xyz = [chord * np.cos(half), chord * np.sin(half), np.zeros_like(times)]
        return np.stack(xyz, axis=-1)


def leg_length(figure: Figure, leg: FigureLimb) -> float:
    """Return the length of the straight leg from hip to ankle, in metres."""
    lengths = figure.skeleton.lengths
    return float(lengths[leg.middle] + lengths[leg.end])


def contacts_at(
    skeleton: Skeleton,
    anchors: Float[Array, "joint 3"],
    tips: Sequence[int],
    spans: Sequence[tuple[float, float]],
) -> list[Contact]:
    """Return contacts of some joints at anchors, in metres, for spans of seconds."""
    return [
        Contact(skeleton.names[tip], start, end, anchors[tip])
        for tip in tips
        for start, end in spans
    ]


QUADRUPED_GAIT = GaitParameters(
    stride_length=1.1,
    stride_seconds=1.1,
    step_width=0.9,
    toe_out=0.0,
    pelvis_height=0.92,
    pelvis_bob=0.008,
    pelvis_sway=0.015,
    footprint_ahead=0.0,
    pelvis_rotation=0.04,
    pelvis_obliquity=0.03,
    trunk_lean=0.0,
    foot_pitch_knots=(
        (0.0, -0.2, 0.5),
        (0.3, 0.0, 0.6),
        (0.62, 0.45, 2.5),
        (1.0, -0.2, 0.5),
    ),
    foot_clearance=0.05,
    knee_twist=0.0,
)

GAIT_VARIATION = 0.05
"""Largest random change of a gait parameter, as a share. Larger values make walkers
differ more. Chosen by hand."""


def draw_gait(
    figure: Figure, rng: np.random.Generator, *, turn_rate: float = 0.0
) -> GaitParameters:
    """Return a gait with random differences from the default gait of the figure."""
    default = QUADRUPED_GAIT if len(figure.legs) > 2 else GaitParameters()
    factor = 1.0 + GAIT_VARIATION * rng.uniform(-1.0, 1.0, 4)
    return replace(
        default,
        stride_length=default.stride_length * min(factor[0], 1.0),
        stride_seconds=default.stride_seconds * factor[1],
        pelvis_sway=default.pelvis_sway * factor[2],
        pelvis_rotation=default.pelvis_rotation * factor[3],
        pelvis_height=default.pelvis_height - 0.025 * abs(turn_rate),
        turn_rate=turn_rate,
    )
