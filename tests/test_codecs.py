"""Codecs of streams: against independent implementations, and against damage."""

import struct
import time

import natnet_packets
import numpy as np
import pytest
from damage import damaged
from natnet.data_descriptions import DataDescriptions
from natnet.data_frame import DataFrame
from natnet.packet_buffer import PacketBuffer
from natnet.server_info import ServerInfo
from natnet.version import Version
from pythonosc.osc_bundle import OscBundle
from pythonosc.osc_bundle_builder import IMMEDIATELY, OscBundleBuilder
from pythonosc.osc_message import OscMessage
from pythonosc.osc_message_builder import OscMessageBuilder
from samples import random_rotations

import marey
from marey.live import Frame
from marey.live.codecs import (
    MxtpDecoder,
    NatNetDecoder,
    VmcDecoder,
    decode_osc,
    encode_bundle,
    encode_message,
    encode_mxtp,
    encode_vmc,
)
from marey.live.codecs.mxtp import SEGMENT_NAMES
from marey.live.codecs.vmc import PARENTS
from marey.live.lsl_channels import ORIENTATION, POSITION, Channel, SampleLayout

VERSIONS = [(3, 0), (3, 1), (4, 0), (4, 1), (4, 2)]
MUTATIONS = 2000


def poses(rng, count):
    R = marey.geometry.matrix_from_quat(random_rotations(rng, 4, count)[2])
    return marey.geometry.transform(R, rng.uniform(-2.0, 2.0, (count, 3)))


def decoded(decoder, packets):
    return [frame for packet in packets for frame in decoder.decode(packet, 5.0)]


# --- NatNet ---------------------------------------------------------------------------

POINTS = [(0.1, 1.2, -0.3), (0.0, 0.0, 0.0), (0.5, 0.6, 0.7)]
BODY = natnet_packets.rigid_body(4, (1.0, 2.0, 3.0), (0.5, 0.5, 0.5, 0.5))
LOST_BODY = natnet_packets.rigid_body(5, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0), False)
BONE = natnet_packets.rigid_body(2 << 16 | 1, (0.0, 1.0, 0.0), (0.0, 0.0, 0.0, 1.0))


def natnet_frame(version, **fields):
    content = {
        "marker_sets": [("JOE", POINTS), ("all", POINTS)],
        "others": [(0.9, 0.8, 0.7)],
        "bodies": [BODY, LOST_BODY],
        "skeletons": [(2, [BONE])],
        "labeled": [(11, POINTS[0])],
        "plates": [(1, (1.0, 2.0))],
    }
    return natnet_packets.frame(version, **content | fields)


