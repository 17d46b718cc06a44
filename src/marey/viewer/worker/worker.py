"""The worker: a process of its own that reads, solves and edits for the server.

Files of strangers are parsed here, under limits, so that whatever happens to this
process the server goes on. Run as `python -m marey.viewer.worker.worker BYTES DRAWN`:
requests come in by standard input, answers go out by what standard output was.
"""

import os
import queue
import sys
import threading
from typing import Any, BinaryIO

from marey.errors import MareyError, printable
from marey.viewer.server.protocol import framed, read_frame

QUICK = ("series",)
"""Requests that are answered while others are worked on."""


def main() -> None:
    """Work until the server closes the line."""
    limit_memory(int(sys.argv[1]))
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    # Whatever a library prints must not get between the answers.
    os.dup2(2, 1)
    Worker(answers, drawn=int(sys.argv[2])).serve(requests)
    # Work that is under way has nobody left to tell.
    os._exit(0)


def limit_memory(size: int) -> None:
    """Keep this process from taking more memory than this; 0 is no limit.

    Systems without such limits (Windows) have none.
    """
    try:
        import resource
    except ImportError:
        return
    if size:
        resource.setrlimit(resource.RLIMIT_AS, (size, size))


class Worker:
    """Requests in, answers out; long work beside short questions."""

    def __init__(self, answers: BinaryIO, *, drawn: int) -> None:
        from marey.viewer.worker.session import Session

        self._answers = answers
        self._writing = threading.Lock()
        self._jobs: queue.Queue[dict[str, Any]] = queue.Queue()
        self._session = Session(self._say, drawn=drawn)

    def serve(self, requests: BinaryIO) -> None:
        """Answer requests until there are no more."""
        threading.Thread(target=self._work, daemon=True).start()
        while (frame := read_frame(requests)) is not None:
            request, _ = frame
            if request["do"] in QUICK:
                self._answer(request)
            else:
                self._jobs.put(request)

    def _work(self) -> None:
        while True:
            self._answer(self._jobs.get())

    def _answer(self, request: dict[str, Any]) -> None:
        try:
            result, data = self._session.do(request)
        except MareyError as error:
            self._say({"id": request["id"], "error": str(error)}, b"")
        except MemoryError:
            message = "there is not enough memory for this"
            self._say({"id": request["id"], "error": message}, b"")
        except Exception as error:  # The user sees it; the server must not wait.
            message = f"marey failed here, which is a mistake in it: {error!r}"
            self._say({"id": request["id"], "error": printable(message)}, b"")
        else:
            self._say({"id": request["id"], "result": result}, data)

    def _say(self, message: dict[str, Any], data: bytes) -> None:
        with self._writing:
            self._answers.write(framed(message, data))
            self._answers.flush()


if __name__ == "__main__":
    main()
