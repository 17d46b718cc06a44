"""HTR, the skeleton file of Motion Analysis: segments, a base pose, and their motion.

Every segment has a base translation and rotation in its parent and, frame by frame, a
translation that is added to the base and a rotation that follows it:
T_parent_segment = [R_base R_frame, t_base + t_frame]. Rotations Rx, Ry, Rz are
multiplied in the EulerRotationOrder. Version 2 (HTR2) holds the same numbers frame
by frame rather than segment by segment.

As a take, the segments are sensors with exactly these poses. As a motion, the bones
keep their length: a translation that changes within the body is replaced by its median,
and what that misses is a finding.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from marey.io.contract import File, Format, normalize_text
from marey.io.formats.htr.rows import (
    BASE,
    COMMENT,
    HEADER,
    HIERARCHY,
    HtrRows,
    next_section,
    parse_header,
    parse_parents,
    split_sections,
)
from marey.io.segment_tree import (
    SegmentTree,
    build_segment_tree,
    compose_world_poses,
    frame_blocks,
    joint_rotations,
    note_bone_misfit,
)
from marey.io.text.numbers import MAX_NUMBER, note_missing_line_end, parse_number
from marey.io.text.timing import decide_rate, note_frame_count
from marey.io.units_axes import parse_unit, poses_from_file
from marey.motion import Motion
from marey.numerics import geometry
from marey.skeleton import Skeleton
from marey.take import Fact, Take

ROOT_PARENT = "GLOBAL"
"""Name of the parent of a root."""


@dataclass(frozen=True, slots=True, eq=False)
class _HtrFile:
    """The content of an HTR file; joints are in the order of the tree."""

    header: Mapping[str, str]
    """Keywords, in small letters, and their values."""

    facts: Mapping[str, Fact]
    """The file's unit, up and rate."""

    order: str
    tree: SegmentTree
    base: Float[np.ndarray, "joint 6"]
    """Base translation in the file's unit, and angles x, y, z in radians."""

    frames: Float[np.ndarray, "frame joint 6"]
    """The same of every frame; NaN where the file has none."""

    def to_marey_world(
        self, T: Float[np.ndarray, "*batch 4 4"]
    ) -> Float[np.ndarray, "*batch 4 4"]:
        """Return poses of the file's world in marey's."""
        return poses_from_file(T, self.facts["unit"].value, self.facts["up"].value)


def sniff(head: bytes) -> bool:
    """Whether a file begins like an HTR."""
    text = COMMENT.sub(b"", normalize_text(head)).lstrip()
    return text[:8].lower() == b"[header]" and b"filetype" in text[:4096].lower()


def read_take(file: File) -> Take:
    """Return the segments of an HTR file as sensors, exactly as recorded."""
    htr = _load(file)
    in_file = htr.tree.segment >= 0
    T = _world_poses(htr, htr.base[:, :3] + htr.frames[..., :3])
    return Take(
        rate=float(htr.facts["rate"].value),
        T_world_sensor=T if in_file.all() else T[:, in_file],
        sensor_names=tuple(
            n for n, k in zip(htr.tree.names, in_file, strict=True) if k
        ),
        source=file.source(**htr.facts, parameters=htr.header),
    )


def read_motion(file: File) -> Motion:
    """Return the motion of an HTR file, bones at constant length."""
    htr = _load(file)
    parent = htr.tree.parent
    position = htr.base[:, :3] + htr.frames[..., :3]
    bone = np.median(np.where(np.isnan(position), htr.base[:, :3], position), axis=0)
    bone[0] = htr.base[0, :3]
    T, T_rest = _world_poses(htr, position), _rest_poses(htr, bone)
    offset = T_rest[:, :3, 3] - T_rest[parent, :3, 3]
    offset[0] = T_rest[0, :3, 3]
    skeleton = Skeleton(names=htr.tree.names, parent=parent, offset=offset)
    wxyz = joint_rotations(parent, T[..., :3, :3], T_rest[:, :3, :3])
    T_world_root = geometry.transform(
        geometry.matrix_from_quat(wxyz[:, 0]), T[:, 0, :3, 3]
    )
    note_bone_misfit(file, T[..., :3, 3], skeleton, T_world_root, wxyz)
    return Motion(
        skeleton=skeleton,
        T_world_root=T_world_root,
        wxyz=wxyz,
        rate=float(htr.facts["rate"].value),
        source=file.source(**htr.facts, parameters=htr.header),
    )


def _world_poses(
    htr: _HtrFile, position: Float[np.ndarray, "frame joint 3"]
) -> Float[np.ndarray, "frame joint 4 4"]:
    """Return T_world_segment of every frame; in blocks, to spare memory."""
    T = np.empty((*position.shape[:2], 4, 4))
    R_base = _rotation_matrices(htr.base[:, 3:], htr.order)
    for block in frame_blocks(*position.shape[:2]):
        R = R_base @ _rotation_matrices(htr.frames[block, :, 3:], htr.order)
        T_local = geometry.transform(R, position[block])
        T[block] = htr.to_marey_world(compose_world_poses(htr.tree.parent, T_local))
    return T


