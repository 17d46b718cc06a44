"""The nouns of marey as arrays and one JSON description, and back with type checks."""

import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from marey.bodies import Bodies
from marey.errors import DataError
from marey.joint_fits import JointFits
from marey.motion import Contact, Motion
from marey.report import Finding, Report, Table
from marey.skeleton import Skeleton
from marey.solution import Solution, Subject
from marey.take import Analog, Event, Fact, Source, Take
from marey.tree import Loop, Tree

NOUNS: dict[str, type] = {
    noun.__name__: noun
    for noun in (
        *(Take, Analog, Event, Fact, Source, Bodies, JointFits, Tree, Loop),
        *(Skeleton, Motion, Contact, Report, Finding, Table, Solution, Subject),
    )
}
MAX_DEPTH = 32
"""Largest nesting of a description; deeper ones are refused."""


def encode(value: Any, arrays: dict[str, np.ndarray], name: str = "") -> Any:
    """Return a value as JSON; `arrays` collects its arrays by field path."""
    if isinstance(value, np.ndarray):
        key = name or "array"
        arrays[key] = value
        return {"array": key}
    if is_dataclass(value) and not isinstance(value, type):
        noun = next(c for c in type(value).__mro__ if c.__name__ in NOUNS)
        content = {
            f.name: encode(getattr(value, f.name), arrays, _join(name, f.name))
            for f in fields(noun)
        }
        return {"noun": noun.__name__, "fields": content}
    if isinstance(value, Mapping):
        return {"map": {k: encode(v, arrays, _join(name, k)) for k, v in value.items()}}
    if isinstance(value, tuple | list):
        return [encode(v, arrays, _join(name, str(i))) for i, v in enumerate(value)]
    return value.item() if isinstance(value, np.generic) else value


def _join(name: str, part: str) -> str:
    return f"{name}/{part}" if name else part


def decode(description: Any, arrays: Mapping[str, np.ndarray], depth: int = 0) -> Any:
    """Return the value of a description.

    Raises:
        DataError: If it names an unknown noun, field or array, or a field's value has
            not the type or shape that the noun asks for.
    """
    if depth > MAX_DEPTH:
        raise DataError(
            "description", found="deep nesting", needed=f"{MAX_DEPTH} levels"
        )
    if isinstance(description, list):
        return tuple(decode(item, arrays, depth + 1) for item in description)
    if not isinstance(description, dict):
        return description
    if "array" in description:
        return _find_array(arrays, description["array"])
    if "map" in description and isinstance(description["map"], dict):
        return {k: decode(v, arrays, depth + 1) for k, v in description["map"].items()}
    return _decode_noun(description, arrays, depth)


def _find_array(arrays: Mapping[str, np.ndarray], key: Any) -> np.ndarray:
    if not isinstance(key, str) or key not in arrays:
        raise DataError(
            "description", found=f"array {key!r}", needed="one of the file's"
        )
    return arrays[key]


def _decode_noun(
    description: dict[str, Any], arrays: Mapping[str, np.ndarray], depth: int
) -> Any:
    name, content = description.get("noun"), description.get("fields")
    if not isinstance(name, str) or name not in NOUNS or not isinstance(content, dict):
        raise DataError(
            "description", found=repr(name), needed=f"one of {sorted(NOUNS)}"
        )
    noun = NOUNS[name]
    hints = get_type_hints(noun)
    known = {f.name for f in fields(noun)}
    # A file from before a noun had some field leaves it out.
    needed = {f.name for f in fields(noun) if f.default is f.default_factory is MISSING}
    wrong = sorted((set(content) - known) | (needed - set(content)))
    if wrong:
        raise DataError(
            f"{name}", found=f"fields {wrong} unknown or missing", needed=sorted(known)
        )
    values = {key: decode(item, arrays, depth + 1) for key, item in content.items()}
    for key, value in values.items():
        if not matches_type(value, hints[key]):
            raise DataError(
                f"{name}.{key}",
                found=_describe_value(value),
                needed=_describe_type(hints[key]),
            )
    return noun(**values)


def matches_type(value: Any, hint: Any) -> bool:
    """Whether a value is what a field's annotation asks for, array shapes included."""
    origin, args = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin is Literal:
        return value in args
    if origin in (Union, types.UnionType):
        return any(matches_type(value, arg) for arg in args)
    if origin is tuple:
        return _matches_tuple(value, args)
    if origin is not None:
        return isinstance(value, Mapping) and all(
            matches_type(k, args[0]) and matches_type(v, args[1])
            for k, v in value.items()
        )
    if hint is float:
        return isinstance(value, float | int) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, hint)


def _matches_tuple(value: Any, args: tuple[Any, ...]) -> bool:
    if not isinstance(value, tuple):
        return False
    if len(args) == 2 and args[1] is Ellipsis:
        return all(matches_type(item, args[0]) for item in value)
    return len(value) == len(args) and all(map(matches_type, value, args))


def _describe_value(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype} array of shape {value.shape}"
    return f"{type(value).__name__} {str(value)[:60]!r}"


def _describe_type(hint: Any) -> str:
    return getattr(hint, "__name__", str(hint))
