"""Options of the calibration."""

from dataclasses import dataclass

from marey.numerics.thresholds import MIN_SAMPLES
from marey.options import Options, choice, number


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrateOptions(Options):
    """Options of `calibrate`."""

    frames: int = number(80, low=MIN_SAMPLES)
    """Most frames of a take on average that are sampled, evenly in time; 10 or more. Of
    the takes of a session those with more motion give more. With many takes each gives
    fewer, `max_frames` together. More take longer; chosen by hand."""

    max_frames: int = number(320, low=MIN_SAMPLES)
    """Most frames of all takes together, though at least 10 of each. More take longer;
    chosen by hand."""

    sessions: tuple[int, ...] = ()
    """Session number of each take. Markers are attached again in each session. If
    empty, takes are of one session if their markers sit in the same places."""

    keep_bones: bool = False
    """Whether the bones are known from another day's takes. Only the marker offsets are
    then estimated."""

    keep_markers: bool = False
    """With `keep_bones`, whether the markers stay where they sit on the skeleton, too,
    unless the takes show that they were attached again."""

    known_markers: tuple[str, ...] = ()
    """With `keep_bones`, labels of markers whose offsets are known and stay."""

    shoulders: str = choice("auto", "move", "fixed")
    """Whether a person's shoulders "move" relative to the chest or are "fixed" to it.
    Without known labels the shoulders stay as they are."""

    effective_samples: float = number(1.0, above=0.0)
    """Independent samples that all frames of a subject together are worth where soft
    tissue moves with the pose; above 0. Higher trusts the frames more and the priors
    less."""

    def frames_per_take(self, n_takes: int) -> int:
        """Return the most frames that a take gives on average."""
        return min(self.frames, max(self.max_frames // n_takes, MIN_SAMPLES))
