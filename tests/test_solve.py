"""The whole way, from a file of 6-DoF sensors to a skeleton and its motion."""

import json
from dataclasses import replace

import numpy as np
import pytest
from numba import njit

import marey
from marey import metrics, synth
from marey.cli import main
from marey.numerics import geometry
from marey.pipeline.progress import FIRST_TIME, Clock
from marey.pipeline.report import loop_findings
from marey.tree import Loop

OPTIONS = {"markers": "none", "sensors": True, "rate": 60.0, "seconds": 12.0}


@pytest.fixture(scope="module")
def recording():
    return synth.human().record("exercise", seed=1, **OPTIONS)


def test_exact_data_gives_the_exact_figure(recording):
    solution = marey.solve(recording)
    score = metrics.compare(solution, recording)
    assert (score.tree.wrong, score.tree.missing) == (0, 0)
    assert score.skeletons[0].max < 1e-9
    assert score.motions[0].position_max < 1e-9
    assert list(solution.report.seconds) == [
        "read",
        "clean",
        "segment",
        "joints",
        "tree",
        "skeleton",
        "calibrate",
        "pose",
    ]


def test_noise_costs_millimetres():
    take = synth.human().record(
        "exercise", seed=2, noise=3e-3, turn_noise=5e-3, **OPTIONS
    )
    score = metrics.compare(marey.solve(take), take)
    assert (score.tree.wrong, score.tree.missing) == (0, 0)
    assert score.skeletons[0].rms < 3e-3


def test_several_takes_are_one_skeleton():
    figure = synth.human()
    takes = [
        figure.record("exercise", seed=3, noise=3e-3, **OPTIONS),
        figure.record("chicken_walk", seed=3, noise=3e-3, **OPTIONS),
    ]
    solution = marey.solve(takes)
    (subject,) = solution.subjects
    assert [m.n_frames for m in subject.motions] == [t.n_frames for t in takes]
    assert metrics.compare(solution.skeleton, takes[0]).rms < 3e-3


def test_a_known_tree_and_root_are_kept(recording):
    free = marey.solve(recording)
    names = free.bodies[0].names
    parents = {names[i]: names[p] for i, p in enumerate(free.tree.parent) if p >= 0}
    known = marey.solve(recording, options=marey.SolveOptions(tree=parents))
    assert known.tree.parent.tolist() == free.tree.parent.tolist()
    hung = marey.solve(recording, options=marey.SolveOptions(root="LeftHand"))
    assert hung.skeleton.names[0] == "LeftHand"
    both = marey.SolveOptions(tree=parents, root="LeftHand")
    assert marey.solve(recording, options=both).skeleton.names[0] == "LeftHand"
    with pytest.raises(marey.OptionError, match="root: found 'Tail"):
        marey.solve(recording, options=marey.SolveOptions(root="Tail"))


def test_a_solution_is_kept_whole(recording, tmp_path):
    solution = marey.solve(recording)
    marey.write(solution, tmp_path / "s.marey")
    again = marey.load(tmp_path / "s.marey")
    np.testing.assert_array_equal(again.motion.wxyz, solution.motion.wxyz)
    assert again.skeleton.names == solution.skeleton.names


@pytest.mark.parametrize(
    ("recordings", "complaint"),
    [([], "no recordings"), ("gone.csv", "nothing at this path")],
)
def test_nothing_to_solve_is_said(recordings, complaint):
    with pytest.raises(marey.MareyError, match=complaint):
        marey.solve(recordings)


# --- what may come in -----------------------------------------------------------------


@pytest.fixture(scope="module")
def noisy():
    return synth.linkage().record("swing", noise=1e-3, turn_noise=2e-3, **OPTIONS)


def with_poses(take, change):
    T = take.T_world_sensor.copy()
    changed = change(T)
    return replace(take, T_world_sensor=T if changed is None else changed)


def codes(solution):
    return {finding.code for finding in solution.report.findings}


