"""OBrien2000: the wooden linkage, six sets of data (Table 1, Figs. 6 and 7)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np

import marey
from marey import synth
from marey.cleaning import fit_field, undistort
from marey.joints import homogeneity
from marey.numerics import Array, Float
from marey.papers.frame import Cells, Drawing, Effort, Experiment, experiment, table
from marey.papers.measures import rms
from marey.papers.obrien2000.exact import (
    NOISE_MODELS,
    RATE,
    is_true_tree,
    joint_residual,
    length_between_joints,
)
from marey.papers.plots import label_axes, make_panels, residual_drawing
from marey.papers.recordings import record_sensors
from marey.plot.style import BLUE, GOLD, GREY, INK, RED
from marey.report import Table
from marey.synth import Recording

JOINTS = {
    "Neck": ("Torso", "Head"),
    "Right Shoulder": ("Torso", "RightUpperArm"),
    "Left Shoulder": ("Torso", "LeftUpperArm"),
    "Right Elbow": ("RightUpperArm", "RightLowerArm"),
    "Left Elbow": ("LeftUpperArm", "LeftLowerArm"),
}
"""The five ball joints of the linkage, and the bodies that they connect."""

TABLE_1_LENGTHS = {
    "Neck - Left Shoulder": ("Torso", ("Head", "LeftUpperArm")),
    "Neck - Right Shoulder": ("Torso", ("Head", "RightUpperArm")),
    "Between Shoulders": ("Torso", ("LeftUpperArm", "RightUpperArm")),
    "Right Upper Arm": ("RightUpperArm", ("Torso", "RightLowerArm")),
    "Left Upper Arm": ("LeftUpperArm", ("Torso", "LeftLowerArm")),
}
"""Rows of Table 1: a body and the two joints on it, by the bodies they lead to."""

MEASURED_CM = np.array([39.0, 39.7, 34.3, 28.6, 31.4])
CALCULATED_CM = np.array(
    [
        [39.4, 38.8, 39.8, 39.1, 39.1, 40.1],
        [39.8, 39.8, 40.3, 40.0, 39.9, 40.3],
        [34.3, 33.7, 34.5, 34.3, 34.3, 34.8],
        [29.2, 29.0, 28.8, 28.9, 29.0, 29.1],
        [31.5, 31.7, 31.9, 31.5, 31.1, 31.2],
    ]
)
"""Table 1 of the paper, in centimetres."""

SETS, FRAMES = 6, 1800

MAX_P_VALUE, MIN_MOVE_CM = 1e-3, 2.0
"""Sensors of a set have moved if the p-value of the likelihood-ratio test is below the
first and the centres differ by more than the second. Chosen by hand."""

ROOMS = 10
"""Rooms in which the six sets are recorded; the paper had one."""


def record_sets(
    seed: int, noise: Mapping[str, Any], frames: int = FRAMES
) -> list[marey.Bodies]:
    """Return six sets of one linkage in one room; the sensors move before the last.

    One long recording is cut in six: noise and motion continue and the field of the
    room stays. Moving the sensors is a slip of all of them at once, by 8 cm and 40
    degrees.

    Args:
        seed: Draws the room, the motion and the sensors' positions.
        noise: Options of `marey.synth.Corruption`.
        frames: Length of each set.
    """
    take = record_sensors(
        synth.linkage(),
        "swing",
        seconds=SETS * frames / RATE,
        seed=seed,
        slips=6,
        slip_size=0.08,
        slip_turn=0.7,
        slip_frame=(SETS - 1) * frames,
        **noise,
    )
    return [marey.segment(take.cut(k * frames, (k + 1) * frames)) for k in range(SETS)]


def table_1_lengths(
    bodies: marey.Bodies, fits: marey.JointFits
) -> Float[Array, " row"]:
    """Return the lengths of Table 1, in centimetres."""
    return np.array(
        [
            100.0 * length_between_joints(bodies, fits, *row)
            for row in TABLE_1_LENGTHS.values()
        ]
    )


def fit_sets(
    sets: Sequence[marey.Bodies], **options: Any
) -> tuple[Float[Array, "row set"], int]:
    """Return the lengths of every set in centimetres, and the number of true trees."""
    lengths, n_true_trees = [], 0
    for bodies in sets:
        fits = marey.fit_joints(bodies, **options)
        lengths.append(table_1_lengths(bodies, fits))
        n_true_trees += is_true_tree(
            marey.infer_tree(fits), cast("Recording", bodies.take)
        )
    return np.stack(lengths, axis=1), n_true_trees


def undistort_sets(sets: Sequence[marey.Bodies]) -> list[marey.Bodies]:
    """Return the sets without the distortion of the field of their room.

    The field is fitted to the residuals of the joints in the first five sets. The last
    set has other joint centres, because its sensors were moved, but the same field.
    """
    unmoved = sets[:-1]
    fits = marey.fit_joints(unmoved, estimator="corrected")
    field = fit_field(unmoved, fits, marey.infer_tree(fits))
    return [marey.segment(undistort(bodies.take, field)) for bodies in sets]


def compare_with_table_1(ours: Float[Array, "row set"]) -> Table:
    """Return the paper's Table 1 with our lengths below the published ones."""
    rows: list[Cells] = []
    for k, (name, measured) in enumerate(
        zip(TABLE_1_LENGTHS, MEASURED_CM, strict=True)
    ):
        for source, lengths in (("paper", CALCULATED_CM[k]), ("ours", ours[k])):
            first = name if source == "paper" else ""
            cells = [f"{value:.2f}" for value in lengths]
            differences = [f"{value:.2f}" for value in measured - lengths]
            rows.append((first, source, float(measured), *cells))
            rows.append(("", f"Δ {source}", "", *differences))
    sets = " | ".join(f"Set {k + 1}" for k in range(ours.shape[1]))
    return table(f"cm |  | Meas. | {sets}", rows)


