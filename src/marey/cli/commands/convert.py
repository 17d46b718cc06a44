"""`marey convert`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from rich.markup import escape

from marey.cli.application import (
    EXIT_OK,
    Columns,
    Drop,
    Keep,
    Overwrite,
    Quiet,
    Rate,
    Rename,
    Unit,
    Up,
    out,
    print_findings,
    show_progress,
)
from marey.errors import FormatError, OptionError

if TYPE_CHECKING:
    from marey.motion import Motion
    from marey.take import Take


def convert(
    source: Annotated[Path, Parameter(help="The file to read.")],
    target: Annotated[
        Path, Parameter(help="The file to write; its suffix selects the format.")
    ],
    /,
    *,
    unit: Unit = None,
    up: Up = None,
    rate: Rate = None,
    columns: Columns = None,
    skeleton: Annotated[Path | None, Parameter(help="The ASF file of an AMC.")] = None,
    frames: Annotated[str, Parameter(help="Frames a:b; b is not included.")] = "",
    markers: Keep = (),
    drop: Drop = (),
    rename: Rename = (),
    out_unit: Annotated[
        str | None, Parameter(help="Length unit of the output.")
    ] = None,
    out_up: Annotated[
        str | None, Parameter(help="Axis of the output that points up.")
    ] = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> int:
    """Convert a file to another format and print what that format cannot keep."""
    import marey
    from marey.io import format_for_suffix
    from marey.io.atomic import check_target

    target_format = format_for_suffix(target)
    check_target(target, overwrite=overwrite, inputs=(str(source),))
    with show_progress(f"reading {source.name}", quiet):
        content: Take | Motion
        if target_format.write_motion and not columns and _holds_motion(source):
            content = marey.read_motion(
                source, unit=unit, up=up, rate=rate, skeleton=skeleton
            )
            content = content.cut(*_parse_frames(frames, content.n_frames))
        else:
            content = marey.read(
                source,
                unit=unit,
                up=up,
                rate=rate,
                columns=columns,
                skeleton=skeleton,
                markers=markers,
                drop=drop,
                rename=_parse_renames(rename),
                analog=True,
            )
            content = content.cut(*_parse_frames(frames, content.n_frames))
    with show_progress(f"writing {target.name}", quiet):
        lost = marey.write(
            content, target, unit=out_unit, up=out_up, overwrite=overwrite
        )
    if not quiet:
        print_findings([*content.source.findings, *lost])
        size = f"{target_format.title}, {content.n_frames} frames"
        out.print(f"wrote {escape(str(target))} ({size})")
    return EXIT_OK


def _holds_motion(path: Path) -> bool:
    """Return whether a file contains a motion; an npz archive may contain a take."""
    from marey.io import load, recognise
    from marey.take import Take

    file_format = recognise(path)
    if file_format.name != "npz":
        return file_format.read_motion is not None
    try:
        return not isinstance(load(path), Take)
    except FormatError:  # Not an archive of marey's; `read` reports what is wrong.
        return False


def _parse_frames(text: str, n_frames: int) -> tuple[int, int]:
    """Return first and last+1 frame of "a:b"; a and b may be empty."""
    start, colon, stop = text.partition(":")
    try:
        if text and not colon:
            raise ValueError
        return int(start or 0), int(stop or n_frames)
    except ValueError:
        raise OptionError(
            "--frames", found=text, needed="a:b such as 100:200"
        ) from None


def _parse_renames(texts: Sequence[str]) -> dict[str, str]:
    """Return new labels by old label, from texts `old=new`."""
    pairs = [text.partition("=") for text in texts]
    if not all(old and new for old, _, new in pairs):
        raise OptionError("--rename", found=list(texts), needed="old=new")
    return {old: new for old, _, new in pairs}
