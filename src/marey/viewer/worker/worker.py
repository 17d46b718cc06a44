"""The worker process, which reads, solves and edits files for the server.

Untrusted files are parsed in this process, under a memory limit. If it dies, the server
keeps running. Usage: `python -m marey.viewer.worker.worker MEMORY_BYTES MAX_DRAWN`.
Frames of `marey.viewer.server.protocol` arrive on standard input; answers leave on
standard output.
"""

import os
import queue
import sys
import threading
from typing import Any, BinaryIO

from marey.errors import MareyError, printable
from marey.viewer.server.protocol import encode_frame, read_frame
from marey.workers import open_channel

CONCURRENT_REQUESTS = ("series",)
"""Requests that are answered at once, while a job runs in the other thread."""


def main() -> None:
    """Answer requests until the server closes standard input."""
    requests, answers = open_channel()
    Worker(answers, max_drawn=int(sys.argv[2])).serve(requests)
    # Without a server, the result of a running job is not needed.
    os._exit(0)


class Worker:
    """Loop that answers requests: jobs in one thread, short requests in another."""

    def __init__(self, answers: BinaryIO, *, max_drawn: int) -> None:
        from marey.viewer.worker.session import WorkerSession

        self._answers = answers
        self._write_lock = threading.Lock()
        self._jobs: queue.Queue[dict[str, Any]] = queue.Queue()
        self._session = WorkerSession(self._send, max_drawn=max_drawn)

    def serve(self, requests: BinaryIO) -> None:
        """Answer requests until the stream ends."""
        threading.Thread(target=self._run_jobs, daemon=True).start()
        while (frame := read_frame(requests)) is not None:
            request, _ = frame
            if request["do"] in CONCURRENT_REQUESTS:
                self._answer(request)
            else:
                self._jobs.put(request)

    def _run_jobs(self) -> None:
        while True:
            self._answer(self._jobs.get())

    def _answer(self, request: dict[str, Any]) -> None:
        try:
            result, data = self._session.handle(request)
        except MareyError as error:
            failure = str(error)
        except MemoryError:
            failure = "marey has not enough memory for this"
        except Exception as error:  # The server must get an answer.
            failure = printable(f"marey failed; this is a bug in marey: {error!r}")
        else:
            self._send({"id": request["id"], "result": result}, data)
            return
        self._send({"id": request["id"], "error": failure}, b"")

    def _send(self, message: dict[str, Any], data: bytes) -> None:
        with self._write_lock:
            self._answers.write(encode_frame(message, data))
            self._answers.flush()


if __name__ == "__main__":
    main()
