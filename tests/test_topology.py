"""Trees: the right one from good joints, several for strangers, doubts stated."""

from dataclasses import replace
from functools import cache

import jointed
import numpy as np
import pytest

import marey
from marey import metrics, synth
from marey.joints import find_links, fit_joints
from marey.joints.ball.averaged_gap import slow_gaps
from marey.joints.ball.fit import measure_noise
from marey.joints.temporary.windows import windows_of
from marey.segmentation import segment
from marey.synth.record import capture
from marey.topology import alternatives, edge_costs, infer_tree, named_tree

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


# --- success rates: sensors that slide, and noise -------------------------------------


@cache
def sliding(motion, seed, size=0.0, noise=5e-3, degrees=0.5):
    """A performer of 15 sensors; that of the pelvis slides and turns with the hips."""
    take = synth.human(seed=seed).record(
        motion,
        seconds=20.0,
        rate=60.0,
        markers="none",
        sensors=True,
        seed=seed,
        noise=noise,
        turn_noise=np.radians(degrees),
        soft_tissue=size,
        soft_tissue_turn=np.radians(size / 3e-3),
        soft_tissue_on=("Hips",),
    )
    bodies = segment(take)
    return take, bodies, fit_joints(bodies)


def right(take, bodies, joints, weight="auto"):
    score = metrics.compare(infer_tree(joints, weight=weight), take, bodies=bodies)
    return (score.wrong, score.missing) == (0, 0)


@pytest.mark.parametrize(
    ("motion", "size", "noise", "degrees"),
    [
        ("exercise", 0.0, 30e-3, 3.0),
        ("exercise", 45e-3, 5e-3, 0.5),
        ("chicken_walk", 0.0, 30e-3, 3.0),
        ("chicken_walk", 45e-3, 5e-3, 0.5),
        ("walk", 0.0, 5e-3, 0.5),
    ],
)
def test_the_tree_is_right_in_spite_of_noise_and_sliding(motion, size, noise, degrees):
    assert right(*sliding(motion, 1, size, noise, degrees))


def test_a_sliding_sensor_misleads_the_plain_residual():
    cases = [sliding("exercise", seed, 45e-3) for seed in (1, 2)]
    assert all(right(*case) for case in cases)
    assert not any(right(*case, weight="residual") for case in cases)


def test_clear_margins_are_right_and_doubts_are_where_errors_are():
    """A natural walk with a sliding pelvis sensor: not all of it can be right."""
    margins, rights = [], []
    for seed in (1, 2):
        take, bodies, joints = sliding("walk", seed, 45e-3)
        tree = infer_tree(joints)
        score = metrics.compare(tree, take, bodies=bodies)
        true = {
            frozenset(take.truth.figures[0].skeleton.names[j] for j in pair)
            for pair in true_joints(take)
        }
        for body in np.flatnonzero(tree.edge >= 0):
            pair = frozenset((bodies.names[body], bodies.names[tree.parent[body]]))
            margins.append(tree.margin[body])
            rights.append(pair in true)
        assert sum(rights[-14:]) == score.right
    margins, rights = np.array(margins), np.array(rights)
    assert rights[margins > 1.0].all()
    assert (margins[~rights] < 0.6).all()


def true_joints(take):
    rows = take.truth.bodies
    return [(rows[a, 1], rows[b, 1]) for a, b, _ in take.truth.edges.tolist()]


# --- the slow part of a gap -----------------------------------------------------------


def test_joints_are_exact_in_averaged_poses_however_fast_they_turn():
    _, bodies = jointed.sensed(FIGURES["linkage"], seconds=10.0)
    noise = measure_noise((bodies,), noise=0.0, turn_noise=0.0)
    joints = jointed.fits(bodies)
    slow, _ = slow_gaps((bodies,), noise, joints.pair, max_sd=0.05)
    tree = infer_tree(joints)
    used = tree.edge[tree.edge >= 0]
    assert slow[used].max() < 1e-7
    assert np.delete(slow, used).min() > 1e-3


