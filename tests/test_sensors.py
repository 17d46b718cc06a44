"""Sensors as bodies, and the trees of programs that name them."""

import numpy as np
import pytest

import marey
from marey.segmentation.methods.sensors import recognise_program, sensor_trees
from marey.take import Source

XSENS = (
    "Pelvis",
    "L5",
    "L3",
    "T12",
    "T8",
    "Neck",
    "Head",
    "LeftShoulder",
    "LeftUpperArm",
    "LeftForeArm",
    "LeftHand",
    "RightShoulder",
    "RightUpperArm",
    "RightForeArm",
    "RightHand",
    "LeftUpperLeg",
    "LeftLowerLeg",
    "LeftFoot",
    "RightUpperLeg",
    "RightLowerLeg",
    "RightFoot",
)


def test_known_trees_have_one_root_and_no_cycle():
    for parents in sensor_trees().values():
        assert list(parents.values()).count("") == 1
        for segment in parents:
            ancestor, steps = segment, 0
            while ancestor:
                ancestor, steps = parents[ancestor], steps + 1
                assert steps <= len(parents)


def test_segments_of_a_program_have_its_tree_in_any_spelling():
    names = tuple(name.upper() for name in XSENS)
    program, parents = recognise_program(names)
    assert program == "Xsens MVN"
    assert parents["LEFTFOOT"] == "LEFTLOWERLEG"
    assert "PELVIS" not in parents


def test_each_program_is_recognised_by_its_names():
    for program, parents in sensor_trees().items():
        assert recognise_program(tuple(parents))[0] == program


def test_a_missing_segment_is_contracted():
    program, parents = recognise_program(tuple(n for n in XSENS if n != "L3"))
    assert program == "Xsens MVN"
    assert parents["T12"] == "L5"


def test_other_names_are_of_no_program():
    assert recognise_program(("wand", "hip", "Head")) == ("", {})
    take = marey.Take(
        rate=60.0,
        T_world_sensor=np.tile(np.eye(4), (9, 2, 1, 1)),
        sensor_names=("a", "b"),
    )
    assert marey.segment(take).parents == {}


def test_the_tree_of_a_program_is_used_and_reported(rng):
    from joint_samples import joined_poses

    T = np.concatenate([joined_poses(rng, 60) for _ in range(11)], axis=1)[
        :, : len(XSENS)
    ]
    take = marey.Take(rate=60.0, T_world_sensor=T, sensor_names=XSENS)
    solution = marey.solve(take)
    codes = [finding.code for finding in solution.report.findings]
    assert "segments-recognised" in codes
    assert solution.tree.parent[XSENS.index("LeftFoot")] == XSENS.index("LeftLowerLeg")


@pytest.mark.parametrize("suffix", [".bvh", ".amc"])
def test_the_hierarchy_that_a_file_states_is_used_and_reported(tmp_path, suffix):
    """The motion alone does not determine parents of bodies that never moved."""
    truth = marey.synth.human(seed=3).record("walk", seconds=2.0, rate=30.0).truth
    (motion,) = truth.motions
    path = tmp_path / f"walk{suffix}"
    marey.write(motion, path)
    take = marey.read(path)
    names, parent = motion.skeleton.names, motion.skeleton.parent
    stated = {
        names[joint]: names[parent[joint]]
        for joint in np.flatnonzero((parent >= 0) & ~motion.skeleton.is_end)
    }
    assert {child: take.source.parents.get(child) for child in stated} == stated
    solution = marey.solve(path)
    assert "hierarchy-stated" in [f.code for f in solution.report.findings]
    found, above = solution.tree.parent, solution.bodies[0].names
    got = {name: above[p] for name, p in zip(above, found, strict=True) if p >= 0}
    assert got == stated


def test_a_hierarchy_without_some_of_its_sensors_is_contracted():
    take = marey.Take(
        rate=60.0,
        T_world_sensor=np.tile(np.eye(4), (9, 2, 1, 1)),
        sensor_names=("hand", "chest"),
        source=Source(parents={"hand": "forearm", "forearm": "chest"}),
    )
    assert marey.segment(take).parents == {"hand": "chest"}


def test_the_hierarchy_of_the_file_goes_before_that_of_a_program():
    """A program's names may stand in a file that somebody rigged otherwise."""
    stated = {name: XSENS[0] for name in XSENS[1:]}
    take = marey.Take(
        rate=60.0,
        T_world_sensor=np.tile(np.eye(4), (9, len(XSENS), 1, 1)),
        sensor_names=XSENS,
        source=Source(parents=stated),
    )
    bodies = marey.segment(take)
    assert bodies.parents == stated
    assert [finding.code for finding in bodies.findings] == ["hierarchy-stated"]
