"""Zordan2003, Sec. 3: ground contact of a walk, and of real recordings."""

from collections.abc import Mapping
from typing import Any

import numpy as np

import marey
from marey.papers import measures
from marey.papers.frame import Cells, Drawing, Effort, Experiment, experiment, table
from marey.papers.measures import TimedMotion
from marey.papers.recordings import HOW_TO_GET_RECORDINGS, find_recording
from marey.papers.stills import evenly_spaced_frames, filmstrip
from marey.papers.zordan2003.performances import record_performance, solve_by_physics
from marey.pose import (
    GroundContacts,
    enforce_contacts,
    find_ground_contacts,
    fit_physics,
    ground_contacts_of,
)
from marey.synth import Recording

FRICTION = 0.8
"""Coefficient of friction of rubber on a dry floor; the paper gives none."""

AS_PRINTED = {"ground": "found", "friction": FRICTION, "settle": "simulation"}
METHODS: Mapping[str, Mapping[str, Any]] = {
    "no ground": {},
    "ground, plants anchored": {"ground": "found"},
    "the same, simulated": {"ground": "found", "settle": "simulation"},
    "ground and friction as printed, simulated": AS_PRINTED,
    "the same under its weight": {**AS_PRINTED, "gravity": 9.81},
}


@experiment("Feet on the ground (Sec. 3, Fig. 5)")
def ground_contact(effort: Effort) -> Experiment:
    """Ground contact of a walk (Sec. 3, Fig. 5).

    Skate is the mean speed, from frame to frame, of points that are planted in truth:
    without a ground it is mostly noise. Friction as printed is a fraction of the force
    that presses a sole down. Without gravity that force nearly vanishes and feet slide;
    with gravity the weight pulls the figure away from its markers. Anchored plants need
    neither and do not depend on earlier frames. `held afterwards` can follow any
    method.
    """
    case = record_performance("walk", 4.0 if effort.full else 1.5, effort)
    take, skeleton = case.recording, case.performer
    runs = {}
    for name, options in METHODS.items():
        effort.report(f"contact: {name}")
        # Numba compiles at the first call, which is not timed.
        solve_by_physics(skeleton, take.cut(0, 3), **options)
        runs[name] = solve_by_physics(skeleton, take, **options)
    (_, _, held, _), seconds = measures.timed(hold_feet, skeleton, take)
    runs["no ground, held afterwards"] = TimedMotion(held, seconds)
    footing = ground_contacts_of(take.truth.motion)
    rows: list[Cells] = [("truth", *_errors(take.truth.motion, take, footing), "")]
    for name, run in runs.items():
        errors = _errors(run.motion, take, footing)
        rows.append((name, *errors, *measures.rounded(take.n_frames / run.seconds)))
    header = (
        "method | joint error mm, rms | of the feet | acceleration m/s², rms | "
        "skate mm/s | below the floor mm, max | frames/s"
    )
    motion = runs["ground, plants anchored"].motion
    strip = evenly_spaced_frames(motion, 0.1, 0.25, 7)
    return Experiment(
        tables={"A walk with known plants": table(header, rows)},
        figures={
            "figure-5-feet": filmstrip(motion, strip, "A walk with its feet held")
        },
    )


def hold_feet(
    skeleton: marey.Skeleton, take: marey.Take
) -> tuple[marey.Motion, GroundContacts, marey.Motion, GroundContacts]:
    """Return a motion and its contacts, free and with its feet held."""
    free = fit_physics(skeleton, take).motion
    footing = find_ground_contacts(free, take)
    return free, footing, *enforce_contacts(free, footing)


def _errors(motion: marey.Motion, take: Recording, footing: GroundContacts) -> Cells:
    error = measures.joint_errors(motion, take)
    feet = [motion.skeleton.index(foot) for foot in set(footing.points.names)]
    return measures.rounded(
        1e3 * measures.rms(error),
        1e3 * measures.rms(error[:, feet]),
        measures.rms_acceleration(motion),
        1e3 * footing.skate(motion),
        1e3 * footing.penetration(motion),
    )


