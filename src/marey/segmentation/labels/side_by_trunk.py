"""Side of a single arm or leg whose labels name none, by the landmarks of the trunk."""

from collections.abc import Iterable, Mapping

import numpy as np

from marey.anatomy import names as vrm
from marey.numerics import Array, Float
from marey.numerics.thresholds import MOST
from marey.segmentation.labels.words import (
    limb_of,
    vocabulary,
    words_of_label,
)
from marey.take import Take


def names_with_sides(
    take: Take, members: Mapping[str, tuple[int, ...]]
) -> dict[str, str]:
    r"""Return the names on a side of bodies of limbs that have none, if it is clear.

    The left of the trunk is the cross product of up and forward,

    .. math:: l = (\bar p_{upper} - \bar p_{lower}) \times
                  (\bar p_{front} - \bar p_{back})

    with the means of landmarks at each end. The side is that of the innermost body of
    the limb from the middle of all, if most frames agree; no axis of the recording
    counts. Without landmarks at all four ends names stay as they are.

    Args:
        take: The recording.
        members: Markers of each body.
    """
    in_trunk = {
        i for body, some in members.items() if not limb_of(body) for i in some
    } - {i for body, some in members.items() if limb_of(body) for i in some}
    left = _left_of_trunk(take, sorted(in_trunk))
    names: dict[str, str] = {}
    for limb in (vrm.ARM, vrm.LEG):
        inner = next((body for body in limb if body in members), "")
        if inner and left is not None:
            direction, middle = left
            own = sorted(set(members[inner]) - in_trunk)
            side = _clear_side(take.points[:, own], direction, middle)
            kind = limb_of(inner)
            some = [b for b in members if limb_of(b) == kind] if side else []
            names |= {body: side + body for body in some}
    return names


def _left_of_trunk(
    take: Take, markers: Iterable[int]
) -> tuple[Float[Array, "frame 3"], Float[Array, "frame 3"]] | None:
    """Return the left of the trunk and its middle in every frame; None if unknown."""
    words = {i: words_of_label(take.labels[i]) for i in markers}
    ends = {
        where: [i for i, own in words.items() if own & some]
        for where, some in vocabulary().trunk.items()
    }
    if not all(ends.values()):
        return None
    mean = {where: take.points[:, some].mean(axis=1) for where, some in ends.items()}
    up, forward = mean["upper"] - mean["lower"], mean["front"] - mean["back"]
    return np.cross(up, forward), (mean["front"] + mean["back"]) / 2.0


def _clear_side(
    points: Float[Array, "frame marker 3"],
    left: Float[Array, "frame 3"],
    middle: Float[Array, "frame 3"],
) -> str:
    """Return the side of the trunk that points are on; "" unless most frames agree."""
    offset = points.mean(axis=1) - middle
    side = np.sign(np.einsum("fi,fi->f", offset, left))
    side = side[np.isfinite(side)]
    share = float(side.mean()) if len(side) else 0.0
    if abs(share) < 2.0 * MOST - 1.0:
        return ""
    return vrm.LEFT if share > 0 else vrm.RIGHT
