"""Motion of a person: an exercise of all joints, and a walk on flat feet.

In a walk feet are where they stand, exactly, and legs follow: the knee by the law of
cosines, the hip by the direction of the leg. So plants and angles are known.
"""

from dataclasses import dataclass

import numpy as np

from benchmarks.generator.person import HINGES, Person, kind_of
from benchmarks.generator.rotations import Array, about, smooth_noise, turn

RANGES = {
    "trunk": 0.25,
    "head": 0.35,
    "upper_arm": 0.6,
    "hand": 0.4,
    "thigh": 0.4,
    "foot": 0.3,
}
"""Standard deviation of the angles of a ball joint in an exercise, in radians."""

STRIDE_S, STRIDE_OF_LEG, STANCE = 1.1, 1.15, 0.62
LIFT_M, PITCH = 0.09, 0.5
LEG_USED = 0.89
"""Share of the length of the legs at which the hips are carried."""


@dataclass(frozen=True)
class Performance:
    """What a person does.

    Attributes:
        rate: Frames per second.
        R: Rotations of the segments in the world, (frame, segment, 3, 3).
        joint: Joints in the world, (frame, segment, 3).
        plants: Side, begin and end of every foot plant, in seconds.
    """

    person: Person
    rate: float
    R: Array
    joint: Array
    plants: tuple[tuple[str, float, float], ...] = ()

    @property
    def points(self) -> Array:
        """Markers in the world, (frame, marker, 3)."""
        segment = self.person.marker_segment
        turned = np.einsum("fmij,mj->fmi", self.R[:, segment], self.person.marker)
        return np.asarray(self.joint[:, segment] + turned)

    @property
    def axis(self) -> Array:
        """Axes of hinges in the world, (frame, segment, 3); zero for other joints."""
        hinge = [kind_of(name) in HINGES for name in self.person.names]
        return np.asarray(self.R[..., 1] * np.array(hinge, dtype=float)[:, None])

    def flexion(self, upper: str, lower: str) -> Array:
        """Return the angle of a hinge between two segments, in degrees."""
        a, b = (self.person.names.index(name) for name in (upper, lower))
        relative = np.einsum("fji,fjk->fik", self.R[:, a], self.R[:, b])
        angle = np.arctan2(relative[:, 0, 2], relative[:, 2, 2])
        return np.asarray(np.degrees(np.abs(angle)))


def exercise(
    person: Person, seconds: float, rate: float = 100.0, seed: int = 0
) -> Performance:
    """Return all joints in motion at once, slowly, while the person turns about."""
    rng = np.random.default_rng([seed, 13])
    time = np.arange(round(seconds * rate)) / rate
    local = np.empty((len(time), len(person.names), 3, 3))
    for i, name in enumerate(person.names):
        kind = kind_of(name)
        if kind in HINGES:
            bend = 0.9 + 0.5 * smooth_noise(rng, time, 1, 0.7)[:, 0]
            sign = 1.0 if kind == "shank" else -1.0
            local[:, i] = about(1, sign * np.clip(bend, 0.05, 2.3))
        elif i:
            local[:, i] = turn(RANGES[kind] * smooth_noise(rng, time, 3, 0.7))
    sway = smooth_noise(rng, time, 6, 0.4)
    local[:, 0] = turn(sway[:, :3] * [0.15, 0.15, 0.6])
    root = [0.0, 0.0, 1.0] + sway[:, 3:] * [0.3, 0.3, 0.05]
    return Performance(person, rate, *forward(person, local, root))


def forward(person: Person, local: Array, root: Array) -> tuple[Array, Array]:
    """Return rotations and joints in the world."""
    R, joint = np.empty_like(local), np.empty(local.shape[:-1])
    R[:, 0], joint[:, 0] = local[:, 0], root
    for i, parent in enumerate(person.parent.tolist()):
        if parent >= 0:
            R[:, i] = R[:, parent] @ local[:, i]
            joint[:, i] = joint[:, parent] + R[:, parent] @ person.joint[i]
    return R, joint


