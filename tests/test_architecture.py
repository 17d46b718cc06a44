"""Dependencies point one way; the table below is the whole rule."""

import ast
from pathlib import Path

import pytest

import marey

SOURCE = Path(marey.__file__).parent

# A module may import what stands in the rows below its own. Parts of one row see each
# other only in the rows marked so. Parts that do not exist yet are simply absent.
LAYERS = (  # from the ground up
    ({"errors", "report"}, "together"),
    ({"geometry", "robust", "rigid"}, "together"),
    (
        {"take", "bodies", "joint_fits", "tree", "skeleton", "motion", "solution"},
        "together",
    ),
    (
        {"io", "clean", "segment", "joints", "topology", "rig", "calibrate", "pose"}
        | {"synth", "virtual"},
        "apart",
    ),
    ({"edits"}, "apart"),
    ({"solve", "metrics", "plot"}, "apart"),
    ({"live", "batch", "view", "papers"}, "apart"),
    ({"cli", "__main__"}, "together"),
)
NEVER_IMPORTED = {"cli", "__main__", "view"}
LONGEST_FILE = 400

FACE = "__init__"


def name_of(path):
    name = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
    return name.removesuffix(".__init__")


MODULES = {name_of(path): path for path in sorted(SOURCE.rglob("*.py"))}
INSIDE = [module for module in MODULES if module != FACE]


def is_kernel(module):
    return module.rpartition(".")[2].endswith("_kernel")


def part_of(module):
    """The longest entry of the table that the module belongs to."""
    known = [part for parts, _ in LAYERS for part in parts]
    mine = [p for p in known if module == p or module.startswith(p + ".")]
    return max(mine, key=len, default=None)


def level_of(part):
    return next(i for i, (parts, _) in enumerate(LAYERS) if part in parts)


def imports(tree):
    """Every imported module as a dotted name, `from a import b` as both."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield f"{node.module}.{alias.name}"


def own_imports(module):
    """Modules of marey that a module imports; the package itself is its face."""
    for name in imports(parsed(module)):
        if name.partition(".")[0] == "marey":
            inner = name.removeprefix("marey").removeprefix(".")
            while inner and inner not in MODULES:
                inner = inner.rpartition(".")[0]
            yield inner or FACE


def parsed(module):
    return ast.parse(MODULES[module].read_text())


def may_import(part, other):
    if other == part:
        return True
    if other in NEVER_IMPORTED:
        return level_of(part) == level_of(other)
    if level_of(other) == level_of(part):
        return LAYERS[level_of(part)][1] == "together"
    return level_of(other) < level_of(part)


def allowed(module, other):
    if is_kernel(other):
        return True
    if is_kernel(module):
        return False
    if other == FACE:
        return part_of(module) == "cli"
    return may_import(part_of(module), part_of(other))


def test_every_module_has_its_place_in_the_table():
    assert [m for m in INSIDE if not is_kernel(m) and part_of(m) is None] == []


def test_imports_point_down():
    pairs = [(module, other) for module in INSIDE for other in own_imports(module)]
    assert [pair for pair in pairs if not allowed(*pair)] == []


def test_only_kernels_import_numba():
    users = {m for m in MODULES for name in imports(parsed(m)) if "numba" in name}
    assert [module for module in users if not is_kernel(module)] == []


def test_kernels_are_imported_only_where_they_are_called():
    slow = [
        (module, name)
        for module in MODULES
        if not is_kernel(module)
        for node in parsed(module).body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in imports(node)
        if "_kernel" in name
    ]
    assert slow == []


def test_nothing_prints_outside_the_command_line():
    printing = {
        module
        for module in MODULES
        for node in ast.walk(parsed(module))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "print"
    }
    assert [module for module in printing if part_of(module) != "cli"] == []


def test_no_file_is_longer_than_a_reader_can_hold():
    lines = {m: len(path.read_text().splitlines()) for m, path in MODULES.items()}
    assert {m: n for m, n in lines.items() if n > LONGEST_FILE} == {}


@pytest.mark.parametrize(
    ("part", "other", "may"),
    [
        ("take", "report", True),
        ("motion", "geometry", True),
        ("solution", "joint_fits", True),
        ("geometry", "errors", True),
        ("geometry", "take", False),
        ("take", "io", False),
        ("io", "synth", False),
        ("joints", "segment", False),
        ("solve", "io", True),
        ("solve", "edits", True),
        ("io", "edits", False),
        ("batch", "solve", True),
        ("view", "batch", False),
        ("solve", "view", False),
        ("papers", "plot", True),
        ("plot", "metrics", False),
        ("cli", "view", False),
        ("batch", "cli", False),
        ("__main__", "cli", True),
    ],
)
def test_the_table_says_what_it_means(part, other, may):
    assert may_import(part, other) == may
