"""Kernels that were compiled once, for an instruction set that most machines share."""

import json
import logging
import os
import platform
import sys
from collections.abc import Set
from importlib.metadata import version
from pathlib import Path
from typing import Any

from marey.kernels.cache import (
    MANIFEST,
    PACKAGE,
    cache_folder,
    kernel_sources,
    source_digest,
)

VARIABLE = "MAREY_COMPILED_KERNELS"
"""Variable of the environment: "1" = use the compiled kernels, "0" = never do."""

X86_64_V3 = frozenset(
    {"avx", "avx2", "bmi", "bmi2", "cx16", "f16c", "fma", "lzcnt", "movbe", "popcnt"}
    | {"sahf", "sse3", "sse4.1", "sse4.2", "ssse3", "xsave"}
)
"""Features of x86-64-v3 (2013 and later), in the words of LLVM."""

COMMON_CPUS = {
    "x86_64": ("x86-64-v3", X86_64_V3),
    "amd64": ("x86-64-v3", X86_64_V3),
    "aarch64": ("generic", frozenset[str]()),
    "arm64": ("generic", frozenset[str]()),
}
"""CPU that kernels are compiled for, in the words of LLVM, and what it must have."""

PARTS = ("compiled for", "sources")
"""Tables that every manifest has."""

logger = logging.getLogger(__name__)


def use_compiled_kernels() -> None:
    """Use the kernels that came compiled with marey, in this process and its children.

    Call it before anything else of marey computes. The CPU that Numba compiles for is
    global to a process: other functions that Numba compiles there are compiled for the
    same instruction set (x86-64-v3, or the baseline of arm64), without AVX-512. The
    commands of marey and its server do so. MAREY_COMPILED_KERNELS=1 in the environment
    is the same.
    """
    os.environ[VARIABLE] = "1"
    jit = sys.modules.get("marey.numerics.jit")
    if jit is not None and not jit.USES_COMMON_CPU:
        logger.warning(
            "compiled kernels are not used: kernels were loaded in this process "
            "before; call marey.use_compiled_kernels() first"
        )


def prefer_compiled_kernels() -> None:
    """Use the compiled kernels unless MAREY_COMPILED_KERNELS says otherwise."""
    if not os.environ.get(VARIABLE):
        use_compiled_kernels()


def wants_compiled_kernels() -> bool:
    """Return whether this process is to use the compiled kernels."""
    return (os.environ.get(VARIABLE) or "0") != "0"


def common_cpu(machine: str, features: Set[str]) -> str | None:
    """Return the CPU that kernels are compiled for; None if this one has less.

    Args:
        machine: Kind of the processor, as `platform.machine` has it.
        features: What it has, in the words of LLVM.
    """
    name, needed = COMMON_CPUS.get(machine.lower(), (None, frozenset[str]()))
    return name if needed <= features else None


def describe_this(cpu: str | None) -> dict[str, str | None]:
    """Return what compiled kernels depend on besides their sources."""
    return {
        "Python": ".".join(platform.python_version_tuple()[:2]),
        "Numba": version("numba"),
        "system": f"{platform.system()} {platform.machine()}",
        "processor": cpu,
    }


def write_manifest(cpu: str | None, *, rare: bool) -> None:
    """Write down what the kernels in the cache were compiled for.

    Args:
        cpu: The CPU that they were compiled for; None = that of this machine.
        rare: Whether kernels of methods that have to be asked for are among them.
    """
    folder = cache_folder()
    if folder is None:
        return
    described = {"compiled for": describe_this(cpu), "rare": rare}
    content = {**described, "sources": source_digests()}
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / f"{MANIFEST.name}.{os.getpid()}.part"
    part.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    part.replace(folder / MANIFEST.name)


def source_digests() -> dict[str, str]:
    """Return the fingerprint of every file of kernels, by its path inside marey."""
    return {
        path.relative_to(PACKAGE).as_posix(): source_digest(path)
        for path in kernel_sources()
    }


def find_outdated(*, rare: bool) -> str:
    """Return why the kernels in the cache have to be compiled; "" if they need not."""
    manifest = read_manifest()
    if not manifest:
        return "none are compiled yet"
    built = manifest["compiled for"]
    for what, found in describe_this(built.get("processor")).items():
        if found != built.get(what):
            return f"those here are for {what} {built.get(what)}, not {found}"
    now, then = source_digests(), manifest["sources"]
    changed = [name for name, digest in now.items() if then.get(name) != digest]
    if changed:
        return (
            f"{len(changed)} of {len(now)} files of kernels, or their imports, changed"
        )
    return "rare ones are missing" if rare and not manifest.get("rare") else ""


def read_manifest() -> dict[str, Any]:
    """Return what the kernels in the cache were compiled for; empty without any."""
    folder = cache_folder()
    path = MANIFEST if folder is None else folder / MANIFEST.name
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    parts = [content.get(name) for name in PARTS] if isinstance(content, dict) else [0]
    return content if all(isinstance(part, dict) for part in parts) else {}


def explain_compiling(source: Path, cpu: str | None) -> str:
    """Return why a kernel has to be compiled although compiled ones are wanted.

    Args:
        source: File of the kernel.
        cpu: The CPU that this process compiles for; None = its own.
    """
    manifest = read_manifest()
    if not manifest:
        return "none are compiled yet (`marey compile` compiles all at once)"
    for what, found in describe_this(cpu).items():
        needed = manifest["compiled for"].get(what)
        if found != needed:
            here = f"here is {found}" if found else "this one has less"
            return f"the compiled ones are for {what} {needed}, {here}"
    inside = source.is_relative_to(PACKAGE)
    name = (source.relative_to(PACKAGE) if inside else source).as_posix()
    if manifest["sources"].get(name) != source_digest(source):
        return f"{name}, or a kernel that it imports, has changed"
    return f"this use of {name} is not among the compiled ones"
