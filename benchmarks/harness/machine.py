"""Facts of the machine that stand beside every result."""

import datetime
import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = ("numpy", "scipy", "numba")


def describe_machine() -> dict[str, Any]:
    """Return processor, cores, memory, system and versions."""
    return {
        "processor": processor_name(),
        "cores": os.cpu_count(),
        "memory GB": round(memory_bytes() / 1e9, 1),
        "system": f"{platform.system()} {platform.release().partition('-')[0]}",
        "python": platform.python_version(),
        **{name: metadata.version(name) for name in PACKAGES},
    }


def processor_name() -> str:
    """Return the name of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if "model name" in line]
    return names[0] if names else platform.machine()


def memory_bytes() -> int:
    """Return the size of the memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def load() -> float:
    """Return how many processes have waited for a core, on average of one minute."""
    return round(os.getloadavg()[0], 1)


def today() -> str:
    """Return the date, in UTC."""
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def version() -> str:
    """Return the version of marey that is measured."""
    import marey

    return str(marey.__version__)
