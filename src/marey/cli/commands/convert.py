"""`marey convert`."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from rich.markup import escape

from marey.cli.application import (
    EXIT_OK,
    NO_OVERRIDES,
    ReadArguments,
    err,
    out,
    render_finding,
    show_progress,
)
from marey.errors import FormatError, OptionError

if TYPE_CHECKING:
    from marey.motion import Motion
    from marey.take import Take


def convert(
    source: Path,
    target: Path,
    /,
    *,
    reading: ReadArguments = NO_OVERRIDES,
    skeleton: Path | None = None,
    frames: str = "",
    markers: tuple[str, ...] = (),
    drop: tuple[str, ...] = (),
    rename: tuple[str, ...] = (),
    out_unit: str | None = None,
    out_up: str | None = None,
    names: str | None = None,
    with_markers: bool = False,
    overwrite: bool = False,
    quiet: bool = False,
) -> int:
    """Convert a file to another format and print what that format cannot keep.

    Args:
        source: The file to read.
        target: The file to write; its suffix selects the format.
        reading: How to read the file.
        skeleton: The ASF file of an AMC.
        frames: Frames a:b; b is not included.
        markers: Keep only markers like 'L*'.
        drop: Drop markers like 'R*'.
        rename: New labels, old=new.
        out_unit: Length unit of the output.
        out_up: Axis of the output that points up.
        names: Names of joints: vrm, humanik, mixamo, unreal, cmu, smpl, opensim or
            a TOML file.
        with_markers: Also write the markers on the bones to a scene (glTF, USD, FBX).
        overwrite: Replace the output if it exists.
        quiet: Print errors only.
    """
    import marey
    from marey.io import format_for_suffix
    from marey.io.atomic import check_target

    target_format = format_for_suffix(target)
    check_target(target, overwrite=overwrite, inputs=(str(source),))
    overrides = asdict(reading) | {"skeleton": skeleton}
    content: Take | Motion
    with show_progress(f"reading {source.name}", quiet):
        if target_format.write_motion and not reading.columns and _has_motion(source):
            del overrides["columns"]
            content = marey.read_motion(source, **overrides)
        else:
            content = marey.read(
                source,
                markers=markers,
                drop=drop,
                rename=_parse_renames(rename),
                analog=True,
                **overrides,
            )
        content = content.cut(*_parse_frames(frames, content.n_frames))
    with show_progress(f"writing {target.name}", quiet):
        lost = marey.write(
            content,
            target,
            unit=out_unit,
            up=out_up,
            names=names,
            markers=with_markers,
            overwrite=overwrite,
        )
    if not quiet:
        for finding in (*content.source.findings, *lost):
            err.print(render_finding(finding))
        size = f"{target_format.title}, {content.n_frames} frames"
        out.print(f"wrote {escape(str(target))} ({size})")
    return EXIT_OK


def _has_motion(path: Path) -> bool:
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
        needed = "a:b such as 100:200"
        raise OptionError("--frames", found=text, needed=needed) from None


def _parse_renames(texts: Sequence[str]) -> dict[str, str]:
    """Return new labels by old label, from texts `old=new`."""
    pairs = [text.partition("=") for text in texts]
    if not all(old and new for old, _, new in pairs):
        raise OptionError("--rename", found=list(texts), needed="old=new")
    return {old: new for old, _, new in pairs}
