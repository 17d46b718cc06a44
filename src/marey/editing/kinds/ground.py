"""Edit "ground": the plane that feet stand on."""

from collections.abc import Sequence

import numpy as np

from marey.editing.draft import EditStep, PlanDraft
from marey.edits import Edit
from marey.motion import GroundPlane
from marey.report import Finding


def plan_ground(draft: PlanDraft, step: EditStep) -> None:
    """Set the ground; the last edit counts."""
    draft.ground = step.edit


def floor_of(ground: Edit) -> GroundPlane:
    """Return the plane of points x with normal . x = height as a height function."""
    x, y, z = ground.normal
    return GroundPlane(height=ground.height / z, slope=(-x / z, -y / z))


def replace_ground_findings(
    findings: Sequence[Finding], ground: Edit
) -> tuple[Finding, ...]:
    """Return findings with the user's ground in place of the estimated one."""
    others = (f for f in findings if f.code not in ("ground", "ground-unknown"))
    length = float(np.linalg.norm(ground.normal))
    slope = np.degrees(np.arccos(np.clip(ground.normal[2] / length, -1.0, 1.0)))
    height = ground.height / length
    message = (
        f"the ground was set by hand, {1e3 * height:.0f} mm from the origin and "
        f"{slope:.1f}° off level"
    )
    return (*others, Finding("ground", "edit", "info", message, value=height))
