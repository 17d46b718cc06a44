"""`marey convert`."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from rich.markup import escape

from marey.cli.application import (
    AS_THEY_ARE,
    DEFAULT_MESSAGES,
    EXIT_OK,
    NO_OVERRIDES,
    MessageArguments,
    ReadArguments,
    WriteArguments,
    err,
    out,
    render_finding,
    show_progress,
)
from marey.errors import FormatError, OptionError

if TYPE_CHECKING:
    from marey.io.contract import Format
    from marey.motion import Motion
    from marey.take import Take


def convert(
    source: Path,
    target: Path,
    /,
    *,
    reading: ReadArguments = NO_OVERRIDES,
    skeleton: Path | None = None,
    markers: tuple[str, ...] = (),
    drop: tuple[str, ...] = (),
    rename: tuple[str, ...] = (),
    writing: WriteArguments = AS_THEY_ARE,
    messages: MessageArguments = DEFAULT_MESSAGES,
) -> int:
    """Convert a file to another format and print what that format cannot keep.

    Args:
        source: The file to read.
        target: The file to write; its suffix selects the format.
        reading: How to read the file.
        skeleton: The ASF file of an AMC.
        markers: Keep only markers like 'L*'.
        drop: Drop markers like 'R*'.
        rename: New labels of markers, or names of a motion's joints, old=new.
        writing: How to write the file.
        messages: How much to print.
    """
    import marey
    from marey.io import format_for_suffix
    from marey.io.atomic import check_target

    messages.apply()
    target_format = format_for_suffix(target)
    check_target(target, overwrite=writing.overwrite, inputs=(str(source),))
    overrides = asdict(reading) | {"skeleton": skeleton}
    renamed = _parse_renames(rename)
    content: Take | Motion
    with show_progress(f"reading {source.name}", messages.quiet):
        if _wants_motion(target_format, writing, reading) and _has_motion(source):
            del overrides["columns"]
            _refuse_markers(source, {"--markers": markers, "--drop": drop})
            content = marey.read_motion(source, **overrides)
            content = _rename_joints(content, renamed)
        else:
            content = marey.read(
                source,
                markers=markers,
                drop=drop,
                rename=renamed,
                analog=True,
                **overrides,
            )
    with show_progress(f"writing {target.name}", messages.quiet):
        lost = marey.write(content, target, **writing.options())
    if not messages.quiet:
        for finding in (*content.source.findings, *lost):
            err.print(render_finding(finding))
        out.print(f"wrote {escape(str(target))} ({target_format.title})")
    return EXIT_OK


def _wants_motion(
    target: "Format", writing: WriteArguments, reading: ReadArguments
) -> bool:
    """Return whether the output needs the motion of a file, not its recording."""
    about_motion = bool(target.write_motion or writing.content or writing.rest)
    return about_motion and not reading.columns


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


def _parse_renames(texts: Sequence[str]) -> dict[str, str]:
    """Return new labels by old label, from texts `old=new`."""
    pairs = [text.partition("=") for text in texts]
    if not all(old and new for old, _, new in pairs):
        raise OptionError("--rename", found=list(texts), needed="old=new")
    return {old: new for old, _, new in pairs}


def _refuse_markers(source: Path, given: Mapping[str, Sequence[str]]) -> None:
    """Raise an OptionError if markers are chosen in a file that has joints."""
    for name, patterns in given.items():
        if patterns:
            needed = f"none: {source.name} is converted as a motion, without markers"
            raise OptionError(name, found=list(patterns), needed=needed)


def _rename_joints(motion: "Motion", renamed: Mapping[str, str]) -> "Motion":
    """Return a motion whose joints have new names.

    Raises:
        OptionError: If a joint is not there, or two would have one name.
    """
    skeleton = motion.skeleton
    unknown = [name for name in renamed if name not in skeleton.names]
    if unknown:
        needed = f"old=new with joints out of {', '.join(skeleton.names)}"
        raise OptionError("--rename", found=unknown, needed=needed)
    return motion.rename(renamed, "--rename")
