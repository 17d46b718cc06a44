"""The whole way, from a file of 6-DoF sensors to a skeleton and its motion."""

import json

import numpy as np
import pytest

import marey
from marey import metrics, synth
from marey.cli import main

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
        "segment",
        "joints",
        "tree",
        "skeleton",
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
    with pytest.raises(marey.DataError, match="Tail"):
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


def test_markers_alone_are_refused_with_what_is_needed():
    with pytest.raises(marey.DataError, match="6-DoF sensors"):
        marey.solve(synth.human().record("walk", seconds=1.0))


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
