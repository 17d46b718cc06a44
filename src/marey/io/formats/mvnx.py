"""MVNX, the XML export of Xsens MVN: a body of segments tracked by inertial sensors.

Every frame holds position and orientation (wxyz) of each segment in metres and a world
with Z up. The header defines points on the segments and names the two that meet in each
joint, so the bones have constant length. In the identity pose all segments are aligned
with the world. Calibration poses are among the frames and are left out.

As a take, the segments are sensors exactly as recorded. As a motion, the bones of the
header carry the recorded orientations; what that misses is a finding.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from marey.io import segment_tree
from marey.io.contract import Format
from marey.io.file import Facts, File
from marey.io.segment_tree import SegmentTree, build_segment_tree
from marey.io.text import numbers
from marey.io.text.names import make_unique
from marey.io.text.numbers import MAX_NUMBER, parse_stream
from marey.io.text.rotations import rotations_from_quaternions
from marey.io.text.timing import decide_rate
from marey.io.text.xml import XmlElement, parse_xml
from marey.io.units_axes import metres_per_unit, rotation_to_z_up
from marey.motion import Motion
from marey.numerics import Float, geometry
from marey.skeleton import Kind, Skeleton
from marey.take import Take

NUMBERS_PER_SEGMENT = {"orientation": 4, "position": 3}
"""Numbers per segment in the parts of a frame that are read."""

SKIPPED_ELEMENTS = (
    *("velocity", "acceleration", "angularVelocity", "angularAcceleration"),
    *("footContacts", "sensorAcceleration", "sensorAngularVelocity"),
    *("sensorFreeAcceleration", "sensorMagneticField", "sensorOrientation"),
    *("jointAngle", "jointAngleXZY", "jointAngleErgo", "jointAngleErgoXZY"),
    *("centerOfMass", "marker"),
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
    facts: Facts
    T_world_segment: Float[np.ndarray, "frame segment 4 4"]
    """In marey's world."""

    start: float


@dataclass(frozen=True, slots=True, eq=False)
class MvnxBones:
    """A body in the identity pose, in the file's world."""

    tree: SegmentTree
    offset: Float[np.ndarray, "joint 3"]
    """Position of each joint relative to its parent joint."""

    joint_in_segment: Float[np.ndarray, "joint 3"]
    """Position of each joint in its segment."""

    ends: Mapping[int, np.ndarray]
    """The end of the bone from its joint, for segments without children."""


def sniff(head: bytes) -> bool:
    """Whether a file begins like an MVNX."""
    return b"<mvnx" in head and head.lstrip().startswith(b"<")


def read_take(file: File) -> Take:
    """Return the segments of an MVNX file as sensors, exactly as recorded."""
    mvnx = _load(file)
    return Take(
        rate=mvnx.facts.hertz,
        T_world_sensor=mvnx.T_world_segment,
        sensor_names=mvnx.segments,
        start=mvnx.start,
        source=file.source(mvnx.facts, mvnx.subject.header.attributes),
    )


