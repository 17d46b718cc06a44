"""What the index shows of a solution: counts, residuals, findings and a picture."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from marey.anatomy import names as vrm
from marey.motion import Motion
from marey.report import Finding, Table
from marey.solution import Solution


def facts_of(solution: Solution, findings: Iterable[Finding]) -> dict[str, Any]:
    """Return what the index shows of a solution."""
    found = list(findings)
    take = solution.takes[0]
    tables = solution.report.tables
    rms, worst_bone = residual_mm(tables.get("residuals"))
    return {
        "n_frames": take.n_frames,
        "rate": float(take.rate),
        "n_markers": len(take.labels),
        "n_sensors": len(take.sensor_names),
        "seen": _share_seen(solution),
        "subjects": [subject.name for subject in solution.subjects],
        "n_joints": sum(s.skeleton.n_joints for s in solution.subjects),
        "residual_mm": rms,
        "worst_bone": worst_bone,
        "bones": [list(row) for row in tables["bones"].rows]
        if "bones" in tables
        else [],
        "codes": dict(sorted(Counter(f.code for f in found).items())),
        "findings": [
            [f.severity, f.stage, f.code, f.subject, f.message] for f in found
        ],
        "picture": draw_picture([subject.motions[0] for subject in solution.subjects]),
    }


def _share_seen(solution: Solution) -> float:
    seen = [
        np.concatenate([t.seen.ravel(), t.sensor_seen.ravel()]) for t in solution.takes
    ]
    together = np.concatenate(seen)
    return round(float(together.mean()), 4) if len(together) else 0.0


def residual_mm(table: Table | None) -> tuple[float | None, str]:
    """Return the rms of all residuals in mm, and the bone with the largest one."""
    if table is None:
        return None, ""
    bone, rms = table.columns.index("bone"), table.columns.index("rms mm")
    of_bone: dict[str, list[float]] = {}
    for row in table.rows:
        of_bone.setdefault(str(row[bone]), []).append(float(row[rms]) ** 2)
    squares = [square for all_of_one in of_bone.values() for square in all_of_one]
    worst = max(of_bone, key=lambda name: float(np.mean(of_bone[name])))
    return round(float(np.sqrt(np.mean(squares))), 3), worst


def draw_picture(motions: Sequence[Motion]) -> dict[str, str]:
    """Return the bones in the middle of a take as SVG paths: left, right and others.

    The view is level, along the horizontal direction in which the figures are flattest.
    """
    segments: list[tuple[str, Any]] = []
    for motion in motions:
        joints = motion.T_world_joint()[..., :3, 3]
        known = np.flatnonzero(np.isfinite(joints).all(axis=(1, 2)))
        if not len(known):
            continue
        places = joints[known[len(known) // 2]]
        for joint, parent in enumerate(motion.skeleton.parent):
            if parent >= 0:
                side = vrm.side_of(motion.skeleton.names[joint])
                segments.append((side, places[[parent, joint]]))
    if not segments:
        return {}
    flat = _project(np.array([ends for _, ends in segments]))
    paths: dict[str, str] = {}
    for (side, _), ((x0, y0), (x1, y1)) in zip(segments, flat, strict=True):
        name = side.lower() or "middle"
        paths[name] = paths.get(name, "") + f"M{x0} {y0}L{x1} {y1}"
    return paths


def _project(segments: Any) -> Any:
    """Return segments (segment, end, 3) in whole percent of the side of a picture."""
    level = segments.reshape(-1, 3)[:, :2]
    _, _, axes = np.linalg.svd(level - level.mean(axis=0), full_matrices=False)
    flat = np.stack([segments[..., :2] @ axes[0], -segments[..., 2]], axis=-1)
    low, high = flat.min(axis=(0, 1)), flat.max(axis=(0, 1))
    scale = 100.0 / max(float((high - low).max()), 1e-9)
    from_middle = (flat - (low + high) / 2.0) * scale
    return np.rint(from_middle + 100.0 / 2.0).astype(int)