def test_averaging_leaves_of_the_noise_what_is_foretold():
    _, bodies = jointed.sensed(
        FIGURES["human"], "chicken_walk", seconds=20.0, noise=4e-3, turn_noise=0.01
    )
    fits = fit_joints(bodies)
    used = infer_tree(fits).edge
    used = used[used >= 0]
    assert np.median(
        fits.averaged_residual[used] / fits.averaged_noise[used]
    ) == pytest.approx(1.0, abs=0.1)
    assert (fits.averaged_residual[used] < 0.3 * fits.residual[used]).all()


# --- bodies that belong to nothing, and points where many meet ------------------------


def with_poses(bodies, names, T_more):
    """More bodies beside those of a recording."""
    T = np.concatenate([bodies.T_world_body, T_more], axis=1)
    take = replace(bodies.take, T_world_sensor=T, sensor_names=(*bodies.names, *names))
    return segment(take)


def test_the_origin_of_the_world_is_no_limb():
    _, bodies = jointed.sensed(FIGURES["human"], "walk", seconds=8.0)
    origin = np.broadcast_to(np.eye(4), (len(bodies.T_world_body), 1, 4, 4))
    more = with_poses(bodies, ["world"], origin)
    tree = infer_tree(fit_joints(more))
    assert len(more.names) - 1 in tree.roots
    assert len(tree.roots) == 2


def test_bodies_that_meet_in_one_point_hang_from_the_one_that_leads_on(rng):
    """Three limbs turn about a joint of a long chain: none hangs from another limb."""
    frames = 400
    turns = np.cumsum(rng.normal(0.0, 0.05, (frames, 6, 3)), axis=0)
    R = marey.geometry.rotation_exp(turns)
    chain = [marey.geometry.transform(R[:, 0], np.zeros((frames, 3)))]
    for k in (1, 2):
        tip = marey.geometry.apply(chain[-1], np.array([0.3, 0.0, 0.0]))
        chain.append(marey.geometry.transform(R[:, k], tip))
    tip = marey.geometry.apply(chain[-1], np.array([0.3, 0.0, 0.0]))
    limbs = [marey.geometry.transform(R[:, k], tip) for k in (3, 4, 5)]
    T = np.stack([*limbs, *chain], axis=1)
    names = ("limb1", "limb2", "limb3", "first", "second", "third")
    bodies = segment(marey.Take(rate=60.0, T_world_sensor=T, sensor_names=names))
    tree = infer_tree(fit_joints(bodies))
    edges = {frozenset((i, p)) for i, p in enumerate(tree.parent.tolist()) if p >= 0}
    assert edges == {frozenset(e) for e in ((0, 5), (1, 5), (2, 5), (3, 4), (4, 5))}
    # The motion does not tell, and the margin says so.
    assert np.abs(tree.margin[[0, 1, 2]]).max() < 0.2


# --- links that exist for a part of the time ------------------------------------------


@cache
def held(name, seed, noise):
    """A scene, its links as (bodies, start, end), and those that are found."""
    take = synth.scene(
        name,
        markers="none",
        sensors=True,
        rate=60.0,
        seed=seed,
        noise=noise,
        turn_noise=3.0 * noise,
    )
    bodies = segment(take)
    joints = fit_joints(bodies)
    tree = infer_tree(joints)
    true = {}
    for link in take.truth.links:
        ends = (link.subject_a, link.joint_a), (link.subject_b, link.joint_b)
        pair = frozenset(sensor_of(take.truth, *end) for end in ends)
        true[pair] = (link.start, link.end)
    found = find_links(bodies, joints, tree)
    assert found == find_links(bodies, joints, tree)
    return take, bodies, joints, tree, true, found


def sensor_of(truth, subject, joint):
    body = truth.figures[subject].body_of[joint]
    mine = (truth.sensor_subject == subject) & (truth.sensor_joint == body)
    return int(np.flatnonzero(mine)[0])


