"""Bodenheimer1997: each published experiment that can be rebuilt, in small."""

import numpy as np
import presented
import pytest

from marey import papers, synth
from marey.numerics import robust
from marey.papers import Effort
from marey.papers.bodenheimer1997 import layouts, lengths, pictures, poses, takes
from marey.papers.measures import joint_errors
from marey.pose import compare_joint_use


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(508)
    return [lengths.draw_lengths(rng) for _ in range(100)]


def test_section_3_1_the_collarbone_of_508_frames(samples):
    """Paper: 13.3 cm by hand, 13.2 robust, 14.1 by the mean, 6 % off."""
    off = lengths.location_errors(samples)
    by_hand = np.mean([s.mean_without_outliers for s in samples])
    assert by_hand + off["mean"].mean() == pytest.approx(14.1, abs=0.1)
    assert by_hand + off["huber"].mean() == pytest.approx(13.3, abs=0.05)
    assert np.abs(off["tukey"]).max() < 0.02
    rms = {method: np.sqrt(np.mean(o**2)) for method, o in off.items()}
    assert rms["tukey"] < rms["huber"] < 0.02


def test_section_3_1_outliers_are_tagged_and_good_frames_are_not(samples):
    printed, ours = (
        lengths.tag_rates(samples, rule) for rule in lengths.RULES.values()
    )
    assert ours[1] == printed[1] == 1.0
    assert ours[2] < 0.01
    assert printed[2] == pytest.approx(0.045, abs=0.005)


@pytest.fixture(scope="module")
def walk():
    figure = synth.human(seed=0)
    return takes.prepare(
        takes.record_magnetic(figure, takes.perform_walk(figure, 0), 0)
    )


def test_section_3_2_a_walk_of_201_frames_in_4389_iterations(walk):
    """Here fewer, whatever the unknowns are."""
    assert walk.take.n_frames == 201
    for rotation in ("euler", "quaternion"):
        run = poses.solve_by_bfgs(
            walk, rotation=rotation, tolerance=poses.LOOSE_TOLERANCE
        )
        assert run.steps < 4389
        assert poses.rms_mm(takes.distances_from_data(walk, run.motion)) < 4.0
        assert poses.rms_mm(joint_errors(run.motion, walk.recording)) < 10.0


def test_section_3_2_outlier_joints_are_tagged_and_ignored(walk):
    """Without the tags the errors would be those of the gross frames."""
    away = np.linalg.norm(
        walk.virtual.positions
        - walk.recording.truth.motion.T_world_joint()[..., :3, 3],
        axis=-1,
    )
    assert walk.is_outlier[away > 0.1].mean() > 0.95
    assert walk.is_outlier[away < 0.02].mean() < 0.02


def test_figure_11_end_effectors_stay_where_they_were(walk):
    """Hands and feet move by millimetres, and with weight by tenths of them."""
    motion = poses.solve_by_bfgs(walk).motion
    for _, before, after, moved, heavy in poses.compare_end_effectors(
        walk, motion
    ).rows:
        assert after < before < 8.0
        assert moved < 4.0
        assert heavy < 0.3 * moved


def test_figure_10_shows_a_frame_without_outliers_and_its_worst_limb(walk):
    """A frame whose fit is neither good nor bad."""
    motion = poses.solve_by_bfgs(walk).motion
    shown = pictures.choose_frame(walk, motion)
    distance = takes.distances_from_data(walk, motion)
    assert not walk.is_outlier[shown.frame].any()
    assert distance[shown.frame, shown.joint] == distance[shown.frame].max()
    residual = np.sqrt(np.nanmean(distance**2, axis=1))
    below = np.mean(residual < residual[shown.frame])
    assert 0.4 < below < 0.6


def test_figure_11_the_hand_is_still_on_its_prop(reaches):
    """Inverse kinematics moves it by a few millimetres at most."""
    _, medium = reaches
    motion = poses.solve_by_bfgs(medium, weights=poses.WEIGHTS_WITHOUT_SENSOR).motion
    frame = pictures.touch_frame(medium, poses.FINGERS)
    assert not medium.is_outlier[frame].any()
    off = pictures.prop_distances(medium, motion, poses.FINGERS)
    assert off["captured"] < 0.015
    assert off["solved"] < off["captured"] + 0.004


@pytest.fixture(scope="module")
def reaches():
    """A low and a medium reach."""
    figure = synth.human(seed=1)
    return [
        takes.prepare(
            takes.record_magnetic(figure, takes.perform_reach(figure, height), 3)
        )
        for height in (takes.LOW_REACH, takes.MEDIUM_REACH)
    ]


def test_figures_7_to_9_a_reference_makes_shoulders_similar(reaches):
    low, medium = reaches
    options = {
        "rotation": "euler",
        "weights": poses.WEIGHTS_WITHOUT_SENSOR,
        "tolerance": 1e-6,
    }
    other = poses.solve_by_bfgs(medium, **options).motion
    alone = poses.solve_by_bfgs(low, **options).motion
    led = poses.solve_by_bfgs(low, reference=other, **options).motion
    angle = {}
    for name, motion in (("alone", alone), ("led", led)):
        use = compare_joint_use(motion, other)
        angle[name] = np.degrees(use.rotation_rms[use.names.index(poses.SHOULDER)])
    assert angle["led"] < 12.0
    assert angle["led"] < 0.5 * angle["alone"]
    # End effectors do not pay for it.
    hand = low.skeleton.index("RightHand")
    good = ~low.is_outlier[:, hand]
    off = [
        takes.distances_from_data(low, motion)[good, hand] for motion in (alone, led)
    ]
    assert np.sqrt(np.mean(off[1] ** 2)) < 1.05 * np.sqrt(np.mean(off[0] ** 2))


def test_section_2_a_slipped_sensor_shows_at_the_knee():
    seen = layouts.follow_walk_with_slip(Effort())
    (finding,) = seen.findings()
    assert finding.subject == layouts.SLIPPING_SENSOR
    assert finding.value == pytest.approx(layouts.SLIP_M, abs=0.015)


def test_section_2_2_a_zero_pose_calibrates_to_a_few_degrees():
    take = synth.human(seed=0).record(
        "walk", sensors=True, markers="none", seconds=0.5, rate=30.0
    )
    found = layouts.calibrate_by_zero_pose(take, 0)
    own = take.truth.T_body_sensor
    R = np.swapaxes(found.T_joint_sensor, -1, -2) @ own
    cosine = 0.5 * (np.trace(R[:, :3, :3], axis1=1, axis2=2) - 1.0)
    assert np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0))).max() < 15.0
    assert np.abs(found.T_joint_sensor[:, :3, 3] - own[:, :3, 3]).max() < 0.0032


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name == "virtual" else ())
        for name in papers.experiments("bodenheimer1997")
    ],
)
def test_every_experiment_has_tables_and_its_figures_can_be_drawn(name):
    presented.check("bodenheimer1997", name, Effort())


def test_the_printed_rule_is_twice_the_median_deviation():
    x = np.array([0.0, 1.0, -1.0, 2.0, -2.0, 2.0 * 1.483 + 0.01, 2.0 * 1.483 - 0.01])
    middle, scale = robust.median_and_scale(x)
    printed = next(iter(lengths.RULES.values()))
    np.testing.assert_array_equal(
        robust.tag_outliers(x, **printed), np.abs(x - middle) > 2.0 * scale
    )
