"""A skeleton at several moments, side by side."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from marey.motion import Motion
from marey.plot.bodies import draw_bones, draw_dots, draw_doubts, draw_joints
from marey.plot.camera import Camera
from marey.plot.scene import (
    Frames,
    Scene,
    camera_for,
    chosen_frames,
    placed,
    scene_of,
    side_of,
    with_truth,
)
from marey.plot.style import BLUE, GOLD, GREEN, GREY, INK, RED, in_look, plain, sheet
from marey.solution import Solution
from marey.synth import Recording, Truth

if TYPE_CHECKING:
    import matplotlib.figure

Array = np.ndarray

WIDEST, TALLEST = 6.1, 3.0
"""Most inches that all stills take side by side, and that each is high."""

ENLARGED = (1000, 500, 300, 200, 100, 50, 30, 20, 10, 5, 3, 2, 1)
"""What ellipses of doubt may be enlarged by."""

USUAL, LARGEST = 0.04, 0.15
"""The middle and the largest ellipse of doubt, while they are enlarged: half their
length over the height of the picture."""

MARGIN = 0.04
"""Room around the figures, as a share of their size."""

FLATTEST = 0.6
"""Least height of a still over its width."""

SIDES = {"Left": BLUE, "Right": RED, "": INK}


@in_look
def skeleton(
    motion: Solution | Motion,
    frame: Frames | None = None,
    truth: Recording | Truth | Motion | None = None,
    *,
    take: int = 0,
    azimuth: float | None = None,
) -> "matplotlib.figure.Figure":
    """Return the skeleton at several moments, side by side, all on one scale.

    Seen level from far away, so that the axis is the true height and nothing shrinks.
    The figure stays in the middle of each still, wherever it goes. Left bones are blue,
    right ones red, all others dark; dots are markers and sensors, hollow where cleaning
    put them in, or, of a motion alone, where its skeleton has its markers; ellipses are
    one standard deviation of a joint's place on its parent, enlarged by as much as the
    picture says; the truth is a thin yellow line.

    Args:
        motion: What `marey.solve` returned, or a motion.
        frame: One frame or several; when left out, the five at which the
            figure differs most.
        truth: What the motion should be, drawn over it.
        take: Which take of the solution.
        azimuth: Direction to see it from in degrees, 0 = from +x, 90 = from +y. When
            left out, from where it looks widest, and from the front if names tell.

    Raises:
        DataError: If nothing was seen in these frames, or the truth has other frames.
        OptionError: If there is no such frame or take.
        MissingExtraError: If matplotlib is not installed.
    """
    from matplotlib.ticker import MaxNLocator

    scene = with_truth(scene_of(motion, take), truth)
    frames = chosen_frames(scene, frame)
    camera = camera_for(scene, frames) if azimuth is None else Camera(azimuth, 0.0)
    left, right, low, high = _extent(scene, frames, camera)
    slender = (high - low) / (right - left)
    tall = min(TALLEST, WIDEST / len(frames) * slender)
    wide = len(frames) * tall / slender
    gaps = 0.1 * len(frames) + 0.55
    figure = sheet(max(wide, 2.4) + gaps, tall + 0.7, fixed=True)
    times = _enlarged(scene, high - low)
    every = figure.subplots(1, len(frames), sharey=True, squeeze=False)[0]
    for axes, k in zip(every, frames, strict=True):
        _still(axes, scene, k, camera, times)
        axes.set(xlim=(left, right), ylim=(low, high), aspect="equal", xticks=[])
        axes.set_xlabel(f"{scene.times[k]:.2f} s")
        plain(axes)
        axes.spines[:].set_visible(False)
        axes.tick_params(axis="y", length=0.0)
        axes.yaxis.set_major_locator(MaxNLocator(5, steps=(1, 2, 5, 10)))
    every[0].set_ylabel("height, m")
    _legend(figure, scene, times)
    return figure


def _extent(
    scene: Scene, frames: Sequence[int], camera: Camera
) -> tuple[float, float, float, float]:
    """Return how far everything reaches from the middle: left, right, down and up."""
    middle = np.stack([scene.middle(k) for k in frames])
    spots = camera.seen(scene.everything(frames) - middle[:, None])
    x, z = spots[..., 0], spots[..., 1]
    low, high = float(np.nanmin(z)), float(np.nanmax(z))
    # The ground belongs to whoever is near it.
    low = min(low, 0.0) if low < 0.5 * (high - low) else low
    left, right = float(np.nanmin(x)), float(np.nanmax(x))
    room = MARGIN * max(high - low, right - left, 0.1)
    flat = max(0.5 * (FLATTEST * (right - left) - (high - low)), 0.0) + room
    return left - room, right + room, low - flat, high + flat


def _still(axes: Any, scene: Scene, frame: int, camera: Camera, times: int) -> None:
    """Draw one moment."""
    middle = scene.middle(frame)
    axes.axhline(0.0, color=GREY, linewidth=0.9, zorder=1)
    spots, put_in = camera.seen(scene.points[frame] - middle), scene.filled[frame]
    draw_dots(axes, spots[~put_in], GREY, 7.0)
    draw_dots(axes, spots[put_in], "white", 7.0, rim=GREY)
    for figure in scene.figures:
        joints = camera.seen(placed((figure,), [frame])[0] - middle)
        body = figure.skeleton
        colours = [SIDES[side_of(name)] for name in body.names]
        draw_doubts(axes, joints, _covariance(figure, frame, camera), times)
        draw_bones(axes, joints, body.parent, colours, width=2.2)
        draw_joints(axes, joints[~body.is_end], 9.0)
    for figure in scene.truth:
        joints = camera.seen(placed((figure,), [frame])[0] - middle)
        for joint, above in enumerate(figure.skeleton.parent):
            if above >= 0:
                x, y, _ = joints[[above, joint]].T
                axes.plot(x, y, color=GOLD, linewidth=0.8, zorder=8)


def _covariance(
    motion: Motion, frame: int, camera: Camera
) -> Float[Array, "joint 3 3"]:
    """Return the covariance of every joint's place on its parent, as it is seen."""
    body = motion.skeleton
    T = body.forward(motion.T_world_root[[frame]], motion.wxyz[[frame]])[0]
    turn = camera.axes @ T[np.maximum(body.parent, 0), :3, :3]
    return np.asarray(turn @ body.covariance @ turn.swapaxes(-1, -2))


