"""VMC, the Virtual Motion Capture protocol: bones and trackers of avatars over OSC.

Bones have local poses: position and rotation in their parent, whose tree is that of
the humanoid of VRM and Unity. The world is left-handed with +Y up: marey's axes x, y
and z are its -x, -z and y. A frame may take several packets and ends with
`/VMC/Ext/T`, or where a name comes again.
"""

from collections.abc import Iterable, Mapping
from itertools import pairwise

import numpy as np

from marey.anatomy import names as vrm
from marey.errors import StreamError
from marey.live.codecs.osc import (
    OscMessage,
    OscValue,
    decode_osc,
    encode_bundle,
    encode_message,
)
from marey.live.codecs.poses import make_poses
from marey.live.frame import MAX_NAMES, Frame
from marey.numerics import Array, Float, geometry

PROTOCOL, PORT = "vmc", 39539
ROOT, BONE = "/VMC/Ext/Root/Pos", "/VMC/Ext/Bone/Pos"
WORLD = ("/VMC/Ext/Tra/Pos", "/VMC/Ext/Hmd/Pos", "/VMC/Ext/Con/Pos")
"""Addresses of trackers, headset and controllers: poses in the world."""

TIME, STATE = "/VMC/Ext/T", "/VMC/Ext/OK"

MAX_PACKET_BYTES = 1400
"""Bytes of a packet that is sent: Ethernet carries 1500. Higher sends fewer packets,
which networks cut and lose."""

R_UNITY_WORLD = np.array([[-1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]])
"""marey's axes in those of Unity; a reflection, since Unity is left-handed."""


def _humanoid_parents() -> dict[str, str]:
    """Return the parent of every bone of the humanoid; "" of the hips."""
    chains: list[tuple[str, ...]] = [("", vrm.HIPS, *vrm.TRUNK), (vrm.HEAD, "Jaw")]
    for side in vrm.SIDES:
        limbs = ((vrm.UPPER_CHEST, vrm.ARM), (vrm.HIPS, vrm.LEG))
        chains += [(start, *(side + part for part in limb)) for start, limb in limbs]
        chains.append((vrm.HEAD, f"{side}Eye"))
        for finger in vrm.FINGERS:
            bones = (f"{side}{finger}{phalanx}" for phalanx in vrm.PHALANGES)
            chains.append((side + vrm.HAND, *bones))
    return {c: p for chain in chains for p, c in pairwise(chain)}


PARENTS = _humanoid_parents()
"""Parent of every bone of the humanoid, parents first."""

Poses = dict[str, Float[Array, "4 4"]]


class VmcDecoder:
    """Collects the poses of packets into frames."""

    def __init__(self) -> None:
        self._number = 0
        self._time = np.nan
        self._root = np.eye(4)
        self._bones: Poses = {}
        self._trackers: Poses = {}

    def decode(self, data: bytes, arrival: float = np.nan) -> list[Frame]:
        """Return the frames that a packet completes.

        Args:
            data: The packet.
            arrival: When it came, in seconds.

        Raises:
            StreamError: If it is no OSC, or a pose of VMC has other values.
        """
        frames: list[Frame] = []
        for message in decode_osc(data):
            frames += self._add(message, arrival)
        return frames

    def _add(self, message: OscMessage, arrival: float) -> list[Frame]:
        """Keep one message; return the frame that it completes, if any."""
        address, values = message
        if address == TIME:
            self._time = _number_of(values)
            return self._end_frame(arrival)
        if address == ROOT:
            self._root = _pose_of(values)[1]
        if address != BONE and address not in WORLD:
            return []
        name, pose = _pose_of(values)
        poses = self._bones if address == BONE else self._trackers
        frames = self._end_frame(arrival) if name in poses else []
        poses = self._bones if address == BONE else self._trackers
        if len(poses) >= MAX_NAMES:
            found = "more names"
            raise StreamError(PROTOCOL, expected=f"{MAX_NAMES} names", found=found)
        poses[name] = pose
        return frames

    def _end_frame(self, arrival: float) -> list[Frame]:
        if not (self._bones or self._trackers):
            return []
        with np.errstate(all="ignore"):  # forged numbers, which `Frame` leaves out
            poses = self._trackers | _bones_in_world(self._bones, self._root)
        self._bones, self._trackers = {}, {}
        number, self._number = self._number, self._number + 1
        T_unity = np.array([*poses.values()])
        return [
            Frame(
                number=number,
                time=self._time,
                arrival=arrival,
                T_world_sensor=_change_axes(T_unity, R_UNITY_WORLD.T),
                sensor_names=tuple(poses),
            )
        ]


