"""Style that all pictures share: colours, font sizes, simple axes."""

import importlib.util
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from marey.errors import MissingExtraError, printable

if TYPE_CHECKING:
    import matplotlib.figure

P = ParamSpec("P")
R = TypeVar("R")

INK, GREY, FAINT = "#22313f", "#8a949e", "#dfe4e8"
BLUE, RED, GOLD, GREEN = "#1f6f9f", "#c0452b", "#e0a92e", "#63c08c"
"""Colours that differ in lightness too, for any kind of colour vision."""

LEFT_COLOUR, RIGHT_COLOUR, MIDDLE_COLOUR = "#d64a6c", "#2b93cf", "#8fa0b4"
"""Colours of the sides of the body in pictures and on pages. They differ for any colour
vision, on white and on black."""

DPI = 150

MAX_NAME_LENGTH = 32
"""Most characters of a name that are drawn."""

STYLE: Mapping[str, Any] = {
    "font.size": 8.0,
    "axes.titlesize": 8.0,
    "axes.labelsize": 8.0,
    "xtick.labelsize": 7.0,
    "ytick.labelsize": 7.0,
    "legend.fontsize": 7.0,
    "legend.frameon": False,
    "figure.titlesize": 10.0,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.edgecolor": GREY,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    # The same picture gives the same bytes.
    "svg.hashsalt": "marey",
}


@dataclass(frozen=True, slots=True)
class LengthUnit:
    """A unit of length on an axis."""

    name: str
    per_metre: float


MM, CM = LengthUnit("mm", 1e3), LengthUnit("cm", 1e2)


def can_draw() -> bool:
    """Return whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


@contextmanager
def plot_style() -> Iterator[None]:
    """Draw in the common style, independent of the user's matplotlib settings.

    Raises:
        MissingExtraError: If matplotlib is not installed.
    """
    if not can_draw():
        raise MissingExtraError("matplotlib", "plots")
    from matplotlib import style

    with style.context(["default", dict(STYLE)]):
        yield


def with_style(draw: Callable[P, R]) -> Callable[P, R]:
    """Return a function that draws in the common style and restores the settings."""

    @wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> R:
        with plot_style():
            return draw(*args, **kwargs)

    return drawn


def new_figure(
    width: float = 6.4, height: float = 4.8, *, fixed: bool = False
) -> "matplotlib.figure.Figure":
    """Return an empty figure without a window and outside pyplot's global state.

    Args:
        width: Width in inches.
        height: Height in inches.
        fixed: Whether its axes have a fixed aspect ratio and are close together.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    layout: Any = "compressed" if fixed else "constrained"
    figure = Figure(figsize=(width, height), dpi=DPI, layout=layout)
    FigureCanvasAgg(figure)
    return figure


def simplify_axes(axes: Any, grid: str = "y") -> None:
    """Remove spines without data, and draw a light grid."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(GREY)
    axes.tick_params(color=GREY, labelcolor=INK, labelsize=7, length=2.5)
    axes.grid(True, axis=grid, color=FAINT, linewidth=0.7)
    axes.set_axisbelow(True)


def format_number(value: float) -> str:
    """Return a number with one decimal, or two digits below 1."""
    return f"{value:.1f}" if value >= 1.0 else f"{value:.2g}"


def escape_name(name: str) -> str:
    """Return a name as plain text, shortened, without control characters."""
    return printable(name, limit=MAX_NAME_LENGTH).replace("$", r"\$")
