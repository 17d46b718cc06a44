"""People are whole: joints that nothing determines are there, and say so."""

from dataclasses import replace

import naive
import numpy as np
import pytest

import marey
from marey import synth
from marey.anatomy.toes import bend_toes
from marey.anatomy.whole_person import complete_motion, complete_person, observed_part

LIMBS = [
    "Shoulder",
    "UpperArm",
    "LowerArm",
    "Hand",
    "UpperLeg",
    "LowerLeg",
    "Foot",
    "Toes",
]
TRUNK = {"Hips", "Spine", "Chest", "Neck", "Head"}
PARTS_OF_A_FOOT = ("Foot", "Toes", "Toes_end")
WANTED = TRUNK | {side + part for side in ("Left", "Right") for part in LIMBS}


@pytest.fixture(scope="module")
def take():
    return synth.human(seed=3).record("walk", seconds=1.5, rate=60.0, noise=1e-3)


@pytest.fixture(scope="module")
def observed(take):
    return marey.solve(take, whole=False)


@pytest.fixture(scope="module")
def whole(take):
    return marey.solve(take)


def test_a_person_has_every_joint_of_a_figure(whole, observed):
    assert set(whole.skeleton.names) >= WANTED
    assert not set(observed.skeleton.names) >= WANTED
    found = [f for f in whole.report.findings if f.code == "joints-added"]
    assert len(found) == 1
    assert observed.skeleton.observed.all()


def test_what_is_observed_does_not_move(whole, observed):
    (before,), (after,) = (one.subjects[0].motions for one in (observed, whole))
    joints = [after.skeleton.index(name) for name in before.skeleton.names]
    np.testing.assert_allclose(
        after.T_world_joint()[:, joints], before.T_world_joint(), atol=1e-12
    )
    np.testing.assert_array_equal(after.wxyz[:, joints], before.wxyz)
    np.testing.assert_allclose(
        after.marker_points(), before.marker_points(), atol=1e-12
    )


def test_no_precision_is_invented(whole, observed):
    skeleton = whole.skeleton
    known = observed.skeleton.names
    added = [i for i, name in enumerate(skeleton.names) if name not in known]
    np.testing.assert_array_equal(np.flatnonzero(~skeleton.observed), added)
    assert np.isnan(skeleton.length_sd[added]).all()
    assert np.isnan(skeleton.covariance[added]).all()
    below = np.isin(skeleton.parent, added)
    assert np.isnan(skeleton.length_sd[below]).all()
    kept = [skeleton.index(name) for name in known]
    np.testing.assert_array_equal(
        skeleton.covariance[kept], observed.skeleton.covariance
    )
    toes = {"LeftToes", "RightToes"}
    moving = {skeleton.names[i] for i in added if skeleton.kind[i] != "fixed"}
    assert moving == toes
    assert not skeleton.rotates[added].any()
    motion = whole.subjects[0].motions[0]
    assert np.isnan(motion.angle_sd[:, added]).all()


def test_the_report_has_every_observed_centre_with_two_digits(whole):
    rows = whole.report.tables["joints"].rows
    centers = {row[0]: row[3] for row in rows if row[1]}
    assert {"Head", "LeftUpperArm", "LeftLowerLeg"} <= set(centers)
    assert all(center == float(f"{center:.2g}") for center in centers.values())
    assert {row[0] for row in whole.report.tables["joints"].rows[1:]} == set(centers)


def test_what_was_added_can_be_taken_away(whole, observed):
    wanted, found = observed.skeleton, observed_part(whole.skeleton)
    assert (found.names, found.kind) == (wanted.names, wanted.kind)
    np.testing.assert_array_equal(found.parent, wanted.parent)
    np.testing.assert_array_equal(found.marker_joint, wanted.marker_joint)
    np.testing.assert_allclose(found.offset, wanted.offset, atol=1e-12)
    assert observed_part(wanted).names == wanted.names


