"""Compiled kernels: what makes them stale, where they may go, and what is said."""

import ast
import gc
import importlib
import json
import logging
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher
from numba.core.event import Listener, install_listener

import marey
from marey.cli.compiling import merge_caches
from marey.cli.kernel_exercises import EXERCISES
from marey.kernels import cache, precompiled
from marey.numerics.jit import NO_WRAPPERS, njit
from marey.numerics.vector3_kernel import dot
from marey.pose.contact.change_point_kernel import fit_change_points

SOURCE = Path(marey.__file__).parent
PARTS = (
    "__init__.py",
    "__init__.pyi",
    "kernels/__init__.py",
    "kernels/blas_threads.py",
    "kernels/cache.py",
    "kernels/precompiled.py",
    "numerics/__init__.py",
    "numerics/jit.py",
)
CALLED = """
from marey.numerics.jit import njit

@njit(cache=True)
def height():
    return {height}
"""
CALLER = """
from marey.numerics.jit import FAST, njit
from marey.numerics.called_kernel import height

@njit(cache=True, fastmath=FAST)
def double(x):
    return height() * x
"""
TUPLE = """
from typing import NamedTuple

class Factor(NamedTuple):
    value: float
"""
TAKES_TUPLE = """
from marey.numerics.jit import FAST, njit
from marey.numerics.{name}_kernel import Factor

@njit(cache=True, fastmath=FAST)
def multiply(factor, x):
    return factor.value * x

def double(x):
    return multiply(Factor(3.0), x)
"""
MULTIPLIES = """
from marey.numerics.jit import njit

@njit(cache=True)
def multiply(factor, x):
    return factor.value * x
"""
GIVES_TUPLE = """
from marey.numerics.called_kernel import multiply
from marey.numerics.{name}_kernel import Factor

def double(x):
    return multiply(Factor(3.0), x)
"""
CALL = """
import logging, os, sys
from numba.core.event import Listener, register
import marey

class Count(Listener):
    n = 0
    def on_start(self, event):
        self.n += 1
    def on_end(self, event):
        pass

count = Count()
register("numba:compile", count)
logging.basicConfig(format="%(message)s", stream=sys.stdout)
from marey.numerics.caller_kernel import double
from marey.numerics.jit import compiled_cpu
value = double(2.0)
if os.environ["FINISH"]:
    from marey.kernels.precompiled import write_manifest
    write_manifest(compiled_cpu(), rare=False)
print(value, count.n, compiled_cpu())
"""


ELF = b"\x7fELF"
"""The beginning of machine code on Linux."""


def small_package(folder, height=1.0):
    """A marey of two kernels, one of which calls the other, in its own file."""
    for part in PARTS:
        target = folder / "marey" / part
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(SOURCE / part, target)
    write_kernel(folder, height)
    (folder / "marey/numerics/caller_kernel.py").write_text(CALLER)
    return folder


def write_kernel(folder, height):
    text = CALLED.format(height=height)
    (folder / "marey/numerics/called_kernel.py").write_text(text)


def call(folder, *, wanted="1", finish="", **variables):
    """Result, number of compilations and CPU of a process, and what it said.

    With `finish` it writes the manifest, as `marey compile` does in the end. Bytecode
    of a source of the same size and second would pass for that of a changed one.
    """
    environment = os.environ | {"PYTHONPATH": str(folder), "FINISH": finish}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    environment.pop("NUMBA_CACHE_DIR", None)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", CALL],
        env=environment | {precompiled.VARIABLE: wanted} | variables,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    *said, last = done.stdout.splitlines()
    value, n_compiled, cpu = last.split()
    return float(value), int(n_compiled), cpu, said


def change_manifest(folder, **changes):
    """Make the manifest say that kernels were compiled for something else."""
    path = folder / "marey/compiled/manifest.json"
    content = json.loads(path.read_text())
    content["compiled for"] |= changes
    path.write_text(json.dumps(content))


def test_a_kernel_is_stale_when_a_kernel_that_it_calls_has_changed(tmp_path):
    package = small_package(tmp_path)
    assert call(package, finish="yes")[0] == 2.0
    write_kernel(package, 5.0)
    value, n_compiled, _, said = call(package)
    assert (value, n_compiled) == (10.0, 2)
    assert len(said) == 1
    assert (
        "numerics/caller_kernel.py, or a kernel that it imports, has changed" in said[0]
    )


def test_a_kernel_from_the_cache_is_linked_into_one_that_is_compiled(tmp_path):
    package = small_package(tmp_path)
    call(package)
    caller = package / "marey/numerics/caller_kernel.py"
    caller.write_text(CALLER.replace("* x", "+ x"))
    value, n_compiled, _, _ = call(package)
    assert (value, n_compiled) == (3.0, 1)


