"""Writing ASF and AMC, so that every joint, kind, limit and order comes back.

A bone starts where its parent ends; a joint of a skeleton need not. A bone without
degrees of freedom, "<joint>_link", bridges the gap. A comment in the ASF states that
there are links, the name of the root and its rest position; a comment in the AMC states
the frame count and rate. Other software ignores comments and reads the same motion.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from marey.io import units_axes
from marey.io.contract import Output
from marey.io.formats.asf.read import LINK_SUFFIX, ROOT
from marey.io.options import WriteOptions
from marey.io.text import rotations
from marey.io.text.names import make_unique, note_changed_names, printable_name
from marey.io.text.numbers import format_lines, round_values
from marey.io.text.rotations import MAX_ANGLE_ERROR_RAD
from marey.io.text.timing import check_even_rate
from marey.motion import Motion
from marey.numerics import Float, empty_array, geometry
from marey.skeleton import Kind, Skeleton
from marey.tree import list_children

INCH = units_axes.METRES_PER_UNIT["in"]
CMU_LENGTH_FACTOR = 0.45
"""The length factor of Vicon's files; most software expects numbers of this size."""

DECIMALS = 8
AXIS_DECIMALS = 9


@dataclass(slots=True)
class _WrittenBone:
    """One bone of the written file, in its unit and axes."""

    name: str
    parent: str
    vector: np.ndarray
    joint: int = -1
    """The joint at its start; -1 for a link."""

    dof: tuple[str, ...] = ()
    C: np.ndarray = field(default_factory=lambda: np.eye(3))
    """R_world_bone in the file's axes."""

    limits: np.ndarray = empty_array(0, 2)


def write_skeleton(skeleton: Skeleton, options: WriteOptions) -> Output:
    """Return the ASF of a skeleton."""
    bones = _bones(skeleton, skeleton.kind, options)
    return {"": [_asf(skeleton, bones, options)]}


def write_motion(motion: Motion, options: WriteOptions) -> Output:
    """Return the ASF and the AMC of a motion.

    Numbers are in units of 1/0.45 inch, as in the CMU database, unless a unit is asked
    for. A joint whose rotations leave its kind is written as a ball joint. Gaps hold
    the last known pose.

    Raises:
        DataError: If the frames are not evenly spaced.
    """
    rate = check_even_rate(motion)
    skeleton = motion.skeleton
    position, wxyz = rotations.hold_last_pose(motion)
    wxyz = rotations.change_axes(wxyz, _R_marey_file(options).T)
    kind = list(skeleton.kind)
    for bone in _bones(skeleton, kind, options):
        if _angles(bone, wxyz) is None:
            kind[bone.joint] = "ball"
    bones = _bones(skeleton, kind, options)
    angles = [_angles(bone, wxyz) for bone in bones]
    values = [_fixed_xyz(wxyz[:, 0]), *(part for part in angles if part is not None)]
    degrees = np.rad2deg(np.concatenate(values, axis=1))
    degrees = round_values(degrees, rotations.ANGLE_DECIMALS)
    number = np.arange(motion.n_frames) + 1.0
    rows = np.column_stack([number, _points(position, options), degrees])
    comments = [
        f"# marey frames {motion.n_frames} rate {rate!r}",
        *_provenance(options),
    ]
    head = "\n".join([*comments, ":FULLY-SPECIFIED", ":DEGREES"]) + "\n"
    return {
        ".asf": [_asf(skeleton, bones, options)],
        "": format_lines(head, _frame_format(bones), rows),
    }


def _per_metre(options: WriteOptions) -> float:
    """Return numbers of the file per metre."""
    if options.unit is None:
        return CMU_LENGTH_FACTOR / INCH
    return 1.0 / units_axes.metres_per_unit(options.unit)


def _R_marey_file(options: WriteOptions) -> Float[np.ndarray, "3 3"]:
    """Return the rotation from the axes of the file to those of marey."""
    return units_axes.rotation_to_z_up(options.up or "y")


def _points(
    points: Float[np.ndarray, "*batch 3"], options: WriteOptions
) -> Float[np.ndarray, "*batch 3"]:
    """Return points as they are written, in the unit and axes of the file."""
    turned = units_axes.points_to_file(points, "m", options.up or "y")
    return round_values(turned * _per_metre(options), DECIMALS)


# --- bones ---------------------------------------------------------------------------


