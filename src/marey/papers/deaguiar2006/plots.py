"""DeAguiar2006, Figs. 2, 3 and 5: bodies, markers and skeletons, drawn."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from marey.bodies import Bodies
from marey.numerics import geometry
from marey.papers.deaguiar2006.stick_figure import StickFigure
from marey.papers.experiment import Drawing
from marey.plot.camera import Camera
from marey.plot.primitives import draw_bones, draw_joints, draw_markers
from marey.plot.style import BLUE, INK, RED
from marey.synth import Recording

Array = np.ndarray

GOLDEN_RATIO = 0.618034
"""Step of the hue from one body to the next, in turns of the colour circle."""

LIGHT_DIRECTION = np.array([0.5, -0.4, 0.77])
"""Direction in the world from which faces are lit. Chosen by hand."""


def _camera(take: Recording, frame: int) -> Camera:
    return Camera.facing(take.truth.motion.T_world_root[frame])


def body_colours(count: int) -> Float[Array, "body 3"]:
    """Return a colour for every body."""
    from matplotlib.colors import hsv_to_rgb

    hue = (0.58 + GOLDEN_RATIO * np.arange(count)) % 1.0
    value = 0.78 + 0.12 * (np.arange(count) % 2)
    return np.asarray(hsv_to_rgb(np.stack([hue, np.full(count, 0.62), value], axis=1)))


def figure_2_drawing(
    take: Recording,
    bodies: Bodies,
    stick: StickFigure,
    frames: Sequence[int],
    title: str,
) -> Drawing:
    """Return a drawing of coloured bodies, poses with markers, and constant bones."""
    constant = stick.with_constant_lengths()

    def draw(figure: Any) -> None:
        every = _make_panels(figure, len(frames), title)
        first, *middle, last = frames
        _draw_bodies(every[0], bodies, first, _camera(take, first))
        for axes, frame in zip(every[1:-1], middle, strict=True):
            view = _camera(take, frame)
            draw_markers(axes, view.project(take.points[frame]), BLUE, 7.0)
            _draw_bones(axes, stick, frame, view)
        _draw_bones(every[-1], constant, last, _camera(take, last))
        captions = ["bodies found", *["joints, and markers"] * (len(frames) - 2)]
        _equalise_scales(every, [*captions, "bones of constant length"])

    return draw


def figure_5_drawing(
    take: Recording, bodies: Bodies, stick: StickFigure, *, frame: int
) -> Drawing:
    """Return a drawing of a figure beside its estimated skeleton and true joints."""
    truth = take.truth
    true_joints = truth.motion.T_world_joint()[frame, truth.edges[:, 2], :3, 3]

    def draw(figure: Any) -> None:
        name = truth.figures[0].name
        every = _make_panels(
            figure, 3, f"A {name}, and the skeleton estimated from its markers"
        )
        view = _camera(take, frame)
        _draw_surface(every[0], take, frame, view)
        _draw_surface(every[1], take, frame, view, faint=True)
        _draw_bodies(every[1], bodies, frame, view)
        _draw_surface(every[2], take, frame, view, faint=True)
        _draw_bones(every[2], stick, frame, view)
        true_spots = view.project(true_joints)
        every[2].scatter(
            true_spots[:, 0],
            true_spots[:, 1],
            s=95,
            facecolors="none",
            edgecolors=RED,
            linewidths=1.3,
            zorder=9,
        )
        captions = [
            "surface",
            "markers, by bodies found",
            "joints found, true ones red",
        ]
        _equalise_scales(every, captions)

    return draw


def _make_panels(figure: Any, count: int, title: str) -> list[Any]:
    figure.set_size_inches(2.2 * count + 0.4, 4.0)
    every: list[Any] = figure.subplots(1, count, squeeze=False)[0].tolist()
    figure.suptitle(title, fontsize=11, color=INK)
    return every


def _equalise_scales(every: Sequence[Any], captions: Sequence[str]) -> None:
    """Give all panels one scale, captions, and no axes."""
    boxes = [axes.dataLim for axes in every]
    half_width = 0.54 * max(box.width for box in boxes)
    half_height = 0.54 * max(box.height for box in boxes)
    for axes, box, caption in zip(every, boxes, captions, strict=True):
        x, y = 0.5 * (box.x0 + box.x1), 0.5 * (box.y0 + box.y1)
        axes.set(xlim=(x - half_width, x + half_width), aspect="equal")
        axes.set_ylim(y - half_height, y + half_height)
        axes.set_axis_off()
        axes.set_title(caption, fontsize=9, color=INK, y=-0.06)


def _draw_bodies(axes: Any, bodies: Bodies, frame: int, view: Camera) -> None:
    """Draw every body as a patch around its markers, far ones first."""
    from matplotlib.patches import Polygon

    spots = view.project(bodies.take.points[frame])
    shades = body_colours(len(bodies.names))
    order = np.argsort([_mean_depth(spots, bodies, b) for b in range(len(shades))])
    for body in order.tolist():
        markers = spots[(bodies.marker_body == body) & np.isfinite(spots).all(axis=1)]
        if len(markers) > 2:
            # A tint, not a transparent colour: edge and face must not add up.
            tint = 0.35 * shades[body] + 0.65
            patch = Polygon(
                _convex_hull(markers[:, :2]),
                facecolor=tint,
                edgecolor=tint,
                linewidth=12.0,
                joinstyle="round",
                clip_on=False,
                zorder=2,
            )
            axes.add_patch(patch)
        draw_markers(axes, markers, shades[body], 13.0)


def _mean_depth(spots: Array, bodies: Bodies, body: int) -> float:
    depth = spots[bodies.marker_body == body, 2]
    return float(np.nanmean(depth)) if np.isfinite(depth).any() else 0.0


def _convex_hull(points: Float[Array, "point 2"]) -> Float[Array, "corner 2"]:
    from scipy.spatial import ConvexHull

    return np.asarray(points[ConvexHull(points, qhull_options="QJ").vertices])


def _draw_bones(axes: Any, stick: StickFigure, frame: int, view: Camera) -> None:
    """Draw bones, and a ball at every joint but the ends."""
    spots = view.project(stick.positions[frame])
    draw_bones(axes, spots, stick.parent)
    draw_joints(axes, np.delete(spots, stick.ends, axis=0))


def _draw_surface(
    axes: Any, take: Recording, frame: int, view: Camera, *, faint: bool = False
) -> None:
    """Draw the surface of a figure with Lambertian shading, far faces first."""
    from matplotlib.collections import PolyCollection

    truth = take.truth
    T = truth.motion.T_world_joint()[frame]
    faces = []
    for shape in truth.figures[0].surfaces:
        points, triangles = shape.mesh(rings=21, spokes=36)
        faces.append(geometry.apply(T[shape.joint], points)[triangles])
    corners = np.concatenate(faces)
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-12)
    spots = view.project(corners)
    is_visible = view.project(normals)[:, 2] > 0.0
    order = np.argsort(spots[is_visible, :, 2].mean(axis=1))
    bright = 0.62 + 0.38 * np.clip(
        normals[is_visible][order] @ LIGHT_DIRECTION, 0.0, 1.0
    )
    tone = np.array([0.80, 0.84, 0.88]) if not faint else np.array([0.93, 0.94, 0.95])
    colour = np.clip(bright[:, None] * tone, 0.0, 1.0)
    if faint:
        colour = 0.5 + 0.5 * colour
    patches = PolyCollection(
        list(spots[is_visible][order][..., :2]),
        facecolors=colour,
        edgecolors=colour,
        linewidths=0.3,
        zorder=1,
    )
    axes.add_collection(patches)
    # Collections do not widen the limits of axes.
    axes.update_datalim(spots[..., :2].reshape(-1, 2))
