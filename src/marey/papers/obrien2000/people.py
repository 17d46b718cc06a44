"""OBrien2000: limb lengths of people, and the hierarchy (Tables 2 to 4, Fig. 8)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from marey import synth
from marey.bodies import Bodies
from marey.joints import fit_joints
from marey.papers.experiment import Effort, Experiment
from marey.papers.measures import Cells, rms
from marey.papers.obrien2000.exact import RATE, joint_residual, length_between_joints
from marey.papers.plots import people_drawing, residual_drawing
from marey.papers.recordings import record_sensors
from marey.report import Table
from marey.segmentation import segment
from marey.synth import Figure, Recording

Array = np.ndarray

LIMBS = {
    "Right Lower Leg": ("RightLowerLeg", ("RightUpperLeg", "RightFoot")),
    "Left Lower Leg": ("LeftLowerLeg", ("LeftUpperLeg", "LeftFoot")),
    "Right Upper Leg": ("RightUpperLeg", ("Hips", "RightLowerLeg")),
    "Left Upper Leg": ("LeftUpperLeg", ("Hips", "LeftLowerLeg")),
    "Right Lower Arm": ("RightLowerArm", ("RightUpperArm", "RightHand")),
    "Left Lower Arm": ("LeftLowerArm", ("LeftUpperArm", "LeftHand")),
    "Right Upper Arm": ("RightUpperArm", ("Spine", "RightLowerArm")),
    "Left Upper Arm": ("LeftUpperArm", ("Spine", "LeftLowerArm")),
}
"""Rows of Tables 2 to 4: a body and the two joints on it."""


@dataclass(frozen=True, slots=True)
class PublishedLengths:
    """One of the paper's tables: the person, the motions, and the errors of lengths."""

    name: str
    height: float
    motions: tuple[str, ...]
    error_cm: Float[Array, "limb trial"]
    """Measured minus calculated lengths, in centimetres."""


EXERCISE, WALK = "exercise", "chicken_walk"

PUBLISHED = (
    PublishedLengths(
        "Table 2",
        1.80,
        (EXERCISE,) * 4,
        np.array(
            [
                [-0.8, -0.9, -2.2, -2.5],
                [3.0, 1.9, -0.9, -1.2],
                [0.1, -0.5, -1.3, -0.6],
                [1.8, 1.4, 0.0, 0.2],
                [0.7, 0.3, -0.7, 0.0],
                [0.1, -0.3, -0.1, -0.4],
                [-2.6, -1.8, 0.2, 0.7],
                [-4.1, -3.4, -0.6, -0.4],
            ]
        ),
    ),
    PublishedLengths(
        "Table 3",
        1.80,
        (WALK,) * 3,
        np.array(
            [
                [-0.6, -0.3, 1.1],
                [-0.4, 1.4, 0.5],
                [0.9, 1.0, -1.0],
                [-1.9, 0.5, 0.1],
                [-0.3, -0.5, 1.2],
                [0.5, 1.7, 1.0],
                [-1.4, -1.6, -3.2],
                [-2.7, -2.7, -1.3],
            ]
        ),
    ),
    PublishedLengths(
        "Table 4",
        1.68,
        (EXERCISE, WALK, WALK),
        np.array(
            [
                [-2.3, -1.2, -1.3],
                [-1.1, -0.5, -0.9],
                [-0.7, -1.1, 0.0],
                [-0.5, -2.2, -1.0],
                [-0.7, -0.5, 2.3],
                [-0.3, 0.0, 1.8],
                [0.2, 0.1, -1.0],
                [-0.9, -2.4, -1.3],
            ]
        ),
    ),
)

SKIN_SLIDES_MM = (5.0, 10.0)
"""Slide of the skin of a thigh, in mm rms; it rotates by 0.3 degrees per mm."""

PEOPLE, SECONDS = 15, 20.0


def record_person(figure: Figure, motion: str, seed: int, skin: float) -> Recording:
    """Return a person in sensors: sliding skin, moving knees, a distorted field, noise.

    Args:
        figure: The person.
        motion: A key of `marey.synth.MOTIONS`.
        seed: Draws performance, skin and positions of the sensors.
        skin: Slide of the skin of a thigh, in millimetres rms.
    """
    return record_sensors(
        figure,
        motion,
        seconds=SECONDS,
        rate=RATE,
        seed=seed,
        soft_tissue=1e-3 * skin,
        soft_tissue_turn=float(np.radians(0.3 * skin)),
        knee_shift=1.0,
        field=0.0045,
        noise=0.001,
        turn_noise=0.0025,
    )


