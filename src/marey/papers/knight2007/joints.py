"""Knight2007, Secs. 2.3-2.6: joints of bodies, and a skeleton from root to leaf."""

from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

import numpy as np
from jaxtyping import Float

from marey import synth
from marey.bodies import Bodies
from marey.joints import fit_joints
from marey.joints.hierarchy.estimate import estimate_hierarchy
from marey.joints.sphere.gdke import fit_sphere
from marey.motion import Motion
from marey.numerics import geometry
from marey.papers.experiment import Effort, Experiment
from marey.papers.knight2007 import plots as plots
from marey.papers.measures import Cells, round_to_digits
from marey.papers.obrien2000.accuracy import (
    MARKER_NOISES_MM,
    THIGH_SWINGS_DEG,
    CenterAccuracy,
    marker_sample,
)
from marey.report import Table
from marey.segmentation import segment

Array = np.ndarray

RUNS = 100
METHODS = ("best marker", "mean of markers", "kasa", "corrected", "geometric", "ours")

PELVIS = 1
"""Number of the pelvis among the bodies of `marker_sample`."""


def hip(effort: Effort) -> Experiment:
    """A hip from four thigh and four pelvis markers, against the Cramer-Rao bound."""
    cells = []
    for i, noise in enumerate(MARKER_NOISES_MM):
        for j, swing in enumerate(THIGH_SWINGS_DEG):
            effort.report(f"hip: range {swing:g}°, noise {noise:g} mm")
            seed = (effort.seed, 4, i, j)
            cells.append(_measure_accuracy(swing, noise, seed, effort.runs(RUNS)))
    panels = {}
    for noise in MARKER_NOISES_MM:
        row = [c for c in cells if c.noise == noise]
        panels[f"marker noise {noise:g} mm"] = {
            name: [(c.swing, 1e3 * c.rms[name]) for c in row]
            for name in METHODS
            if name in plots.STYLES
        } | {"bound": [(c.swing, 1e3 * c.bound) for c in row]}
    caption = (
        "Error of the centre in the pelvis, mm rms, 1000 frames, "
        f"{effort.runs(RUNS)} runs a row"
    )
    return Experiment(
        title="A hip of small range (Sec. 2.3, beyond the paper)",
        tables={caption: _table(cells)},
        note=(
            "The paper fits one marker of the thigh in the frame of the pelvis. Best "
            "marker is the one with the least variance of its radius; mean is the mean "
            "of four such fits; together is one closed form for all markers; corrected "
            "and geometric remove its bias. Ours also uses the pelvis in the frame of "
            "the thigh, the residual between the two centres, and the known noise of "
            "both frames. NEES is the normalised estimation error squared: 3 if the "
            "stated covariance is right."
        ),
        figures={
            "hip": plots.error_drawing(
                "A hip from four and four markers",
                panels,
                "range of motion, ° rms",
                "error of the hip, mm",
            )
        },
    )


def _measure_accuracy(
    swing: float, noise: float, seed: Sequence[int], runs: int
) -> CenterAccuracy:
    """Return the errors of the hip in the pelvis by all methods, over many runs."""
    rng = np.random.default_rng(seed)
    squared: dict[str, list[float]] = {name: [] for name in METHODS}
    variances, nees = [], []
    for _ in range(runs):
        bodies, centers, bound = marker_sample(rng, swing, noise)
        fits = fit_joints(bodies, method="gdke")
        estimates = _sphere_centers(bodies) | {"ours": fits.center_b[0]}
        for name, center in estimates.items():
            squared[name].append(float(np.sum((center - centers[PELVIS]) ** 2)))
        error = fits.center_b[0] - centers[PELVIS]
        nees.append(error @ np.linalg.solve(fits.covariance[0, 3:, 3:], error))
        variances.append(np.trace(bound[3:, 3:]))
    return CenterAccuracy.from_runs(swing, noise, squared, variances, nees)


def _sphere_centers(bodies: Bodies) -> dict[str, Float[Array, " 3"]]:
    """Return the hip in the pelvis by sphere fits to the paths of thigh markers."""
    T_pelvis_world = geometry.inverse(bodies.T_world_body[:, PELVIS])
    thigh = bodies.take.points[:, bodies.marker_body != PELVIS]
    points = geometry.apply(T_pelvis_world[:, None], thigh)
    spheres = [
        fit_sphere(points[:, m], estimator="kasa", kind="ball")
        for m in range(points.shape[1])
    ]
    centers = {
        "best marker": min(spheres, key=lambda sphere: sphere.noise).center,
        "mean of markers": np.mean([sphere.center for sphere in spheres], axis=0),
    }
    for name in ("kasa", "corrected", "geometric"):
        centers[name] = fit_sphere(points, estimator=name, kind="ball").center
    return centers


