"""Bodenheimer1997: inverse kinematics of a walk and of two reaches (Sec. 3.2)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

import marey
from marey import synth, virtual
from marey.numerics import geometry
from marey.papers import measures
from marey.papers.frame import Cells, Drawing, Effort, Experiment, experiment, table
from marey.papers.measures import TimedMotion
from marey.papers.plots import Curve, curves_drawing
from marey.papers.recordings import capture_sensors, true_skeleton
from marey.plot.style import BLUE, GOLD, RED
from marey.pose import compare_joint_use, fit_bfgs, fit_pose, mask_joints
from marey.report import Table
from marey.rig import bone_lengths, with_bone_lengths
from marey.synth import Figure, Recording
from marey.virtual import VirtualMotion

Array = np.ndarray

RATE = 30.0
WALK_SECONDS, REACH_SECONDS = 6.7, 3.8
LAYOUT = "13"

MAGNETIC_NOISE: Mapping[str, Any] = {
    "noise": 2e-3,
    "coloured": 2e-3,
    "turn_noise": np.radians(0.5),
    "gross": 6 / 508,
}
"""White and coloured noise of a magnetic system, and the paper's rate of gross errors.
"""

LOW_REACH, MEDIUM_REACH = 0.42, 0.62
"""Height that the hand reaches to, as a fraction of the stature. Chosen by hand."""


@dataclass(frozen=True, slots=True, eq=False)
class PreparedTake:
    """A recording after the paper's Secs. 2 and 3.1, ready for inverse kinematics."""

    recording: Recording
    virtual: VirtualMotion
    skeleton: marey.Skeleton
    """The skeleton with robust bone lengths and a sensor at every joint."""

    take: marey.Take
    """Joints of the virtual skeleton, as sensors."""

    is_outlier: Bool[Array, "frame joint"]
    """Joints that are tagged as outliers in a frame."""


def prepare(recording: Recording) -> PreparedTake:
    """Return the virtual skeleton, bone lengths and outliers of a recording.

    The offsets of the sensors on the bones are known without error.
    """
    skeleton = true_skeleton(recording)
    seen = virtual.compute_motion(skeleton, recording, layout=LAYOUT)
    lengths = bone_lengths(seen.positions, skeleton.parent, "tukey")
    fitted = with_bone_lengths(virtual.with_joint_sensors(skeleton), lengths)
    return PreparedTake(recording, seen, fitted, seen.as_take(), seen.outlier_joints())


def record_magnetic(
    figure: Figure, motion: marey.Motion, seed: int, **more: Any
) -> Recording:
    """Return a motion as a magnetic system records it, with a sensor on every body."""
    return capture_sensors(figure, motion, seed=seed, **{**MAGNETIC_NOISE, **more})


def perform_walk(figure: Figure, seed: int) -> marey.Motion:
    """Return a walk as long as the paper's."""
    return figure.perform("walk", seconds=WALK_SECONDS, rate=RATE, seed=seed)


def perform_reach(figure: Figure, height: float, *, early: float = 0.0) -> marey.Motion:
    """Return a reach with the right hand and back, standing.

    Args:
        figure: The performer.
        height: Height of the goal, as a fraction of the stature.
        early: Time by which the hand arrives before the middle, as a fraction.
    """
    phase = np.arange(round(REACH_SECONDS * RATE)) / RATE / REACH_SECONDS
    out = synth.smoothstep((phase - 0.1) / (0.35 - early)) * synth.smoothstep(
        (0.95 - phase) / (0.35 + early)
    )

    def hand(T_world_joint: Array) -> Array:
        return _hand_path(figure, T_world_joint, height)

    lean = 0.2 + 2.0 * max(0.6 - height, 0.0)
    return synth.reach(figure, out, hand, rate=RATE, lean=lean)


def _hand_path(
    figure: Figure, T_world_joint: Float[Array, "frame joint 4 4"], height: float
) -> Float[Array, "frame 4 4"]:
    """Return the goal of the hand: in front at a height, fingers away from the body."""
    shoulder = T_world_joint[:, figure.arms[1].upper, :3, 3]
    lengths = figure.skeleton.lengths
    arm = sum(lengths[j] for j in figure.arms[1].joints[1:])
    goal = np.tile(np.eye(4), (len(shoulder), 1, 1))
    drop = figure.height * height - shoulder[:, 2]
    ahead = np.sqrt(np.maximum((0.93 * arm) ** 2 - drop**2, (0.25 * arm) ** 2))
    goal[:, 0, 3] = shoulder[:, 0] + ahead
    goal[:, 1, 3] = shoulder[:, 1] - 0.02
    goal[:, 2, 3] = figure.height * height
    down = np.zeros_like(shoulder)
    down[:, 1] = np.arctan2(-drop, ahead)
    # At rest the fingers point to -y and the thumb to +x; at the goal to +x and +z.
    R_goal_rest = np.array([[0.0, -1.0, 0.0], [0.0, 0.0, -1.0], [1.0, 0.0, 0.0]])
    goal[:, :3, :3] = geometry.rotation_exp(down) @ R_goal_rest
    return goal