def true_lengths(figure: Figure) -> Float[Array, " limb"]:
    """Return the true lengths of the limbs of a figure, in centimetres."""
    positions = figure.skeleton.rest()[:, :3, 3]
    ends = [(body, joints[1]) for body, joints in LIMBS.values()]
    index = figure.skeleton.index
    return np.array(
        [
            100.0 * np.linalg.norm(positions[index(a)] - positions[index(b)])
            for a, b in ends
        ]
    )


def limb_errors(
    take: Recording, figure: Figure, options: Mapping[str, Any]
) -> Float[Array, " limb"]:
    """Return true minus calculated lengths of the limbs, in centimetres."""
    bodies = segment(take)
    fits = fit_joints(bodies, mediation=False, **options)
    lengths = [
        100.0 * length_between_joints(bodies, fits, *row) for row in LIMBS.values()
    ]
    return np.asarray(true_lengths(figure) - np.array(lengths))


def summarize_errors(error: Float[Array, "limb trial"]) -> tuple[float, float, float]:
    """Return rms, maximum and between-trial sd of the errors of one table, in cm."""
    between = np.sqrt(np.mean(np.var(error, axis=1, ddof=1)))
    return rms(error), float(np.abs(error).max()), float(between)


_METHODS: Mapping[str, Mapping[str, Any]] = {
    "paper's": {"estimator": "least_squares"},
    "ours": {"refine": 2},
}


def people(effort: Effort) -> Experiment:
    """Limb lengths of people whose skin slides over the bones (Tables 2 to 4)."""
    count = effort.runs(PEOPLE)
    rows: list[Cells] = []
    errors: dict[str, dict[str, Sequence[float]]] = {}
    for k, table in enumerate(PUBLISHED):
        published = summarize_errors(table.error_cm)
        rows.append((table.name, "paper", "", *(f"{value:.2f}" for value in published)))
        errors[table.name] = {"paper": [published[0]]}
        for skin in SKIN_SLIDES_MM:
            found: dict[str, list[tuple[float, float, float]]] = {}
            for person in range(count):
                effort.report(f"people: {table.name}, skin {skin:g} mm, {person + 1}")
                seed = 1000 * (effort.seed + k) + 10 * person
                figure = synth.human(table.height, seed=seed)
                for method, off in _trials(figure, table.motions, seed, skin).items():
                    found.setdefault(method, []).append(summarize_errors(off))
            for method, values in found.items():
                cells = map(_format_range, np.array(values).T)
                rows.append(("", method, f"{skin:g}", *cells))
            errors[table.name][f"{skin:g} mm"] = [v[0] for v in found["ours"]]
    columns = ("", "method", "skin mm", "rms cm", "max cm", "trials sd cm")
    return Experiment(
        title="Limb lengths of people (Tables 2 to 4)",
        tables={f"Median of {count} people (5 to 95 %)": Table(columns, tuple(rows))},
        note="Table 2: a man exercises, four times; 3: he walks, three times; 4: a "
        "woman exercises once and walks twice. The true lengths of our people are "
        "known, without errors of a tape measure. The skin of a thigh slides by the "
        "distance given, that of other limbs less; knee axes move, the field is "
        "distorted. Where skin slides, the skin determines the error, not the method.",
        figures={"tables-2-4": people_drawing(errors), "figure-8": _figure_8(effort)},
    )


def _trials(
    figure: Figure, motions: Sequence[str], seed: int, skin: float
) -> dict[str, Float[Array, "limb trial"]]:
    takes = [record_person(figure, m, seed + i, skin) for i, m in enumerate(motions)]
    return {
        method: np.stack([limb_errors(t, figure, options) for t in takes], axis=1)
        for method, options in _METHODS.items()
    }


def _format_range(values: Float[Array, " person"]) -> str:
    low, middle, high = np.percentile(values, (5, 50, 95))
    return f"{middle:.2f} ({low:.2f}-{high:.2f})"


def _figure_8(effort: Effort) -> Any:
    figure = synth.human(seed=effort.seed)
    bodies: Bodies = segment(record_person(figure, WALK, effort.seed + 2, 10.0))
    norm = joint_residual(bodies, ("Spine", "LeftUpperArm"), mediation=False)
    return residual_drawing(norm, RATE, "Left shoulder of a person who walks")
