"""Stills of a skeleton, side by side."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from marey.anatomy.names import LEFT, RIGHT, SIDES
from marey.motion import Motion
from marey.numerics import Array, Float
from marey.plot import style
from marey.plot.primitives import (
    Camera,
    draw_bones,
    draw_covariances,
    draw_joints,
    draw_markers,
)
from marey.plot.scene import (
    Frames,
    PlotScene,
    add_truth,
    body_side,
    build_plot_scene,
    choose_camera,
    choose_frames,
    joint_positions,
)
from marey.plot.style import GOLD, GREEN, GREY, INK
from marey.solution import Solution
from marey.synth import Recording, Truth

if TYPE_CHECKING:
    import matplotlib.figure


MAX_WIDTH_IN, MAX_HEIGHT_IN = 6.1, 3.0
"""Largest width of all stills together and height of one, in inches."""

ELLIPSE_SCALES = (1000, 500, 300, 200, 100, 50, 30, 20, 10, 5, 3, 2, 1)
"""Factors by which covariance ellipses may be enlarged."""

MEDIAN_ELLIPSE, MAX_ELLIPSE = 0.04, 0.15
"""Largest half axis of the median and of the largest enlarged ellipse, as fractions of
the height of the picture. Chosen by hand."""

MARGIN = 0.04
"""Margin around the figures, as a fraction of their size."""

MIN_ASPECT = 0.6
"""Smallest ratio of height to width of a still."""

SIDE_COLOURS = {LEFT: style.LEFT_COLOUR, RIGHT: style.RIGHT_COLOUR, "": INK}


@style.with_style
def skeleton(
    motion: Solution | Motion,
    frame: Frames | None = None,
    truth: Recording | Truth | Motion | None = None,
    *,
    take: int = 0,
    azimuth: float | None = None,
) -> "matplotlib.figure.Figure":
    """Return stills of the skeleton, side by side, all on one scale.

    The camera is level and orthographic, so that the axis shows true heights. The
    figure is in the middle of each still. Left bones are rose, right bones blue, all
    others dark. Dots are markers and sensors; they are hollow where cleaning filled
    them in. For a motion without a recording they are the markers of its skeleton.
    Ellipses are one standard deviation of a joint's position on its parent, enlarged
    by the factor in the legend. The truth is a thin yellow line.

    Args:
        motion: What `marey.solve` returned, or a motion.
        frame: One frame or several; when left out, the five in which the
            poses differ most.
        truth: The true motion, drawn over the estimated one.
        take: Which take of the solution.
        azimuth: Azimuth of the camera in degrees, 0 = from +x, 90 = from +y. When
            left out, that of the widest view, from the front if names have sides.

    Raises:
        DataError: If nothing was seen in these frames, or the truth has other frames.
        OptionError: If there is no such frame or take.
        MissingExtraError: If matplotlib is not installed.
    """
    from matplotlib.ticker import MaxNLocator

    scene = add_truth(build_plot_scene(motion, take), truth)
    frames = choose_frames(scene, frame)
    camera = choose_camera(scene, frames) if azimuth is None else Camera(azimuth, 0.0)
    left, right, low, high = _extent(scene, frames, camera)
    slender = (high - low) / (right - left)
    tall = min(MAX_HEIGHT_IN, MAX_WIDTH_IN / len(frames) * slender)
    wide = len(frames) * tall / slender
    gaps = 0.1 * len(frames) + 0.55
    figure = style.new_figure(max(wide, 2.4) + gaps, tall + 0.7, fixed=True)
    times = _ellipse_scale(scene, high - low)
    every = figure.subplots(1, len(frames), sharey=True, squeeze=False)[0]
    for axes, k in zip(every, frames, strict=True):
        _draw_still(axes, scene, k, camera, times)
        axes.set(xlim=(left, right), ylim=(low, high), aspect="equal", xticks=[])
        axes.set_xlabel(f"{scene.times[k]:.2f} s")
        style.simplify_axes(axes)
        axes.spines[:].set_visible(False)
        axes.tick_params(axis="y", length=0.0)
        axes.yaxis.set_major_locator(MaxNLocator(5, steps=(1, 2, 5, 10)))
    every[0].set_ylabel("height, m")
    _draw_legend(figure, scene, times)
    return figure


def _extent(
    scene: PlotScene, frames: Sequence[int], camera: Camera
) -> tuple[float, float, float, float]:
    """Return the extent of all points from the middle: left, right, bottom, top."""
    middle = np.stack([scene.ground_center(k) for k in frames])
    spots = camera.project(scene.all_positions(frames) - middle[:, None])
    x, z = spots[..., 0], spots[..., 1]
    low, high = float(np.nanmin(z)), float(np.nanmax(z))
    # The ground is shown if the figures are near it.
    low = min(low, 0.0) if low < 0.5 * (high - low) else low
    left, right = float(np.nanmin(x)), float(np.nanmax(x))
    room = MARGIN * max(high - low, right - left, 0.1)
    flat = max(0.5 * (MIN_ASPECT * (right - left) - (high - low)), 0.0) + room
    return left - room, right + room, low - flat, high + flat


def _draw_still(
    axes: Any, scene: PlotScene, frame: int, camera: Camera, times: int
) -> None:
    """Draw one frame."""
    middle = scene.ground_center(frame)
    axes.axhline(0.0, color=GREY, linewidth=0.9, zorder=1)
    spots, is_filled = camera.project(scene.points[frame] - middle), scene.filled[frame]
    draw_markers(axes, spots[~is_filled], GREY, 7.0)
    draw_markers(axes, spots[is_filled], "white", 7.0, rim=GREY)
    for figure in scene.figures:
        joints = camera.project(joint_positions((figure,), [frame])[0] - middle)
        body = figure.skeleton
        colours = [SIDE_COLOURS[body_side(name)] for name in body.names]
        draw_covariances(axes, joints, _covariance(figure, frame, camera), times)
        draw_bones(axes, joints, body.parent, colours, width=2.2)
        draw_joints(axes, joints[~body.is_end], 9.0)
    for figure in scene.truth:
        joints = camera.project(joint_positions((figure,), [frame])[0] - middle)
        for joint, parent in enumerate(figure.skeleton.parent):
            if parent >= 0:
                x, y, _ = joints[[parent, joint]].T
                axes.plot(x, y, color=GOLD, linewidth=0.8, zorder=8)


def _covariance(
    motion: Motion, frame: int, camera: Camera
) -> Float[Array, "joint 3 3"]:
    """Return the covariance of every joint on its parent, in camera axes, in m^2."""
    body = motion.skeleton
    T = body.forward(motion.T_world_root[[frame]], motion.wxyz[[frame]])[0]
    R = camera.axes @ T[np.maximum(body.parent, 0), :3, :3]
    return np.asarray(R @ body.covariance @ R.swapaxes(-1, -2))


def _ellipse_scale(scene: PlotScene, height: float) -> int:
    """Return the factor by which ellipses are enlarged; 0 = there are none."""
    bodies = [figure.skeleton.covariance for figure in scene.figures]
    known = [C[np.isfinite(C).all(axis=(1, 2))] for C in bodies]
    values = [np.linalg.eigvalsh(one).max() for C in known for one in C]
    half_axes = np.sqrt(np.maximum(values, 0.0))
    if not half_axes.any():
        return 0
    most = height * min(
        MEDIAN_ELLIPSE / np.median(half_axes), MAX_ELLIPSE / half_axes.max()
    )
    return next((n for n in ELLIPSE_SCALES if n <= most), ELLIPSE_SCALES[-1])


def _draw_legend(figure: Any, scene: PlotScene, times: int) -> None:
    """Draw the legend below the stills, with the factor of the ellipses."""
    from matplotlib.lines import Line2D

    dot: dict[str, Any] = {"linestyle": "", "markersize": 4.0}
    entries = []
    if scene.points.shape[1]:
        label = "recorded" if scene.recorded else "markers on the skeleton"
        entries.append(Line2D([], [], marker="o", color=GREY, label=label, **dot))
    if scene.filled.any():
        hollow: dict[str, Any] = {"mfc": "white", "mec": GREY, **dot}
        entries.append(Line2D([], [], marker="o", label="filled in", **hollow))
    sides = {body_side(n) for figure in scene.figures for n in figure.skeleton.names}
    for side in SIDES:
        if side in sides:
            bone: dict[str, Any] = {"color": SIDE_COLOURS[side], "linewidth": 2.2}
            entries.append(Line2D([], [], label=side.lower(), **bone))
    if times:
        words = "± 1 sd of a joint" + (f", {times}× enlarged" if times > 1 else "")
        soft: dict[str, Any] = {**dot, "markersize": 7.0, "alpha": 0.6}
        ellipse = Line2D([], [], marker="o", color=GREEN, label=words, **soft)
        entries.append(ellipse)
    if scene.truth:
        entries.append(Line2D([], [], color=GOLD, linewidth=1.0, label="truth"))
    columns = max(int(figure.get_figwidth() / 1.3), 2)
    figure.legend(handles=entries, loc="outside lower center", ncols=columns)
