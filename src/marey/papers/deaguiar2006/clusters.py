"""DeAguiar2006, Secs. 3 and 6: markers into rigid bodies, against other ways."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from marey import synth
from marey.metrics import adjusted_rand_index
from marey.papers.experiment import Drawing, Effort, Experiment
from marey.plot.style import BLUE, GOLD, GREY, INK, RED, plain
from marey.report import Table
from marey.segmentation.clusters.model_selection import cluster_markers
from marey.segmentation.clusters.pair_statistics import pair_deviations, pair_statistics
from marey.segmentation.clusters.spectral import spectral_labels
from marey.synth import Recording

Array = np.ndarray
Labels = Int[Array, " marker"]

RATE, SECONDS = 30.0, 20.0
SETS = ("dense110", "sparse41")
MOTIONS = {"exercise": "exercise", "walk": "walk"}
SKINS = (0.0, 5.0, 10.0, 20.0)

KNOWN = 15
"""Bodies of a person: told to k-means, which cannot find their number."""

POSES = 40
"""Frames that k-means sees."""


def by_positions(take: Recording) -> Labels:
    """Return k-means of where the markers are."""
    step = max(take.n_frames // POSES, 1)
    rows = take.points[::step].transpose(1, 0, 2)
    return _k_means(rows.reshape(len(rows), -1))


def by_distances(take: Recording) -> Labels:
    """Return k-means of the rows of mean distances to all other markers."""
    return _k_means(pair_deviations(take.points).distance)


def _k_means(rows: Float[Array, "marker feature"]) -> Labels:
    from scipy.cluster.vq import kmeans2

    tries = (kmeans2(rows, KNOWN, minit="++", seed=seed) for seed in range(5))

    def left(found: tuple[Array, Array]) -> float:
        middle, label = found
        return float(np.sum((rows - middle[label]) ** 2))

    return np.asarray(min(tries, key=left)[1])


def as_printed(take: Recording) -> Labels:
    """Return the paper's clusters, its affinity taken literally, in millimetres."""
    stats = pair_deviations(take.points)
    return spectral_labels(stats, affinity="printed", n_frames=take.n_frames)


def self_tuning(take: Recording) -> Labels:
    """Return spectral clusters whose affinity has no unit."""
    return spectral_labels(pair_statistics([take.points]))


def overlap(take: Recording) -> Labels:
    """Return bodies that may share markers."""
    return cluster_markers([take.points], method="overlap").owner


def auto(take: Recording) -> Labels:
    """Return what `marey.segment` finds without names."""
    return cluster_markers([take.points]).owner


WAYS: Mapping[str, Callable[[Recording], Labels]] = {
    "k-means places": by_positions,
    "k-means distances": by_distances,
    "printed": as_printed,
    "self-tuning": self_tuning,
    "overlap": overlap,
    "ours": auto,
}


def record_person(markers: str, motion: str, skin: float, seed: int) -> Recording:
    """Return a person of unnamed markers whose skin slides by millimetres."""
    return synth.human(seed=seed).record(
        motion,
        seconds=SECONDS,
        rate=RATE,
        markers=markers,
        labels=False,
        seed=seed,
        noise=3e-4,
        soft_tissue=1e-3 * skin,
    )


def agreement(take: Recording, labels: Labels) -> tuple[float, int]:
    """Return the adjusted Rand index, and how many bodies there are."""
    index = adjusted_rand_index(labels, take.truth.marker_body)
    return index, len(np.unique(labels[labels >= 0]))


def clusters(effort: Effort) -> Experiment:
    """Markers into bodies: k-means, the printed affinity, and ours."""
    rows: list[tuple[str | float, ...]] = []
    lines: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for markers in SETS:
        for motion in MOTIONS if not effort.quick else ("exercise",):
            for skin in SKINS if not effort.quick else SKINS[::2]:
                effort.say(f"clusters: {markers}, {motion}, skin {skin:g} mm")
                take = record_person(markers, motion, skin, effort.seed)
                cells = []
                for name, way in WAYS.items():
                    index, count = agreement(take, way(take))
                    told = "k-means" in name
                    cells.append(f"{index:.2f}" if told else f"{index:.2f} [{count}]")
                    panel = lines.setdefault(f"{markers}, {motion}", {})
                    panel.setdefault(name, []).append((skin, index))
                rows.append((markers, motion, f"{skin:g}", *cells))
    caption = f"Adjusted Rand index against the true {KNOWN} bodies, [bodies found]"
    columns = ("markers", "motion", "skin mm", *WAYS)
    return Experiment(
        title="Rigid bodies from markers (Secs. 3 and 6)",
        tables={caption: Table(columns, tuple(rows))},
        note=(
            "The paper says that spectral clustering is far better than k-means, and "
            "shows one sequence. Here a generated person, 20 s at 30 Hz. K-means is "
            "told how many bodies there are. As printed, Eq. 1 divides a length by a "
            "squared length, and by the number of frames: what it gives depends on "
            "both. Self-tuning is the same idea without units; ours is what "
            "`marey.segment` does with markers that have no names."
        ),
        figures={"clusters": agreement_drawing(lines)},
    )


STYLES: Mapping[str, Mapping[str, str]] = {
    "k-means places": {"color": GREY, "linestyle": ":", "marker": "s"},
    "k-means distances": {"color": GREY, "linestyle": "--", "marker": "^"},
    "printed": {"color": RED, "marker": "o"},
    "self-tuning": {"color": GOLD, "marker": "v"},
    "overlap": {"color": INK, "linestyle": "--", "marker": "x"},
    "ours": {"color": BLUE, "marker": "D"},
}


def agreement_drawing(
    panels: Mapping[str, Mapping[str, list[tuple[float, float]]]],
) -> Drawing:
    """Return a drawing of agreement against sliding skin, one panel a recording."""

    def draw(figure: Any) -> None:
        figure.set_size_inches(2.7 * len(panels) + 0.8, 3.4)
        every = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axes, (title, lines) in zip(every, panels.items(), strict=True):
            for name, points in lines.items():
                x, y = zip(*points, strict=True)
                axes.plot(x, y, label=name, markersize=4, **STYLES[name])
            axes.set_xticks(x, [f"{value:g}" for value in x])
            axes.set_title(title, fontsize=9, color=INK)
            axes.set_xlabel("skin slides by, mm rms", fontsize=8, color=INK)
            axes.set_ylim(-0.05, 1.03)
            plain(axes)
        every[0].set_ylabel("agreement with the true bodies", fontsize=8, color=INK)
        figure.legend(
            *every[0].get_legend_handles_labels(),
            fontsize=7,
            frameon=False,
            ncols=len(WAYS) if len(panels) > 2 else len(WAYS) // 2,
            loc="outside lower center",
        )
        figure.suptitle("Markers into bodies", fontsize=10, color=INK)

    return draw
