"""Draw the pictures of the concept pages: make_concept_pictures.py [performers].

Stated against observed coverage of bone lengths (docs/uncertainty.md), and what motion
makes which joint known (docs/recording.md).
"""

import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
from scipy.special import erf

import marey

mpl.use("Agg")
import matplotlib.pyplot as plt

RECORDED = {
    "sensors, white noise": {
        "motion": "exercise",
        "markers": "none",
        "sensors": True,
        "noise": 1e-3,
        "turn_noise": 5e-3,
    },
    "markers, white noise": {"motion": "walk", "markers": "set53", "noise": 1e-3},
    "markers, skin motion": {
        "motion": "walk",
        "markers": "set53",
        "noise": 1e-3,
        "soft_tissue": 5e-3,
    },
}
COLORS = ("#1b998b", "#2374ab", "#c2335b")


def errors(options, performers):
    """Return the error of every bone length with a deviation, in deviations."""
    found = []
    for seed in range(performers):
        figure = marey.synth.human(height=1.6 + 0.02 * seed, seed=seed)
        take = figure.record(**options, seconds=10.0, rate=60.0, seed=seed)
        skeleton, truth = marey.solve(take).skeleton, take.truth.skeleton
        sd = skeleton.length_sd
        for joint, name in enumerate(skeleton.names):
            parent = skeleton.names[skeleton.parent[joint]]
            if not known(truth, name, parent) or not sd[joint] > 0.0:
                continue
            length = np.linalg.norm(skeleton.offset[joint])
            true = np.linalg.norm(truth.offset[truth.index(name)])
            found.append((length - true) / sd[joint])
    return np.array(found)


def known(truth, name, parent):
    """Return whether both have this bone. The place of a root is a convention."""
    if name not in truth.names or parent not in truth.names[1:]:
        return False
    return truth.names[truth.parent[truth.index(name)]] == parent


def draw_coverage(path, performers):
    """Draw one curve per kind of recording."""
    figure, axes = plt.subplots(figsize=(5.6, 5.0), dpi=110)
    k = np.linspace(0.0, 3.0, 61)
    axes.plot([0, 100], [0, 100], "--", color="#97a1ae", label="exact")
    for (name, options), color in zip(RECORDED.items(), COLORS, strict=True):
        z = errors(options, performers)
        inside = (np.abs(z)[:, None] <= k).mean(axis=0)
        rms = np.sqrt((z**2).mean())
        share = (np.abs(z) <= 1.0).mean()
        print(f"{name}: {len(z)} bones, rms {rms:.2f}, within 1 sd {share:.2f}")
        label = f"{name}: {len(z)} bones, rms error {rms:.2f} sd"
        axes.plot(100 * erf(k / np.sqrt(2)), 100 * inside, color=color, label=label)
    axes.set_xlabel("stated: % of errors within k standard deviations")
    axes.set_ylabel("observed, %")
    axes.legend(frameon=False, fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, bbox_inches="tight")


MOTIONS = ("still", "walk", "circle", "jump", "kick_punch", "chicken_walk", "exercise")
JOINTS = {
    "Spine": "waist",
    "Neck": "neck",
    "LeftUpperArm": "shoulder",
    "LeftLowerArm": "elbow",
    "LeftHand": "wrist",
    "LeftUpperLeg": "hip",
    "LeftLowerLeg": "knee",
    "LeftFoot": "ankle",
}
UNKNOWN_MM = 50.0


def worst_sd(motion):
    """Return the largest standard deviation of every joint's centre, in millimetres."""
    options = RECORDED["sensors, white noise"] | {"motion": motion}
    take = marey.synth.human(seed=0).record(**options, seconds=15.0, rate=60.0)
    bodies = marey.segment(take)
    fits = marey.fit_joints(bodies)
    found = []
    for name in JOINTS:
        child = bodies.names.index(name)
        truth = take.truth.skeleton
        parent = truth.index(name)
        while True:
            parent = truth.parent[parent]
            if truth.names[parent] in bodies.names:
                break
        pair = {child, bodies.names.index(truth.names[parent])}
        row = [set(p) for p in fits.pair.tolist()].index(pair)
        found.append(1e3 * np.sqrt(np.linalg.eigvalsh(fits.covariance[row]).max()))
    return found


def draw_motions(path):
    """Draw a table of joints and motions."""
    values = np.array([worst_sd(motion) for motion in MOTIONS]).T
    print(np.round(values, 1))
    figure, axes = plt.subplots(figsize=(7.2, 4.2), dpi=110)
    shown = np.log10(np.clip(values, 0.3, UNKNOWN_MM))
    axes.imshow(shown, cmap="YlOrRd", aspect="auto", vmin=-0.7, vmax=2.2)
    for (i, j), value in np.ndenumerate(values):
        text = "unknown" if value > UNKNOWN_MM else f"{value:.1f}"
        color = "white" if value > UNKNOWN_MM else "black"
        axes.text(j, i, text, ha="center", va="center", fontsize=9, color=color)
    axes.set_xticks(range(len(MOTIONS)), [m.replace("_", "\n") for m in MOTIONS])
    axes.set_yticks(range(len(JOINTS)), JOINTS.values())
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_title("standard deviation of the joint centre, mm", fontsize=10)
    figure.savefig(path, bbox_inches="tight")


if __name__ == "__main__":
    folder = Path(__file__).parent / "images"
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    draw_motions(folder / "motions-and-joints.png")
    if count:
        draw_coverage(folder / "calibration-of-lengths.png", count)
