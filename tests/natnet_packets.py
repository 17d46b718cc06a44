"""Messages of NatNet, encoded for tests as the SDK of OptiTrack lays them out."""

import struct


def text(word):
    return word.encode() + b"\0"


def floats(*values):
    return struct.pack(f"<{len(values)}f", *values)


def rigid_body(number, position, xyzw, tracked=True):
    return (
        struct.pack("<i", number)
        + floats(*position, *xyzw)
        + struct.pack("<fH", 0.001, int(tracked))
    )


def message(kind, content):
    return struct.pack("<HH", kind, len(content)) + content


def sections(version, *parts):
    """Sections of a frame: lists of encoded things."""
    for things in parts:
        body = b"".join(things)
        length = struct.pack("<i", len(body)) if version >= (4, 1) else b""
        yield struct.pack("<i", len(things)) + length + body


def frame(
    version=(3, 1),
    number=7,
    time=1.25,
    marker_sets=(),
    others=(),
    bodies=(),
    skeletons=(),
    labeled=(),
    plates=(),
):
    """A frame; marker sets are (name, points), skeletons (id, rigid bodies)."""
    sets = [
        text(name)
        + struct.pack("<i", len(points))
        + b"".join(floats(*p) for p in points)
        for name, points in marker_sets
    ]
    figures = [
        struct.pack("<ii", one, len(bones)) + b"".join(bones)
        for one, bones in skeletons
    ]
    markers = [
        struct.pack("<i", i) + floats(*p, 0.01) + struct.pack("<Hf", 2, 0.0005)
        for i, p in labeled
    ]
    channels = [
        struct.pack("<iii", i, 1, len(values)) + floats(*values) for i, values in plates
    ]
    assets = [[asset(3, bodies)]] if version >= (4, 1) else []
    parts = [sets, [floats(*p) for p in others], list(bodies), figures, *assets]
    parts += [markers, channels, channels]
    stamps = struct.pack("<IIdQQQ", 1, 2, time, 3, 4, 5)
    precise = struct.pack("<II", 6, 7) if version >= (4, 1) else b""
    end = precise + struct.pack("<hi", 0, 0)
    content = struct.pack("<i", number) + b"".join(sections(version, *parts))
    return message(7, content + stamps + end)


def asset(number, bodies):
    marker = struct.pack("<i", 9) + floats(0.1, 0.2, 0.3, 0.01)
    marker += struct.pack("<Hf", 0, 0.0)
    return (
        struct.pack("<ii", number, len(bodies))
        + b"".join(bodies)
        + struct.pack("<i", 1)
        + marker
    )


def body_model(version, number, name):
    model = text(name) + struct.pack("<ii", number, -1) + floats(0.0, 0.0, 0.0)
    if version >= (4, 2):
        model += floats(0.0, 0.0, 0.0, 1.0)
    model += struct.pack("<i", 2) + floats(*[0.1] * 6) + struct.pack("<ii", 0, 0)
    return model + (text("a") + text("b") if version >= (4, 0) else b"")


def models(version, marker_sets=(), bodies=(), skeletons=()):
    """Names of marker sets, of bodies by id, and of skeletons with their bones."""
    parts = [
        (0, text(name) + struct.pack("<i", len(own)) + b"".join(map(text, own)))
        for name, own in marker_sets
    ]
    parts += [(1, body_model(version, *body)) for body in bodies]
    parts += [
        (
            2,
            text(name)
            + struct.pack("<ii", number, len(bones))
            + b"".join(body_model(version, *bone) for bone in bones),
        )
        for number, name, bones in skeletons
    ]
    content = struct.pack("<i", len(parts))
    for kind, body in parts:
        length = struct.pack("<i", len(body)) if version >= (4, 1) else b""
        content += struct.pack("<i", kind) + length + body
    return message(5, content)


def server_info(version):
    name = b"Motive".ljust(256, b"\0")
    return message(1, name + bytes([3, 0, 0, 0, *version, 0, 0]))