@pytest.mark.skipif(sys.platform != "linux", reason="looks for machine code as ELF")
def test_a_kernel_that_only_kernels_call_has_no_machine_code(tmp_path):
    """Its bitcode is kept: a process that has it compiles only what calls it."""
    package = small_package(tmp_path)
    called = package / "marey/numerics/called_kernel.py"
    call(package)
    (with_code,) = package.rglob("called_kernel.height-*.nbc")
    assert ELF in with_code.read_bytes()
    inner = called.read_text().replace("njit(cache=True)", "inner")
    called.write_text(inner.replace("import njit", "import inner"))
    with_code.unlink()
    assert call(package)[:2] == (2.0, 2)
    (without,) = package.rglob("called_kernel.height-*.nbc")
    assert ELF not in without.read_bytes()
    caller = package / "marey/numerics/caller_kernel.py"
    caller.write_text(CALLER.replace("* x", "+ x"))
    assert call(package)[:2] == (3.0, 1)


def test_no_garbage_is_collected_while_a_kernel_is_compiled():
    events = []
    with install_listener("numba:compile", Collecting(events)):
        njit(cache=False)(lambda x: x).compile("f8(f8)")
        njit(cache=False)(dot.py_func).compile("f8(f8[:], f8[:])")
    assert events == [True, True, False, True]
    assert gc.isenabled()


class Collecting(Listener):
    """Notes whether garbage is collected when compilations start and have ended."""

    def __init__(self, events):
        self.events = events

    def on_start(self, event):
        self.events.append(gc.isenabled())

    def on_end(self, event):
        self.events.append(gc.isenabled())


def test_a_kernel_is_compiled_once_for_all_constants_that_it_is_called_with():
    @njit(cache=False, **NO_WRAPPERS)
    def count(shape, factor):
        return factor * shape[0] * shape[1]

    @njit(cache=False)
    def total(n):
        return count((n, 3), 2) + count((4, n), n) + count((5, 6), 1)

    assert total(7) == 2 * 21 + 7 * 28 + 30
    assert len(count.overloads) == 1


LOAD = """
import sys
import numpy as np
from marey.numerics.procrustes_kernel import alternate
points, shape = np.zeros((5, 4, 3)), np.eye(4, 3)
T, weight = np.tile(np.eye(4), (5, 1, 1)), np.ones((5, 4))
alternate(points, shape, weight, T, np.array([2]), 3.0, 0.5)
import marey.numerics.lanes_kernel
compiling = "scipy.linalg", "numba.np.linalg", "numba.np.arrayobj", "jaxtyping"
print([name for name in compiling if name in sys.modules])
"""


def test_loading_a_kernel_imports_nothing_that_only_compiling_needs():
    def load():
        return subprocess.run(
            [sys.executable, "-c", LOAD], capture_output=True, text=True, check=True
        ).stdout.strip()

    load()  # compiles it where nobody has before
    assert load() == "[]"


@pytest.mark.parametrize("is_apart", [False, True])
def test_kernels_of_a_module_that_is_gone_are_compiled_again(tmp_path, is_apart):
    """Their signatures refer to a class of that module, which they need not import."""
    package = small_package(tmp_path)
    caller = TAKES_TUPLE
    if is_apart:
        (package / "marey/numerics/called_kernel.py").write_text(MULTIPLIES)
        caller = GIVES_TUPLE
    for name in ("old", "newer"):
        numerics = package / "marey/numerics"
        (numerics / "old_kernel.py").unlink(missing_ok=True)
        (numerics / f"{name}_kernel.py").write_text(TUPLE)
        (numerics / "caller_kernel.py").write_text(caller.format(name=name))
        assert call(package)[0] == 6.0


def test_compiled_kernels_can_be_moved_and_a_mismatch_is_said_once(tmp_path):
    package = small_package(tmp_path / "a")
    _, n_compiled, _, said = call(package, finish="yes")
    assert n_compiled == 2
    assert len(said) == 1
    assert "none are compiled yet" in said[0]
    moved = tmp_path / "b"
    shutil.move(package, moved)
    value, n_compiled, cpu, said = call(moved)
    assert (value, n_compiled, said) == (2.0, 0, [])
    known = platform.machine().lower() in precompiled.COMMON_CPUS
    assert (cpu != "None") <= known

    # With a native CPU in the same process tree, they are made anew, silently.
    value, n_compiled, cpu, said = call(moved, wanted="0")
    assert (value, n_compiled, cpu, said) == (2.0, 2, "None", [])

    change_manifest(moved, Numba="0.1")
    shutil.rmtree(moved / "marey/compiled/numerics")
    value, n_compiled, _, said = call(moved)
    assert (value, n_compiled) == (2.0, 2)
    assert len(said) == 1
    assert "for Numba 0.1, here is" in said[0]


