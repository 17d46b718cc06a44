"""How kernels are compiled, cached and loaded, and a notice of compiling.

Every module of kernels imports this one, which sets Numba up before the first kernel.
"""

import gc
import logging
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import numba
from llvmlite import ir
from llvmlite.binding import get_host_cpu_features, parse_bitcode
from numba.core.caching import CacheImpl, CompileResultCacheImpl, FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.dispatcher import Dispatcher
from numba.core.event import Event, Listener, install_listener, register
from numba.core.registry import cpu_target
from numba.core.runtime.nrt import rtsys
from numba.core.typed_passes import NopythonRewrites
from numba.core.types import unliteral
from numba.core.untyped_passes import InlineClosureLikes

from marey.kernels.cache import SourceDigestLocator
from marey.kernels.precompiled import (
    common_cpu,
    explain_compiling,
    wants_compiled_kernels,
)

logger = logging.getLogger(__name__)


class TableStruct(ir.LiteralStructType):  # type: ignore[misc]
    """The fields of a table in memory; see `reference_kernel`. Nothing changes them."""


config: Any = numba.config  # its names are made when Numba is imported

LOCATOR = f"{SourceDigestLocator.__module__}.{SourceDigestLocator.__qualname__}"


def _use_own_cache() -> None:
    """Let Numba ask marey's locator first, and its own for all other functions."""
    own = ",".join(locator.__name__ for locator in CacheImpl._locator_classes)
    others = getattr(config, "CACHE_LOCATOR_CLASSES", None)  # Numba 0.61 has none
    if others is not None and LOCATOR not in others:
        config.CACHE_LOCATOR_CLASSES = f"{LOCATOR},{others or own}"


def _use_common_cpu() -> bool:
    """Compile for the common instruction set; return whether this process can."""
    has = {name for name, there in get_host_cpu_features().items() if there}
    name = common_cpu(platform.machine(), has)
    if name is None:
        return False
    before = config.CPU_NAME, config.CPU_FEATURES
    config.CPU_NAME, config.CPU_FEATURES = name, ""
    if cpu_target.target_context.codegen().magic_tuple()[1:] == (name, ""):
        return True
    # Other code of this process has made Numba compile for another CPU before.
    config.CPU_NAME, config.CPU_FEATURES = before
    return False


_use_own_cache()
USES_COMMON_CPU = wants_compiled_kernels() and _use_common_cpu()


def compiled_cpu() -> str | None:
    """Return the CPU that kernels are compiled for; None = that of this machine."""
    return config.CPU_NAME if USES_COMMON_CPU else None


# --- loading --------------------------------------------------------------------------

KERNEL = "kernel"
"""Kind of a library in the cache, beside those of Numba."""


class _KernelLibrary(JITCodeLibrary):
    """Machine code from the cache, whose LLVM bitcode is parsed when it is linked.

    Only kernels that are compiled link others. Numba parses the bitcode and looks at
    every function of it in any case, which takes most of the time of loading.

    A kernel that only other kernels call gets no machine code: theirs contains it.
    """

    _bitcode = b""
    only_linked = False
    """Whether only other kernels call this one."""

    @classmethod
    def _unserialize(cls, codegen: Any, state: tuple[str, str, Any]) -> Any:
        name, kind, data = state
        if kind != KERNEL:
            return super()._unserialize(codegen, state)  # type: ignore[no-untyped-call]
        library = codegen.create_library(name)
        machine_code, library._bitcode, symbols = data
        library.only_linked = not machine_code
        library.enable_object_caching()
        library._set_compiled_object(machine_code)
        library._finalize_final_module()
        codegen._engine._defined_symbols.update(symbols)
        return library

    def _optimize_final_module(self) -> None:
        # What only other kernels call is optimised as part of them.
        if not self.only_linked:
            super()._optimize_final_module()  # type: ignore[no-untyped-call]

    def _finalize_final_module(self) -> None:
        if not self.only_linked:
            super()._finalize_final_module()  # type: ignore[no-untyped-call]
            return
        self._finalize_dynamic_globals()  # type: ignore[no-untyped-call]
        self._compiled_object = b""
        self._finalized = True

    def add_ir_module(self, ir_module: Any) -> None:
        """Add a module; say that tables do not change where kernels get them."""
        for function in ir_module.functions:
            for argument in function.args:
                if isinstance(getattr(argument.type, "pointee", None), TableStruct):
                    argument.add_attribute("noalias")
        super().add_ir_module(ir_module)  # type: ignore[no-untyped-call]

    def _get_module_for_linking(self) -> Any:
        if self._bitcode and self._shared_module is None:
            self._shared_module = parse_bitcode(self._bitcode)
        return super()._get_module_for_linking()  # type: ignore[no-untyped-call]


