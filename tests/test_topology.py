"""Spanning forests of joints: true trees, separate subjects, honest margins."""

from dataclasses import replace
from functools import cache

import joint_samples as samples
import jointed
import numpy as np
import pytest

import marey
from marey import metrics, synth
from marey.joints import find_temporary_joints, fit_joints
from marey.joints.ball.evidence import averaged_residuals
from marey.joints.noise import estimate_pose_noise
from marey.joints.temporary.window_motions import window_motions
from marey.segmentation import segment
from marey.synth.recording import capture
from marey.topology import alternative_trees, edge_costs, infer_tree, tree_from_parents
from marey.tree import (
    ancestors_of,
    breadth_first_order,
    depth_first_order,
    list_children,
)

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
    take, bodies = jointed.record_sensors(FIGURES["human"], "chicken_walk", seconds=6.0)
    return take, bodies, jointed.fit_all_pairs(bodies)


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("weight", ["auto", "normalised", "residual"])
def test_exact_joints_give_the_true_tree(name, weight):
    take, bodies = jointed.record_sensors(FIGURES[name], seconds=8.0)
    tree = infer_tree(jointed.fit_all_pairs(bodies), weight=weight)
    score = metrics.compare(tree, take, bodies=bodies)
    assert (score.wrong, score.missing) == (0, 0)
    assert len(tree.roots) == 1


def test_noise_does_not_change_the_tree():
    take, bodies = jointed.record_sensors(
        FIGURES["human"], "chicken_walk", seconds=10.0, noise=5e-3, turn_noise=0.01
    )
    score = metrics.compare(
        infer_tree(jointed.fit_all_pairs(bodies)), take, bodies=bodies
    )
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
        mixed.names, infer_tree(jointed.fit_all_pairs(mixed))
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
    tree = infer_tree(jointed.fit_all_pairs(bodies))
    assert len(tree.roots) == 2
    score = metrics.compare(tree, take, bodies=bodies)
    assert (score.wrong, score.missing) == (0, 0)


def test_props_that_nobody_holds_are_trees_of_their_own(rng):
    """Any two bodies have a best joint; that of two props explains nothing."""
    places = samples.smooth_signals(rng, 600, 9).reshape(600, 3, 3)
    turns = samples.smooth_signals(rng, 600, 9).reshape(600, 3, 3)
    T = marey.geometry.transform(marey.geometry.rotation_exp(turns), places)
    joints = marey.fit_joints(samples.sensor_bodies(T))
    assert (joints.residual > 0.1).all()
    assert len(infer_tree(joints).roots) == 3


def test_a_joint_in_another_unit_is_a_joint(walker):
    """Sensors in centimetres that are read as metres."""
    joints = walker[2]
    lengths = ("residual", "noise", "distance", "center_a", "center_b")
    scaled = {name: 100.0 * getattr(joints, name) for name in lengths}
    parents = infer_tree(replace(joints, **scaled)).parent
    np.testing.assert_array_equal(parents, infer_tree(joints).parent)


def test_a_margin_is_the_log_cost_ratio_of_the_next_best_edge():
    _, bodies = jointed.record_sensors(FIGURES["linkage"], seconds=10.0, noise=1e-3)
    joints = jointed.fit_all_pairs(bodies)
    tree, cost = infer_tree(joints), edge_costs(joints)
    for body in np.flatnonzero(tree.edge >= 0):
        without = replace(
            joints,
            residual=np.where(
                np.arange(len(cost)) == tree.edge[body], np.nan, joints.residual
            ),
        )
        alternative = infer_tree(without, root=int(tree.roots[0]))
        new_edges = set(alternative.edge) - set(tree.edge)
        if new_edges:
            (edge,) = new_edges
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


def test_a_joint_beyond_all_joints_of_the_tree_is_no_loop(walker):
    """Bodies that hardly moved fit a common point anywhere."""
    _, _, joints = walker
    tree = infer_tree(joints)
    spare = next(p for p in range(len(joints.pair)) if p not in set(tree.edge))
    used = tree.edge[tree.edge >= 0]
    residual, distance = joints.residual.copy(), joints.distance.copy()
    residual[spare] = joints.residual[used].max()
    distance[spare] = 2.0 * joints.distance[used].max()
    closed = infer_tree(replace(joints, residual=residual, distance=distance))
    assert spare not in closed.edge
    assert closed.loops == ()