def test_a_whole_person_is_calibrated_like_an_observed_one(take, whole, observed):
    found, wanted = (
        marey.calibrate(one.skeleton, take).skeleton for one in (whole, observed)
    )
    assert found.names == wanted.names
    np.testing.assert_allclose(found.offset, wanted.offset, atol=1e-9)


def test_a_figure_has_no_spikes(whole):
    """Bones of a person are shorter than a third of the height, and no arm or leg of
    one side differs from the other by more than a quarter."""
    skeleton = whole.skeleton
    height = np.ptp(skeleton.rest()[:, 2, 3])
    assert skeleton.lengths.max() < height / 3.0
    for part in ("Shoulder", "UpperArm", "LowerArm", "Hand", "Foot", "Toes"):
        left, right = (
            skeleton.lengths[skeleton.index(side + part)] for side in ("Left", "Right")
        )
        assert left == pytest.approx(right, rel=0.25)


def test_no_bone_of_the_trunk_is_as_long_as_a_forearm(whole):
    """A spine that bends at the loins has an upper chest below neck and clavicles."""
    skeleton = whole.skeleton
    forearm = skeleton.lengths[skeleton.index("LeftHand")]
    for name in ("Spine", "Chest", "UpperChest", "Neck", "LeftShoulder"):
        assert skeleton.lengths[skeleton.index(name)] < forearm, name


def test_toes_and_hands_continue_their_limbs():
    """Legs that end at the shank, and arms at the forearm, are continued."""
    figure = synth.human()
    skeleton = complete_person(figure.skeleton)
    np.testing.assert_array_equal(skeleton.offset, figure.skeleton.offset)
    assert skeleton.names == figure.skeleton.names
    short = marey.Skeleton(
        names=("Hips", "LeftUpperLeg", "LeftLowerLeg", "RightUpperLeg"),
        parent=np.array([-1, 0, 1, 0]),
        offset=np.array([[0, 0, 0.9], [0, 0.1, 0], [0, 0, -0.42], [0, -0.1, 0]]),
    )
    whole = complete_person(short)
    added = ("LeftFoot", "LeftToes", "LeftToes_end")
    assert whole.names == (*short.names, *added)
    rest = dict(zip(whole.names, whole.rest()[:, :3, 3], strict=True))
    # Shank over thigh of usual people, women and men: shares of the stature.
    shank_of_thigh = (0.2492 + 0.2493) / (0.2124 + 0.2425)
    assert rest["LeftFoot"][2] == pytest.approx(0.48 - 0.42 * shank_of_thigh)
    assert rest["LeftToes_end"][0] > rest["LeftToes"][0] > rest["LeftFoot"][0]


def test_toes_stay_above_the_lowest_marker_of_a_low_ankle(observed):
    skeleton = observed.skeleton
    on_foot = skeleton.marker_joint == skeleton.index("LeftFoot")
    offset = skeleton.marker_offset.copy()
    offset[on_foot, 2] += -0.02 - offset[on_foot, 2].min()
    whole = complete_person(replace(skeleton, marker_offset=offset))
    height = whole.rest()[:, 2, 3]
    sole = height[whole.index("LeftFoot")] - 0.02
    assert height[whole.index("LeftToes")] >= sole
    assert height[whole.index("LeftToes_end")] >= sole


@pytest.mark.parametrize("side", ["Left", "Right"])
def test_toes_bend_where_they_would_pass_through_the_ground(whole, side):
    """The generated floor is at 0, and the tip stands where it is at rest."""
    motion, skeleton = whole.subjects[0].motions[0], whole.skeleton
    foot, toes, tip = map(skeleton.index, (f"{side}{x}" for x in PARTS_OF_A_FOOT))
    wxyz = motion.wxyz.copy()
    wxyz[:, toes] = [1.0, 0.0, 0.0, 0.0]
    straight = replace(motion, wxyz=wxyz).T_world_joint()
    T = motion.T_world_joint()
    sole = min(skeleton.offset[toes, 2] + skeleton.offset[tip, 2], 0.0)
    ankle = np.quantile(T[:, foot, 2, 3], 0.1)
    assert straight[:, tip, 2, 3].min() < ankle + sole - 0.02
    assert T[:, tip, 2, 3].min() > ankle + sole - 0.005
    lifted = T[:, tip, 2, 3] - straight[:, tip, 2, 3]
    assert lifted.min() > -1e-9
    assert (T[:, tip, 2, 3] <= T[:, toes, 2, 3] + 1e-9)[lifted > 1e-9].all()


