"""OBrien2000: limb lengths of people in sensors (Tables 2 to 4, Fig. 8)."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

import marey
from marey import synth
from marey.numerics import Array, Float
from marey.papers.frame import Cells, Effort, Experiment, experiment, table
from marey.papers.measures import rms
from marey.papers.obrien2000.exact import (
    RATE,
    WEAK_FIELD,
    joint_residual,
    length_between_joints,
)
from marey.papers.plots import dots_drawing, residual_drawing
from marey.papers.recordings import record_sensors
from marey.report import Table
from marey.synth import Figure, Recording

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


class PublishedLengths(NamedTuple):
    """One of the paper's tables: the person, the motions, and the lengths of limbs."""

    name: str
    height: float
    motions: tuple[str, ...]
    measured_cm: Float[Array, " limb"]
    calculated_cm: Float[Array, "limb trial"]
    error_cm: Float[Array, "limb trial"]
    """Measured minus calculated lengths as printed, in centimetres."""

    @property
    def trials(self) -> tuple[str, ...]:
        """Titles of the columns: "Exer. 1", "Walk 1", "Walk 2"."""
        words = {EXERCISE: "Exer.", WALK: "Walk"}
        return tuple(
            f"{words[motion]} {self.motions[: k + 1].count(motion)}"
            for k, motion in enumerate(self.motions)
        )


EXERCISE, WALK = "exercise", "chicken_walk"

# fmt: off
MAN_CM = np.array([40.0, 40.3, 41.6, 43.2, 27.0, 26.7, 29.5, 29.5])
WOMAN_CM = np.array([36.8, 36.5, 42.2, 41.9, 24.8, 24.8, 27.6, 27.6])
CALCULATED_CM = np.array([  # four trials of Table 2, three of Table 3, three of Table 4
    [40.8, 40.9, 42.2, 42.5, 40.7, 40.3, 38.9, 39.1, 38.0, 38.1],
    [37.3, 38.4, 41.2, 41.5, 40.8, 38.9, 39.8, 37.6, 37.0, 37.4],
    [41.5, 42.1, 42.9, 42.2, 40.7, 40.6, 42.6, 42.9, 43.3, 42.2],
    [41.4, 41.8, 43.2, 43.0, 45.1, 42.7, 43.1, 42.4, 44.1, 42.9],
    [26.3, 26.7, 27.7, 27.0, 27.3, 27.5, 25.8, 25.5, 25.3, 22.4],
    [26.5, 27.0, 26.7, 27.1, 26.2, 24.9, 25.6, 25.1, 24.8, 23.0],
    [32.1, 31.3, 29.3, 28.8, 31.0, 31.1, 32.7, 27.5, 27.5, 28.7],
    [33.7, 32.9, 30.1, 29.9, 32.3, 32.3, 30.8, 28.5, 30.0, 29.0],
])
ERRORS_CM = np.array([
    [-0.8, -0.9, -2.2, -2.5, -0.6, -0.3, 1.1, -2.3, -1.2, -1.3],
    [3.0, 1.9, -0.9, -1.2, -0.4, 1.4, 0.5, -1.1, -0.5, -0.9],
    [0.1, -0.5, -1.3, -0.6, 0.9, 1.0, -1.0, -0.7, -1.1, 0.0],
    [1.8, 1.4, 0.0, 0.2, -1.9, 0.5, 0.1, -0.5, -2.2, -1.0],
    [0.7, 0.3, -0.7, 0.0, -0.3, -0.5, 1.2, -0.7, -0.5, 2.3],
    [0.1, -0.3, -0.1, -0.4, 0.5, 1.7, 1.0, -0.3, 0.0, 1.8],
    [-2.6, -1.8, 0.2, 0.7, -1.4, -1.6, -3.2, 0.2, 0.1, -1.0],
    [-4.1, -3.4, -0.6, -0.4, -2.7, -2.7, -1.3, -0.9, -2.4, -1.3],
])
# fmt: on
"""Tables 2 to 4 of the paper, one row per limb: measured lengths of both people,
calculated ones, and measured minus calculated as printed, which is rounded."""


