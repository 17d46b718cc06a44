"""Rigid bodies moving through a take."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Bool, Float, Int

from marey.numerics import geometry
from marey.report import Finding
from marey.take import Take

MarkerName = tuple[str, int]
"""A marker's full label, and how many before it have the same."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Bodies:
    """Rigid bodies moving through a take, one coordinate frame each.

    Optical markers reach this type through `segment`; a magnetic sensor is a body
    already. From here on the two kinds of capture are the same problem.
    """

    take: Take
    """The recording the bodies were found in."""

    names: tuple[str, ...]
    """One name per body, unique."""

    T_world_body: Float[np.ndarray, "frame body 4 4"]
    """Pose of each body in the world, in metres. NaN where the body was not seen."""

    determined: Bool[np.ndarray, " body"]
    """False for bodies of one or two markers, whose turn about themselves is soft."""

    marker_body: Int[np.ndarray, " marker"]
    """Body of each marker; -1 = none."""

    shared: Bool[np.ndarray, "marker body"]
    """Every body a marker belongs to: a marker on a joint line may be in two."""

    marker_confidence: Float[np.ndarray, " marker"]
    """Probability that `marker_body` is right, 0 to 1."""

    body_confidence: Float[np.ndarray, " body"]
    """Probability that the body is one rigid thing, 0 to 1."""

    marker_offset: Float[np.ndarray, "marker 3"]
    """Place of each marker in its body's coordinates, in metres; NaN without a body."""

    rms: Float[np.ndarray, " body"]
    """Root mean square distance of the body's markers from rigid, in metres."""

    marker_noise: Float[np.ndarray, " told"] = field(
        default_factory=lambda: np.zeros(0)
    )
    """How far each marker strays from the others of its body, one standard deviation in
    metres; empty where it was not asked."""

    keypoints: bool = False
    """Whether the points are joints: bodies that share one turn about it."""

    parents: Mapping[str, str] = field(default_factory=dict)
    """Parent of each body by name, where a map or the labels say it; else empty."""

    findings: tuple[Finding, ...] = ()
    """What finding the bodies met: markers missing from a map, bodies left soft."""

    @property
    def seen(self) -> Bool[np.ndarray, "frame body"]:
        """Whether each body has a pose in each frame."""
        return np.asarray(np.isfinite(self.T_world_body).all(axis=(-1, -2)))

    @property
    def marker_names(self) -> tuple[MarkerName, ...]:
        """What each marker is known by in other takes."""
        used: Counter[str] = Counter()
        names = []
        for label in self.take.full_labels:
            names.append((label, used[label]))
            used[label] += 1
        return tuple(names)

    def align_axes(self, other: "Bodies") -> "Bodies":
        """Return the bodies with the axes that another take gave them.

        Both have the same bodies. Axes come from markers that both takes have on a
        body; a body that too few of them fix keeps its own.
        """
        T, offset = self.T_world_body.copy(), self.marker_offset.copy()
        place = dict(zip(other.marker_names, other.marker_offset, strict=True))
        names = self.marker_names
        for body in np.flatnonzero(self.determined & other.determined).tolist():
            mine = np.flatnonzero(self.marker_body == body)
            known = [i for i in mine if names[i] in place]
            there = np.array([place[names[i]] for i in known]).reshape(-1, 3)
            T_own_other = geometry.kabsch(there, offset[known])
            if np.isfinite(T_own_other).all():
                T[:, body] = T[:, body] @ T_own_other
                back = geometry.inverse(T_own_other)
                offset[mine] = geometry.apply(back, offset[mine])
        return replace(self, T_world_body=T, marker_offset=offset)
