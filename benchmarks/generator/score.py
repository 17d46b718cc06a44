"""Answers against the truth: joints, bodies and trees, matched without their names."""

import numpy as np
from scipy.optimize import linear_sum_assignment

from benchmarks.generator.rotations import Array


def match_joints(found: Array, true: Array) -> Array:
    """Return the joint found for each true one, one to one, nearest in all; -1: none.

    Args:
        found: (frame, joint, 3), NaN where there is none.
        true: The same of the truth.
    """
    mean_square = np.array(
        [
            np.nanmean(np.sum((found - true[:, i : i + 1]) ** 2, axis=-1), axis=0)
            for i in range(true.shape[1])
        ]
    )
    rows, columns = linear_sum_assignment(np.sqrt(np.nan_to_num(mean_square, nan=1e6)))
    match = np.full(true.shape[1], -1)
    match[rows] = columns
    return match


def joint_errors(found: Array, true: Array, axis: Array | None = None) -> Array:
    """Return the rms distance of each true joint from the one found for it, in metres.

    Args:
        found: (frame, joint, 3), NaN where there is none.
        true: The same of the truth.
        axis: Axes of hinges in the world, zero for other joints. No motion shows where
            on its axis the centre of a hinge is: the distance is that from the axis.
    """
    match = match_joints(found, true)
    off = found[:, match] - true
    if axis is not None:
        off = off - np.sum(off * axis, axis=-1, keepdims=True) * axis
    errors = np.sqrt(np.nanmean(np.sum(off**2, axis=-1), axis=0))
    return np.asarray(np.where(match >= 0, errors, np.nan))


def rand_index(found: Array, true: Array) -> float:
    """Return the adjusted Rand index of two partitions (Hubert and Arabie 1985)."""
    table = np.zeros((found.max() + 1, true.max() + 1))
    np.add.at(table, (found, true), 1.0)

    def pairs(counts: Array) -> float:
        return float(np.sum(counts * (counts - 1.0)) / 2.0)

    both, rows, columns = pairs(table), pairs(table.sum(1)), pairs(table.sum(0))
    expected = rows * columns / pairs(np.array([len(found)]))
    most = (rows + columns) / 2.0
    return 1.0 if most == expected else (both - expected) / (most - expected)


def match_groups(found: Array, true: Array) -> dict[int, int]:
    """Return the true group of each found one: one to one, most members in common."""
    table = np.zeros((found.max() + 1, true.max() + 1))
    np.add.at(table, (found, true), 1.0)
    rows, columns = linear_sum_assignment(-table)
    pairs = zip(rows.tolist(), columns.tolist(), strict=True)
    return {row: column for row, column in pairs if table[row, column]}


def edges_right(
    parent: Array, match: dict[int, int], true_parent: Array
) -> tuple[int, int]:
    """Return how many joints of the true tree were found, and how many there are."""
    true = {frozenset((i, int(p))) for i, p in enumerate(true_parent) if p >= 0}
    found = {
        frozenset((match.get(i, -1), match.get(int(p), -2)))
        for i, p in enumerate(parent)
        if p >= 0
    }
    return len(true & found), len(true)