def _published(
    name: str,
    height: float,
    motions: tuple[str, ...],
    measured: Float[Array, " limb"],
    trials: slice,
) -> PublishedLengths:
    columns = CALCULATED_CM[:, trials], ERRORS_CM[:, trials]
    return PublishedLengths(name, height, motions, measured, *columns)


PUBLISHED = (
    _published("Table 2", 1.80, (EXERCISE,) * 4, MAN_CM, slice(0, 4)),
    _published("Table 3", 1.80, (WALK,) * 3, MAN_CM, slice(4, 7)),
    _published("Table 4", 1.68, (EXERCISE, WALK, WALK), WOMAN_CM, slice(7, 10)),
)

SKIN_SLIDES_MM = (5.0, 10.0)
"""Slide of the skin of a thigh, in mm rms; it rotates by 0.3 degrees per mm."""

SHOWN_SKIN_MM = SKIN_SLIDES_MM[0]
"""Slide with which limbs are compared one by one."""

PEOPLE, SECONDS = 20, 20.0


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
        seed=seed,
        soft_tissue=1e-3 * skin,
        soft_tissue_turn=float(np.radians(0.3 * skin)),
        knee_shift=1.0,
        **WEAK_FIELD,
    )


def true_lengths(figure: Figure) -> Float[Array, " limb"]:
    """Return the true lengths of the limbs of a figure, in centimetres."""
    positions = figure.skeleton.rest()[:, :3, 3]
    index = figure.skeleton.index
    ends = [(index(body), index(joints[1])) for body, joints in LIMBS.values()]
    return np.array(
        [100.0 * np.linalg.norm(positions[a] - positions[b]) for a, b in ends]
    )


def limb_errors(
    take: Recording, figure: Figure, options: Mapping[str, Any]
) -> Float[Array, " limb"]:
    """Return true minus calculated lengths of the limbs, in centimetres."""
    bodies = marey.segment(take)
    fits = marey.fit_joints(bodies, mediation=False, **options)
    lengths = [length_between_joints(bodies, fits, *row) for row in LIMBS.values()]
    return np.asarray(true_lengths(figure) - 100.0 * np.array(lengths))


def summarize_errors(error: Float[Array, "limb trial"]) -> tuple[float, float, float]:
    """Return rms, maximum and between-trial sd of the errors of one table, in cm."""
    between = np.sqrt(np.mean(np.var(error, axis=1, ddof=1)))
    return rms(error), float(np.abs(error).max()), float(between)


METHODS: Mapping[str, Mapping[str, Any]] = {
    "paper's": {"estimator": "least_squares"},
    "ours": {"refine": 2},
}


@experiment("Limb lengths of people (Tables 2 to 4)")
def limb_lengths(effort: Effort) -> Experiment:
    """Limb lengths of people whose skin slides over the bones (Tables 2 to 4).

    Table 2: a man exercises, four times; 3: he walks, three times; 4: a woman exercises
    once and walks twice. The true lengths of our people are known, without errors of a
    tape measure. The skin of a thigh slides by the distance given, that of other limbs
    less; knee axes move, the field is distorted. Where skin slides, the skin determines
    the error, not the method. Limb by limb, ours is the first of our people, with
    {skin:g} mm of skin; Δ is measured minus calculated, its rms over all trials and
    people.
    """
    count = effort.runs(PEOPLE)
    rows: list[Cells] = []
    limbs: dict[str, Table] = {}
    errors: dict[str, dict[str, list[float]]] = {}
    for k, published in enumerate(PUBLISHED):
        theirs = summarize_errors(published.error_cm)
        rows.append((published.name, "paper", "", *(f"{v:.2f}" for v in theirs)))
        first = 1000 * (effort.seed + k)
        for skin in SKIN_SLIDES_MM:
            found = _errors_of_people(effort, published, first, skin)
            for method, every in found.items():
                summaries = [summarize_errors(off) for off in every]
                cells = map(_format_range, np.array(summaries).T)
                rows.append(("", method, f"{skin:g}", *cells))
            ours = [rms(off) for off in found["ours"]]
            errors.setdefault(published.name, {})[f"{skin:g} mm"] = ours
            if skin == SHOWN_SKIN_MM:
                true_cm = true_lengths(synth.human(published.height, seed=first))
                limbs[f"{published.name}, limb by limb"] = compare_limbs(
                    published, true_cm, found["ours"]
                )
    header = " | method | skin mm | rms cm | max cm | trials sd cm"
    drawing = dots_drawing(
        "Limb lengths of people, one dot per person",
        errors,
        ("slide of the skin, rms", "error of limb lengths, cm rms"),
        published={p.name: summarize_errors(p.error_cm)[0] for p in PUBLISHED},
    )
    return Experiment(
        tables={f"Median of {count} people (5 to 95 %)": table(header, rows), **limbs},
        facts={"skin": SHOWN_SKIN_MM},
        figures={"tables-2-4": drawing, "figure-8": _figure_8(effort)},
    )