def _rest_poses(
    htr: _HtrFile, bone: Float[np.ndarray, "joint 3"]
) -> Float[np.ndarray, "joint 4 4"]:
    """Return T_world_segment of the base pose."""
    T = geometry.transform(_rotation_matrices(htr.base[:, 3:], htr.order), bone)
    return htr.to_marey_world(compose_world_poses(htr.tree.parent, T[None])[0])


def _rotation_matrices(
    angles: Float[np.ndarray, "*batch 3"], order: str
) -> Float[np.ndarray, "*batch 3 3"]:
    columns = ["XYZ".index(axis) for axis in order]
    return geometry.matrix_from_euler(angles[..., columns], order)


# --- the file ------------------------------------------------------------------------


def _load(file: File) -> _HtrFile:
    data = COMMENT.sub(b"", file.text())
    parts = split_sections(data)
    header = parse_header(next_section(file, parts, HEADER))
    parents = parse_parents(file, next_section(file, parts, HIERARCHY))
    _check_count(file, header, len(parents))
    tree = build_segment_tree(file, parents, ROOT_PARENT)
    rows = HtrRows(file, {name: number for number, name in enumerate(parents)})
    rows.read(next_section(file, parts, BASE), parts)
    note_missing_line_end(file, data)
    frames = rows.frames(len(data))
    present = int(np.isfinite(frames).all(axis=(1, 2)).sum())
    note_frame_count(file, header.get("numframes", ""), present)
    facts = _facts(file, header)
    factors = np.repeat(
        [_length_factor(file, header), _radians_per_unit(file, header)], 3
    )
    frames *= factors
    base, frames = _order_by_tree(tree, rows.base * factors, frames)
    return _HtrFile(header, facts, _rotation_order(file, header), tree, base, frames)


def _check_count(file: File, header: Mapping[str, str], present: int) -> None:
    declared = parse_number(header.get("numsegments", ""))
    if declared is not None and declared != present:
        file.note(
            "segments-mismatch",
            f"segments declared {declared:.15g}, present {present}",
            value=present - declared,
        )


def _order_by_tree(
    tree: SegmentTree, base: np.ndarray, frames: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return base and frames in the order of the tree, an added root included."""
    base, frames = base[tree.segment], frames[:, tree.segment]
    if tree.segment[0] < 0:
        # The added root has the translation of the first root, and not its rotation.
        first = np.concatenate([base[1, :3], np.zeros(3)])
        first_moved = np.concatenate(
            [frames[:, 1, :3], np.zeros_like(frames[:, 1, 3:])], axis=-1
        )
        roots = tree.parent == 0
        base[roots] -= first
        frames[:, roots] -= first_moved[:, None]
        base[0], frames[:, 0] = first, first_moved
    return base, frames


# --- facts ---------------------------------------------------------------------------


def _facts(file: File, header: Mapping[str, str]) -> dict[str, Fact]:
    unit = parse_unit(header.get("calibrationunits", ""))
    up = header.get("globalaxisofgravity", "").lower().removeprefix("+")
    return {
        "unit": file.decide_fact(
            "unit", stated=unit, assumed="mm", note="CalibrationUnits"
        ),
        "up": file.decide_fact(
            "up", stated=up or None, assumed="y", note="GlobalAxisofGravity"
        ),
        "rate": decide_rate(
            file,
            header.get("dataframerate", ""),
            np.zeros(0),
            note="DataFrameRate",
        ),
    }


def _rotation_order(file: File, header: Mapping[str, str]) -> str:
    order = header.get("eulerrotationorder", "").upper()
    if sorted(order) != ["X", "Y", "Z"]:
        raise file.error(
            None, expected="EulerRotationOrder of X, Y and Z", found=repr(order)
        )
    return order


def _radians_per_unit(file: File, header: Mapping[str, str]) -> float:
    """Return radians per unit of angle."""
    word = header.get("rotationunits", "").lower()
    if not word.startswith(("deg", "rad")):
        file.note(
            "angles-assumed",
            f"the file says {word!r} for its RotationUnits: took degrees",
            subject="angles",
        )
    return 1.0 if word.startswith("rad") else float(np.radians(1.0))


def _length_factor(file: File, header: Mapping[str, str]) -> float:
    """Return the factor of all lengths."""
    word = header.get("scalefactor", "1")
    scale = parse_number(word)
    if scale is None or not 0.0 < scale < MAX_NUMBER:
        raise file.error(None, expected="a ScaleFactor above 0", found=repr(word))
    if scale != 1.0:
        file.note(
            "lengths-scaled",
            f"all lengths were multiplied by the ScaleFactor {scale:g}",
            severity="info",
            value=scale,
        )
    return scale


FORMAT = Format(
    name="htr",
    title="HTR (Motion Analysis)",
    suffixes=(".htr", ".htr2"),
    sniff=sniff,
    read_take=read_take,
    read_motion=read_motion,
)
