"""`marey convert` from every format that is read to every format that is written.

A conversion keeps the positions and says what it loses, or it is refused in words; and
it touches no file but those it writes.
"""

import foreign
import numpy as np
import pytest
import samples

import marey
from marey.cli import main
from marey.io import recognise
from marey.io.losses import find_losses

SOURCES = [
    (fmt, noun)
    for fmt in marey.formats()
    for noun in ("take", "motion")
    if getattr(fmt, f"read_{noun}") and getattr(fmt, f"write_{noun}")
] + [
    (fmt, "foreign")
    for fmt in marey.formats()
    if fmt.name in foreign.FILES and (fmt.read_take or fmt.read_motion)
]
TARGETS = [
    fmt
    for fmt in marey.formats()
    if any(getattr(fmt, f"write_{noun}") for noun in ("take", "motion", "skeleton"))
    and fmt.reads  # Tests of their own look into files that are only written.
]


def source_file(fmt, noun, folder):
    path = folder / f"source{fmt.suffixes[0]}"
    if noun == "foreign":
        path.write_bytes(foreign.FILES[fmt.name])
    else:
        marey.write(samples.SAMPLES[noun](), path)
    return path


def kept(path):
    """What a target that holds motions gets of a file, and one that does not."""
    take = marey.read(path, analog=True)
    try:
        return take, marey.read_motion(path)
    except marey.FormatError:
        return take, None


def positions(take):
    """Positions of markers and sensors by name, and where they are known."""
    points = np.concatenate([take.points, take.T_world_sensor[..., :3, 3]], axis=1)
    names = [*take.labels, *take.sensor_names]
    return dict(zip(names, points.swapaxes(0, 1), strict=True))


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as stop:
        main([str(a) for a in arguments])
    printed = capsys.readouterr()
    return stop.value.code, " ".join(printed.err.split())


@pytest.mark.parametrize("target", TARGETS, ids=lambda fmt: fmt.name)
@pytest.mark.parametrize(
    ("source", "noun"), SOURCES, ids=[f"{fmt.name}-{noun}" for fmt, noun in SOURCES]
)
def test_a_conversion_keeps_positions_or_is_refused(
    source, noun, target, tmp_path, capsys
):
    path = source_file(source, noun, tmp_path)
    (tmp_path / "bystander.txt").write_text("mine")
    take, motion = kept(path)
    before = contents(tmp_path)
    asked = tmp_path / f"target{target.suffixes[0]}"
    code, said = run(capsys, "convert", path, asked)
    after = contents(tmp_path)
    possible = bool(target.write_take or (motion is not None and target.write_motion))
    assert (code == 0) == possible, said
    assert {name: after[name] for name in before} == before
    if not possible:
        assert code == 2
        assert f"found '{target.name}', need a format that holds a" in said
        assert after.keys() == before.keys()
        return
    assert {name.partition(".")[0] for name in after.keys() - before.keys()} == {
        "target"
    }
    assert recognise(asked).name == target.name
    thing = motion if motion is not None and target.write_motion else take
    if thing is motion and target.read_motion is None:
        with pytest.raises(marey.FormatError, match="joint coordinates"):
            marey.read(asked)
        return
    lost = find_losses(thing, target)
    assert all(loss.message in said for loss in lost)
    assert said.count("does not keep") == len(lost)
    # An error of a joint's angle is an error of position at the ends of its bones.
    rounding = target.precision * (1 if thing is take else 20)
    if target.reads:
        assert_same_places(marey.read(asked), take, max(rounding, 1e-12))


def assert_same_places(found, wanted, rounding):
    """The same items at the same positions, as finely as the target writes them."""
    assert found.rate == pytest.approx(wanted.rate, rel=1e-6)
    found, wanted = positions(found), positions(wanted)
    assert found.keys() == wanted.keys()
    for name, points in wanted.items():
        np.testing.assert_allclose(found[name], points, rtol=1e-12, atol=rounding)


def test_every_source_and_target_is_tried():
    read = {fmt.name for fmt in marey.formats() if fmt.read_take or fmt.read_motion}
    assert {fmt.name for fmt, _ in SOURCES} == read
