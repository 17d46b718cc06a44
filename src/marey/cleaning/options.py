"""Options of `marey.clean`."""

from dataclasses import dataclass

from marey.options import Options, number


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanOptions(Options):
    """Which errors of the recording are repaired, and how large they must be."""

    min_jump: float = number(0.05, low=0.0)
    """Smallest jump of a sensor that can be an outlier, in metres. Higher keeps larger
    jumps. Chosen by hand."""

    min_flip: float = number(0.5, low=0.0)
    """Smallest sudden rotation of a sensor that can be an outlier, in radians. Chosen
    by hand."""

    min_spike: float = number(0.02, low=0.0)
    """Smallest jump of a marker that can be an outlier, in metres. Higher keeps larger
    jumps. Chosen by hand."""

    max_outlier: float = number(0.5, low=0.0)
    """Longest duration of an outlier, in seconds. A sensor or marker that stays away
    longer has moved or slipped. Chosen by hand."""

    mask_frozen: bool = True
    """Whether to mask values that a sensor repeats although it moves."""

    min_confidence: float = number(0.0, low=0.0, high=1.0)
    """Smallest confidence of a keypoint, 0 to 1; less sure positions are masked. Higher
    masks more."""

    undo_swaps: bool = True
    """Whether to undo label swaps."""

    max_gap: float = number(0.0, low=0.0)
    """Longest gap of a marker that is filled from its neighbours, in seconds; 0 fills
    no gap."""