def _bones(
    skeleton: Skeleton, kind: Sequence[Kind], options: WriteOptions
) -> list[_WrittenBone]:
    """Return the bones, links among them, every parent before its children."""
    names = _valid_names(skeleton)
    offset = _points(skeleton.offset, options)
    children = list_children(skeleton.parent)
    ends = _implied_ends(skeleton, names, children, offset)
    vector = [offset[joints[0]] if joints else np.zeros(3) for joints in children]
    vector[0] = np.zeros(3)
    bones = []
    for joint, parent in enumerate(skeleton.parent[1:].tolist(), start=1):
        if joint in ends:
            continue
        carrier = names[parent] if parent else ROOT
        gap = round_values(offset[joint] - vector[parent], DECIMALS)
        if gap.any():
            bones.append(_WrittenBone(f"{names[joint]}{LINK_SUFFIX}", carrier, gap))
            carrier = bones[-1].name
        bone = _WrittenBone(names[joint], carrier, vector[joint], joint)
        bones.append(_with_dof(bone, skeleton, kind[joint], options))
    return bones


def _valid_names(skeleton: Skeleton) -> tuple[str, ...]:
    """Return names without blanks that no reader takes for something else."""
    names = [printable_name(name, " #(),") for name in skeleton.names]
    known = set(names)
    return make_unique(
        [
            f"_{name}" if joint and _is_reserved(name, known) else name
            for joint, name in enumerate(names)
        ]
    )


def _is_reserved(name: str, known: set[str]) -> bool:
    if name.lower() in (ROOT, "begin", "end") or name[0] in ":+-.0123456789":
        return True
    return name.endswith(LINK_SUFFIX) and name.removesuffix(LINK_SUFFIX) in known


def _implied_ends(
    skeleton: Skeleton,
    names: Sequence[str],
    children: Sequence[Sequence[int]],
    offset: np.ndarray,
) -> set[int]:
    """Return the bone ends that the reader puts back by itself, in the same order."""
    is_end = skeleton.is_end
    return {
        joints[0]
        for joint, joints in enumerate(children)
        if joint > 0
        and joints == [joint + 1]
        and is_end[joints[0]]
        and names[joints[0]] == f"{names[joint]}_end"
        and offset[joints[0]].any()
    }


def _with_dof(
    bone: _WrittenBone, skeleton: Skeleton, kind: Kind, options: WriteOptions
) -> _WrittenBone:
    """Return the bone with the axes, degrees of freedom and limits of its joint's kind.

    A hinge rotates about x; a universal joint about z, then about the moved x; a ball
    joint swings about x and y and twists about z.
    """
    axes = skeleton.axes[bone.joint] @ _R_marey_file(options)
    limits = skeleton.limits[bone.joint]
    if kind == "fixed":
        return bone
    if kind == "hinge" and np.isfinite(axes[0]).all():
        C = _frame_along(axes[0])
        return replace(bone, dof=("rx",), C=C, limits=limits[:1])
    square = bool(abs(axes[0] @ axes[1]) < MAX_ANGLE_ERROR_RAD)
    if kind == "universal" and square:
        C = np.stack([axes[1], np.cross(axes[0], axes[1]), axes[0]], axis=1)
        return replace(bone, dof=("rx", "rz"), C=C, limits=limits[1::-1])
    if kind == "ball" and square:
        C = np.stack([*axes, np.cross(*axes)], axis=1)
        return replace(bone, dof=("rx", "ry", "rz"), C=C, limits=limits)
    return replace(bone, dof=("rx", "ry", "rz"))


def _frame_along(axis: Float[np.ndarray, " 3"]) -> Float[np.ndarray, "3 3"]:
    """Return a frame whose x is the axis, rotated from the world about y, then z.

    An axis has two degrees of freedom: two rounded angles give an axis that gives the
    same angles again.
    """
    x, y, z = axis
    level = float(np.hypot(x, y))
    heading = float(np.arctan2(y, x)) if level > MAX_ANGLE_ERROR_RAD else 0.0
    return geometry.matrix_from_euler(
        np.array([heading, np.arctan2(-z, level), 0.0]), "ZYX"
    )


# --- angles --------------------------------------------------------------------------


def _fixed_xyz(wxyz: Float[np.ndarray, "frame 4"]) -> Float[np.ndarray, "frame 3"]:
    """Return rotations about fixed x, y and z, without jumps."""
    return geometry.euler_continuous(wxyz, "ZYX")[:, ::-1]