def four_bar_linkage(rng, n_frames=240):
    """Poses of ground, crank, coupler and rocker, moved through the world."""
    angle = np.linspace(0.0, 12.0, n_frames)
    crank = 0.15 * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    pivot = np.array([0.4, 0.0])
    span = np.linalg.norm(pivot - crank, axis=1, keepdims=True)
    along = (pivot - crank) / span
    foot = (span**2 + 0.4**2 - 0.3**2) / (2.0 * span)
    across = np.sqrt(0.4**2 - foot**2) * along[:, ::-1] * [-1.0, 1.0]
    end = crank + foot * along + across
    origins = [0.0 * crank, 0.0 * crank, crank, pivot + 0.0 * crank]
    arms = [pivot + 0.0 * crank, crank, end - crank, end - pivot]
    poses = []
    for origin, arm in zip(origins, arms, strict=True):
        turn = np.outer(np.arctan2(arm[:, 1], arm[:, 0]), [0.0, 0.0, 1.0])
        R = marey.geometry.rotation_exp(turn)
        poses.append(marey.geometry.transform(R, np.pad(origin, ((0, 0), (0, 1)))))
    world = marey.geometry.transform_exp(0.5 * samples.smooth_signals(rng, n_frames, 6))
    return world[:, None] @ np.stack(poses, axis=1)


@pytest.mark.parametrize("noise", [0.0, 1e-3])
def test_a_closed_linkage_of_marker_bodies_has_a_loop(rng, noise):
    bodies = samples.marker_bodies(four_bar_linkage(rng), rng, noise)
    tree = infer_tree(fit_joints(bodies))
    assert len(tree.roots) == 1
    assert len(tree.loops) == 1


def test_bodies_never_seen_together_are_separate_trees(walker):
    joints = walker[2]
    has_first_body = (joints.pair == 0).any(axis=1)
    residual = np.where(has_first_body, np.nan, joints.residual)
    tree = infer_tree(replace(joints, residual=residual))
    assert 0 in tree.roots
    assert len(tree.roots) == 2


def test_a_tree_from_parents_has_these_parents(walker):
    _, bodies, joints = walker
    found = infer_tree(joints)
    parents = {
        bodies.names[i]: bodies.names[p] for i, p in enumerate(found.parent) if p >= 0
    }
    tree = tree_from_parents(parents, bodies.names, joints)
    assert tree.parent.tolist() == found.parent.tolist()
    assert tree.edge.tolist() == found.edge.tolist()


@pytest.mark.parametrize(
    ("parents", "message"),
    [({"Tail": "Hips"}, "Tail"), ({"Hips": "Spine", "Spine": "Hips"}, "cycle")],
)
def test_parents_that_are_no_tree_are_refused(walker, parents, message):
    _, bodies, joints = walker
    with pytest.raises(marey.OptionError, match=message):
        tree_from_parents(parents, bodies.names, joints)


def test_unknown_weights_and_roots_are_refused(walker):
    joints = walker[2]
    with pytest.raises(marey.OptionError, match="magic"):
        infer_tree(joints, weight="magic")
    with pytest.raises(marey.OptionError, match="99"):
        infer_tree(joints, root=99)


# --- sliding sensors and noise --------------------------------------------------------


@cache
def fit_sliding_pelvis(motion, seed, size=0.0, noise=5e-3, degrees=0.5):
    """A person with 15 sensors; the one on the pelvis slides on the skin."""
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


def is_right(take, bodies, joints, weight="auto"):
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
def test_noise_and_a_sliding_sensor_do_not_change_the_tree(
    motion, size, noise, degrees
):
    assert is_right(*fit_sliding_pelvis(motion, 1, size, noise, degrees))


def test_a_sliding_sensor_misleads_the_plain_residual():
    cases = [fit_sliding_pelvis("exercise", seed, 45e-3) for seed in (1, 2)]
    assert all(is_right(*case) for case in cases)
    wrong = [
        is_right(take, bodies, joints, weight="residual")
        for take, bodies, joints in cases
    ]
    assert not any(wrong)


def test_edges_with_large_margins_are_right_and_wrong_edges_have_small_ones():
    """With a sliding pelvis sensor a walk does not determine every edge."""
    margins, is_true = [], []
    for seed in (1, 2):
        take, bodies, joints = fit_sliding_pelvis("walk", seed, 45e-3)
        tree = infer_tree(joints)
        score = metrics.compare(tree, take, bodies=bodies)
        true = {
            frozenset(take.truth.figures[0].skeleton.names[j] for j in pair)
            for pair in true_joints(take)
        }
        for body in np.flatnonzero(tree.edge >= 0):
            pair = frozenset((bodies.names[body], bodies.names[tree.parent[body]]))
            margins.append(tree.margin[body])
            is_true.append(pair in true)
        assert sum(is_true[-14:]) == score.right
    margins, is_true = np.array(margins), np.array(is_true)
    assert is_true[margins > 1.0].all()
    assert (margins[~is_true] < 0.6).all()


