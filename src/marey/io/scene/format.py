"""What all formats of scenes have in common."""

from collections.abc import Callable

from marey.io.contract import Format, Output
from marey.io.losses import LOST_BY_MOTIONS
from marey.io.options import WriteOptions
from marey.motion import Motion
from marey.skeleton import Skeleton
from marey.solution import Solution


def scene_format(
    name: str,
    title: str,
    suffixes: tuple[str, ...],
    sniff: Callable[[bytes], bool],
    write: Callable[[Skeleton | Motion | Solution, WriteOptions], Output],
    import_packages: Callable[[], object] | None = None,
) -> Format:
    """Return a format that writes scenes and reads nothing.

    Args:
        name: Its name.
        title: Its name for people.
        suffixes: Suffixes of its files.
        sniff: Whether a file begins like one of this format.
        write: Returns the file of a skeleton, a motion or a solution.
        import_packages: Imports the optional packages that `write` needs.
    """
    return Format(
        name=name,
        title=title,
        suffixes=suffixes,
        sniff=sniff,
        write_motion=write,
        write_skeleton=write,
        write_solution=write,
        renames=True,
        shows=("markers",),
        loses=("limits", "kinds", *LOST_BY_MOTIONS),
        precision=1e-6,
        import_packages=import_packages,
    )
