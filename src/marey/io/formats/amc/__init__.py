"""AMC, the motion of the Acclaim format of Vicon and the CMU database.

An AMC needs its ASF, which lies in the same folder and states the unit. The up axis
and the frame rate are not stated; Y and 120 Hz are usual in the CMU database.
"""

import re
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from marey.io.contract import Format
from marey.io.file import Facts, File
from marey.io.formats.asf.read import ROOT, AsfFile, read_asf
from marey.io.formats.asf.skeleton import AsfSkeleton, convert_skeleton, decide_unit
from marey.io.formats.asf.write import write_motion
from marey.io.losses import LOST_BY_MOTIONS
from marey.io.segment_tree import MAX_STILL_TRANSLATION_M
from marey.io.text import numbers
from marey.io.text.encoding import decode_text, normalize_text
from marey.io.text.numbers import BLANK
from marey.io.text.rotations import rotations_from_channels
from marey.io.text.timing import note_frame_count, parse_rate
from marey.io.units_axes import rotation_to_z_up
from marey.motion import Motion
from marey.numerics import Bool, Float, Int, UInt8, geometry
from marey.skeleton import Skeleton

SIGNATURE = re.compile(
    rb"^[ \t]*:(fully-specified|degrees|radians)\b|^#!OML:ASF|^# marey frames "
    rb"|^[ \t]*\d+[ \t]*\n\s*root\s",
    re.I | re.M,
)
MAREY_COMMENT = re.compile(rb"^# marey frames (\d+) rate (\S+)$", re.MULTILINE)
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


def sniff(head: bytes) -> bool:
    """Whether a file begins like an AMC."""
    return bool(SIGNATURE.search(normalize_text(head)))


def read_motion(file: File) -> Motion:
    """Return the motion of an AMC on the skeleton of its ASF.

    A bone that a frame leaves out is unknown there; one that every frame leaves out
    rests. The ASF is the one given as `skeleton`, else the one of the same name, else
    of the longest name that ends before an underscore, else the only one.
    """
    data = file.text()
    skeleton_file = _open_asf(file)
    asf = read_asf(skeleton_file)
    unit, scale = decide_unit(file, asf)
    up = file.decide_fact("up", assumed="y", note="ASF does not state it")
    asf_skeleton = convert_skeleton(asf, scale, up.value)
    mark = MAREY_COMMENT.search(data, 0, HEADER_BYTES)
    stated = parse_rate(decode_text(mark[2])) if mark else None
    rate = file.decide_fact(
        "rate",
        stated=None if stated is None else repr(stated),
        assumed="120",
        note="AMC does not state it",
    )
    n_joints = asf_skeleton.skeleton.n_joints
    declared = int(mark[1]) if mark else None
    values = read_frames(file, data, asf, n_joints=n_joints, declared=declared)
    numbers.note_missing_line_end(file, data)
    skeleton = _skeleton_at_mean(file, asf, asf_skeleton, values, scale)
    wxyz, position = _poses(asf, asf_skeleton, values, up.value)
    parameters = {"skeleton": str(skeleton_file.path)}
    facts = Facts(unit, up, rate)
    return file.motion(facts, skeleton, scale * position, wxyz, parameters=parameters)


# --- the ASF of an AMC ---------------------------------------------------------------


def _open_asf(file: File) -> File:
    """Return the ASF of an AMC; which one it is becomes a finding."""
    if file.options.skeleton is not None:
        path = Path(file.options.skeleton)
        if not path.is_file():
            file.fail("the ASF file skeleton=", path)
    else:
        path = _find_asf(file)
        file.note(
            "skeleton-found",
            f"the skeleton is that of {path.name}",
            severity="info",
            subject=path.name,
        )
    return file.open_other(path)


def _find_asf(file: File) -> Path:
    folder = file.path.parent
    found = {
        path.stem: path
        for path in sorted(folder.iterdir())
        if path.suffix.lower() == ".asf" and path.is_file()
    }
    name = file.path.stem
    while name and name not in found:
        name = name.rpartition("_")[0]
    if name:
        return found[name]
    if len(found) == 1:
        return next(iter(found.values()))
    file.fail(
        "its ASF in the same folder, or skeleton= naming one",
        f"{len(found)} ASF files there: {', '.join(found)}" if found else "none",
    )


# --- poses ---------------------------------------------------------------------------


