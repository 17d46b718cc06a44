"""Bodenheimer1997, Figs. 10 and 11: skeleton and data, phases of the process."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

import marey
from marey.numerics import Array, Float
from marey.papers.bodenheimer1997.takes import PreparedTake, distances_from_data
from marey.papers.frame import Drawing
from marey.papers.plots import equalise_scales, label_axes, make_panels
from marey.papers.stills import draw_limbs, side_view
from marey.plot.primitives import Camera, draw_bones
from marey.plot.style import FAINT, GOLD, GREY, INK, RED

MARGIN_M = 0.08
"""White space around a close-up, in metres."""


class ShownFit(NamedTuple):
    """A frame, its rms residual in metres, its worst joint and the residual there."""

    frame: int
    residual: float
    joint: int
    joint_residual: float


def choose_frame(ready: PreparedTake, motion: marey.Motion) -> ShownFit:
    """Return the frame of median residual among those without outliers."""
    distance = distances_from_data(ready, motion)
    residual = np.sqrt(np.mean(distance**2, axis=1))
    good = np.flatnonzero(~ready.is_outlier.any(axis=1))
    frame = int(good[np.argsort(residual[good])[len(good) // 2]])
    worst = int(np.argmax(distance[frame]))
    return ShownFit(frame, float(residual[frame]), worst, float(distance[frame, worst]))


def fit_drawing(ready: PreparedTake, motion: marey.Motion) -> Drawing:
    """Return a drawing of the skeleton over the data in one frame, as in Fig. 10.

    The second panel is the limb with the largest residual.
    """
    frame, residual, worst, worst_residual = choose_frame(ready, motion)
    skeleton = motion.skeleton
    # From the right side, so that both axes are in metres.
    x, y, _ = motion.T_world_root[frame, :3, 0]
    view = Camera(float(np.degrees(np.arctan2(y, x))) - 90.0, 0.0)
    spots = view.project(motion.T_world_joint()[frame, :, :3, 3])
    data = view.project(ready.virtual.positions[frame])
    origin = np.array([spots[0, 0], 0.0, 0.0])
    spots, data = spots - origin, data - origin
    near = [worst, *_neighbours(skeleton, worst)]
    captions = (
        f"frame {frame}, residual {1e3 * residual:.1f} mm rms",
        f"{skeleton.names[worst]}: {1e3 * worst_residual:.1f} mm apart",
    )

    def draw(figure: Any) -> None:
        title = "Skeleton (gold) and data (black) of a walk"
        whole, close = make_panels(figure, 2, (7.2, 4.6), title)
        for axes, width in ((whole, 4.0), (close, 4.0)):
            draw_bones(axes, spots, skeleton.parent, [GOLD] * skeleton.n_joints, width)
            _draw_data(axes, data, skeleton)
            axes.set_aspect("equal")
        low, high = data[near, :2].min(axis=0), data[near, :2].max(axis=0)
        close.set(
            xlim=(low[0] - MARGIN_M, high[0] + MARGIN_M),
            ylim=(low[1] - MARGIN_M, high[1] + MARGIN_M),
        )
        label_axes(whole, "forward, m", "height, m", captions[0])
        label_axes(close, "forward, m", "", captions[1])

    return draw


def _neighbours(skeleton: marey.Skeleton, joint: int) -> list[int]:
    """Return the parent and the children of a joint."""
    parent = int(skeleton.parent[joint])
    children = np.flatnonzero(skeleton.parent == joint).tolist()
    return [parent, *children] if parent >= 0 else children


def _draw_data(
    axes: Any, spots: Float[Array, "joint 3"], skeleton: marey.Skeleton
) -> None:
    """Draw the joints of the data as dots, with thin lines between them."""
    for joint, parent in enumerate(skeleton.parent.tolist()):
        if parent >= 0:
            axes.plot(*spots[[parent, joint], :2].T, color="black", lw=0.8, zorder=8)
    axes.plot(spots[:, 0], spots[:, 1], "o", color="black", ms=3.0, zorder=9)


# --- the phases of the process --------------------------------------------------------

WITHOUT_SENSOR = ("UpperArm", "UpperLeg")
"""Bones without a sensor in the layout of 13."""


def touch_frame(ready: PreparedTake, hand: str) -> int:
    """Return the frame without outliers in which a hand is furthest from the hips."""
    position = ready.virtual.positions
    away = position[:, ready.skeleton.index(hand)] - position[:, 0]
    distance = np.linalg.norm(away, axis=-1)
    distance[ready.is_outlier.any(axis=1)] = -np.inf
    return int(np.argmax(distance))


def prop_distances(
    ready: PreparedTake, motion: marey.Motion, hand: str
) -> Mapping[str, float]:
    """Return the distance of a hand from its prop, captured and solved, in metres.

    The prop is where the hand truly is when it touches it.
    """
    frame, joint = touch_frame(ready, hand), ready.skeleton.index(hand)
    T = ready.recording.truth.motion.T_world_joint()
    prop = T[frame, joint, :3, 3]
    captured = ready.virtual.positions[frame, joint]
    solved = motion.T_world_joint()[frame, joint, :3, 3]
    return {
        "captured": float(np.linalg.norm(captured - prop)),
        "solved": float(np.linalg.norm(solved - prop)),
    }


def phases_drawing(ready: PreparedTake, motion: marey.Motion, hand: str) -> Drawing:
    """Return a drawing of the four phases of the process, as in Fig. 11."""
    skeleton, frame = motion.skeleton, touch_frame(ready, hand)
    view = side_view(motion, frame)
    prop = ready.recording.truth.motion.T_world_joint()[frame, skeleton.index(hand)]
    post = view.project(prop[:3, 3] * [[1.0, 1.0, 0.0], [1.0, 1.0, 1.0]])
    spots = view.project(motion.T_world_joint()[frame, :, :3, 3])
    captured, solved = (
        f"hand {1e3 * distance:.0f} mm from the prop"
        for distance in prop_distances(ready, motion, hand).values()
    )

    def draw_capture(axes: Any) -> None:
        _draw_data(axes, view.project(ready.virtual.positions[frame]), skeleton)
        x, y, _ = view.project(_sensor_positions(ready)[frame]).T
        axes.plot(x, y, "s", color=GOLD, markersize=5.0, zorder=10)

    def draw_skeleton(axes: Any) -> None:
        draw_bones(axes, spots, skeleton.parent, [GOLD] * skeleton.n_joints, 4.0)

    phases: Mapping[str, tuple[Callable[[Any], None], bool]] = {
        f"captured (sensors gold):\n{captured}": (draw_capture, True),
        "articulated": (draw_skeleton, False),
        f"with the prop again:\n{solved}": (draw_skeleton, True),
        "rendered": (lambda axes: draw_limbs(axes, skeleton, spots), True),
    }

    def draw(figure: Any) -> None:
        title = "A hand that touches a prop (red), phase by phase"
        every = make_panels(figure, len(phases), (9.0, 3.6), title, sharey=True)
        for axes, (name, phase) in zip(every, phases.items(), strict=True):
            draw_phase, has_prop = phase
            draw_phase(axes)
            if has_prop:
                _draw_prop(axes, post)
            ground = spots[0, 0] - 0.6, spots[0, 0] + 0.9
            axes.plot(ground, [post[0, 1]] * 2, color=FAINT, zorder=0)
            axes.set_xlabel(name, fontsize=8, color=INK)
        equalise_scales(every.tolist(), 0.6)

    return draw


def _draw_prop(axes: Any, post: Float[Array, "2 3"]) -> None:
    """Draw a knob on a post, given both ends of the post in camera coordinates."""
    axes.plot(*post[:, :2].T, color=GREY, linewidth=2.5, zorder=1)
    axes.plot(*post[1, :2], "o", color=RED, markersize=9.0, zorder=2)


def _sensor_positions(ready: PreparedTake) -> Float[Array, "frame sensor 3"]:
    """Return the positions of the sensors in the layout of 13, in metres."""
    names = ready.recording.sensor_names
    attached = [k for k, name in enumerate(names) if not name.endswith(WITHOUT_SENSOR)]
    return np.asarray(ready.recording.T_world_sensor[..., :3, 3][:, attached])
