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
    limbs = [[body for body in limb if body in members] for limb in (vrm.ARM, vrm.LEG)]
    if not any(limbs):
        return {}
    on_limbs = {i for body, some in members.items() if limb_of(body) for i in some}
    on_trunk = set().union(*members.values()) - on_limbs
    left = _left_of_trunk(take, sorted(on_trunk))
    if left is None:
        return {}
    names: dict[str, str] = {}
    for inner in (limb[0] for limb in limbs if limb):
        side = _clear_side(take.points[:, sorted(members[inner])], *left)
        some = [body for body in members if limb_of(body) == limb_of(inner)]
        names |= {body: side + body for body in some if side}
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
