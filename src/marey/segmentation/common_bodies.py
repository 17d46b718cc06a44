"""The same bodies in every take of a subject, whatever each take shows of them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Float

from marey.bodies import Bodies
from marey.report import Finding

Array = np.ndarray


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
    fullest_last = sorted(takes, key=lambda take: -len(take.names))[::-1]
    parents: dict[str, str] = {}
    source: dict[str, tuple[Bodies, int]] = {}
    for take in fullest_last:
        parents = {**parents, **take.parents}
        source |= {name: (take, body) for body, name in enumerate(take.names)}
    sources = [source[name] for name in names]
    determined = np.array([take.determined[body] for take, body in sources])
    confidence = np.array([take.body_confidence[body] for take, body in sources])
    return tuple(
        replace(
            _with_names(take, names, determined, confidence),
            parents=parents,
            findings=(*take.findings, *_missing_bodies(take, names)),
        )
        for take in takes
    )


def _with_names(
    take: Bodies,
    names: tuple[str, ...],
    determined: Bool[Array, " body"],
    confidence: Float[Array, " body"],
) -> Bodies:
    """Return a take with more bodies, which it does not show.

    Args:
        take: The take.
        names: Of all bodies.
        determined: Of all bodies, for those that the take does not have.
        confidence: Likewise.
    """
    index = [names.index(name) for name in take.names]
    T = np.full((len(take.T_world_body), len(names), 4, 4), np.nan)
    T[:, index] = take.T_world_body
    shared = np.zeros((len(take.shared), len(names)), dtype=bool)
    shared[:, index] = take.shared
    confidence, determined = confidence.copy(), determined.copy()
    confidence[index], determined[index] = take.body_confidence, take.determined
    rms = np.full(len(names), np.nan)
    rms[index] = take.rms
    return replace(
        take,
        names=names,
        T_world_body=T,
        determined=determined,
        marker_body=np.array([*index, -1])[take.marker_body],
        shared=shared,
        body_confidence=confidence,
        rms=rms,
    )


def _missing_bodies(take: Bodies, names: tuple[str, ...]) -> Iterator[Finding]:
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
