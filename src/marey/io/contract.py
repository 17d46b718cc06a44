"""The contract of a file format: one file, one `FORMAT`, one line in the registry."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from marey.errors import OptionError
from marey.io.file import File
from marey.io.options import WriteOptions
from marey.motion import Motion
from marey.numerics import Float
from marey.skeleton import Skeleton
from marey.solution import Solution
from marey.take import Take

SNIFF_BYTES = 65536
"""Bytes of a file that a format inspects to recognise it."""

SHOWN_BY = {
    "markers": "a scene such as glb, usda or fbx, which has markers as objects",
    "truth": "html: a page shows it",
    "measured": "html: a page shows it",
}
"""Options of writing that few formats show, and which do."""

Chunks = Iterable[bytes]
Output = Mapping[str, Chunks]
"""What a writer returns: the bytes of each file by suffix; "" is the path asked for."""


@dataclass(frozen=True, slots=True, eq=False)
class QuantityTable:
    """Columns of numbers over time that are no recording, such as joint angles."""

    names: tuple[str, ...]
    """One name per column; the first is the time."""

    values: Float[np.ndarray, "frame column"]
    """NaN where a value is not known."""

    units: tuple[str, ...]
    """One unit per column: "s", "deg", "m"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A file format: how to recognise, read and write it.

    Readers and writers are plain functions; a format leaves out what it cannot hold. A
    format with `read_motion` alone still gives takes: its joints as 6-DoF sensors.
    """

    name: str
    title: str
    """What people call it, with the software it comes from."""

    suffixes: tuple[str, ...]
    """Lower-case, with the dot; the first one is the usual."""

    sniff: Callable[[bytes], bool]
    """Whether the first `SNIFF_BYTES` bytes of a file are this format."""

    read_take: Callable[[File], Take] | None = None
    read_motion: Callable[[File], Motion] | None = None
    read_skeleton: Callable[[File], Skeleton] | None = None
    write_take: Callable[[Take, WriteOptions], Output] | None = None
    write_motion: Callable[[Motion, WriteOptions], Output] | None = None
    write_skeleton: Callable[[Skeleton, WriteOptions], Output] | None = None
    write_solution: Callable[[Solution, WriteOptions], Output] | None = None
    write_table: Callable[[QuantityTable, WriteOptions], Output] | None = None
    sequence: re.Pattern[str] | None = None
    """Names of files that are one frame each; those that differ only in its group
    "number" are one recording."""

    companions: tuple[str, ...] = ()
    """Suffixes of the files that a solution with markers gets beside the named one."""

    one_subject: bool = False
    """Whether `write_solution` holds one subject in one take and no more."""

    renames: bool = False
    """Whether the joints of a solution may have the names of another program."""

    shows: tuple[str, ...] = ()
    """Options of `SHOWN_BY` that a written file shows."""

    loses: tuple[str, ...] = ()
    """What the format cannot hold, by the keys of `losses.DESCRIPTIONS`."""

    precision: float = 0.0
    """Largest rounding of a written length, in metres."""

    import_packages: Callable[[], object] | None = None
    """Imports the optional packages that writing needs; raises `MissingExtraError`."""

    @property
    def reads(self) -> bool:
        """Whether files of this format can be read, and not only written."""
        return any((self.read_take, self.read_motion, self.read_skeleton))

    @property
    def writes(self) -> bool:
        """Whether files of this format can be written."""
        thing = self.write_motion or self.write_skeleton or self.write_solution
        return bool(self.write_take or thing)

    def check_shown(self, options: WriteOptions) -> None:
        """Refuse options that this format does not show.

        Raises:
            OptionError: If one of them is given.
        """
        for name, needed in SHOWN_BY.items():
            value = getattr(options, name)
            is_given = value if isinstance(value, bool) else len(value) > 0
            if is_given and name not in self.shows:
                raise OptionError(name, found=self.name, needed=needed)


def motion_as_take(
    motion: Motion, T_world_joint: Float[np.ndarray, "frame joint 4 4"] | None = None
) -> Take:
    """Return a motion's joints, without the bone ends, as 6-DoF sensors of a take.

    Args:
        motion: The motion.
        T_world_joint: Where its joints are, if that is not what the bones say.
    """
    T = motion.T_world_joint() if T_world_joint is None else T_world_joint
    names, parent = motion.skeleton.names, motion.skeleton.parent
    keep = ~motion.skeleton.is_end
    parents = {names[i]: names[parent[i]] for i in np.flatnonzero(keep & (parent >= 0))}
    return Take(
        rate=motion.rate,
        T_world_sensor=T if keep.all() else T[:, keep],
        sensor_names=tuple(np.array(names, dtype=object)[keep]),
        start=motion.start,
        source=replace(motion.source, parents=parents),
    )
