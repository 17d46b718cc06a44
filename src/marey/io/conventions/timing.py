"""Recordings at another frame rate."""

from dataclasses import replace

import numpy as np

from marey.numerics import geometry
from marey.take import Take

SAME_FRAME = 1e-9
"""Distance from a frame, in frames, within which a time is that frame."""


def resample_take(take: Take, rate: float) -> Take:
    """Return a recording at another frame rate, over the same time.

    Positions are linear between frames, orientations follow the shortest rotation
    (slerp); between a known and a missing frame nothing is known. Frames that fall on
    a recorded frame are that frame.
    """
    last = max(take.n_frames - 1, 0)
    step = take.rate / rate
    position = np.arange(int(last / step + SAME_FRAME) + 1) * step
    nearest = np.round(position)
    position = np.where(np.abs(position - nearest) < SAME_FRAME, nearest, position)
    position = position.clip(0, last)[: take.n_frames and None]
    first = position.astype(np.int64)
    second = np.ceil(position).astype(np.int64)
    share = position - first
    points = take.points[first]
    points = points + share[:, None, None] * (take.points[second] - points)
    computed = take.computed.values
    if len(computed):
        computed = computed[first] + share[:, None, None] * (
            computed[second] - computed[first]
        )
    T = take.T_world_sensor
    wxyz = geometry.quat_from_matrix(T[..., :3, :3])
    changed = geometry.quat_slerp(wxyz[first], wxyz[second], share[:, None])
    place = T[first, :, :3, 3]
    place = place + share[:, None, None] * (T[second, :, :3, 3] - place)
    return replace(
        take,
        rate=rate,
        points=points,
        computed=replace(take.computed, values=computed),
        confidence=np.minimum(take.confidence[first], take.confidence[second]),
        filled=take.filled[first] | take.filled[second],
        T_world_sensor=geometry.transform(geometry.matrix_from_quat(changed), place),
        history=(*take.history, f"resampled to {rate:g} Hz"),
    )
