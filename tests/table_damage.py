"""Tables cut short or with a few bytes changed: what every reader must survive."""

import numpy as np

import marey


def same(a, b):
    """Whether two takes hold the same values under the same names."""
    return (
        a.full_labels == b.full_labels
        and a.sensor_names == b.sensor_names
        and np.array_equal(a.points, b.points, equal_nan=True)
        and np.array_equal(a.T_world_sensor, b.T_world_sensor, equal_nan=True)
    )


def assert_every_cut_is_noticed(path):
    """Cut a file at every byte: an error, a new finding, or nothing lost."""
    data, whole = path.read_bytes(), marey.read(path)
    for cut in range(len(data)):
        path.write_bytes(data[:cut])
        try:
            read = marey.read(path)
        except marey.MareyError:
            continue
        noticed = read.source.findings != whole.source.findings
        assert noticed or same(read, whole), f"cut at byte {cut}"


def assert_damage_is_typed(path, count):
    """Change a few bytes, `count` times: a typed error that prints, or a take."""
    data = np.frombuffer(path.read_bytes(), np.uint8)
    rng = np.random.default_rng(11)
    for _ in range(count):
        path.write_bytes(mutated(data, rng).tobytes())
        said = ""
        try:
            marey.read(path)
        except marey.MareyError as error:
            said = str(error)
        assert said.isprintable()


def mutated(data, rng):
    """Flip, overwrite, cut out or repeat a few bytes, more often near the front."""
    for _ in range(rng.integers(1, 4)):
        at = int(len(data) * rng.random() ** 2)
        end = at + int(rng.integers(1, 6))
        odd = rng.choice(np.frombuffer(b"\x00\t\n ,;=-.0199e:XWN\xff", np.uint8), 1)
        middle = [
            data[at:end] ^ np.uint8(1 << rng.integers(8)),
            np.repeat(odd, end - at),
            data[:0],
            np.tile(data[at:end], 2),
        ][rng.integers(4)]
        data = np.concatenate([data[:at], middle, data[end:]])
    return data