def natnet_models(version):
    return natnet_packets.models(
        version,
        marker_sets=[("JOE", ("RTHI", "RKNE", "RANK"))],
        bodies=[(4, "Sword")],
        skeletons=[(2, "Ann", [(1, "Hip")])],
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_a_natnet_frame_is_what_an_independent_decoder_reads(version):
    packet = natnet_frame(version)
    buffer = PacketBuffer(packet[4:])
    other = DataFrame.read_from_buffer(buffer, Version(*version))
    (frame,) = NatNetDecoder(version).decode(packet)
    assert frame.number == other.prefix.frame_number
    assert frame.time == other.suffix.timestamp
    y_up = np.array(
        [*other.marker_sets[0].marker_pos_list, *other.unlabeled_marker_pos]
    )
    expected = np.stack([y_up[:, 0], -y_up[:, 2], y_up[:, 1]], axis=1)
    seen = np.isfinite(frame.points[:, 0])
    assert seen.tolist() == [True, False, True, True]
    np.testing.assert_array_equal(frame.points[seen], expected[seen])
    body = other.rigid_bodies[0]
    x, y, z = body.pos
    np.testing.assert_allclose(frame.T_world_sensor[0, :3, 3], (x, -z, y))
    wxyz = np.array([body.rot[3], *body.rot[:3]])
    R = marey.geometry.R_Z_UP["y"] @ marey.geometry.matrix_from_quat(wxyz)
    np.testing.assert_allclose(frame.T_world_sensor[0, :3, :3], R, atol=1e-12)
    assert [b.tracking_valid for b in other.rigid_bodies] == [True, False]
    assert np.isnan(frame.T_world_sensor[1]).all()


@pytest.mark.parametrize("version", VERSIONS)
def test_natnet_names_are_what_an_independent_decoder_reads(version):
    packet = natnet_models(version)
    buffer = PacketBuffer(packet[4:])
    other = DataDescriptions.read_from_buffer(buffer, Version(*version))
    decoder = NatNetDecoder(version)
    assert decoder.decode(packet) == []
    (models,) = other.marker_sets
    assert decoder.names.markers == {models.name: models.marker_names}
    assert decoder.names.bodies == {b.id_num: b.name for b in other.rigid_bodies}
    (frame,) = decoder.decode(natnet_frame(version))
    named = tuple(f"{models.name}:{name}" for name in models.marker_names)
    assert frame.labels == (*named, "unlabelled1")
    assert frame.sensor_names == ("Sword", "RigidBody5", "Ann:Hip")


def test_the_server_states_the_version():
    packet = natnet_packets.server_info((4, 1))
    stated = ServerInfo.read_from_buffer(PacketBuffer(packet[4:]), None)
    decoder = NatNetDecoder((3, 0))
    decoder.decode(packet)
    known = stated.nat_net_protocol_version
    assert decoder.version == (known.major, known.minor) == (4, 1)
    with pytest.raises(marey.StreamError, match="NatNet 3 or 4"):
        decoder.decode(natnet_packets.server_info((2, 9)))


def test_a_world_with_z_up_stays_as_it_is():
    (frame,) = NatNetDecoder((3, 1), up="z").decode(natnet_frame((3, 1)))
    np.testing.assert_allclose(frame.points[0], POINTS[0], rtol=1e-6)
    with pytest.raises(marey.OptionError, match="up"):
        NatNetDecoder(up="w")


# --- MXTP -----------------------------------------------------------------------------


def test_a_published_mxtp_datagram_is_read():
    """24 bytes of header and 32 per segment, big-endian, as MVN's manual has them."""
    segment = struct.pack(">i7f", 1, 1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 1.0)
    header = b"MXTP02" + struct.pack(">I", 42) + bytes([0x80, 1])
    header += struct.pack(">I", 1234) + bytes([0, 1, 0, 0, 0, 0])
    header += struct.pack(">H", len(segment))
    assert (len(header), len(segment)) == (24, 32)
    (frame,) = MxtpDecoder().decode(header + segment)
    assert (frame.number, frame.time) == (42, 1.234)
    assert frame.sensor_names == ("Pelvis",)
    half_turn = np.diag([-1.0, -1.0, 1.0, 1.0])
    half_turn[:3, 3] = (1.0, 2.0, 3.0)
    np.testing.assert_allclose(frame.T_world_sensor[0], half_turn, atol=1e-12)


def mxtp_frame(rng, names=SEGMENT_NAMES):
    T = poses(rng, len(names))
    return Frame(number=3, time=0.25, T_world_sensor=T, sensor_names=tuple(names))


def test_a_whole_body_is_one_datagram_of_760_bytes(rng):
    (packet,) = encode_mxtp(mxtp_frame(rng))
    assert len(packet) == 24 + 23 * 32
    assert packet[:6] == b"MXTP02"
    assert packet[10:12] == bytes([0x80, 23])


@pytest.mark.parametrize("count", [1, 23, 41, 90])
def test_mxtp_keeps_a_frame(rng, count):
    names = [*SEGMENT_NAMES, *(f"Segment{i}" for i in range(24, 91))][:count]
    frame = mxtp_frame(rng, names)
    packets = encode_mxtp(frame)
    assert max(map(len, packets)) <= 1400
    (again,) = decoded(MxtpDecoder(), packets)
    assert again.sensor_names == frame.sensor_names
    assert (again.number, again.time) == (frame.number, frame.time)
    np.testing.assert_allclose(again.T_world_sensor, frame.T_world_sensor, atol=1e-6)


def test_bytes_that_only_begin_like_mxtp_are_no_frames(rng):
    """They would begin the stream anew, with names that nobody has."""
    whole = encode_mxtp(mxtp_frame(rng))[0]
    numbers = np.frombuffer(whole[24:], np.uint8).reshape(-1, 32).copy()
    numbers[:, :4] = rng.integers(1, 128, (len(numbers), 4))
    for forged in (whole + bytes(32), whole[:24] + numbers.tobytes()):
        with pytest.raises(marey.StreamError, match="segments"):
            MxtpDecoder().decode(forged)


def test_two_characters_are_one_frame(rng):
    def packets(sample):
        frame = mxtp_frame(rng)
        (first,) = encode_mxtp(
            Frame(
                number=sample,
                time=0.0,
                T_world_sensor=frame.T_world_sensor,
                sensor_names=frame.sensor_names,
            )
        )
        return [first, first[:16] + b"\x01" + first[17:]]

    decoder = MxtpDecoder()
    for sample in (0, 1):
        decoded(decoder, packets(sample))
    (frame,) = decoded(decoder, packets(2))
    assert len(frame.sensor_names) == 46
    assert frame.sensor_names[23] == "Character2:Pelvis"


# --- OSC and VMC ----------------------------------------------------------------------

VALUES = ("héllo", 1, -5, 0.25, b"blob!", True, False, None, 2**40)


def test_our_osc_is_read_by_an_independent_implementation():
    data = encode_message("/a/b", *VALUES)
    other = OscMessage(data)
    assert other.address == "/a/b"
    assert [*other.params] == [*VALUES]
    bundle = OscBundle(encode_bundle([data, encode_message("/c")]))
    assert [m.address for m in bundle] == ["/a/b", "/c"]


def test_osc_of_an_independent_implementation_is_read():
    message = OscMessageBuilder("/a/b")
    for value in VALUES:
        message.add_arg(value)
    inner = OscBundleBuilder(IMMEDIATELY)
    inner.add_content(message.build())
    outer = OscBundleBuilder(IMMEDIATELY)
    outer.add_content(inner.build())
    outer.add_content(OscMessageBuilder("/c").build())
    first, second = decode_osc(outer.build().dgram)
    assert first == ("/a/b", VALUES)
    assert second == ("/c", ())


def vmc_frame(rng, names):
    T = poses(rng, len(names))
    return Frame(number=0, time=0.5, T_world_sensor=T, sensor_names=tuple(names))


@pytest.mark.parametrize(
    "names",
    [
        [*PARENTS],
        ["Hips", "LeftHand", "Head"],
        ["Hips", "Spine", "Sword"],
        ["Sword", "Shield"],
    ],
)
def test_vmc_keeps_poses_in_the_world_whatever_bones_are_missing(rng, names):
    frame = vmc_frame(rng, names)
    packets = encode_vmc(frame)
    assert max(map(len, packets)) <= 1400
    (again,) = decoded(VmcDecoder(), packets)
    assert set(again.sensor_names) == set(names)
    order = [again.sensor_names.index(name) for name in names]
    np.testing.assert_allclose(
        again.T_world_sensor[order], frame.T_world_sensor, atol=1e-4
    )


def test_vmc_has_the_axes_of_unity(rng):
    """A person who faces -y, left at +x: in Unity forward is +z and left is -x."""
    T = np.tile(np.eye(4), (2, 1, 1))
    T[:, :3, 3] = [(0.0, 0.0, 1.0), (0.3, -0.2, 0.1)]
    frame = Frame(
        number=0, T_world_sensor=T, sensor_names=("Hips", "LeftUpperLeg"), time=0.0
    )
    (packet,) = encode_vmc(frame)
    bones = {
        m.values[0]: np.array(m.values[1:], dtype=float)
        for m in decode_osc(packet)
        if m.address == "/VMC/Ext/Bone/Pos"
    }
    np.testing.assert_allclose(bones["Hips"], (0, 1, 0, 0, 0, 0, 1), atol=1e-7)
    leg = bones["LeftUpperLeg"]
    np.testing.assert_allclose(leg, np.array([-0.3, -0.9, 0.2, 0, 0, 0, 1]), atol=1e-7)


def test_a_frame_ends_where_a_name_comes_again():
    one = encode_message("/VMC/Ext/Bone/Pos", "Hips", *[0.0] * 6, 1.0)
    decoder = VmcDecoder()
    assert decoder.decode(one) == []
    (frame,) = decoder.decode(one)
    assert (frame.number, frame.sensor_names) == (0, ("Hips",))


# --- damage ---------------------------------------------------------------------------


def protocols():
    rng = np.random.default_rng(3)
    for version in VERSIONS:
        packets = [natnet_frame(version), natnet_models(version)]
        yield f"natnet {version}", lambda v=version: NatNetDecoder(v), packets
    yield "mxtp", MxtpDecoder, [*encode_mxtp(mxtp_frame(rng))]
    yield "vmc", VmcDecoder, [*encode_vmc(vmc_frame(rng, [*PARENTS]))]


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("make", "packets"), [pytest.param(*p[1:], id=p[0]) for p in protocols()]
)
def test_cut_and_forged_packets_give_frames_or_typed_errors(make, packets, rng):
    decoder, slowest, messages = make(), 0.0, []
    for i in range(MUTATIONS):
        data = packets[i % len(packets)]
        data = damaged(data, rng) if i % 4 else data[: rng.integers(len(data))]
        start = time.process_time()
        try:
            decoder.decode(data)
        except marey.StreamError as error:
            messages.append(str(error))
        slowest = max(slowest, time.process_time() - start)
    assert len(messages) > MUTATIONS // 10
    assert all(map(str.isprintable, messages))
    assert slowest < 5.0, "hangs"
    whole = [frame for packet in packets * 3 for frame in decoder.decode(packet)]
    assert whole, "does not recover"


