"""Marker labels in one spelling, however people and programs write them."""

import re
from collections import Counter

from marey.anatomy.names import SIDE_SPELLINGS
from marey.take import Take

SIDE_LETTERS = {word: word[0] for words in SIDE_SPELLINGS.values() for word in words}

MIN_PREFIX_LABELS = 6
"""Number of labels with the same prefix from which it is the name of a subject. Higher
misses subjects with few markers. Chosen by hand."""

# "*12", "M000", "U12", "x52", "Unlabeled 2012", "New 0007", "uname*3", "2000".
_NUMBER = re.compile(
    r"\*.*|(m|u|x|p|pt|point|marker|channel|trajectory|new|un\w*)?[\W_]*\d+"
)
"""A number in place of a name."""

_GHOST = re.compile(r".+-\d+")
"""A second marker of the same name, "RBAC-1"."""

_SEPARATOR = re.compile(r"[\W_]+")

_POINT = re.compile(r"p(?=(Left|Right)[A-Z])")
"""The prefix of points of Xsens MVN, "pLeftASI"."""


def is_name(label: str) -> bool:
    """Return whether a label is a name, and no number and no ghost marker."""
    label = label.casefold().strip()
    return bool(label) and not (_NUMBER.fullmatch(label) or _GHOST.fullmatch(label))


def normalise_label(label: str) -> str:
    """Return a label in lower case, without separators, the side as first letter.

    "RKneeOut", "r_knee_out", "Right knee out" and "KneeOut.R" are all "rkneeout".
    """
    label = _POINT.sub("", label, count=1) if _POINT.match(label) else label
    words = [word for word in _SEPARATOR.split(label.casefold()) if word]
    if len(words) > 1:
        for index in (0, -1):
            if words[index] in SIDE_LETTERS:
                side = SIDE_LETTERS[words.pop(index)]
                return side + "".join(words)
    word = "".join(words)
    for side in ("left", "right"):
        if word == side:
            continue
        if word.startswith(side):
            return SIDE_LETTERS[side] + word.removeprefix(side)
        if word.endswith(side):
            return SIDE_LETTERS[side] + word.removesuffix(side)
    return word


def stem_of_label(label: str) -> str:
    """Return a label in lower case without separators, side and number at its end.

    "Blade_L", "BladeR" and "blade 2" are all "blade".
    """
    words = [word for word in _SEPARATOR.split(label.casefold()) if word]
    if len(words) > 1 and words[-1] in SIDE_LETTERS:
        del words[-1]
    word = "".join(words).rstrip("0123456789")
    for side in SIDE_LETTERS:
        if len(word) > len(side) and word.endswith(side):
            return word.removesuffix(side)
    return word


def label_readings(take: Take) -> list[list[tuple[str, str]]]:
    """Return the possible readings of a take's labels: subject and label per marker.

    First as they are; then, if many have a common prefix ("JOE_RTHI", "JOE_LTHI"), with
    the prefix as the subject's name.
    """
    plain = list(zip(take.subjects, take.labels, strict=True))
    counts = Counter(prefix for _, label in plain for prefix in _prefixes(label))
    common = {prefix for prefix, n in counts.items() if n >= MIN_PREFIX_LABELS}
    split = [_split_prefix(subject, label, common) for subject, label in plain]
    return [plain] if split == plain else [plain, split]


def _prefixes(label: str) -> list[str]:
    """Return every prefix of a label that ends with a separator and is no side."""
    ends = [match.end() for match in _SEPARATOR.finditer(label) if match.start() > 0]
    prefixes = [label[:end] for end in ends if end < len(label)]
    return [
        prefix
        for prefix in prefixes
        if _SEPARATOR.split(prefix.casefold())[-2] not in SIDE_LETTERS
    ]


def _split_prefix(subject: str, label: str, common: set[str]) -> tuple[str, str]:
    """Return the subject and the label without its longest common prefix."""
    prefixes = (prefix for prefix in _prefixes(label) if prefix in common)
    prefix = max(prefixes, key=len, default="")
    if not prefix:
        return subject, label
    name = prefix.rstrip("".join(c for c in prefix if not c.isalnum()))
    return f"{subject}:{name}" if subject else name, label.removeprefix(prefix)
