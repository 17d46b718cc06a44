"""Which markers of a person sit on bony landmarks, by their labels."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from marey.calibration.unknowns import Figure

SIDES = {"Left": ("l", "left"), "Right": ("r", "right")}

SITS_ON = {
    "asis": "Hips",
    "psis": "Hips",
    "waist_front": "Hips",
    "waist_back": "Hips",
    "sacrum": "Hips",
    "c7": "Chest",
    "sternum": "Chest",
    "acromion": "Chest",
    "elbow_outer": "UpperArm",
    "elbow_inner": "UpperArm",
    "wrist_outer": "LowerArm",
    "wrist_inner": "LowerArm",
    "knee_outer": "UpperLeg",
    "knee_inner": "UpperLeg",
    "ankle_outer": "LowerLeg",
    "ankle_inner": "LowerLeg",
}
"""The segment that each landmark moves with, its side left away."""

_BREAK = re.compile(r"[\W_]+")
_PATTERN_BREAK = re.compile(r"[^\w#]+|_+")


@dataclass(frozen=True, slots=True)
class Landmarks:
    """Markers of a figure by what they sit on."""

    of: Mapping[tuple[str, str], tuple[int, ...]]
    """By side, "Left", "Right" or "", and landmark."""

    def __call__(self, side: str, *names: str) -> list[int]:
        """Return the markers on any of these landmarks of one side."""
        return [k for name in names for k in self.of.get((side, name), ())]

    def middle(self, *names: str) -> list[int]:
        """Return the markers on any of these landmarks, whatever their side."""
        return [k for side in ("", *SIDES) for k in self(side, *names)]

    @property
    def has_hips(self) -> bool:
        """Whether the pelvis is known: both iliac spines, and something behind."""
        front = all(self(side, "asis", "waist_front") for side in SIDES)
        back = all(self(side, "psis", "waist_back") for side in SIDES)
        return front and (back or bool(self("", "sacrum")))


def landmarks_of(figure: Figure) -> Landmarks:
    """Return the landmarks that a figure's labels name, on the segments they fit."""
    found: dict[tuple[str, str], tuple[int, ...]] = {}
    for k, label in enumerate(figure.labels):
        place = figure.names[figure.segment[k]]
        bare = place.removeprefix("Left").removeprefix("Right")
        side, name = _meaning(label)
        if SITS_ON.get(name) == bare and place.removesuffix(bare) in ("", side):
            found[side, name] = (*found.get((side, name), ()), k)
    return Landmarks(found)


def _meaning(label: str) -> tuple[str, str]:
    """Return side and landmark of a label, read as a whole or after a name's end."""
    parts = _BREAK.split(label.casefold())
    table = _table()
    for start in range(len(parts)):
        found = table.get("".join(parts[start:]))
        if found is not None:
            return found
    return "", ""


@cache
def _table() -> Mapping[str, tuple[str, str]]:
    """Return side and landmark by every way to write them."""
    text = (files("marey.calibration") / "landmarks.toml").read_text(encoding="utf-8")
    table: dict[str, tuple[str, str]] = {}
    for name, labels in tomllib.loads(text).items():
        for label in labels:
            for side, written in _written(_PATTERN_BREAK.sub("", label.casefold())):
                table[written] = side, name
    return table


def _written(label: str) -> list[tuple[str, str]]:
    if "#" not in label:
        return [("", label)]
    bare = label.replace("#", "")
    return [
        (side, written)
        for side, letters in SIDES.items()
        for letter in letters
        for written in (label.replace("#", letter), bare + letter)
    ]
