"""Change a source of marey in a running process.

The edited source is executed in a namespace of its own. Data that differ there, code of
functions and their defaults are put into the module that is imported. All modules that
hold what has changed, or the module itself, are executed likewise, because they may
have derived something from it. Classes stay the same objects.
"""

import inspect
import re
import sys
from functools import cached_property
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

UNCHANGED = ("marey.kernels", "marey.numerics.jit")
"""Modules whose caches belong to the machine."""


def patch_module(path: Path, text: str) -> None:
    """Give the module of a file the content of an edited source."""
    modules = {
        name: module
        for name, module in sys.modules.items()
        if name.partition(".")[0] == "marey" and getattr(module, "__file__", None)
    }
    first = next(m for m in modules.values() if m.__file__ == str(path))
    waiting, sources = [first], {str(path): text}
    while waiting:
        module = waiting.pop()
        file = str(module.__file__)
        source = sources.get(file) or Path(file).read_text(encoding="utf-8")
        changed = _replace_content(module, compile(source, file, "exec"))
        for other in modules.values() if changed else ():
            holds_module = any(value is module for value in vars(other).values())
            if _replace_data(other, changed) or holds_module:
                waiting.append(other)
    _clear_caches(modules)


def _replace_content(module: ModuleType, code: Any) -> dict[str, tuple[Any, Any]]:
    """Execute a source; return what changed, before and after."""
    edited = {"__name__": module.__name__, "__file__": module.__file__}
    exec(code, edited)
    changed = {}
    for name, new in edited.items():
        old = vars(module).get(name)
        owner = getattr(new, "__module__", None)
        if inspect.isclass(new) and owner == module.__name__:
            members = [(vars(old).get(key), value) for key, value in vars(new).items()]
            if any([_replace_function(*pair) for pair in members]):
                changed[name] = (old, old)
        elif callable(new):
            if owner == module.__name__:
                _replace_function(old, new)
        elif _is_data(name, new) and _content(old) != _content(new):
            setattr(module, name, new)
            changed[name] = (old, new)
    return changed


def _replace_function(old: Any, new: Any) -> bool:
    """Give a function, method or property the content of another; whether it differs.

    The content is the code and the defaults.
    """
    if isinstance(new, property):
        return _replace_function(old.fget, new.fget)
    if isinstance(new, cached_property):
        return _replace_function(old.func, new.func)
    while hasattr(old, "__wrapped__") and hasattr(new, "__wrapped__"):
        old, new = old.__wrapped__, new.__wrapped__
    old, new = getattr(old, "__func__", old), getattr(new, "__func__", new)
    if not (isinstance(old, FunctionType) and isinstance(new, FunctionType)):
        return False
    before, after = (_content((f.__defaults__, f.__kwdefaults__)) for f in (old, new))
    if old.__code__ == new.__code__ and before == after:
        return False
    old.__code__ = new.__code__
    old.__defaults__, old.__kwdefaults__ = new.__defaults__, new.__kwdefaults__
    return True


def _is_data(name: str, value: Any) -> bool:
    return not inspect.ismodule(value) and not name.startswith("__")


def _content(value: Any) -> str:
    """Return a value as text, without addresses in memory."""
    return re.sub(r"0x[0-9a-f]+", "", repr(value))


def _replace_data(module: ModuleType, changed: dict[str, tuple[Any, Any]]) -> bool:
    """Replace what a module has imported; whether there was anything."""
    found = False
    for name, (old, new) in changed.items():
        if vars(module).get(name) is old:
            setattr(module, name, new)
            found = True
    return found


def _clear_caches(modules: dict[str, ModuleType]) -> None:
    for name, module in modules.items():
        if not name.startswith(UNCHANGED):
            for value in list(vars(module).values()):
                if hasattr(value, "cache_clear"):
                    value.cache_clear()
