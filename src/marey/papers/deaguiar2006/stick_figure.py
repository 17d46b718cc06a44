"""DeAguiar2006, Secs. 4 and 5: joints in every frame, joined by bones, and drawn."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import marey
from marey.numerics import Array, Float, Int, geometry
from marey.papers.frame import Drawing
from marey.papers.plots import equalise_scales, make_panels
from marey.plot.primitives import Camera, draw_bones, draw_joints, draw_markers
from marey.plot.style import BLUE, INK, RED
from marey.rig import bone_lengths, with_constant_lengths
from marey.synth import Recording


@dataclass(frozen=True, slots=True, eq=False)
class StickFigure:
    """Positions of joints over time, each with a bone to its parent but the root."""

    positions: Float[Array, "frame joint 3"]
    parent: Int[Array, " joint"]
    ends: Int[Array, " end"]
    """Rows that are no joints but the marker centroids of bodies without children."""

    def lengths(self) -> Float[Array, "frame joint"]:
        """Return the length of every bone in every frame, NaN for the root."""
        parent_positions = self.positions[:, self.parent]
        lengths = np.linalg.norm(self.positions - parent_positions, axis=-1)
        return np.where(self.parent < 0, np.nan, lengths)

    def with_constant_lengths(self, method: str = "median") -> "StickFigure":
        """Return the figure with one length for every bone (Sec. 5).

        Args:
            method: How a length is averaged over frames: a key of
                `marey.numerics.robust.LOCATIONS`.
        """
        lengths = bone_lengths(self.positions, self.parent, method)
        moved = with_constant_lengths(self.positions, self.parent, lengths)
        return StickFigure(moved, self.parent, self.ends)


def build_stick_figure(
    bodies: marey.Bodies, fits: marey.JointFits, tree: marey.Tree
) -> StickFigure:
    """Return the joints of a tree in every frame, as Sec. 4 estimates them.

    The joint of a body is that with its parent. The root is drawn at the mean of its
    children's joints. A body without children ends at the centroid of its markers.
    """
    positions: dict[int, Array] = {}
    for body in np.flatnonzero(tree.parent >= 0).tolist():
        positions[body] = joint_path(bodies, fits, int(tree.edge[body]))
    for root in map(int, tree.roots):
        children = np.flatnonzero(tree.parent == root).tolist()
        origin = bodies.T_world_body[:, root, :3, 3]
        joints = [positions[child] for child in children]
        positions[root] = np.mean(joints, axis=0) if joints else origin
    order = sorted(positions)
    number = {body: i for i, body in enumerate(order)}
    parent = [number.get(int(tree.parent[body]), -1) for body in order]
    leaves = sorted(set(order) - set(tree.parent.tolist()))
    ends = []
    for body in leaves:
        centroid = np.nanmean(bodies.marker_offset[bodies.marker_body == body], axis=0)
        ends.append(geometry.apply(bodies.T_world_body[:, body], centroid))
    return StickFigure(
        np.stack([*(positions[body] for body in order), *ends], axis=1),
        np.array([*parent, *(number[body] for body in leaves)], dtype=np.int64),
        np.arange(len(order), len(order) + len(ends)),
    )


def joint_path(
    bodies: marey.Bodies, fits: marey.JointFits, row: int
) -> Float[Array, "frame 3"]:
    """Return the joint of one pair in the world, midway between its two centres."""
    a, b = fits.pair[row]
    in_a = geometry.apply(bodies.T_world_body[:, a], fits.center_a[row])
    in_b = geometry.apply(bodies.T_world_body[:, b], fits.center_b[row])
    return np.asarray(0.5 * (in_a + in_b))


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
    bodies: marey.Bodies,
    stick: StickFigure,
    frames: Sequence[int],
    title: str,
) -> Drawing:
    """Return a drawing of coloured bodies, poses with markers, and constant bones."""
    constant = stick.with_constant_lengths()
    middle = ["joints, and markers"] * (len(frames) - 2)

    def draw(figure: Any) -> None:
        captions = ["bodies found", *middle, "bones of constant length"]
        every = _panels(figure, captions, title)
        views = [_camera(take, frame) for frame in frames]
        _draw_bodies(every[0], bodies, frames[0], views[0])
        for k, frame in enumerate(frames[1:-1], start=1):
            draw_markers(every[k], views[k].project(take.points[frame]), BLUE, 7.0)
            _draw_bones(every[k], stick, frame, views[k])
        _draw_bones(every[-1], constant, frames[-1], views[-1])
        equalise_scales(every, 0.54)

    return draw


def figure_5_drawing(
    take: Recording, bodies: marey.Bodies, stick: StickFigure, *, frame: int
) -> Drawing:
    """Return a drawing of a figure beside its estimated skeleton and true joints."""
    truth, view = take.truth, _camera(take, frame)
    true_joints = truth.motion.T_world_joint()[frame, truth.edges[:, 2], :3, 3]
    title = f"A {truth.figures[0].name}, and the skeleton estimated from its markers"
    captions = ["surface", "markers, by bodies found", "joints found, true ones red"]
    ring = {"s": 95, "facecolors": "none", "edgecolors": RED, "linewidths": 1.3}

    def draw(figure: Any) -> None:
        every = _panels(figure, captions, title)
        for axes in every:
            _draw_surface(axes, take, frame, view, faint=axes is not every[0])
        _draw_bodies(every[1], bodies, frame, view)
        _draw_bones(every[2], stick, frame, view)
        x, y, _ = view.project(true_joints).T
        every[2].scatter(x, y, zorder=9, **ring)
        equalise_scales(every, 0.54)

    return draw


def _panels(figure: Any, captions: Sequence[str], title: str) -> list[Any]:
    size = (2.2 * len(captions) + 0.4, 4.0)
    every: list[Any] = make_panels(figure, len(captions), size, title).tolist()
    for axes, caption in zip(every, captions, strict=True):
        axes.set_title(caption, fontsize=9, color=INK, y=-0.06)
    return every


def _draw_bodies(axes: Any, bodies: marey.Bodies, frame: int, view: Camera) -> None:
    """Draw every body as a patch around its markers, far ones first."""
    from matplotlib.patches import Polygon
    from scipy.spatial import ConvexHull

    spots = view.project(bodies.take.points[frame])
    is_seen = np.isfinite(spots).all(axis=1)
    shades = body_colours(len(bodies.names))
    markers = [spots[(bodies.marker_body == b) & is_seen] for b in range(len(shades))]
    depth = [points[:, 2].mean() if len(points) else 0.0 for points in markers]
    for body in np.argsort(depth).tolist():
        if len(markers[body]) > 2:
            corners = markers[body][:, :2]
            hull = ConvexHull(corners, qhull_options="QJ").vertices
            # A tint, not a transparent colour: edge and face must not add up.
            rim: dict[str, Any] = {"linewidth": 12.0, "joinstyle": "round"}
            tint = 0.35 * shades[body] + 0.65
            patch = Polygon(corners[hull], color=tint, clip_on=False, zorder=2, **rim)
            axes.add_patch(patch)
        draw_markers(axes, markers[body], shades[body], 13.0)


def _draw_bones(axes: Any, stick: StickFigure, frame: int, view: Camera) -> None:
    """Draw bones, and a ball at every joint but the ends."""
    spots = view.project(stick.positions[frame])
    draw_bones(axes, spots, stick.parent)
    draw_joints(axes, np.delete(spots, stick.ends, axis=0))


def _draw_surface(
    axes: Any, take: Recording, frame: int, view: Camera, *, faint: bool = False
) -> None:
    """Draw the surface of a figure in one frame."""
    truth = take.truth
    T = truth.motion.T_world_joint()[frame]
    faces = []
    for shape in truth.figures[0].surfaces:
        points, triangles = shape.mesh(rings=21, spokes=36)
        faces.append(geometry.apply(T[shape.joint], points)[triangles])
    draw_faces(axes, np.concatenate(faces), view, faint=faint)


def draw_faces(
    axes: Any, corners: Float[Array, "face 3 3"], view: Camera, *, faint: bool = False
) -> None:
    """Draw triangles with Lambertian shading, far ones first.

    Args:
        axes: Axes to draw on.
        corners: Corners of each triangle, counter-clockwise from outside, in metres.
        view: The camera.
        faint: Whether to draw them pale, behind something else.
    """
    from matplotlib.collections import PolyCollection

    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-12)
    spots = view.project(corners)
    is_visible = view.project(normals)[:, 2] > 0.0
    order = np.argsort(spots[is_visible, :, 2].mean(axis=1))
    light = np.clip(normals[is_visible][order] @ LIGHT_DIRECTION, 0.0, 1.0)
    tone = np.array([0.93, 0.94, 0.95] if faint else [0.80, 0.84, 0.88])
    colour = np.clip((0.62 + 0.38 * light)[:, None] * tone, 0.0, 1.0)
    if faint:
        colour = 0.5 + 0.5 * colour
    faces_seen = list(spots[is_visible][order][..., :2])
    style: dict[str, Any] = {"facecolors": colour, "edgecolors": colour}
    axes.add_collection(PolyCollection(faces_seen, linewidths=0.3, zorder=1, **style))
    # Collections do not widen the limits of axes.
    axes.update_datalim(spots[..., :2].reshape(-1, 2))
