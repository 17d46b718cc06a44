"""Shapes and types of arguments and results, checked while the tests run.

The import hook of jaxtyping makes the check of a function when it is defined and checks
arguments twice in every call, which takes longer than most of the functions. Here a
check is made when its function is first called; in each test it sees the first calls
and then a few, with --slow all of them.
"""

import ast
import functools
import inspect
import types
import typing

import jaxtyping
from beartype.roar import BeartypeCallHintViolation
from jaxtyping import _import_hook, _storage

COMPILERS = {"no_type_check", "njit", "lean", "inner", "inlined"}
"""Decorators of functions that are not checked: Numba could not compile a check."""

FIRST = 3
"""Calls of one function that are checked in each test."""

THEN = 256
"""After them, one call in so many is checked."""

RUN_LATER = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
"""Functions whose bodies run after the call, when the context of its axes is over."""

jaxtyped = jaxtyping.jaxtyped


class Turn:
    """Which test runs, and which calls it checks."""

    number = 0
    every_call = False
    no_call = False


def install():
    """Let the import hook of jaxtyping decorate functions as described above."""
    _import_hook._is_no_type_check = is_compiler
    vars(jaxtyping)["jaxtyped"] = check_some_calls


def is_compiler(decorator):
    name = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(name, ast.Name) and name.id in COMPILERS


def check_some_calls(thing=None, *, typechecker):
    """Decorate a function, or the __init__ of a dataclass."""
    if thing is None:
        return functools.partial(check_some_calls, typechecker=typechecker)
    if not inspect.isclass(thing):
        return _check_function(thing, typechecker)
    if "__dataclass_fields__" in vars(thing):
        init = _check_function(thing.__init__, typechecker)
        thing.__init__ = init  # type: ignore[method-assign]
    return thing


def _check_function(function, typechecker):
    checked, turn, calls = None, 0, 0

    @functools.wraps(function)
    def call(*args, **kwargs):
        nonlocal checked, turn, calls
        __tracebackhide__ = True
        if turn != Turn.number:
            turn, calls = Turn.number, 0
        calls += 1
        passed_over = calls > FIRST and calls % THEN and not Turn.every_call
        if passed_over or Turn.no_call:
            _storage.push_shape_memo({})  # checks inside see no axes of the caller
            try:
                return function(*args, **kwargs)
            finally:
                _storage.pop_shape_memo()
        if checked is None:
            checked = _check_every_call(function, typechecker)
        return checked(*args, **kwargs)

    return call


def _check_every_call(function, typechecker):
    if function.__code__.co_flags & RUN_LATER:
        return jaxtyped(function, typechecker=typechecker)
    checked = typechecker(_with_known_types(function))

    def call(*args, **kwargs):
        __tracebackhide__ = True
        try:
            with jaxtyped("context"):  # names of axes hold for one call
                return checked(*args, **kwargs)
        except BeartypeCallHintViolation as error:
            raise jaxtyping.TypeCheckError(str(error)) from error

    return call


def _with_known_types(function):
    """Return the function without the types that only type checkers import."""
    names = function.__globals__
    copy = types.FunctionType(
        function.__code__,
        names,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    copy.__qualname__ = function.__qualname__
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__annotations__ = {
        name: _known_type(hint, names)
        for name, hint in function.__annotations__.items()
    }
    return copy


def _known_type(hint, names):
    holder = types.SimpleNamespace(__annotations__={"hint": hint})
    try:
        return typing.get_type_hints(holder, names, include_extras=True)["hint"]
    except NameError:
        return typing.Any