@pytest.mark.parametrize("noise", [0.0, 3e-3])
@pytest.mark.parametrize("name", ["handover", "clasp"])
def test_links_are_found_with_their_ends(name, noise):
    take, _, joints, _, true, found = held(name, 1, noise)
    end = (take.n_frames - 1) / take.rate
    times = {
        frozenset(joints.pair[loop.pair].tolist()): (
            max(loop.first, 0.0),
            min(loop.last, end),
        )
        for loop in found
    }
    assert times.keys() == true.keys()
    for pair, wanted in true.items():
        wanted = np.minimum(wanted, end)
        np.testing.assert_allclose(times[pair], wanted, atol=0.07 if not noise else 0.2)


def test_a_link_is_where_the_two_hold():
    _, bodies, joints, _, _, found = held("clasp", 2, 0.0)
    (link,) = found
    a, b = joints.pair[link.pair]
    frames = slice(int(link.first * 60.0) + 6, int(link.last * 60.0) - 5)
    ends = [
        marey.geometry.apply(bodies.T_world_body[frames, body], np.array(center))
        for body, center in ((a, link.center_a), (b, link.center_b))
    ]
    assert np.linalg.norm(ends[0] - ends[1], axis=-1).max() < 2e-3
    assert link.kind == "fixed"


@pytest.mark.parametrize("noise", [0.0, 3e-3])
def test_what_is_handed_over_hangs_on_nobody(noise):
    _, bodies, _, tree, _, _ = held("handover", 1, noise)
    prop = bodies.names.index("PROP:Prop")
    assert tree.parent[prop] == -1
    assert prop not in tree.parent
    whose = [name.partition(":")[0] for name in bodies.names]
    assert all(whose[i] == whose[p] for i, p in enumerate(tree.parent) if p >= 0)


@pytest.mark.parametrize("noise", [0.0, 3e-3])
def test_performers_side_by_side_hold_nothing(noise):
    assert held("together", 1, noise)[-1] == ()


@pytest.mark.parametrize("motion", ["exercise", "jump", "kick_punch"])
def test_one_performer_alone_holds_nothing(motion):
    _, bodies = jointed.sensed(
        FIGURES["human"], motion, seconds=10.0, noise=3e-3, turn_noise=0.01
    )
    joints = fit_joints(bodies)
    assert find_links(bodies, joints, infer_tree(joints)) == ()


@pytest.mark.parametrize("name", ["handover", "clasp"])
def test_a_take_to_warm_up_in_makes_the_trees_of_a_scene_right(name):
    """Who stands still all the time but for one arm shows no joint but its own."""
    scene = synth.scene(name, markers="none", sensors=True, rate=60.0, seed=3)
    figures = scene.truth.figures
    warm = [
        f.perform("exercise" if i < 2 else "swing", seconds=15.0, rate=60.0, seed=i)
        for i, f in enumerate(figures)
    ]
    # Each where the other is not.
    for i, motion in enumerate(warm):
        motion.T_world_root[:, 1, 3] += 2.0 * i
    first = capture(
        figures, warm, names=scene.truth.names, markers="none", sensors=True, seed=3
    )
    takes = [segment(take) for take in (first, scene)]
    tree = infer_tree(fit_joints(takes))
    score = metrics.compare(tree, scene, bodies=takes[1])
    assert (score.wrong, score.missing) == (0, 0)