def _number_of(values: tuple[OscValue, ...]) -> float:
    if len(values) != 1 or not isinstance(values[0], int | float):
        raise StreamError(PROTOCOL, expected="one number", found=repr(values)[:80])
    return float(values[0])


def _pose_of(values: tuple[OscValue, ...]) -> tuple[str, Array]:
    """Return name and pose of a message: name, x y z, quaternion x y z w."""
    numbers = [v for v in values[1:8] if isinstance(v, float | int)]
    name = values[0] if values else ""
    if not isinstance(name, str) or len(numbers) != 7:
        expected = "a name and 7 numbers"
        raise StreamError(PROTOCOL, expected=expected, found=repr(values)[:80])
    x, y, z, qx, qy, qz, qw = map(float, numbers)
    return name, make_poses(np.array([[x, y, z]]), np.array([[qw, qx, qy, qz]]))[0]


def _bones_in_world(bones: Poses, root: Float[Array, "4 4"]) -> Poses:
    """Return bones in the world, each from its next ancestor that was sent."""
    world: Poses = {}
    for name in PARENTS:
        if name in bones:
            parent = _ancestor(name, bones)
            world[name] = (world[parent] if parent else root) @ bones[name]
    return world


def _ancestor(name: str, known: Mapping[str, object]) -> str:
    """Return the next ancestor of a bone that is known; "" if there is none."""
    parent = PARENTS[name]
    while parent and parent not in known:
        parent = PARENTS[parent]
    return parent


def _change_axes(T: Float[Array, "item 4 4"], R: Array) -> Float[Array, "item 4 4"]:
    out = T.copy()
    out[:, :3, :3] = R @ T[:, :3, :3] @ R.T
    out[:, :3, 3] = T[:, :3, 3] @ R.T
    return out


def encode_vmc(frame: Frame) -> tuple[bytes, ...]:
    """Return the packets of a frame: bones of the humanoid, other poses as trackers.

    Names may begin with a subject, "JOE:Hips". Poses that are not known are left out.
    """
    T_unity = _change_axes(frame.T_world_sensor, R_UNITY_WORLD)
    poses = {
        vrm.without_subject(name): T
        for name, T in zip(frame.sensor_names, T_unity, strict=True)
        if np.isfinite(T).all()
    }
    bones = {name: poses[name] for name in PARENTS if name in poses}
    messages = [encode_message(STATE, 1), _encode_pose(ROOT, "root", np.eye(4))]
    for name, T in bones.items():
        parent = _ancestor(name, bones)
        local = geometry.inverse(bones[parent]) @ T if parent else T
        messages.append(_encode_pose(BONE, name, local))
    others = [name for name in poses if name not in bones]
    messages += [_encode_pose(WORLD[0], name, poses[name]) for name in others]
    time = frame.time if np.isfinite(frame.time) else 0.0
    return tuple(_bundles([*messages, encode_message(TIME, float(time))]))


def _encode_pose(address: str, name: str, T: Float[Array, "4 4"]) -> bytes:
    w, x, y, z = map(float, geometry.quat_from_matrix(T[:3, :3]))
    return encode_message(address, name, *map(float, T[:3, 3]), x, y, z, w)


def _bundles(messages: Iterable[bytes]) -> Iterable[bytes]:
    """Yield bundles of as many messages as a packet holds."""
    kept: list[bytes] = []
    size = 16
    for message in messages:
        if kept and size + 4 + len(message) > MAX_PACKET_BYTES:
            yield encode_bundle(kept)
            kept, size = [], 16
        kept.append(message)
        size += 4 + len(message)
    yield encode_bundle(kept)
