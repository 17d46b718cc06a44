"""Limits, holds, ground, friction, reference and outliers as options of a solve."""

from dataclasses import replace
from typing import Any

import numpy as np
import posed
import pytest

import marey
from marey import synth
from marey.cli.commands.solve import SolveArguments
from marey.pipeline.posing.settings import choose_method
from marey.pose.contact.ground_contacts import find_ground_contacts
from marey.pose.contact.holds import Hold


@pytest.fixture(scope="module")
def figure():
    return synth.human(seed=2)


@pytest.fixture(scope="module")
def walk(figure):
    return figure.record("walk", seconds=1.5, rate=60.0, noise=1e-3, seed=1)


@pytest.fixture(scope="module")
def solve():
    """Solve a recording without calibration, which takes most of the time."""
    known = {}

    def solve(take, **options):
        key = id(take), repr(options)
        if key not in known:
            known[key] = marey.solve(take, calibrate=False, **options)
        return known[key]

    return solve


def motion_of(solution):
    return solution.subjects[0].motions[0]


def codes(solution):
    return [finding.code for finding in solution.report.findings]


def flexion(motion, name):
    """Signed angle of a knee or elbow in degrees, by bones alone; negative: past
    straight.

    The sign is that of the mean normal of the frames that bend by 20 degrees or more.
    """
    skeleton, T = motion.skeleton, motion.T_world_joint()
    joint = skeleton.index(name)
    chain = [int(skeleton.parent[joint]), joint]
    chain.append(int(np.flatnonzero(skeleton.parent == joint)[0]))
    bones = np.diff(T[..., :3, 3][:, chain], axis=1)
    bones /= np.linalg.norm(bones, axis=-1, keepdims=True)
    normal = np.cross(bones[:, 0], bones[:, 1])
    normal = np.einsum("fji,fj->fi", T[:, chain[0], :3, :3], normal)
    bent = np.linalg.norm(normal, axis=-1) > np.sin(np.radians(20.0))
    axis = normal[bent].sum(axis=0)
    sine = normal @ axis / np.linalg.norm(axis)
    return np.degrees(np.arctan2(sine, np.sum(bones[:, 0] * bones[:, 1], axis=-1)))


# --- limits ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hyperextended(figure):
    """A walk whose left knee is bent backward by 25 degrees for six frames."""
    skeleton, take = posed.record(figure, "walk", seconds=1.5, rate=60.0)
    motion = take.truth.motion
    knee = motion.skeleton.index("LeftLowerLeg")
    wxyz, half = motion.wxyz.copy(), np.radians(-12.5)
    wxyz[40:46, knee] = [np.cos(half), 0.0, np.sin(half), 0.0]
    bent = replace(motion, skeleton=skeleton, wxyz=wxyz)
    return replace(take, points=bent.marker_points())


@pytest.mark.parametrize("pose", ["auto", "bfgs", "physics"])
def test_safe_limits_keep_knees_from_bending_backward(hyperextended, pose, solve):
    free = solve(hyperextended, limits="none", pose=pose)
    safe = solve(hyperextended, pose=pose)
    free, safe = (flexion(motion_of(one), "LeftLowerLeg") for one in (free, safe))
    assert free.min() < -15.0
    assert safe.min() > -10.0


def test_safe_limits_change_nothing_where_nobody_is_beyond(walk, solve):
    free, safe = (solve(walk, limits=word) for word in ("none", "safe"))
    assert np.isfinite(safe.skeleton.limits).any()
    np.testing.assert_array_equal(motion_of(free).wxyz, motion_of(safe).wxyz)
    np.testing.assert_array_equal(free.skeleton.offset, safe.skeleton.offset)


def test_limits_by_hand_come_from_a_file_or_a_mapping(walk, tmp_path, solve):
    path = tmp_path / "knees.toml"
    path.write_text("[LowerLeg]\nswing_x = [20, 150]\n")
    table = {"LowerLeg": {"swing_x": [20, 150]}}
    by_file, by_hand = (solve(walk, limits=one) for one in (path, table))
    np.testing.assert_array_equal(motion_of(by_file).wxyz, motion_of(by_hand).wxyz)
    assert flexion(motion_of(by_file), "LeftLowerLeg").min() > 19.5
    assert SolveArguments(limits=str(path)).read_options().limits == str(path)


