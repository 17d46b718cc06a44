"""Names of other programs: the pose stays, whatever joints they have."""

from dataclasses import replace

import numpy as np
import pytest
import staged

import marey
from marey.anatomy import names as vrm
from marey.anatomy.name_schemes import recognise_joints
from marey.anatomy.renaming import find_scheme, rename_motions
from marey.cli import main

SCHEMES = ("vrm", "humanik", "mixamo", "unreal", "cmu", "smpl", "opensim")
every_scheme = pytest.mark.parametrize("scheme", SCHEMES)


def stiff():
    """A walk whose clavicles and neck do not move, so every scheme can hold it."""
    motion = staged.walk()
    wxyz = motion.wxyz.copy()
    rigid = [vrm.NECK, *vrm.both_sides(vrm.SHOULDER), vrm.CHEST]
    for name in rigid:
        joint = motion.skeleton.index(name)
        wxyz[:, joint] = marey.geometry.quat_exp(np.array([0.1, -0.2, 0.05]))
    return replace(motion, wxyz=wxyz)


def renamed(motion, scheme):
    _, (moved,), findings = rename_motions(
        motion.skeleton, (motion,), find_scheme(scheme)
    )
    return moved, findings


def places(motion):
    """World poses by anatomical name, of the joints that any scheme names."""
    T = motion.T_world_joint()
    known = recognise_joints(motion.skeleton.names)
    return {name: T[:, joint] for joint, name in known.items()}


@every_scheme
def test_the_pose_of_every_joint_that_both_have_is_kept(scheme):
    before = stiff()
    after, findings = renamed(before, scheme)
    assert not [f for f in findings if f.code == "names-merged"]
    old, new = places(before), places(after)
    both = set(old) & set(new)
    assert {vrm.HIPS, vrm.HEAD, "LeftHand", "RightFoot", "LeftUpperArm"} <= both
    for name in both - {vrm.NECK, *vrm.both_sides(vrm.SHOULDER)}:
        np.testing.assert_allclose(new[name], old[name], atol=1e-6)
    trunk = find_scheme(scheme).trunk_names([vrm.SPINE, vrm.CHEST])
    assert [n for n in after.skeleton.names if n in trunk] == trunk


@every_scheme
def test_there_and_back_is_the_same_pose(scheme):
    before = stiff()
    back, _ = renamed(renamed(before, scheme)[0], "vrm")
    old, new = places(before), places(back)
    for name in set(old) - {vrm.NECK, *vrm.both_sides(vrm.SHOULDER)}:
        np.testing.assert_allclose(new[name], old[name], atol=1e-6)


def test_our_own_names_change_nothing():
    before = staged.walk()
    after, findings = renamed(before, "vrm")
    assert findings == ()
    assert set(before.skeleton.names) - set(after.skeleton.names) == {
        *("HeadEnd", "LeftHandEnd", "RightHandEnd", "LeftHeel", "RightHeel")
    }
    old, new = places(before), places(after)
    assert set(old) == set(new)
    for name in old:
        np.testing.assert_array_equal(old[name], new[name])


def test_a_joint_that_moves_and_is_merged_is_reported_with_its_error():
    motion = staged.walk()
    skeleton = motion.skeleton
    wxyz = motion.wxyz.copy()
    angle = np.linspace(-0.2, 0.2, motion.n_frames)[:, None]
    neck = skeleton.index(vrm.NECK)
    wxyz[:, neck] = marey.geometry.quat_exp(angle * [0.0, 1.0, 0.0])
    after, findings = renamed(replace(motion, wxyz=wxyz), "opensim")
    (finding,) = [f for f in findings if f.code == "names-merged"]
    assert finding.subject == vrm.NECK
    old, new = places(replace(motion, wxyz=wxyz)), places(after)
    error = np.linalg.norm((old[vrm.HEAD] - new[vrm.HEAD])[:, :3, 3], axis=1).max()
    assert finding.value == pytest.approx(error)
    np.testing.assert_allclose(
        new[vrm.HEAD][:, :3, :3], old[vrm.HEAD][:, :3, :3], atol=1e-9
    )