def test_windows_are_those_of_slow_loops(rng):
    """Sums of blocks say the same as the frames of each window, one after another."""
    T = marey.geometry.transform_exp(rng.normal(0.0, 0.3, (40, 3, 6)))
    T[17, 1] = np.nan
    pair = np.array([[0, 1], [0, 2], [1, 2]])
    (windows,) = windows_of(T, pair, block=5, blocks=3)
    assert windows.first.tolist() == [0, 5, 10, 15, 20, 25]
    for w, start in enumerate(windows.first):
        part = T[start : start + 15]
        for k, (a, b) in enumerate(pair):
            T_a_b = marey.geometry.inverse(part[:, a]) @ part[:, b]
            place = T_a_b[:, :3, 3]
            moved = np.sqrt(np.sum((place - place.mean(axis=0)) ** 2, axis=1).mean())
            mean = T_a_b[:, :3, :3].mean(axis=0)
            turned = np.sqrt(max(3.0 - np.sum(mean**2), 0.0) / 2.0)
            np.testing.assert_allclose(windows.shift[w, k], moved, atol=1e-7)
            np.testing.assert_allclose(windows.turn[w, k], turned, atol=1e-7)


def test_a_tree_hung_from_another_body_has_the_same_joints():
    tree = marey.Tree(
        parent=np.array([-1, 0, 1, 1, -1]),
        edge=np.array([-1, 0, 1, 2, -1]),
        margin=np.array([np.inf, 0.5, 1.0, 2.0, np.inf]),
    )
    hung = tree.reroot(2)
    assert hung.parent.tolist() == [1, 2, -1, 1, -1]
    assert hung.edge.tolist() == [0, 1, -1, 2, -1]
    assert hung.margin.tolist() == [0.5, 1.0, np.inf, 2.0, np.inf]
    assert hung.reroot(0).parent.tolist() == tree.parent.tolist()


# --- trees that are almost as good ----------------------------------------------------


def square(costs):
    """Four bodies in a ring; the residual of each side, the diagonals hopeless."""
    sides = {(0, 1): costs[0], (1, 2): costs[1], (2, 3): costs[2], (0, 3): costs[3]}
    pair = np.array([(a, b) for a in range(4) for b in range(a + 1, 4)])
    residual = np.array([sides.get((a, b), 1e3) for a, b in pair.tolist()])
    n = len(pair)
    return marey.JointFits(
        pair=pair,
        **dict.fromkeys(("center_a", "center_b"), np.zeros((n, 3))),
        **dict.fromkeys(("axis_a", "axis_b"), np.full((n, 3), np.nan)),
        residual=residual,
        **dict.fromkeys(("noise", "distance", "mediated"), np.ones(n)),
        spread=np.ones((n, 6)),
        covariance=np.zeros((n, 6, 6)),
        kind=("ball",) * n,
        looseness=residual,
        marker_spacing=np.ones(n),
    )


def edges_of(tree):
    return {frozenset((i, int(p))) for i, p in enumerate(tree.parent) if p >= 0}


def test_alternatives_exchange_one_doubtful_joint():
    joints = square([1.0, 1.0, 1.0, 1.1])
    tree = infer_tree(joints)
    others = list(alternatives(joints, tree))
    assert len(others) == 3
    for other in others:
        assert len(edges_of(tree) - edges_of(other)) == 1
        assert frozenset((0, 3)) in edges_of(other)


def test_a_tree_without_doubt_has_no_alternatives():
    joints = square([1.0, 1.0, 1.0, 5.0])
    assert list(alternatives(joints, infer_tree(joints))) == []


@pytest.mark.parametrize(
    ("slack", "gap", "residual", "roots"),
    [
        (10.0, 1.0, 0.9, 1),
        (30.0, 1.0, 0.1, 1),
        (30.0, 1.0, 0.3, 2),
        (30.0, 3.0, 0.1, 2),
    ],
)
def test_stiff_clusters_on_soft_shoulders_are_no_strangers(slack, gap, residual, roots):
    """A costly joint is one if it hardly gapes for its distance, and is near."""
    joints = square([1.0, 1.0, 1e6, 1e6])
    link = (joints.pair == [2, 3]).all(axis=1)
    joints = replace(
        joints,
        looseness=np.where(link, slack, joints.looseness),
        marker_spacing=np.where(link, gap, 1.0),
        residual=np.where(link, residual, joints.residual),
    )
    assert len(infer_tree(joints).roots) == roots
