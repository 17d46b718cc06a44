"""3-D keypoints of cameras with confidences: tables of DeepLabCut and Anipose.

DeepLabCut writes three or four lines of titles (scorer, individuals, bodyparts, coords)
and x, y, z of every body part, some versions with a likelihood. Anipose writes one line
of titles, `nose_x`, `nose_y`, `nose_z`, `nose_score` and others.
"""

import re
from collections.abc import Sequence

import numpy as np

from marey.io import contract
from marey.io.contract import Format
from marey.io.file import Facts, File
from marey.io.text import numbers
from marey.io.text.encoding import decode_text, normalize_text
from marey.io.text.names import unique_names
from marey.numerics import Float
from marey.take import Take

TITLE_LINES = ("scorer", "individuals", "bodyparts", "coords")
"""First cells of the lines of titles of DeepLabCut."""

CONFIDENCES = ("likelihood", "score")
ANIPOSE = re.compile(r"(.+)_(x|y|z|score)")

Column = tuple[str, str]
"""Name of a keypoint, with its individual, and component of a column."""


def sniff(head: bytes) -> bool:
    """Whether a file begins like a table of DeepLabCut or Anipose."""
    lines = decode_text(normalize_text(head)).split("\n")[: len(TITLE_LINES)]
    first = lines[0].split(",")
    if first[0] == TITLE_LINES[0]:
        return any(line.startswith("coords,") for line in lines)
    parts = {part for _, part in _anipose_columns(first)}
    return {"x", "y", "z", "score"} <= parts


def read_take(file: File) -> Take:
    """Return the keypoints of a table as markers, with their confidences.

    Raises:
        FormatError: If the keypoints have no third coordinate.
    """
    text = file.text()
    titles = _title_lines(decode_text(text[: contract.SNIFF_BYTES]).split("\n"))
    body = text.split(b"\n", len(titles))[-1]
    columns = _columns(titles)
    table = numbers.parse_table(
        file,
        body,
        columns=len(columns),
        delimiter=",",
        first_line=len(titles) + 1,
    )
    at = {column: i for i, column in enumerate(columns)}
    named = dict.fromkeys(name for name, _ in columns)
    names = [name for name in named if all((name, axis) in at for axis in "xyz")]
    if not names:
        file.fail("keypoints with x, y and z", "two coordinates or none", line=1)
    if len(table.cells) == 0:
        file.fail("at least one frame", "none", line=len(titles) + 1)
    numbers.refuse_words(file, table)
    numbers.note_missing_line_end(file, text)
    points = table.values[:, [[at[n, axis] for axis in "xyz"] for n in names]]
    facts = Facts(
        file.decide_fact("unit", assumed="mm", note="none in a table of keypoints"),
        file.decide_fact("up", assumed="z", note="none in a table of keypoints"),
        file.decide_fact("rate", assumed="100", note="none in a table of keypoints"),
    )
    return file.take(
        facts,
        points=points,
        markers=unique_names(file, names, "marker"),
        confidence=_confidences(table.values, at, names),
    )


def _title_lines(lines: Sequence[str]) -> list[list[str]]:
    """Return the cells of the lines of titles."""
    titles = [line.split(",") for line in lines[: len(TITLE_LINES)]]
    known = [cells for cells in titles if cells[0] in TITLE_LINES]
    return known or titles[:1]


def _columns(titles: Sequence[Sequence[str]]) -> list[Column]:
    """Return keypoint and component of every column; ("", "") for other columns."""
    rows = {cells[0]: cells for cells in titles}
    if not {"bodyparts", "coords"} <= rows.keys():
        named = dict.fromkeys(_anipose_columns(titles[0]))
        parsed = [ANIPOSE.fullmatch(title.strip()) for title in titles[0]]
        pairs = [(m[1], m[2]) if m else ("", "") for m in parsed]
        return [pair if pair in named else ("", "") for pair in pairs]
    width = len(rows["coords"])
    owners = rows.get("individuals", [""] * width)
    parts = zip(owners, rows["bodyparts"], rows["coords"], strict=False)
    columns = [
        (f"{owner}:{name}" if owner and owner != "single" else name, part.strip())
        for owner, name, part in parts
    ]
    return [("", ""), *columns[1:]]


def _anipose_columns(titles: Sequence[str]) -> list[Column]:
    """Return keypoint and component of the columns of keypoints."""
    found = [ANIPOSE.fullmatch(title.strip()) for title in titles]
    return [(match[1], match[2]) for match in found if match is not None]


def _confidences(
    values: Float[np.ndarray, "frame column"],
    at: dict[Column, int],
    names: Sequence[str],
) -> Float[np.ndarray, "frame marker"]:
    """Return the confidence of keypoints, 0 to 1; NaN where the table has none."""
    confidence = np.full((len(values), len(names)), np.nan)
    for k, name in enumerate(names):
        for part in CONFIDENCES:
            if (name, part) in at:
                confidence[:, k] = values[:, at[name, part]]
    return confidence


FORMAT = Format(
    name="keypoints",
    title="3-D keypoints of DeepLabCut or Anipose",
    suffixes=(".csv",),
    sniff=sniff,
    read_take=read_take,
)
