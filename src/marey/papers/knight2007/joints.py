"""Knight2007, Secs. 2.3-2.6: joints of bodies, and a skeleton from root to leaf."""

from collections.abc import Mapping
from typing import Any

import numpy as np

import marey
from marey import synth
from marey.joints import estimate_hierarchy, fit_sphere
from marey.numerics import Array, Float, geometry
from marey.papers.frame import Cells, Effort, Experiment, experiment, table
from marey.papers.joint_samples import (
    MARKER_NOISES_MM,
    THIGH_SWINGS_DEG,
    CenterErrors,
    error_panels,
    hip_settings,
    marker_sample,
    measure_grid,
)
from marey.papers.knight2007.samples import STYLES, error_drawing
from marey.papers.measures import rounded, timed
from marey.papers.plots import dots_drawing
from marey.papers.recordings import true_bodies

RUNS = 100

PELVIS = 1
"""Number of the pelvis among the bodies of `marker_sample`."""


@experiment("A hip of small range (Sec. 2.3, beyond the paper)")
def hip(effort: Effort) -> Experiment:
    """A hip from four thigh and four pelvis markers, against the Cramer-Rao bound.

    The paper fits one marker of the thigh in the frame of the pelvis. Best marker is
    the one with the least variance of its radius; mean is the mean of four such fits;
    together is one closed form for all markers; corrected and geometric remove its
    bias. Ours also uses the pelvis in the frame of the thigh, the residual between the
    two centres, and the known noise of both frames. NEES is the normalised estimation
    error squared: 3 if the stated covariance is right.
    """
    settings = hip_settings(effort, 4, MARKER_NOISES_MM, THIGH_SWINGS_DEG)
    cells = measure_grid(effort, "hip", " mm", estimate_hip, settings, RUNS)
    header = (
        "range ° | noise mm | best marker | mean | together | corrected | geometric | "
        "ours | bound | ours / bound | NEES"
    )
    rows: list[Cells] = [
        (
            f"{c.swing:g}",
            c.noise,
            *rounded(*(1e3 * error for error in c.rms.values())),
            round(c.over_bound("ours"), 2),
            round(c.nees, 2),
        )
        for c in cells
    ]
    caption = (
        "Error of the centre in the pelvis, mm rms, 1000 frames, "
        f"{effort.runs(RUNS)} runs a row"
    )
    drawing = error_drawing(
        "A hip from four and four markers",
        error_panels(cells, "marker noise {:g} mm", STYLES, 1e3),
        "range of motion, ° rms",
        "error of the hip, mm",
    )
    return Experiment(tables={caption: table(header, rows)}, figures={"hip": drawing})


def estimate_hip(rng: np.random.Generator, swing: float, noise: float) -> CenterErrors:
    """Return the errors of the hip in the pelvis by all methods, in one sample."""
    bodies, centers, bound = marker_sample(rng, swing, noise)
    fits = marey.fit_joints(bodies, method="gdke")
    estimates = _sphere_centers(bodies) | {"ours": fits.center_b[0]}
    errors = {name: (c - centers[PELVIS])[None] for name, c in estimates.items()}
    variance = float(np.trace(bound[3:, 3:]))
    return CenterErrors(errors, variance, [fits.covariance[0, 3:, 3:]])


def _sphere_centers(bodies: marey.Bodies) -> dict[str, Float[Array, " 3"]]:
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


# --- root to leaf ---------------------------------------------------------------------

MARKER_NOISE_M = 1e-3
SECONDS = 80
"""Length of a full take, in seconds."""

METHOD_OPTIONS: dict[str, dict[str, Any]] = {
    "as published": {"axes": "constructed", "estimator": "kasa"},
    "ours": {"axes": "weighted", "estimator": "geometric"},
}


@experiment("Root to leaf with a marker map (Secs. 2.3 to 2.6)")
def hierarchy(effort: Effort) -> Experiment:
    """A performer from root to leaf with one, two and three markers per segment.

    The pelvis has four markers, every other segment one, two or three, as a map assigns
    them. As published: one closed form per joint, and axes constructed from the first
    markers; of a single marker, from the direction in which it moves least. Ours: least
    squares of the radii, with all markers and the joint weighted together. One marker
    on a ball joint does not determine the twist: children of such a segment are
    expressed in axes that rotate with it, and the error is that twist, not noise; the
    path of one more single marker in such axes is fitted as published. Frames per
    second are of posing the whole take with known constants, without inverse
    kinematics.
    """
    figure = synth.human(seed=effort.seed)
    seconds = float(effort.runs(SECONDS))
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
        bodies = true_bodies(take, count)
        for name, options in METHOD_OPTIONS.items():
            effort.report(f"hierarchy: {count} markers, {name}")
            error, cells = _estimate_and_score(figure, take, bodies, options)
            rows.append((f"{count}, {name}", *cells))
            errors[f"{count} marker{'s' * (count > 1)}\n{name}"] = 1e3 * error
    header = (
        "markers per segment | median joint mm | worst joint mm | "
        "ball / hinge / fixed | twist undetermined | calibration s | frames per second"
    )
    caption = f"A generated performer, {seconds:g} s of exercise, 1 mm of noise"
    drawing = dots_drawing(
        "Root to leaf: each dot a joint, the bar their median",
        {"": errors},
        ("", "error of a joint, rms over the take, mm"),
        scale="log",
    )
    return Experiment(
        tables={caption: table(header, rows)}, figures={"hierarchy": drawing}
    )


def _estimate_and_score(
    figure: synth.Figure,
    take: synth.Recording,
    bodies: marey.Bodies,
    options: Mapping[str, Any],
) -> tuple[Float[Array, " joint"], Cells]:
    """Return the error of each joint of a hierarchy, and its cells of the table."""
    names, body, parent = figure.skeleton.names, figure.body_of, figure.skeleton.parent
    tree = {names[b]: names[body[parent[b]]] for b in figure.bodies[1:]}
    found, seconds = timed(estimate_hierarchy, (bodies,), tree, **options)
    motion, pose_seconds = timed(found.pose, bodies)
    error = joint_errors(take, motion)
    kinds = found.skeleton.kind
    return error, (
        round(1e3 * float(np.median(error)), 2),
        round(1e3 * float(error.max()), 2),
        " / ".join(str(kinds.count(kind)) for kind in ("ball", "hinge", "fixed")),
        float(sum(f.code == "body-twist-unknown" for f in found.findings)),
        round(seconds, 2),
        round(len(bodies.T_world_body) / pose_seconds, -2),
    )


def joint_errors(take: synth.Recording, motion: marey.Motion) -> Float[Array, " joint"]:
    """Return the error of each joint but the root, rms over the frames, in metres."""
    truth = take.truth.motion
    joints = [truth.skeleton.index(name) for name in motion.skeleton.names]
    error = motion.T_world_joint() - truth.T_world_joint()[:, joints]
    square = np.sum(error[:, 1:, :3, 3] ** 2, axis=-1)
    return np.asarray(np.sqrt(np.nanmean(square, axis=0)))
