"""Turn motion capture into an articulated skeleton and its motion.

Names are imported when first used, so that `import marey` costs nothing. The stub
`__init__.pyi` lists them with their homes, for type checkers and for this module.
"""

import ast
import logging
from importlib import import_module
from pkgutil import get_data
from typing import Any

__version__ = "0.1.0"

# Programs decide where messages go; without them, nothing is printed.
logging.getLogger(__name__).addHandler(logging.NullHandler())

_HOME = {
    alias.name: statement.module or ""
    for statement in ast.parse(get_data(__name__, "__init__.pyi") or b"").body
    if isinstance(statement, ast.ImportFrom)
    for alias in statement.names
}
"""The module or package that each public name is imported from."""

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if home == __name__:
        return import_module(f"{home}.{name}")
    return getattr(__import__(home, fromlist=[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
