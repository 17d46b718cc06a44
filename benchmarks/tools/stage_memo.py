"""Answers of the stages of a solve, kept by their arguments.

A stage is a function of a stage's package that a module of the pipeline imports. It
returns the same for the same arguments, so that a solve in which one number is changed
need only run the stages that use the number, and those whose arguments have changed by
it.
"""

import hashlib
import inspect
import io
import pickle
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial, wraps
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any, NamedTuple

STAGES = (
    *("anatomy", "attach", "calibration", "cleaning", "joints", "pose", "rig"),
    *("segmentation", "topology", "metrics", "io"),
)
"""Packages whose functions are kept."""

USERS = ("pipeline", "editing", "metrics")
"""Packages whose modules call them."""

MIN_SECONDS = 0.02
"""Calls shorter than this are made again: to compare arguments costs as much."""

Function = tuple[str, str]
"""Path of a module below the sources, and the qualified name of a function in it."""

Figures = Mapping[str, float]


class Answer(NamedTuple):
    """What a stage returned."""

    result: Any
    called: frozenset[CodeType]
    seconds: float
    """Without the stages that it called."""


class StageMemo:
    """The panel as solved once, with the answers of all stages.

    Attributes:
        figures: Those of each take.
        called: The functions that each take calls; kernels are not seen.
    """

    def __init__(
        self, source: Path, panel: Iterable[tuple[str, Callable[[], Figures]]]
    ) -> None:
        """Solve the panel twice: first to import and compile, then to keep answers."""
        takes = list(panel)
        for _, solve in takes:
            solve()
        self._source = source
        self._answers: dict[tuple[str, bytes], Answer] = {}
        self._stack: list[set[CodeType]] = []
        self._inner = [0.0]
        self._keep_stages()
        self.figures: dict[str, Figures] = {}
        self.called: dict[str, frozenset[Function]] = {}
        self._parts: dict[str, list[Answer]] = {}
        self._recording = True
        for name, solve in takes:
            self._current: list[Answer] = []
            with_calls = self._with_calls(solve)
            self.figures[name] = dict(with_calls[0])
            self.called[name] = self._functions(with_calls[1])
            self._parts[name] = self._current
        self._recording = False

    def cheapest_first(self) -> list[str]:
        """Return the takes that have forgotten answers, in the order of their cost."""
        left = {id(answer) for answer in self._answers.values()}
        cost = {
            name: sum(a.seconds for a in parts if id(a) not in left)
            for name, parts in self._parts.items()
        }
        return sorted(self._concerned, key=cost.__getitem__)

    def forget(self, is_concerned: Callable[[frozenset[Function]], bool]) -> None:
        """Forget the answers in which a function of some kind was called."""
        self._answers = {
            key: answer
            for key, answer in self._answers.items()
            if not is_concerned(self._functions(answer.called))
        }
        self._concerned = [
            n for n, called in self.called.items() if is_concerned(called)
        ]

    def _functions(self, codes: Iterable[CodeType]) -> frozenset[Function]:
        folder = f"{self._source}/"
        return frozenset(
            (code.co_filename.removeprefix(folder), code.co_qualname)
            for code in codes
            if code.co_filename.startswith(folder)
        )

    def _keep_stages(self) -> None:
        """Replace the stages in the modules that call them."""
        kept: dict[FunctionType, Callable[..., Any]] = {}
        for name, module in list(sys.modules.items()):
            if not name.startswith(tuple(f"marey.{user}" for user in USERS)):
                continue
            for key, value in list(vars(module).items()):
                if inspect.isfunction(value) and is_stage(value, name):
                    kept.setdefault(value, self._kept(value))
                    setattr(module, key, kept[value])

    def _kept(self, function: FunctionType) -> Callable[..., Any]:
        @wraps(function)
        def answer(*args: Any, **kwargs: Any) -> Any:
            digest = digest_of((args, kwargs))
            if digest is None:
                return function(*args, **kwargs)
            key = (f"{function.__module__}.{function.__qualname__}", digest)
            known = self._answers.get(key)
            if known is None:
                known = self._call(partial(function, *args, **kwargs))
                is_own = any(known.result is one for one in (*args, *kwargs.values()))
                if self._recording and known.seconds >= MIN_SECONDS and not is_own:
                    self._answers[key] = known
            if self._recording:
                self._current.append(known)
                self._stack[-1].update(known.called)
            return known.result

        return answer

    def _call(self, function: Callable[[], Any]) -> Answer:
        if not self._recording:
            return Answer(materialised(function()), frozenset(), 0.0)
        self._inner.append(0.0)
        began = time.perf_counter()
        result, called = self._with_calls(function)
        seconds = time.perf_counter() - began
        own = seconds - self._inner.pop()
        self._inner[-1] += seconds
        return Answer(result, frozenset(called), own)

    def _with_calls(self, function: Callable[[], Any]) -> tuple[Any, set[CodeType]]:
        """Return what a function returns, and the code of all that was called."""
        self._stack.append(set())
        before = sys.getprofile()
        self._note_calls()
        result = materialised(function())
        called = self._stack.pop()
        if self._stack:
            self._stack[-1].update(called)
            self._note_calls()
        else:
            sys.setprofile(before)
            threading.setprofile(before)
        return result, called

    def _note_calls(self) -> None:
        note = self._stack[-1].add

        def profile(frame: FrameType, event: str, _: object) -> None:
            if event == "call":
                note(frame.f_code)

        sys.setprofile(profile)
        threading.setprofile(profile)


def is_stage(function: FunctionType, user: str) -> bool:
    """Whether a function belongs to a stage, and not to the package that uses it."""
    package = function.__module__.split(".")
    return (
        package[0] == "marey"
        and package[1] in STAGES
        and package[:2] != user.split(".")[:2]
    )


def materialised(result: Any) -> Any:
    """Return a tuple in place of an iterator, which could be used once only."""
    return tuple(result) if isinstance(result, Iterator) else result


class _ByName(pickle.Pickler):
    """Pickles functions by their names, also those that are replaced."""

    def reducer_override(self, value: Any) -> Any:
        if inspect.isfunction(value):
            if value.__closure__ and not hasattr(value, "__wrapped__"):
                raise pickle.PicklingError(value.__qualname__)
            return str, (f"{value.__module__}.{value.__qualname__}",)
        return NotImplemented


def digest_of(value: Any) -> bytes | None:
    """Return a fingerprint of arguments; None if there is none."""
    stream = io.BytesIO()
    try:
        _ByName(stream, protocol=5).dump(value)
    except (pickle.PicklingError, TypeError, AttributeError):
        return None
    return hashlib.blake2b(stream.getbuffer(), digest_size=16).digest()
