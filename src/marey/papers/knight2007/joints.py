"""Knight2007, Secs. 2.3-2.6: joints of bodies, and a figure from root to leaf."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
from marey.papers.obrien2000.accuracy import MARKER_NOISES, THIGH_SWINGS, marker_sample
from marey.report import Table
from marey.segmentation import segment

Array = np.ndarray

RUNS = 100
METHODS = ("best marker", "mean of markers", "kasa", "corrected", "geometric", "ours")

# Which body of a hip's sample is the pelvis.
PELVIS = 1


@dataclass(frozen=True, slots=True)
class Cell:
    """Many runs of one setting."""

    swing: float
    noise: float
    rms: dict[str, float]
    """Error of the centre in the pelvis by method, in metres."""

    bound: float
    nees: float
    """Of ours."""


def hip(effort: Effort) -> Experiment:
    """A hip from four thigh markers and four of the pelvis, against the bound."""
    cells = []
    for i, noise in enumerate(MARKER_NOISES):
        for j, swing in enumerate(THIGH_SWINGS):
            effort.say(f"hip: range {swing:g}°, noise {noise:g} mm")
            seed = (effort.seed, 4, i, j)
            cells.append(_cell(swing, noise, seed, effort.runs(RUNS)))
    panels = {}
    for noise in MARKER_NOISES:
        mine = [c for c in cells if c.noise == noise]
        panels[f"marker noise {noise:g} mm"] = {
            name: [(c.swing, 1e3 * c.rms[name]) for c in mine]
            for name in METHODS
            if name in plots.STYLES
        } | {"bound": [(c.swing, 1e3 * c.bound) for c in mine]}
    caption = (
        "Error of the centre in the pelvis, mm rms, 1000 frames, "
        f"{effort.runs(RUNS)} runs a row"
    )
    return Experiment(
        title="A hip of small range (Sec. 2.3, beyond the paper)",
        tables={caption: _table(cells)},
        note=(
            "The paper fits one marker of the thigh in the axes of the pelvis. Best "
            "marker is the one whose radii scatter least; the mean is over four such "
            "fits; together is one closed form for all markers; corrected and "
            "geometric take out its bias. Ours also uses the pelvis seen from the "
            "thigh, the gap between the two centres, and the known noise of both "
            "bodies' axes. NEES is the squared error in the metric of the stated "
            "covariance: 3 when that is honest."
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


def _cell(swing: float, noise: float, seed: Sequence[int], runs: int) -> Cell:
    rng = np.random.default_rng(seed)
    square: dict[str, list[float]] = {name: [] for name in METHODS}
    least, nees = [], []
    for _ in range(runs):
        bodies, centers, bound = marker_sample(rng, swing, noise)
        true = centers[PELVIS]
        for name, center in _by_paths(bodies).items():
            square[name].append(float(np.sum((center - true) ** 2)))
        fits = fit_joints(bodies, method="gdke")
        off = fits.center_b[0] - true
        square["ours"].append(float(np.sum(off**2)))
        nees.append(off @ np.linalg.solve(fits.covariance[0, 3:, 3:], off))
        least.append(np.trace(bound[3:, 3:]))
    rms = {name: float(np.sqrt(np.mean(values))) for name, values in square.items()}
    return Cell(swing, noise, rms, float(np.sqrt(np.mean(least))), float(np.mean(nees)))


def _by_paths(bodies: Bodies) -> dict[str, Float[Array, " 3"]]:
    """Return the hip in the pelvis by the paths of the thigh's markers alone."""
    back = geometry.inverse(bodies.T_world_body[:, PELVIS])
    thigh = bodies.take.points[:, bodies.marker_body != PELVIS]
    points = geometry.apply(back[:, None], thigh)
    alone = [
        fit_sphere(points[:, m], estimator="kasa", kind="ball")
        for m in range(points.shape[1])
    ]
    found = {
        "best marker": min(alone, key=lambda sphere: sphere.noise).center,
        "mean of markers": np.mean([sphere.center for sphere in alone], axis=0),
    }
    for name in ("kasa", "corrected", "geometric"):
        found[name] = fit_sphere(points, estimator=name, kind="ball").center
    return found


def _table(cells: Sequence[Cell]) -> Table:
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
    rows: list[tuple[str | float, ...]] = [
        (
            f"{c.swing:g}",
            c.noise,
            *(float(f"{1e3 * c.rms[name]:.3g}") for name in METHODS),
            float(f"{1e3 * c.bound:.3g}"),
            round(c.rms["ours"] / c.bound, 2),
            round(c.nees, 2),
        )
        for c in cells
    ]
    return Table(columns, tuple(rows))