def read_motion(file: File) -> Motion:
    """Return the motion of an MVNX file, joints named by the segments they carry."""
    mvnx = _load(file)
    header = mvnx.subject.header
    bones = build_bones(file, header)
    parent = bones.tree.parent
    T = _joint_poses(mvnx, bones)
    skeleton = _skeleton(mvnx, bones, T)
    R_rest = rotation_to_z_up(mvnx.facts.up.value)[None]
    wxyz = np.zeros((len(T), skeleton.n_joints, 4))
    wxyz[..., 0] = 1.0
    turned = segment_tree.joint_rotations(parent, T[..., :3, :3], R_rest)
    wxyz[:, : len(parent)] = turned
    root = T[:, 0, :3, 3]
    segment_tree.note_bone_misfit(file, T[..., :3, 3], skeleton, wxyz)
    return file.motion(
        mvnx.facts, skeleton, root, wxyz, start=mvnx.start, parameters=header.attributes
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
    facts = Facts(
        file.decide_fact("unit", stated="m", assumed="m", note="MVN's own"),
        file.decide_fact("up", stated="z", assumed="z", note="MVN's own"),
        decide_rate(file, rate, np.zeros(0), note="frameRate"),
    )
    T = geometry.transform(rotations_from_quaternions(file, q), position)
    start = float(np.nan_to_num(subject.time[0] / 1e3))
    return _MvnxFile(subject, segments, facts, facts.poses(T), start)


def _parse_part(
    file: File, subject: _MvnxSubject, name: str, segments: int
) -> Float[np.ndarray, "frame segment number"]:
    """Return the orientations or positions of all segments in all frames."""
    size = NUMBERS_PER_SEGMENT[name]
    columns = segments * size
    text = "\n".join(subject.texts[name]).encode()
    table = numbers.parse_table(
        file, text, columns=columns, delimiter=" ", first_line=0
    )
    good = (table.cells == columns) & (table.status == numbers.NUMBER).all(axis=1)
    good &= (np.abs(table.values) <= numbers.MAX_NUMBER).all(axis=1)
    wrong = set(range(len(subject.lines))) - set(table.line[good].tolist())
    if wrong:
        expected = f"a frame with {size} numbers of {name} for each of {segments}"
        line = subject.lines[min(wrong)]
        file.fail(f"{expected} segments", "others", line=line)
    return table.values.reshape(len(good), segments, size)


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
        file.fail("mvnx with a subject", root.name, line=root.line)
    if len(subjects) > 2:
        count = len(subjects) - 1
        text = f"the file holds {count} subjects: the first is read"
        file.note("subjects-several", text, value=count)
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
            file.fail(f"a frame with {name}", "none", line=element.line)
        texts.append(part.text.replace("\n", " "))
    for name, values in (("index", subject.index), ("time", subject.time)):
        value = numbers.parse_number(element.attributes.get(name, ""))
        sound = value is not None and abs(value) <= numbers.MAX_NUMBER
        values.append(value if value is not None and sound else np.nan)


def _check_frames(file: File, subject: _MvnxSubject) -> None:
    """Note the frames that are left out and those that are missing."""
    present = len(subject.time)
    if present == 0:
        file.fail("a frame of type normal", "none")
    others = [kind for kind in subject.kinds if kind != "normal"]
    if others:
        text = f"{len(others)} calibration poses were left out: {', '.join(others[:6])}"
        file.note("frames-left-out", text, severity="info", value=len(others))
    steps = np.diff(subject.index)
    if (steps != 1.0).any() and np.isfinite(steps).all():
        file.note(
            "frames-missing",
            f"frames declared {subject.index[-1] - subject.index[0] + 1.0:.15g} by "
            f"their numbers, present {present}: export it again if some are missing",
            value=(steps != 1.0).sum(),
        )


def _labels(file: File, header: XmlElement) -> tuple[str, ...]:
    """Return the names of the segments."""
    segments = header.elements_in("segments", "segment")
    labels = tuple(s.attributes.get("label", "") for s in segments)
    named = all(labels) and len(set(labels)) == len(labels)
    if not named or not 0 < len(labels) <= MAX_SEGMENTS:
        file.fail(
            f"1 to {MAX_SEGMENTS} segments, each with a name of its own",
            f"{len(labels)}: {', '.join(labels[:8])}",
            line=header.line,
        )
    return labels


# --- joints --------------------------------------------------------------------------


def _joint_poses(
    mvnx: _MvnxFile, bones: MvnxBones
) -> Float[np.ndarray, "frame joint 4 4"]:
    """Return the recorded segments in the order of the joints, moved to the joints."""
    T = mvnx.T_world_segment[:, bones.tree.segment]
    unit = metres_per_unit(mvnx.facts.unit.value)
    T[..., :3, 3] = geometry.apply(T, unit * bones.joint_in_segment)
    if bones.tree.segment[0] < 0:
        # An added root goes with the first segment and does not rotate.
        R = rotation_to_z_up(mvnx.facts.up.value)
        T[:, 0] = geometry.transform(R, T[:, 1, :3, 3])
    return T


def _skeleton(mvnx: _MvnxFile, bones: MvnxBones, T: np.ndarray) -> Skeleton:
    """Return the joints and bone ends, the lowest of them on the ground at rest."""
    tree, ends = bones.tree, list(bones.ends)
    offset = np.concatenate([bones.offset, *(bones.ends[j][None] for j in ends)])
    offset = mvnx.facts.points(offset)
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


# --- bones ---------------------------------------------------------------------------


def build_bones(file: File, header: XmlElement) -> MvnxBones:
    """Return the joints of a body in the identity pose."""
    points = _points(file, header)
    parents = dict.fromkeys(points, "")
    # Position of each segment's joint in the parent and in the segment itself. An
    # added root has neither.
    above = dict.fromkeys([*points, ""], np.zeros(3))
    within = above.copy()
    joints = header.elements_in("joints", "joint")
    if not joints:
        expected = "joints; without them the file is a take but no motion"
        file.fail(expected, "none", line=header.line)
    for joint in joints:
        parent, parent_position = _connector(file, joint, "connector1", points)
        child, child_position = _connector(file, joint, "connector2", points)
        if parents[child]:
            file.fail(f"one joint above {child!r}", "another", line=joint.line)
        parents[child], above[child], within[child] = (
            parent,
            parent_position,
            child_position,
        )
    tree = build_segment_tree(file, parents)
    names = [
        name if segment >= 0 else ""
        for name, segment in zip(tree.names, tree.segment, strict=True)
    ]
    inside = np.array([within[name] for name in names])
    offset = np.array([above[name] for name in names]) - inside[tree.parent]
    offset[tree.parent < 0] = 0.0
    ends = _bone_ends(tree, [points.get(name, {}) for name in names], inside)
    return MvnxBones(tree, offset, inside, ends)


def _points(file: File, header: XmlElement) -> dict[str, dict[str, np.ndarray]]:
    """Return the positions of named points on each segment, in the segment's axes."""
    return {
        segment.attributes.get("label", ""): {
            point.attributes.get("label", ""): _point_position(file, point)
            for point in segment.elements_in("points", "point")
        }
        for segment in header.elements_in("segments", "segment")
    }


def _point_position(file: File, point: XmlElement) -> np.ndarray:
    text = point.find("pos_b") or point.find("pos_s")
    values = parse_stream(text.text.encode()) if text is not None else None
    if values is None or len(values) != 3 or (np.abs(values) > MAX_NUMBER).any():
        file.fail("a point with three numbers", "others", line=point.line)
    return values


def _connector(
    file: File,
    joint: XmlElement,
    name: str,
    points: Mapping[str, Mapping[str, np.ndarray]],
) -> tuple[str, np.ndarray]:
    """Return segment and position of one side of a joint, written "Pelvis/jL5S1"."""
    element = joint.find(name)
    text = element.text.strip() if element is not None else ""
    segment, _, point = text.rpartition("/")
    position = points.get(segment, {}).get(point)
    if position is None:
        file.fail(f"{name} as segment/point", repr(text), line=joint.line)
    return segment, position


def _bone_ends(
    tree: SegmentTree, points: Sequence[Mapping[str, np.ndarray]], within: np.ndarray
) -> dict[int, np.ndarray]:
    """Return the farthest point of each segment without children, from its joint."""
    ends = {}
    for joint in sorted(set(range(len(tree.names))) - set(tree.parent.tolist())):
        vector = np.array(list(points[joint].values())).reshape(-1, 3) - within[joint]
        length = np.linalg.norm(vector, axis=-1)
        if length.max(initial=0.0) > 0.0:
            ends[joint] = vector[np.argmax(length)]
    return ends


FORMAT = Format(
    name="mvnx",
    title="MVNX (Xsens MVN)",
    suffixes=(".mvnx",),
    sniff=sniff,
    read_take=read_take,
    read_motion=read_motion,
)
