"""FBX 7.4, binary: what MotionBuilder, Maya, Unreal, Unity and Blender open.

Centimetres and Y up, unless asked otherwise. A figure is a tree of limb nodes whose
axes are those of the world at rest, a mesh with its skin, and a bind pose; every take
is an animation stack. A node turns about x, then y, then z. Facts of the format: the
public notes of the Blender developers on binary FBX, and files that programs write.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from marey.errors import DataError, OptionError
from marey.io.contract import Output
from marey.io.formats.fbx import records
from marey.io.formats.fbx.document import (
    AXES,
    SCENE,
    TICKS_PER_SECOND,
    Document,
    Timeline,
    properties,
    ticks,
)
from marey.io.formats.fbx.limbs import (
    add_bind_pose,
    add_limbs,
    add_mesh,
    add_node,
    add_skin,
)
from marey.io.options import WriteOptions
from marey.io.scene import (
    MarkerTracks,
    SceneFigure,
    SceneTake,
    build_scene,
    scene_format,
)
from marey.io.text import rotations
from marey.io.text.names import printable_name, spell_names
from marey.io.units_axes import FileWorld, rotation_to_z_up
from marey.motion import Motion
from marey.numerics import Array, Float, Int, geometry
from marey.skeleton import Skeleton
from marey.solution import Solution

EULER_ORDER = "ZYX"
"""Rotations about z, y and x from the left: a node turns about x first."""


REST_RATE = 30.0
"""Frames per second of a file without takes."""


KEY_VERSION = 4008


LINEAR = 4
"""Flag of keys that are joined by straight lines."""


@dataclass(frozen=True, slots=True, eq=False)
class Curves:
    """Three curves of one property of one node over a take."""

    node: np.int64
    target: str
    """The property: "Lcl Translation" or "Lcl Rotation"."""

    values: Float[Array, "frame 3"]
    """In the file's unit or in degrees."""


def write_scene(thing: Skeleton | Motion | Solution, options: WriteOptions) -> Output:
    """Return the FBX of a skeleton at rest, a motion, or all subjects and takes.

    Rotations are continuous; gaps hold the last known pose. Several figures stand under
    a node each, and their joints carry its name. Markers are nodes without a body.

    Raises:
        OptionError: If another up axis than y or z is asked for.
        DataError: If frames are not evenly spaced, or are too many for the format.
    """
    world = options.world("cm", "y")
    if world.up not in AXES:
        raise OptionError("up", found=world.up, needed=" or ".join(AXES))
    scene = build_scene(thing, markers=options.markers)
    document = Document(options.provenance_text())
    alone = len(scene.figures) == 1
    limbs = [
        _add_figure(document, figure, world, alone, options) for figure in scene.figures
    ]
    markers = _add_markers(document, scene.takes)
    for number, take in enumerate(scene.takes):
        curves = [
            one
            for figure, nodes in zip(scene.figures, limbs, strict=True)
            for one in _curves(figure.motions[number], nodes, world)
        ]
        curves += _marker_curves(take.markers, markers, world)
        add_stack(document, take.name, take.rate, curves)
    return {"": [_encode(document, world, _clock(scene.takes))]}


def _clock(takes: tuple[SceneTake, ...]) -> Timeline:
    """Return name and rate of the first take, and the length of the longest."""
    if not takes:
        return Timeline("", REST_RATE, 0.0)
    seconds = max(max(take.n_frames - 1, 0) / take.rate for take in takes)
    return Timeline(takes[0].name, takes[0].rate, seconds)


def _encode(document: Document, world: FileWorld, clock: Timeline) -> bytes:
    try:
        return document.encode(world, clock)
    except OverflowError as error:
        raise DataError(
            "fbx",
            found=f"{error} bytes",
            needed=f"at most {records.MAX_BYTES}: write fewer frames",
        ) from error


def _add_figure(
    document: Document,
    figure: SceneFigure,
    world: FileWorld,
    alone: bool,
    options: WriteOptions,
) -> list[np.int64]:
    """Add a figure at rest; return the ids of its limbs.

    Args:
        document: The scene.
        figure: Its skeleton and mesh.
        world: Unit and axes of the file.
        alone: Whether it is the only one, whose root then has no node above it.
        options: Collects findings.
    """
    skeleton, mesh = figure.skeleton, figure.mesh
    prefix = "" if alone else f"{figure.name}:"
    names = spell_names(skeleton.names, printable_name, options)
    above = SCENE if alone else add_node(document, figure.name, "Null")
    offset = world.points(skeleton.offset)
    limbs = add_limbs(
        document, tuple(prefix + n for n in names), skeleton.parent, offset, above
    )
    rest = world.points(skeleton.rest()[:, :3, 3])
    T_world_limb = geometry.transform(np.eye(3), rest)
    model, shape = add_mesh(
        document,
        f"{prefix}Body",
        world.points(mesh.vertices),
        mesh.faces,
        mesh.normals @ rotation_to_z_up(world.up),
        figure.color,
    )
    add_skin(document, shape, limbs, T_world_limb, mesh.joint, mesh.weight)
    poses = np.concatenate([np.eye(4)[None], T_world_limb])
    add_bind_pose(document, [model, *limbs], poses)
    return limbs


