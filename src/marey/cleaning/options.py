"""Options of `marey.clean`."""

from dataclasses import dataclass

from marey.errors import OptionError

_RANGES: dict[str, tuple[float, float, str]] = {
    "min_jump": (0.0, 100.0, "m"),
    "min_flip": (0.0, 3.2, "rad"),
    "min_spike": (0.0, 100.0, "m"),
    "max_outlier": (0.0, 1e4, "s"),
    "max_gap": (0.0, 1e4, "s"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanOptions:
    """Which errors of the recording are repaired, and how large they must be."""

    min_jump: float = 0.05
    """Smallest jump of a sensor that can be an outlier, 0 to 100 m. Chosen by hand."""

    min_flip: float = 0.5
    """Smallest sudden rotation of a sensor that can be an outlier, 0 to 3.2 rad. Chosen
    by hand."""

    min_spike: float = 0.02
    """Smallest jump of a marker that can be an outlier, 0 to 100 m. Chosen by hand."""

    max_outlier: float = 0.5
    """Longest duration of an outlier, 0 to 1e4 s. A sensor or marker that stays away
    longer has moved or slipped. Chosen by hand."""

    mask_frozen: bool = True
    """Whether to mask values that a sensor repeats although it moves."""

    undo_swaps: bool = True
    """Whether to undo label swaps."""

    max_gap: float = 0.0
    """Longest gap of a marker that is filled from its neighbours, 0 to 1e4 s; 0 fills
    no gap."""

    def __post_init__(self) -> None:
        for name, (low, high, unit) in _RANGES.items():
            value = getattr(self, name)
            if not low <= value <= high:
                needed = f"{low:g} to {high:g} {unit}"
                raise OptionError(name, found=value, needed=needed)