# --- inverse kinematics ---------------------------------------------------------------

SHOULDER = "RightUpperArm"
HANDS = ("LeftHand", "RightHand")
EFFECTORS = (*HANDS, "LeftFoot", "RightFoot")
WEIGHTS_WITHOUT_SENSOR = {
    f"{side}{part}": 0.0
    for side in ("Left", "Right")
    for part in ("UpperArm", "UpperLeg")
}
"""Weights of limbs without a sensor, whose poses inverse kinematics determines."""

LOOSE_TOLERANCE = 1e-6
"""Tolerance of the fitness, in squared standard deviations. Chosen by hand: the eye
sees no difference."""


def solve_by_bfgs(ready: PreparedTake, **options: Any) -> TimedMotion:
    """Return the poses of least fitness by BFGS; outlier joints have no weight.

    As in the paper, every frame starts where the one before it ended.
    """

    def solve() -> tuple[marey.Motion, int]:
        seen = mask_joints(ready.skeleton, ready.take, ready.is_outlier)
        found = fit_bfgs(ready.skeleton, seen, both_ways=False, **options)
        return found.motion, int(found.steps.sum())

    (motion, steps), seconds = measures.timed(solve)
    return TimedMotion(motion, seconds, steps)


def solve_by_gauss_newton(ready: PreparedTake, **options: Any) -> TimedMotion:
    """Return the poses of marey's default method; it counts no steps."""
    more = {"method": "gauss_newton", "ignore": ready.is_outlier, **options}
    (motion, _), seconds = measures.timed(fit_pose, ready.skeleton, ready.take, **more)
    return TimedMotion(motion, seconds, 0)


def distances_from_data(
    ready: PreparedTake, motion: marey.Motion
) -> Float[Array, "frame joint"]:
    """Return the distance of every joint from the data; NaN where they are outliers."""
    difference = motion.T_world_joint()[..., :3, 3] - ready.virtual.positions
    return np.where(ready.is_outlier, np.nan, np.linalg.norm(difference, axis=-1))


def rms_mm(distance_m: Array) -> float:
    """Return the root mean square in millimetres, rounded to three digits."""
    return measures.round_to_digits(1e3 * measures.rms(distance_m))


@experiment(f"A walk of {WALK_SECONDS} s at {RATE:g} frames per second (Sec. 3.2)")
def walking(effort: Effort) -> Experiment:
    """A walk of 6.7 s: iterations, seconds and residuals (Sec. 3.2).

    {frames} frames of 13 sensors; in {tagged} of them joints were tagged and ignored.
    The paper's machine was a Pentium 133, its figure has 44 degrees of freedom, ours
    48. It says that the fit is extremely good, and shows no number. End effectors are
    the wrists and ankles as sensors place them (before), and those of the articulated
    skeleton (after).
    """
    figure = synth.human(seed=effort.seed)
    walk = perform_walk(figure, effort.seed)
    ready = prepare(record_magnetic(figure, walk, effort.seed))
    printed = {"rotation": "euler", "tolerance": LOOSE_TOLERANCE}
    methods: dict[str, Callable[[], TimedMotion]] = {
        "BFGS, Euler angles, as printed": lambda: solve_by_bfgs(ready, **printed),
        "BFGS, quaternions": lambda: solve_by_bfgs(ready, tolerance=LOOSE_TOLERANCE),
        "BFGS, quaternions, to the last digit": lambda: solve_by_bfgs(ready),
        "Gauss-Newton": lambda: solve_by_gauss_newton(ready),
    }
    for solve in methods.values():
        solve()  # Numba compiles at the first call, which is not timed.
    runs = {name: solve() for name, solve in methods.items()}
    effectors = compare_end_effectors(ready, runs["BFGS, quaternions"].motion)
    n_tagged = int(ready.is_outlier.any(axis=1).sum())
    return Experiment(
        tables={
            "Inverse kinematics": _walk_table(runs, ready),
            "End effectors, rms mm": effectors,
        },
        facts={"frames": ready.take.n_frames, "tagged": n_tagged},
    )


def _walk_table(runs: dict[str, TimedMotion], ready: PreparedTake) -> Table:
    """Return iterations, seconds and errors of every method, the paper's first."""
    rows: list[Cells] = [
        ("paper", 4389, round(4389 / (WALK_SECONDS * RATE), 1), 306.0, "", "")
    ]
    rows += [
        (
            name,
            run.steps or "",
            round(run.steps / ready.take.n_frames, 1) if run.steps else "",
            measures.round_to_digits(run.seconds, 2),
            rms_mm(distances_from_data(ready, run.motion)),
            rms_mm(measures.joint_errors(run.motion, ready.recording)),
        )
        for name, run in runs.items()
    ]
    header = "method | iterations | per frame | seconds | residual mm | error mm"
    return table(header, rows)