def summarize_errors(
    error: Float[Array, "row set"],
) -> tuple[float, float, float, float]:
    """Return rms, mean absolute, mean and maximum absolute error."""
    return (
        rms(error),
        float(np.mean(np.abs(error))),
        float(np.mean(error)),
        float(np.max(np.abs(error))),
    )


def compare_sets(sets: Sequence[marey.Bodies]) -> Table:
    """Return likelihood-ratio tests of each set against the other five."""
    test = homogeneity(sets)
    linked = [
        {sets[0].names.index(body), sets[0].names.index(other)}
        for body, others in TABLE_1_LENGTHS.values()
        for other in others
    ]
    rows = [k for k, pair in enumerate(test.pair.tolist()) if set(pair) in linked]
    p = np.min(test.p_value[:, rows], axis=1) * len(rows) * len(sets)
    distance_cm = 100.0 * np.median(test.displacement[:, rows], axis=1)
    moved = (p < MAX_P_VALUE) & (distance_cm > MIN_MOVE_CM)
    header = "set | distance of centres cm | p (all joints and sets) | conclusion"
    return table(
        header,
        (
            (
                f"Set {k + 1}",
                float(distance_cm[k]),
                float(min(p[k], 1.0)),
                "sensors moved" if moved[k] else "",
            )
            for k in range(len(sets))
        ),
    )


ERRORS = "rms | mean |Δ| | mean Δ | max |Δ|"
"""Columns of what `summarize_errors` returns."""


def fit_pooled_sets(sets: Sequence[marey.Bodies]) -> Table:
    """Return the errors of one fit to several sets, with and without the last."""
    rows: list[Cells] = []
    for name, pooled in (("Sets 1 to 6", sets), ("Sets 1 to 5", sets[:-1])):
        error = MEASURED_CM - table_1_lengths(sets[0], marey.fit_joints(pooled))
        rows.append((name, *summarize_errors(error[:, None])))
    return table(f"one fit of | {ERRORS}", rows)


METHODS: Mapping[str, Callable[[Sequence[marey.Bodies]], tuple[Any, int]]] = {
    "paper's": lambda sets: fit_sets(sets, estimator="least_squares"),
    "ours": fit_sets,
    "undistorted": lambda sets: fit_sets(undistort_sets(sets)),
}


@experiment("Wooden linkage of five ball joints (Table 1)")
def wooden_linkage(effort: Effort) -> Experiment:
    """The wooden linkage: six sets, with sensors moved before the last (Table 1).

    Six sets of {seconds:.0f} s. Δ is measured minus calculated. White noise of the
    paper's size cannot produce errors like the paper's; a field of that size nearly
    does. The rest may be errors of the tape measure, which our linkage does not have.
    Undistorted: the field is estimated from the joints and removed; one factor on all
    lengths of a room remains, which only a stick of known length determines. Figs. 6
    and 7 are the best and the worst joint of all sets in a strong field; in the paper
    these were the right shoulder of Set 1 and the left shoulder of Set 6.
    """
    rooms, frames = effort.runs(ROOMS), FRAMES if effort.full else FRAMES // 3
    published = summarize_errors(MEASURED_CM[:, None] - CALCULATED_CM)
    rows: list[Cells] = [("paper", "", *published, "6 of 6")]
    first_room: dict[str, list[marey.Bodies]] = {}
    lengths: dict[str, Float[Array, "row set"]] = {}
    for model, noise in NOISE_MODELS.items():
        effort.report(f"linkage: {model}")
        recorded = [
            record_sets(effort.seed + room, noise, frames) for room in range(rooms)
        ]
        for method, fit in METHODS.items():
            fits = [fit(sets) for sets in recorded]
            calculated = np.concatenate([values for values, _ in fits], axis=1)
            error = MEASURED_CM[:, None] - calculated
            true_trees = f"{sum(n for _, n in fits)} of {SETS * rooms}"
            rows.append((model, method, *summarize_errors(error), true_trees))
            if method == "ours":
                first_room[model], lengths[model] = recorded[0], fits[0][0]
    white, strong = first_room["white noise"], first_room["strong field"]
    norms = residual_norms(strong)
    in_strong_field = compare_with_table_1(lengths["strong field"])
    every_error = table(f"noise | method | {ERRORS} | true trees", rows)
    return Experiment(
        facts={"seconds": frames / RATE},
        tables={
            "Table 1, ours in a strong field": in_strong_field,
            f"Δ in cm, {SETS * rooms} sets": every_error,
            "Sets that differ from the others (white noise)": compare_sets(white),
            "All sets as one (white noise)": fit_pooled_sets(white),
            "Residuals of the joints in a strong field, cm rms": _residual_table(norms),
        },
        figures={
            "table-1": lengths_drawing({"paper": CALCULATED_CM, **lengths}),
            "figure-6": _residual_figure(norms, "best"),
            "figure-7": _residual_figure(norms, "worst"),
        },
    )


