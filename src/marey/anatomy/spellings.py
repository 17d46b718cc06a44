"""Spellings of names with a side: "LASI", "asis_l", "JOE:Left Asis" are one name.

A pattern has "#" where the side stands. Case and separators do not matter.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from marey.anatomy import names as vrm

LABEL_SEPARATORS = re.compile(r"[\W_]+")
PATTERN_SEPARATORS = re.compile(r"[^\w#]+|_+")

Meaning = tuple[str, str]
"""Side ("Left", "Right" or "") and name of what a spelling stands for."""


def spelling_table(patterns: Mapping[str, Iterable[str]]) -> dict[str, Meaning]:
    """Return the meaning of every spelling of patterns, by name.

    Spellings are in lower case and have no separators.
    """
    return {
        spelling: (side, name)
        for name, some in patterns.items()
        for pattern in some
        for side, spelling in _spellings(PATTERN_SEPARATORS.sub("", pattern.casefold()))
    }


def read_spelling(label: str, table: Mapping[str, Meaning]) -> Meaning | None:
    """Return the meaning of a label, or of its last words; None if it has none."""
    words = LABEL_SEPARATORS.split(label.casefold())
    for start in range(len(words)):
        meaning = table.get("".join(words[start:]))
        if meaning is not None:
            return meaning
    return None


def _spellings(pattern: str) -> Iterator[Meaning]:
    """Yield side and spelling of a label whose "#" stands for the side."""
    if "#" not in pattern:
        yield "", pattern
        return
    for side, spellings in vrm.SIDE_SPELLINGS.items():
        for spelling in spellings:
            yield side, pattern.replace("#", spelling)
            yield side, pattern.replace("#", "") + spelling
