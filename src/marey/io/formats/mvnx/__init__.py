"""MVNX, the XML export of Xsens MVN: a body of segments tracked by inertial sensors.

Every frame holds position and orientation (wxyz) of each segment in metres and a world
with Z up. The header defines points on the segments and names the two that meet in each
joint, so the bones have constant length. In the identity pose all segments are aligned
with the world. Calibration poses are among the frames and are left out.

As a take, the segments are sensors exactly as recorded. As a motion, the bones of the
header carry the recorded orientations; what that misses is a finding.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from marey.io.contract import File, Format
from marey.io.formats.mvnx.bones import MvnxBones, build_bones, list_segments
from marey.io.segment_tree import joint_rotations, note_bone_misfit
from marey.io.text.names import make_unique
from marey.io.text.numbers import MAX_NUMBER, NUMBER, parse_number, parse_table
from marey.io.text.rotations import rotations_from_quaternions
from marey.io.text.timing import decide_rate
from marey.io.units_axes import (
    metres_per_unit,
    points_from_file,
    poses_from_file,
    rotation_to_z_up,
)
from marey.io.xml import XmlElement, parse_xml
from marey.motion import Motion
from marey.numerics import geometry
from marey.skeleton import Kind, Skeleton
from marey.take import Fact, Take

NUMBERS_PER_SEGMENT = {"orientation": 4, "position": 3}
"""Numbers per segment in the parts of a frame that are read."""

SKIPPED_ELEMENTS = (
    "velocity",
    "acceleration",
    "angularVelocity",
    "angularAcceleration",
    "footContacts",
    "sensorAcceleration",
    "sensorAngularVelocity",
    "sensorFreeAcceleration",
    "sensorMagneticField",
    "sensorOrientation",
    "jointAngle",
    "jointAngleXZY",
    "jointAngleErgo",
    "jointAngleErgoXZY",
    "centerOfMass",
    "marker",
)
MAX_SEGMENTS = 1000


@dataclass(slots=True)
class _MvnxSubject:
    """One subject of a file: its header and the text of its normal frames."""

    header: XmlElement
    kinds: list[str] = field(default_factory=list)
    """What each frame is: "normal", "tpose", ..."""

    lines: list[int] = field(default_factory=list)
    """Where each normal frame begins."""

    index: list[float] = field(default_factory=list)
    """Number and milliseconds of each normal frame, NaN where not given."""

    time: list[float] = field(default_factory=list)
    texts: dict[str, list[str]] = field(
        default_factory=lambda: {name: [] for name in NUMBERS_PER_SEGMENT}
    )
    """The numbers of each normal frame as text, one line each."""


@dataclass(frozen=True, slots=True, eq=False)
class _MvnxFile:
    """The first subject of an MVNX file with the poses of its segments."""

    subject: _MvnxSubject
    segments: tuple[str, ...]
    facts: Mapping[str, Fact]
    T_world_segment: Float[np.ndarray, "frame segment 4 4"]
    """In marey's world."""

    start: float


def sniff(head: bytes) -> bool:
    """Whether a file begins like an MVNX."""
    return b"<mvnx" in head and head.lstrip().startswith(b"<")


def read_take(file: File) -> Take:
    """Return the segments of an MVNX file as sensors, exactly as recorded."""
    mvnx = _load(file)
    return Take(
        rate=float(mvnx.facts["rate"].value),
        T_world_sensor=mvnx.T_world_segment,
        sensor_names=mvnx.segments,
        start=mvnx.start,
        source=file.source(
            **mvnx.facts, parameters=dict(mvnx.subject.header.attributes)
        ),
    )