def compare_limbs(
    published: PublishedLengths,
    true_cm: Float[Array, " limb"],
    errors_cm: Sequence[Float[Array, "limb trial"]],
) -> Table:
    """Return one of the paper's tables, with ours below each of its rows.

    Args:
        published: The paper's table.
        true_cm: Lengths of the limbs of our first person, in centimetres.
        errors_cm: True minus calculated lengths of each of our people.
    """
    first = errors_cm[0]
    sources = (
        ("paper", published.measured_cm, published.calculated_cm, published.error_cm),
        ("ours", true_cm, true_cm[:, None] - first, first),
    )
    rows: list[Cells] = []
    for k, limb in enumerate(LIMBS):
        every = {"paper": published.error_cm[k], "ours": np.stack(errors_cm)[:, k]}
        for source, measured, calculated, error in sources:
            name = limb if source == "paper" else ""
            lengths = [f"{value:.1f}" for value in calculated[k]]
            differences = [f"{value:+.1f}" for value in error[k]]
            size = f"{rms(every[source]):.1f}"
            rows.append((name, source, f"{measured[k]:.1f}", *lengths, size))
            rows.append(("", f"Δ {source}", "", *differences, ""))
    trials = " | ".join(published.trials)
    return table(f"cm |  | Meas. | {trials} | Δ rms", rows)


def _errors_of_people(
    effort: Effort, published: PublishedLengths, seed: int, skin: float
) -> dict[str, list[Float[Array, "limb trial"]]]:
    found: dict[str, list[Array]] = {method: [] for method in METHODS}
    for person in range(effort.runs(PEOPLE)):
        effort.report(f"{published.name}, skin {skin:g} mm, {person + 1}")
        for method, off in _trials(published, seed + 10 * person, skin).items():
            found[method].append(off)
    return found


def _trials(
    published: PublishedLengths, seed: int, skin: float
) -> dict[str, Float[Array, "limb trial"]]:
    figure = synth.human(published.height, seed=seed)
    takes = [
        record_person(figure, motion, seed + i, skin)
        for i, motion in enumerate(published.motions)
    ]
    return {
        method: np.stack([limb_errors(t, figure, options) for t in takes], axis=1)
        for method, options in METHODS.items()
    }


def _format_range(values: Float[Array, " person"]) -> str:
    low, middle, high = np.percentile(values, (5, 50, 95))
    return f"{middle:.2f} ({low:.2f}-{high:.2f})"


def _figure_8(effort: Effort) -> Any:
    figure = synth.human(seed=effort.seed)
    bodies = marey.segment(record_person(figure, WALK, effort.seed + 2, 10.0))
    fits = marey.fit_joints(bodies, mediation=False)
    norm = joint_residual(bodies, fits, ("Spine", "LeftUpperArm"))
    return residual_drawing(norm, RATE, "Left shoulder of a person who walks")
