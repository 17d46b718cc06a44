"""DeAguiar2006, Secs. 3 and 6: clustering of markers into rigid bodies."""

from collections.abc import Callable, Mapping

import numpy as np

from marey import synth
from marey.metrics import adjusted_rand_index
from marey.numerics import Array, Float, Int
from marey.papers.frame import Cells, Effort, Experiment, experiment, table
from marey.papers.plots import Style, line_drawing
from marey.plot.style import BLUE, GOLD, GREY, INK, RED
from marey.segmentation import (
    cluster_markers,
    pair_deviations,
    pair_statistics,
    spectral_labels,
)
from marey.synth import Recording

Labels = Int[Array, " marker"]

RATE, SECONDS = 30.0, 20.0
MARKER_SETS = ("dense110", "sparse41")
MOTIONS = ("exercise", "walk")
SKIN_MM = (0.0, 5.0, 10.0, 20.0)

N_TRUE_BODIES = 15
"""Bodies of a person. K-means cannot estimate their number and is given it."""

N_K_MEANS_FRAMES = 40
"""Frames that enter k-means. Chosen by hand."""


def k_means_of_positions(take: Recording) -> Labels:
    """Return k-means clusters of the marker positions."""
    step = max(take.n_frames // N_K_MEANS_FRAMES, 1)
    rows = take.points[::step].transpose(1, 0, 2)
    return _k_means(rows.reshape(len(rows), -1))


def k_means_of_distances(take: Recording) -> Labels:
    """Return k-means clusters of the mean distances to all other markers."""
    return _k_means(pair_deviations(take.points).distance)


def _k_means(rows: Float[Array, "marker feature"]) -> Labels:
    from scipy.cluster.vq import kmeans2

    tries = (kmeans2(rows, N_TRUE_BODIES, minit="++", seed=seed) for seed in range(5))

    def sum_of_squares(clusters: tuple[Array, Array]) -> float:
        mean, label = clusters
        return float(np.sum((rows - mean[label]) ** 2))

    return np.asarray(min(tries, key=sum_of_squares)[1])


def spectral_with_printed_affinity(take: Recording) -> Labels:
    """Return spectral clusters with the affinity of Eq. 1 as printed, in mm."""
    stats = pair_deviations(take.points)
    return spectral_labels(stats, affinity="printed", n_frames=take.n_frames)


def self_tuning_spectral(take: Recording) -> Labels:
    """Return self-tuning spectral clusters, whose affinity has no unit."""
    return spectral_labels(pair_statistics([take.points]))


METHODS: Mapping[str, Callable[[Recording], Labels]] = {
    "k-means positions": k_means_of_positions,
    "k-means distances": k_means_of_distances,
    "printed": spectral_with_printed_affinity,
    "self-tuning": self_tuning_spectral,
    "overlap": lambda take: cluster_markers([take.points], method="overlap").owner,
    "ours": lambda take: cluster_markers([take.points]).owner,
}
"""Methods by name; ours is what `marey.segment` does with markers without names."""

STYLES: Mapping[str, Style] = {
    "k-means positions": {"color": GREY, "linestyle": ":", "marker": "s"},
    "k-means distances": {"color": GREY, "linestyle": "--", "marker": "^"},
    "printed": {"color": RED, "marker": "o"},
    "self-tuning": {"color": GOLD, "marker": "v"},
    "overlap": {"color": INK, "linestyle": "--", "marker": "x"},
    "ours": {"color": BLUE, "marker": "D"},
}


def record_person(markers: str, motion: str, skin: float, seed: int) -> Recording:
    """Return a person of unlabelled markers whose skin slides, in millimetres rms."""
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
    """Return the adjusted Rand index against the truth, and the number of bodies."""
    index = adjusted_rand_index(labels, take.truth.marker_body)
    return index, len(np.unique(labels[labels >= 0]))


@experiment("Rigid bodies from markers (Secs. 3 and 6)")
def clustering(effort: Effort) -> Experiment:
    """Markers into bodies: k-means, the printed affinity, and ours.

    The paper says that spectral clustering is far better than k-means, and shows one
    sequence. Here a generated person, 20 s at 30 Hz. K-means is given the number of
    bodies. As printed, Eq. 1 divides a length by a squared length, and by the number of
    frames: what it gives depends on both. Self-tuning is the same idea without units;
    ours is what `marey.segment` does with markers that have no names.
    """
    rows: list[Cells] = []
    lines: dict[str, dict[str, list[tuple[float, float]]]] = {}
    settings = [(m, n, skin) for m in MARKER_SETS for n in MOTIONS for skin in SKIN_MM]
    if not effort.full:
        settings = [s for s in settings if s[1] == "exercise" and s[2] in SKIN_MM[::2]]
    for markers, motion, skin in settings:
        effort.report(f"clusters: {markers}, {motion}, skin {skin:g} mm")
        take = record_person(markers, motion, skin, effort.seed)
        panel = lines.setdefault(f"{markers}, {motion}", {name: [] for name in METHODS})
        cells = []
        for name, cluster in METHODS.items():
            index, count = agreement(take, cluster(take))
            bodies = "" if "k-means" in name else f" [{count}]"
            cells.append(f"{index:.2f}{bodies}")
            panel[name].append((skin, index))
        rows.append((markers, motion, f"{skin:g}", *cells))
    caption = (
        f"Adjusted Rand index against the true {N_TRUE_BODIES} bodies, [bodies found]"
    )
    drawing = line_drawing(
        "Clustering of markers into bodies",
        lines,
        ("slide of the skin, mm rms", "adjusted Rand index"),
        STYLES,
        scale="linear",
        y_limits=(-0.05, 1.03),
        legend_columns=len(METHODS) if len(lines) > 2 else len(METHODS) // 2,
    )
    header = f"markers | motion | skin mm | {' | '.join(METHODS)}"
    return Experiment(
        tables={caption: table(header, rows)}, figures={"clusters": drawing}
    )
