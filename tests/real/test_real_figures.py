"""Figures of many kinds: animals, a rider and a wheelchair, two players; the floor."""

import numpy as np
import pytest
from real import loaders, optical

import marey
from marey.joints import fit_joints
from marey.rig.ground import estimate_ground
from marey.segmentation import segment
from marey.topology import infer_tree

# --- animals: points that are joints --------------------------------------------------


@pytest.fixture(scope="module")
def rat(recordings):
    return marey.solve(loaders.load_rat(recordings / "animal_rat"))


@pytest.fixture(scope="module")
def dog(recordings):
    return marey.solve(loaders.load_dog(recordings / "animal_dog"))


LEGS = {
    f"{end}{side}{part}"
    for end in ("Front", "Hind")
    for side in ("Left", "Right")
    for part in ("UpperLeg", "LowerLeg", "Foot")
}


@pytest.mark.parametrize("animal", ["rat", "dog"])
def test_an_animal_is_one_figure_with_the_names_of_one(animal, request):
    solution = request.getfixturevalue(animal)
    assert len(solution.subjects) == 1
    assert {"Hips", "Chest", "Spine", "Neck", "Head"} | LEGS <= set(
        solution.skeleton.names
    )
    assert solution.report.worst != "error"


def test_the_bones_of_the_rat_are_those_that_its_file_draws(rat, recordings):
    """All but one: snout and ears are drawn as a triangle, a tree has no cycles."""
    shared = rat.bodies[0].shared
    pairs = loaders.rat_pairs(recordings / "animal_rat")
    labels = rat.take.labels
    missing = [
        {labels[i] for i in pair}
        for pair in pairs
        if not shared[pair].all(axis=0).any()
    ]
    assert len(missing) <= 1
    assert set().union(*missing) <= {"Snout", "EarL", "EarR"}


def test_the_left_of_the_rat_is_left(rat):
    bodies = rat.bodies[0]
    for point, body in enumerate(bodies.marker_body):
        label, name = rat.take.labels[point], bodies.names[body]
        if label[:-1] in ("Knee", "Ankle", "Foot", "Elbow", "Wrist", "Hand"):
            assert ("Left" if label.endswith("L") else "Right") in name, (label, name)


def test_bones_of_the_dog_have_constant_lengths(dog):
    """Its joints were solved with constant bones; ours are the same to 0.1 mm."""
    bodies = dog.bodies[0]
    for body in bodies.shared.T:
        points = dog.take.points[:, body]
        distance = np.linalg.norm(points[:, :, None] - points[:, None], axis=-1)
        assert np.ptp(distance, axis=0).max() < 1e-4


@pytest.mark.parametrize(("animal", "max_residual"), [("rat", 3e-3), ("dog", 1e-4)])
def test_the_skeleton_of_an_animal_follows_its_points(animal, max_residual, request):
    solution = request.getfixturevalue(animal)
    skeleton = solution.skeleton
    T = solution.motion.T_world_joint()[:, skeleton.marker_joint]
    positions = T[..., :3, 3] + np.einsum(
        "fmij,mj->fmi", T[..., :3, :3], skeleton.marker_offset
    )
    index = [solution.take.full_labels.index(name) for name in skeleton.marker_labels]
    residual = np.linalg.norm(positions - solution.take.points[:, index], axis=-1)
    assert np.nanmedian(residual) < max_residual


# --- separate figures, and the ground -------------------------------------------------


def test_a_wheelchair_and_its_rider_are_two(recordings):
    known = optical.SETS["racing"](recordings)
    bodies = segment(known.takes, method="overlap")[0]
    tree = infer_tree(fit_joints(bodies))
    assert len(tree.roots) == 2
    chair = [i for i, names in enumerate(known.allowed) if names == ("chair",)]
    rider = [i for i in range(len(known.allowed)) if i not in chair]
    trees = [len(tree.path(int(root), int(tree.roots[0]))) > 0 for root in tree.roots]
    assert trees == [True, False]

    def root_of(marker):
        body = int(bodies.marker_body[marker])
        return next(int(r) for r in tree.roots if tree.path(body, int(r)))

    assert len({root_of(marker) for marker in chair}) == 1
    assert len({root_of(marker) for marker in rider}) == 1


def test_two_players_are_two(recordings):
    known = optical.SETS["tennis"](recordings)
    tree = infer_tree(fit_joints(segment(known.takes, method="overlap")))
    assert len(tree.roots) == 2


FLOORS = {
    "cmu/02_01.c3d": (0.0, 0.06),
    "cmu/07_01.c3d": (0.0, 0.06),
    "btk_plugingait/PiG_Motion-FlatFoot-Full.c3d": (0.0, 0.06),
    "addbio_uhlrich_s2/walking1.trc": (0.0, 0.08),
    "biobuddy_functional/right_hip.c3d": (0.0, 0.06),
}


@pytest.mark.parametrize("file", FLOORS)
def test_the_floor_is_just_below_the_feet(file, recordings):
    low, high = FLOORS[file]
    assert low <= estimate_ground(marey.read(recordings / file)).height <= high