def true_joints(take):
    rows = take.truth.bodies
    return [(rows[a, 1], rows[b, 1]) for a, b, _ in take.truth.edges.tolist()]


# --- residuals of averaged poses ------------------------------------------------------


def test_joints_of_exact_data_have_no_residual_in_averaged_poses():
    _, bodies = jointed.record_sensors(FIGURES["linkage"], seconds=10.0)
    noise = estimate_pose_noise((bodies,), noise=0.0, turn_noise=0.0)
    joints = jointed.fit_all_pairs(bodies)
    averaged, _ = averaged_residuals((bodies,), noise, joints.pair, max_sd=0.05)
    tree = infer_tree(joints)
    used = tree.edge[tree.edge >= 0]
    assert averaged[used].max() < 1e-7
    assert np.delete(averaged, used).min() > 1e-3


def test_averaging_leaves_the_predicted_noise():
    _, bodies = jointed.record_sensors(
        FIGURES["human"], "chicken_walk", seconds=20.0, noise=4e-3, turn_noise=0.01
    )
    fits = fit_joints(bodies)
    used = infer_tree(fits).edge
    used = used[used >= 0]
    assert np.median(
        fits.averaged_residual[used] / fits.averaged_noise[used]
    ) == pytest.approx(1.0, abs=0.1)
    assert (fits.averaged_residual[used] < 0.3 * fits.residual[used]).all()


# --- unattached bodies, and joints that coincide --------------------------------------


def add_sensors(bodies, names, T_world_sensor):
    """The bodies of a recording and further ones."""
    T = np.concatenate([bodies.T_world_body, T_world_sensor], axis=1)
    take = replace(bodies.take, T_world_sensor=T, sensor_names=(*bodies.names, *names))
    return segment(take)


def test_the_origin_of_the_world_is_unattached():
    _, bodies = jointed.record_sensors(FIGURES["human"], "walk", seconds=8.0)
    origin = np.broadcast_to(np.eye(4), (len(bodies.T_world_body), 1, 4, 4))
    more = add_sensors(bodies, ["world"], origin)
    tree = infer_tree(fit_joints(more))
    assert len(more.names) - 1 in tree.roots
    assert len(tree.roots) == 2


def test_bodies_that_meet_in_one_point_are_joined_to_the_one_with_the_longest_chain(
    rng,
):
    """Three limbs rotate about the end of a chain; none is the child of another."""
    frames = 400
    rotvec = np.cumsum(rng.normal(0.0, 0.05, (frames, 6, 3)), axis=0)
    R = marey.geometry.rotation_exp(rotvec)
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
    # The motion does not determine the parent, so the margins are small.
    assert np.abs(tree.margin[[0, 1, 2]]).max() < 0.2


# --- temporary joints -----------------------------------------------------------------


@cache
def find_in_scene(name, seed, noise):
    """A scene, its true temporary joints as (bodies, start, end), and those found."""
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
    found = find_temporary_joints(bodies, joints, tree)
    assert found == find_temporary_joints(bodies, joints, tree)
    return take, bodies, joints, tree, true, found


def sensor_of(truth, subject, joint):
    body = truth.figures[subject].body_of[joint]
    is_on_body = (truth.sensor_subject == subject) & (truth.sensor_joint == body)
    return int(np.flatnonzero(is_on_body)[0])


@pytest.mark.parametrize("noise", [0.0, 3e-3])
@pytest.mark.parametrize("name", ["handover", "clasp"])
def test_temporary_joints_are_found_with_their_start_and_end(name, noise):
    take, _, joints, _, true, found = find_in_scene(name, 1, noise)
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


