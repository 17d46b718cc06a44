"""The same bodies in every take of a subject, whatever each take shows of them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from marey.bodies import Bodies
from marey.report import Finding


def alike(takes: Sequence[Bodies]) -> tuple[Bodies, ...]:
    """Return the takes with all bodies of all of them, in one order and with one axes.

    A body that a take does not show has no pose there, and what is known of it comes
    from the take that shows most.
    """
    takes = tuple(takes)
    if any(take.names != takes[0].names for take in takes):
        takes = _with_all(takes)
    # Each body has the axes of the first take that shows it.
    aligned: tuple[Bodies, ...] = takes[:1]
    for take in takes[1:]:
        for earlier in reversed(aligned):
            take = take.align_axes(earlier)
        aligned = (*aligned, take)
    return aligned


def _with_all(takes: tuple[Bodies, ...]) -> tuple[Bodies, ...]:
    names = tuple(dict.fromkeys(name for take in takes for name in take.names))
    fullest = sorted(takes, key=lambda take: -len(take.names))
    parents: dict[str, str] = {}
    for take in fullest:
        parents = {**take.parents, **parents}
    known = {name: take for take in reversed(fullest) for name in take.names}
    sides = [(known[name], known[name].names.index(name)) for name in names]
    determined = np.array([take.determined[body] for take, body in sides])
    confidence = np.array([take.body_confidence[body] for take, body in sides])
    return tuple(
        replace(
            _widened(take, names, determined, confidence),
            parents=parents,
            findings=(*take.findings, *_missing(take, names)),
        )
        for take in takes
    )


def _widened(
    take: Bodies,
    names: tuple[str, ...],
    determined: np.ndarray,
    confidence: np.ndarray,
) -> Bodies:
    place = [names.index(name) for name in take.names]
    T = np.full((len(take.T_world_body), len(names), 4, 4), np.nan)
    T[:, place] = take.T_world_body
    shared = np.zeros((len(take.shared), len(names)), dtype=bool)
    shared[:, place] = take.shared
    sure, wide = confidence.copy(), determined.copy()
    sure[place], wide[place] = take.body_confidence, take.determined
    rms = np.full(len(names), np.nan)
    rms[place] = take.rms
    return replace(
        take,
        names=names,
        T_world_body=T,
        determined=wide,
        marker_body=np.array([*place, -1])[take.marker_body],
        shared=shared,
        body_confidence=sure,
        rms=rms,
    )


def _missing(take: Bodies, names: tuple[str, ...]) -> Iterator[Finding]:
    for name in names:
        if name not in take.names:
            path = take.take.source.path or "one of the takes"
            yield Finding(
                code="body-missing",
                stage="segment",
                severity="info",
                message=f"nothing of it was recorded in {path}",
                subject=name,
            )
