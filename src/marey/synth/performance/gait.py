"""Ways of walking: the measures of a gait and the course over the ground."""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from marey.synth.figures.figure import Figure, Limb

Array = np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class Gait:
    """One way of walking. Lengths are shares of the leg, angles radians."""

    stride: float = 1.45
    """Length of a stride: two steps."""

    seconds: float = 1.13
    """Time of a stride for a leg of one metre; it goes with the root of the length."""

    width: float = 0.55
    """Distance of the prints from the middle, as a share of that of the hips."""

    toe_out: float = 0.10
    height: float = 0.962
    """Mean height of the pelvis: 1 = as at rest."""

    bob: float = 0.017
    """Rise of the pelvis over each standing leg."""

    crest: float = 0.28
    """Share of the stride at which the pelvis is highest over the standing leg."""

    sway: float = 0.022
    """How far the pelvis goes over to the standing leg."""

    ahead: float = -0.088
    """How far the prints lie ahead of the pelvis in the middle of the stand."""

    pelvis_turn: float = 0.09
    pelvis_list: float = 0.05
    lean: float = 0.075
    roll: tuple[tuple[float, float, float], ...] = (
        (0.0, -0.36, 3.4),
        (0.10, 0.0, 0.0),
        (0.39, 0.0, 0.0),
        (0.62, 0.75, 7.0),
        (1.0, -0.36, 3.4),
    )
    """Pitch of the foot through the stride, toes down: share of stride, angle, slope.
    Level between the second knot and the third. Chosen with the values above so that
    hip and knee follow the normal curves of gait books."""

    clearance: float = 0.024
    """Lift of the swinging ankle beyond the smoothest way."""

    knee_twist: float = 0.08
    """How far the knee twists with its swing, in radians."""

    turn: float = 0.0
    """Turning of the path in radians per second."""


@dataclass(frozen=True, slots=True)
class Course:
    """The path over the ground and the beat: where the walker is when."""

    speed: float
    turn: float
    period: float
    start: float
    """Share of the stride of the first leg at time zero."""

    def phase(self, times: Float[Array, "*batch"], leg: Limb) -> Float[Array, "*batch"]:
        """Return strides of a leg since its first touch-down; the whole part counts."""
        return np.asarray(times / self.period + self.start - leg.phase)

    def heading(self, times: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
        """Return the direction of travel in radians from +x."""
        return np.asarray(self.turn * times)

    def place(self, times: Float[Array, "*batch"]) -> Float[Array, "*batch 3"]:
        """Return the point of the path, on the ground: a line or a circle."""
        half = 0.5 * self.turn * times
        chord = self.speed * times * np.sinc(half / np.pi)
        flat = [chord * np.cos(half), chord * np.sin(half), np.zeros_like(times)]
        return np.stack(flat, axis=-1)


def leg_length(figure: Figure, leg: Limb) -> float:
    """Return the length of the stretched leg down to its ankle, in metres."""
    lengths = figure.skeleton.lengths
    return float(lengths[leg.middle] + lengths[leg.end])


def course_of(figure: Figure, gait: Gait, start: float = 0.0) -> Course:
    """Return the path and beat that suit a figure's legs."""
    length = leg_length(figure, figure.legs[0])
    period = gait.seconds * float(np.sqrt(length))
    return Course(gait.stride * length / period, gait.turn, period, start)


QUADRUPED = Gait(
    stride=1.1,
    seconds=1.1,
    width=0.9,
    toe_out=0.0,
    height=0.92,
    bob=0.008,
    sway=0.015,
    ahead=0.0,
    pelvis_turn=0.04,
    pelvis_list=0.03,
    lean=0.0,
    roll=((0.0, -0.2, 0.5), (0.3, 0.0, 0.6), (0.62, 0.45, 2.5), (1.0, -0.2, 0.5)),
    clearance=0.05,
    knee_twist=0.0,
)


def styled(figure: Figure, rng: np.random.Generator, *, turn: float = 0.0) -> Gait:
    """Return a gait a little off the usual one, as walkers differ."""
    usual = QUADRUPED if len(figure.legs) > 2 else Gait()
    k = 1.0 + 0.05 * rng.uniform(-1.0, 1.0, 4)
    return replace(
        usual,
        stride=usual.stride * min(k[0], 1.0),
        seconds=usual.seconds * k[1],
        sway=usual.sway * k[2],
        pelvis_turn=usual.pelvis_turn * k[3],
        height=usual.height - 0.025 * abs(turn),
        turn=turn,
    )