def test_one_body_is_a_root_alone_and_said_so():
    take = marey.Take(
        rate=60.0, T_world_sensor=np.tile(np.eye(4), (9, 1, 1, 1)), sensor_names=("a",)
    )
    solution = marey.solve(take)
    assert solution.skeleton.names[0] == "a"
    assert "one-body" in [finding.code for finding in solution.report.findings]


def test_two_frames_are_solved_with_doubt(noisy):
    solution = marey.solve(noisy.cut(0, 2))
    assert solution.report.worst in ("warning", "error")
    assert sum(m.n_frames for s in solution.subjects for m in s.motions) >= 2


def test_bodies_never_seen_together_are_apart_and_said_so(noisy):
    def hide(T):
        T[::2, 0] = np.nan
        T[1::2, 1:] = np.nan

    solution = marey.solve(with_poses(noisy, hide))
    assert "pair-unseen" in codes(solution)
    assert "Torso" in [subject.skeleton.names[0] for subject in solution.subjects]
    named = {f.subject for f in solution.report.findings if f.code == "pair-unseen"}
    assert all("Torso" in name for name in named)


def test_rows_without_values_cost_nothing(noisy):
    def lose(T):
        T[100:140] = np.nan
        T[300:320, 2] = np.nan

    solution = marey.solve(with_poses(noisy, lose))
    score = metrics.compare(solution, noisy)
    assert (score.tree.wrong, score.tree.missing) == (0, 0)
    assert score.skeletons[0].rms < 2e-3


def test_a_sensor_that_never_moves_is_named(noisy):
    def hold(T):
        T[:, 5] = T[0, 5]

    solution = marey.solve(with_poses(noisy, hold))
    (finding,) = (f for f in solution.report.findings if f.code == "body-still")
    assert finding.subject == noisy.sensor_names[5]


def test_two_sensors_alike_move_as_one(noisy):
    def follow(T):
        T[:, 1] = T[:, 0]
        T[:, 1, :3, 3] += 0.1 * T[:, 0, :3, 2]

    solution = marey.solve(with_poses(noisy, follow))
    assert "joint-still" in codes(solution)


@pytest.mark.parametrize(
    ("R", "code"),
    [(2.0 * np.eye(3), "body-bent"), (np.diag([1.0, 1.0, -1.0]), "body-mirrored")],
    ids=["scaled", "mirrored"],
)
def test_orientations_that_are_no_rotations_are_named(noisy, R, code):
    def bend(T):
        T[:, 3, :3, :3] = T[:, 3, :3, :3] @ R

    solution = marey.solve(with_poses(noisy, bend))
    named = [f.subject for f in solution.report.findings if f.code == code]
    assert named == [noisy.sensor_names[3]]


def test_quaternions_in_the_wrong_order_are_reported(noisy):
    def roll(T):
        wxyz = geometry.quat_from_matrix(T[..., :3, :3])
        T[..., :3, :3] = geometry.matrix_from_quat(np.roll(wxyz, 1, axis=-1))

    solution = marey.solve(with_poses(noisy, roll))
    (finding,) = (f for f in solution.report.findings if f.code == "orientations-odd")
    assert finding.severity == "error"
    assert "quaternions" in finding.message


def test_where_the_volume_lies_does_not_matter(noisy):
    def away(T):
        T[..., :3, 3] += [10.0, -10.0, 10.0]

    here, there = marey.solve(noisy), marey.solve(with_poses(noisy, away))
    np.testing.assert_allclose(
        there.skeleton.lengths[1:], here.skeleton.lengths[1:], atol=1e-6
    )


def test_of_pairs_only_those_of_the_tree_are_doubted(noisy):
    solution = marey.solve(noisy)
    names, tree = solution.bodies[0].names, solution.tree
    joined = {frozenset((names[i], names[p])) for i, p in enumerate(tree.parent)}
    closed = {
        frozenset(names[k] for k in solution.joints.pair[loop.pair])
        for loop in tree.loops
    }
    for finding in solution.report.findings:
        if finding.code.startswith("joint-"):
            assert frozenset(finding.subject.split("-")) in joined | closed


