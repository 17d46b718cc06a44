"""The frames of an AMC as one table of channels."""

import re
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8

from marey.io.contract import File, decode_text
from marey.io.formats.asf.read import ROOT, AsfFile
from marey.io.text.numbers import (
    BLANK,
    LONG,
    MAX_NUMBER,
    NUMBER,
    check_motion_size,
    check_table_size,
)

HEADER_BYTES = 2**16
RADIANS = re.compile(rb"^[ \t]*:radians\b", re.IGNORECASE | re.MULTILINE)
DEGREES = re.compile(rb"^[ \t]*:degrees\b", re.IGNORECASE | re.MULTILINE)
PROBLEMS = {
    1: "a frame number before the first bone",
    2: "a bone of the ASF",
    3: "a number",
    4: "one number per degree of freedom of the bone",
}


@dataclass(frozen=True, slots=True, eq=False)
class AmcChannels:
    """Which columns of the table belong to which bone."""

    first: dict[str, int]
    """First column of the root and of each bone."""

    dof: dict[str, tuple[str, ...]]
    """Degrees of freedom of the root and of each bone, one column each."""

    count: int

    @staticmethod
    def of(asf: AsfFile) -> "AmcChannels":
        """Return the columns: those of the root, then those of the bones in order."""
        dof = {ROOT: asf.root_order} | {n: b.dof for n, b in asf.bones.items()}
        starts = np.cumsum([0, *(len(bone_dof) for bone_dof in dof.values())])
        first = {name: int(start) for name, start in zip(dof, starts[:-1], strict=True)}
        return AmcChannels(first, dof, int(starts[-1]))

    def columns(self, name: str) -> slice:
        """Return the columns of a bone."""
        return slice(self.first[name], self.first[name] + len(self.dof[name]))

    def rotations(self, name: str) -> list[tuple[int, int]]:
        """Return (column, axis) of a bone's rotations in the order of the product."""
        return [
            (self.first[name] + i, "xyz".index(dof[1]))
            for i, dof in reversed(list(enumerate(self.dof[name])))
            if dof[0] == "r"
        ]


def read_frames(
    file: File, data: bytes, asf: AsfFile, *, n_joints: int, declared: int | None
) -> Float[np.ndarray, "frame channel"]:
    """Return the channels of every whole frame, angles in degrees.

    Args:
        file: Named in errors; collects findings.
        data: The text of the AMC.
        asf: Its skeleton.
        n_joints: Joints that each frame will have.
        declared: Frames that the file says it has, None when it does not say.
    """
    channels = AmcChannels.of(asf)
    values, status, numbers = _parse_frames(file, data, channels, n_joints)
    if len(values) == 0 and declared != 0:
        raise file.error(None, expected="at least one frame", found="none")
    n_whole = _count_whole_frames(file, status, declared)
    _check_numbers(file, numbers[:n_whole])
    values, status = values[:n_whole], status[:n_whole]
    _fill_missing_bones(file, channels, values, status)
    if RADIANS.search(data[:HEADER_BYTES]) or (
        asf.radians and not DEGREES.search(data[:HEADER_BYTES])
    ):
        for name in channels.dof:
            for column, _ in channels.rotations(name):
                values[:, column] *= 180.0 / np.pi
    return values


def _parse_frames(
    file: File, data: bytes, channels: AmcChannels, n_joints: int
) -> tuple[np.ndarray, UInt8[np.ndarray, "frame channel"], Int[np.ndarray, " frame"]]:
    from marey.io.formats.amc import amc_kernel as kernel  # numba is slow to import

    if not data.endswith(b"\n"):
        data += b"\n"
    text = np.frombuffer(data, np.uint8)
    room = kernel.count_frames(text)
    check_table_size(file, room, channels.count, len(data), 1)
    check_motion_size(file, room, n_joints, len(data))
    values = np.full((room, channels.count), np.nan)
    status = np.full((room, channels.count), BLANK, np.uint8)
    numbers = np.zeros(room, np.int64)
    names, start, first = _sorted_names(channels)
    end, at, frames = kernel.parse_frames(
        text, names, start, first, values, status, numbers
    )
    if end != kernel.FINE:
        line = data[at : at + 80].split(b"\n")[0]
        file.fail_at_line(
            1 + data.count(b"\n", 0, int(at)),
            expected=PROBLEMS[end],
            found=decode_text(line) or "the end of the line",
        )
    for cell in np.flatnonzero(status == LONG):
        at_byte = int(values.flat[cell])
        values.flat[cell] = float(data[at_byte : data.index(b"\n", at_byte)].split()[0])
        status.flat[cell] = NUMBER
    if (np.abs(values) > MAX_NUMBER).any():
        raise file.error(
            None, expected=f"numbers within {MAX_NUMBER:g}", found="larger ones"
        )
    return values[:frames], status[:frames], numbers[:frames]


def _sorted_names(channels: AmcChannels) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the names in alphabetical order as the kernel takes them."""
    names = sorted(channels.dof, key=str.encode)
    spelled = [name.encode() for name in names]
    first = [[channels.columns(n).start, channels.columns(n).stop] for n in names]
    return (
        np.frombuffer(b"".join(spelled), np.uint8),
        np.cumsum([0, *(len(name) for name in spelled)]),
        np.array(first, np.int64),
    )


def _count_whole_frames(
    file: File, status: UInt8[np.ndarray, "frame channel"], declared: int | None
) -> int:
    """Return how many frames are whole; the last one may be cut off."""
    missing = status == BLANK
    n_whole = len(status)
    if n_whole > 1 and (missing[-1] & ~missing[:-1].any(axis=0)).any():
        n_whole -= 1
        file.note("frames-missing", f"frame {n_whole + 1} is cut off: left out")
    if declared is not None and declared != n_whole:
        file.note(
            "frames-missing",
            f"frames declared {declared}, present {n_whole}",
            value=float(n_whole - declared),
        )
    return n_whole


def _check_numbers(file: File, numbers: Int[np.ndarray, " frame"]) -> None:
    steps = np.diff(numbers)
    if (steps != 1).any():
        file.note(
            "frames-uneven",
            f"the frame numbers do not count up by one in {int((steps != 1).sum())} "
            "steps: frames may be missing there",
            value=float((steps != 1).sum()),
        )


def _fill_missing_bones(
    file: File,
    channels: AmcChannels,
    values: np.ndarray,
    status: UInt8[np.ndarray, "frame channel"],
) -> None:
    """Set bones that no frame has to zero; note bones that some frames lack."""
    missing: Bool[np.ndarray, "frame channel"] = status == BLANK
    if not missing.any():
        return
    for name in channels.dof:
        bone_missing = missing[:, channels.columns(name)]
        if bone_missing.size and bone_missing.all():
            values[:, channels.columns(name)] = 0.0
        if bone_missing.any():
            frames = int(bone_missing.any(axis=1).sum())
            rests = "it rests" if bone_missing.all() else "unknown there"
            file.note(
                "bone-missing",
                f"is left out of {frames} of {len(bone_missing)} frames: {rests}",
                subject=name,
                value=float(frames),
            )
