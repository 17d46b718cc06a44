"""Bodies of unlabelled markers that the motion supports almost equally well.

Those of each clustering that "overlap" tries, and those of a clustering with a part of
another one. An anatomy may prefer one of them (`marey.pipeline.person.prior`).
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import NamedTuple

import numpy as np

from marey.bodies import Bodies
from marey.numerics import Array, Int
from marey.report import Finding
from marey.segmentation.clusters.cross_validation import is_dense
from marey.segmentation.clusters.local_changes import (
    change_groups,
    changed_pairs,
    in_order,
    merge_pairs,
)
from marey.segmentation.clusters.model_selection import (
    Clustering,
    mean_agreement,
    rand_matrix,
    try_clusterings,
)
from marey.segmentation.clusters.pair_statistics import PairStats, log_odds
from marey.segmentation.common_bodies import with_common_bodies
from marey.segmentation.contract import SegmentationTask
from marey.segmentation.marker_selection import group_by_subject, select_markers
from marey.segmentation.methods.overlap import bodies_of_clusterings
from marey.segmentation.unused_takes import find_unused_takes, with_unused_takes
from marey.take import Take


class Candidate(NamedTuple):
    """Bodies of unlabelled markers in every take."""

    agreement: float
    """Mean agreement (adjusted Rand index) with all clusterings that are tried."""

    takes: tuple[Bodies, ...]

    change: bytes = b""
    """Which pairs of markers are on one body here or in the bodies that were changed,
    but not in both. Equal for the same change of other bodies elsewhere."""


class CandidateBodies:
    """Candidates for the bodies of the unlabelled markers of takes.

    Nothing is clustered before the first of them is asked for.
    """

    def __init__(self, takes: Sequence[Take]) -> None:
        self._all = SegmentationTask(tuple(take.measured for take in takes))

    def of_clusterings(self) -> Iterator[Candidate]:
        """Return the bodies of all clusterings, those of largest agreement first.

        Equal ones are returned once; the first clustering has an advantage. None if
        several subjects are stated, or if bodies are dense: the leave-one-out error has
        chosen.
        """
        if len(self._groups) > 1:
            return
        agreement = mean_agreement(self._tried)
        order = np.argsort(-agreement, kind="stable").tolist()
        if is_dense(self._tried[order[0]].owner):
            return
        yielded: set[bytes] = set()
        for i in order:
            pairs = (self._tried[i].owner[:, None] == self._tried[i].owner).tobytes()
            if pairs not in yielded:
                yielded.add(pairs)
                yield Candidate(float(agreement[i]), self._bodies(self._tried[i]))

    def changed(
        self, takes: tuple[Bodies, ...], without: Collection[bytes], *, merged: bool
    ) -> Iterator[Candidate]:
        """Return the bodies with one group of markers as another clustering has them.

        Each result is returned once.

        Args:
            takes: Bodies of one of the candidates.
            without: Changes that are left out.
            merged: Whether to return those with two bodies as one, too.
        """
        members = takes[0].shared[self._kept].T
        odds = log_odds(self._stats, members)
        start = Clustering(members, takes[0].marker_body[self._kept], odds)
        owners = [one.owner for one in self._tried]
        left_out = set(without)
        changes = change_groups(start, self._tried)
        for one in chain(changes, merge_pairs(start) if merged else ()):
            change = changed_pairs(start.owner, one.owner).tobytes()
            if change not in left_out:
                left_out.add(change)
                agreement = rand_matrix([*owners, one.owner])[-1, :-1].mean()
                bodies = self._bodies(in_order(one, self._stats))
                yield Candidate(float(agreement), bodies, change)

    @cached_property
    def _unused(self) -> dict[int, str]:
        return find_unused_takes(self._all, "overlap")

    @cached_property
    def _task(self) -> SegmentationTask:
        return self._all.without(self._unused)

    @cached_property
    def _selection(self) -> tuple[Int[Array, " kept"], tuple[Finding, ...]]:
        return select_markers(self._task.marker_takes, self._task.pair_stats)

    @property
    def _kept(self) -> Int[Array, " kept"]:
        return self._selection[0]

    @cached_property
    def _groups(self) -> Mapping[str, Int[Array, " kept"]]:
        return group_by_subject(self._task.marker_takes[0], self._kept)

    @cached_property
    def _stats(self) -> PairStats:
        return self._task.pair_stats.select(self._kept)

    @cached_property
    def _tried(self) -> list[Clustering]:
        points = [take.points[:, self._kept] for take in self._task.marker_takes]
        return try_clusterings(points, self._stats)

    def _bodies(self, clustering: Clustering) -> tuple[Bodies, ...]:
        clusterings = {"": clustering}
        groups, findings = {"": self._kept}, self._selection[1]
        found = bodies_of_clusterings(self._task, groups, clusterings, findings)
        used = with_common_bodies(found)
        return with_unused_takes(used, self._all.takes, self._unused)