def _without_literals(kernel: Any, args: Any, keywords: dict[str, Any]) -> Any:
    """Return how a kernel is called, for all values of constants alike.

    Numba would compile a kernel again for every number that stands in a call.
    """
    kinds = dict(zip(keywords, map(unliteral, keywords.values()), strict=True))
    return type(kernel).get_call_template(kernel, [*map(unliteral, args)], kinds)


UNNEEDED_PASSES = {InlineClosureLikes, NopythonRewrites}
"""Passes of the compiler for closures, which kernels have none of, and for making one
loop of an expression of whole arrays: kernels have loops of their own."""


class _KernelCompiler(Compiler):
    """The compiler of kernels, which tells libraries whether Python calls them."""

    def define_pipelines(self) -> Any:
        state: Any = self.state
        library = state.targetctx.codegen().create_library(state.func_id.func_qualname)
        library.enable_object_caching()
        library.only_linked = state.flags.no_cpython_wrapper
        state.library = library
        pipelines: Any = super().define_pipelines()  # type: ignore[no-untyped-call]
        for pipeline in pipelines:
            steps = pipeline.passes
            pipeline.passes = [s for s in steps if s[0] not in UNNEEDED_PASSES]
        return pipelines


class _KernelCacheImpl(CompileResultCacheImpl):
    """What is kept of a compiled kernel.

    The environments of functions that it calls are left out: they serve code that runs
    in Python, which kernels have none of, and with them modules of Numba and SciPy
    would be imported.
    """

    def reduce(self, result: Any) -> tuple[Any, ...]:
        reduced = super().reduce(result)  # type: ignore[no-untyped-call]
        (name, _, code), described, *others, _ = reduced
        entry_points = described.llvm_cpython_wrapper_name, described.llvm_func_name
        engine = result.codegen._engine
        symbols = [entry for entry in entry_points if engine.is_symbol_defined(entry)]
        return (name, KERNEL, (*code, symbols)), described, *others, ()


class _KernelFiles(FunctionCache):
    """The files of a kernel in the cache."""

    _impl_class = _KernelCacheImpl


class _KernelCache:
    """The cache of a kernel, with the methods that Numba calls.

    Files are looked for when the kernel is first called, because most kernels are only
    called by others, which contain them. Before it loads, Numba would make itself ready
    to compile, which imports more modules than all else does.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    @cached_property
    def _files(self) -> Any:
        return _KernelFiles(self._function)  # type: ignore[no-untyped-call]

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """Return the machine code for a signature; None if it is not in the cache.

        An entry may name types of a module that no longer exists, even if the kernel
        does not import it. Such an entry cannot be read and is forgotten.
        """
        rtsys.initialize(target_context)
        with self._files._guard_against_spurious_io_errors():
            try:
                return self._files._load_overload(signature, target_context)
            except (UnpicklingError, ImportError, AttributeError):
                self._files.flush()
        return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Keep the machine code for a signature."""
        self._files.save_overload(signature, result)


