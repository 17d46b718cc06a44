"""Options of the calibration."""

from dataclasses import dataclass

import numpy as np

from marey.errors import OptionError

MIN_FRAMES = 10
"""Fewest frames of a session that may be asked for. Chosen by hand."""

SHOULDERS = ("auto", "move", "fixed")


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrateOptions:
    """Options of `calibrate`."""

    frames: int = 80
    """Most frames of a session that are sampled, evenly in time; 10 or more. With many
    sessions each gives fewer, `max_frames` together."""

    max_frames: int = 320
    """Most frames of all sessions together, though at least 10 of each."""

    sessions: tuple[int, ...] = ()
    """Session number of each take. Markers are attached again in each session. If
    empty, every take is a session of its own."""

    keep_bones: bool = False
    """Whether the bones are known from another day's takes. Only the marker offsets are
    then estimated."""

    shoulders: str = "auto"
    """Whether a person's shoulders "move" relative to the chest or are "fixed" to it.
    Without known labels the shoulders stay as they are."""

    effective_samples: float = 1.0
    """Independent samples that all frames of a subject together are worth where soft
    tissue moves with the pose; above 0. Higher trusts the frames more and the priors
    less."""

    def __post_init__(self) -> None:
        for name in ("frames", "max_frames"):
            if getattr(self, name) < MIN_FRAMES:
                needed = f"{MIN_FRAMES} or more"
                raise OptionError(name, found=getattr(self, name), needed=needed)
        if self.shoulders not in SHOULDERS:
            needed = " or ".join(SHOULDERS)
            raise OptionError("shoulders", found=self.shoulders, needed=needed)
        if not 0.0 < self.effective_samples < np.inf:
            raise OptionError(
                "effective_samples", found=self.effective_samples, needed="above 0"
            )

    def frames_per_session(self, n_sessions: int) -> int:
        """Return the most frames that each session gives."""
        return min(self.frames, max(self.max_frames // n_sessions, MIN_FRAMES))