def _angles(
    bone: _WrittenBone, wxyz: Float[np.ndarray, "frame joint 4"]
) -> Float[np.ndarray, "frame dof"] | None:
    """Return a bone's angles; None when its degrees of freedom cannot hold them."""
    angles = np.zeros((len(wxyz), 0))
    if bone.joint < 0:
        return angles
    q = rotations.change_axes(wxyz[:, bone.joint, None], bone.C.T)[:, 0]
    error = 2.0 * np.abs(q[:, 1:])
    if bone.dof == ("rx",):
        angles = np.unwrap(2.0 * np.arctan2(q[:, 1:2], q[:, :1]), axis=0)
        error = error[:, 1:]
    elif bone.dof == ("rx", "rz"):
        z, x, y = _nearest_branch(geometry.euler_from_quat(q, "ZXY")).T
        angles = np.unwrap(np.stack([x, z], axis=1), axis=0)
        error = np.abs(y)[:, None]
    elif bone.dof:
        return _fixed_xyz(q)
    return angles if np.max(error, initial=0.0) < MAX_ANGLE_ERROR_RAD else None


def _nearest_branch(
    angles: Float[np.ndarray, "frame 3"],
) -> Float[np.ndarray, "frame 3"]:
    """Return the one of two equal sets of angles (rad) whose last is nearer to 0."""
    first, middle, last = angles.T
    half_turn = np.where(np.abs(last) > np.pi / 2.0, np.pi, 0.0)
    middle = np.where(half_turn > 0.0, np.pi - middle, middle)
    angles = np.stack([first + half_turn, middle, last + half_turn], axis=1)
    return (angles + np.pi) % (2.0 * np.pi) - np.pi


# --- text ----------------------------------------------------------------------------


def _asf(
    skeleton: Skeleton, bones: Sequence[_WrittenBone], options: WriteOptions
) -> bytes:
    rest = _row(_points(skeleton.offset[0], options), DECIMALS)
    names = _valid_names(skeleton)
    note_changed_names(skeleton.names, names, options)
    head = [
        f"# marey root {names[0]} rest {rest}",
        *_provenance(options),
        *(":version 1.10", ":name marey", ":units", "  mass 1.0"),
        f"  length {INCH * _per_metre(options):.12g}",
        *("  angle deg", ":root", "  order TX TY TZ RX RY RZ", "  axis XYZ"),
        *("  position 0 0 0", "  orientation 0 0 0", ":bonedata"),
    ]
    body = [line for i, bone in enumerate(bones) for line in _bone_lines(i, bone)]
    tail = [":hierarchy", "  begin", *_hierarchy(bones), "  end"]
    return ("\n".join([*head, *body, *tail]) + "\n").encode()


def _provenance(options: WriteOptions) -> list[str]:
    """Return from what the files were made, as lines of comments."""
    return [f"# provenance {line}" for line in options.provenance_lines()]


def _row(values: np.ndarray, decimals: int) -> str:
    return " ".join(f"{value:.{decimals}f}" for value in values)


def _bone_lines(number: int, bone: _WrittenBone) -> Iterator[str]:
    size = float(np.linalg.norm(bone.vector))
    direction = bone.vector / size if size > 0.0 else np.array([0.0, 0.0, 1.0])
    angles = geometry.euler_from_quat(geometry.quat_from_matrix(bone.C), "ZYX")
    degrees = round_values(np.rad2deg(angles[::-1]), AXIS_DECIMALS)
    degrees = np.where(degrees == -180.0, 180.0, degrees)
    yield "  begin"
    yield f"    id {number + 1}"
    yield f"    name {bone.name}"
    # All digits, so that the product is the rounded vector again.
    yield "    direction " + " ".join(f"{value + 0.0:.16g}" for value in direction)
    yield f"    length {size:.16g}"
    yield f"    axis {_row(degrees, AXIS_DECIMALS)} XYZ"
    if bone.dof:
        yield f"    dof {' '.join(bone.dof)}"
    if len(bone.limits):
        pairs = round_values(np.rad2deg(bone.limits), AXIS_DECIMALS)
        for i, (low, high) in enumerate(pairs):
            least = "-inf" if np.isnan(low) else f"{low:.{AXIS_DECIMALS}f}"
            most = "inf" if np.isnan(high) else f"{high:.{AXIS_DECIMALS}f}"
            yield f"    {'      ' if i else 'limits'} ({least} {most})"
    yield "  end"


def _hierarchy(bones: Sequence[_WrittenBone]) -> Iterator[str]:
    children: dict[str, list[str]] = {}
    for bone in bones:
        children.setdefault(bone.parent, []).append(bone.name)
    for parent, names in children.items():
        yield f"    {parent} {' '.join(names)}"


def _frame_format(bones: Sequence[_WrittenBone]) -> str:
    """Return the %-format of a frame: its number, then a line for each bone."""
    angle = f" {rotations.ANGLE_FORMAT}"
    lines = [f"%d\n{ROOT}" + f" %.{DECIMALS}f" * 3 + 3 * angle]
    lines += [b.name.replace("%", "%%") + angle * len(b.dof) for b in bones if b.dof]
    return "\n".join(lines) + "\n"
