"""Draw the pictures of the documentation: python docs/make_pictures.py [folder]."""

import sys
from dataclasses import dataclass, replace
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgb

import marey
from marey import synth
from marey.numerics import geometry

mpl.use("Agg")
import matplotlib.pyplot as plt

INK = "#26313f"
PAPER = "#ffffff"
PALETTE = {
    "Hips": "#6b5ca5",
    "Spine": "#4d7ea8",
    "Neck": "#e0a030",
    "LeftUpperArm": "#e4572e",
    "LeftLowerArm": "#ee7b54",
    "LeftHand": "#f5a07f",
    "LeftUpperLeg": "#c2335b",
    "LeftLowerLeg": "#d75f80",
    "LeftFoot": "#e78fa6",
    "RightUpperArm": "#1b998b",
    "RightLowerArm": "#46b3a5",
    "RightHand": "#7fcdc1",
    "RightUpperLeg": "#2374ab",
    "RightLowerLeg": "#4a94c4",
    "RightFoot": "#85b9dc",
}
LEFT, RIGHT = PALETTE["LeftUpperLeg"], PALETTE["RightUpperLeg"]
FRAMES, SPACING = 8, 1.08
CAPTIONS = {0: "markers", 1: "bodies", 2.5: "joints and bones", 5.5: "motion"}
LIGHT = np.array([-0.35, 0.45, 0.82]) / np.linalg.norm([-0.35, 0.45, 0.82])


@dataclass
class Camera:
    """Orthographic view: rows are right, towards the viewer and up."""

    axes: np.ndarray

    @classmethod
    def at(cls, azimuth, elevation):
        a, e = np.radians([azimuth, elevation])
        right = np.array([np.cos(a), np.sin(a), 0.0])
        back = np.array([np.sin(a), -np.cos(a), 0.0])
        up = np.array([0.0, 0.0, 1.0])
        axes = [right, np.cos(e) * back + np.sin(e) * up]
        return cls(np.array([*axes, np.cross(axes[1], right)]))

    def see(self, points):
        """Return picture coordinates and nearness."""
        seen = points @ self.axes.T
        return seen[..., [0, 2]], seen[..., 1]


def tinted(color, share):
    return (1.0 - share) * np.array(to_rgb(color)) + share


def solid(mesh, T, color, camera):
    """Return picture polygons, colours and nearness of a shaded mesh."""
    points, triangles = mesh
    corners = geometry.apply(T, points)[triangles]
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normal /= np.linalg.norm(normal, axis=-1, keepdims=True) + 1e-12
    front = normal @ camera.axes[1] > 0.0
    light = LIGHT @ camera.axes
    shade = 0.5 + 0.5 * np.clip(normal @ light, -1.0, 1.0)
    base = np.array(to_rgb(color))
    dark, pale = 0.58 * base, 0.62 * base + 0.38
    colors = dark + shade[:, None] ** 1.2 * (pale - dark)
    flat, near = camera.see(corners)
    return flat[front], colors[front], near[front].mean(axis=-1)


def joined(parts):
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


def draw_solids(ax, parts, shift):
    flat, colors, near = joined(parts)
    order = np.argsort(near)
    faces = PolyCollection(
        flat[order] + [shift, 0.0],
        facecolors=colors[order],
        edgecolors=colors[order],
        linewidths=0.35,
        zorder=3,
    )
    ax.add_collection(faces)


def hidden(points, parts, camera, slack=0.012):
    """Return which points lie behind the solids."""
    spots, depth = camera.see(points)
    flat, _, near = joined(parts)
    a, b, c = np.moveaxis(flat, 1, 0)
    edges = ((a, b), (b, c), (c, a))
    sides = [_turn(p[:, None], q[:, None], spots[None]) for p, q in edges]
    inside = np.logical_or(*(np.logical_and.reduce(k) for k in _signs(sides)))
    return (inside & (near[:, None] > depth[None] + slack)).any(axis=0)


def _signs(sides):
    return [side >= 0.0 for side in sides], [side <= 0.0 for side in sides]


def _turn(p, q, x):
    return (q - p)[..., 0] * (x - p)[..., 1] - (q - p)[..., 1] * (x - p)[..., 0]


def bone_shapes(figure):
    """Return slender solids along the bones, with balls at the joints."""
    skeleton = figure.skeleton
    for joint, parent in enumerate(skeleton.parent):
        end = skeleton.offset[joint]
        if parent < 0 or skeleton.names[joint] == "HeadEnd":
            continue
        along = end / np.linalg.norm(end)
        side = np.cross(along, [0.3, 0.9, 0.2])
        side /= np.linalg.norm(side)
        yield synth.Surface(
            name="bone",
            joint=int(parent),
            start=0.02 * end,
            end=0.98 * end,
            side=side,
            front=np.cross(along, side),
            width=(0.022, 0.013),
            depth=(0.022, 0.013),
            end_exponent=2.5,
        )


def ball(joint, radius):
    return synth.Surface(
        name="ball",
        joint=joint,
        start=np.array([0.0, 0.0, -radius]),
        end=np.array([0.0, 0.0, radius]),
        side=np.array([1.0, 0.0, 0.0]),
        front=np.array([0.0, 1.0, 0.0]),
        width=(radius, radius),
        depth=(radius, radius),
        end_exponent=2.0,
    )


def color_of(figure, joint):
    return PALETTE[figure.skeleton.names[figure.body_of[joint]]]


def mannequin(figure, T, camera):
    return [
        solid(
            shape.mesh(rings=26, spokes=36),
            T[shape.joint],
            color_of(figure, shape.joint),
            camera,
        )
        for shape in figure.surfaces
    ]