def _enlarged(scene: Scene, height: float) -> int:
    """Return how much ellipses are enlarged; 0 = there are none."""
    bodies = [figure.skeleton.covariance for figure in scene.figures]
    known = [C[np.isfinite(C).all(axis=(1, 2))] for C in bodies]
    values = [np.linalg.eigvalsh(one).max() for C in known for one in C]
    reach = np.sqrt(np.maximum(values, 0.0))
    if not reach.any():
        return 0
    most = height * min(USUAL / np.median(reach), LARGEST / reach.max())
    return next((n for n in ENLARGED if n <= most), ENLARGED[-1])


def _legend(figure: Any, scene: Scene, times: int) -> None:
    """Say below the stills what is what, and by how much doubts are enlarged."""
    from matplotlib.lines import Line2D

    dot: dict[str, Any] = {"linestyle": "", "markersize": 4.0}
    entries = []
    if scene.points.shape[1]:
        label = "recorded" if scene.recorded else "markers on the skeleton"
        entries.append(Line2D([], [], marker="o", color=GREY, label=label, **dot))
    if scene.filled.any():
        hollow: dict[str, Any] = {
            "markerfacecolor": "white",
            "markeredgecolor": GREY,
            **dot,
        }
        entries.append(Line2D([], [], marker="o", label="filled in", **hollow))
    sides = {side_of(n) for figure in scene.figures for n in figure.skeleton.names}
    for side in ("Left", "Right"):
        if side in sides:
            bone: dict[str, Any] = {"color": SIDES[side], "linewidth": 2.2}
            entries.append(Line2D([], [], label=side.lower(), **bone))
    if times:
        words = "± 1 sd of a joint" + (f", {times}× enlarged" if times > 1 else "")
        soft: dict[str, Any] = {
            "color": GREEN,
            "alpha": 0.6,
            "linestyle": "",
            "markersize": 7.0,
        }
        entries.append(Line2D([], [], marker="o", label=words, **soft))
    if scene.truth:
        entries.append(Line2D([], [], color=GOLD, linewidth=1.0, label="truth"))
    columns = max(int(figure.get_figwidth() / 1.3), 2)
    figure.legend(handles=entries, loc="outside lower center", ncols=columns)
