"""Choice of the markers that unlabelled bodies are found from."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from marey.errors import DataError
from marey.numerics import Array, Bool, Float, Int
from marey.numerics.resampling import symmetric_sample
from marey.numerics.thresholds import (
    FEW,
    MIN_NOISE_SPACINGS,
    MIN_SAMPLES,
    SAMPLE_FRAMES,
)
from marey.report import Finding
from marey.segmentation.clusters.pair_statistics import (
    MIN_RIGID_MARKERS,
    PairStats,
)
from marey.segmentation.labels.spelling import is_name
from marey.take import Take


def common_labels(takes: Sequence[Take]) -> list[str]:
    """Return the labels that all takes have, in the order of the first."""
    others = [set(take.full_labels) for take in takes[1:]]
    labels = takes[0].full_labels
    return [label for label in labels if all(label in other for other in others)]


def least_common_take(takes: Sequence[Take]) -> int:
    """Return the take without which the others have most markers in common."""
    n_left = [
        len(common_labels([*takes[:k], *takes[k + 1 :]])) for k in range(len(takes))
    ]
    return int(np.argmax(n_left))


def few_common_markers(takes: Sequence[Take]) -> tuple[Finding, ...]:
    """Return the finding that most markers are not in all takes, and which lacks them.

    Markers that some take does not have are in no body.
    """
    common, most = common_labels(takes), max(len(take.labels) for take in takes)
    if 2 * len(common) >= most:
        return ()
    k = least_common_take(takes)
    others = common_labels([*takes[:k], *takes[k + 1 :]])
    lacking = [label for label in others if label not in common]
    where = takes[k].source.path or f"take {k + 1}"
    message = (
        f"{len(common)} of {most} markers are in all takes, and only these are used; "
        f"{where} lacks {list_labels(lacking)}"
    )
    value = len(common) / most
    return (
        Finding("markers-uncommon", "segment", "warning", message, where, value=value),
    )


def select_common_markers(takes: Sequence[Take]) -> tuple[Take, ...]:
    """Return the takes with the markers that all of them have, in one order.

    Raises:
        DataError: If there are fewer than three.
    """
    common = common_labels(takes)
    if len(common) < MIN_RIGID_MARKERS:
        raise DataError(
            "segment",
            found=f"{len(common)} markers"
            + (
                f" with the same names in {_name_takes(takes)}"
                if len(takes) > 1
                else ""
            ),
            needed="at least 3"
            + (
                "; takes without common names are solved one by one"
                if len(takes) > 1
                else ""
            ),
        )
    if len(takes) == 1:
        return tuple(takes)
    return tuple(
        take.select([take.full_labels.index(label) for label in common])
        for take in takes
    )


def _name_takes(takes: Sequence[Take]) -> str:
    """Return the files of takes, or how many takes there are."""
    paths = [take.source.path for take in takes]
    return " and ".join(paths) if all(paths) else f"all {len(takes)} takes"


def select_markers(
    takes: Sequence[Take], stats: PairStats, *, keep_computed: bool = False
) -> tuple[Int[Array, " kept"], tuple[Finding, ...]]:
    """Return the markers that are seen often and unique, and findings of the others.

    Args:
        takes: Takes of the same markers.
        stats: Distances of all pairs of markers.
        keep_computed: Whether exactly rigid points, which software computed, are kept.

    Raises:
        DataError: If fewer than three markers are left.
    """
    samples = [
        take.points[symmetric_sample(len(take.points), 2 * SAMPLE_FRAMES)]
        for take in takes
    ]
    n_seen = sum(np.isfinite(points).all(axis=-1).sum(axis=0) for points in samples)
    n_frames = max(len(take.points) for take in takes)
    often = np.asarray(n_seen) >= min(MIN_SAMPLES, n_frames)
    duplicate = find_duplicates(takes[0], stats, np.where(often, n_seen, 0))
    kept = often & ~duplicate
    computed = np.zeros_like(often)
    if not keep_computed:
        computed = kept & _find_computed(stats, kept)
    kept = kept & ~computed
    if kept.sum() < MIN_RIGID_MARKERS:
        raise DataError(
            "segment",
            found=f"{kept.sum()} markers seen in {MIN_SAMPLES} frames or more",
            needed="at least 3",
        )
    removed = {
        "markers-hardly-seen": (~often, "hardly ever seen"),
        "markers-repeated": (duplicate, "in the same position as another point"),
        "points-computed": (computed, "exactly rigid, so computed and not measured"),
    }
    findings = tuple(
        removal_finding(takes[0], code, reason, which)
        for code, (which, reason) in removed.items()
        if which.any()
    )
    return np.flatnonzero(kept), findings


def group_by_subject(
    take: Take, markers: Int[Array, " kept"]
) -> dict[str, Int[Array, " own"]]:
    """Return the markers of each stated subject; no body has markers of two.

    Markers of subjects with fewer than three markers have no subject here, like those
    that name none. All markers are one group unless two subjects are stated: markers
    that the operator did not label may be anybody's.
    """
    count = Counter(take.subjects[i] for i in markers)
    groups: dict[str, list[int]] = {}
    for i in markers.tolist():
        subject = take.subjects[i]
        is_body = count[subject] >= MIN_RIGID_MARKERS
        groups.setdefault(subject if is_body else "", []).append(i)
    if len(groups.keys() - {""}) < 2:
        return {"": markers}
    return {subject: np.array(own) for subject, own in groups.items()}


def find_duplicates(
    take: Take, stats: PairStats, n_seen: Int[Array, " marker"]
) -> Bool[Array, " marker"]:
    """Return which markers coincide with a better one.

    If two are in one position, the one with a name is better, then the one that is seen
    in more frames, then the first.

    Args:
        take: Has the labels.
        stats: Distances of all pairs of markers.
        n_seen: Number of frames that show each marker; 0 for those left out already.
    """
    known = stats.is_known
    median = np.median(stats.distance[known]) if known.any() else 0.0
    used = n_seen > 0
    same = known & (stats.distance < MIN_NOISE_SPACINGS * median)
    same &= used & used[:, None]
    named = np.array([is_name(label) for label in take.labels])
    rank = np.lexsort((-np.arange(len(named)), n_seen, named)).argsort()
    return np.asarray((same & (rank > rank[:, None])).any(axis=1))


def _find_computed(
    stats: PairStats, candidates: Bool[Array, " marker"]
) -> Bool[Array, " marker"]:
    """Return the points that are far more rigid than the others, if most points are.

    The smallest spreads of all points are sorted, and a jump in their upper half, with
    a few points on its way at most, divides computed from measured points. A few very
    rigid points are not enough: they are markers made rigid by cleaning, or a very
    stiff body. A computed point may keep its distance to a marker, so a point is
    computed only if it is rigid with three others that are rigid with each other.
    """
    spread = np.where(stats.is_known & candidates, stats.spread, np.inf)
    smallest = spread.min(axis=1)
    value = np.sort(smallest[candidates])
    half = len(value) // 2
    step = max(int(FEW * half), 1)
    jump = np.flatnonzero(value[half + step :] * FEW > value[half:-step])
    computed = np.zeros(len(candidates), dtype=bool)
    first = half + step + int(jump[0]) if len(jump) else len(value)
    if len(value) - first >= MIN_SAMPLES:
        measured = value[first]
        computed[candidates] = _cluster_spreads(spread, candidates) < measured
    return computed


def _cluster_spreads(
    spread: Float[Array, "marker marker"], candidates: Bool[Array, " marker"]
) -> Float[Array, " candidate"]:
    """Return the largest spread (m) of each point with the three nearest to rigid."""
    points = np.flatnonzero(candidates)
    nearest = np.argsort(spread[points], axis=1, kind="stable")[:, :MIN_RIGID_MARKERS]
    clusters = np.column_stack([points, nearest])
    inside = spread[clusters[:, :, None], clusters[:, None]]
    inside[:, np.eye(clusters.shape[1], dtype=bool)] = 0.0
    return np.asarray(inside.max(axis=(1, 2)))


def removal_finding(
    take: Take, code: str, reason: str, which: Bool[Array, " marker"]
) -> Finding:
    """Return the finding that some markers are left out, and why."""
    labels = [take.full_labels[i] for i in np.flatnonzero(which)]
    count = "1 point is" if len(labels) == 1 else f"{len(labels)} points are"
    return Finding(
        code,
        "segment",
        "info",
        f"{count} left out, {reason}: {list_labels(labels)}",
        value=float(len(labels)),
    )


def list_labels(labels: Sequence[str]) -> str:
    """Return the first labels, separated by commas."""
    first = labels[:8]
    return ", ".join(first) + (" ..." if len(labels) > len(first) else "")