@pytest.mark.parametrize("limits", ["tight", {"Tail": {"twist": [0, 1]}}])
def test_limits_that_are_none_are_refused(walk, limits, solve):
    with pytest.raises(marey.OptionError, match="limits"):
        solve(walk, limits=limits)


def test_limits_of_people_are_not_for_a_pendulum():
    take = synth.pendulum().record("swing", seconds=2.0)
    solution = marey.solve(take, limits="human")
    unused = [f for f in solution.report.findings if f.code == "option-unused"]
    assert [finding.subject for finding in unused] == ["limits"]
    assert np.isnan(solution.skeleton.limits).all()


# --- what a method can take -----------------------------------------------------------


def test_the_automatic_method_can_take_what_is_asked_for(walk):
    def method(**options):
        chosen = marey.SolveOptions(**options)
        return [choose_method(chosen, has_markers=one) for one in (True, False)]

    motion = walk.truth.motion
    assert method() == ["gauss_newton", "playback"]
    assert method(limits="human") == ["gauss_newton"] * 2
    assert method(reference=motion) == ["gauss_newton"] * 2
    assert method(hold="auto", reference=motion) == ["physics"] * 2
    assert method(friction=0.0, outlier=3.0) == ["physics"] * 2


@pytest.mark.parametrize(
    ("pose", "option", "value"),
    [
        ("playback", "limits", "human"),
        ("playback", "outlier", 3.0),
        ("bfgs", "outlier", 3.0),
        ("gauss_newton", "hold", "auto"),
        ("bfgs", "friction", 0.5),
    ],
)
def test_a_method_that_cannot_take_an_option_is_refused(pose, option, value):
    with pytest.raises(marey.OptionError, match=f"{option}.*need pose="):
        marey.SolveOptions(pose=pose, **{option: value})


# --- ground and friction --------------------------------------------------------------


def test_no_foot_is_planted_below_a_known_ground(walk, solve):
    """A ground 2 cm above the lowest plant lifts it, and is reported as given."""

    def lowest(solution):
        return min(contact.anchor[2] for contact in motion_of(solution).contacts)

    estimated = lowest(solve(walk, contacts=True))
    given = solve(walk, contacts=True, ground=estimated + 0.02)
    assert lowest(given) > estimated + 0.019
    ground = [f.value for f in given.report.findings if f.code == "ground"]
    assert ground == [estimated + 0.02]
    (feet,) = given.report.tables["pose"].rows
    assert feet[5] < 5.0, "held feet do not skate, in mm/s, however high the ground"


@pytest.mark.parametrize(
    ("above", "side"), [(0.0, ""), (0.04, "below"), (-0.03, ""), (-0.5, "above")]
)
def test_a_ground_far_from_the_feet_is_a_warning(walk, solve, above, side):
    (seen,) = [f for f in solve(walk).report.findings if f.code == "ground"]
    given = solve(walk, contacts=True, ground=seen.value + above)
    found = [f for f in given.report.findings if f.code == "ground-off"]
    assert len(found) == bool(side)
    assert all(side in f.message and f.severity == "warning" for f in found)


def test_planted_feet_slide_less_the_more_friction_they_have(walk, solve):
    """The weight of the walker presses feet down that have markers and no soles."""
    slides = []
    for friction in (0.0, 0.3, np.inf):
        motion = motion_of(solve(walk, friction=friction))
        slides.append(find_ground_contacts(motion, walk).skate(motion))
    assert (np.diff(slides) < -0.2 * np.array(slides[:-1])).all()


def test_a_ground_that_nothing_stands_on_is_reported(walk, solve):
    unused = [
        f for f in solve(walk, ground=0.05).report.findings if f.code == "option-unused"
    ]
    assert [finding.subject for finding in unused] == ["ground"]


@pytest.mark.parametrize("ground", ["low", np.nan])
def test_a_ground_is_a_word_or_a_height(ground):
    with pytest.raises(marey.OptionError, match="ground"):
        marey.SolveOptions(ground=ground)


def test_contacts_without_a_ground_contradict_each_other():
    with pytest.raises(marey.OptionError, match=r"ground.*contacts"):
        marey.SolveOptions(ground="none", contacts=True)
    with pytest.raises(marey.OptionError, match=r"ground.*friction"):
        marey.SolveOptions(ground="none", friction=0.0)


