"""The same bodies in every take of a subject, whatever each take shows of them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from marey.bodies import Bodies
from marey.report import Finding


def with_common_bodies(takes: Sequence[Bodies]) -> tuple[Bodies, ...]:
    """Return the takes with the bodies of all, in one order and with equal axes.

    A body that a take does not show has no pose there; its other properties come from
    the take with most bodies. The axes of a body are those of the first take that shows
    it.
    """
    takes = tuple(takes)
    if any(take.names != takes[0].names for take in takes):
        takes = _with_all_names(takes)
    aligned: tuple[Bodies, ...] = takes[:1]
    for take in takes[1:]:
        for earlier in reversed(aligned):
            take = take.align_axes(earlier)
        aligned = (*aligned, take)
    return aligned


def _with_all_names(takes: tuple[Bodies, ...]) -> tuple[Bodies, ...]:
    """Return the takes with the bodies of all of them, in one order."""
    names = tuple(dict.fromkeys(name for take in takes for name in take.names))
    parents: dict[str, str] = {}
    facts: dict[str, tuple[bool, float]] = {}
    for take in sorted(takes, key=lambda take: -len(take.names))[::-1]:
        parents = {**parents, **take.parents}
        facts |= _facts(take)
    return tuple(
        replace(
            with_more_bodies(take, names, {**facts, **_facts(take)}),
            parents=parents,
            findings=(*take.findings, *_missing_bodies(take, names)),
        )
        for take in takes
    )


def _facts(take: Bodies) -> dict[str, tuple[bool, float]]:
    """Return whether each body is determined, and its confidence, by name."""
    facts = zip(take.determined.tolist(), take.body_confidence.tolist(), strict=True)
    return dict(zip(take.names, facts, strict=True))


def with_more_bodies(
    take: Bodies, names: tuple[str, ...], facts: Mapping[str, tuple[bool, float]]
) -> Bodies:
    """Return a take with more bodies, which it does not show.

    Args:
        take: The take.
        names: Names of all bodies, in the order that is wanted.
        facts: Whether each body is determined, and its confidence, by name.
    """
    # The column after the last stands for all bodies that the take does not have.
    column = [(*take.names, name).index(name) for name in names]
    number = [*(names.index(name) for name in take.names), -1]
    unseen = np.full((len(take.T_world_body), 1, 4, 4), np.nan)
    determined, confidence = zip(*(facts[name] for name in names), strict=True)
    return replace(
        take,
        names=names,
        T_world_body=np.concatenate([take.T_world_body, unseen], axis=1)[:, column],
        determined=np.array(determined),
        marker_body=np.array(number)[take.marker_body],
        sensor_body=np.array(number)[take.sensor_body],
        shared=np.pad(take.shared, ((0, 0), (0, 1)))[:, column],
        body_confidence=np.array(confidence),
        rms=np.append(take.rms, np.nan)[column],
    )


def _missing_bodies(take: Bodies, names: tuple[str, ...]) -> Iterator[Finding]:
    """Yield a finding for every body that a take does not show."""
    path = take.take.source.path or "one of the takes"
    for name in names:
        if name not in take.names:
            yield Finding(
                code="body-missing",
                stage="segment",
                severity="info",
                message=f"no marker or sensor of it was recorded in {path}",
                subject=name,
            )
