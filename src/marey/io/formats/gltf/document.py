"""The JSON of a glTF scene: nodes, skins, meshes, materials and animations.

Arrays are in one buffer, with views of it and accessors that describe them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from marey.errors import DataError
from marey.io.scene import BodyMesh, Scene, SceneFigure, SceneTake
from marey.io.scene.figures import MARKER_COLOR, MARKER_RADIUS_M
from marey.io.scene.surfaces import ball_directions, hull_of_balls
from marey.io.text.rotations import hold_last_or_default
from marey.io.units_axes import FileWorld
from marey.motion import Motion
from marey.numerics import Array, Float
from marey.skeleton import Skeleton
from marey.tree import list_children

Json = dict[str, Any]


WORLD = FileWorld("m", "y")
"""What glTF always has."""

MAX_FRAMES = 2**23
"""Frames whose times single precision distinguishes, with a bit to spare."""


COMPONENT_TYPES = {"u1": 5121, "u2": 5123, "u4": 5125, "f4": 5126}
"""Codes of the component types, by NumPy's name of the type."""


SHAPES = {(): "SCALAR", (3,): "VEC3", (4,): "VEC4", (4, 4): "MAT4"}


VERTEX_TARGET, INDEX_TARGET = 34962, 34963


ALIGNMENT = 4


@dataclass(slots=True, eq=False)
class Accessors:
    """Collects arrays; every one becomes a view of the buffer and an accessor."""

    buffer: bytearray = field(default_factory=bytearray)
    views: list[dict[str, Any]] = field(default_factory=list)
    accessors: list[dict[str, Any]] = field(default_factory=list)

    def add(
        self, values: Array, kind: str = "f4", *, target: int = 0, bounds: bool = False
    ) -> int:
        """Add an array (item, *component) and return the number of its accessor.

        Args:
            values: The array.
            kind: Type of a component, a key of `COMPONENT_TYPES`.
            target: What a graphics card uses it for; 0 = nothing.
            bounds: Whether least and greatest values are stated.
        """
        typed = np.ascontiguousarray(values, dtype=f"<{kind}")
        self.buffer += b"\0" * (-len(self.buffer) % ALIGNMENT)
        view = {
            "buffer": 0,
            "byteOffset": len(self.buffer),
            "byteLength": typed.nbytes,
        }
        self.buffer += typed.tobytes()
        self.views.append(view | ({"target": target} if target else {}))
        accessor: dict[str, Any] = {
            "bufferView": len(self.views) - 1,
            "componentType": COMPONENT_TYPES[kind],
            "count": len(typed),
            "type": SHAPES[typed.shape[1:]],
        }
        if bounds:
            least, greatest = np.atleast_1d(typed.min(axis=0), typed.max(axis=0))
            accessor |= {"min": least.tolist(), "max": greatest.tolist()}
        self.accessors.append(accessor)
        return len(self.accessors) - 1


def build_document(scene: Scene) -> tuple[Json, bytes]:
    """Return the JSON of a scene without its buffer, and the buffer.

    Raises:
        DataError: If a take has more frames than its clock distinguishes.
    """
    builder = _Builder()
    figures = [builder.add_figure(figure) for figure in scene.figures]
    markers = builder.add_markers(scene.takes)
    for number, take in enumerate(scene.takes):
        builder.add_animation(number, take, scene.figures, figures, markers)
    return builder.document(), bytes(builder.arrays.buffer)


