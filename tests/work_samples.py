"""Functions that worker processes call in tests."""

import errno
import os
import threading
import time
from pathlib import Path

import marey


def add(a, b):
    return a + b


def fail():
    raise marey.DataError("take", found="nothing", needed="something")


def crash():
    os._exit(9)


def crash_once(mark):
    """End the process the first time; the mark says that it did."""
    if not os.path.exists(mark):
        Path(mark).touch()
        os._exit(9)
    return "alive"


def sleep(seconds, note=None):
    """Sleep; a note gets the number of the process before."""
    if note is not None:
        Path(note).write_text(str(os.getpid()))
    time.sleep(seconds)


def take_memory(size):
    return len(bytearray(size))


def start_threads(size):
    """Start threads whose stacks have so many bytes each."""
    threading.stack_size(size)
    for _ in range(64):
        threading.Thread(target=time.sleep, args=(600.0,), daemon=True).start()


def no_room_for_a_library():
    try:
        raise OSError("libx.so: failed to map segment from shared object")
    except OSError as error:
        raise OSError("could not find libx.so") from error


def fail_in_a_circle():
    """Raise an error that came from itself, as failed imports may."""
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    raise first


def no_room_for_a_process():
    raise OSError(errno.ENOMEM, "Cannot allocate memory")


def fault():
    return [][1]


def hang(**_):
    time.sleep(600.0)


def crash_with_anything(**_):
    os._exit(9)


def take_all_memory(**_):
    return len(bytearray(2**45))