def _poses(
    asf: AsfFile, asf_skeleton: AsfSkeleton, values: np.ndarray, up: str
) -> tuple[Float[np.ndarray, "frame joint 4"], Float[np.ndarray, "frame 3"]]:
    """Return all joint rotations, and the root's position in the file's unit."""
    channels = AmcChannels.of(asf)
    owners = [ROOT, *(bone.name if bone else "" for bone in asf_skeleton.bones[1:])]
    rotations = [channels.rotations(name) if name else [] for name in owners]
    wxyz = rotations_from_channels(values, rotations, asf_skeleton.R_world_bone)
    R = rotation_to_z_up(up)
    if not np.array_equal(asf.R_world_root, np.eye(3)):
        preset = geometry.quat_from_matrix(R @ asf.R_world_root @ R.T)
        wxyz[:, 0] = geometry.quat_multiply(wxyz[:, 0], preset)
    position = asf.root_position + _translations(channels, ROOT, values)
    return wxyz, position @ R.T


def _translations(
    channels: AmcChannels, name: str, values: np.ndarray
) -> Float[np.ndarray, "frame 3"]:
    """Return translations of a bone along its axes, in the file's unit, or zero."""
    translations = np.zeros((len(values), 3))
    for i, dof in enumerate(channels.dof[name]):
        if dof[0] == "t":
            translations[:, "xyz".index(dof[1])] = values[:, channels.first[name] + i]
    return translations


def _skeleton_at_mean(
    file: File,
    asf: AsfFile,
    asf_skeleton: AsfSkeleton,
    values: np.ndarray,
    scale: float,
) -> Skeleton:
    """Return the skeleton in which translating bones have their mean position."""
    channels = AmcChannels.of(asf)
    offset = asf_skeleton.skeleton.offset.copy()
    for joint, bone in enumerate(asf_skeleton.bones):
        if bone is None or all(dof[0] == "r" for dof in bone.dof) or not len(values):
            continue
        translations = (
            scale
            * _translations(channels, bone.name, values)
            @ asf_skeleton.R_world_bone[joint].T
        )
        offset[joint] += np.nan_to_num(np.nanmean(translations, axis=0))
        range_m = float(np.nan_to_num(np.ptp(translations, axis=0)).max())
        if range_m > MAX_STILL_TRANSLATION_M or "l" in bone.dof:
            file.note(
                "joint-translates",
                f"translates {range_m:.4g} m: its mean position is used"
                + (", and its change of length is not kept" * ("l" in bone.dof)),
                subject=bone.name,
                value=range_m,
            )
    return replace(asf_skeleton.skeleton, offset=offset)


# --- frames --------------------------------------------------------------------------


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
    values, status, number = _parse_frames(file, data, channels, n_joints)
    if len(values) == 0 and declared != 0:
        file.fail("at least one frame", "none")
    n_whole = _count_whole_frames(file, status, declared)
    uneven = int((np.diff(number[:n_whole]) != 1).sum())
    file.note_count(
        "frames-uneven",
        uneven,
        "the frame numbers do not count up by one in {} steps: frames may be "
        "missing there",
    )
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
    from marey.io.text.number_kernel import count_lines

    if not data.endswith(b"\n"):
        data += b"\n"
    text = np.frombuffer(data, np.uint8)
    room = count_lines(text, *b"09")
    numbers.check_table_size(file, room, channels.count, len(data), 1)
    numbers.check_motion_size(file, room, n_joints, len(data))
    values = np.full((room, channels.count), np.nan)
    status = np.full((room, channels.count), BLANK, np.uint8)
    number = np.zeros(room, np.int64)
    names, start, first = _sorted_names(channels)
    end, at, frames = kernel.parse_frames(
        text, names, start, first, values, status, number
    )
    if end != kernel.FINE:
        line = data[at : at + 80].split(b"\n")[0]
        file.fail(
            PROBLEMS[end],
            decode_text(line) or "the end of the line",
            line=1 + data.count(b"\n", 0, int(at)),
        )
    numbers.finish_long_cells(data, values.reshape(-1), status.reshape(-1))
    if (status == numbers.WORD).any() or (np.abs(values) > numbers.MAX_NUMBER).any():
        file.fail(f"numbers within {numbers.MAX_NUMBER:g}", "larger ones")
    return values[:frames], status[:frames], number[:frames]


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
    note_frame_count(file, "" if declared is None else str(declared), n_whole)
    return n_whole


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
                value=frames,
            )


FORMAT = Format(
    name="amc",
    title="AMC (Acclaim motion; Vicon, CMU)",
    suffixes=(".amc",),
    sniff=sniff,
    read_motion=read_motion,
    write_motion=write_motion,
    companions=(".asf",),
    loses=LOST_BY_MOTIONS,
    precision=1e-6,
)