Norms = Mapping[str, Sequence[Float[Array, " frame"]]]
"""Lengths of the residual vectors of each joint, set by set, in metres."""


def residual_norms(sets: Sequence[marey.Bodies]) -> Norms:
    """Return the lengths of the residual vectors of all joints in all sets."""
    fits = [marey.fit_joints(bodies) for bodies in sets]
    return {
        name: [
            joint_residual(bodies, fit, pair)
            for bodies, fit in zip(sets, fits, strict=True)
        ]
        for name, pair in JOINTS.items()
    }


def extreme_joint(norms: Norms, extreme: str) -> tuple[str, int]:
    """Return joint and number of the set of the "best" or the "worst" fit."""
    every = {
        (name, k): rms(norm)
        for name, by_set in norms.items()
        for k, norm in enumerate(by_set)
    }
    return (min if extreme == "best" else max)(every, key=lambda key: every[key])


def _residual_table(norms: Norms) -> Table:
    """Return the rms residual of every joint in every set, in centimetres."""
    paper = {"Right Shoulder": "best, Set 1", "Left Shoulder": "worst, Set 6"}
    ours = dict.fromkeys(norms, "")
    for extreme in ("best", "worst"):
        name, k = extreme_joint(norms, extreme)
        ours[name] += f"{', ' * bool(ours[name])}{extreme}, Set {k + 1}"
    rows: list[Cells] = [
        (
            name,
            *(f"{100.0 * rms(norm):.3f}" for norm in by_set),
            paper.get(name, ""),
            ours[name],
        )
        for name, by_set in norms.items()
    ]
    sets = " | ".join(f"Set {k + 1}" for k in range(SETS))
    return table(f"joint | {sets} | paper | ours", rows)


def _residual_figure(norms: Norms, extreme: str) -> Drawing:
    """Return the best or the worst fit over time; both have the scale of the worst."""
    name, k = extreme_joint(norms, extreme)
    top = 105.0 * max(norm.max() for by_set in norms.values() for norm in by_set)
    title = f"The {extreme} fit of the linkage: {name.lower()}, Set {k + 1}"
    return residual_drawing(norms[name][k], RATE, title, top=top)


def lengths_drawing(groups: Mapping[str, Float[Array, "row set"]]) -> Drawing:
    """Return a drawing of measured minus calculated lengths in cm, set by set."""

    def draw(figure: Any) -> None:
        (axes,) = make_panels(figure, 1, (8.0, 3.6), "Lengths of the wooden linkage")
        colours = (RED, GREY, GOLD, BLUE)
        for k, ((group, calculated), colour) in enumerate(
            zip(groups.items(), colours, strict=False)
        ):
            error = (MEASURED_CM[:, None] - calculated).T
            x = np.arange(error.shape[1]) + 0.18 * (k - 1.5)
            x = x + 0.012 * (np.arange(len(error))[:, None] - 2.5)
            axes.plot(x[:-1], error[:-1], "o", color=colour, markersize=3.5, alpha=0.8)
            # The last set was recorded after the sensors were moved.
            axes.plot(x[-1], error[-1], "x", color=colour, markersize=5)
            axes.plot([], [], "o", color=colour, markersize=4, label=group)
        axes.plot([], [], "x", color=INK, markersize=5, label="set 6, sensors moved")
        axes.axhline(0.0, color=INK, linewidth=0.8)
        names = [name.replace(" - ", "\n") for name in TABLE_1_LENGTHS]
        axes.set_xticks(range(len(names)), names)
        axes.legend(fontsize=7, frameon=False, ncols=5, loc="upper center")
        axes.set_ylim(-1.3, 1.0)
        label_axes(axes, "", "measured minus calculated, cm")

    return draw