@pytest.mark.parametrize(
    ("name", "pairs"),
    [
        ("clasp", {("A:RightHand", "B:RightHand"): (1.5, 4.5)}),
        (
            "handover",
            {("A:RightHand", "PROP"): (0.0, 3.2), ("B:RightHand", "PROP"): (2.8, 6.0)},
        ),
    ],
)
def test_hands_of_few_noisy_markers_hold_together(name, pairs):
    """Three markers on a hand leave its orientation uncertain by degrees."""
    take = synth.scene(
        name, seconds=6.0, rate=60.0, markers="set53", noise=1e-3, seed=2
    )
    bodies = segment(take)
    joints = fit_joints(bodies)
    tree = tree_from_parents(bodies.parents, bodies.names, joints)
    found = {
        tuple(bodies.names[i] for i in joints.pair[loop.pair]): (
            max(loop.first, 0.0),
            min(loop.last, 6.0),
        )
        for loop in find_temporary_joints(bodies, joints, tree)
    }
    assert found.keys() == pairs.keys()
    for pair, wanted in pairs.items():
        np.testing.assert_allclose(found[pair], wanted, atol=0.2)


def test_both_bodies_carry_the_centre_of_a_temporary_joint_to_one_point():
    _, bodies, joints, _, _, found = find_in_scene("clasp", 2, 0.0)
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
def test_an_object_that_is_handed_over_is_no_part_of_a_tree(noise):
    _, bodies, _, tree, _, _ = find_in_scene("handover", 1, noise)
    prop = bodies.names.index("PROP:Prop")
    assert tree.parent[prop] == -1
    assert prop not in tree.parent
    subject = [name.partition(":")[0] for name in bodies.names]
    assert all(subject[i] == subject[p] for i, p in enumerate(tree.parent) if p >= 0)


@pytest.mark.parametrize("noise", [0.0, 3e-3])
def test_performers_side_by_side_have_no_temporary_joint(noise):
    assert find_in_scene("together", 1, noise)[-1] == ()


def test_what_is_held_is_not_held_by_the_neighbours_of_its_holder(rng):
    """The wrist is stiff during the grip, so the prop moves with the forearm, too."""
    n = 600
    angle = samples.smooth_signals(rng, n, 3)
    angle[200:400] = angle[200]
    world = samples.smooth_signals(rng, n, 12)
    forearm = marey.geometry.transform_exp(0.5 * world[:, :6])
    wrist = marey.geometry.transform(
        marey.geometry.rotation_exp(0.5 * angle), np.array([0.2, 0.0, 0.0])
    )
    hand = forearm @ wrist @ marey.geometry.transform(np.eye(3), np.full(3, 0.05))
    prop = marey.geometry.transform_exp(0.5 * world[:, 6:])
    grip = marey.geometry.transform_exp(np.array([0.05, 0.0, 0.02, 0.3, 0.1, 0.0]))
    prop[200:400] = hand[200:400] @ grip
    bodies = samples.sensor_bodies(np.stack([forearm, hand, prop], axis=1))
    joints = fit_joints(bodies)
    tree = tree_from_parents({"body1": "body0"}, bodies.names, joints)
    (found,) = find_temporary_joints(bodies, joints, tree)
    assert joints.pair[found.pair].tolist() == [1, 2]


@pytest.mark.parametrize("motion", ["exercise", "jump", "kick_punch"])
def test_one_performer_alone_has_no_temporary_joint(motion):
    _, bodies = jointed.record_sensors(
        FIGURES["human"], motion, seconds=10.0, noise=3e-3, turn_noise=0.01
    )
    joints = fit_joints(bodies)
    assert find_temporary_joints(bodies, joints, infer_tree(joints)) == ()


@pytest.mark.parametrize("name", ["handover", "clasp"])
def test_a_second_take_with_more_motion_makes_the_trees_of_a_scene_right(name):
    """A performer who moves one arm only reveals no other joint."""
    scene = synth.scene(name, markers="none", sensors=True, rate=60.0, seed=3)
    figures = scene.truth.figures
    exercises = [
        f.perform("exercise" if i < 2 else "swing", seconds=15.0, rate=60.0, seed=i)
        for i, f in enumerate(figures)
    ]
    # The performers stand apart.
    for i, motion in enumerate(exercises):
        motion.T_world_root[:, 1, 3] += 2.0 * i
    first = capture(
        figures,
        exercises,
        names=scene.truth.names,
        markers="none",
        sensors=True,
        seed=3,
    )
    takes = [segment(take) for take in (first, scene)]
    tree = infer_tree(fit_joints(takes))
    score = metrics.compare(tree, scene, bodies=takes[1])
    assert (score.wrong, score.missing) == (0, 0)


