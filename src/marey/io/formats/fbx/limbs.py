"""A skeleton as limb nodes, with its bind pose."""

import numpy as np
from jaxtyping import Float

from marey.io.formats.fbx.document import SCENE, Document, properties
from marey.io.formats.fbx.records import record

Array = np.ndarray

INHERIT_ROTATION_FIRST = 1
"""How a node takes over its parent: rotation and scale in the usual order."""


def add_node(
    document: Document,
    name: str,
    subtype: str,
    parent: np.int64 = SCENE,
    offset: Float[Array, "3"] | None = None,
) -> np.int64:
    """Add a model to the scene and return its id.

    Args:
        document: The scene.
        name: Name of the model.
        subtype: "LimbNode", "Mesh" or "Null".
        parent: Id of its parent.
        offset: Place in its parent at rest, in the file's unit.
    """
    x, y, z = (0.0, 0.0, 0.0) if offset is None else offset.tolist()
    rows = (
        ("RotationActive", "bool", "", "", 1),
        ("InheritType", "enum", "", "", INHERIT_ROTATION_FIRST),
        ("DefaultAttributeIndex", "int", "Integer", "", 0),
        ("Lcl Translation", "Lcl Translation", "", "A", x, y, z),
        ("Lcl Rotation", "Lcl Rotation", "", "A", 0.0, 0.0, 0.0),
        ("Lcl Scaling", "Lcl Scaling", "", "A", 1.0, 1.0, 1.0),
    )
    node = document.add(
        "Model",
        name,
        subtype,
        record("Version", 232),
        properties(*rows),
        record("Shading", True),
        record("Culling", "CullingOff"),
    )
    document.connect(node, parent)
    return node


def add_limbs(
    document: Document,
    names: tuple[str, ...],
    parent: Array,
    offset: Float[Array, "joint 3"],
    above: np.int64 = SCENE,
) -> list[np.int64]:
    """Add the joints of a skeleton as limb nodes; return their ids.

    Args:
        document: The scene.
        names: Names of the joints.
        parent: Parent of each joint; -1 for the root.
        offset: Place of each joint in its parent at rest, in the file's unit.
        above: Id of the root's parent.
    """
    limbs: list[np.int64] = []
    for joint, name in enumerate(names):
        over = above if parent[joint] < 0 else limbs[parent[joint]]
        limbs.append(add_node(document, name, "LimbNode", over, offset[joint]))
        rows = [("Size", "double", "Number", "", 1.0)]
        flags = record("TypeFlags", "Skeleton")
        attribute = document.add(
            "NodeAttribute", name, "LimbNode", properties(*rows), flags
        )
        document.connect(attribute, limbs[-1])
    return limbs


def add_bind_pose(
    document: Document, nodes: list[np.int64], T_world_node: Float[Array, "node 4 4"]
) -> None:
    """Add the pose in which the mesh was made.

    Args:
        document: The scene.
        nodes: Ids of the mesh and the limbs.
        T_world_node: Pose of each at rest, in the file's unit.
    """
    poses = [
        record(
            "PoseNode", children=[record("Node", node), record("Matrix", flatten(T))]
        )
        for node, T in zip(nodes, T_world_node, strict=True)
    ]
    document.add(
        "Pose",
        "BindPose",
        "BindPose",
        record("Type", "BindPose"),
        record("Version", 100),
        record("NbPoseNodes", len(poses)),
        *poses,
    )


def flatten(T: Float[Array, "4 4"]) -> Float[Array, "16"]:
    """Return a transform as the format has it: columns one after the other."""
    return np.ascontiguousarray(T.T).reshape(16)
