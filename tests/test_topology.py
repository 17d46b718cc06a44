"""Trees: the right one from good joints, several for strangers, doubts stated."""

from dataclasses import replace

import jointed
import numpy as np
import pytest

import marey
from marey import metrics, synth
from marey.segment import segment
from marey.topology import edge_costs, infer_tree, named_tree

FIGURES = {
    "human": synth.human(),
    "robot": synth.robot(),
    "quadruped": synth.quadruped(),
    "linkage": synth.linkage(),
    "pendulum": synth.pendulum(),
    "snowman": synth.snowman(),
}


@pytest.fixture(scope="module")
def walker():
    take, bodies = jointed.sensed(FIGURES["human"], "chicken_walk", seconds=6.0)
    return take, bodies, jointed.fits(bodies)


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("weight", ["auto", "normalised", "residual"])
def test_exact_joints_give_the_true_tree(name, weight):
    take, bodies = jointed.sensed(FIGURES[name], seconds=8.0)
    tree = infer_tree(jointed.fits(bodies), weight=weight)
    score = metrics.compare(tree, take, bodies=bodies)
    assert (score.wrong, score.missing) == (0, 0)
    assert len(tree.roots) == 1


def test_noise_does_not_change_the_tree():
    take, bodies = jointed.sensed(
        FIGURES["human"], "chicken_walk", seconds=10.0, noise=5e-3, turn_noise=0.01
    )
    score = metrics.compare(infer_tree(jointed.fits(bodies)), take, bodies=bodies)
    assert (score.wrong, score.missing) == (0, 0)


def test_the_order_of_the_bodies_does_not_matter(walker, rng):
    _, bodies, joints = walker
    order = rng.permutation(len(bodies.names))
    mixed = replace(
        bodies,
        names=tuple(bodies.names[i] for i in order),
        T_world_body=bodies.T_world_body[:, order],
        determined=bodies.determined[order],
        shared=bodies.shared[:, order],
        body_confidence=bodies.body_confidence[order],
        rms=bodies.rms[order],
    )

    def edges(names, tree):
        return {
            frozenset((names[i], names[p])) for i, p in enumerate(tree.parent) if p >= 0
        }

    assert edges(bodies.names, infer_tree(joints)) == edges(
        mixed.names, infer_tree(jointed.fits(mixed))
    )


def test_any_body_may_be_the_root(walker):
    _, bodies, joints = walker
    free = infer_tree(joints)
    for root in range(len(bodies.names)):
        tree = infer_tree(joints, root=root)
        assert tree.roots.tolist() == [root]
        assert set(tree.edge[tree.edge >= 0]) == set(free.edge[free.edge >= 0])


def test_the_root_is_central_when_none_is_given(walker):
    _, bodies, joints = walker
    assert bodies.names[infer_tree(joints).roots[0]] in {"Spine", "Hips"}


def test_two_performers_are_two_trees():
    take = synth.scene("together", markers="none", sensors=True, rate=60.0)
    bodies = segment(take)
    tree = infer_tree(jointed.fits(bodies))
    assert len(tree.roots) == 2
    score = metrics.compare(tree, take, bodies=bodies)
    assert (score.wrong, score.missing) == (0, 0)


def test_a_margin_is_the_price_of_the_next_best_joint():
    _, bodies = jointed.sensed(FIGURES["linkage"], seconds=10.0, noise=1e-3)
    joints = jointed.fits(bodies)
    tree, cost = infer_tree(joints), edge_costs(joints)
    for body in np.flatnonzero(tree.edge >= 0):
        without = replace(
            joints,
            residual=np.where(
                np.arange(len(cost)) == tree.edge[body], np.nan, joints.residual
            ),
        )
        other = infer_tree(without, root=int(tree.roots[0]))
        added = set(other.edge) - set(tree.edge)
        if added:
            (edge,) = added
            ratio = np.log(cost[edge] / cost[tree.edge[body]])
            assert tree.margin[body] == pytest.approx(ratio)


def test_a_good_joint_too_many_is_a_loop(walker):
    _, _, joints = walker
    tree = infer_tree(joints)
    spare = next(p for p in range(len(joints.pair)) if p not in set(tree.edge))
    used = tree.edge[tree.edge >= 0]
    residual = joints.residual.copy()
    residual[spare] = joints.residual[used].max()
    distance = joints.distance.copy()
    distance[spare] = joints.distance[used].max()
    closed = infer_tree(replace(joints, residual=residual, distance=distance))
    # One edge of the cycle is left out, whichever it is.
    assert len(closed.loops) == 1


def test_bodies_never_seen_together_stay_apart(walker):
    joints = walker[2]
    alone = (joints.pair == 0).any(axis=1)
    residual = np.where(alone, np.nan, joints.residual)
    tree = infer_tree(replace(joints, residual=residual))
    assert 0 in tree.roots
    assert len(tree.roots) == 2


def test_a_known_tree_is_taken_as_it_is(walker):
    _, bodies, joints = walker
    found = infer_tree(joints)
    parents = {
        bodies.names[i]: bodies.names[p] for i, p in enumerate(found.parent) if p >= 0
    }
    known = named_tree(parents, bodies.names, joints)
    assert known.parent.tolist() == found.parent.tolist()
    assert known.edge.tolist() == found.edge.tolist()


@pytest.mark.parametrize(
    ("parents", "complaint"),
    [({"Tail": "Hips"}, "Tail"), ({"Hips": "Spine", "Spine": "Hips"}, "circles")],
)
def test_a_wrong_tree_is_refused(walker, parents, complaint):
    _, bodies, joints = walker
    with pytest.raises(marey.DataError, match=complaint):
        named_tree(parents, bodies.names, joints)


def test_unknown_weights_and_roots_are_refused(walker):
    joints = walker[2]
    with pytest.raises(marey.OptionError, match="magic"):
        infer_tree(joints, weight="magic")
    with pytest.raises(marey.OptionError, match="99"):
        infer_tree(joints, root=99)
