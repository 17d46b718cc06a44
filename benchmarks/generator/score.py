"""Answers against the truth: joints, bodies and trees, matched without their names."""

import numpy as np
from scipy.optimize import linear_sum_assignment

from benchmarks.generator.rotations import Array


def joint_errors(found: Array, true: Array) -> Array:
    """Return the rms distance of each true joint from the one found for it, in metres.

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
    mean_square = np.nan_to_num(mean_square, nan=1e6)
    rows, columns = linear_sum_assignment(np.sqrt(mean_square))
    errors = np.full(true.shape[1], np.nan)
    errors[rows] = np.sqrt(mean_square[rows, columns])
    return errors


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
