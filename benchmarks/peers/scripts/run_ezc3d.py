# /// script
# requires-python = ">=3.10,<3.14"
# dependencies = ["ezc3d==1.7.2", "numpy"]
# ///
"""ezc3d: a whole C3D file, `ezc3d.c3d(path)`."""

from collections.abc import Iterator

import ezc3d
from peer import Answer, Problem, serve, time_reading


def read_file(problem: Problem) -> Iterator[Answer]:
    """Yield time and memory of reading."""

    def read(path: str) -> object:
        return ezc3d.c3d(path)["data"]["points"]

    yield time_reading("ezc3d 1.7.2", read, problem)


if __name__ == "__main__":
    serve(read=read_file)