def read_motion(file: File) -> Motion:
    """Return the motion of an MVNX file, joints named by the segments they carry."""
    mvnx = _load(file)
    bones = build_bones(file, mvnx.subject.header)
    parent = bones.tree.parent
    T = _joint_poses(mvnx, bones)
    skeleton = _skeleton(mvnx, bones, T)
    R_rest = rotation_to_z_up(mvnx.facts["up"].value)[None]
    wxyz = np.zeros((len(T), skeleton.n_joints, 4))
    wxyz[..., 0] = 1.0
    wxyz[:, : len(parent)] = joint_rotations(parent, T[..., :3, :3], R_rest)
    T_world_root = geometry.transform(
        geometry.matrix_from_quat(wxyz[:, 0]), T[:, 0, :3, 3]
    )
    note_bone_misfit(file, T[..., :3, 3], skeleton, T_world_root, wxyz)
    return Motion(
        skeleton=skeleton,
        T_world_root=T_world_root,
        wxyz=wxyz,
        rate=float(mvnx.facts["rate"].value),
        start=mvnx.start,
        source=file.source(
            **mvnx.facts, parameters=dict(mvnx.subject.header.attributes)
        ),
    )


# --- frames --------------------------------------------------------------------------


def _load(file: File) -> _MvnxFile:
    subject = _read_subject(file)
    segments = _labels(file, subject.header)
    _check_frames(file, subject)
    q, position = (
        _parse_part(file, subject, name, len(segments)) for name in NUMBERS_PER_SEGMENT
    )
    rate = subject.header.attributes.get("frameRate", "")
    facts = {
        "unit": file.decide_fact("unit", stated="m", assumed="m", note="MVN's own"),
        "up": file.decide_fact("up", stated="z", assumed="z", note="MVN's own"),
        "rate": decide_rate(file, rate, np.zeros(0), note="frameRate"),
    }
    T = geometry.transform(rotations_from_quaternions(file, q), position)
    start = subject.time[0] / 1e3
    return _MvnxFile(
        subject=subject,
        segments=segments,
        facts=facts,
        T_world_segment=poses_from_file(T, facts["unit"].value, facts["up"].value),
        start=start if np.isfinite(start) else 0.0,
    )


def _parse_part(
    file: File, subject: _MvnxSubject, name: str, segments: int
) -> Float[np.ndarray, "frame segment number"]:
    """Return the orientations or positions of all segments in all frames."""
    columns = segments * NUMBERS_PER_SEGMENT[name]
    text = "\n".join(subject.texts[name]).encode()
    table = parse_table(file, text, columns=columns, delimiter=" ", first_line=0)
    good = (table.cells == columns) & (table.status == NUMBER).all(axis=1)
    good &= (np.abs(table.values) <= MAX_NUMBER).all(axis=1)
    if not good.all() or len(good) < len(subject.lines):
        wrong = set(range(len(subject.lines))) - set(table.line[good].tolist())
        file.fail_at_line(
            subject.lines[min(wrong)],
            expected=f"a frame with {NUMBERS_PER_SEGMENT[name]} numbers of {name} "
            f"for each of {segments} segments",
            found="others",
        )
    return table.values.reshape(len(good), segments, NUMBERS_PER_SEGMENT[name])


def _read_subject(file: File) -> _MvnxSubject:
    """Return the first subject of a file and its normal frames."""
    subjects = [_MvnxSubject(XmlElement("", {}, 0))]

    def take_frame(element: XmlElement) -> None:
        _add_frame(file, subjects[-1], element)

    def take_subject(element: XmlElement) -> None:
        subjects[-1].header = element
        subjects.append(_MvnxSubject(XmlElement("", {}, 0)))

    root = parse_xml(
        file,
        skip=SKIPPED_ELEMENTS,
        consume={"frame": take_frame, "subject": take_subject},
    )
    if root.name != "mvnx" or len(subjects) == 1:
        file.fail_at_line(
            root.line,
            expected="mvnx with a subject",
            found=root.name,
        )
    if len(subjects) > 2:
        file.note(
            "subjects-several",
            f"the file holds {len(subjects) - 1} subjects: took the first",
            value=float(len(subjects) - 1),
        )
    return subjects[0]