def njit(
    *signatures: Any, cache: bool = True, **options: Any
) -> Callable[[Callable[..., Any]], Any]:
    """Return the decorator `numba.njit` with a cache that is fast to load."""

    def decorate(function: Callable[..., Any]) -> Any:
        chosen = {"no_cfunc_wrapper": True, **options}  # nobody calls kernels from C
        kernel: Any = numba.njit(pipeline_class=_KernelCompiler, **chosen)(function)
        is_compiled = isinstance(kernel, Dispatcher)  # NUMBA_DISABLE_JIT may be set
        if is_compiled:
            kernel.get_call_template = partial(_without_literals, kernel)
            if cache:
                kernel._cache = _KernelCache(function)
            for signature in signatures:
                kernel.compile(signature)
            kernel.disable_compile(bool(signatures))
        return kernel

    return decorate


codegen: Any = cpu_target.target_context.codegen()
codegen._library_class = _KernelLibrary


def _set_environment(name: str, environment: Any) -> None:
    """Give a compiled function its environment, unless it has no machine code."""
    if codegen._engine.get_global_value_address(name):
        type(codegen).set_env(codegen, name, environment)


codegen.set_env = _set_environment

# --- decorators of kernels ------------------------------------------------------------

# Fast mathematics, but not "nnan" and "ninf", because missing values are NaN, and not
# "nsz" (no signed zeros), with which np.isfinite is true of every sum.
FAST = {"reassoc", "contract", "arcp", "afn"}

# Without entry points from Python and C, compiling takes half the time.
NO_WRAPPERS: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
inner = njit(cache=True, fastmath=FAST, **NO_WRAPPERS)

# For functions that allocate no arrays: without Numba's run-time (_nrt) no references
# are counted, which would take longer than the work of most of these functions.
NO_ALLOCATION: dict[str, Any] = {**NO_WRAPPERS, "error_model": "numpy", "_nrt": False}
lean = njit(cache=True, fastmath=FAST, **NO_ALLOCATION)

# For functions that are called at one place: passing all arrays of a tree takes as long
# as the work of many of these functions.
inlined = njit(cache=True, fastmath=FAST, inline="always", **NO_ALLOCATION)


# --- notices --------------------------------------------------------------------------


class _Compilations(Listener):
    """Says once per process that kernels are compiled, and why."""

    def __init__(self) -> None:
        self._said = False

    def on_start(self, event: Event) -> None:
        kernel = event.data["dispatcher"].py_func
        logger.debug("compiling %s.%s", kernel.__module__, kernel.__qualname__)
        if self._said or not str(kernel.__module__).startswith("marey."):
            return
        self._said = True
        if wants_compiled_kernels():
            source = Path(kernel.__code__.co_filename)
            why = explain_compiling(source, compiled_cpu())
            logger.warning("compiling kernels, this once: %s", why)
        else:
            logger.info("compiling kernels for this machine, this once")

    def on_end(self, event: Event) -> None:
        pass


class _NoGarbageCollection(Listener):
    """Collects no garbage while a kernel of marey and those that it calls are compiled.

    The compiler needs all of its objects until it ends, so there is no garbage; the
    search for it would take a tenth of the time.
    """

    def __init__(self) -> None:
        self._outermost: Dispatcher | None = None

    def on_start(self, event: Event) -> None:
        kernel = event.data["dispatcher"]
        is_own = str(kernel.py_func.__module__).startswith("marey.")
        if is_own and self._outermost is None and gc.isenabled():
            self._outermost = kernel
            gc.disable()

    def on_end(self, event: Event) -> None:
        if event.data["dispatcher"] is self._outermost:
            self._outermost = None
            gc.enable()


register("numba:compile", _Compilations())  # type: ignore[no-untyped-call]
register("numba:compile", _NoGarbageCollection())  # type: ignore[no-untyped-call]


class _FirstCompilation(Listener):
    def __init__(self, notify: Callable[[], None]) -> None:
        self._notify: Callable[[], None] | None = notify

    def on_start(self, event: Event) -> None:
        notify, self._notify = self._notify, None
        if notify is not None:
            notify()

    def on_end(self, event: Event) -> None:
        pass


@contextmanager
def notify_compilation(notify: Callable[[], None]) -> Iterator[None]:
    """Call `notify` once if a kernel is compiled; cached kernels do not count."""
    with install_listener("numba:compile", _FirstCompilation(notify)):
        yield