@dataclass(slots=True, eq=False)
class _Builder:
    """Collects the lists of a document; things refer to each other by number."""

    arrays: Accessors = field(default_factory=Accessors)
    nodes: list[Json] = field(default_factory=list)
    roots: list[int] = field(default_factory=list)
    skins: list[Json] = field(default_factory=list)
    meshes: list[Json] = field(default_factory=list)
    materials: list[Json] = field(default_factory=list)
    animations: list[Json] = field(default_factory=list)

    def document(self) -> Json:
        """Return the document; lists that are empty are left out, as they must be."""
        lists = {
            "nodes": self.nodes,
            "skins": self.skins,
            "meshes": self.meshes,
            "materials": self.materials,
            "animations": self.animations,
            "accessors": self.arrays.accessors,
            "bufferViews": self.arrays.views,
        }
        return {
            "asset": {"version": "2.0", "generator": "marey"},
            "scene": 0,
            "scenes": [{"nodes": self.roots}],
            **{name: items for name, items in lists.items() if items},
        }

    def add_figure(self, figure: SceneFigure) -> int:
        """Add a figure at rest and return the node of its first joint.

        Its joints are the nodes from there on. The skinned mesh is a node of the scene
        itself: the nodes above it would not move it.
        """
        skeleton = figure.skeleton
        offset = WORLD.points(skeleton.offset).astype(np.float32)
        first = len(self.nodes)
        for joint, children in enumerate(list_children(skeleton.parent)):
            node: Json = {"name": skeleton.names[joint]}
            node["translation"] = offset[joint].tolist()
            if children:
                node["children"] = [first + child for child in children]
            self.nodes.append(node)
        self._add_root({"name": figure.name, "children": [first]})
        mesh = self._add_body(figure)
        self.skins.append(
            {
                "name": figure.name,
                "skeleton": first,
                "joints": list(range(first, first + skeleton.n_joints)),
                "inverseBindMatrices": self.arrays.add(_inverse_bind(skeleton)),
            }
        )
        body = {
            "name": f"{figure.name} body",
            "mesh": mesh,
            "skin": len(self.skins) - 1,
        }
        self._add_root(body)
        return first

    def _add_root(self, node: Json) -> None:
        self.roots.append(len(self.nodes))
        self.nodes.append(node)

    def _add_body(self, figure: SceneFigure) -> int:
        body = figure.mesh
        index = "u1" if figure.skeleton.n_joints <= 2**8 else "u2"
        arrays, target = self.arrays, VERTEX_TARGET
        normals = WORLD.points(body.normals)
        attributes = {
            "NORMAL": arrays.add(normals, target=target),
            "JOINTS_0": arrays.add(body.joint, index, target=target),
            "WEIGHTS_0": arrays.add(_weights(body), target=target),
        }
        return self._add_mesh(
            f"{figure.name} body", body.vertices, body.faces, attributes, figure.color
        )

    def _add_mesh(
        self,
        name: str,
        vertices: Array,
        faces: Array,
        attributes: Json,
        color: tuple[float, float, float],
    ) -> int:
        points = WORLD.points(vertices)
        position = self.arrays.add(points, target=VERTEX_TARGET, bounds=True)
        kind = "u2" if len(vertices) < 2**16 else "u4"
        part = {
            "attributes": {"POSITION": position, **attributes},
            "indices": self.arrays.add(faces.reshape(-1), kind, target=INDEX_TARGET),
            "material": len(self.materials),
        }
        surface = {"baseColorFactor": [*color, 1.0], "metallicFactor": 0.0}
        self.materials.append({"name": name, "pbrMetallicRoughness": surface})
        self.meshes.append({"name": name, "primitives": [part]})
        return len(self.meshes) - 1

    def add_markers(self, takes: Sequence[SceneTake]) -> dict[str, int]:
        """Add a node for every marker of all takes, and return the nodes by label."""
        labels = list(dict.fromkeys(x for take in takes for x in take.markers.labels))
        if not labels:
            return {}
        ball = hull_of_balls(
            np.zeros((1, 3)), np.array([MARKER_RADIUS_M]), ball_directions(2)
        )
        mesh = self._add_mesh("marker", *ball, {}, MARKER_COLOR)
        first = len(self.nodes)
        self.nodes += [{"name": label, "mesh": mesh} for label in labels]
        children = list(range(first, first + len(labels)))
        self._add_root({"name": "markers", "children": children})
        return {label: first + i for i, label in enumerate(labels)}

    def add_animation(
        self,
        number: int,
        take: SceneTake,
        figures: Sequence[SceneFigure],
        first_nodes: Sequence[int],
        markers: dict[str, int],
    ) -> None:
        """Add the animation of one take: all its figures, and its markers."""
        if take.n_frames == 0:
            return
        animation = _Animation(self.arrays, self.arrays.add(_times(take), bounds=True))
        for figure, first in zip(figures, first_nodes, strict=True):
            animation.add_motion(figure.motions[number], first)
        for label, node in markers.items():
            animation.add_marker(node, _track(take, label))
        self.animations.append(
            {
                "name": take.name,
                "channels": animation.channels,
                "samplers": animation.samplers,
            }
        )


@dataclass(slots=True, eq=False)
class _Animation:
    """Channels of one animation; all have the same times."""

    arrays: Accessors
    times: int
    channels: list[Json] = field(default_factory=list)
    samplers: list[Json] = field(default_factory=list)

    def add_motion(self, motion: Motion, first: int) -> None:
        """Add a position for the root and a rotation for every joint that can move."""
        points = WORLD.points(motion.T_world_root[:, :3, 3])
        self._add(first, "translation", points)
        wxyz = WORLD.rotations(motion.wxyz)
        for joint in np.flatnonzero(~motion.skeleton.is_end):
            xyzw = np.roll(wxyz[:, joint], -1, axis=-1)
            self._add(first + int(joint), "rotation", xyzw)

    def add_marker(self, node: int, points: Float[Array, "frame 3"]) -> None:
        """Add a marker; one that is not seen has no size."""
        seen = np.isfinite(points).all(axis=-1)
        held = hold_last_or_default(points, np.zeros(3))
        self._add(node, "translation", WORLD.points(held))
        self._add(node, "scale", np.repeat(1.0 * seen[:, None], 3, axis=1), "STEP")

    def _add(self, node: int, path: str, values: Array, way: str = "LINEAR") -> None:
        sampler = {
            "input": self.times,
            "output": self.arrays.add(values),
            "interpolation": way,
        }
        target = {"node": node, "path": path}
        self.channels.append({"sampler": len(self.samplers), "target": target})
        self.samplers.append(sampler)


def _times(take: SceneTake) -> Float[Array, " frame"]:
    """Return the seconds of the frames, which a glTF has in single precision."""
    if take.n_frames > MAX_FRAMES:
        raise DataError(
            f"{take.name}: glTF scene",
            found=f"{take.n_frames} frames at {take.rate:g} Hz",
            needed="fewer: single precision does not distinguish their times; "
            "cut the motion, or resample it",
        )
    return np.arange(take.n_frames) / take.rate


def _track(take: SceneTake, label: str) -> Float[Array, "frame 3"]:
    """Return the path of a marker, in metres; NaN if the take has no such label."""
    if label not in take.markers.labels:
        return np.full((take.n_frames, 3), np.nan)
    return take.markers.points[:, take.markers.labels.index(label)]


def _weights(body: BodyMesh) -> Float[Array, "vertex 4"]:
    """Return the weights in single precision with a sum as near one as that allows."""
    weight = body.weight.astype(np.float32)
    weight[:, 0] -= weight.sum(axis=1) - 1.0
    return weight


def _inverse_bind(skeleton: Skeleton) -> Float[Array, "joint 4 4"]:
    """Return T_joint_world of the rest pose, column by column."""
    matrix = np.tile(np.eye(4), (skeleton.n_joints, 1, 1))
    matrix[:, 3, :3] = -WORLD.points(skeleton.rest()[:, :3, 3])
    return matrix
