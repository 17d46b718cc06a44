"""The frames of an AMC as one table of channels."""

import re
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8

from marey.io.contract import File, decoded
from marey.io.formats.asf.read import ROOT, Asf
from marey.io.text.lines import LARGEST
from marey.io.text.numbers import BLANK, LONG, NUMBER, check_motion, check_room

HEAD = 2**16
RADIANS = re.compile(rb"^[ \t]*:radians\b", re.IGNORECASE | re.MULTILINE)
DEGREES = re.compile(rb"^[ \t]*:degrees\b", re.IGNORECASE | re.MULTILINE)
PROBLEMS = {
    1: "a frame number before the first bone",
    2: "a bone of the ASF",
    3: "a number",
    4: "one number per freedom of the bone",
}


@dataclass(frozen=True, slots=True, eq=False)
class Channels:
    """Which columns of the table belong to which bone."""

    first: dict[str, int]
    """First column of the root and of each bone."""

    dof: dict[str, tuple[str, ...]]
    """Freedoms of the root and of each bone, one column each."""

    count: int

    @staticmethod
    def of(asf: Asf) -> "Channels":
        """Return the columns: those of the root, then those of the bones in order."""
        dof = {ROOT: asf.root_order} | {n: b.dof for n, b in asf.bones.items()}
        starts = np.cumsum([0, *(len(own) for own in dof.values())])
        first = {name: int(start) for name, start in zip(dof, starts[:-1], strict=True)}
        return Channels(first, dof, int(starts[-1]))

    def columns(self, name: str) -> slice:
        """Return the columns of a bone."""
        return slice(self.first[name], self.first[name] + len(self.dof[name]))

    def turns(self, name: str) -> list[tuple[int, int]]:
        """Return (column, axis) of a bone's turns in the order of the product."""
        return [
            (self.first[name] + i, "xyz".index(dof[1]))
            for i, dof in reversed(list(enumerate(self.dof[name])))
            if dof[0] == "r"
        ]


def read_frames(
    file: File, data: bytes, asf: Asf, *, n_joints: int, declared: int | None
) -> Float[np.ndarray, "frame channel"]:
    """Return the channels of every whole frame, angles in degrees.

    Args:
        file: Named in errors; keeps what was found.
        data: The text of the AMC.
        asf: Its skeleton.
        n_joints: Joints that each frame will have.
        declared: Frames that the file says it has, None when it does not say.
    """
    channels = Channels.of(asf)
    values, status, numbers = _parsed(file, data, channels, n_joints)
    if len(values) == 0 and declared != 0:
        raise file.error(None, expected="at least one frame", found="none")
    kept = _whole_frames(file, status, declared)
    _check_numbers(file, numbers[:kept])
    values, status = values[:kept], status[:kept]
    _rest_missing(file, channels, values, status)
    if RADIANS.search(data[:HEAD]) or (asf.radians and not DEGREES.search(data[:HEAD])):
        for name in channels.dof:
            for column, _ in channels.turns(name):
                values[:, column] *= 180.0 / np.pi
    return values


def _parsed(
    file: File, data: bytes, channels: Channels, n_joints: int
) -> tuple[np.ndarray, UInt8[np.ndarray, "frame channel"], Int[np.ndarray, " frame"]]:
    from marey.io.formats.amc import amc_kernel as kernel  # numba is slow to import

    if not data.endswith(b"\n"):
        data += b"\n"
    text = np.frombuffer(data, np.uint8)
    room = kernel.count_frames(text)
    check_room(file, room, channels.count, len(data), 1)
    check_motion(file, room, n_joints, len(data))
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
            found=decoded(line) or "the end of the line",
        )
    for cell in np.flatnonzero(status == LONG):
        at_byte = int(values.flat[cell])
        values.flat[cell] = float(data[at_byte : data.index(b"\n", at_byte)].split()[0])
        status.flat[cell] = NUMBER
    if (np.abs(values) > LARGEST).any():
        raise file.error(
            None, expected=f"numbers within {LARGEST:g}", found="larger ones"
        )
    return values[:frames], status[:frames], numbers[:frames]


def _sorted_names(channels: Channels) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the names in alphabetical order as the kernel takes them."""
    names = sorted(channels.dof, key=str.encode)
    spelled = [name.encode() for name in names]
    first = [[channels.columns(n).start, channels.columns(n).stop] for n in names]
    return (
        np.frombuffer(b"".join(spelled), np.uint8),
        np.cumsum([0, *(len(name) for name in spelled)]),
        np.array(first, np.int64),
    )


def _whole_frames(
    file: File, status: UInt8[np.ndarray, "frame channel"], declared: int | None
) -> int:
    """Return how many frames are whole; the last one may be cut off."""
    missing = status == BLANK
    kept = len(status)
    if kept > 1 and (missing[-1] & ~missing[:-1].any(axis=0)).any():
        kept -= 1
        file.note("frames-missing", f"frame {kept + 1} is cut off: left out")
    if declared is not None and declared != kept:
        file.note(
            "frames-missing",
            f"frames declared {declared}, present {kept}",
            value=float(kept - declared),
        )
    return kept


def _check_numbers(file: File, numbers: Int[np.ndarray, " frame"]) -> None:
    steps = np.diff(numbers)
    if (steps != 1).any():
        file.note(
            "frames-uneven",
            f"the frame numbers do not count up by one in {int((steps != 1).sum())} "
            "places: frames may be missing there",
            value=float((steps != 1).sum()),
        )


def _rest_missing(
    file: File,
    channels: Channels,
    values: np.ndarray,
    status: UInt8[np.ndarray, "frame channel"],
) -> None:
    """Let bones rest that no frame has; say which ones some frames leave out."""
    missing: Bool[np.ndarray, "frame channel"] = status == BLANK
    if not missing.any():
        return
    for name in channels.dof:
        own = missing[:, channels.columns(name)]
        if own.size and own.all():
            values[:, channels.columns(name)] = 0.0
        if own.any():
            frames = int(own.any(axis=1).sum())
            rests = "it rests" if own.all() else "unknown there"
            file.note(
                "bone-missing",
                f"is left out of {frames} of {len(own)} frames: {rests}",
                subject=name,
                value=float(frames),
            )
