"""Frame counts and frame rates of text formats."""

import numpy as np

from marey.errors import DataError
from marey.io.file import File
from marey.io.options import MAX_RATE_HZ
from marey.io.text.numbers import parse_number
from marey.motion import Motion
from marey.numerics import Float
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
        lost = present < count
        file.note(
            "frames-missing" if lost else "frames-extra",
            f"frames declared {count:.15g}, present {present}: "
            + ("export it again if some are missing" if lost else "all are read"),
            value=present - count,
        )


def decide_rate(
    file: File,
    stated: str,
    times: Float[np.ndarray, " frame"],
    *,
    note: str,
    clock: str = "mean step of the times",
) -> Fact:
    """Return the frame rate: the stated one, else the mean rate of the times.

    Even times count more than a header that contradicts them: programs that leave out
    frames keep the header.

    Args:
        file: Collects findings about contradictory rates and uneven times.
        stated: Rate of the header; text that is no rate is ignored.
        times: Seconds, NaN where unknown.
        note: Where the file states the rate.
        clock: Where the file has the times.
    """
    rate, found = parse_rate(stated), mean_rate(times)
    contradicted = rate is not None and _contradicts(rate, times)
    if rate is None or (contradicted and _are_even(times)):
        fact = file.decide_fact(
            "rate",
            stated=f"{found:.10g}" if np.isfinite(found) else None,
            assumed="100",
            note=clock,
            how="inferred",
        )
    else:
        text = f"{rate:g}" if float(f"{rate:g}") == rate else repr(rate)
        fact = file.decide_fact("rate", stated=text, assumed="100", note=note)
    if contradicted and fact.how in ("stated", "inferred"):
        file.note(
            "rate-mismatch",
            f"{note} says {rate:g} Hz, the times {found:g} Hz: "
            f"{float(fact.value):g} Hz is used; give rate= if that is wrong",
            value=found,
        )
    _check_steps(file, times)
    return fact


def _contradicts(rate: float, times: Float[np.ndarray, " frame"]) -> bool:
    """Return whether the mean rate of the times is another than the stated one.

    Times are rounded, often to a millisecond: the two ends may be off by that.
    """
    tolerance = MAX_RATE_DRIFT + TIME_ROUNDING_S * rate / max(len(times) - 1, 1)
    return abs(mean_rate(times) / rate - 1.0) > tolerance


def _are_even(times: Float[np.ndarray, " frame"]) -> bool:
    """Return whether most steps of the times are the mean step, of less than a second.

    Longer steps are of a counter, or of another unit.
    """
    steps = np.diff(times)
    usual, mean = np.median(steps), np.mean(steps)
    return bool(
        usual < 1.0 and abs(usual - mean) <= MAX_RATE_DRIFT * mean + TIME_ROUNDING_S
    )


def parse_rate(text: str) -> float | None:
    """Return the rate in hertz that a word spells, None if it spells none."""
    rate = parse_number(text)
    return rate if rate is not None and 0.0 < rate < MAX_RATE_HZ else None


def first_time(times: Float[np.ndarray, " frame"]) -> float:
    """Return the time of the first frame in seconds, 0 when it is unknown."""
    return float(times[0]) if len(times) and np.isfinite(times[0]) else 0.0


def mean_rate(times: Float[np.ndarray, " frame"]) -> float:
    """Return the frames per second of a time column, NaN when it shows none."""
    with np.errstate(over="ignore"):
        span = times[-1] - times[0] if len(times) > 1 else np.nan
    rate = float((len(times) - 1) / span) if span > 0.0 else np.nan
    return rate if 0.0 < rate < MAX_RATE_HZ else np.nan


def _check_steps(file: File, times: Float[np.ndarray, " frame"]) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        steps = np.diff(times)
        usual = np.median(steps) if len(steps) else np.nan
        uneven = int((np.abs(steps - usual) > 0.5 * abs(usual) + TIME_ROUNDING_S).sum())
    file.note_count(
        "times-uneven",
        uneven,
        "steps of the times that are not one frame: {}; frames may be missing",
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
