"""Bone lengths with standard deviations, beside measured lengths."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from marey.errors import DataError
from marey.numerics import Array, Float, Int
from marey.numerics.robust import rms
from marey.plot import style
from marey.plot.style import BLUE, FAINT, GOLD, GREY, INK, MM
from marey.skeleton import Skeleton
from marey.solution import Solution

if TYPE_CHECKING:
    import matplotlib.figure


SCALE_MARGIN = 1.42
"""Width of the scale over the longest bone; the numbers are at its end."""


@style.with_style
def lengths(
    solution: Solution | Skeleton,
    measured: Mapping[str, float] | Skeleton | None = None,
    *,
    subject: str = "",
) -> "matplotlib.figure.Figure":
    """Return bone lengths as bars, with standard deviations or errors beside them.

    The right panel shows one standard deviation of each length. With measured lengths
    it shows calculated minus measured; thick bars reach one standard deviation to
    either side, thin bars two. If the standard deviations are right, two in three
    thick bars cross zero. Bones that end in no joint, such as a hand, are left out.

    Args:
        solution: What `marey.solve` returned, or a skeleton.
        measured: Length of the bone that ends in each joint, in metres, by joint name;
            or a skeleton with the same names whose lengths are known. Of a skeleton
            those lengths are taken that are rigid in it.
        subject: Name of the subject, where the solution has several.

    Raises:
        DataError: If there are no bones, no such subject, or a measured length is of no
            bone or not above 0 m.
        MissingExtraError: If matplotlib is not installed.
    """
    found = skeleton_of_subject(solution, subject)
    bones = np.flatnonzero((found.parent >= 0) & ~found.is_end)
    if not len(bones):
        raise DataError("lengths", found="no bones between joints", needed="some")
    known = _measured_lengths(found, bones, measured)
    figure = style.new_figure(6.4, 0.2 * len(bones) + 1.0)
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=(1.15, 1))
    _draw_bars(left, found, bones, known)
    if np.isfinite(known).any():
        _draw_errors(
            right, MM.per_metre * (found.lengths[bones] - known), _sd(found, bones)
        )
    else:
        right.barh(range(len(bones)), _sd(found, bones), height=0.6, color=BLUE)
        right.set_xlabel("standard deviation, mm")
    for axes in (left, right):
        style.simplify_axes(axes, grid="x")
        axes.spines["left"].set_visible(False)
        axes.tick_params(axis="y", length=0.0)
    figure.suptitle("Bone lengths")
    return figure


def skeleton_of_subject(solution: Solution | Skeleton, subject: str) -> Skeleton:
    """Return the skeleton of a subject by name; "" = the only one.

    Raises:
        DataError: If there is no such subject.
    """
    if isinstance(solution, Skeleton):
        return solution
    if not subject:
        return solution.skeleton
    for one in solution.subjects:
        if one.name == subject:
            return one.skeleton
    names = ", ".join(one.name for one in solution.subjects)
    raise DataError("subject", found=repr(subject), needed=f"one of {names}")


def _sd(skeleton: Skeleton, bones: Int[Array, " bone"]) -> Float[Array, " bone"]:
    return np.asarray(MM.per_metre * skeleton.length_sd[bones])


def _draw_bars(
    axes: Any, found: Skeleton, bones: Int[Array, " bone"], known: Float[Array, " bone"]
) -> None:
    """Draw the lengths, first bone on top, with the measured lengths over them."""
    rows, size = np.arange(len(bones)), MM.per_metre * found.lengths[bones]
    axes.barh(rows, size, height=0.6, color=FAINT, label="calculated")
    for row, length, sd in zip(rows, size, _sd(found, bones), strict=True):
        doubt = f" ± {style.format_number(sd)}" if np.isfinite(sd) else ""
        at: dict[str, Any] = {"ha": "right", "va": "center_baseline", "fontsize": 7}
        axes.text(SCALE_MARGIN * size.max(), row, f"{length:.0f}{doubt}", **at)
    if np.isfinite(known).any():
        rim: dict[str, Any] = {"markeredgecolor": INK, "markeredgewidth": 0.6}
        look: dict[str, Any] = {"color": GOLD, **rim}
        axes.plot(
            MM.per_metre * known, rows, "D", markersize=4, label="measured", **look
        )
        axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2, reverse=True)
    names = [
        f"{found.names[found.parent[bone]]} – {found.names[bone]}" for bone in bones
    ]
    axes.set_yticks(rows, [style.escape_name(name) for name in names])
    axes.set(xlabel="length, mm", ylim=(len(bones) - 0.4, -0.6))
    axes.set_xlim(0.0, SCALE_MARGIN * size.max())


def _draw_errors(
    axes: Any, error: Float[Array, " bone"], sd: Float[Array, " bone"]
) -> None:
    """Draw calculated minus measured, with one and two standard deviations."""
    rows = np.flatnonzero(np.isfinite(error))
    axes.axvline(0.0, color=INK, linewidth=0.8)
    for times, width in ((2.0, 1.0), (1.0, 3.0)):
        reach = times * np.nan_to_num(sd[rows])
        axes.hlines(
            rows, error[rows] - reach, error[rows] + reach, color=BLUE, linewidth=width
        )
    axes.plot(
        error[rows], rows, "o", color="white", markeredgecolor=BLUE, markersize=4.5
    )
    axes.set_title(
        f"rms {style.format_number(rms(error))} mm", loc="right", pad=3.0, color=GREY
    )
    axes.set_xlabel("calculated minus measured, mm")


def _measured_lengths(
    found: Skeleton,
    bones: Int[Array, " bone"],
    measured: Mapping[str, float] | Skeleton | None,
) -> Float[Array, " bone"]:
    """Return the measured length of each bone, in metres; NaN = not measured."""
    if measured is None:
        return np.full(len(bones), np.nan)
    if isinstance(measured, Skeleton):
        parents = found.parent[bones]
        ends = [
            (found.names[a], found.names[b])
            for a, b in zip(parents, bones, strict=True)
        ]
        size = np.array([_rigid_length(measured, *pair) for pair in ends])
        return np.where(parents > 0, size, np.nan)
    names = [found.names[bone] for bone in bones]
    for name, length in measured.items():
        if name not in names:
            needed = f"joints at the ends of bones: {', '.join(names)}"
            raise DataError("measured", found=repr(name), needed=needed)
        if not 0.0 < length < np.inf:
            raise DataError(f"measured {name}", found=length, needed="above 0 m")
    return np.array([measured.get(name, np.nan) for name in names])


def _rigid_length(skeleton: Skeleton, parent: str, joint: str) -> float:
    """Return the distance of two joints if only fixed joints are between them, or NaN.

    The position of a root or a fixed joint on its body is a convention and is not
    compared.
    """
    nan = float("nan")
    if not {parent, joint} <= set(skeleton.names):
        return nan
    last, first = skeleton.index(joint), skeleton.index(parent)
    if {skeleton.kind[last], skeleton.kind[first]} & {"root", "fixed"}:
        return nan
    ancestor = int(skeleton.parent[last])
    while ancestor not in (first, -1) and skeleton.kind[ancestor] == "fixed":
        ancestor = int(skeleton.parent[ancestor])
    if ancestor != first:
        return nan
    rest = skeleton.rest()[:, :3, 3]
    return float(np.linalg.norm(rest[last] - rest[first]))
