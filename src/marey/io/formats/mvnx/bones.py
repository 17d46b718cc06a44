"""The bones of an MVNX file: points on segments, and where two of them meet."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from marey.io.contract import File
from marey.io.segment_tree import SegmentTree, build_segment_tree
from marey.io.text.numbers import MAX_NUMBER, parse_stream
from marey.io.xml import XmlElement


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


def list_segments(header: XmlElement) -> list[XmlElement]:
    """Return the segments that a header lists."""
    listed = header.find("segments")
    return list(listed.all("segment")) if listed is not None else []


def build_bones(file: File, header: XmlElement) -> MvnxBones:
    """Return the joints of a body in the identity pose."""
    points = _points(file, header)
    parents = dict.fromkeys(points, "")
    # Position of each segment's joint in the parent and in the segment itself. An
    # added root has neither.
    above = dict.fromkeys([*points, ""], np.zeros(3))
    within = above.copy()
    for joint in _joints(file, header):
        parent, parent_position = _connector(file, joint, "connector1", points)
        child, child_position = _connector(file, joint, "connector2", points)
        if parents[child]:
            file.fail_at_line(
                joint.line, expected=f"one joint above {child!r}", found="another"
            )
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
    points: dict[str, dict[str, np.ndarray]] = {}
    for segment in list_segments(header):
        listed = segment.find("points")
        points[segment.attributes.get("label", "")] = {
            point.attributes.get("label", ""): _point_position(file, point)
            for point in (listed.all("point") if listed is not None else ())
        }
    return points


def _point_position(file: File, point: XmlElement) -> np.ndarray:
    text = point.find("pos_b") or point.find("pos_s")
    values = parse_stream(text.text.encode()) if text is not None else None
    if values is None or len(values) != 3 or (np.abs(values) > MAX_NUMBER).any():
        file.fail_at_line(
            point.line, expected="a point with three numbers", found="others"
        )
    return values


def _joints(file: File, header: XmlElement) -> list[XmlElement]:
    listed = header.find("joints")
    joints = list(listed.all("joint")) if listed is not None else []
    if not joints:
        file.fail_at_line(
            header.line,
            expected="joints; without them the file is a take but no motion",
            found="none",
        )
    return joints


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
        file.fail_at_line(
            joint.line, expected=f"{name} as segment/point", found=repr(text)
        )
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