def test_a_loop_is_reported_with_its_place(noisy):
    solution = marey.solve(noisy)
    row = int(np.setdiff1d(np.arange(15), solution.tree.edge)[0])
    tree = replace(solution.tree, loops=(Loop(pair=row),))
    (finding,) = loop_findings(solution.joints, tree, solution.bodies)
    a, b = (solution.bodies[0].names[k] for k in solution.joints.pair[row])
    assert (finding.code, finding.subject) == ("loop", f"{a}-{b}")
    far = 1e3 * np.linalg.norm(solution.joints.center_a[row])
    assert f"{far:.0f} mm from {a} at" in finding.message


# --- scale ----------------------------------------------------------------------------


def test_two_sensors_on_a_stick_set_the_scale(noisy):
    small = marey.rescale(noisy, 0.94)
    stick = np.zeros((noisy.n_frames, 2, 4, 4)) + small.T_world_sensor[:, :1]
    stick[:, 1, :3, 3] += 0.94 * 0.565 * stick[:, 1, :3, 0]
    take = replace(
        small,
        T_world_sensor=np.concatenate([small.T_world_sensor, stick], axis=1),
        sensor_names=(*small.sensor_names, "near", "far"),
    )
    options = marey.SolveOptions(rigid_pair=("near", "far", 0.565))
    place = marey.solve(take, options=options).take.T_world_sensor[..., :3, 3]
    np.testing.assert_allclose(
        place[:, :6], noisy.T_world_sensor[..., :3, 3], atol=1e-9
    )
    wrong = marey.SolveOptions(rigid_pair=("near", "Tail", 0.565))
    with pytest.raises(marey.OptionError, match="Tail"):
        marey.solve(take, options=wrong)


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as stop:
        main([str(a) for a in arguments])
    return stop.value.code, capsys.readouterr()


def test_the_command_line_solves_prints_and_writes(recording, tmp_path, capsys):
    marey.write(recording, tmp_path / "s01.csv")
    (tmp_path / "known.toml").write_text("[lengths]\nLeftLowerLeg = 0.44\n")
    code, printed = run(
        capsys,
        "solve",
        tmp_path / "s01.csv",
        "-o",
        tmp_path / "s01.bvh",
        "--measured",
        tmp_path / "known.toml",
    )
    assert code == 0
    assert "LeftLowerLeg" in printed.out
    assert "calculated cm" in printed.out
    assert marey.read_motion(tmp_path / "s01.bvh").n_frames == recording.n_frames


def test_the_command_line_takes_a_stick(noisy, tmp_path, capsys):
    marey.write(noisy, tmp_path / "s01.csv")
    names = noisy.sensor_names[:2]
    arguments = ("solve", tmp_path / "s01.csv", "--rigid-pair", *names, "0.5", "--json")
    code, printed = run(capsys, *arguments)
    assert code == 0
    found = json.loads(printed.out)["findings"]
    assert "take-scaled" in [finding["code"] for finding in found]


def test_the_command_line_speaks_json_and_refuses_early(recording, tmp_path, capsys):
    marey.write(recording, tmp_path / "s01.csv")
    code, printed = run(capsys, "solve", tmp_path / "s01.csv", "--json")
    report = json.loads(printed.out)
    assert code == 0
    assert len(report["tables"]["joints"]["rows"]) == 14
    taken = tmp_path / "taken.bvh"
    taken.write_text("mine")
    assert run(capsys, "solve", tmp_path / "s01.csv", "-o", taken)[0] == 2
    assert taken.read_text() == "mine"


def test_a_stage_that_is_compiled_first_is_told_so():
    told = []
    clock, kernel = Clock(told.append), njit(lambda x: x + 1)
    for _ in range(2):
        with clock.stage("pose"):
            kernel(1)
    assert told == ["pose", f"pose, {FIRST_TIME}", "pose"]
    assert list(clock.seconds) == ["pose"]
