"""VSK, the subject file of Vicon: a tree of segments with marker positions.

Segments are nested. POSITION and ORIENTATION (a rotation vector) are
the pose of each in its parent, and names of parameters may replace numbers. The rest
pose is the one in which no joint is rotated. Lengths are in millimetres. Vicon's
world has Z up, but the skeleton at rest may point along another axis of the file: its
longest bone, a thigh, is taken to point down.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from marey.io.contract import Format
from marey.io.file import File
from marey.io.segment_tree import SegmentTree, build_segment_tree, compose_world_poses
from marey.io.text.names import unique_names
from marey.io.text.numbers import MAX_NUMBER, parse_number
from marey.io.text.xml import XmlElement, parse_xml
from marey.io.units_axes import metres_per_unit, poses_from_file
from marey.numerics import Float, geometry
from marey.skeleton import Kind, Skeleton

KINDS: Mapping[str, Kind] = {
    "JointFree": "ball",
    "JointBall": "ball",
    "JointHardySpicer": "universal",
    "JointUniversal": "universal",
    "JointHinge": "hinge",
    "JointDummy": "fixed",
    "JointFixed": "fixed",
}
AXIS_ATTRIBUTES = {
    "hinge": ("AXIS", "1 0 0"),
    "universal": ("AXIS-PAIR", "1 0 0 0 1 0"),
}
"""Attribute with the axes of a joint, and their default."""

MARKER_ELEMENTS = {"Marker": "NAME", "TargetLocalPointToWorldPoint": "MARKER"}
"""Elements that put a marker on a segment, and the attribute with its name."""

MAX_SEGMENTS = 10_000
MIN_UPRIGHT_SHARE = 0.9
"""Least share of the longest bone along one axis that determines the up axis.

Higher leaves the axis undetermined more often. Chosen by hand.
"""


@dataclass(frozen=True, slots=True)
class _VskNumbers:
    """Numbers that may be written as names of parameters."""

    file: File
    parameters: Mapping[str, float]

    def read(
        self, element: XmlElement, name: str, count: int, default: str
    ) -> Float[np.ndarray, " number"]:
        """Return the numbers of an attribute."""
        words = element.attributes.get(name, default).split()
        values = [self._number(element, word.strip("'")) for word in words]
        if len(values) != count:
            self.file.fail(f"{count} numbers in {name}", len(values), line=element.line)
        return np.array(values)

    def _number(self, element: XmlElement, word: str) -> float:
        value = parse_number(word)
        if value is None:
            sign = -1.0 if word.startswith("-") else 1.0
            bare = word.removeprefix("-").strip("'")
            value = sign * self.parameters.get(bare, np.nan)
        if not abs(value) <= MAX_NUMBER:
            self.file.fail("a number or parameter", repr(word), line=element.line)
        return value


def sniff(head: bytes) -> bool:
    """Whether a file begins like a VSK."""
    return b"<KinematicModel" in head and head.lstrip().startswith(b"<")


def read_skeleton(file: File) -> Skeleton:
    """Return the skeleton of a VSK file, markers included.

    Lengths are in millimetres. The up axis is not stated; the longest bone at rest
    determines it.
    """
    root = parse_xml(file)
    if root.name != "KinematicModel":
        file.fail("KinematicModel", root.name, line=root.line)
    numbers = _VskNumbers(file, _parameters(root))
    segments, parents = _segments(file, root)
    tree = build_segment_tree(file, parents)
    T_file = _rest_poses(tree, segments, numbers)
    unit = file.decide_fact("unit", stated="mm", assumed="mm", note="VSK has no other")
    up = file.decide_fact(
        "up",
        stated=_up_axis(T_file[:, :3, 3] - T_file[tree.parent, :3, 3]),
        assumed="z",
        note="longest bone at rest",
        how="inferred",
    )
    T = poses_from_file(T_file, unit.value, up.value)
    return _skeleton(tree, segments, numbers, T, root, metres_per_unit(unit.value))


def _parameters(root: XmlElement) -> dict[str, float]:
    listed = [p.attributes for p in root.elements_in("Parameters", "Parameter")]
    values = {p.get("NAME", ""): parse_number(p.get("VALUE", "")) for p in listed}
    return {name: value for name, value in values.items() if value is not None}


def _segments(
    file: File, root: XmlElement
) -> tuple[dict[str, XmlElement], dict[str, str]]:
    """Return the segments and the names of their parents by name, parents first."""
    segments: dict[str, XmlElement] = {}
    parents: dict[str, str] = {}
    first = reversed(root.elements_in("Skeleton", "Segment"))
    waiting = [(segment, "") for segment in first]
    while waiting:
        segment, parent = waiting.pop()
        name = segment.attributes.get("NAME", "")
        if not name or name in segments or len(segments) >= MAX_SEGMENTS:
            file.fail(
                f"a segment of another name, at most {MAX_SEGMENTS}",
                repr(name),
                line=segment.line,
            )
        segments[name], parents[name] = segment, parent
        waiting += [(child, name) for child in reversed(list(segment.all("Segment")))]
    if not segments:
        file.fail("a Skeleton of Segments", "none", line=root.line)
    return segments, parents


def _rest_poses(
    tree: SegmentTree, segments: Mapping[str, XmlElement], numbers: _VskNumbers
) -> Float[np.ndarray, "joint 4 4"]:
    """Return T_world_segment with no joint rotated, in the file's unit and axes."""
    T = np.tile(np.eye(4), (len(tree.names), 1, 1))
    for joint, name in _file_joints(tree):
        segment = segments[name]
        rotation_vector = numbers.read(segment, "ORIENTATION", 3, "0 0 0")
        T[joint, :3, :3] = geometry.rotation_exp(rotation_vector)
        T[joint, :3, 3] = numbers.read(segment, "POSITION", 3, "0 0 0")
    return np.asarray(compose_world_poses(tree.parent, T[None])[0])


