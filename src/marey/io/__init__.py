"""Reading and writing recordings, motions and skeletons.

The format of a file is recognised by its content; the suffix decides only between
formats with similar content. A new format is one file in `formats/` and one line in
`registry.py`.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from marey.errors import DataError, FormatError, OptionError
from marey.io import registry
from marey.io.atomic import check_target, write_atomic
from marey.io.content import IN_TABLES, choose_content, content_of
from marey.io.content import Content as Content
from marey.io.content import usual_content as usual_content
from marey.io.contract import Format, Output, QuantityTable
from marey.io.contract import motion_as_take as motion_as_take
from marey.io.conventions import Conventions, apply_conventions
from marey.io.file import File
from marey.io.losses import find_losses
from marey.io.options import ReadOptions, WriteOptions
from marey.io.registry import format_for_suffix as format_for_suffix
from marey.io.registry import recognise as recognise
from marey.io.renaming import rename_thing
from marey.io.scene import BodyMesh as BodyMesh
from marey.io.scene import build_body_mesh as build_body_mesh
from marey.motion import Motion
from marey.report import Finding
from marey.skeleton import Skeleton
from marey.solution import Solution
from marey.take import Take

logger = logging.getLogger(__name__)

Noun = Take | Motion | Skeleton | Solution
NOUNS = {
    "take": Take,
    "motion": Motion,
    "skeleton": Skeleton,
    "solution": Solution,
    "table": QuantityTable,
}


def read(
    path: str | PathLike[str],
    *,
    format: str = "auto",
    unit: str | None = None,
    up: str | None = None,
    rate: float | None = None,
    frames: tuple[int | None, int | None] | None = None,
    markers: Sequence[str] = (),
    drop: Sequence[str] = (),
    rename: Mapping[str, str] | None = None,
    columns: str | Path | Mapping[str, Any] | None = None,
    skeleton: str | Path | None = None,
    analog: bool = False,
    computed: bool = False,
) -> Take:
    """Return a recording in metres and +Z up, whatever the format.

    What the file says of its unit, axes and rate, and what was assumed, is in
    `take.source`. A file that holds a motion (BVH, AMC) gives its joints as sensors.

    Args:
        path: The file.
        format: Name of a format, to skip recognition by content.
        unit: Overrides the file's length unit: "mm", "cm", "m", "in" or "ft".
        up: Overrides the file's up axis: "x", "y", "z", "-x", "-y" or "-z".
        rate: Overrides the file's frame rate, in hertz.
        frames: Keep frames start up to but not including stop; None is the end.
        markers: Keep only markers whose label matches one of these patterns, such as
            `L*` or `JOE:*`.
        drop: Leave out markers whose label matches one of these patterns.
        rename: New labels by old label, without the subject.
        columns: Column map of a table: a TOML file or its content (docs/formats.md).
        skeleton: The ASF file of an AMC; by default the one in its folder.
        analog: Also keep analog channels.
        computed: Also keep points that the capture software computed.

    Raises:
        FormatError: If the file cannot be read.
        OptionError: If an option is out of range.
        DataError: If a selection leaves nothing.
    """
    options = ReadOptions(
        unit=unit,
        up=up,
        rate=rate,
        columns=columns,
        skeleton=skeleton,
        analog=analog,
        computed=computed,
    )
    file, found = _open(path, format, options, ("read_take", "read_motion"))
    if found.read_take is not None:
        take = found.read_take(file)
    else:
        assert found.read_motion is not None
        take = motion_as_take(found.read_motion(file))
    logger.info("read %s: %s, %d frames", path, found.title, take.n_frames)
    return _select(take, frames, markers, drop, rename or {})


def read_motion(
    path: str | PathLike[str],
    *,
    format: str = "auto",
    unit: str | None = None,
    up: str | None = None,
    rate: float | None = None,
    skeleton: str | Path | None = None,
) -> Motion:
    """Return the motion a file holds: a skeleton and its joint rotations over time.

    The arguments are those of `read`.

    Raises:
        FormatError: If the file cannot be read or holds no motion.
    """
    options = ReadOptions(unit=unit, up=up, rate=rate, skeleton=skeleton)
    file, found = _open(path, format, options, ("read_motion",))
    assert found.read_motion is not None
    return found.read_motion(file)


def read_skeleton(
    path: str | PathLike[str],
    *,
    format: str = "auto",
    unit: str | None = None,
    up: str | None = None,
) -> Skeleton:
    """Return the skeleton a file holds: `.skel.json`, ASF, VSK, or that of a motion.

    Raises:
        FormatError: If the file cannot be read or holds no skeleton.
    """
    options = ReadOptions(unit=unit, up=up)
    file, found = _open(path, format, options, ("read_skeleton", "read_motion"))
    if found.read_skeleton is not None:
        return found.read_skeleton(file)
    assert found.read_motion is not None
    return found.read_motion(file).skeleton


def load(path: str | PathLike[str]) -> Any:
    """Return what marey itself wrote to a `.marey` or `.npz` file: any of its nouns.

    Raises:
        FormatError: If the file is damaged or not marey's.
    """
    found = recognise(path)
    if found.name != "npz":
        raise FormatError(
            path, expected="a .marey file", found=found.title, format=found.name
        )
    return import_module("marey.io.formats.npz").load(path)


def write(
    thing: Noun,
    path: str | PathLike[str],
    *,
    format: str = "auto",
    unit: str | None = None,
    up: str | None = None,
    truth: Sequence[Motion] = (),
    measured: Mapping[str, float] | None = None,
    markers: bool = False,
    names: str | PathLike[str] | None = None,
    content: str | None = None,
    rest: str | None = None,
    root_on_ground: bool = False,
    rate: float | None = None,
    frames: tuple[int | None, int | None] | None = None,
    provenance: Mapping[str, Any] | None = None,
    overwrite: bool = False,
) -> tuple[Finding, ...]:
    """Write a recording, motion, skeleton or solution; the suffix decides the format.

    The file appears whole or not at all, and the same thing gives the same bytes. A
    format that holds only recordings gets a motion's joints as sensors.

    Args:
        thing: What to write.
        path: Where to; its folder must exist.
        format: Name of a format, when the suffix does not say it.
        unit: Length unit of the file; each format has its default.
        up: Axis of the file that points up.
        truth: True motions, ghosts on a page; of several takes the first one's first.
        measured: Bone lengths by tape measure, in metres by joint, for a page.
        markers: Also write the markers to a scene (glTF, USD, FBX).
        names: Names of the joints of people: vrm, humanik, mixamo, unreal, cmu, smpl,
            opensim, or a TOML file (docs/formats.md). Trunk, neck and clavicles get as
            many joints as the scheme has.
        content: What a table holds: "angles" (clinical, in degrees), "coordinates" (of
            OpenSim's model), "joints" (poses) or "markers". By default angles of a
            solution of a person, and joints of a motion.
        rest: Rest pose of people: "t", "a" (arms 45 degrees down), "n" (arms hanging),
            or of any figure "first", the first known frame.
        root_on_ground: Put the lowest joint of all frames at height 0, and the root of
            the first frame above the origin.
        rate: Frames per second of the file.
        frames: Frames start up to but not including stop; None is the end.
        provenance: From what the thing was made, as values of JSON. BVH and tables of
            text have no place for it; docs/formats.md says where others keep it.
        overwrite: Replace a file that exists. The file that was read is never replaced.

    Returns:
        What the format could not hold of this thing, and what the writer changed, one
        finding each.

    Raises:
        DataError: If a bone of a skeleton is not a number.
        OptionError: If the path is taken, or the format cannot hold the thing.
        OutputError: If the folder is missing or the disk is full.
    """
    path = Path(path)
    chosen = (
        registry.format_by_name(format) if format != "auto" else format_for_suffix(path)
    )
    options = WriteOptions(
        unit=unit,
        up=up,
        truth=truth,
        measured=measured or {},
        markers=markers,
        provenance=provenance or {},
        suffix=path.suffix.lower(),
    )
    chosen.check_shown(options)
    conventions = Conventions(
        rest=rest, root_on_ground=root_on_ground, rate=rate, frames=frames
    )
    inputs = _input_paths(thing)
    check_target(path, overwrite=overwrite, inputs=inputs)
    wanted = choose_content(thing, content, chosen)
    if isinstance(thing, Solution) and chosen.write_solution is None:
        thing = _content_for(thing, chosen, wanted)
    for skeleton in _skeletons(thing):
        _check_bones(skeleton)
    if wanted in IN_TABLES:  # Angles have zeros of their own, by names of anatomy.
        conventions, names = replace(conventions, rest=None), None
    thing, changed = apply_conventions(thing, conventions)
    if names is not None:
        thing, renamed = rename_thing(thing, names, chosen)
        changed = (*changed, *renamed)
    lost, written = _select_content(thing, wanted, chosen, options)
    output = _render(written, chosen, options)
    files = {path.with_suffix(s) if s else path: chunks for s, chunks in output.items()}
    for target in files:
        check_target(target, overwrite=overwrite, inputs=inputs)
    write_atomic(files)
    logger.info("wrote %s: %s", path, chosen.title)
    return (*changed, *lost, *options.findings)


def _select_content(
    thing: Noun, wanted: Content | None, chosen: Format, options: WriteOptions
) -> tuple[tuple[Finding, ...], Noun | QuantityTable]:
    """Return what a format does not keep of a thing, and what it gets."""
    if wanted is not None:
        content = content_of(thing, wanted, options)
        if isinstance(content, QuantityTable):
            return (), content
        is_motion = isinstance(thing, Motion) and wanted == "joints"
        return find_losses(thing if is_motion else content, chosen), content
    lost = find_losses(thing, chosen)
    if isinstance(thing, Motion) and chosen.write_motion is None:
        return lost, motion_as_take(thing)
    return lost, thing


def _content_for(
    solution: Solution, chosen: Format, wanted: Content | None
) -> Take | Motion | Skeleton:
    """Return what of a solution a format holds."""
    if chosen.write_motion is not None or wanted not in (None, "markers"):
        return solution.motion
    return solution.take if chosen.write_take is not None else solution.skeleton


def _skeletons(thing: Noun) -> tuple[Skeleton, ...]:
    """Return the skeletons that a file of this thing describes."""
    if isinstance(thing, Solution):
        return tuple(subject.skeleton for subject in thing.subjects)
    if isinstance(thing, Motion):
        return (thing.skeleton,)
    return (thing,) if isinstance(thing, Skeleton) else ()


def _check_bones(skeleton: Skeleton) -> None:
    """Refuse a skeleton with a joint whose place is unknown: no file can draw it.

    Raises:
        DataError: If an offset is not finite.
    """
    unknown = np.flatnonzero(~np.isfinite(skeleton.offset).all(axis=-1))
    if len(unknown):
        raise DataError(
            "skeleton.offset",
            found=f"no position of {', '.join(skeleton.names[i] for i in unknown)}",
            needed="a position of every joint; leave these joints out, or record "
            "their markers together with those of their parents",
        )


def _input_paths(thing: Noun) -> tuple[str, ...]:
    if isinstance(thing, Solution):
        return tuple(take.source.path for take in thing.takes)
    return () if isinstance(thing, Skeleton) else (thing.source.path,)


def _open(
    path: str | PathLike[str], name: str, options: ReadOptions, needs: Sequence[str]
) -> tuple[File, Format]:
    """Return the file and its format, recognised by content or given by name."""
    if name == "auto":
        found = recognise(path, needs)
    else:
        found = registry.format_by_name(name)
        registry.read_head(Path(path))
        if not any(getattr(found, need) for need in needs):
            what = needs[0].removeprefix("read_")
            raise OptionError("format", found=name, needed=f"one that holds a {what}")
    return File(Path(path), found.name, options), found


def _render(
    thing: Noun | QuantityTable, chosen: Format, options: WriteOptions
) -> Output:
    """Return the bytes of a thing by suffix, as the format writes them."""
    what = next(name for name, noun in NOUNS.items() if isinstance(thing, noun))
    writer = getattr(chosen, f"write_{what}")
    if writer is None:
        able = [f.name for f in registry.formats() if getattr(f, f"write_{what}")]
        raise OptionError(
            "format",
            found=chosen.name,
            needed=f"a format that holds a {what}: {', '.join(able)}",
        )
    output: Output = writer(thing, options)
    return output


def _select(
    take: Take,
    frames: tuple[int | None, int | None] | None,
    markers: Sequence[str],
    drop: Sequence[str],
    rename: Mapping[str, str],
) -> Take:
    """Return the take with some frames and markers, renamed."""
    if frames is not None:
        start, stop = frames
        take = take.cut(start or 0, take.n_frames if stop is None else stop)
    if markers or drop:
        keep = [
            i
            for i, names in enumerate(zip(take.labels, take.full_labels, strict=True))
            if (not markers or _matches(names, markers)) and not _matches(names, drop)
        ]
        if not keep:
            raise DataError(
                "marker selection",
                found=f"none of {', '.join(take.full_labels)}",
                needed="at least one marker",
            )
        take = take.select(keep)
    if rename:
        _check_rename(take, rename)
        take = replace(take, labels=tuple(rename.get(n, n) for n in take.labels))
    return take


def _matches(names: Sequence[str], patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for name in names for pattern in patterns)


def _check_rename(take: Take, rename: Mapping[str, str]) -> None:
    unknown = sorted(set(rename) - set(take.labels))
    if unknown:
        raise OptionError(
            "rename",
            found=", ".join(unknown),
            needed=f"labels of {', '.join(take.labels)}",
        )
