"""Record of a repair: findings and history of the repaired take."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from marey.cleaning.arrays import Array
from marey.numerics import Float
from marey.report import Finding
from marey.take import Take


def record_repair(
    take: Take, findings: Sequence[Finding], notes: Sequence[str], **changes: Any
) -> Take:
    """Return the take with some fields replaced, and with a record of the repair.

    Args:
        take: The recording before the repair.
        findings: What was repaired, for the report.
        notes: What was repaired, one line of history each.
        **changes: New values of fields of the take.
    """
    take = take.with_findings(*findings)
    return replace(take, history=(*take.history, *notes), **changes)


def repair_warning(
    code: str,
    message: str,
    subject: str,
    frames: tuple[int, int] = (-1, -1),
    value: float = float("nan"),
) -> Finding:
    """Return a warning of the stage "clean"; see `Finding` for the arguments."""
    return Finding(code, "clean", "warning", message, subject, frames, value)


def scaled_lengths(take: Take, factor: float) -> dict[str, Float[Array, "..."]]:
    """Return the points and the sensors of a take with all lengths times a factor."""
    T = take.T_world_sensor.copy()
    T[..., :3, 3] *= factor
    return {"points": take.points * factor, "T_world_sensor": T}
