"""VSK, the subject file of Vicon: a tree of segments and where the markers sit on it.

Segments stand inside one another. POSITION and ORIENTATION (a rotation vector) place
each in its parent, its joint turns it, and numbers may stand as parameters by name. The
rest pose is the one in which no joint is turned. Lengths are in millimetres. Vicon's
world has Z up, but the figure at rest may stand along another axis of the file: its
longest bone, a thigh, is taken to point down.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np
from jaxtyping import Float

from marey.io.contract import File, Format
from marey.io.segment_tree import Tree, arrange, chained
from marey.io.text.lines import LARGEST, unique_names
from marey.io.text.numbers import parse_number
from marey.io.units_axes import metres, poses_in
from marey.io.xml import Element, parse
from marey.numerics import geometry
from marey.report import Finding
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
AXES = {"hinge": ("AXIS", "1 0 0"), "universal": ("AXIS-PAIR", "1 0 0 0 1 0")}
"""Where the axes of a joint stand, and what they are when they do not."""

SITES = {"Marker": "NAME", "TargetLocalPointToWorldPoint": "MARKER"}
"""Elements that put a marker on a segment, and the attribute with its name."""

MOST_SEGMENTS = 10_000
UPRIGHT = 0.9
"""Share of the longest bone that must lie along one axis to say what is up."""


@dataclass(frozen=True, slots=True, eq=False)
class Vsk:
    """A VSK file: the skeleton, and what it is made from."""

    skeleton: Skeleton
    parameters: Mapping[str, float]
    """Values by name, lengths in millimetres."""

    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class _Words:
    """Numbers that may be written as names of parameters."""

    file: File
    parameters: Mapping[str, float]

    def numbers(
        self, element: Element, name: str, count: int, default: str
    ) -> Float[np.ndarray, " number"]:
        """Return the numbers of an attribute."""
        words = element.attributes.get(name, default).split()
        values = [self._number(element, word.strip("'")) for word in words]
        if len(values) != count:
            self.file.fail_at_line(
                element.line,
                expected=f"{count} numbers in {name}",
                found=f"{len(values)}",
            )
        return np.array(values)

    def _number(self, element: Element, word: str) -> float:
        value = parse_number(word)
        if value is None:
            bare = word.removeprefix("-").strip("'")
            value = self.parameters.get(bare)
            if value is not None and word.startswith("-"):
                value = -value
        if value is None or abs(value) > LARGEST:
            self.file.fail_at_line(
                element.line, expected="a number or parameter", found=repr(word)
            )
        return value


def sniff(head: bytes) -> bool:
    """Whether a file begins like a VSK."""
    return b"<KinematicModel" in head and head.lstrip().startswith(b"<")


def load(path: str | PathLike[str]) -> Vsk:
    """Return the skeleton of a VSK file with its parameters and findings.

    Raises:
        FormatError: If the file is not a VSK or is damaged beyond reading.
    """
    return _load(File(Path(path), "vsk"))


def read_skeleton(file: File) -> Skeleton:
    """Return the skeleton of a VSK file, markers included."""
    return _load(file).skeleton


def _load(file: File) -> Vsk:
    root = parse(file)
    if root.name != "KinematicModel":
        raise file.error(
            root.line, expected="KinematicModel", found=root.name, counted="line"
        )
    words = _Words(file, _parameters(root))
    segments, parents = _segments(file, root)
    tree = arrange(file, parents)
    T_file = _rest(tree, segments, words)
    unit = file.settle("unit", stated="mm", assumed="mm", note="VSK has no other")
    up = file.settle(
        "up",
        stated=_upward(T_file[:, :3, 3] - T_file[tree.parent, :3, 3]),
        assumed="z",
        note="longest bone at rest",
        how="inferred",
    )
    T = poses_in(T_file, unit.value, up.value)
    skeleton = _skeleton(tree, segments, words, T, root, metres(unit.value))
    return Vsk(skeleton, words.parameters, tuple(file.findings))


def _parameters(root: Element) -> dict[str, float]:
    listed = root.find("Parameters")
    values = {
        parameter.attributes.get("NAME", ""): parse_number(
            parameter.attributes.get("VALUE", "")
        )
        for parameter in (listed.all("Parameter") if listed is not None else ())
    }
    return {name: value for name, value in values.items() if value is not None}


def _segments(file: File, root: Element) -> tuple[dict[str, Element], dict[str, str]]:
    """Return the segments and the names of their parents by name, parents first."""
    top = root.find("Skeleton")
    segments: dict[str, Element] = {}
    parents: dict[str, str] = {}
    first = list(top.all("Segment")) if top is not None else []
    waiting = [(segment, "") for segment in reversed(first)]
    while waiting:
        segment, parent = waiting.pop()
        name = segment.attributes.get("NAME", "")
        if not name or name in segments or len(segments) >= MOST_SEGMENTS:
            file.fail_at_line(
                segment.line,
                expected=f"a segment of another name, at most {MOST_SEGMENTS}",
                found=repr(name),
            )
        segments[name], parents[name] = segment, parent
        waiting += [(child, name) for child in reversed(list(segment.all("Segment")))]
    if not segments:
        raise file.error(
            root.line, expected="a Skeleton of Segments", found="none", counted="line"
        )
    return segments, parents


def _rest(
    tree: Tree, segments: Mapping[str, Element], words: _Words
) -> Float[np.ndarray, "joint 4 4"]:
    """Return T_world_segment with no joint turned, in the file's unit and axes."""
    T = np.tile(np.eye(4), (len(tree.names), 1, 1))
    for joint, name in _own(tree):
        segment = segments[name]
        turn = words.numbers(segment, "ORIENTATION", 3, "0 0 0")
        T[joint, :3, :3] = geometry.rotation_exp(turn)
        T[joint, :3, 3] = words.numbers(segment, "POSITION", 3, "0 0 0")
    return np.asarray(chained(tree.parent, T[None])[0])