@pytest.mark.usefixtures("unchecked")
def test_forged_channels_and_samples_of_lsl_give_frames_or_typed_errors(rng):
    """liblsl keeps the bytes in order; what they say may be anything."""
    kinds = [*POSITION, *ORIENTATION, "", "Confidence"]
    units = ["meters", "mm", "parsecs", ""]
    values = [0.0, 1.0, -1e308, np.inf, np.nan, 2**62, "text", "", None]
    whole, messages = 0, []
    for _ in range(MUTATIONS):
        n = 7 * int(rng.integers(1, 4))
        channels = [
            Channel(
                "ab"[i // 7 % 2],
                kinds[i % 7] if rng.random() < 0.95 else rng.choice(kinds),
                rng.choice(units),
            )
            for i in range(n)
        ]
        sample = [*rng.normal(size=n)]
        for at in rng.integers(n, size=rng.integers(3)):
            sample[at] = values[rng.integers(len(values))]
        cut = n if rng.random() < 0.9 else int(rng.integers(n))
        try:
            frame = SampleLayout(channels).frame(sample[:cut], 0, 0.0, 0.0)
            whole += frame.n_seen > 0
        except marey.StreamError as error:
            messages.append(str(error))
    assert min(whole, len(messages)) > MUTATIONS // 10
    assert all(map(str.isprintable, messages))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("count", [2**31 - 1, -1, 2**20])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_huge_count_is_refused_before_anything_is_allocated(version, count):
    packet = natnet_frame(version)
    for at in range(8, len(packet) - 4):
        forged = packet[:at] + struct.pack("<i", count) + packet[at + 4 :]
        try:
            NatNetDecoder(version).decode(forged)
        except marey.StreamError:
            continue
