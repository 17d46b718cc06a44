"""AMC, the motion of the Acclaim format of Vicon and the CMU database.

An AMC needs its ASF, which is looked for beside it and which says the unit. The up axis
and the frame rate are not stated; Y and 120 Hz are the habit of the CMU database.
"""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
from jaxtyping import Float

from marey.io.contract import File, Format, decoded, file_hash, plain_text
from marey.io.formats.amc.frames import Channels, read_frames
from marey.io.formats.asf.read import ROOT, Asf, read_asf
from marey.io.formats.asf.skeleton import Figure, build_figure, settle_unit
from marey.io.formats.asf.write import write_motion
from marey.io.text.lines import FASTEST
from marey.io.text.numbers import note_unended, parse_number
from marey.io.units_axes import turn_upright
from marey.motion import Motion
from marey.numerics import geometry
from marey.skeleton import Skeleton

AMC = re.compile(
    rb"^[ \t]*:(fully-specified|degrees|radians)\b|^#!OML:ASF|^# marey frames "
    rb"|^[ \t]*\d+[ \t]*\n\s*root\s",
    re.I | re.M,
)
MARK = re.compile(rb"^# marey frames (\d+) rate (\S+)$", re.MULTILINE)
HEAD = 2**16
STILL = 1e-6
"""Metres a bone may slide before it is a finding."""


def sniff(head: bytes) -> bool:
    """Whether a file begins like an AMC."""
    return bool(AMC.search(plain_text(head)))


def read_motion(file: File) -> Motion:
    """Return the motion of an AMC on the skeleton of its ASF.

    A bone that a frame leaves out is unknown there; one that every frame leaves out
    rests. The ASF is the one given as `skeleton`, else the one of the same name, else
    of the longest name that ends before an underscore, else the only one.
    """
    data = file.text()
    skeleton_file = _skeleton_file(file)
    asf = read_asf(skeleton_file)
    unit, scale = settle_unit(file, asf)
    up = file.settle("up", assumed="y", note="ASF does not state it")
    figure = build_figure(asf, scale, up.value)
    mark = MARK.search(data, 0, HEAD)
    rate = _stated_rate(decoded(mark[2]) if mark else "")
    rate_fact = file.settle(
        "rate", stated=rate, assumed="120", note="AMC does not state it"
    )
    values = read_frames(
        file,
        data,
        asf,
        n_joints=figure.skeleton.n_joints,
        declared=int(mark[1]) if mark else None,
    )
    note_unended(file, data)
    skeleton = _settled(file, asf, figure, values, scale)
    wxyz, place = _poses(asf, figure, values, up.value)
    return Motion(
        skeleton=skeleton,
        T_world_root=geometry.transform(
            geometry.matrix_from_quat(wxyz[:, 0]), scale * place
        ),
        wxyz=wxyz,
        rate=float(rate_fact.value),
        source=file.source(
            unit=unit,
            up=up,
            rate=rate_fact,
            parameters={
                "skeleton": str(skeleton_file.path),
                "skeleton_sha256": file_hash(skeleton_file.path),
            },
        ),
    )


def _stated_rate(text: str) -> str | None:
    rate = parse_number(text)
    return repr(rate) if rate is not None and 0.0 < rate < FASTEST else None


# --- the ASF of an AMC ---------------------------------------------------------------


def _skeleton_file(file: File) -> File:
    """Return the ASF of an AMC; which one it is becomes a finding."""
    if file.options.skeleton is not None:
        path = Path(file.options.skeleton)
        if not path.is_file():
            raise file.error(None, expected="the ASF file skeleton=", found=str(path))
    else:
        path = _beside(file)
        file.note(
            "skeleton-found",
            f"the skeleton is that of {path.name}",
            severity="info",
            subject=path.name,
        )
    return File(path, file.format, file.options, file.findings)


def _beside(file: File) -> Path:
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
        expected="its ASF beside it, or skeleton= naming one",
        found=f"{len(found)} ASF files there: {', '.join(found)}" if found else "none",
    )


# --- poses ---------------------------------------------------------------------------


def _poses(
    asf: Asf, figure: Figure, values: np.ndarray, up: str
) -> tuple[Float[np.ndarray, "frame joint 4"], Float[np.ndarray, "frame 3"]]:
    """Return the rotations of all joints, and the root's place in the file's unit."""
    from marey.io.text.channel_kernel import compose  # numba is slow to import

    channels = Channels.of(asf)
    owners = [ROOT, *(bone.name if bone else "" for bone in figure.bones[1:])]
    turns = [channels.turns(name) if name else [] for name in owners]
    flat = np.array([t for own in turns for t in own], dtype=np.int64).reshape(-1, 2)
    first = np.cumsum([0, *(len(own) for own in turns)])
    wxyz = np.empty((len(values), len(owners), 4))
    columns, axes = flat[:, 0].copy(), flat[:, 1].copy()
    compose(values, first, columns, axes, figure.turn, wxyz)
    R = turn_upright(up)
    if not np.array_equal(asf.R_world_root, np.eye(3)):
        preset = geometry.quat_from_matrix(R @ asf.R_world_root @ R.T)
        wxyz[:, 0] = geometry.quat_multiply(wxyz[:, 0], preset)
    place = asf.root_place + _slides(channels, ROOT, values)
    return wxyz, place @ R.T


def _slides(
    channels: Channels, name: str, values: np.ndarray
) -> Float[np.ndarray, "frame 3"]:
    """Return the translations of a bone along its own axes; zero where it has none."""
    slides = np.zeros((len(values), 3))
    for i, dof in enumerate(channels.dof[name]):
        if dof[0] == "t":
            slides[:, "xyz".index(dof[1])] = values[:, channels.first[name] + i]
    return slides


def _settled(
    file: File, asf: Asf, figure: Figure, values: np.ndarray, scale: float
) -> Skeleton:
    """Return the skeleton with bones that slide or stretch at their mean place."""
    channels = Channels.of(asf)
    offset = figure.skeleton.offset.copy()
    for joint, bone in enumerate(figure.bones):
        if bone is None or all(dof[0] == "r" for dof in bone.dof) or not len(values):
            continue
        slides = scale * _slides(channels, bone.name, values) @ figure.turn[joint].T
        offset[joint] += np.nan_to_num(np.nanmean(slides, axis=0))
        reach = float(np.nan_to_num(np.ptp(slides, axis=0)).max())
        if reach > STILL or "l" in bone.dof:
            file.note(
                "joint-translates",
                f"slides {reach:.4g} m: stands at its mean place"
                + (", and its change of length is not kept" * ("l" in bone.dof)),
                subject=bone.name,
                value=reach,
            )
    return replace(figure.skeleton, offset=offset)


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