def _curves(
    motion: Motion, limbs: list[np.int64], world: FileWorld
) -> Iterator[Curves]:
    """Yield the curves of a motion: the root's place, and the rotations of joints."""
    place = world.points(motion.T_world_root[:, :3, 3])
    yield Curves(limbs[0], "Lcl Translation", place)
    angles = continuous_angles(motion, world.up)
    for joint in np.flatnonzero(~motion.skeleton.is_end):
        yield Curves(limbs[joint], "Lcl Rotation", angles[:, joint])


def _add_markers(
    document: Document, takes: tuple[SceneTake, ...]
) -> dict[str, np.int64]:
    """Add a node for every marker, below one for all; return their ids by label."""
    labels = dict.fromkeys(label for take in takes for label in take.markers.labels)
    if not labels:
        return {}
    above = add_node(document, "Markers", "Null")
    return {label: add_node(document, label, "Null", above) for label in labels}


def _marker_curves(
    tracks: MarkerTracks, nodes: dict[str, np.int64], world: FileWorld
) -> Iterator[Curves]:
    """Yield the curves of markers; one that is not seen stays where it was."""
    for label, points in zip(tracks.labels, tracks.points.swapaxes(0, 1), strict=True):
        if np.isfinite(points).all(axis=-1).any():
            held = rotations.hold_last_or_default(points, np.zeros(3))
            yield Curves(nodes[label], "Lcl Translation", world.points(held))


def continuous_angles(motion: Motion, up: str) -> Float[Array, "frame joint 3"]:
    """Return continuous angles about x, y and z in degrees, in the axes of the file."""
    turned = rotations.change_axes(motion.wxyz, rotation_to_z_up(up).T)
    return rotations.euler_degrees(turned, EULER_ORDER)[..., ::-1]


def add_stack(
    document: Document, name: str, rate: float, curves: Sequence[Curves]
) -> None:
    """Add one take of all figures.

    Args:
        document: The scene.
        name: Name of the take.
        rate: Frames per second.
        curves: What moves; all of the same number of frames.
    """
    n_frames = max((len(one.values) for one in curves), default=0)
    time = np.round(np.arange(n_frames) * (TICKS_PER_SECOND / rate)).astype(np.int64)
    end = ticks(max(n_frames - 1, 0) / rate)
    rows = [
        (f"{span}{edge}", "KTime", "Time", "", value)
        for span in ("Local", "Reference")
        for edge, value in (("Start", ticks(0.0)), ("Stop", end))
    ]
    stack = document.add(
        "AnimationStack", name, "", properties(*rows), label="AnimStack"
    )
    layer = document.add("AnimationLayer", "BaseLayer", "", label="AnimLayer")
    document.connect(layer, stack)
    for one in curves:
        _add_curves(document, layer, one, time)


def _add_curves(
    document: Document, layer: np.int64, curves: Curves, time: Int[Array, " frame"]
) -> None:
    """Add the curves of one property."""
    first = curves.values[0].tolist() if len(curves.values) else [0.0] * 3
    rows = [
        (f"d|{axis}", "Number", "", "A", value)
        for axis, value in zip("XYZ", first, strict=True)
    ]
    name = curves.target.split()[-1][0]
    node = document.add(
        "AnimationCurveNode", name, "", properties(*rows), label="AnimCurveNode"
    )
    document.connect(node, layer)
    document.connect(node, curves.node, curves.target)
    for axis, start, values in zip("XYZ", first, curves.values.T, strict=True):
        curve = document.add(
            "AnimationCurve",
            "",
            "",
            Default=start,
            KeyVer=KEY_VERSION,
            KeyTime=time[: len(values)],
            KeyValueFloat=values.astype(np.float32),
            KeyAttrFlags=np.array([LINEAR], dtype=np.int32),
            KeyAttrDataFloat=np.zeros(4, dtype=np.float32),
            KeyAttrRefCount=np.array([len(values)], dtype=np.int32),
            label="AnimCurve",
        )
        document.connect(curve, node, f"d|{axis}")


FORMAT = scene_format(
    name="fbx",
    title="FBX (Autodesk; Unreal, Unity, Blender)",
    suffixes=(".fbx",),
    sniff=lambda head: head.startswith(records.MAGIC),
    write=write_scene,
)