def walk(
    person: Person, seconds: float, rate: float = 100.0, seed: int = 0
) -> Performance:
    """Return a walk straight ahead, arms swinging against the legs."""
    rng = np.random.default_rng([seed, 17])
    time = np.arange(round(seconds * rate)) / rate
    phase = 2.0 * np.pi * time / STRIDE_S
    local = np.broadcast_to(np.eye(3), (len(time), len(person.names), 3, 3)).copy()
    sway = 0.02 * smooth_noise(rng, time, 6, 0.5)
    local[:, 0] = turn(
        sway[:, :3] + np.stack([0 * phase] * 2 + [0.08 * np.sin(phase)], -1)
    )
    local[:, 1] = turn(
        sway[:, 3:] + np.stack([0 * phase] * 2 + [-0.15 * np.sin(phase)], -1)
    )
    local[:, 2] = turn(0.1 * smooth_noise(rng, time, 3, 0.5))
    for side, sign in (("l", 1.0), ("r", -1.0)):
        swing = sign * np.sin(phase)
        arm, forearm, hand = (
            person.names.index(f"{kind}_{side}")
            for kind in ("upper_arm", "forearm", "hand")
        )
        out = np.full_like(phase, sign * 0.15)
        local[:, arm] = turn(np.stack([out, 0.4 * swing, 0.1 * swing], axis=-1))
        local[:, forearm] = about(1, -0.5 - 0.25 * swing)
        local[:, hand] = turn(0.15 * smooth_noise(rng, time, 3, 0.7))
    hips = LEG_USED * leg_length(person) + person.ankle_height - person.joint[9, 2]
    speed = STRIDE_OF_LEG * leg_length(person) / STRIDE_S
    root = np.stack([speed * time, 0 * time, hips + 0 * time], axis=-1)
    root[:, 2] += 0.012 * np.cos(2.0 * phase)
    R, joint = forward(person, local, root)
    plants: list[tuple[str, float, float]] = []
    for side, shift in (("l", 0.0), ("r", 0.5)):
        plants += place_leg(person, R, joint, time, side, shift)
    return Performance(person, rate, R, joint, tuple(plants))


def leg_length(person: Person) -> float:
    """Return the length of thigh and shank, in metres."""
    bones = person.bones
    return bones["thigh_l"] + bones["shank_l"]


def place_leg(
    person: Person, R: Array, joint: Array, time: Array, side: str, shift: float
) -> list[tuple[str, float, float]]:
    """Put one leg where its foot is; return the plants of the foot."""
    thigh, shank, foot = (
        person.names.index(f"{kind}_{side}") for kind in ("thigh", "shank", "foot")
    )
    cycle = time / STRIDE_S + shift
    step, part = np.floor(cycle), np.mod(cycle, 1.0)
    swing = np.clip((part - STANCE) / (1.0 - STANCE), 0.0, 1.0)
    ahead = swing**3 * (10.0 - 15.0 * swing + 6.0 * swing**2)
    bump = np.sin(np.pi * swing) ** 2
    stride = STRIDE_OF_LEG * leg_length(person)
    x = stride * (step + ahead - shift + STANCE / 2.0)
    y = np.full_like(x, person.joint[thigh, 1])
    ankle = np.stack([x, y, person.ankle_height + LIFT_M * bump], axis=-1)
    R[:, foot] = about(1, PITCH * bump)
    bend_leg(person, R, joint, (thigh, shank, foot), ankle)
    last = time[-1]
    starts = [(n - shift) * STRIDE_S for n in np.unique(step)]
    plants = [(max(s, 0.0), min(s + STANCE * STRIDE_S, last)) for s in starts]
    return [(side, a, b) for a, b in plants if b > a]


def bend_leg(
    person: Person, R: Array, joint: Array, leg: tuple[int, int, int], ankle: Array
) -> None:
    """Set hip and knee so that the ankle is where it has to be."""
    thigh, shank, foot = leg
    a, b = -person.joint[shank, 2], -person.joint[foot, 2]
    reach = ankle - joint[:, thigh]
    c = np.clip(np.linalg.norm(reach, axis=1), abs(a - b) + 1e-6, a + b - 1e-6)
    down = reach / np.linalg.norm(reach, axis=1, keepdims=True)
    left = np.array([0.0, 1.0, 0.0]) - down[:, 1:2] * down
    left /= np.linalg.norm(left, axis=1, keepdims=True)
    R_leg = np.stack([np.cross(left, -down), left, -down], axis=-1)
    at_hip = np.arccos(np.clip((a**2 + c**2 - b**2) / (2.0 * a * c), -1.0, 1.0))
    at_knee = np.arccos(np.clip((a**2 + b**2 - c**2) / (2.0 * a * b), -1.0, 1.0))
    R[:, thigh] = R_leg @ about(1, -at_hip)
    R[:, shank] = R[:, thigh] @ about(1, np.pi - at_knee)
    joint[:, shank] = joint[:, thigh] + R[:, thigh] @ person.joint[shank]
    joint[:, foot] = joint[:, shank] + R[:, shank] @ person.joint[foot]
