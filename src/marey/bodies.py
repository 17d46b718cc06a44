"""Rigid bodies moving through a take."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Float, Int

from marey.report import Finding
from marey.take import Take


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

    parents: Mapping[str, str] = field(default_factory=dict)
    """Parent of each body by name, where a map or the labels say it; else empty."""

    findings: tuple[Finding, ...] = ()
    """What finding the bodies met: markers missing from a map, bodies left soft."""

    @property
    def seen(self) -> Bool[np.ndarray, "frame body"]:
        """Whether each body has a pose in each frame."""
        return np.asarray(np.isfinite(self.T_world_body).all(axis=(-1, -2)))
