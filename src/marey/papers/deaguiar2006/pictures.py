"""DeAguiar2006, Figs. 2, 3 and 5: bodies, markers and skeletons, drawn."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from marey.bodies import Bodies
from marey.numerics import geometry
from marey.papers.deaguiar2006.stick import Stick
from marey.papers.experiment import Drawing
from marey.plot.bodies import draw_bones, draw_dots, draw_joints
from marey.plot.camera import Camera
from marey.plot.style import BLUE, INK, RED
from marey.synth import Recording

Array = np.ndarray

GOLDEN = 0.618034
"""Turns of the colour circle from one body to the next: neighbours never look alike."""

LIGHT = np.array([0.5, -0.4, 0.77])


def _before(take: Recording, frame: int) -> Camera:
    return Camera.before(take.truth.motion.T_world_root[frame])


def colours(count: int) -> Float[Array, "body 3"]:
    """Return a colour for every body."""
    from matplotlib.colors import hsv_to_rgb

    hue = (0.58 + GOLDEN * np.arange(count)) % 1.0
    value = 0.78 + 0.12 * (np.arange(count) % 2)
    return np.asarray(hsv_to_rgb(np.stack([hue, np.full(count, 0.62), value], axis=1)))


def figure_2(
    take: Recording,
    bodies: Bodies,
    stick: Stick,
    frames: Sequence[int],
    title: str,
) -> Drawing:
    """Return bodies coloured, two poses with markers, and a pose of constant bones."""
    fixed = stick.with_constant_lengths()

    def draw(figure: Any) -> None:
        every = _panels(figure, len(frames), title)
        first, *middle, last = frames
        _segments(every[0], bodies, first, _before(take, first))
        for axes, frame in zip(every[1:-1], middle, strict=True):
            view = _before(take, frame)
            draw_dots(axes, view.seen(take.points[frame]), BLUE, 7.0)
            _bones(axes, stick, frame, view)
        _bones(every[-1], fixed, last, _before(take, last))
        captions = ["bodies found", *["joints, and markers"] * (len(frames) - 2)]
        _finish(every, [*captions, "bones of constant length"])

    return draw


def figure_5(take: Recording, bodies: Bodies, stick: Stick, *, frame: int) -> Drawing:
    """Return a figure beside the skeleton that was found, true joints around it."""
    truth = take.truth
    place = truth.motion.T_world_joint()[frame, :, :3, 3]
    true = place[truth.edges[:, 2]]

    def draw(figure: Any) -> None:
        name = truth.figures[0].name
        every = _panels(
            figure, 3, f"A {name}, and the skeleton learnt from its markers"
        )
        view = _before(take, frame)
        _solid(every[0], take, frame, view)
        _solid(every[1], take, frame, view, faint=True)
        _segments(every[1], bodies, frame, view)
        _solid(every[2], take, frame, view, faint=True)
        _bones(every[2], stick, frame, view)
        ring = view.seen(true)
        every[2].scatter(
            ring[:, 0],
            ring[:, 1],
            s=95,
            facecolors="none",
            edgecolors=RED,
            linewidths=1.3,
            zorder=9,
        )
        captions = [
            "as it is",
            "markers, by bodies found",
            "joints found, true ones red",
        ]
        _finish(every, captions)

    return draw


def _panels(figure: Any, count: int, title: str) -> list[Any]:
    figure.set_size_inches(2.2 * count + 0.4, 4.0)
    every: list[Any] = figure.subplots(1, count, squeeze=False)[0].tolist()
    figure.suptitle(title, fontsize=11, color=INK)
    return every


def _finish(every: Sequence[Any], captions: Sequence[str]) -> None:
    """Give all panels one scale, and take away what says nothing."""
    boxes = [axes.dataLim for axes in every]
    wide = 0.54 * max(box.width for box in boxes)
    tall = 0.54 * max(box.height for box in boxes)
    for axes, box, caption in zip(every, boxes, captions, strict=True):
        x, y = 0.5 * (box.x0 + box.x1), 0.5 * (box.y0 + box.y1)
        axes.set(xlim=(x - wide, x + wide), ylim=(y - tall, y + tall), aspect="equal")
        axes.set_axis_off()
        axes.set_title(caption, fontsize=9, color=INK, y=-0.06)


def _segments(axes: Any, bodies: Bodies, frame: int, view: Camera) -> None:
    """Draw every body as a soft patch around its markers."""
    from matplotlib.patches import Polygon

    spots = view.seen(bodies.take.points[frame])
    shades = colours(len(bodies.names))
    order = np.argsort([_depth(spots, bodies, b) for b in range(len(shades))])
    for body in order.tolist():
        mine = spots[(bodies.marker_body == body) & np.isfinite(spots).all(axis=1)]
        if len(mine) > 2:
            # A tint, not a transparent colour: edge and face must not add up.
            tint = 0.35 * shades[body] + 0.65
            patch = Polygon(
                _hull(mine[:, :2]),
                facecolor=tint,
                edgecolor=tint,
                linewidth=12.0,
                joinstyle="round",
                clip_on=False,
                zorder=2,
            )
            axes.add_patch(patch)
        draw_dots(axes, mine, shades[body], 13.0)


def _depth(spots: Array, bodies: Bodies, body: int) -> float:
    mine = spots[bodies.marker_body == body, 2]
    return float(np.nanmean(mine)) if np.isfinite(mine).any() else 0.0


def _hull(points: Float[Array, "point 2"]) -> Float[Array, "corner 2"]:
    from scipy.spatial import ConvexHull

    return np.asarray(points[ConvexHull(points, qhull_options="QJ").vertices])


def _bones(axes: Any, stick: Stick, frame: int, view: Camera) -> None:
    """Draw bones, and joints as small balls; ends have none."""
    spots = view.seen(stick.positions[frame])
    draw_bones(axes, spots, stick.parent)
    draw_joints(axes, np.delete(spots, stick.ends, axis=0))


def _solid(
    axes: Any, take: Recording, frame: int, view: Camera, *, faint: bool = False
) -> None:
    """Draw the flesh of a figure, shaded, far faces first."""
    from matplotlib.collections import PolyCollection

    truth = take.truth
    T = truth.motion.T_world_joint()[frame]
    faces = []
    for shape in truth.figures[0].surfaces:
        points, triangles = shape.mesh(rings=21, spokes=36)
        faces.append(geometry.apply(T[shape.joint], points)[triangles])
    corners = np.concatenate(faces)
    way = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    way /= np.maximum(np.linalg.norm(way, axis=1, keepdims=True), 1e-12)
    spots = view.seen(corners)
    shown = view.seen(way)[:, 2] > 0.0
    order = np.argsort(spots[shown, :, 2].mean(axis=1))
    bright = 0.62 + 0.38 * np.clip(way[shown][order] @ LIGHT, 0.0, 1.0)
    tone = np.array([0.80, 0.84, 0.88]) if not faint else np.array([0.93, 0.94, 0.95])
    colour = np.clip(bright[:, None] * tone, 0.0, 1.0)
    if faint:
        colour = 0.5 + 0.5 * colour
    patches = PolyCollection(
        list(spots[shown][order][..., :2]),
        facecolors=colour,
        edgecolors=colour,
        linewidths=0.3,
        zorder=1,
    )
    axes.add_collection(patches)
    # Collections do not widen the limits of axes.
    axes.update_datalim(spots[..., :2].reshape(-1, 2))
