"""OBrien2000, Sec. 4: exact data, hinges, a stick of two sensors, and run time."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

import marey
from marey import synth
from marey.joints import RigidPair, joint_residuals, rigid_pair
from marey.numerics import Array, Float
from marey.papers.frame import Cells, Effort, Experiment, experiment, table
from marey.papers.measures import rms, time_calls
from marey.papers.plots import Curve, curves_drawing
from marey.papers.recordings import capture_sensors, record_sensors
from marey.plot.style import BLUE, RED
from marey.synth import Recording

SUBJECTS = 20
RATE = 60.0

ROOMS = 20
"""Rooms in which the stick moves, each with its own field; the paper had one."""

STICK_CM, STICK_SD_CM, STICK_SCALE = 56.5, 0.7, 0.94
"""Sec. 4: distance of the two sensors, its standard deviation, scale of the system."""

# White noise and the strong field give the distance of two sensors on a stick the
# standard deviation of the paper, 0.7 cm; the weak field gives half of it.
WHITE_NOISE: dict[str, Any] = {"noise": 0.005, "turn_noise": 0.0087}
WEAK_FIELD: dict[str, Any] = {"field": 0.0045, "noise": 0.001, "turn_noise": 0.0025}
STRONG_FIELD: dict[str, Any] = {**WEAK_FIELD, "field": 0.009}
NOISE_MODELS = {
    "white noise": WHITE_NOISE,
    "weak field": WEAK_FIELD,
    "strong field": STRONG_FIELD,
}


def center_in_body(fits: marey.JointFits, body: int, other: int) -> Float[Array, " 3"]:
    """Return the joint centre of two bodies in the frame of the first, in metres."""
    row = int(np.flatnonzero((fits.pair == sorted((body, other))).all(axis=1))[0])
    centers = fits.center_a if body < other else fits.center_b
    return np.asarray(centers[row])


def length_between_joints(
    bodies: marey.Bodies, fits: marey.JointFits, body: str, joints: tuple[str, str]
) -> float:
    """Return the distance between two joints of a body, in metres.

    Args:
        bodies: The moving bodies.
        fits: Their joints.
        body: The body.
        joints: The two neighbours whose joints with the body are meant.
    """
    index = bodies.names.index
    one, two = (center_in_body(fits, index(body), index(j)) for j in joints)
    return float(np.linalg.norm(one - two))


def joint_residual(
    bodies: marey.Bodies, fits: marey.JointFits, pair: tuple[str, str]
) -> Float[Array, " frame"]:
    """Return the length of a joint's residual vector in every frame, in metres.

    Args:
        bodies: The moving bodies.
        fits: Their joints.
        pair: Names of the two bodies of the joint.
    """
    one, two = (bodies.names.index(name) for name in pair)
    residual = joint_residuals(bodies, fits, (one, two))
    return np.asarray(np.linalg.norm(residual, axis=1))


def is_true_tree(tree: marey.Tree, take: Recording) -> bool:
    """Return whether a tree of sensors has exactly the true edges."""
    sensor = sensor_of_body(take)
    edges = take.truth.edges.tolist()
    true = {frozenset((sensor[a], sensor[b])) for a, b, _ in edges}
    pairs = enumerate(tree.parent.tolist())
    return true == {frozenset(pair) for pair in pairs if pair[1] >= 0}


@experiment("Simulated human of 48 degrees of freedom (Sec. 4)")
def simulation(effort: Effort) -> Experiment:
    """The simulated human of 48 degrees of freedom, without noise.

    Distances between all joints of one body against the true ones.
    """
    max_errors, n_true_trees = [], 0
    subjects = effort.runs(SUBJECTS)
    for seed in range(effort.seed, effort.seed + subjects):
        figure = synth.human(seed=seed)
        take = record_sensors(figure, "exercise", seconds=20.0, seed=seed)
        bodies = marey.segment(take)
        fits = marey.fit_joints(bodies)
        max_errors.append(largest_length_error(take, fits))
        n_true_trees += is_true_tree(marey.infer_tree(fits), take)
    rows = (
        ("largest error of a length, m", "< 1e-06", max(max_errors)),
        ("true hierarchies", "1 of 1", f"{n_true_trees} of {subjects}"),
    )
    caption = f"{subjects} people exercise for 20 s"
    return Experiment(tables={caption: table(" | paper | ours", rows)})


def sensor_of_body(take: Recording) -> dict[int, int]:
    """Return the number of the sensor on each true body."""
    return {int(body): k for k, body in enumerate(take.truth.sensor_body)}


def largest_length_error(take: Recording, fits: marey.JointFits) -> float:
    """Return the largest error of a distance between joints of one body, in metres."""
    truth, sensor = take.truth, sensor_of_body(take)
    rest = truth.skeleton.rest()[:, :3, 3]
    centers: dict[int, list[tuple[int, Array]]] = {}
    for parent, child, joint in truth.edges.tolist():
        for body, other in ((parent, child), (child, parent)):
            center = center_in_body(fits, sensor[body], sensor[other])
            centers.setdefault(body, []).append((joint, center))
    errors = [
        abs(np.linalg.norm(p - q) - np.linalg.norm(rest[i] - rest[j]))
        for joints in centers.values()
        for (i, p), (j, q) in combinations(joints, 2)
    ]
    return float(max(errors))


@experiment("Single-axis joints (Sec. 3.2)")
def hinges(effort: Effort) -> Experiment:
    """Single-axis joints: how often they are recognised, and their axes (Sec. 3.2).

    The paper did this with synthetic data and gives no figures. Any point of the axis
    is a centre; only the distance from the axis is an error.
    """
    rows: list[Cells] = []
    count = effort.runs(5 * SUBJECTS)
    noises: dict[str, dict[str, Any]] = {
        "exact": {},
        "1 mm, 0.5°": {"noise": 1e-3, "turn_noise": 0.0087},
    }
    for name, noise in noises.items():
        scores = []
        for seed in range(effort.seed, effort.seed + count):
            figure = synth.hinge_pair(seed=seed)
            take = record_sensors(figure, seconds=10.0, seed=seed, **noise)
            bodies = marey.segment(take)
            fits = marey.fit_joints(bodies)
            scores.append(marey.metrics.compare(fits, take, bodies=bodies))
        recognised = sum(score.kinds_right for score in scores)
        angle = float(np.degrees(max(score.axis for score in scores)))
        distance = 1e3 * max(score.off_axis for score in scores)
        rows.append((name, f"{recognised} of {count}", angle, distance))
    header = "data | recognised | axis error °, max | distance from axis mm, max"
    return Experiment(tables={"Hinges of random axes, 10 s": table(header, rows)})


def record_stick(
    seed: int, seconds: float, **corruption: Any
) -> tuple[Recording, int, int]:
    """Return a recording of a rigid linkage and two of its sensors, by number.

    The linkage keeps its first pose while it moves through the volume. The two sensors
    are those whose distance is nearest to the paper's 56.5 cm.
    """
    figure = synth.linkage()
    swing = figure.perform("swing", seconds=seconds, rate=RATE, seed=seed)
    rigid = replace(swing, wxyz=np.repeat(swing.wxyz[:1], swing.n_frames, axis=0))
    take = capture_sensors(figure, rigid, seed=seed, **corruption)
    positions = take.truth.T_world_sensor[0, :, :3, 3]
    distance = np.linalg.norm(positions[:, None] - positions, axis=-1)
    nearest = np.argmin(np.abs(distance - STICK_CM / 100.0))
    a, b = np.unravel_index(nearest, distance.shape)
    return take, int(a), int(b)


@experiment("Two sensors on a stick (Sec. 4, Fig. 4)")
def stick(effort: Effort) -> Experiment:
    """Two sensors on a stick: noise and scale of the measurement volume (Fig. 4).

    The paper's noise nearly vanished when the sensors stood still, so most of it came
    from the field. The linkage is recorded with each of these models.
    """
    rows: list[Cells] = [("paper", STICK_CM, STICK_SD_CM, STICK_SCALE)]
    rooms = effort.runs(ROOMS)
    curves = {}
    for name, noise in NOISE_MODELS.items():
        true, pairs, distances = zip(
            *(_calibrate_stick(effort.seed + room, noise) for room in range(rooms)),
            strict=True,
        )
        sd = np.array([pair.sd for pair in pairs])
        scale = float(np.mean([pair.scale for pair in pairs]))
        rows.append((name, 100.0 * float(np.mean(true)), 100.0 * rms(sd), scale))
        cm = 100.0 * distances[int(np.argmin(np.abs(sd - rms(sd))))]
        time = np.arange(len(cm)) / RATE
        curves[f"{name}: sd {cm.std():.2f} cm (paper 0.7 cm)"] = [
            Curve(time, cm, {"color": BLUE, "linewidth": 0.5}),
            Curve(time[[0, -1]], [cm.mean()] * 2, {"color": RED, "linewidth": 1.0}),
        ]
    drawing = curves_drawing(
        "Two sensors on a moving stick", curves, ("time, s", "distance, cm")
    )
    caption = f"Moved for 45 s, mean of {rooms} rooms"
    return Experiment(
        tables={caption: table("model | distance cm | sd cm | scale", rows)},
        figures={"figure-4": drawing},
    )


def _calibrate_stick(
    seed: int, noise: Mapping[str, Any]
) -> tuple[float, RigidPair, Float[Array, " frame"]]:
    """Return true distance, calibration and calibrated distances of a stick."""
    take, a, b = record_stick(seed, 45.0, scale=1.0 / STICK_SCALE, **noise)
    positions = take.truth.T_world_sensor[0, :, :3, 3]
    true = float(np.linalg.norm(positions[a] - positions[b]))
    calibration = rigid_pair(marey.segment(take), (a, b), distance=true)
    path = take.T_world_sensor[..., :3, 3]
    distance = np.linalg.norm(path[:, a] - path[:, b], axis=1)
    return true, calibration, calibration.scale * distance


def record_sixteen_sensors(seed: int = 0) -> marey.Take:
    """Return 45 s of a person in 16 sensors at 120 Hz, two of them on the hips."""
    settings = {"seconds": 45.0, "rate": 120.0, "noise": 0.004, "turn_noise": 0.0087}
    figure = synth.human(seed=seed)
    take = record_sensors(figure, "exercise", seed=seed, **settings)
    T = take.T_world_sensor
    second = T[:, :1].copy()
    second[..., :3, 3] += second[..., :3, :3] @ np.array([0.0, 0.1, 0.0])
    return marey.Take(
        rate=take.rate,
        T_world_sensor=np.concatenate([T, second], axis=1),
        sensor_names=(*take.sensor_names, "Hips2"),
    )


@experiment("Time for 45 s of 16 sensors (Sec. 4)")
def timing(effort: Effort) -> Experiment:
    """Run time for 45 s of 16 sensors, with known and unknown hierarchy.

    The paper's processor ran at 195 MHz. All pairs are always fitted here, so a known
    hierarchy saves little. Runs: {runs}, the fastest is given.
    """
    take = record_sixteen_sensors(seed=effort.seed)
    bodies = marey.segment(take)
    names, parents = bodies.names, marey.solve(take).tree.parent
    known = {names[i]: names[p] for i, p in enumerate(parents) if p >= 0}
    given = marey.SolveOptions(tree=known)

    def fit_as_published() -> marey.JointFits:
        return marey.fit_joints(bodies, estimator="least_squares", mediation=False)

    jobs: tuple[tuple[str, float, Callable[[], object]], ...] = (
        ("joints by the paper's method", 4.0, fit_as_published),
        (
            "and the hierarchy by its weights",
            14.0,
            lambda: marey.infer_tree(fit_as_published(), weight="residual"),
        ),
        ("whole solve, hierarchy given", 4.0, lambda: marey.solve(take, options=given)),
        ("whole solve", 14.0, lambda: marey.solve(take)),
    )
    rows: list[Cells] = []
    for name, paper, job in jobs:
        effort.report(f"timing: {name}")
        seconds = float(time_calls(job, effort.runs(10)).min())
        rows.append((name, f"< {paper:g}", seconds, round(paper / seconds, 1)))
    caption = f"{take.n_frames} frames, one core"
    return Experiment(
        tables={caption: table("work | paper s | ours s | times faster", rows)},
        facts={"runs": effort.runs(10)},
    )