# --- real recordings ------------------------------------------------------------------

TAKES = {
    "02_05": ("punches and strikes", 0.17),
    "02_01": ("a walk", 0.5),
    "07_01": ("a walk", 0.5),
    "07_12": ("a brisk walk", 0.5),
}
"""Recordings of the CMU graphics lab: what they show, seconds between stills."""

FRAMES = 400


@experiment("Real punches and walks (Secs. 4.1 and 4.2)")
def real_recordings(effort: Effort) -> Experiment:
    """Fighters and walkers of the CMU graphics lab, if recordings are there.

    The skeleton is estimated from the recording itself, which the paper wished for; the
    first {frames} frames are mapped. There is no truth here, and no soles: markers on
    top of feet determine plants but no floor, so that penetration is unknown. {data}
    """
    mapping: list[Cells] = []
    contact: list[Cells] = []
    figures: dict[str, Drawing] = {}
    for name, (content, spacing) in TAKES.items():
        path = find_recording(f"cmu/{name}.c3d")
        if path is None:
            continue
        effort.report(f"recordings: {name}")
        whole = marey.read(path)
        skeleton = marey.solve(whole).skeleton
        take = whole.cut(0, min(FRAMES, whole.n_frames))
        mapped, simulated = _map_by_simulation(skeleton, take)
        mapping.append((f"{name}, {content}", *mapped))
        standing, held = _hold_and_measure(skeleton, take)
        contact.append((f"{name}, {content}", *standing))
        title = f"{name}: {content}, {spacing:g} s apart"
        strip = evenly_spaced_frames(simulated, 0.2, spacing, 7)
        figures[f"recording-{name}"] = filmstrip(simulated, strip, title)
        feet = filmstrip(held, strip, f"{title}, feet held")
        figures[f"recording-{name}-held"] = feet
    return Experiment(
        tables={
            "Mapped by simulation": table(
                "take | marker residual mm, mean | max | springs switched off % | "
                "distance from the least energy mm, max | steps per frame | "
                "frames not at rest | frames/s",
                mapping,
            ),
            "Feet": table(
                "take | plants | skate mm/s | with the ground | held | "
                "joints moved by holding mm, max | acceleration m/s², rms | held | "
                "frames/s",
                contact,
            ),
        },
        facts={"frames": FRAMES, "data": HOW_TO_GET_RECORDINGS},
        figures=figures,
    )


def _map_by_simulation(
    skeleton: marey.Skeleton, take: marey.Take
) -> tuple[Cells, marey.Motion]:
    """Return the cells of the first table and the simulated motion of a take."""
    direct = fit_physics(skeleton, take)
    found, seconds = measures.timed(fit_physics, skeleton, take, settle="simulation")
    residual = found.residual_m[np.isfinite(found.residual_m) & ~found.is_cut_off]
    cells = measures.rounded(
        1e3 * residual.mean(),
        1e3 * residual.max(),
        100.0 * found.is_cut_off.mean(),
        1e3 * measures.joint_distances(found.motion, direct.motion).max(),
        found.steps.mean(),
    )
    n_moving = float(found.not_converged.sum())
    return (*cells, n_moving, *measures.rounded(take.n_frames / seconds)), found.motion


def _hold_and_measure(
    skeleton: marey.Skeleton, take: marey.Take
) -> tuple[Cells, marey.Motion]:
    """Return the cells of the second table and the motion with its feet held."""
    (free, footing, held, held_footing), seconds = measures.timed(
        hold_feet, skeleton, take
    )
    ground = fit_physics(skeleton, take, ground="found").motion
    cells = measures.rounded(
        1e3 * footing.skate(free),
        1e3 * held_footing.skate(ground),
        1e3 * held_footing.skate(held),
        1e3 * measures.joint_distances(held, free).max(),
        measures.rms_acceleration(free),
        measures.rms_acceleration(held),
        take.n_frames / seconds,
    )
    return (len(held_footing.plants), *cells), held
