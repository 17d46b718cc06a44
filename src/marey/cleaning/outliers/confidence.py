"""Keypoints that their tracker is not sure of."""

import numpy as np

from marey.cleaning.repairs import record_repair, repair_warning
from marey.take import Take


def mask_unsure(take: Take, min_confidence: float) -> Take:
    """Return the take without the positions of low confidence, which become gaps.

    Positions without a confidence stay.

    Args:
        take: The recording.
        min_confidence: Smallest confidence that counts; a confidence of 0 never does.
    """
    unsure = (take.confidence < min_confidence) | (take.confidence <= 0.0)
    unsure &= take.seen
    if not unsure.any():
        return take
    share = float(unsure.sum() / take.seen.sum())
    message = (
        f"{unsure.sum()} positions ({100.0 * share:.0f} %) have a confidence of 0 or "
        f"below {min_confidence:g}: taken as missing"
    )
    finding = repair_warning("confidence-low", message, "confidence", value=share)
    points = np.where(unsure[..., None], np.nan, take.points)
    note = f"masked {unsure.sum()} positions of low confidence"
    return record_repair(take, [finding], [note], points=points)
