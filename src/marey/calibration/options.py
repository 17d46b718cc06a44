"""How to calibrate."""

from dataclasses import dataclass

import numpy as np

from marey.errors import OptionError

FEWEST_FRAMES = 10

SHOULDERS = ("auto", "move", "fixed")


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrateOptions:
    """How to calibrate."""

    frames: int = 80
    """Most frames of a session that are used, evenly in time; 10 or more. Of many
    sessions each gives fewer, `most_frames` together."""

    most_frames: int = 320
    """Most frames of all sessions, though at least 10 of each."""

    sessions: tuple[int, ...] = ()
    """Number of the session of each take: markers are put on anew in each; every take
    is a session of its own when left out."""

    keep_bones: bool = False
    """Whether the bones are known, from another day's takes, and only the markers were
    put on anew."""

    shoulders: str = "auto"
    """Whether a person's shoulders "move" against the chest or are "fixed" to it; of
    people without labels they stay as they are."""

    independent: float = 1.0
    """Samples that all frames of a subject together are worth where skin moves with the
    pose; above 0."""

    def per_session(self, sessions: int) -> int:
        """Return how many frames each of so many sessions gives at most."""
        return min(self.frames, max(self.most_frames // sessions, FEWEST_FRAMES))

    def __post_init__(self) -> None:
        for name in ("frames", "most_frames"):
            if getattr(self, name) < FEWEST_FRAMES:
                needed = f"{FEWEST_FRAMES} or more"
                raise OptionError(name, found=getattr(self, name), needed=needed)
        if self.shoulders not in SHOULDERS:
            needed = " or ".join(SHOULDERS)
            raise OptionError("shoulders", found=self.shoulders, needed=needed)
        if not 0.0 < self.independent < np.inf:
            raise OptionError("independent", found=self.independent, needed="above 0")
