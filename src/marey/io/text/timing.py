"""Frame counts and frame rates of text formats."""

import numpy as np
from jaxtyping import Float

from marey.errors import DataError
from marey.io.contract import MAX_RATE_HZ, File
from marey.io.text.numbers import parse_number
from marey.motion import Motion
from marey.take import Fact

MAX_RATE_DRIFT = 0.01
"""Largest relative difference between the stated rate and the mean rate of the times.

Higher accepts more contradictory files without a finding. Chosen by hand.
"""

TIME_ROUNDING_S = 1e-3
"""Rounding of written times, in seconds; many programs write milliseconds.

Higher accepts more uneven times without a finding. Chosen by hand.
"""


def note_frame_count(file: File, declared: str, present: int) -> None:
    """Add a finding when the file holds another number of frames than it declares.

    Args:
        file: Collects the finding.
        declared: Frame count of the header; text that is no number is ignored.
        present: Frames found.
    """
    count = parse_number(declared)
    if count is not None and count != present:
        file.note(
            "frames-missing" if present < count else "frames-extra",
            f"frames declared {count:.15g}, present {present}",
            value=present - count,
        )


def decide_rate(
    file: File, stated: str, times: Float[np.ndarray, " frame"], *, note: str
) -> Fact:
    """Return the frame rate: the stated one, else the mean rate of the times.

    Args:
        file: Collects findings about contradictory rates and uneven times.
        stated: Rate of the header; text that is no rate is ignored.
        times: Seconds, NaN where unknown.
        note: Where the file states the rate.
    """
    value = parse_number(stated)
    if value is not None and 0.0 < value < MAX_RATE_HZ:
        text = f"{value:g}" if float(f"{value:g}") == value else repr(value)
        rate = file.decide_fact("rate", stated=text, assumed="100", note=note)
        if rate.how == "stated":
            _check_rate(file, times, value)
        return rate
    inferred = mean_rate(times)
    return file.decide_fact(
        "rate",
        stated=f"{inferred:.10g}" if np.isfinite(inferred) else None,
        assumed="100",
        note="mean step of the times",
        how="inferred",
    )


def first_time(times: Float[np.ndarray, " frame"]) -> float:
    """Return the time of the first frame in seconds, 0 when it is unknown."""
    return float(times[0]) if len(times) and np.isfinite(times[0]) else 0.0


def mean_rate(times: Float[np.ndarray, " frame"]) -> float:
    """Return the frames per second of a time column, NaN when times do not grow."""
    span = times[-1] - times[0] if len(times) > 1 else np.nan
    return float((len(times) - 1) / span) if span > 0.0 else np.nan


def _check_rate(file: File, times: Float[np.ndarray, " frame"], rate: float) -> None:
    inferred = mean_rate(times)
    tolerance = MAX_RATE_DRIFT + TIME_ROUNDING_S * rate / max(len(times) - 1, 1)
    if abs(inferred / rate - 1.0) > tolerance:
        file.note(
            "rate-mismatch",
            f"the header says {rate:g} Hz, the times {inferred:g} Hz: took {rate:g}",
            value=inferred,
        )
        return
    steps = np.diff(times) * rate
    uneven = int((np.abs(steps - 1.0) > 0.5 + TIME_ROUNDING_S * rate).sum())
    if uneven:
        file.note(
            "times-uneven",
            f"{uneven} steps of the times are not one frame: frames may be missing",
            value=float(uneven),
        )


def check_even_rate(motion: Motion) -> float:
    """Return the frame rate of a motion in hertz.

    Raises:
        DataError: If its frames are not evenly spaced.
    """
    if not np.isfinite(motion.rate):
        raise DataError(
            "motion.rate",
            found="frames that are not evenly spaced",
            needed="an even rate: motion.resample(rate)",
        )
    return float(motion.rate)
