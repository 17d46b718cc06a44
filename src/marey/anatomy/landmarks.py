"""Bony landmarks of a person, recognised by the labels of the markers on them.

The table `landmarks.toml` lists the labels of the marker sets that laboratories share
(Plug-in Gait, CMU and others).
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from marey.anatomy import names as vrm
from marey.anatomy.names import SIDES
from marey.anatomy.spellings import Meaning, read_spelling, spelling_table

LANDMARKS_OF_SEGMENT = {
    vrm.HIPS: ("asis", "psis", "waist_front", "waist_back", "sacrum"),
    vrm.CHEST: ("c7", "sternum", "acromion"),
    vrm.UPPER_ARM: ("elbow_outer", "elbow_inner"),
    vrm.LOWER_ARM: ("wrist_outer", "wrist_inner"),
    vrm.UPPER_LEG: ("knee_outer", "knee_inner"),
    vrm.LOWER_LEG: ("ankle_outer", "ankle_inner"),
    vrm.FOOT: ("heel", "toe", "forefoot_inner", "forefoot_outer"),
}
"""The landmarks that move with each segment, without its side."""


@dataclass(frozen=True, slots=True)
class Landmarks:
    """The markers that sit on each bony landmark."""

    markers: Mapping[tuple[str, str], tuple[int, ...]]
    """Marker numbers by side ("Left", "Right" or "") and landmark."""

    def __call__(self, side: str, *landmarks: str) -> list[int]:
        """Return the markers on any of these landmarks of one side."""
        return [k for name in landmarks for k in self.markers.get((side, name), ())]

    def either_side(self, *landmarks: str) -> list[int]:
        """Return the markers on any of these landmarks, whatever their side."""
        return [k for side in ("", *SIDES) for k in self(side, *landmarks)]

    @property
    def has_pelvis(self) -> bool:
        """Whether the pelvis has both anterior spines and a landmark at the back."""
        front = all(self(side, "asis", "waist_front") for side in SIDES)
        back = all(self(side, "psis", "waist_back") for side in SIDES)
        return front and (back or bool(self("", "sacrum")))


def find_landmarks(labels: Sequence[str], segments: Sequence[str]) -> Landmarks:
    """Return the landmarks that marker labels name.

    A label counts only if its marker sits on the segment of that landmark, and on its
    side. "LA" on the chest is the left acromion; on a foot it is no landmark. "LLEPI"
    is the lateral epicondyle: on a thigh that of the femur, on an upper arm that of the
    humerus.

    Args:
        labels: Label of each marker, with or without a prefix ("JOE:LASI").
        segments: Name of the segment that each marker sits on ("LeftUpperLeg").
    """
    markers: dict[tuple[str, str], tuple[int, ...]] = {}
    for k, (label, segment) in enumerate(zip(labels, segments, strict=True)):
        meaning = read_spelling(label, _labels_on(vrm.without_side(segment)))
        if meaning and vrm.side_of(segment) in ("", meaning[0]):
            markers[meaning] = (*markers.get(meaning, ()), k)
    return Landmarks(markers)


@cache
def _labels_on(segment: str) -> Mapping[str, Meaning]:
    """Return side and landmark by label, in lower case and without separators.

    Args:
        segment: Name of a segment without its side; only its landmarks count.
    """
    text = (files("marey.anatomy") / "landmarks.toml").read_text(encoding="utf-8")
    patterns = tomllib.loads(text)
    landmarks = LANDMARKS_OF_SEGMENT.get(segment, ())
    return spelling_table({name: patterns[name] for name in landmarks})
