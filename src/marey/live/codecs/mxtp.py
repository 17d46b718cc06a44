"""MXTP02 of Xsens MVN: positions and quaternions of body segments over UDP.

A datagram has a header of 24 bytes and 32 bytes per segment, big-endian: number,
position in metres, quaternion w x y z; the world is right-handed with +Z up. A sample
may take several datagrams; the last one is marked.
"""

import struct
from typing import NamedTuple

import numpy as np

from marey.anatomy import names as vrm
from marey.errors import StreamError
from marey.live.codecs.packet import Packet
from marey.live.codecs.poses import make_poses
from marey.live.frame import Frame
from marey.numerics import Array, Float, geometry

PROTOCOL, PORT = "mxtp", 9763
MAGIC = b"MXTP02"
HEADER = struct.Struct(">6sIBBIBBBBHH")
"""Magic, sample, datagram (bit 7: the last), items, time in ms, character, segments of
body, props and fingers, spare, bytes of segments."""

SEGMENT = np.dtype([("id", ">i4"), ("position", ">f4", (3,)), ("wxyz", ">f4", (4,))])
LAST = 0x80
MAX_SEGMENTS = 40
"""Segments of a datagram that is sent: 1304 bytes, below the 1500 that Ethernet
carries. Higher sends fewer datagrams, which networks cut and lose."""

MAX_SEGMENT = 2**8 - 1
"""Highest number of a segment; the header counts segments by one byte. MVN uses 67: 23
of the body, 4 props and 40 of the fingers."""

MAX_CHARACTERS = 16
"""Characters whose segments are collected at once. Higher takes more memory when a
sender makes up numbers. MVN streams up to 4."""

SEGMENT_NAMES = (
    *("Pelvis", "L5", "L3", "T12", "T8", "Neck", "Head"),
    *("RightShoulder", "RightUpperArm", "RightForeArm", "RightHand"),
    *("LeftShoulder", "LeftUpperArm", "LeftForeArm", "LeftHand"),
    *("RightUpperLeg", "RightLowerLeg", "RightFoot", "RightToe"),
    *("LeftUpperLeg", "LeftLowerLeg", "LeftFoot", "LeftToe"),
)
"""Names of the body segments 1 to 23, in Xsens's words."""

XSENS_WORDS = {
    vrm.HIPS: "Pelvis",
    vrm.SPINE: "L5",
    vrm.CHEST: "T12",
    vrm.UPPER_CHEST: "T8",
    vrm.LOWER_ARM: "ForeArm",
    vrm.TOES: "Toe",
}
"""Xsens's words for bodies that marey names otherwise, without sides."""


class Datagram(NamedTuple):
    """One datagram: part of the segments of one character."""

    sample: int
    is_last: bool
    time: float
    """Seconds since the recording began."""

    character: int
    poses: dict[str, Float[Array, "4 4"]]
    """Poses of segments by name, in metres."""


def decode_datagram(data: bytes) -> Datagram:
    """Return what a datagram holds.

    Raises:
        StreamError: If it is no whole MXTP02 datagram.
    """
    packet = Packet(PROTOCOL, data, ">")
    if not data.startswith(MAGIC):
        packet.fail(MAGIC.decode(), repr(data[:6]))
    header = HEADER.unpack(packet.take(HEADER.size))
    _, sample, datagram, items, milliseconds, character = header[:6]
    if items * SEGMENT.itemsize != packet.remaining:
        found = f"{packet.remaining} bytes"
        packet.fail(f"{items} segments of {SEGMENT.itemsize} bytes", found)
    rows = np.frombuffer(packet.take(items * SEGMENT.itemsize), SEGMENT)
    if items and not 1 <= rows["id"].min() <= rows["id"].max() <= MAX_SEGMENT:
        packet.fail(f"numbers of segments from 1 to {MAX_SEGMENT}", rows["id"].tolist())
    with np.errstate(invalid="ignore"):  # signalling NaN
        position, wxyz = rows["position"].astype(float), rows["wxyz"].astype(float)
    T = make_poses(position, wxyz)
    poses = dict(zip(map(_segment_name, rows["id"].tolist()), T, strict=True))
    is_last = bool(datagram & LAST)
    return Datagram(sample, is_last, milliseconds / 1000.0, character, poses)