def bones(figure, T, camera):
    balls = [ball(int(j), 0.024) for j in figure.bodies]
    return [
        solid(
            shape.mesh(rings=12, spokes=16),
            T[shape.joint],
            color_of(figure, shape.joint),
            camera,
        )
        for shape in (*bone_shapes(figure), *balls, skull(figure))
    ]


def skull(figure):
    head = next(shape for shape in figure.surfaces if shape.name == "Head")
    small = {name: tuple(0.7 * w for w in getattr(head, name)) for name in SIZES}
    return replace(head, **small)


SIZES = ("width", "depth")


def draw_markers(ax, points, colors, camera, shift, size=30.0):
    flat, near = camera.see(points)
    order = np.argsort(near)
    ax.scatter(
        flat[order, 0] + shift,
        flat[order, 1],
        s=size,
        c=np.array(colors)[order],
        edgecolors=PAPER,
        linewidths=0.9,
        zorder=5,
    )


def draw_plants(ax, figure, T, time, contacts, camera, shift):
    """Draw a bar under every foot that stands."""
    for side, color in (("Left", LEFT), ("Right", RIGHT)):
        names = (f"{side}Heel", f"{side}Toes")
        down = [
            name
            for name in names
            if any(c.joint == name and c.start <= time <= c.end for c in contacts)
        ]
        if not down:
            continue
        ends = [T[figure.skeleton.index(name), :3, 3] for name in names]
        flat, _ = camera.see(np.array(ends) * [1.0, 1.0, 0.0])
        if len(down) == 1:
            spot = flat[names.index(down[0])]
            flat = spot + 0.02 * np.array([[-1.0, 0.0], [1.0, 0.0]])
        ax.plot(
            flat[:, 0] + shift,
            flat[:, 1] - 0.022,
            color=color,
            linewidth=5.0,
            solid_capstyle="round",
            zorder=2,
        )


def filmstrip(path):
    """Draw one stride: markers, then bones, then the whole performer."""
    figure = synth.human(1.8, seed=3)
    rate, seed = 200.0, 4
    take = figure.record("walk", seconds=2.4, rate=rate, seed=seed, markers="set53")
    motion = take.truth.motion
    strike = next(c.start for c in motion.contacts if c.start > 0.2)
    stride = 2.0 * np.median(np.diff(_strikes(motion)))
    camera = Camera.at(-16.0, 4.0)
    fig, ax = plt.subplots(figsize=(18.0, 4.55), dpi=100)
    poses = motion.T_world_joint()
    colors = [PALETTE[figure.skeleton.names[j]] for j in take.truth.marker_joint]
    for i in range(FRAMES):
        frame = round((strike + i * stride / (FRAMES - 1)) * rate)
        T, points = poses[frame].copy(), take.points[frame].copy()
        # A film strip moves the performer on by one picture, not by one step.
        gone = T[0, :2, 3].copy()
        T[:, :2, 3] -= gone
        points[:, :2] -= gone
        shift = i * SPACING
        grey = ["#97a1ae"] * len(colors)
        parts = mannequin(figure, T, camera) if i > 3 else bones(figure, T, camera)
        if i > 0:
            draw_plants(ax, figure, T, frame / rate, motion.contacts, camera, shift)
        if i > 1:
            draw_solids(ax, parts, shift)
        shown = ~hidden(points, parts, camera) if i > 3 else np.full(len(points), True)
        painted = np.array(colors if i > 0 else grey)
        draw_markers(ax, points[shown], painted[shown], camera, shift)
    _finish(fig, ax, path)


def _strikes(motion):
    return sorted(c.start for c in motion.contacts if c.joint.endswith("Heel"))[1:]


def _finish(fig, ax, path):
    ax.axhline(-0.024, color="#c9d0d9", linewidth=1.5, zorder=1)
    for i, text in CAPTIONS.items():
        ax.text(
            i * SPACING,
            -0.19,
            text,
            color="#6b7684",
            fontsize=19,
            ha="center",
            va="center",
        )
    ax.set_xlim(-0.62, (FRAMES - 1) * SPACING + 0.66)
    ax.set_ylim(-0.28, 1.9)
    ax.set_aspect("equal")
    ax.axis("off")
    fig.subplots_adjust(0, 0, 1, 1)
    fig.savefig(path, facecolor=PAPER)
    plt.close(fig)


def angles_of_a_walk(recorded):
    """Return the mean gait cycles of a solved walk."""
    walk = synth.human(seed=3).record("walk", seconds=6.0, rate=60.0, **recorded)
    motion = marey.solve(walk).motion
    return marey.plot.angles(marey.angles(motion), gait=marey.gait(motion))


def plots(folder):
    """Draw what `docs/pictures.md` shows: one solved take, four ways, and a walk."""
    recorded = {"markers": "set53", "noise": 1e-3, "soft_tissue": 5e-3, "seed": 4}
    take = synth.human(seed=3).record("kick_punch", rate=60.0, **recorded)
    solution = marey.solve(take)
    pictures = {
        "skeleton": marey.plot.skeleton(solution, truth=take),
        "residuals": marey.plot.residuals(solution, joints=SHOWN),
        "lengths": marey.plot.lengths(solution, take.truth.skeleton),
        "clustering": marey.plot.clustering(solution),
        "angles": angles_of_a_walk(recorded),
    }
    for name, figure in pictures.items():
        marey.plot.save(figure, folder / f"plot-{name}.png", overwrite=True)


SHOWN = ("LeftUpperLeg", "LeftLowerLeg", "LeftUpperArm", "LeftLowerArm")


def main():
    folder = Path(
        sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent / "images"
    )
    folder.mkdir(parents=True, exist_ok=True)
    filmstrip(folder / "performer.png")
    plots(folder)


if __name__ == "__main__":
    main()