def test_window_motions_are_those_of_naive_loops(rng):
    """Sums of blocks give the same motions as the frames of each window."""
    T = marey.geometry.transform_exp(rng.normal(0.0, 0.3, (40, 3, 6)))
    T[17, 1] = np.nan
    pair = np.array([[0, 1], [0, 2], [1, 2]])
    windows = window_motions(T, pair, block=5, blocks=3)
    assert len(windows.translation) == 6
    for w in range(6):
        start = 5 * w
        part = T[start : start + 15]
        for k, (a, b) in enumerate(pair):
            T_a_b = marey.geometry.inverse(part[:, a]) @ part[:, b]
            position = T_a_b[:, :3, 3]
            deviation = position - position.mean(axis=0)
            translation = np.sqrt(np.sum(deviation**2, axis=1).mean())
            mean = T_a_b[:, :3, :3].mean(axis=0)
            rotation = np.sqrt(max(3.0 - np.sum(mean**2), 0.0) / 2.0)
            np.testing.assert_allclose(
                windows.translation[w, k], translation, atol=1e-7
            )
            np.testing.assert_allclose(windows.rotation[w, k], rotation, atol=1e-7)


def test_a_rerooted_tree_has_the_same_joints():
    tree = marey.Tree(
        parent=np.array([-1, 0, 1, 1, -1]),
        edge=np.array([-1, 0, 1, 2, -1]),
        margin=np.array([np.inf, 0.5, 1.0, 2.0, np.inf]),
    )
    rerooted = tree.reroot(2)
    assert rerooted.parent.tolist() == [1, 2, -1, 1, -1]
    assert rerooted.edge.tolist() == [0, 1, -1, 2, -1]
    assert rerooted.margin.tolist() == [0.5, 1.0, np.inf, 2.0, np.inf]
    assert rerooted.reroot(0).parent.tolist() == tree.parent.tolist()


# --- alternative trees ----------------------------------------------------------------


def ring_of_four(costs):
    """Four bodies in a ring with given residuals; diagonals have huge residuals."""
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


def test_alternative_trees_replace_one_doubtful_joint():
    joints = ring_of_four([1.0, 1.0, 1.0, 1.1])
    tree = infer_tree(joints)
    alternatives = list(alternative_trees(joints, tree))
    assert len(alternatives) == 3
    for other in alternatives:
        assert len(edges_of(tree) - edges_of(other)) == 1
        assert frozenset((0, 3)) in edges_of(other)


def test_a_tree_of_clear_margins_has_no_alternatives():
    joints = ring_of_four([1.0, 1.0, 1.0, 5.0])
    assert list(alternative_trees(joints, infer_tree(joints))) == []


@pytest.mark.parametrize(
    ("looseness", "spacing", "residual", "n_roots"),
    [
        (10.0, 1.0, 0.9, 1),
        (30.0, 1.0, 0.1, 1),
        (30.0, 1.0, 0.3, 2),
        (30.0, 3.0, 0.1, 2),
    ],
)
def test_doubtful_joints_are_kept_if_near_and_nearly_closed(
    looseness, spacing, residual, n_roots
):
    """Stiff marker clusters on soft shoulders are such joints."""
    joints = ring_of_four([1.0, 1.0, 1e6, 1e6])
    is_link = (joints.pair == [2, 3]).all(axis=1)
    joints = replace(
        joints,
        looseness=np.where(is_link, looseness, joints.looseness),
        marker_spacing=np.where(is_link, spacing, 1.0),
        residual=np.where(is_link, residual, joints.residual),
    )
    assert len(infer_tree(joints).roots) == n_roots


def random_parents(rng, n=40):
    """A tree of n items in an order in which parents come first."""
    return np.array([-1, *(rng.integers(k) for k in range(1, n))])


def test_walks_over_parents_visit_every_item_once_after_its_parent(rng):
    parent = random_parents(rng)
    for order in (depth_first_order(parent), breadth_first_order(parent, [0])):
        assert sorted(order) == list(range(len(parent)))
        assert all(order.index(p) < order.index(k) for k, p in enumerate(parent) if k)
    for item, children in enumerate(list_children(parent)):
        assert all(ancestors_of(parent, k)[:2] == [k, item] for k in children)
        assert ancestors_of(parent, item)[-1] == 0


def test_depth_first_every_subtree_is_in_one_piece(rng):
    parent = random_parents(rng)
    order = depth_first_order(parent)
    for item in range(len(parent)):
        below = breadth_first_order(parent, [item])
        first = order.index(item)
        assert set(order[first : first + len(below)]) == set(below)
