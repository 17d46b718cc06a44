"""A skeleton as limb nodes, with its bind pose, its mesh, and the skin of the mesh."""

import numpy as np

from marey.io.formats.fbx.document import SCENE, Document, properties
from marey.io.formats.fbx.records import FbxNode, record
from marey.numerics import Array, Float, Int, geometry

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
        record("PoseNode", Node=node, Matrix=flatten(T))
        for node, T in zip(nodes, T_world_node, strict=True)
    ]
    document.add(
        "Pose",
        "BindPose",
        "BindPose",
        *poses,
        Type="BindPose",
        Version=100,
        NbPoseNodes=len(poses),
    )


def flatten(T: Float[Array, "4 4"]) -> Float[Array, "16"]:
    """Return a transform as the format has it: columns one after the other."""
    return np.ascontiguousarray(T.T).reshape(16)


def add_mesh(
    document: Document,
    name: str,
    vertices: Float[Array, "vertex 3"],
    faces: Int[Array, "face 3"],
    normals: Float[Array, "vertex 3"],
    color: tuple[float, float, float],
) -> tuple[np.int64, np.int64]:
    """Add a mesh at the origin; return the ids of its model and of its geometry.

    Args:
        document: The scene.
        name: Name of the mesh.
        vertices: Places, in the file's unit.
        faces: Triangles, counter-clockwise from outside.
        normals: Unit normal of each vertex.
        color: Red, green and blue, from 0 to 1.
    """
    corners = faces.astype(np.int32)
    corners[:, 2] = ~corners[:, 2]  # the last corner of a polygon is marked
    geometry_id = document.add(
        "Geometry",
        name,
        "Mesh",
        _layer_element(
            "Normal",
            "ByPolygonVertex",
            "Direct",
            record("Normals", normals[faces].astype(float).ravel()),
        ),
        _layer_element(
            "Material",
            "AllSame",
            "IndexToDirect",
            record("Materials", np.zeros(1, dtype=np.int32)),
        ),
        _layer("Normal", "Material"),
        GeometryVersion=124,
        Vertices=vertices.astype(float).ravel(),
        PolygonVertexIndex=corners.ravel(),
    )
    model = add_node(document, name, "Mesh")
    document.connect(geometry_id, model)
    document.connect(_add_material(document, name, color), model)
    return model, geometry_id


def add_skin(
    document: Document,
    geometry_id: np.int64,
    limbs: list[np.int64],
    T_world_limb: Float[Array, "joint 4 4"],
    joint: Int[Array, "vertex 4"],
    weight: Float[Array, "vertex 4"],
) -> None:
    """Bind a mesh at the origin to the limbs.

    Args:
        document: The scene.
        geometry_id: The mesh.
        limbs: Ids of the limbs.
        T_world_limb: Pose of each limb when the mesh was made, in the file's unit.
        joint: Joints that move each vertex.
        weight: Their shares, which add to one.
    """
    skin = document.add(
        "Deformer", "Skin", "Skin", Version=101, Link_DeformAcuracy=50.0
    )
    document.connect(skin, geometry_id)
    for number, (limb, T) in enumerate(zip(limbs, T_world_limb, strict=True)):
        vertex, slot = np.nonzero((joint == number) & (weight > 0.0))
        if not len(vertex):
            continue
        cluster = document.add(
            "Deformer",
            f"Cluster{number}",
            "Cluster",
            record("Version", 100),
            record("UserData", "", ""),
            record("Indexes", vertex.astype(np.int32)),
            record("Weights", weight[vertex, slot].astype(float)),
            record("Transform", flatten(geometry.inverse(T))),
            record("TransformLink", flatten(T)),
            label="SubDeformer",
        )
        document.connect(cluster, skin)
        document.connect(limb, cluster)


def _layer_element(kind: str, mapping: str, reference: str, data: FbxNode) -> FbxNode:
    return record(
        f"LayerElement{kind}",
        0,
        Version=101,
        Name="",
        MappingInformationType=mapping,
        ReferenceInformationType=reference,
        children=[data],
    )


def _layer(*kinds: str) -> FbxNode:
    elements = [
        record("LayerElement", Type=f"LayerElement{kind}", TypedIndex=0)
        for kind in kinds
    ]
    return record("Layer", 0, Version=100, children=elements)


def _add_material(
    document: Document, name: str, color: tuple[float, float, float]
) -> np.int64:
    rows = [("DiffuseColor", "Color", "", "A", *color)]
    return document.add(
        "Material",
        name,
        "",
        properties(*rows),
        Version=102,
        ShadingModel="Lambert",
        MultiLayer=0,
    )