# --- root to leaf ---------------------------------------------------------------------

NOISE = 1e-3
WAYS: dict[str, dict[str, Any]] = {
    "as published": {"axes": "constructed", "estimator": "kasa"},
    "ours": {"axes": "weighted", "estimator": "geometric"},
}


def hierarchy(effort: Effort) -> Experiment:
    """A performer from root to leaf with one, two and three markers a segment."""
    figure = synth.human(seed=effort.seed)
    seconds = 8.0 if effort.quick else 30.0
    take = figure.record(
        "exercise",
        seconds=seconds,
        rate=60.0,
        markers=4,
        noise=NOISE,
        seed=effort.seed,
    )
    rows: list[tuple[str | float, ...]] = []
    dots: dict[str, Any] = {}
    for count in (1, 2, 3):
        bodies = _marked(figure, take, count)
        for name, options in WAYS.items():
            effort.say(f"hierarchy: {count} markers, {name}")
            error, cells = _learnt(figure, take, bodies, options)
            rows.append((f"{count}, {name}", *cells))
            dots[f"{count} marker{'s' * (count > 1)}\n{name}"] = error
    columns = (
        "markers a segment",
        "median joint mm",
        "worst joint mm",
        "ball / hinge / fixed",
        "twist unseen",
        "learning s",
        "frames per second",
    )
    caption = f"A generated performer, {seconds:g} s of exercise, 1 mm of noise"
    return Experiment(
        title="Root to leaf with a marker map (Secs. 2.3 to 2.6)",
        tables={caption: Table(columns, tuple(rows))},
        note=(
            "The pelvis has four markers, every other segment one, two or three, and "
            "a map says which. As published: one closed form per joint, and axes built "
            "from the first markers. Ours: least squares of the radii, all markers and "
            "the joint weighed together. One marker on a ball joint does not show the "
            "twist: what hangs from such a segment is seen from axes that turn with "
            "it, and the error is that twist, not noise. Frames per second are those "
            "of posing with the constants learnt, without inverse kinematics."
        ),
        figures={"hierarchy": plots.markers_drawing(dots)},
    )


def _learnt(
    figure: synth.Figure,
    take: synth.Recording,
    bodies: Bodies,
    options: Mapping[str, Any],
) -> tuple[Float[Array, " joint"], tuple[str | float, ...]]:
    """Return the error of each joint of a hierarchy, and its cells of the table."""
    start = perf_counter()
    learnt = estimate_hierarchy((bodies,), _tree(figure), **options)
    taught = perf_counter()
    motion = learnt.pose(bodies)
    posed = perf_counter() - taught
    error = _errors(take, motion)
    kinds = learnt.skeleton.kind
    return error, (
        round(1e3 * float(np.median(error)), 2),
        round(1e3 * float(error.max()), 2),
        " / ".join(str(kinds.count(kind)) for kind in ("ball", "hinge", "fixed")),
        float(sum(f.code == "body-swung" for f in learnt.findings)),
        round(taught - start, 2),
        round(len(bodies.T_world_body) / posed, -2),
    )


def _marked(figure: synth.Figure, take: synth.Recording, count: int) -> Bodies:
    """Return bodies by the true map: four markers on the root, `count` on others."""
    template = {}
    for body in figure.bodies:
        most = 4 if body == figure.bodies[0] else count
        mine = np.flatnonzero(take.truth.marker_joint == body)[:most]
        template[figure.skeleton.names[body]] = [take.labels[i] for i in mine]
    return segment(take, method="template", template=template)


def _tree(figure: synth.Figure) -> dict[str, str]:
    names, body, above = figure.skeleton.names, figure.body_of, figure.skeleton.parent
    return {names[b]: names[body[above[b]]] for b in figure.bodies[1:]}


def _errors(take: synth.Recording, motion: Motion) -> Float[Array, " joint"]:
    """Return how far each joint but the root is off, rms over the frames, in metres."""
    truth = take.truth.motion
    joints = [truth.skeleton.index(name) for name in motion.skeleton.names]
    off = motion.T_world_joint() - truth.T_world_joint()[:, joints]
    square = np.sum(off[:, 1:, :3, 3] ** 2, axis=-1)
    return np.asarray(np.sqrt(np.nanmean(square, axis=0)))
