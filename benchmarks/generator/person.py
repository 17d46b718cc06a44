"""A person: 15 segments with lengths by stature, and markers on their surface.

Shares of the stature are those of Drillis and Contini (1966), with 3 % of variation
between people. Knees and elbows are hinges about y, all other joints are balls.
"""

from dataclasses import dataclass

import numpy as np

from benchmarks.generator.rotations import Array

SEGMENTS = (
    ("pelvis", -1, (0.0, 0.0, 0.0)),
    ("trunk", 0, (0.0, 0.0, 0.06)),
    ("head", 1, (0.0, 0.0, 0.288)),
    ("upper_arm_l", 1, (0.0, 0.129, 0.25)),
    ("forearm_l", 3, (0.0, 0.0, -0.186)),
    ("hand_l", 4, (0.0, 0.0, -0.146)),
    ("upper_arm_r", 1, (0.0, -0.129, 0.25)),
    ("forearm_r", 6, (0.0, 0.0, -0.186)),
    ("hand_r", 7, (0.0, 0.0, -0.146)),
    ("thigh_l", 0, (0.0, 0.05, -0.03)),
    ("shank_l", 9, (0.0, 0.0, -0.245)),
    ("foot_l", 10, (0.0, 0.0, -0.246)),
    ("thigh_r", 0, (0.0, -0.05, -0.03)),
    ("shank_r", 12, (0.0, 0.0, -0.245)),
    ("foot_r", 13, (0.0, 0.0, -0.246)),
)
"""Name, parent, and joint in the frame of the parent as a share of the stature."""

SHAPES = {
    "pelvis": ((0.0, 0.0, 0.02), (0.07, 0.08, 0.03)),
    "trunk": ((0.0, 0.0, 0.16), (0.07, 0.09, 0.10)),
    "head": ((0.01, 0.0, 0.07), (0.05, 0.045, 0.05)),
    "upper_arm": ((0.0, 0.0, -0.09), (0.028, 0.028, 0.06)),
    "forearm": ((0.0, 0.0, -0.08), (0.022, 0.022, 0.05)),
    "hand": ((0.0, 0.0, -0.04), (0.02, 0.025, 0.03)),
    "thigh": ((0.0, 0.0, -0.12), (0.05, 0.05, 0.08)),
    "shank": ((0.0, 0.0, -0.12), (0.035, 0.035, 0.08)),
    "foot": ((0.05, 0.0, -0.025), (0.06, 0.025, 0.012)),
}
"""Centre and half axes of the ellipsoid of each segment, as shares of the stature."""

HINGES = ("forearm", "shank")
ANKLE_HEIGHT = 0.039
VARIATION = 0.03


@dataclass(frozen=True)
class Person:
    """Bones and markers of one person.

    Attributes:
        names: Of the segments.
        parent: Of each segment; -1 for the first.
        joint: Where each segment is attached, in the frame of its parent.
        marker_segment: The segment of each marker.
        marker: Markers in the frame of their segment.
        ankle_height: Of the ankles of a person who stands.
    """

    names: tuple[str, ...]
    parent: Array
    joint: Array
    marker_segment: Array
    marker: Array
    ankle_height: float

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of the markers: their segment and a number."""
        count: dict[int, int] = {}
        labels = []
        for segment in self.marker_segment.tolist():
            count[segment] = count.get(segment, 0) + 1
            labels.append(f"{self.names[segment]}_{count[segment]}")
        return tuple(labels)

    @property
    def bones(self) -> dict[str, float]:
        """Lengths of thighs, shanks, upper arms and forearms, by segment."""
        return {
            self.names[self.parent[i]]: float(np.linalg.norm(self.joint[i]))
            for i, name in enumerate(self.names)
            if name.rpartition("_")[0] in ("forearm", "hand", "shank", "foot")
        }


def make_person(
    seed: int, *, stature: float = 0.0, markers_per_segment: int = 4
) -> Person:
    """Return a random person; markers lie on ellipsoids, at no symmetric places."""
    rng = np.random.default_rng([seed, 11])
    stature = stature or rng.uniform(1.55, 1.95)
    share = np.array([joint for _, _, joint in SEGMENTS])
    names = tuple(name for name, _, _ in SEGMENTS)
    vary = {kind: 1.0 + VARIATION * rng.normal() for kind in SHAPES}
    scale = stature * np.array([vary[kind_of(name)] for name in names])
    segment = np.repeat(np.arange(len(names)), markers_per_segment)
    places = [place_marker(rng, names[s]) for s in segment]
    return Person(
        names,
        np.array([parent for _, parent, _ in SEGMENTS]),
        scale[:, None] * share,
        segment,
        stature * np.array(places),
        stature * ANKLE_HEIGHT,
    )


def kind_of(name: str) -> str:
    """Return the name of a segment without its side."""
    return name.removesuffix("_l").removesuffix("_r")


def place_marker(rng: np.random.Generator, name: str) -> Array:
    """Return a random point of the surface of a segment, as shares of the stature."""
    center, half = SHAPES[kind_of(name)]
    direction = rng.normal(size=3)
    direction /= np.linalg.norm(direction)
    return np.asarray(center + np.asarray(half) * direction)
