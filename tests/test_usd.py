"""USD: what OpenUSD itself reads from it is what was written."""

import sys

import numpy as np
import pytest
import staged

import marey
from marey.io.scene import build_body_mesh
from marey.io.units_axes import points_to_file

usd = pytest.importorskip("pxr", reason="needs the extra usd")
from pxr import Usd, UsdGeom, UsdSkel, UsdValidation, Vt  # noqa: E402

HUNDREDTH_MM = 1e-5


def opened(thing, folder, suffix=".usda", **options):
    path = folder / f"scene{suffix}"
    marey.write(thing, path, overwrite=True, **options)
    return Usd.Stage.Open(str(path))


def played(stage, name, frames, step=1.0):
    """Joints and skinned vertices of a figure, by the queries of UsdSkel."""
    cache = UsdSkel.Cache()
    root = UsdSkel.Root(stage.GetPrimAtPath(f"/World/{name}"))
    cache.Populate(root, Usd.PrimDefaultPredicate)
    body = stage.GetPrimAtPath(f"/World/{name}/Body")
    skeleton = UsdSkel.Skeleton(stage.GetPrimAtPath(f"/World/{name}/Skeleton"))
    skel, skinning = cache.GetSkelQuery(skeleton), cache.GetSkinningQuery(body)
    joints, vertices = [], []
    for frame in range(frames):
        time = frame * step
        joints.append(np.array(skel.ComputeJointSkelTransforms(time))[:, 3, :3])
        points = Vt.Vec3fArray(UsdGeom.Mesh(body).GetPointsAttr().Get())
        moves = skel.ComputeSkinningTransforms(time)
        assert skinning.ComputeSkinnedPoints(moves, points, time)
        vertices.append(np.array(points))
    return np.array(joints), np.array(vertices)


def assert_shows(stage, name, motion, unit="m", up="z"):
    T = motion.T_world_joint()
    skin = build_body_mesh(motion.skeleton).skin(motion.skeleton, T)
    found = played(stage, name, motion.n_frames)
    for one, other in zip(found, (T[..., :3, 3], skin), strict=True):
        np.testing.assert_allclose(
            one, points_to_file(other, unit, up), atol=HUNDREDTH_MM
        )


@pytest.mark.parametrize("suffix", [".usda", ".usdc"])
def test_validation_finds_nothing(suffix, tmp_path):
    registry = UsdValidation.ValidationRegistry()
    context = UsdValidation.ValidationContext(registry.GetOrLoadAllValidators())
    for thing, options in (
        (staged.walk().skeleton, {}),
        (staged.handover(), {"markers": True}),
    ):
        stage = opened(thing, tmp_path, suffix, **options)
        assert [error.GetMessage() for error in context.Validate(stage)] == []


@pytest.mark.parametrize(("suffix", "up"), [(".usda", "z"), (".usdc", "y")])
def test_usdskel_shows_the_motion_and_its_clock(suffix, up, tmp_path):
    motion = staged.walk()
    stage = opened(motion, tmp_path, suffix, up=up)
    assert UsdGeom.GetStageUpAxis(stage) == up.upper()
    assert UsdGeom.GetStageMetersPerUnit(stage) == 1.0
    clock = stage.GetStartTimeCode(), stage.GetEndTimeCode()
    assert clock == (0.0, motion.n_frames - 1)
    assert stage.GetTimeCodesPerSecond() == motion.rate
    assert_shows(stage, "figure", motion, up=up)


def test_another_unit_is_stated(tmp_path):
    stage = opened(staged.walk(), tmp_path, unit="cm", up="y")
    assert UsdGeom.GetStageMetersPerUnit(stage) == 0.01
    joints, _ = played(stage, "figure", 2)
    wanted = staged.walk().T_world_joint()[:2, :, :3, 3]
    np.testing.assert_allclose(joints, points_to_file(wanted, "cm", "y"), atol=1e-3)
    with pytest.raises(marey.OptionError, match="y or z"):
        opened(staged.walk(), tmp_path, up="x")


def test_a_variant_chooses_the_take_of_all_subjects(tmp_path):
    solution = staged.handover()
    stage = opened(solution, tmp_path, markers=True)
    choices = stage.GetDefaultPrim().GetVariantSet("take")
    assert choices.GetVariantNames() == ["give", "take"]
    assert choices.GetVariantSelection() == "give"
    for number, name in enumerate(choices.GetVariantNames()):
        choices.SetVariantSelection(name)
        for subject, motion in staged.motions_of(solution, number).items():
            assert_shows(stage, subject, motion)
        assert_shows_markers(stage, solution.takes[number])


def assert_shows_markers(stage, take):
    balls = stage.GetPrimAtPath("/World/Markers").GetChildren()
    assert len(balls) == len(take.labels)
    for column, ball in enumerate(map(UsdGeom.Imageable, balls)):
        for frame in range(take.n_frames):
            seen = ball.ComputeVisibility(frame) == "inherited"
            assert seen == take.seen[frame, column]
            if seen:
                place = ball.ComputeLocalToWorldTransform(frame).ExtractTranslation()
                wanted = take.points[frame, column]
                np.testing.assert_allclose(place, wanted, atol=HUNDREDTH_MM)


@pytest.mark.parametrize("suffix", [".usda", ".usdc"])
def test_bytes_are_equal_when_written_again(suffix, tmp_path):
    paths = [tmp_path / f"{name}{suffix}" for name in ("one", "two")]
    for path in paths:
        marey.write(staged.walk(), path)
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_names_that_a_path_cannot_have_are_changed_and_kept_beside(tmp_path):
    skeleton = marey.Skeleton(
        names=("a b", "a_b", "7é"),
        parent=np.array([-1, 0, 1]),
        offset=np.tile([0.0, 0.0, 0.1], (3, 1)),
    )
    stage = opened(skeleton, tmp_path)
    skel = UsdSkel.Skeleton(stage.GetPrimAtPath("/World/figure/Skeleton"))
    assert list(skel.GetJointNamesAttr().Get()) == list(skeleton.names)
    assert UsdSkel.Topology(skel.GetJointsAttr().Get()).Validate()[0]
    assert len(set(skel.GetJointsAttr().Get())) == 3


def test_without_the_extra_the_error_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pxr.UsdSkel", None)
    with pytest.raises(marey.MissingExtraError, match=r"marey\[usd\]"):
        marey.write(staged.walk(), tmp_path / "walk.usda")
