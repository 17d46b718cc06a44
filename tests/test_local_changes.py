"""Changes of one clustering by another one of the same markers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marey import synth
from marey.segmentation.clusters.local_changes import (
    change_groups,
    changed_pairs,
    differing_groups,
    in_order,
    merge_pairs,
)
from marey.segmentation.clusters.model_selection import Clustering, try_clusterings
from marey.segmentation.clusters.pair_statistics import (
    PairStats,
    members_of_labels,
    pair_statistics,
)

N_MARKERS = 9
LABELS = st.lists(st.integers(0, 4), min_size=N_MARKERS, max_size=N_MARKERS)


def clustering(labels, odds=0.0):
    owner = np.unique(labels, return_inverse=True)[1]
    return Clustering(
        members_of_labels(owner), owner, np.full((len(owner), len(owner)), odds)
    )


def pairs(labels):
    return np.equal.outer(labels, labels)


@settings(deadline=None)
@given(LABELS, LABELS)
def test_differing_groups_are_whole_bodies_of_either_clustering(one, other):
    one, other = np.array(one), np.array(other)
    groups = list(differing_groups(one, other))
    for group in groups:
        assert not (pairs(one) | pairs(other))[group][:, ~group].any()
        assert (pairs(one) != pairs(other))[group][:, group].any()
    same = ~np.any([*groups, np.zeros(N_MARKERS, bool)], axis=0)
    assert (pairs(one) == pairs(other))[same][:, same].all()


@settings(deadline=None)
@given(LABELS, LABELS)
def test_a_change_divides_one_group_as_the_other_and_the_rest_as_before(one, other):
    a, b = clustering(one), clustering(other)
    groups = list(differing_groups(a.owner, b.owner))
    changed = list(change_groups(a, [b]))
    assert len(changed) == len(groups)
    for group, after in zip(groups, changed, strict=True):
        together = pairs(after.owner)
        assert (together == pairs(b.owner))[group][:, group].all()
        assert (together == pairs(a.owner))[~group].all()
        assert (
            changed_pairs(a.owner, after.owner) == (together ^ pairs(a.owner))
        ).all()


@settings(deadline=None)
@given(LABELS, LABELS)
def test_bodies_that_are_clearly_two_are_never_united(one, other):
    """If all odds are clear against one body, changes only divide, none merge."""
    a, b = clustering(one, odds=-4.0), clustering(other)
    for after in change_groups(a, [b]):
        assert not (pairs(after.owner) & ~pairs(a.owner)).any()
    assert not list(merge_pairs(a))


@settings(deadline=None)
@given(LABELS)
def test_merged_pairs_have_one_body_less(labels):
    a = clustering(labels)
    n_bodies = len(a.members)
    merged = list(merge_pairs(a))
    assert len(merged) == n_bodies * (n_bodies - 1) // 2
    assert all(len(set(one.owner.tolist())) == n_bodies - 1 for one in merged)


@settings(deadline=None)
@given(LABELS, LABELS)
def test_bodies_are_in_the_order_of_their_first_markers_and_have_what_they_own(
    one, other
):
    distance = np.abs(np.subtract.outer(np.arange(9.0), np.arange(9.0)))
    stats = PairStats(0.1 * distance, distance)
    for changed in change_groups(clustering(one), [clustering(other)]):
        ordered = in_order(changed, stats)
        assert (pairs(ordered.owner) == pairs(changed.owner)).all()
        _, first = np.unique(ordered.owner, return_index=True)
        assert (np.diff(first) > 0).all()
        assert len(ordered.members) == len(first)
        assert ordered.members[ordered.owner, np.arange(N_MARKERS)].all()


@pytest.mark.parametrize("seed", range(3))
def test_a_marker_that_jumps_is_on_no_body_with_others(seed):
    """Spectral clustering alone puts it on some body, for it has to be on one."""
    take = synth.human(seed=seed).record("exercise", seconds=8.0, rate=50.0, seed=seed)
    rng = np.random.default_rng(seed)
    points = np.concatenate([take.points, rng.normal(size=(400, 1, 3))], axis=1)
    for found in try_clusterings([points], pair_statistics([points])):
        assert (found.owner == found.owner[-1]).sum() == 1