def _add_frame(file: File, subject: _MvnxSubject, element: XmlElement) -> None:
    kind = element.attributes.get("type", "normal")
    subject.kinds.append(kind)
    if kind != "normal":
        return
    subject.lines.append(element.line)
    for name, texts in subject.texts.items():
        part = element.find(name)
        if part is None:
            file.fail_at_line(
                element.line, expected=f"a frame with {name}", found="none"
            )
        texts.append(part.text.replace("\n", " "))
    for name, numbers in (("index", subject.index), ("time", subject.time)):
        value = parse_number(element.attributes.get(name, ""))
        numbers.append(np.nan if value is None or abs(value) > MAX_NUMBER else value)


def _check_frames(file: File, subject: _MvnxSubject) -> None:
    """Note the frames that are left out and those that are missing."""
    present = len(subject.time)
    if present == 0:
        raise file.error(None, expected="a frame of type normal", found="none")
    others = [kind for kind in subject.kinds if kind != "normal"]
    if others:
        file.note(
            "frames-left-out",
            f"{len(others)} calibration poses were left out: {', '.join(others[:6])}",
            severity="info",
            value=float(len(others)),
        )
    steps = np.diff(subject.index)
    if (steps != 1.0).any() and np.isfinite(steps).all():
        file.note(
            "frames-missing",
            f"frames declared {subject.index[-1] - subject.index[0] + 1.0:.15g} by "
            f"their numbers, present {present}",
            value=float((steps != 1.0).sum()),
        )


def _labels(file: File, header: XmlElement) -> tuple[str, ...]:
    """Return the names of the segments."""
    labels = tuple(s.attributes.get("label", "") for s in list_segments(header))
    named = all(labels) and len(set(labels)) == len(labels)
    if not named or not 0 < len(labels) <= MAX_SEGMENTS:
        file.fail_at_line(
            header.line,
            expected=f"1 to {MAX_SEGMENTS} segments, each with a name of its own",
            found=f"{len(labels)}: {', '.join(labels[:8])}",
        )
    return labels


# --- joints --------------------------------------------------------------------------


def _joint_poses(
    mvnx: _MvnxFile, bones: MvnxBones
) -> Float[np.ndarray, "frame joint 4 4"]:
    """Return the recorded segments in the order of the joints, moved to the joints."""
    T = mvnx.T_world_segment[:, bones.tree.segment]
    unit = metres_per_unit(mvnx.facts["unit"].value)
    T[..., :3, 3] = geometry.apply(T, unit * bones.joint_in_segment)
    if bones.tree.segment[0] < 0:
        # An added root goes with the first segment and does not rotate.
        T[:, 0] = geometry.transform(
            rotation_to_z_up(mvnx.facts["up"].value), T[:, 1, :3, 3]
        )
    return T


def _skeleton(mvnx: _MvnxFile, bones: MvnxBones, T: np.ndarray) -> Skeleton:
    """Return the joints and bone ends, the lowest of them on the ground at rest."""
    tree, ends = bones.tree, list(bones.ends)
    offset = np.concatenate([bones.offset, *(bones.ends[j][None] for j in ends)])
    offset = points_from_file(offset, mvnx.facts["unit"].value, mvnx.facts["up"].value)
    if tree.segment[0] < 0:
        roots = np.flatnonzero(tree.parent == 0)
        separation = np.nan_to_num(T[:, roots] - T[:, :1])[..., :3, 3]
        offset[roots] = np.median(separation, axis=0)
    parent = np.concatenate([tree.parent, np.array(ends, dtype=np.int64)])
    height = np.zeros(len(parent))
    for joint in range(1, len(parent)):
        height[joint] = height[parent[joint]] + offset[joint, 2]
    offset[0, 2] = -height.min()
    balls: list[Kind] = ["ball"] * (len(tree.names) - 1)
    fixed: list[Kind] = ["fixed"] * len(ends)
    return Skeleton(
        names=make_unique([*tree.names, *(f"{tree.names[j]}_end" for j in ends)]),
        parent=parent,
        offset=offset,
        kind=("root", *balls, *fixed),
    )


FORMAT = Format(
    name="mvnx",
    title="MVNX (Xsens MVN)",
    suffixes=(".mvnx",),
    sniff=sniff,
    read_take=read_take,
    read_motion=read_motion,
)
