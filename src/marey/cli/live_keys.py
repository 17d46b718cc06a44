"""Keys in the terminal that control a stream: record, mark, zero pose."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING

from marey.errors import MareyError

if TYPE_CHECKING:
    from marey.live import Stream

HELP = "keys: r starts and stops recording, m marks the moment"
ZERO_HELP = "z sets the zero pose"

POLL_S = 0.2
"""Longest wait for a key before the thread looks if it shall end, in seconds."""


@contextmanager
def read_keys(poses: "Stream", say: Callable[[str], None]) -> Iterator[bool]:
    """Let keys control a stream within the block; yield whether they do.

    They do only if this program has the terminal: not in a pipe or in the background.

    Args:
        poses: The stream.
        say: Called with a sentence on what a key did.
    """
    if not _has_terminal():
        yield False
        return
    stop = Event()

    def obey() -> None:
        while not stop.is_set():
            obey_key(_next_key(), poses, say)

    with _single_keys():
        thread = Thread(target=obey, name="marey keys", daemon=True)
        thread.start()
        try:
            yield True
        finally:
            stop.set()
            thread.join()


def obey_key(key: str, poses: "Stream", say: Callable[[str], None]) -> None:
    """Do what a key stands for; other keys do nothing."""
    try:
        if key == "r" and poses.is_recording:
            poses.stop_recording()
            say("recording ended")
        elif key == "r":
            poses.start_recording()
            say("recording")
        elif key == "m":
            poses.mark()
            say("marked" if poses.is_recording else "not marked: nothing is recorded")
        elif key == "z":
            poses.set_zero_pose()
            say("zero pose set")
    except MareyError as error:
        say(str(error))


def _has_terminal() -> bool:
    """Return whether keys of a terminal come to this program."""
    if not (sys.stdin and sys.stdin.isatty()):
        return False
    # The system stops a program in the background that changes the terminal.
    return os.name == "nt" or os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()


if sys.platform == "win32":
    import msvcrt

    @contextmanager
    def _single_keys() -> Iterator[None]:
        """Windows gives single keys at any time."""
        yield

    def _next_key() -> str:
        """Return the next key; "" if none comes for a while."""
        end = time.monotonic() + POLL_S
        while time.monotonic() < end:
            if msvcrt.kbhit():
                return msvcrt.getwch()
            time.sleep(POLL_S / 10.0)
        return ""
else:
    import select
    import termios
    import tty

    @contextmanager
    def _single_keys() -> Iterator[None]:
        """Let the terminal give each key at once and unseen; Ctrl-C stays Ctrl-C."""
        before = termios.tcgetattr(sys.stdin)
        tty.setcbreak(sys.stdin)
        try:
            yield
        finally:
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)

    def _next_key() -> str:
        """Return the next key; "" if none comes for a while."""
        if not select.select([sys.stdin], [], [], POLL_S)[0]:
            return ""
        key = os.read(sys.stdin.fileno(), 1).decode(errors="ignore")
        if not key:  # The terminal is gone.
            time.sleep(POLL_S)
        return key
