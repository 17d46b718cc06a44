"""A full character, skinned around the estimated skeleton and driven by its motion."""

from collections.abc import Sequence
from typing import Any

import numpy as np

import marey
from marey.io import BodyMesh, build_body_mesh
from marey.papers.deaguiar2006.people import record_person
from marey.papers.deaguiar2006.stick_figure import draw_faces
from marey.papers.frame import Drawing, Effort, Experiment, experiment, table
from marey.papers.measures import rms, rounded
from marey.papers.plots import equalise_scales, make_panels
from marey.papers.stills import side_view
from marey.plot.primitives import draw_bones, draw_joints, draw_markers
from marey.plot.style import GOLD, GREY, INK

N_STILLS = 5


@experiment("A full character, driven by the estimated motion")
def character(effort: Effort) -> Experiment:
    """A skinned character that moves as unlabelled markers of a person do.

    Skeleton and motion are estimated from {markers} markers. The body is the one that
    glTF, USD and FBX files have: convex hulls around the bones, with linear blend
    skinning. `marey.write(solution, "kick.glb")` writes it.
    """
    effort.report("character: kicks and punches")
    seconds = 10.0 if effort.full else 3.0
    take = record_person(
        "kick_punch", effort.seed, seconds=seconds, rate=60.0, noise=5e-4, skin=2e-3
    )
    solution = marey.solve(take)
    motion = solution.motion
    mesh = build_body_mesh(motion.skeleton)
    labels = [take.full_labels.index(label) for label in motion.skeleton.marker_labels]
    residual = np.linalg.norm(motion.marker_points() - take.points[:, labels], axis=-1)
    joints = int((~motion.skeleton.is_end).sum())
    error = rms(residual[np.isfinite(residual)])
    rows = [(motion.n_frames, joints, len(mesh.vertices), *rounded(1e3 * error))]
    frames = np.linspace(0, motion.n_frames - 1, N_STILLS).astype(int).tolist()
    return Experiment(
        tables={"The character": table("frames | joints | vertices | rms mm", rows)},
        figures={"character": _drawing(take, motion, mesh, frames)},
        facts={"markers": take.points.shape[1]},
    )


def _drawing(
    take: marey.Take, motion: marey.Motion, mesh: BodyMesh, frames: Sequence[int]
) -> Drawing:
    """Return a drawing of the character in some frames, and of what drives it."""
    T = motion.T_world_joint()
    surface = mesh.skin(motion.skeleton, T[list(frames)])

    def draw(figure: Any) -> None:
        size = (1.7 * (len(frames) + 1) + 0.4, 4.0)
        title = "A character that moves as its markers do"
        every = make_panels(figure, len(frames) + 1, size, title).tolist()
        _draw_skeleton(every[0], take, motion, frames[0])
        for axes, frame, points in zip(every[1:], frames, surface, strict=True):
            draw_faces(axes, points[mesh.faces], side_view(motion, frame))
            seconds = f"{frame / motion.rate:.2f} s"
            axes.set_title(seconds, fontsize=9, color=GREY, y=-0.06)
        equalise_scales(every, 0.5)

    return draw


def _draw_skeleton(
    axes: Any, take: marey.Take, motion: marey.Motion, frame: int
) -> None:
    """Draw markers and bones of one frame."""
    view = side_view(motion, frame)
    spots = view.project(motion.T_world_joint()[frame, :, :3, 3])
    draw_bones(axes, spots, motion.skeleton.parent)
    draw_joints(axes, spots[~motion.skeleton.is_end])
    draw_markers(axes, view.project(take.points[frame]), GOLD, 9.0)
    axes.set_title("markers and skeleton", fontsize=9, color=INK, y=-0.06)
