"""Results of stages, kept by what they follow from."""

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

R = TypeVar("R")

MAX_CACHED_RESULTS = 4
"""Largest number of results kept of one stage. Higher costs memory and saves time when
edits are tried in turns. Chosen by hand."""


class StageCache:
    """Least recently used results of each stage."""

    def __init__(self) -> None:
        self._results: dict[str, dict[Hashable, tuple[Any, object]]] = {}

    def get(
        self,
        stage: str,
        key: Hashable,
        compute: Callable[[], R],
        keep_alive: object = None,
    ) -> R:
        """Return the result of a stage, computed only if it is not in the cache.

        Args:
            stage: Name of the stage.
            key: What the result follows from.
            compute: Computes the result.
            keep_alive: Objects whose ids are in the key, so that no id is used again.
        """
        results = self._results.setdefault(stage, {})
        entry = results.pop(key) if key in results else (compute(), keep_alive)
        results[key] = entry
        while len(results) > MAX_CACHED_RESULTS:
            del results[next(iter(results))]
        result: R = entry[0]
        return result
