"""The objects of an FBX scene, their connections and the records around them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from marey.io.formats.fbx import records
from marey.io.formats.fbx.records import FbxNode, Value, record
from marey.io.units_axes import FileWorld, metres_per_unit

SCENE = np.int64(0)
"""Id of the scene itself, the parent of everything without another one."""

FIRST_ID = 1_000_000
"""Id of the first object; smaller ones are left to the programs that read the file."""

TICKS_PER_SECOND = 46_186_158_000
"""Unit of time of the format."""

CREATOR = "marey"
AXES = {
    "y": {"Up": (1, 1), "Front": (2, 1), "Coord": (0, 1)},
    "z": {"Up": (2, 1), "Front": (1, -1), "Coord": (0, 1)},
}
"""Number and sign of the axes up, to the front and to the right, by the up axis."""

CENTIMETRES_PER_METRE = 100.0

TIME_MODES = dict(
    zip(
        (120.0, 100.0, 60.0, 50.0, 48.0, 30.0, 25.0, 24.0, 1000.0, 96.0, 72.0),
        (1, 2, 3, 4, 5, 6, 10, 11, 12, 15, 16),
        strict=True,
    )
)
"""Code of the frame rates in hertz that the format knows by a number."""

CUSTOM_RATE = 14
"""Code of any other frame rate."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """What a program plays when it opens the file."""

    stack: str
    """Name of the animation."""

    rate: float
    """Frames per second."""

    seconds: float
    """Length of the longest take."""


class Document:
    """A scene under construction: objects with ids, and connections between them.

    Args:
        provenance: From what the scene was made; any text.
    """

    def __init__(self, provenance: str) -> None:
        self._provenance = provenance
        self._objects: list[FbxNode] = []
        self._connections: list[FbxNode] = []

    def add(
        self,
        kind: str,
        name: str,
        subtype: str,
        *children: FbxNode,
        label: str = "",
        **fields: Value,
    ) -> np.int64:
        """Add an object and return its id.

        Args:
            kind: Name of its node: "Model", "Geometry", "AnimationCurve" ...
            name: Its name.
            subtype: What kind of model, deformer or attribute it is.
            *children: Its properties.
            label: Class in its name, where it differs from the kind.
            **fields: Those of its properties that come first, of one value.
        """
        number = np.int64(FIRST_ID + len(self._objects))
        full = f"{name}\x00\x01{label or kind}"
        self._objects.append(
            record(kind, number, full, subtype, children=children, **fields)
        )
        return number

    def connect(self, child: np.int64, parent: np.int64, target: str = "") -> None:
        """Connect an object to its parent, or to a property of it."""
        ends = ("OP", child, parent, target) if target else ("OO", child, parent)
        self._connections.append(record("C", *ends))

    def encode(self, world: FileWorld, clock: Timeline) -> bytes:
        """Return the bytes of the file.

        Raises:
            OverflowError: If the file would be larger than the format allows.
        """
        top = [
            _header(self._provenance),
            record("FileId", records.FILE_ID),
            record("CreationTime", records.CREATION_TIME),
            record("Creator", CREATOR),
            _settings(world, clock),
            _documents(clock.stack),
            record("References"),
            self._definitions(),
            record("Objects", children=self._objects),
            record("Connections", children=self._connections),
            record("Takes", Current=clock.stack),
        ]
        return records.encode_file(top)

    def _definitions(self) -> FbxNode:
        """Return how many objects of each kind there are."""
        count = Counter(one.name for one in self._objects) + Counter(["GlobalSettings"])
        kinds = [
            record("ObjectType", kind, Count=number)
            for kind, number in sorted(count.items())
        ]
        return record("Definitions", Version=100, Count=count.total(), children=kinds)


def properties(*rows: Sequence[Value]) -> FbxNode:
    """Return the properties of an object: name, type, type in words, flags, values."""
    return record("Properties70", children=[record("P", *row) for row in rows])


def ticks(seconds: float) -> np.int64:
    """Return a time in the unit of the format."""
    return np.int64(round(seconds * TICKS_PER_SECOND))


def _header(provenance: str) -> FbxNode:
    return record(
        "FBXHeaderExtension",
        FBXHeaderVersion=1003,
        FBXVersion=records.VERSION,
        EncryptionType=0,
        Creator=CREATOR,
        children=[_scene_info(provenance)] if provenance else [],
    )


def _scene_info(comment: str) -> FbxNode:
    """Return what programs show as the summary of a scene."""
    meta = record("MetaData", Version=100, Comment=comment)
    names = "GlobalInfo\x00\x01SceneInfo", "UserData"
    return record("SceneInfo", *names, Type="UserData", Version=100, children=[meta])


def _settings(world: FileWorld, clock: Timeline) -> FbxNode:
    """Return axes, unit and frame rate of the scene."""
    axes: list[tuple[Value, ...]] = [
        row
        for name, (axis, sign) in AXES[world.up].items()
        for row in (
            (f"{name}Axis", "int", "Integer", "", axis),
            (f"{name}AxisSign", "int", "Integer", "", sign),
        )
    ]
    mode = TIME_MODES.get(clock.rate, CUSTOM_RATE)
    scale = metres_per_unit(world.unit) * CENTIMETRES_PER_METRE
    rows: tuple[tuple[Value, ...], ...] = (
        *axes,
        ("UnitScaleFactor", "double", "Number", "", scale),
        ("OriginalUnitScaleFactor", "double", "Number", "", scale),
        ("TimeMode", "enum", "", "", mode),
        ("TimeSpanStart", "KTime", "Time", "", ticks(0.0)),
        ("TimeSpanStop", "KTime", "Time", "", ticks(clock.seconds)),
        ("CustomFrameRate", "double", "Number", "", clock.rate),
    )
    return record("GlobalSettings", Version=1000, children=[properties(*rows)])


def _documents(stack: str) -> FbxNode:
    rows = (
        ("SourceObject", "object", "", ""),
        ("ActiveAnimStackName", "KString", "", "", stack),
    )
    scene = record(
        "Document",
        np.int64(FIRST_ID - 1),
        "",
        "Scene",
        children=[properties(*rows), record("RootNode", SCENE)],
    )
    return record("Documents", Count=1, children=[scene])