@pytest.mark.parametrize("side", ["Left", "Right"])
def test_bent_toes_stand_where_their_plants_are(whole, side):
    """With gaps, which cut a plant in two, and with plants that overlap."""
    motion = whole.subjects[0].motions[0]
    skeleton = motion.skeleton
    foot, toes, tip = map(skeleton.index, (f"{side}{x}" for x in PARTS_OF_A_FOOT))
    contacts = [c for c in motion.contacts if c.joint.startswith(f"{side}Foot")]
    longest = max(contacts, key=lambda c: c.end - c.start)
    higher = longest.anchor + np.array([0.0, 0.0, 0.01])
    overlap = replace(longest, end=longest.end + 0.1, anchor=higher)
    root, time = motion.T_world_root.copy(), np.arange(motion.n_frames) / motion.rate
    root[np.searchsorted(time, 0.5 * (longest.start + longest.end))] = np.nan
    motion = replace(motion, T_world_root=root, contacts=(*motion.contacts, overlap))
    bent = bend_toes(motion)
    T = bent.T_world_joint()
    plants = [(c.start, c.end, c.anchor) for c in (*contacts, overlap)]
    at_rest = skeleton.offset[toes] + skeleton.offset[tip]
    ground = naive.ground_heights(time, plants, T[:, foot], at_rest)
    lifted = np.linalg.norm(bent.wxyz[:, toes, 1:], axis=1) > 0.0
    known = lifted & np.isfinite(ground)
    assert known.sum() > 3
    expected = np.minimum(ground, T[:, toes, 2, 3])
    np.testing.assert_allclose(T[known, tip, 2, 3], expected[known], atol=1e-12)


def test_toes_stay_straight_where_nothing_stands(whole):
    motion = replace(whole.subjects[0].motions[0], contacts=())
    toes = [motion.skeleton.index(name) for name in ("LeftToes", "RightToes")]
    assert (bend_toes(motion).wxyz[:, toes] == [1.0, 0.0, 0.0, 0.0]).all()


def test_other_figures_stay_as_they_are():
    for figure in (synth.pendulum(), synth.quadruped()):
        assert complete_person(figure.skeleton) is figure.skeleton


def test_a_completed_motion_needs_no_other_numbers(observed):
    motion = observed.subjects[0].motions[0]
    whole = complete_motion(motion, complete_person(motion.skeleton))
    assert whole.rate == motion.rate
    is_toe = [name.endswith("Toes") for name in whole.skeleton.names]
    still = ~whole.skeleton.observed & ~np.array(is_toe)
    assert (whole.wxyz[:, still] == [1.0, 0.0, 0.0, 0.0]).all()


@pytest.mark.parametrize("suffix", ["skel.json", "npz"])
def test_what_is_not_observed_is_known_after_reading(whole, tmp_path, suffix):
    path = tmp_path / f"person.{suffix}"
    marey.write(whole.skeleton, path)
    again = marey.read_skeleton(path)
    np.testing.assert_array_equal(again.observed, whole.skeleton.observed)


def test_a_whole_person_serves_another_day(take, whole, observed):
    """A completed skeleton that is given solves as the observed one does."""
    given = [marey.solve(take, skeleton=s.skeleton) for s in (observed, whole)]
    assert given[1].skeleton.names == whole.skeleton.names
    before, after = (solution.subjects[0].motions[0] for solution in given)
    joints = [after.skeleton.index(name) for name in before.skeleton.names]
    positions = after.T_world_joint()[..., :3, 3][:, joints]
    expected = before.T_world_joint()[..., :3, 3]
    np.testing.assert_allclose(positions, expected, atol=1e-6)
