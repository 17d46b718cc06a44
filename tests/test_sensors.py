"""Sensors as bodies, and the trees of programs that name them."""

import numpy as np

import marey
from marey.segmentation.sensors import _trees, known_tree

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


def test_known_trees_have_one_root_and_no_circle():
    for parents in _trees().values():
        assert list(parents.values()).count("") == 1
        for segment in parents:
            above, steps = segment, 0
            while above:
                above, steps = parents[above], steps + 1
                assert steps <= len(parents)


def test_segments_of_a_program_bring_its_tree_however_they_are_spelled():
    names = tuple(name.upper() for name in XSENS)
    program, parents = known_tree(names)
    assert program == "Xsens MVN"
    assert parents["LEFTFOOT"] == "LEFTLOWERLEG"
    assert "PELVIS" not in parents


def test_a_segment_that_is_missing_is_stepped_over():
    program, parents = known_tree(tuple(n for n in XSENS if n != "L3"))
    assert program == "Xsens MVN"
    assert parents["T12"] == "L5"


def test_other_names_bring_nothing():
    assert known_tree(("wand", "hip", "Head")) == ("", {})
    take = marey.Take(
        rate=60.0,
        T_world_sensor=np.tile(np.eye(4), (9, 2, 1, 1)),
        sensor_names=("a", "b"),
    )
    assert marey.segment(take).parents == {}


def test_the_tree_of_a_program_is_used_and_said(rng):
    from joint_samples import jointed

    T = np.concatenate([jointed(rng, 60) for _ in range(11)], axis=1)[:, : len(XSENS)]
    take = marey.Take(rate=60.0, T_world_sensor=T, sensor_names=XSENS)
    solution = marey.solve(take)
    codes = [finding.code for finding in solution.report.findings]
    assert "segments-recognised" in codes
    assert solution.tree.parent[XSENS.index("LeftFoot")] == XSENS.index("LeftLowerLeg")
