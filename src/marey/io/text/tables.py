"""What readers of text tables share: rows of numbers, frame counts, clocks, turns."""

import numpy as np
from jaxtyping import Bool, Float

from marey.io.contract import LARGEST_RATE, File
from marey.io.text.lines import LARGEST
from marey.io.text.numbers import WORD, Numbers, parse_number, parse_table
from marey.numerics.geometry import matrix_from_quat, quat_from_matrix
from marey.take import Fact

MOST_COLUMNS = 100_000

LARGEST_DRIFT = 0.01
"""Share by which a time column may run faster or slower than the stated rate."""

ROUNDED_TIME = 1e-3
"""Seconds to which times may be rounded."""

LARGEST_STRETCH = 0.01
"""How far from one the length of a quaternion may be before it is a finding."""

SHORTEST = 1e-6
"""Length below which a quaternion says nothing."""

FARTHEST_FROM_RIGID = 0.05
"""How far a rotation matrix times its transpose may be from one."""


def read_numbers(
    file: File, data: bytes, *, columns: int, delimiter: str, first_line: int
) -> Numbers:
    """Return the rows of a table that hold anything, each a number, "nan" or blank.

    The arguments are those of `parse_table`.

    Raises:
        FormatError: If there is a word among the numbers or a number beyond reason, a
            line has more cells than there are columns, or no line holds anything.
    """
    table = parse_table(
        file, data, columns=columns, delimiter=delimiter, first_line=first_line
    )
    _refuse(file, table, table.status == WORD, "a word")
    least = np.fmin.reduce(table.values, axis=None, initial=0.0)
    most = np.fmax.reduce(table.values, axis=None, initial=0.0)
    if max(-least, most) > LARGEST:
        beyond = np.abs(table.values) > LARGEST
        _refuse(file, table, beyond, f"a number beyond {LARGEST:g}")
    long = np.flatnonzero(table.cells > columns)
    if len(long):
        file.fail_at_line(
            int(table.line[long[0]]),
            expected=f"{columns} cells",
            found=f"{table.cells[long[0]]}",
        )
    keep = table.cells > 0
    if not keep.any():
        file.fail_at_line(first_line, expected="frames", found="the end of the file")
    if keep.all():
        return table
    return Numbers(
        table.values[keep], table.status[keep], table.cells[keep], table.line[keep]
    )


def _refuse(
    file: File, table: Numbers, wrong: Bool[np.ndarray, "row column"], what: str
) -> None:
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        file.fail_at_line(
            int(table.line[row]),
            expected="a number or a blank",
            found=f"{what} in column {column + 1}",
        )


def check_width(file: File, line: bytes, delimiter: bytes, number: int) -> None:
    """Refuse a line of the header that holds more cells than any recording has.

    Raises:
        FormatError: If there are more than `MOST_COLUMNS`.
    """
    count = line.count(delimiter) + 1
    if count > MOST_COLUMNS:
        file.fail_at_line(
            number, expected=f"at most {MOST_COLUMNS} columns", found=f"{count}"
        )


def note_frames(file: File, declared: str, present: int) -> None:
    """Keep a finding when the file holds another number of frames than it says.

    Args:
        file: Keeps the finding.
        declared: The file's own word; what is not a number says nothing.
        present: Frames found.
    """
    count = parse_number(declared)
    if count is not None and count != present:
        file.note(
            "frames-missing" if present < count else "frames-extra",
            f"frames declared {count:.15g}, present {present}",
            value=present - count,
        )


def settle_rate(
    file: File, stated: str, times: Float[np.ndarray, " frame"], *, note: str
) -> Fact:
    """Return the frame rate: what the file states, else the pace of its times.

    Args:
        file: Keeps findings: stated rate and times that disagree, times that jump.
        stated: The file's own word; what is not a rate says nothing.
        times: Seconds, NaN where there are none.
        note: Where the file states it.
    """
    value = parse_number(stated)
    if value is not None and 0.0 < value < LARGEST_RATE:
        word = f"{value:g}" if float(f"{value:g}") == value else repr(value)
        rate = file.settle("rate", stated=word, assumed="100", note=note)
        if rate.how == "stated":
            _check_pace(file, times, value)
        return rate
    pace = _pace(times)
    return file.settle(
        "rate",
        stated=f"{pace:.10g}" if np.isfinite(pace) else None,
        assumed="100",
        note="mean step of the times",
        how="inferred",
    )


def first_time(times: Float[np.ndarray, " frame"]) -> float:
    """Return the time of the first frame, 0 when it is not known."""
    return float(times[0]) if len(times) and np.isfinite(times[0]) else 0.0


def _pace(times: Float[np.ndarray, " frame"]) -> float:
    """Return the frames per second of a time column, NaN when it does not run."""
    span = times[-1] - times[0] if len(times) > 1 else np.nan
    return float((len(times) - 1) / span) if span > 0.0 else np.nan


def _check_pace(file: File, times: Float[np.ndarray, " frame"], rate: float) -> None:
    pace = _pace(times)
    slack = LARGEST_DRIFT + ROUNDED_TIME * rate / max(len(times) - 1, 1)
    if abs(pace / rate - 1.0) > slack:
        file.note(
            "rate-mismatch",
            f"the header says {rate:g} Hz, the times {pace:g} Hz: took {rate:g}",
            value=pace,
        )
        return
    steps = np.diff(times) * rate
    uneven = int((np.abs(steps - 1.0) > 0.5 + ROUNDED_TIME * rate).sum())
    if uneven:
        file.note(
            "times-uneven",
            f"{uneven} steps of the times are not one frame: frames may be missing",
            value=float(uneven),
        )


def turns(
    file: File, wxyz: Float[np.ndarray, "*batch 4"]
) -> Float[np.ndarray, "*batch 3 3"]:
    """Return the rotation matrices of quaternions of any length but zero, else NaN.

    Args:
        file: Keeps a finding when quaternions are far from length one.
        wxyz: Quaternions, NaN where unknown.
    """
    length = np.linalg.norm(wxyz, axis=-1, keepdims=True)
    length[length < SHORTEST] = np.nan
    stretched = int((np.abs(length - 1.0) > LARGEST_STRETCH).sum())
    if stretched:
        file.note(
            "quaternions-scaled",
            f"{stretched} quaternions are not of length one: scaled",
            value=float(stretched),
        )
    return matrix_from_quat(wxyz / length)


def rotations(
    file: File, R: Float[np.ndarray, "frame 3 3"]
) -> Float[np.ndarray, "frame 3 3"]:
    """Return the matrices without their rounding; NaN where they are no rotations.

    Args:
        file: Keeps a finding when there are some, other than of zeros alone.
        R: Matrices, NaN or zero where unknown.
    """
    gap = np.abs(R @ R.swapaxes(-1, -2) - np.eye(3)).max(axis=(-1, -2))
    known = np.isfinite(gap) & (R != 0.0).any(axis=(-1, -2))
    good = known & (gap < FARTHEST_FROM_RIGID)
    good[good] &= np.linalg.det(R[good]) > 0.0
    out = np.full_like(R, np.nan)
    out[good] = matrix_from_quat(quat_from_matrix(R[good]))
    if (known & ~good).any():
        bad = int((known & ~good).sum())
        file.note(
            "rotations-wrong",
            f"{bad} rotation matrices are no rotations: taken as not seen",
            value=float(bad),
        )
    return out
