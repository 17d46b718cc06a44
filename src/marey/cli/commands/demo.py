"""`marey demo`."""

from pathlib import Path

from marey.cli.application import EXIT_OK


def demo(
    folder: Path = Path("demo"),
    *,
    seconds: float = 8.0,
    seed: int = 0,
) -> int:
    """Record a synthetic performer, solve it, and compare with the known truth.

    Args:
        folder: Folder to write to.
        seconds: Length of the walk.
        seed: Random seed of the performer.
    """
    from marey.cli.demo_recordings import write_demo

    write_demo(folder, seconds=seconds, seed=seed)
    return EXIT_OK
