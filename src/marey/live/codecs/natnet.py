"""NatNet 3.x and 4.x of OptiTrack Motive: frames and names of models over UDP.

A message has its kind, its length and its content, little-endian. From 4.1 on every
section also states its length in bytes. Markers of marker sets become points with the
set as subject; markers that belong to no set are numbered; rigid bodies and bones of
skeletons become sensors. Positions are in metres; Motive's world has +Y up unless it
is set to +Z.
"""

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from marey.errors import OptionError, StreamError
from marey.live.codecs.packet import Packet
from marey.live.codecs.poses import make_poses
from marey.live.frame import UNLABELLED, Frame
from marey.numerics import Array, Float, geometry

PROTOCOL, COMMAND_PORT, DATA_PORT = "natnet", 1510, 1511
MULTICAST = "239.255.42.99"
CONNECT, SERVER_INFO, REQUEST_MODELS, MODELS, FRAME, KEEP_ALIVE = 0, 1, 4, 5, 7, 10
"""Kinds of messages."""

RIGID_BODY_BYTES, LABELED_MARKER_BYTES = 38, 26
ALL_MARKERS = "all"
"""Name of the marker set that repeats the markers of all others."""

IS_TRACKED = 1
"""Bit of a rigid body's parameters: it was seen in this frame."""

Version = tuple[int, int]
SECTION_LENGTHS: Version = (4, 1)
"""First version with lengths of sections and with assets."""

MARKER_NAMES, BODY_ROTATIONS = (4, 0), (4, 2)
"""First versions whose models have names of a body's markers, and a rotation."""

T = TypeVar("T")
Poses = dict[str, Float[Array, "4 4"]]