def compare_end_effectors(ready: PreparedTake, motion: marey.Motion) -> Table:
    """Return errors of hands and feet before and after, and how far they moved."""
    weighted = solve_by_bfgs(ready, weights=dict.fromkeys(EFFECTORS, 100.0)).motion
    true = ready.recording.truth.motion.T_world_joint()[..., :3, 3]
    distances = (
        np.linalg.norm(ready.virtual.positions - true, axis=-1),
        measures.joint_errors(motion, ready.recording),
        distances_from_data(ready, motion),
        distances_from_data(ready, weighted),
    )
    rows: list[Cells] = []
    for name in EFFECTORS:
        joint = ready.skeleton.index(name)
        good = ~ready.is_outlier[:, joint]
        rows.append((name, *(rms_mm(distance[good, joint]) for distance in distances)))
    header = "effector | error before | error after | moved"
    return table(f"{header} | moved, with 100 times the weight", rows)


@experiment(f"A low reach like a medium one, {REACH_SECONDS} s (Sec. 3.2, Figs. 7-9)")
def reaching(effort: Effort) -> Experiment:
    """Two reaches: one is the reference motion of the other (Sec. 3.2, Figs. 7-9).

    Upper arms and thighs have no sensor; inverse kinematics determines them. The twist
    of a straight arm may be that of the shoulder or of the forearm. As an initial value
    only, as printed, the reference helps little if a solver converges from anywhere; as
    a weak prior (0.5 rad) it determines what the data do not. Angles are rms over the
    reach, matched by dynamic time warping.
    """
    figure = synth.human(seed=effort.seed + 1)
    low, medium = (
        prepare(record_magnetic(figure, reach, effort.seed + 3))
        for reach in (
            perform_reach(figure, LOW_REACH, early=0.08),
            perform_reach(figure, MEDIUM_REACH),
        )
    )
    weights = {"weights": WEIGHTS_WITHOUT_SENSOR}
    printed = {"rotation": "euler", "tolerance": LOOSE_TOLERANCE, **weights}
    other = solve_by_bfgs(medium, **printed).motion
    bfgs, gauss_newton = solve_by_bfgs, solve_by_gauss_newton
    # A reference without a standard deviation is the initial value only.
    start = {"reference": other, "reference_sd": np.inf}
    led = {"reference": other}
    runs = {
        "low reach": bfgs(low, **printed),
        "low reach, reference as start": bfgs(low, **printed, **start),
        "low reach, reference": bfgs(low, **printed, **led),
        "low reach, Gauss-Newton": gauss_newton(low, **weights),
        "low reach, Gauss-Newton, reference": gauss_newton(low, **weights, **led),
    }
    return Experiment(
        tables={"Joint use, matched in time": _use_table(runs, low, medium, other)},
        figures={"figures-7-9": _figures(runs, other)},
    )


def _use_table(
    runs: dict[str, TimedMotion],
    low: PreparedTake,
    medium: PreparedTake,
    other: marey.Motion,
) -> Table:
    """Return the similarity of the shoulder in each solution and in another reach."""
    paper = {"low reach": (1278, 37.08), "low reach, reference as start": (3295, 232.0)}
    rows: list[Cells] = []
    for name, run in runs.items():
        error = measures.joint_errors(run.motion, low.recording)[~low.is_outlier]
        search = run.steps or "", measures.round_to_digits(run.seconds, 2)
        use = _shoulder_use(run.motion, other)
        rows.append((name, *paper.get(name, ("", "")), *search, *use, rms_mm(error)))
    truths = low.recording.truth.motion, medium.recording.truth.motion
    rows.append(("truth", "", "", "", "", *_shoulder_use(*truths), 0))
    header = (
        "motion | paper iterations | paper s | iterations | s | "
        "shoulder, from medium reach ° | of its curves ° | joint error mm"
    )
    return table(header, rows)


def _shoulder_use(motion: marey.Motion, other: marey.Motion) -> tuple[float, float]:
    """Return the difference of the shoulder and of its curves, in degrees."""
    use = compare_joint_use(motion, other)
    shoulder = use.names.index(SHOULDER)
    angle, curves = np.degrees([use.rotation_rms[shoulder], use.euler_rms[shoulder]])
    return round(float(angle), 1), round(float(curves), 1)


def _figures(runs: dict[str, TimedMotion], other: marey.Motion) -> Drawing:
    shown = {
        "low reach (Fig. 7)": runs["low reach"].motion,
        "medium reach (Fig. 8)": other,
        "low, by reference (Fig. 9)": runs["low reach, reference"].motion,
    }
    panels = {}
    for name, motion in shown.items():
        angles = motion.euler("XYZ")[:, motion.skeleton.index(SHOULDER)]
        angles = angles - 2 * np.pi * np.round(angles.mean(axis=0) / (2 * np.pi))
        panels[name] = [
            Curve(motion.times, np.degrees(y), {"color": colour, "label": axis})
            for y, colour, axis in zip(angles.T, (RED, GOLD, BLUE), "xyz", strict=True)
        ]
    title, labels = "Angles of the right shoulder, XYZ", ("time, s", "angle, °")
    return curves_drawing(title, panels, labels, size=(2.9 * len(panels) + 0.6, 3.0))
