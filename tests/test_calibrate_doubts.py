"""Doubts of a person's bones are honest where skin moves, whatever the person does."""

import numpy as np
import pytest

from marey import build_skeleton, fit_joints, segment, synth
from marey.calibration import calibrate
from marey.topology import named_tree

# Not upper arms: those of `synth.human` are 15 % longer than people's, three standard
# deviations of what is known of people beforehand.
BONES = [
    side + bone for bone in ("LowerLeg", "Foot", "Hand") for side in ("Left", "Right")
]
MOTIONS = ("walk", "kick_punch", "exercise", "circle", "swing")


def started(take):
    bodies = segment(take)
    joints = fit_joints(bodies)
    tree = named_tree(bodies.parents, bodies.names, joints)
    return build_skeleton(bodies, joints, tree)


def drawn(seed, motion, skin):
    """A person of some stature in a short take, and how its bones come out."""
    rng = np.random.default_rng(seed)
    figure = synth.human(rng.uniform(1.5, 2.0), seed=seed)
    take = figure.record(
        motion,
        seconds=3.0,
        rate=60.0,
        markers=("sparse41", "set53")[seed % 2],
        noise=5e-4,
        soft_tissue=skin,
        seed=seed,
    )
    return figure.skeleton, calibrate(started(take), take)


def scores(found, true):
    """Errors of bones over the standard deviations told for them."""
    return [
        (found.lengths[found.index(name)] - true.lengths[true.index(name)])
        / found.length_sd[found.index(name)]
        for name in BONES
    ]


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("skin", [0.003, 0.010])
def test_doubts_are_honest_where_skin_moves(skin):
    """As those of 200 draws are, see `benchmarks/calibrate.py`."""
    z = []
    for seed in range(10):
        true, found = drawn(seed, MOTIONS[seed % len(MOTIONS)], skin)
        z += scores(found.skeleton, true)
    assert 0.8 < np.sqrt(np.mean(np.square(z))) < 1.5


@pytest.mark.usefixtures("unchecked")
def test_skin_is_told_from_noise_where_one_joint_moves_at_a_time():
    """Most markers show noise most of the time; those that move tell the joints."""
    _, moving = drawn(2, "exercise", 0.010)
    _, firm = drawn(2, "exercise", 0.0)
    assert moving.white_share < 0.6
    assert firm.white_share == 1.0
