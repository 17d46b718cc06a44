"""AMC, the motion of the Acclaim format of Vicon and the CMU database.

An AMC needs its ASF, which lies in the same folder and states the unit. The up axis
and the frame rate are not stated; Y and 120 Hz are usual in the CMU database.
"""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
from jaxtyping import Float

from marey.io.contract import (
    MAX_RATE_HZ,
    File,
    Format,
    decode_text,
    hash_file,
    normalize_text,
)
from marey.io.formats.amc.frames import HEADER_BYTES, AmcChannels, read_frames
from marey.io.formats.asf.read import ROOT, AsfFile, read_asf
from marey.io.formats.asf.skeleton import AsfSkeleton, build_skeleton, decide_unit
from marey.io.formats.asf.write import write_motion
from marey.io.segment_tree import MAX_STILL_TRANSLATION_M
from marey.io.text.numbers import note_missing_line_end, parse_number
from marey.io.units_axes import rotation_to_z_up
from marey.motion import Motion
from marey.numerics import geometry
from marey.skeleton import Skeleton

SIGNATURE = re.compile(
    rb"^[ \t]*:(fully-specified|degrees|radians)\b|^#!OML:ASF|^# marey frames "
    rb"|^[ \t]*\d+[ \t]*\n\s*root\s",
    re.I | re.M,
)
MAREY_COMMENT = re.compile(rb"^# marey frames (\d+) rate (\S+)$", re.MULTILINE)


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
    asf_skeleton = build_skeleton(asf, scale, up.value)
    mark = MAREY_COMMENT.search(data, 0, HEADER_BYTES)
    rate = _stated_rate(decode_text(mark[2]) if mark else "")
    rate_fact = file.decide_fact(
        "rate", stated=rate, assumed="120", note="AMC does not state it"
    )
    values = read_frames(
        file,
        data,
        asf,
        n_joints=asf_skeleton.skeleton.n_joints,
        declared=int(mark[1]) if mark else None,
    )
    note_missing_line_end(file, data)
    skeleton = _skeleton_at_mean(file, asf, asf_skeleton, values, scale)
    wxyz, position = _poses(asf, asf_skeleton, values, up.value)
    return Motion(
        skeleton=skeleton,
        T_world_root=geometry.transform(
            geometry.matrix_from_quat(wxyz[:, 0]), scale * position
        ),
        wxyz=wxyz,
        rate=float(rate_fact.value),
        source=file.source(
            unit=unit,
            up=up,
            rate=rate_fact,
            parameters={
                "skeleton": str(skeleton_file.path),
                "skeleton_sha256": hash_file(skeleton_file.path),
            },
        ),
    )


def _stated_rate(text: str) -> str | None:
    rate = parse_number(text)
    return repr(rate) if rate is not None and 0.0 < rate < MAX_RATE_HZ else None


# --- the ASF of an AMC ---------------------------------------------------------------


def _open_asf(file: File) -> File:
    """Return the ASF of an AMC; which one it is becomes a finding."""
    if file.options.skeleton is not None:
        path = Path(file.options.skeleton)
        if not path.is_file():
            raise file.error(None, expected="the ASF file skeleton=", found=str(path))
    else:
        path = _find_asf(file)
        file.note(
            "skeleton-found",
            f"the skeleton is that of {path.name}",
            severity="info",
            subject=path.name,
        )
    return File(path, file.format, file.options, file.findings)


def _find_asf(file: File) -> Path:
    folder = file.path.parent
    found = {
        path.stem: path
        for path in sorted(folder.iterdir())
        if path.suffix.lower() == ".asf" and path.is_file()
    }
    stem = file.path.stem
    parts = stem.split("_")
    for count in range(len(parts), 0, -1):
        name = "_".join(parts[:count])
        if name in found:
            return found[name]
    if len(found) == 1:
        return next(iter(found.values()))
    raise file.error(
        None,
        expected="its ASF in the same folder, or skeleton= naming one",
        found=f"{len(found)} ASF files there: {', '.join(found)}" if found else "none",
    )


# --- poses ---------------------------------------------------------------------------


def _poses(
    asf: AsfFile, asf_skeleton: AsfSkeleton, values: np.ndarray, up: str
) -> tuple[Float[np.ndarray, "frame joint 4"], Float[np.ndarray, "frame 3"]]:
    """Return all joint rotations, and the root's position in the file's unit."""
    from marey.io.text.channel_kernel import (
        compose_rotations,  # numba is slow to import
    )

    channels = AmcChannels.of(asf)
    owners = [ROOT, *(bone.name if bone else "" for bone in asf_skeleton.bones[1:])]
    rotations = [channels.rotations(name) if name else [] for name in owners]
    flat = np.array(
        [pair for pairs in rotations for pair in pairs], dtype=np.int64
    ).reshape(-1, 2)
    first = np.cumsum([0, *(len(pairs) for pairs in rotations)])
    wxyz = np.empty((len(values), len(owners), 4))
    columns, axes = flat[:, 0].copy(), flat[:, 1].copy()
    compose_rotations(values, first, columns, axes, asf_skeleton.R_world_bone, wxyz)
    R = rotation_to_z_up(up)
    if not np.array_equal(asf.R_world_root, np.eye(3)):
        preset = geometry.quat_from_matrix(R @ asf.R_world_root @ R.T)
        wxyz[:, 0] = geometry.quat_multiply(wxyz[:, 0], preset)
    position = asf.root_position + _translations(channels, ROOT, values)
    return wxyz, position @ R.T


def _translations(
    channels: AmcChannels, name: str, values: np.ndarray
) -> Float[np.ndarray, "frame 3"]:
    """Return the translations of a bone along its own axes; zero where it has none."""
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


FORMAT = Format(
    name="amc",
    title="AMC (Acclaim motion; Vicon, CMU)",
    suffixes=(".amc",),
    sniff=sniff,
    read_motion=read_motion,
    write_motion=write_motion,
    loses=("gaps", "start", "markers on bones", "uncertainty", "contacts"),
    precision=1e-6,
)