def test_a_cache_elsewhere_begins_with_the_kernels_that_came_along(tmp_path):
    package = small_package(tmp_path / "a")
    call(package, finish="yes")
    other = str(tmp_path / "elsewhere")
    assert call(package, NUMBA_CACHE_DIR=other)[:2] == (2.0, 0)
    assert list(Path(other).glob("marey-kernels-*/numerics/*.nbi"))


@pytest.mark.parametrize("path", cache.kernel_sources(), ids=lambda path: path.stem)
def test_the_digest_of_a_kernel_covers_all_modules_it_imports(path):
    """Every module of marey that the file imports, and theirs, is in it."""
    covered = cache.imported_sources(path)
    for source in covered:
        for line in source.read_text().splitlines():
            if line.startswith("from marey.") and source.stem != "jit":
                module = line.split()[1].removeprefix("marey.").replace(".", "/")
                assert SOURCE / f"{module}.py" in covered
    assert SOURCE / "numerics/jit.py" in covered


@pytest.mark.parametrize("path", cache.kernel_sources(), ids=lambda path: path.stem)
def test_no_kernel_assigns_an_array_to_a_slice(path):
    """Numba would compile a message of its error, and with it all its strings."""
    found = [
        ast.unparse(node)
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Assign) and not isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Subscript)
        if any(isinstance(part, ast.Slice) for part in ast.walk(target.slice))
    ]
    assert found == []


def only_linked(path):
    """Return the functions of a file that only kernels can call."""
    return {
        node.name
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.FunctionDef)
        for decorator in map(ast.unparse, node.decorator_list)
        if decorator in ("lean", "inner", "inlined") or "NO_" in decorator
    }


def test_python_calls_no_kernel_that_only_kernels_can_call():
    """It has no machine code: the process would end."""
    inner = {path.stem: only_linked(path) for path in cache.kernel_sources()}
    found = []
    for path in SOURCE.rglob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        names = set(inner.get(path.stem, ()))
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                there = inner.get(node.module.rpartition(".")[2], set())
                names |= {alias.name for alias in node.names} & there
        found += [
            f"{path.stem}.{function.name}: {call.func.id}"
            for function in ast.walk(tree)
            if isinstance(function, ast.FunctionDef) and not function.decorator_list
            for call in ast.walk(function)
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
            if call.func.id in names
        ]
    assert all(inner[name] for name in ("new_kernel", "vector3_kernel"))
    assert found == []


def test_no_compiled_kernel_contains_strings():
    """An array that is added to a row compiles them, too, and no slice shows it."""
    fit_change_points(
        np.zeros((5, 1, 3)), np.ones((5, 1)), *np.array([[0], [0], [4]]), 1.0
    )
    compiled = list(cache.cache_folder().rglob("*.nbc"))
    assert compiled
    assert [p.name for p in compiled if b"cpython7unicode" in p.read_bytes()] == []


def test_changed_imports_of_imports_change_the_digest(tmp_path):
    for name, text in (
        ("a_kernel", "from marey.b_kernel import b\n"),
        ("b_kernel", "from marey.c_kernel import (\n    c,\n)\n"),
        ("c_kernel", "c = 1\n"),
        ("d_kernel", "d = 1\n"),
    ):
        (tmp_path / f"{name}.py").write_text(text)

    def digest():
        for function in (
            cache.read_content,
            cache.imported_sources,
            cache.source_digest,
        ):
            function.cache_clear()
        return cache.source_digest(tmp_path / "a_kernel.py", tmp_path)

    first = digest()
    (tmp_path / "d_kernel.py").write_text("d = 2\n")
    assert digest() == first
    (tmp_path / "c_kernel.py").write_text("c = 2\n")
    assert digest() != first


def test_an_older_processor_is_recognised():
    modern = precompiled.X86_64_V3
    assert precompiled.common_cpu("x86_64", modern | {"avx512f"}) == "x86-64-v3"
    assert precompiled.common_cpu("AMD64", modern) == "x86-64-v3"
    assert precompiled.common_cpu("x86_64", modern - {"fma"}) is None
    assert precompiled.common_cpu("arm64", {"neon"}) == "generic"
    assert precompiled.common_cpu("riscv64", set()) is None


