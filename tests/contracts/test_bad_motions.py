"""Motions that are hard to write: a typed error, or the best file and a finding."""

from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
import samples

import marey
from marey import synth
from marey.errors import MareyError

WRITERS = [
    pytest.param(fmt, id=fmt.name)
    for fmt in marey.formats()
    if fmt.write_motion is not None
]
every_writer = pytest.mark.parametrize("fmt", WRITERS)


@pytest.fixture(scope="module")
def person():
    return synth.human(seed=1).record("walk", seconds=0.1, rate=50.0).truth.motion


@pytest.fixture(scope="module")
def dog():
    return synth.quadruped().record("walk", seconds=0.1, rate=50.0).truth.motion


def write(motion, fmt, folder, **options):
    """Write a motion, and return the findings; nothing is left behind by an error."""
    path = folder / f"a{fmt.suffixes[0]}"
    try:
        findings = marey.write(motion, path, **options)
    except MareyError:
        assert not list(folder.iterdir())
        raise
    assert path.stat().st_size > 0
    return findings


@every_writer
@pytest.mark.parametrize("names", ["mixamo", "unreal"])
def test_a_dog_gets_no_names_of_people(dog, fmt, names, tmp_path):
    with pytest.raises(marey.OptionError, match="names"):
        write(dog, fmt, tmp_path, names=names)


@every_writer
def test_a_bone_without_length_can_be_written(person, fmt, tmp_path):
    offset = person.skeleton.offset.copy()
    offset[person.skeleton.index("LeftHand")] = 0.0
    flat = replace(person, skeleton=replace(person.skeleton, offset=offset))
    write(flat, fmt, tmp_path)


@every_writer
def test_a_root_that_is_lost_for_a_while_holds_its_last_pose(person, fmt, tmp_path):
    T, wxyz = person.T_world_root.copy(), person.wxyz.copy()
    T[2:4], wxyz[2:4] = np.nan, np.nan
    findings = write(replace(person, T_world_root=T, wxyz=wxyz), fmt, tmp_path)
    if "gaps" in fmt.loses:
        assert "gaps" in {finding.subject for finding in findings}


@every_writer
def test_a_motion_that_is_never_known_is_whole_or_refused(person, fmt, tmp_path):
    """Any other error than those of marey fails here."""
    unknown = replace(
        person,
        T_world_root=np.full_like(person.T_world_root, np.nan),
        wxyz=np.full_like(person.wxyz, np.nan),
    )
    with suppress(MareyError):
        write(unknown, fmt, tmp_path)


ODD_NAMES = ("Hips", "a b", "a/b", "ä&<>\"'", "9", "ground", "動")


@every_writer
def test_names_that_a_format_cannot_spell_give_a_whole_file(fmt, tmp_path):
    motion = samples.motion()
    odd = replace(motion, skeleton=replace(motion.skeleton, names=ODD_NAMES))
    findings = write(odd, fmt, tmp_path)
    if fmt.name in {"amc", "osim", "urdf", "usd"}:
        assert "names-changed" in {finding.code for finding in findings}
    if fmt.read_motion is not None:
        found = marey.read_motion(tmp_path / f"a{fmt.suffixes[0]}")
        assert len(set(found.skeleton.names)) == len(ODD_NAMES)
        np.testing.assert_allclose(
            np.sort(found.T_world_joint()[..., :3, 3], axis=1),
            np.sort(motion.T_world_joint()[..., :3, 3], axis=1),
            atol=1e-5,
        )


@pytest.fixture(scope="module")
def couple(person):
    """A solution of two subjects in one take."""
    joints = [person.skeleton.index(name) for name in ("Hips", "LeftUpperLeg")]
    take = marey.Take(
        rate=person.rate,
        T_world_sensor=person.T_world_joint()[:, joints],
        sensor_names=("pelvis", "thigh"),
    )
    solution = marey.solve(take)
    one = solution.subjects[0]
    return replace(solution, subjects=(one, replace(one, name="other")))


@every_writer
def test_two_subjects_are_all_written_or_one_is_asked_for(couple, fmt, tmp_path):
    if fmt.write_solution is not None and not fmt.one_subject:
        write(couple, fmt, tmp_path)
        return
    with pytest.raises(marey.DataError, match="subject"):
        write(couple, fmt, tmp_path)


@every_writer
def test_the_same_motion_gives_the_same_bytes(person, fmt, tmp_path):
    """All files of a format, written at two times into two folders."""
    folders = [tmp_path / name for name in ("first", "second")]
    for folder in folders:
        folder.mkdir()
        write(person, fmt, folder)
    first, second = (
        {path.name: path.read_bytes() for path in folder.iterdir()}
        for folder in folders
    )
    assert first == second