def _segment_name(number: int) -> str:
    if 1 <= number <= len(SEGMENT_NAMES):
        return SEGMENT_NAMES[number - 1]
    return f"Segment{number}"


class MxtpDecoder:
    """Collects the datagrams of a sample, of all characters, into a frame."""

    def __init__(self) -> None:
        self._sample = -1
        self._time = np.nan
        self._poses: dict[int, dict[str, Array]] = {}
        self._complete: set[int] = set()
        self._expected: frozenset[int] = frozenset()

    def decode(self, data: bytes, arrival: float = np.nan) -> list[Frame]:
        """Return the frames that a datagram completes.

        A sample is complete when the last datagrams of the characters of the sample
        before have come, or when the next sample begins, or this one begins again.

        Args:
            data: The datagram.
            arrival: When it came, in seconds.

        Raises:
            StreamError: If it is no whole MXTP02 datagram.
        """
        part = decode_datagram(data)
        is_new = part.sample != self._sample or part.character in self._complete
        frames = self._end_sample(arrival) if is_new else []
        self._sample, self._time = part.sample, part.time
        if part.character not in self._poses and len(self._poses) >= MAX_CHARACTERS:
            needed = f"at most {MAX_CHARACTERS} characters"
            raise StreamError(PROTOCOL, expected=needed, found="more")
        self._poses.setdefault(part.character, {}).update(part.poses)
        if part.is_last:
            self._complete.add(part.character)
        if self._complete and self._complete >= self._expected:
            frames += self._end_sample(arrival)
        return frames

    def _end_sample(self, arrival: float) -> list[Frame]:
        poses = {
            f"Character{character + 1}:{name}" if character else name: T
            for character, segments in self._poses.items()
            for name, T in segments.items()
        }
        # Characters that come later in a sample that was ended are awaited next time.
        self._expected = frozenset(self._poses) or self._expected
        self._poses, self._complete = {}, set()
        if not poses:
            return []
        return [
            Frame(
                number=self._sample,
                time=self._time,
                arrival=arrival,
                T_world_sensor=np.array([*poses.values()]),
                sensor_names=tuple(poses),
            )
        ]


def encode_mxtp(frame: Frame) -> tuple[bytes, ...]:
    """Return the datagrams of a frame, as character 1.

    Bodies of people get the numbers of Xsens's segments, other sensors those from 24
    on. Poses that are not known are left out.
    """
    numbers = _segment_numbers(frame.sensor_names)
    known = np.flatnonzero(np.isfinite(frame.T_world_sensor).all(axis=(1, 2)))
    order = sorted(known.tolist(), key=lambda i: numbers[i])
    rows = np.zeros(len(order), SEGMENT)
    rows["id"] = [numbers[i] for i in order]
    rows["position"] = frame.T_world_sensor[order, :3, 3]
    rows["wxyz"] = geometry.quat_from_matrix(frame.T_world_sensor[order, :3, :3])
    parts = [rows[i : i + MAX_SEGMENTS] for i in range(0, len(rows), MAX_SEGMENTS)]
    parts = parts or [rows]
    return tuple(
        _encode_header(frame, part, index, index == len(parts) - 1) + part.tobytes()
        for index, part in enumerate(parts)
    )


def _segment_numbers(sensor_names: tuple[str, ...]) -> list[int]:
    known = {name: i + 1 for i, name in enumerate(SEGMENT_NAMES)}
    numbers, free = [], len(SEGMENT_NAMES) + 1
    for name in map(_xsens_name, sensor_names):
        number = known.pop(name, free)
        free += number == free
        numbers.append(number)
    return numbers


def _xsens_name(name: str) -> str:
    bare = vrm.without_subject(name)
    part = vrm.without_side(bare)
    return vrm.side_of(bare) + XSENS_WORDS.get(part, part)


def _encode_header(frame: Frame, rows: Array, index: int, is_last: bool) -> bytes:
    body = int((rows["id"] <= len(SEGMENT_NAMES)).sum())
    milliseconds = round(1000.0 * frame.time) if np.isfinite(frame.time) else 0
    return HEADER.pack(
        *(MAGIC, frame.number % 2**32, index & 0x7F | LAST * is_last, len(rows)),
        *(milliseconds % 2**32, 0, body, len(rows) - body, 0, 0, rows.nbytes),
    )