def test_markers_stay_where_they_are():
    motion = stiff()
    joints = [motion.skeleton.index(n) for n in (vrm.CHEST, vrm.NECK, "LeftShoulder")]
    marked = replace(
        motion.skeleton,
        marker_labels=("A", "B", "C"),
        marker_joint=np.array(joints),
        marker_offset=np.array([[0.1, 0.0, 0.0], [0.0, 0.1, 0.0], [0.0, 0.0, 0.1]]),
    )
    before = replace(motion, skeleton=marked)
    for scheme in SCHEMES:
        after, _ = renamed(before, scheme)
        np.testing.assert_allclose(
            after.marker_points(), before.marker_points(), atol=1e-6
        )


def test_a_picture_of_the_names():
    names = renamed(staged.walk(), "mixamo")[0].skeleton.names
    assert names[0] == "mixamorig:Hips"
    spine = [n for n in names if "Spine" in n]
    assert spine == ["mixamorig:Spine", "mixamorig:Spine1", "mixamorig:Spine2"]
    assert {"mixamorig:LeftForeArm", "mixamorig:RightUpLeg"} <= set(names)
    smpl = renamed(staged.walk(), "smpl")[0].skeleton.names
    assert {"L_Collar", "R_Knee", "Spine3", "L_Foot"} <= set(smpl)


def test_files_have_the_names(tmp_path):
    lost = marey.write(staged.walk(), tmp_path / "walk.bvh", names="unreal")
    assert "spine_03" in marey.read_motion(tmp_path / "walk.bvh").skeleton.names
    assert not [f for f in lost if f.code == "names-merged"]
    table = tmp_path / "mine.toml"
    table.write_text('sides = ["li", "re"]\nHips = "Becken"\nUpperLeg = "Bein_#"\n')
    marey.write(staged.walk().skeleton, tmp_path / "rest.skel.json", names=table)
    names = marey.read_skeleton(tmp_path / "rest.skel.json").names
    assert {"Becken", "Bein_li", "Bein_re", vrm.SPINE, "LeftShoulder"} <= set(names)


def test_people_of_a_scene_are_renamed_and_props_are_not(tmp_path):
    marey.write(staged.handover(), tmp_path / "both.gltf", names="mixamo")
    text = (tmp_path / "both.gltf").read_text()
    assert text.count('"mixamorig:Hips"') == 2
    assert '"Prop"' in text


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("Hips = 3", "no UpperLeg"),
        ('Hips = "a"\nUpperLeg = "b"\nWings = "c"', "Wings"),
        ('Hips = "a"\nUpperLeg = "b"\nsides = ["l"]', "something else"),
        ("[", "TOML"),
    ],
)
def test_a_table_that_is_no_scheme_is_refused(content, says, tmp_path):
    path = tmp_path / "bad.toml"
    path.write_text(content)
    with pytest.raises(marey.OptionError, match=says):
        find_scheme(path)


def test_what_does_not_fit_is_refused(tmp_path):
    dog = marey.synth.quadruped().skeleton
    with pytest.raises(marey.OptionError, match="a person's hips"):
        marey.write(dog, tmp_path / "dog.glb", names="mixamo")
    with pytest.raises(marey.OptionError, match="one of vrm"):
        marey.write(staged.walk(), tmp_path / "walk.glb", names="maximo")
    with pytest.raises(marey.OptionError, match="a motion or a skeleton"):
        marey.write(staged.handover(), tmp_path / "both.marey", names="mixamo")
    assert list(tmp_path.iterdir()) == []


def test_the_command_line_takes_names(tmp_path, capsys):
    source = tmp_path / "walk.marey"
    marey.write(staged.walk(), source)
    for scheme, code in (("smpl", 0), ("smlp", 2)):
        target = str(tmp_path / f"{scheme}.glb")
        with pytest.raises(SystemExit) as stop:
            main(["convert", str(source), target, "--names", scheme])
        assert stop.value.code == code
    assert b'"L_Collar"' in (tmp_path / "smpl.glb").read_bytes()
    assert "one of vrm" in capsys.readouterr().err