def test_why_kernels_are_compiled_names_the_processor(monkeypatch):
    known = {"compiled for": precompiled.describe_this("x86-64-v3"), "sources": {}}
    monkeypatch.setattr(precompiled, "read_manifest", lambda: known)
    path = cache.kernel_sources()[0]
    said = precompiled.explain_compiling(path, None)
    assert "for processor x86-64-v3, this one has less" in said


def test_asking_for_compiled_kernels_too_late_is_logged(monkeypatch, caplog):
    from marey.numerics import jit

    monkeypatch.setenv(precompiled.VARIABLE, "0")
    monkeypatch.setattr(jit, "USES_COMMON_CPU", False)
    with caplog.at_level(logging.WARNING, logger="marey"):
        marey.use_compiled_kernels()
    assert "call marey.use_compiled_kernels() first" in caplog.text
    assert os.environ[precompiled.VARIABLE] == "1"


NORMS = """
import sys
import numpy as np
from marey.joints.ball.gauss_helmert_kernel import squared_norms, subtract_medians
rng = np.random.default_rng(0)
m, P = rng.normal(size=(50, 3)), rng.normal(size=(50, 3, 3))
out, residual = np.empty(50), np.empty((50, 3))
squared_norms(m, P, out)
subtract_medians(m, residual)
print(repr([*out.tolist(), *residual.ravel().tolist()]))
"""


@pytest.mark.parametrize("wanted", ["0", "1"])
def test_kernels_for_the_common_processor_answer_like_native_ones(wanted):
    done = subprocess.run(
        [sys.executable, "-c", NORMS],
        env=os.environ | {precompiled.VARIABLE: wanted},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    rng = np.random.default_rng(0)
    m, P = rng.normal(size=(50, 3)), rng.normal(size=(50, 3, 3))
    P = np.triu(P) + np.triu(P, 1).transpose(0, 2, 1)
    expected = np.einsum("ni,nij,nj->n", m, P, m)
    found = np.array(json.loads(done.stdout))
    assert found[:50] == pytest.approx(expected, rel=1e-13, abs=1e-13)


def test_of_caches_that_hold_one_kernel_the_largest_index_is_kept(tmp_path):
    for name, size in (("a", 1), ("b", 2), ("c", 1)):
        (tmp_path / name / "io").mkdir(parents=True)
        (tmp_path / name / "io/k-1.py311.nbi").write_text(name * size)
        (tmp_path / name / "io/k-1.py311.1.nbc").write_text(name)
    sources = [tmp_path / name for name in "abc"]
    merge_caches(sources, tmp_path / "all")
    assert (tmp_path / "all/io/k-1.py311.nbi").read_text() == "bb"
    assert (tmp_path / "all/io/k-1.py311.1.nbc").read_text() == "b"
    assert not list((tmp_path / "all").rglob("*.part"))


def test_exercises_say_what_they_compile():
    assert all(
        exercise.title and exercise.seconds > 0 for exercise in EXERCISES.values()
    )


UNCALLED = """
import marey
marey.use_compiled_kernels()
from marey.cli import kernel_exercises
from test_kernels import kernels_called_from_python
kernel_exercises.RATE = 20.0
for exercise in kernel_exercises.EXERCISES.values():
    exercise.run()
for run in kernel_exercises.WHOLE:
    run()
called = kernels_called_from_python()
print(sorted(name for name, kernel in called if not kernel.signatures))
"""


def kernels_called_from_python():
    """Kernels, with their names, that modules of Python import."""
    for path in sorted(SOURCE.rglob("*.py")):
        if path.stem.endswith("_kernel"):
            continue
        nodes = list(ast.walk(ast.parse(path.read_text("utf-8"))))
        attributes = [node for node in nodes if isinstance(node, ast.Attribute)]
        for node in nodes:
            if not isinstance(node, ast.ImportFrom) or "marey" not in str(node.module):
                continue
            for alias in node.names:
                if alias.name.endswith("_kernel"):
                    here = alias.asname or alias.name
                    used = [a.attr for a in attributes if ast.unparse(a.value) == here]
                    yield from find_kernels(f"{node.module}.{alias.name}", used)
                elif node.module.endswith("_kernel"):
                    yield from find_kernels(node.module, [alias.name])


def find_kernels(module, names):
    """Kernels among the names of a module."""
    content = vars(importlib.import_module(module))
    for name in names:
        if isinstance(content.get(name), Dispatcher):
            yield f"{module}.{name}", content[name]


def test_exercises_call_every_kernel_that_python_calls():
    """What they do not call, `marey compile --all` and wheels would lack."""
    pytest.importorskip("mujoco")
    done = subprocess.run(
        [sys.executable, "-c", UNCALLED],
        env=os.environ
        | {"PYTHONPATH": os.pathsep.join([str(SOURCE.parent), *sys.path])},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"