def _table(cells: Sequence[CenterAccuracy]) -> Table:
    columns = (
        "range °",
        "noise mm",
        "best marker",
        "mean",
        "together",
        "corrected",
        "geometric",
        "ours",
        "bound",
        "ours / bound",
        "NEES",
    )
    rows: list[Cells] = [
        (
            f"{c.swing:g}",
            c.noise,
            *(round_to_digits(1e3 * c.rms[name]) for name in METHODS),
            round_to_digits(1e3 * c.bound),
            round(c.rms["ours"] / c.bound, 2),
            round(c.nees, 2),
        )
        for c in cells
    ]
    return Table(columns, tuple(rows))


# --- root to leaf ---------------------------------------------------------------------

MARKER_NOISE_M = 1e-3
METHOD_OPTIONS: dict[str, dict[str, Any]] = {
    "as published": {"axes": "constructed", "estimator": "kasa"},
    "ours": {"axes": "weighted", "estimator": "geometric"},
}


def hierarchy(effort: Effort) -> Experiment:
    """A performer from root to leaf with one, two and three markers per segment."""
    figure = synth.human(seed=effort.seed)
    seconds = 8.0 if effort.quick else 30.0
    take = figure.record(
        "exercise",
        seconds=seconds,
        rate=60.0,
        markers=4,
        noise=MARKER_NOISE_M,
        seed=effort.seed,
    )
    rows: list[Cells] = []
    errors: dict[str, Any] = {}
    for count in (1, 2, 3):
        bodies = _true_bodies(figure, take, count)
        for name, options in METHOD_OPTIONS.items():
            effort.report(f"hierarchy: {count} markers, {name}")
            error, cells = _estimate_and_score(figure, take, bodies, options)
            rows.append((f"{count}, {name}", *cells))
            errors[f"{count} marker{'s' * (count > 1)}\n{name}"] = error
    columns = (
        "markers per segment",
        "median joint mm",
        "worst joint mm",
        "ball / hinge / fixed",
        "twist undetermined",
        "calibration s",
        "frames per second",
    )
    caption = f"A generated performer, {seconds:g} s of exercise, 1 mm of noise"
    return Experiment(
        title="Root to leaf with a marker map (Secs. 2.3 to 2.6)",
        tables={caption: Table(columns, tuple(rows))},
        note=(
            "The pelvis has four markers, every other segment one, two or three, as a "
            "map assigns them. As published: one closed form per joint, and axes "
            "constructed from the first markers. Ours: least squares of the radii, "
            "with all markers and the joint weighted together. One marker on a ball "
            "joint does not determine the twist: children of such a segment are "
            "expressed in axes that rotate with it, and the error is that twist, not "
            "noise. Frames per second are of posing with known constants, without "
            "inverse kinematics."
        ),
        figures={"hierarchy": plots.markers_drawing(errors)},
    )


def _estimate_and_score(
    figure: synth.Figure,
    take: synth.Recording,
    bodies: Bodies,
    options: Mapping[str, Any],
) -> tuple[Float[Array, " joint"], Cells]:
    """Return the error of each joint of a hierarchy, and its cells of the table."""
    start = perf_counter()
    hierarchy = estimate_hierarchy((bodies,), _tree(figure), **options)
    estimated = perf_counter()
    motion = hierarchy.pose(bodies)
    pose_seconds = perf_counter() - estimated
    error = _errors(take, motion)
    kinds = hierarchy.skeleton.kind
    return error, (
        round(1e3 * float(np.median(error)), 2),
        round(1e3 * float(error.max()), 2),
        " / ".join(str(kinds.count(kind)) for kind in ("ball", "hinge", "fixed")),
        float(sum(f.code == "body-swung" for f in hierarchy.findings)),
        round(estimated - start, 2),
        round(len(bodies.T_world_body) / pose_seconds, -2),
    )


def _true_bodies(figure: synth.Figure, take: synth.Recording, count: int) -> Bodies:
    """Return bodies by the true map: four markers on the root, `count` on others."""
    template = {}
    for body in figure.bodies:
        n_markers = 4 if body == figure.bodies[0] else count
        markers = np.flatnonzero(take.truth.marker_joint == body)[:n_markers]
        template[figure.skeleton.names[body]] = [take.labels[i] for i in markers]
    return segment(take, method="template", template=template)


def _tree(figure: synth.Figure) -> dict[str, str]:
    names, body, parent = figure.skeleton.names, figure.body_of, figure.skeleton.parent
    return {names[b]: names[body[parent[b]]] for b in figure.bodies[1:]}


def _errors(take: synth.Recording, motion: Motion) -> Float[Array, " joint"]:
    """Return the error of each joint but the root, rms over the frames, in metres."""
    truth = take.truth.motion
    joints = [truth.skeleton.index(name) for name in motion.skeleton.names]
    error = motion.T_world_joint() - truth.T_world_joint()[:, joints]
    square = np.sum(error[:, 1:, :3, 3] ** 2, axis=-1)
    return np.asarray(np.sqrt(np.nanmean(square, axis=0)))