def _file_joints(tree: SegmentTree) -> Iterator[tuple[int, str]]:
    """Return the joints that the file has, without an added root."""
    for joint, name in enumerate(tree.names):
        if tree.segment[joint] >= 0:
            yield joint, name


def _up_axis(bones: Float[np.ndarray, "joint 3"]) -> str | None:
    """Return the axis that points up, None when the longest bone does not say."""
    lengths = np.linalg.norm(bones[1:], axis=-1)
    if not (lengths > 0.0).any():
        return None
    longest = bones[1 + int(np.argmax(lengths))]
    axis = int(np.argmax(np.abs(longest)))
    if abs(longest[axis]) < MIN_UPRIGHT_SHARE * lengths.max():
        return None
    return ("-" if longest[axis] > 0.0 else "") + "xyz"[axis]


def _skeleton(
    tree: SegmentTree,
    segments: Mapping[str, XmlElement],
    numbers: _VskNumbers,
    T: Float[np.ndarray, "joint 4 4"],
    root: XmlElement,
    unit: float,
) -> Skeleton:
    offset = T[:, :3, 3] - T[tree.parent, :3, 3]
    offset[0] = T[0, :3, 3]
    kinds: list[Kind] = ["root"]
    axes = np.full((len(tree.names), 2, 3), np.nan)
    for joint, name in _file_joints(tree):
        if joint > 0:
            kind, joint_axes = _joint(segments[name], numbers)
            kinds.append(kind)
            axes[joint, : len(joint_axes)] = joint_axes @ T[joint, :3, :3].T
    labels, carrier, position = _markers(tree, numbers, root)
    return Skeleton(
        names=tree.names,
        parent=tree.parent,
        offset=offset,
        kind=tuple(kinds),
        axes=axes,
        marker_labels=labels,
        marker_joint=carrier,
        marker_offset=np.einsum("mij,mj->mi", T[carrier, :3, :3], unit * position),
    )


def _joint(
    segment: XmlElement, numbers: _VskNumbers
) -> tuple[Kind, Float[np.ndarray, "axis 3"]]:
    """Return the kind of a segment's joint and its unit axes in the segment."""
    joint = next((c for c in segment.children if c.name.startswith("Joint")), None)
    if joint is None:
        return "fixed", np.zeros((0, 3))
    kind = KINDS.get(joint.name, "ball")
    if joint.name == "JointFree" or joint.name not in KINDS:
        numbers.file.note(
            "joint-simplified",
            f"{joint.name} inside the body becomes a ball joint",
            subject=segment.attributes["NAME"],
        )
    if kind not in AXIS_ATTRIBUTES:
        return kind, np.zeros((0, 3))
    name, usual = AXIS_ATTRIBUTES[kind]
    axes = numbers.read(joint, name, len(usual.split()), usual).reshape(-1, 3)
    lengths = np.linalg.norm(axes, axis=-1, keepdims=True)
    if not (lengths > 0.0).all():
        numbers.file.fail("an axis", "0 0 0", line=joint.line)
    return kind, axes / lengths


def _markers(
    tree: SegmentTree, numbers: _VskNumbers, root: XmlElement
) -> tuple[tuple[str, ...], np.ndarray, np.ndarray]:
    """Return labels, joints and positions (segment axes, file units) of markers."""
    number = {name: joint for joint, name in _file_joints(tree)}
    labels, carriers, positions, lost = [], [], [], []
    for site in _marker_elements(root):
        label = site.attributes.get(MARKER_ELEMENTS[site.name], "")
        carrier = number.get(site.attributes.get("SEGMENT", ""))
        if carrier is None or not label:
            lost.append(label)
            continue
        labels.append(label)
        carriers.append(carrier)
        positions.append(numbers.read(site, "POSITION", 3, "0 0 0"))
    if lost:
        numbers.file.note(
            "markers-left-out",
            f"{len(lost)} markers name no segment of the body: {', '.join(lost[:6])}",
            value=len(lost),
        )
    return (
        unique_names(numbers.file, labels, "marker"),
        np.array(carriers, dtype=np.int64),
        np.array(positions).reshape(-1, 3),
    )


def _marker_elements(root: XmlElement) -> Iterator[XmlElement]:
    """Return every element outside the segments that puts a marker on one."""
    waiting = [child for child in reversed(root.children) if child.name != "Skeleton"]
    while waiting:
        element = waiting.pop()
        if element.name in MARKER_ELEMENTS and "SEGMENT" in element.attributes:
            yield element
        waiting += reversed(element.children)


FORMAT = Format(
    name="vsk",
    title="VSK (Vicon subject)",
    suffixes=(".vsk",),
    sniff=sniff,
    read_skeleton=read_skeleton,
)
