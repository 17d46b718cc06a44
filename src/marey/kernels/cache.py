"""The cache of compiled kernels, keyed by the content of their sources.

Numba asks a locator where to keep a compiled function and what makes it stale. Its own
locators look at the file of the function alone, so that a kernel would keep the old
code of a changed kernel that it calls from another file.
"""

import hashlib
import os
import re
import shutil
import sys
import tempfile
from functools import cache
from pathlib import Path
from types import FunctionType

PACKAGE = Path(__file__).parent.parent
"""The folder of marey."""

COMPILED = PACKAGE / "compiled"
"""Compiled kernels of a checkout or of a wheel; not part of the repository."""

MANIFEST = COMPILED / "manifest.json"
"""What the compiled kernels were compiled for; see `precompiled.py`."""

IMPORT = re.compile(rb"^from marey\.([\w.]+) import", re.MULTILINE)


def kernel_sources(package: Path = PACKAGE) -> list[Path]:
    """Return the files of all kernels, sorted."""
    return sorted(package.rglob("*_kernel.py"))


@cache
def read_content(path: Path) -> bytes:
    """Return the bytes of a file, which is read once."""
    return path.read_bytes()


@cache
def imported_sources(path: Path, package: Path = PACKAGE) -> frozenset[Path]:
    """Return a file of kernels and all that it imports, directly or not.

    Kernels import modules of kernels and `numerics/jit.py` only, at the top of the file
    and by their full name. What that module imports changes no kernel.
    """
    found: set[Path] = set()
    waiting = [path]
    while waiting:
        source = waiting.pop()
        if source in found or not source.is_file():
            continue
        found.add(source)
        if not source.stem.endswith("_kernel"):
            continue
        for name in IMPORT.findall(read_content(source)):
            waiting.append(
                package.joinpath(*name.decode().split(".")).with_suffix(".py")
            )
    return frozenset(found)


@cache
def source_digest(path: Path, package: Path = PACKAGE) -> str:
    """Return a fingerprint of the content of a file and of all that it imports."""
    total = hashlib.sha256()
    for source in sorted(imported_sources(path, package)):
        total.update(source.relative_to(package).as_posix().encode() + b"\0")
        total.update(read_content(source) + b"\0")
    return total.hexdigest()


@cache
def cache_folder() -> Path | None:
    """Return the folder of compiled kernels that can be written to; None if none can.

    It is the one inside marey. If that belongs to somebody else, or if the variable
    NUMBA_CACHE_DIR names another place, kernels that came with marey are copied there.
    """
    chosen = os.environ.get("NUMBA_CACHE_DIR", "")
    if not chosen and os.access(COMPILED if COMPILED.exists() else PACKAGE, os.W_OK):
        return COMPILED
    installation = hashlib.sha256(str(PACKAGE).encode())
    if MANIFEST.is_file():
        installation.update(MANIFEST.read_bytes())
    base = Path(chosen) if chosen else user_cache()
    folder = base / f"marey-kernels-{installation.hexdigest()[:12]}"
    try:
        _copy_once(COMPILED, folder)
    except OSError:
        return None
    return folder


def user_cache() -> Path:
    """Return the folder where programs of this user keep what can be made again."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", tempfile.gettempdir()))
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME", "") or Path.home() / ".cache")


def _copy_once(source: Path, target: Path) -> None:
    """Copy a folder whole or not at all; an empty one if there is no source."""
    if target.is_dir():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(dir=target.parent))
    try:
        if source.is_dir():
            shutil.copytree(source, part, dirs_exist_ok=True)
        part.rename(target)
    except OSError:
        shutil.rmtree(part, ignore_errors=True)
        if not target.is_dir():  # otherwise another process was first
            raise


class SourceDigestLocator:
    """Where Numba keeps a kernel of marey, and what makes it stale.

    It has the methods that Numba calls on the classes of NUMBA_CACHE_LOCATOR_CLASSES.
    """

    def __init__(self, folder: Path, function: FunctionType, source: Path) -> None:
        self._folder = folder / source.parent.relative_to(PACKAGE)
        self._line = function.__code__.co_firstlineno
        self._source = source
        self._py_file = str(source)  # Numba's warnings name it

    @classmethod
    def from_function(
        cls, function: FunctionType, file: str
    ) -> "SourceDigestLocator | None":
        """Return the locator of a kernel; None for functions outside marey."""
        source = Path(file)
        if not source.is_relative_to(PACKAGE):
            return None
        folder = cache_folder()
        return None if folder is None else cls(folder, function, source)

    def ensure_cache_path(self) -> None:
        """Make the folder of the kernel."""
        self._folder.mkdir(parents=True, exist_ok=True)

    def get_cache_path(self) -> str:
        """Return the folder of the kernel."""
        return str(self._folder)

    def get_source_stamp(self) -> str:
        """Return the content that the kernel was compiled from, as a fingerprint."""
        return source_digest(self._source)

    def get_disambiguator(self) -> str:
        """Return what distinguishes kernels of one name and versions of one kernel.

        Numba opens the index of a kernel before it compares sources, and fails if that
        index refers to a type of a module that no longer exists.
        """
        return f"{self._line}-{self.get_source_stamp()[:8]}"
