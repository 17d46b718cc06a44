# /// script
# requires-python = ">=3.10,<3.14"
# dependencies = ["c3d==0.6.0", "numpy"]
# ///
"""py-c3d: a whole C3D file frame after frame, as its documentation does."""

from collections.abc import Iterator

import c3d
import numpy as np
from peer import Answer, Problem, serve, time_reading


def read_file(problem: Problem) -> Iterator[Answer]:
    """Yield time and memory of reading."""

    def read(path: str) -> object:
        with open(path, "rb") as handle:
            frames = c3d.Reader(handle).read_frames(copy=True)
            return np.array([points[:, :3] for _, points, _ in frames])

    yield time_reading("c3d 0.6.0 (py-c3d)", read, problem)


if __name__ == "__main__":
    serve(read=read_file)
