"""Marker labels as people and programs write them, brought to one spelling."""

import re
from collections import Counter

from marey.take import Take

SIDES = {"l": "l", "left": "l", "r": "r", "right": "r"}

FEWEST = 6
"""Labels that begin alike before the beginning is taken for a subject's name."""

# "*12", "M000", "U12", "Unlabeled 2012", "New 0007", "uname*3", "2000": a number in
# place of a name.
_NUMBERED = re.compile(
    r"\*.*|(m|u|p|pt|point|marker|channel|trajectory|new|un\w*)?[\W_]*\d+"
)
_GHOST = re.compile(r".+-\d+")
"""A second marker of the same name, "RBAC-1"."""

_BREAK = re.compile(r"[\W_]+")


def is_named(label: str) -> bool:
    """Return whether a label names a marker: no number in place of a name, no ghost."""
    label = label.casefold().strip()
    return bool(label) and not (_NUMBERED.fullmatch(label) or _GHOST.fullmatch(label))


def spelled(label: str) -> str:
    """Return a label in the one spelling that all ways of writing it have in common.

    Lower case, without separators, the side as the first letter: "RKneeOut",
    "r_knee_out", "Right knee out" and "KneeOut.R" are all "rkneeout".
    """
    words = [word for word in _BREAK.split(label.casefold()) if word]
    if len(words) > 1:
        for place in (0, -1):
            if words[place] in SIDES:
                side = SIDES[words.pop(place)]
                return side + "".join(words)
    return _side_of_word("".join(words))


def _side_of_word(word: str) -> str:
    for side in ("left", "right"):
        if word != side and word.startswith(side):
            return SIDES[side] + word.removeprefix(side)
        if word != side and word.endswith(side):
            return SIDES[side] + word.removesuffix(side)
    return word


def readings(take: Take) -> list[list[tuple[str, str]]]:
    """Return the ways to read a take's labels, each as subject and label per marker.

    First as they stand; then, where many begin alike ("JOE_RTHI", "JOE_LTHI"), with
    the common beginning as the subject's name.
    """
    plain = list(zip(take.subjects, take.labels, strict=True))
    counts = Counter(start for _, label in plain for start in _starts(label))
    common = {start for start, times in counts.items() if times >= FEWEST}
    split = [_split(subject, label, common) for subject, label in plain]
    return [plain] if split == plain else [plain, split]


def _starts(label: str) -> list[str]:
    """Return every beginning of a label that ends with a separator and is no side."""
    ends = [found.end() for found in _BREAK.finditer(label) if found.start() > 0]
    starts = [label[:end] for end in ends if end < len(label)]
    return [s for s in starts if _BREAK.split(s.casefold())[-2] not in SIDES]


def _split(subject: str, label: str, common: set[str]) -> tuple[str, str]:
    start = max((s for s in _starts(label) if s in common), key=len, default="")
    if not start:
        return subject, label
    name = start.rstrip("".join(c for c in start if not c.isalnum()))
    return f"{subject}:{name}" if subject else name, label.removeprefix(start)
