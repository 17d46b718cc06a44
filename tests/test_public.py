"""The public face: what `import marey` offers, and what it costs."""

import ast
import importlib
import inspect
import os
import pkgutil
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

import marey

ROOT = Path(__file__).parent.parent
FACE = Path(marey.__file__)


def declared():
    """Home module of each name in the stub for type checkers."""
    stub = ast.parse(FACE.with_suffix(".pyi").read_text())
    return {
        alias.asname: (statement.module, alias.name)
        for statement in stub.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }


def test_the_names_for_type_checkers_are_the_names_for_users():
    assert sorted(declared()) == marey.__all__
    assert all(asname == name for asname, (_, name) in declared().items())


@pytest.mark.parametrize("name", marey.__all__)
def test_every_public_name_is_what_its_home_says_and_documented(name):
    home, _ = declared()[name]
    value = getattr(marey, name)
    if isinstance(value, ModuleType):
        assert value is importlib.import_module(f"{home}.{name}")
    else:
        assert value is getattr(importlib.import_module(home), name)
    assert inspect.getdoc(value)


def test_names_stay_what_they_are_when_every_module_is_imported():
    before = {name: getattr(marey, name) for name in marey.__all__}
    for module in pkgutil.walk_packages(marey.__path__, "marey."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    assert {name: getattr(marey, name) for name in marey.__all__} == before


def test_the_list_of_names_is_for_users():
    assert set(dir(marey)) == {*marey.__all__, "__version__"}
    assert marey.__all__ == sorted(set(marey.__all__))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'marey' has no attribute 'sovle'"):
        _ = marey.sovle  # type: ignore[attr-defined]
    with pytest.raises(ImportError):
        from marey import sovle  # type: ignore[attr-defined]  # noqa: F401


def test_the_version_is_that_of_the_distribution():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert marey.__version__ == project["version"]


def test_importing_is_free(tmp_path):
    code = (
        "import sys; before = set(sys.modules); import marey; "
        "new = {n.partition('.')[0] for n in set(sys.modules) - before}; "
        "extra = sorted(new - sys.stdlib_module_names - {'marey'}); "
        "sys.exit(', '.join(extra) if extra else 0)"
    )
    clean = {**os.environ, "HOME": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-W", "error", "-c", code]
    run = subprocess.run(
        command, cwd=tmp_path, env=clean, capture_output=True, text=True
    )
    assert (run.stdout, run.stderr, run.returncode) == ("", "", 0)
    assert list(tmp_path.iterdir()) == []


def test_the_modules_of_a_solve_bring_no_slow_package_along():
    """Kernels, SciPy and XML take as long to import as a short take to solve."""
    code = (
        "import sys, marey.cli, marey.cli.solve_output, marey.editing; "
        "slow = {'scipy', 'numba', 'llvmlite', 'xml', 'http', 'matplotlib', "
        "'jaxtyping'}; "
        "sys.exit(', '.join(sorted(slow & set(sys.modules))) or 0)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (run.stderr, run.returncode) == ("", 0)
