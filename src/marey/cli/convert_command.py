"""`marey convert`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from rich.markup import escape

from marey.cli.application import (
    GOOD,
    Columns,
    Drop,
    Keep,
    Overwrite,
    Quiet,
    Rate,
    Rename,
    Unit,
    Up,
    app,
    busy,
    out,
    print_findings,
)
from marey.errors import FormatError, OptionError

if TYPE_CHECKING:
    from marey.motion import Motion
    from marey.take import Take


@app.command
def convert(
    source: Annotated[Path, Parameter(help="The file to read.")],
    target: Annotated[
        Path, Parameter(help="The file to write; its suffix is the format.")
    ],
    /,
    *,
    unit: Unit = None,
    up: Up = None,
    rate: Rate = None,
    columns: Columns = None,
    skeleton: Annotated[Path | None, Parameter(help="The ASF file of an AMC.")] = None,
    frames: Annotated[str, Parameter(help="Frames a:b, b not included.")] = "",
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
    """Turn one file into another, saying what the target loses."""
    import marey
    from marey.io import format_of_suffix
    from marey.io.atomic import check_target

    wanted = format_of_suffix(target)
    check_target(target, overwrite=overwrite, inputs=(str(source),))
    with busy(f"reading {source.name}", quiet):
        thing: Take | Motion
        if wanted.write_motion and not columns and _holds_motion(source):
            thing = marey.read_motion(
                source, unit=unit, up=up, rate=rate, skeleton=skeleton
            )
            thing = thing.cut(*_frames(frames, thing.n_frames))
        else:
            thing = marey.read(
                source,
                unit=unit,
                up=up,
                rate=rate,
                columns=columns,
                skeleton=skeleton,
                markers=markers,
                drop=drop,
                rename=_pairs(rename),
                analog=True,
            )
            thing = thing.cut(*_frames(frames, thing.n_frames))
    with busy(f"writing {target.name}", quiet):
        lost = marey.write(thing, target, unit=out_unit, up=out_up, overwrite=overwrite)
    if not quiet:
        print_findings([*thing.source.findings, *lost])
        out.print(
            f"wrote {escape(str(target))} ({wanted.title}, {thing.n_frames} frames)"
        )
    return GOOD


def _holds_motion(path: Path) -> bool:
    """Return whether a file holds a motion; an archive of ours may hold a take."""
    from marey.io import load, recognise
    from marey.take import Take

    found = recognise(path)
    if found.name != "npz":
        return found.read_motion is not None
    try:
        return not isinstance(load(path), Take)
    except FormatError:  # An archive of somebody else's, or what reading will say.
        return False


def _frames(text: str, n_frames: int) -> tuple[int, int]:
    """Return the frames of "a:b", either of which may be left out."""
    start, colon, stop = text.partition(":")
    try:
        if text and not colon:
            raise ValueError
        return int(start or 0), int(stop or n_frames)
    except ValueError:
        raise OptionError(
            "--frames", found=text, needed="a:b such as 100:200"
        ) from None


def _pairs(texts: Sequence[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in texts]
    if not all(old and new for old, _, new in pairs):
        raise OptionError("--rename", found=list(texts), needed="old=new")
    return {old: new for old, _, new in pairs}