def _own(tree: Tree) -> Iterator[tuple[int, str]]:
    """Return the joints that the file has, without an added root."""
    for joint, name in enumerate(tree.names):
        if tree.segment[joint] >= 0:
            yield joint, name


def _upward(bones: Float[np.ndarray, "joint 3"]) -> str | None:
    """Return the axis that points up, None when the longest bone does not say."""
    lengths = np.linalg.norm(bones[1:], axis=-1)
    if not (lengths > 0.0).any():
        return None
    longest = bones[1 + int(np.argmax(lengths))]
    axis = int(np.argmax(np.abs(longest)))
    if abs(longest[axis]) < UPRIGHT * lengths.max():
        return None
    return ("-" if longest[axis] > 0.0 else "") + "xyz"[axis]


def _skeleton(
    tree: Tree,
    segments: Mapping[str, Element],
    words: _Words,
    T: Float[np.ndarray, "joint 4 4"],
    root: Element,
    unit: float,
) -> Skeleton:
    offset = T[:, :3, 3] - T[tree.parent, :3, 3]
    offset[0] = T[0, :3, 3]
    kinds: list[Kind] = ["root"]
    axes = np.full((len(tree.names), 2, 3), np.nan)
    for joint, name in _own(tree):
        if joint > 0:
            kind, turned = _joint(segments[name], words)
            kinds.append(kind)
            axes[joint, : len(turned)] = turned @ T[joint, :3, :3].T
    labels, carrier, place = _markers(tree, words, root)
    return Skeleton(
        names=tree.names,
        parent=tree.parent,
        offset=offset,
        kind=tuple(kinds),
        axes=axes,
        marker_labels=labels,
        marker_joint=carrier,
        marker_offset=np.einsum("mij,mj->mi", T[carrier, :3, :3], unit * place),
    )


def _joint(segment: Element, words: _Words) -> tuple[Kind, Float[np.ndarray, "axis 3"]]:
    """Return the kind of a segment's joint and its unit axes in the segment."""
    joint = next((c for c in segment.children if c.name.startswith("Joint")), None)
    if joint is None:
        return "fixed", np.zeros((0, 3))
    kind = KINDS.get(joint.name, "ball")
    if joint.name == "JointFree" or joint.name not in KINDS:
        words.file.note(
            "joint-simplified",
            f"{joint.name} inside the body stands as a ball joint",
            subject=segment.attributes["NAME"],
        )
    if kind not in AXES:
        return kind, np.zeros((0, 3))
    name, usual = AXES[kind]
    axes = words.numbers(joint, name, len(usual.split()), usual).reshape(-1, 3)
    lengths = np.linalg.norm(axes, axis=-1, keepdims=True)
    if not (lengths > 0.0).all():
        words.file.fail_at_line(joint.line, expected="an axis", found="0 0 0")
    return kind, axes / lengths


def _markers(
    tree: Tree, words: _Words, root: Element
) -> tuple[tuple[str, ...], np.ndarray, np.ndarray]:
    """Return labels, joints and places of the markers, in segments and file units."""
    number = {name: joint for joint, name in _own(tree)}
    labels, carriers, places, lost = [], [], [], []
    for site in _sites(root):
        label = site.attributes.get(SITES[site.name], "")
        carrier = number.get(site.attributes.get("SEGMENT", ""))
        if carrier is None or not label:
            lost.append(label)
            continue
        labels.append(label)
        carriers.append(carrier)
        places.append(words.numbers(site, "POSITION", 3, "0 0 0"))
    if lost:
        words.file.note(
            "markers-left-out",
            f"{len(lost)} markers name no segment of the body: {', '.join(lost[:6])}",
            value=float(len(lost)),
        )
    return (
        unique_names(words.file, labels, "marker"),
        np.array(carriers, dtype=np.int64),
        np.array(places).reshape(-1, 3),
    )


def _sites(root: Element) -> Iterator[Element]:
    """Return every element outside the segments that puts a marker on one."""
    waiting = [child for child in reversed(root.children) if child.name != "Skeleton"]
    while waiting:
        element = waiting.pop()
        if element.name in SITES and "SEGMENT" in element.attributes:
            yield element
        waiting += reversed(element.children)


FORMAT = Format(
    name="vsk",
    title="VSK (Vicon subject)",
    suffixes=(".vsk",),
    sniff=sniff,
    read_skeleton=read_skeleton,
)
