"""Pictures as files, written atomically."""

import io
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from marey.errors import OptionError
from marey.io.atomic import check_target, write_atomic
from marey.plot.style import with_style

if TYPE_CHECKING:
    import matplotlib.figure

# Metadata that would differ each time a picture is written.
_UNDATED: dict[str, dict[str, Any]] = {
    ".png": {},
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
}


def save(
    figure: "matplotlib.figure.Figure",
    path: str | PathLike[str],
    *,
    overwrite: bool = False,
) -> None:
    """Write a picture in the format of its suffix: .png, .svg or .pdf.

    The file is written completely or not at all; equal pictures give equal bytes.

    Args:
        figure: What a function of this module returned, or any matplotlib figure.
        path: Where to; its folder must exist.
        overwrite: Replace a file that exists.

    Raises:
        OptionError: If the path is taken or has another suffix.
        OutputError: If the folder is missing or the disk is full.
        MissingExtraError: If matplotlib is not installed.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in _UNDATED:
        needed = f"a name that ends in {', '.join(_UNDATED)}"
        raise OptionError("path", found=str(path), needed=needed)
    check_target(path, overwrite=overwrite)
    write_atomic({path: (encode_figure(figure, suffix),)})


@with_style
def encode_figure(figure: "matplotlib.figure.Figure", suffix: str = ".png") -> bytes:
    """Return the bytes of a picture's file."""
    file = io.BytesIO()
    figure.savefig(file, format=suffix[1:], metadata=_UNDATED[suffix])
    return file.getvalue()
