"""Where planted points are held, and how they come and go."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from marey.pose.contact.ground import STEP, Ground
from marey.pose.contact.inverse_kinematics import Wishes
from marey.pose.contact.points import Spots
from marey.pose.contact.stance import Plant

Array = np.ndarray

# How long a correction takes to come before a plant and to go after it, in seconds.
BLEND = 0.2

# What a planted point counts beside staying where it was; what it counts where a plant
# begins and ends; and what is as good as nothing. It goes from one to the next by equal
# factors: where two points of a foot cannot both have their way, one that is let go
# gives in little by little.
FIRM, LOOSE, FAINT = 1e6, 1e4, 1e-3

# How long a plant takes to be firm, in seconds.
FIRMS = 0.03

# The correction that comes and goes is that of the plant's outermost seconds.
EDGE = 0.05

# Rounds in which anchors of one body are brought to the distance they have on it.
ROUNDS = 50


def settled(
    spots: Spots,
    plants: Sequence[Plant],
    ground: Ground,
    apart: Float[Array, "spot spot"],
) -> list[Plant]:
    """Return plants on the ground, those of one body as far apart as they are on it.

    Else a foot that stands on heel and toe would be torn between their anchors, and
    jump when one of them lets go. A plant on a step or a box keeps its height.

    Args:
        spots: The points.
        plants: Their plants, in order of their beginning.
        ground: The plane, and the height of every point.
        apart: Distances of points; those of one body do not change.
    """
    anchor = np.array([plant.anchor for plant in plants]).reshape(-1, 3)
    level = [abs(ground.off(plant)) < STEP for plant in plants]
    pairs = list(_together(spots, plants))
    for _ in range(ROUNDS):
        for i, k in pairs:
            way = anchor[k] - anchor[i]
            length = max(np.linalg.norm(way), 1e-9)
            excess = 1.0 - apart[plants[i].spot, plants[k].spot] / length
            anchor[i] += 0.5 * excess * way
            anchor[k] -= 0.5 * excess * way
        for i in np.flatnonzero(level).tolist():
            anchor[i, 2] -= ground.off(replace(plants[i], anchor=anchor[i]))
    return [replace(p, anchor=a) for p, a in zip(plants, anchor, strict=True)]


def _together(spots: Spots, plants: Sequence[Plant]) -> Iterator[tuple[int, int]]:
    """Yield pairs of plants of one body that stand at the same time.

    Plants are in order of their beginning.
    """
    for i, one in enumerate(plants):
        for k in range(i + 1, len(plants)):
            if plants[k].start > one.end:
                break
            same = spots.body[one.spot] == spots.body[plants[k].spot]
            if same and one.spot != plants[k].spot:
                yield i, k


def wishes_of(
    spots: Spots,
    plants: Sequence[Plant],
    paths: Float[Array, "frame spot 3"],
    ground: Ground,
    rate: float,
) -> Wishes:
    """Return where points should be: planted, on their way, and not underground."""
    total, most = np.zeros((2, *paths.shape[:2]))
    moved = np.zeros_like(paths)
    for plant in plants:
        share, correction = _correction(plant, paths[:, plant.spot], rate)
        total[:, plant.spot] += share
        most[:, plant.spot] = np.maximum(most[:, plant.spot], share)
        moved[:, plant.spot] += share[:, None] * correction
    moved /= np.maximum(total, 1e-12)[..., None]
    return Wishes(
        axes=_axes(ground),
        goal=paths + moved,
        share=most,
        floor=floor_of(spots, plants, ground, len(paths)),
    )


def _correction(
    plant: Plant, path: Float[Array, "frame 3"], rate: float
) -> tuple[Float[Array, " frame"], Float[Array, "frame 3"]]:
    """Return how much a plant counts in every frame, and how far the point is off."""
    frames = plant.frames
    time = np.arange(len(path))
    gone = np.maximum(frames[0] - time, time - frames[-1])
    gone = gone.clip(0) / (BLEND * rate)
    inside = np.minimum(frames - frames[0], frames[-1] - frames) / (FIRMS * rate)
    odds = LOOSE * (FAINT / LOOSE) ** gone
    odds[frames] = LOOSE * (FIRM / LOOSE) ** inside.clip(max=1.0)
    share = np.where(gone < 1.0, odds / (1.0 + odds), 0.0)
    correction = plant.anchor - path
    few = max(round(EDGE * rate), 2)
    correction[: frames[0]] = _at_edge(correction[frames[:few]])
    correction[frames[-1] + 1 :] = _at_edge(correction[frames[-few:]][::-1])
    return share, np.where(share[:, None] > 0.0, correction, 0.0)


def _at_edge(values: Float[Array, "frame 3"]) -> Float[Array, " 3"]:
    """Return the first of some values, by the straight line through all of them."""
    at = np.flatnonzero(np.isfinite(values).all(axis=1)).astype(float)
    known = values[at.astype(np.int64)]
    if len(at) < 3:
        return known.mean(axis=0) if len(at) else np.zeros(3)
    around = at - at.mean()
    slope = around @ known / (around @ around)
    return np.asarray(known.mean(axis=0) - at.mean() * slope)


def _axes(ground: Ground) -> Float[Array, "3 3"]:
    """Return rows: two directions along the ground, and out of it."""
    up = ground.normal
    along = np.cross([0.0, 1.0, 0.0], up)
    along = along / np.linalg.norm(along)
    return np.stack([along, np.cross(up, along), up])


def floor_of(
    spots: Spots, plants: Sequence[Plant], ground: Ground, n_frames: int
) -> Float[Array, "frame spot"]:
    """Return the ground under every point along its normal; -inf under markers.

    Where the point was planted last, or will be next, below the plane, on a step
    down, the ground is there.
    """
    lower = np.zeros((n_frames, len(ground.height)))
    frames = np.arange(n_frames)
    for spot in range(len(ground.height)):
        if not spots.sole[spot]:
            lower[:, spot] = -np.inf
            continue
        mine = [plant for plant in plants if plant.spot == spot]
        if not mine:
            continue
        off = np.array([ground.off(plant) for plant in mine])
        off = np.where(off < -STEP, off, 0.0)
        after = np.searchsorted([plant.start for plant in mine], frames, side="right")
        before = (after - 1).clip(min=0)
        lower[:, spot] = np.minimum(off[before], off[after.clip(max=len(off) - 1)])
    return np.asarray((ground.height + lower) * ground.normal[2])