@dataclass(frozen=True, slots=True)
class ModelNames:
    """Names that frames do not repeat."""

    markers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Names of the markers of each marker set."""

    bodies: Mapping[int, str] = field(default_factory=dict)
    """Names of rigid bodies by their id."""

    skeletons: Mapping[int, tuple[str, Mapping[int, str]]] = field(default_factory=dict)
    """Name of each skeleton, and names of its bones by their id."""


def request(kind: int) -> bytes:
    """Return the message that asks a server to connect, or for its models."""
    content = b"Ping\0" if kind == CONNECT else b"\0"
    return struct.pack("<HH", kind, len(content)) + content


class NatNetDecoder:
    """Decodes the messages of a server; it remembers version and names.

    Args:
        version: Version of the protocol until the server states it.
        up: Axis of Motive's world that points up, "y" or "z".
    """

    def __init__(self, version: Version = (3, 1), up: str = "y") -> None:
        if up not in geometry.R_Z_UP:
            raise OptionError("up", found=up, needed=", ".join(geometry.R_Z_UP))
        self.version = version
        self.names = ModelNames()
        self._R = geometry.R_Z_UP[up]

    def decode(self, data: bytes, arrival: float = np.nan) -> list[Frame]:
        """Return the frame of a message; others only change version and names.

        Args:
            data: The message.
            arrival: When it came, in seconds.

        Raises:
            StreamError: If it is no whole message of NatNet.
        """
        packet = Packet(PROTOCOL, data)
        kind, length = packet.numbers("HH")
        if length > packet.remaining:
            packet.fail(f"{length} bytes", f"{packet.remaining} to the end")
        if kind == SERVER_INFO:
            self.version = _read_version(packet)
        elif kind == MODELS:
            self.names = _read_models(packet, self.version)
        elif kind == FRAME:
            return [self._read_frame(packet, arrival)]
        return []

    def _read_frame(self, packet: Packet, arrival: float) -> Frame:
        number = packet.number("i")
        markers = _join(self._section(packet, 5, _read_marker_set))
        others = self._section(packet, 12, lambda packet: packet.floats(3))
        bodies = self._section(packet, RIGID_BODY_BYTES, _read_rigid_body)
        skeletons = self._section(packet, 8, _read_skeleton)
        if self.version >= SECTION_LENGTHS:
            self._section(packet, 12, _skip_asset)
        self._section(packet, LABELED_MARKER_BYTES, _skip_labeled_marker)
        for _ in ("force plates", "devices"):
            self._section(packet, 8, _skip_channels)
        time = packet.numbers("IId")[2]
        labels, points = self._points(markers, others)
        poses = self._poses(bodies, skeletons)
        T = np.array([*poses.values()]).reshape(-1, 4, 4)
        T[:, :3] = self._R @ T[:, :3]
        return Frame(
            number=number,
            time=time,
            arrival=arrival,
            points=points @ self._R.T,
            labels=labels,
            T_world_sensor=T,
            sensor_names=tuple(poses),
        )

    def _section(
        self, packet: Packet, bytes_each: int, read: Callable[[Packet], T]
    ) -> list[T]:
        """Return the things of one section of a frame."""
        if self.version < SECTION_LENGTHS:
            return [read(packet) for _ in range(packet.count(bytes_each))]
        count, length = packet.numbers("ii")
        section = Packet(PROTOCOL, packet.take(length), packet.order)
        if not 0 <= count * bytes_each <= length:
            packet.fail(f"things of a section of {length} bytes", count)
        return [read(section) for _ in range(count)]

    def _points(
        self, markers: dict[str, Array], others: list[Array]
    ) -> tuple[tuple[str, ...], Array]:
        """Return labels and positions; the origin stands for a marker not seen."""
        labels: list[str] = []
        positions: list[Array] = [np.zeros((0, 3))]
        for name, points in markers.items():
            known = self.names.markers.get(name, ())
            own = [*known, *(str(i + 1) for i in range(len(known), len(points)))]
            labels += [f"{name}:{label}" for label in own[: len(points)]]
            positions.append(points)
        labels += [f"{UNLABELLED}{i + 1}" for i in range(len(others))]
        points = np.concatenate([*positions, np.reshape(others, (-1, 3))])
        points[(points == 0.0).all(axis=1)] = np.nan
        return tuple(labels), points

    def _poses(
        self,
        bodies: list[tuple[int, Array]],
        skeletons: list[tuple[int, list[tuple[int, Array]]]],
    ) -> Poses:
        poses = {self.names.bodies.get(i, f"RigidBody{i}"): T for i, T in bodies}
        for number, bones in skeletons:
            named: tuple[str, Mapping[int, str]] = (f"Skeleton{number}", {})
            name, known = self.names.skeletons.get(number, named)
            # The upper half of a bone's id is that of its skeleton.
            poses |= {
                f"{name}:{known.get(i & 0xFFFF, f'Bone{i & 0xFFFF}')}": T
                for i, T in bones
            }
        return poses


def _join(sets: list[tuple[str, Array]]) -> dict[str, Array]:
    return {name: points for name, points in sets if name.lower() != ALL_MARKERS}


def _read_marker_set(packet: Packet) -> tuple[str, Array]:
    name = packet.text()
    return name, packet.floats(packet.count(12), 3)


def _read_rigid_body(packet: Packet) -> tuple[int, Array]:
    """Return id and pose; NaN if the body was not tracked."""
    number = packet.number("i")
    position, xyzw = packet.floats(3), packet.floats(4)
    _, parameters = packet.numbers("fH")
    if not parameters & IS_TRACKED:
        position[:] = np.nan
    return number, make_poses(position[None], xyzw[None, [3, 0, 1, 2]])[0]


def _read_skeleton(packet: Packet) -> tuple[int, list[tuple[int, Array]]]:
    number = packet.number("i")
    count = packet.count(RIGID_BODY_BYTES)
    return number, [_read_rigid_body(packet) for _ in range(count)]


def _skip_asset(packet: Packet) -> None:
    packet.number("i")
    packet.take(packet.count(RIGID_BODY_BYTES) * RIGID_BODY_BYTES)
    packet.take(packet.count(LABELED_MARKER_BYTES) * LABELED_MARKER_BYTES)


def _skip_labeled_marker(packet: Packet) -> None:
    packet.take(LABELED_MARKER_BYTES)


def _skip_channels(packet: Packet) -> None:
    """Skip the analog channels of a force plate or device."""
    packet.number("i")
    for _ in range(packet.count(4)):
        packet.take(4 * packet.count(4))


def _read_version(packet: Packet) -> Version:
    """Return the version of the protocol that a server states."""
    packet.take(256 + 4)
    major, minor, *_ = packet.numbers("4B")
    if major not in (3, 4):
        raise StreamError(PROTOCOL, expected="NatNet 3 or 4", found=f"{major}.{minor}")
    return major, minor


def _read_models(packet: Packet, version: Version) -> ModelNames:
    """Return the names in a message of models; kinds without names are skipped."""
    markers: dict[str, tuple[str, ...]] = {}
    bodies: dict[int, str] = {}
    skeletons: dict[int, tuple[str, Mapping[int, str]]] = {}
    for _ in range(packet.count(4)):
        kind = packet.number("i")
        model = packet
        if version >= SECTION_LENGTHS:
            model = Packet(PROTOCOL, packet.take(packet.count(1)), packet.order)
        if kind == 0:
            name = model.text()
            markers[name] = tuple(model.text() for _ in range(model.count(1)))
        elif kind == 1:
            bodies |= dict([_read_body_model(model, version)])
        elif kind == 2:
            name, number = model.text(), model.number("i")
            bones = range(model.count(24))
            known = dict(_read_body_model(model, version) for _ in bones)
            skeletons[number] = (name, known)
        elif model is packet:
            break  # Lengths of other kinds are not known; they come after these.
    return ModelNames(markers, bodies, skeletons)


def _read_body_model(packet: Packet, version: Version) -> tuple[int, str]:
    """Return id and name of a rigid body."""
    name = packet.text()
    number, _ = packet.numbers("ii")
    packet.floats(7 if version >= BODY_ROTATIONS else 3)
    count = packet.count(16)
    packet.take(16 * count)
    if version >= MARKER_NAMES:
        for _ in range(count):
            packet.text()
    return number, name