def test_a_ground_by_hand_comes_before_that_of_the_options(walk, solve):
    edit = marey.Edit(do="ground", normal=(0.0, 0.0, 1.0), height=0.06)
    by_edit = solve(walk, contacts=True, ground=0.1, edits=(edit,))
    by_option = solve(walk, contacts=True, ground=0.06)
    other = solve(walk, contacts=True, ground=0.1)
    np.testing.assert_allclose(motion_of(by_edit).wxyz, motion_of(by_option).wxyz)
    assert not np.allclose(motion_of(other).wxyz, motion_of(by_option).wxyz)


# --- holds ----------------------------------------------------------------------------


def test_a_hold_of_a_file_keeps_a_point_in_place(walk, tmp_path, solve):
    path = tmp_path / "holds.toml"
    path.write_text(
        '[[hold]]\njoint = "LeftHand"\nstart = 0.5\nend = 1.0\nstrength = 1e4'
    )
    free, held = (solve(walk, pose="physics", hold=h) for h in ("none", path))
    spread = []
    for solution in (free, held):
        motion = motion_of(solution)
        frames = (motion.times > 0.55) & (motion.times < 0.95)
        hand = motion.T_world_joint()[frames, motion.skeleton.index("LeftHand"), :3, 3]
        spread.append(np.linalg.norm(hand - hand.mean(axis=0), axis=1).max())
    assert spread[0] > 0.03
    assert spread[1] < 0.1 * spread[0]
    assert "hold-kept" in codes(held)
    read: Any = SolveArguments(hold=str(path)).read_options().hold
    assert read[0]["joint"] == "LeftHand"


def test_holds_by_object_and_by_row_are_the_same(walk, solve):
    row: dict[str, Any] = {
        "joint": "LeftHand",
        "target": [0.3, 0.2, 1.0],
        "start": 0.5,
        "end": 1.0,
    }
    hold = Hold(**row | {"target": np.array(row["target"])})
    one, other = (solve(walk, hold=[h]) for h in (row, hold))
    np.testing.assert_array_equal(motion_of(one).wxyz, motion_of(other).wxyz)


@pytest.mark.parametrize(
    "hold",
    [
        [{"joint": "LeftPaw"}],
        [{"joint": "LeftHand", "start": 2.0, "end": 1.0}],
        [{"joint": "LeftHand", "target": [0.0]}],
        [{"place": "LeftHand"}],
        [],
        "nowhere.toml",
    ],
)
def test_what_is_no_hold_is_refused(walk, hold, solve):
    with pytest.raises(marey.OptionError, match="hold"):
        solve(walk, hold=hold)


# --- reference and outliers -----------------------------------------------------------


def test_a_reference_moves_a_limb_that_is_not_seen(figure, walk, tmp_path, solve):
    """An arm unseen for 0.6 s swings with the reference, not on where it was."""
    complete = solve(walk)
    reference = motion_of(complete)
    points = walk.points.copy()
    arm = [
        i
        for i, label in enumerate(walk.labels)
        if label in ("LFRM", "LWRA", "LWRB", "LFIN", "LELB", "LUPA")
    ]
    gap = slice(30, 66)
    points[gap, arm] = np.nan
    hidden = replace(walk, points=points)
    path = tmp_path / "reference.npz"
    marey.write(reference, path)
    joint = reference.skeleton.index("LeftHand")
    error = []
    for option in (None, path):
        motion = motion_of(solve(hidden, reference=option))
        hand = motion.T_world_joint()[gap, motion.skeleton.index("LeftHand"), :3, 3]
        truth = reference.T_world_joint()[gap, joint, :3, 3]
        error.append(np.sqrt(np.mean(np.sum((hand - truth) ** 2, axis=-1))))
    assert error[1] < 0.5 * error[0]


def test_least_squares_has_the_least_residual(walk, solve):
    solutions = [solve(walk, outlier=value) for value in (0.0, 1.0)]
    rms = []
    for solution in solutions:
        motion = motion_of(solution)
        d = motion.marker_points() - walk.points[:, : len(walk.labels)]
        rms.append(np.sqrt(np.nanmean(np.sum(d**2, axis=-1))))
    assert rms[0] < rms[1]
