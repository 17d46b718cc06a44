"""Dependencies point one way; the table below is the whole rule."""

import ast
import importlib
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

import marey
from marey.anatomy import names

SOURCE = Path(marey.__file__).parent
ROOT = SOURCE.parents[1]
PAGE = ROOT / "docs" / "architecture.md"
EVERYWHERE = [
    place.relative_to(ROOT)
    for folder in (SOURCE, ROOT / "benchmarks")
    for place in (folder, *folder.rglob("*"))
]

# A module may import what stands in the rows below its own. Parts of one row see each
# other only in the rows marked so. Parts that do not exist yet are simply absent.
LAYERS = (  # from the ground up
    ({"errors", "report", "kernels"}, "together"),
    ({"numerics", "workers"}, "apart"),
    (
        {"take", "bodies", "joint_fits", "tree", "skeleton", "motion", "solution"}
        | {"options", "tables"},
        "together",
    ),
    ({"articulated"}, "apart"),
    ({"anatomy"}, "apart"),
    ({"clinical"}, "apart"),
    (
        {"io", "cleaning", "segmentation", "joints", "topology", "rig", "calibration"}
        | {"pose", "synth", "virtual", "attach"},
        "apart",
    ),
    ({"edits"}, "apart"),
    ({"pipeline", "metrics", "plot"}, "apart"),
    ({"editing", "live"}, "apart"),
    ({"library", "viewer", "papers"}, "apart"),
    ({"cli", "__main__"}, "together"),
)
NEVER_IMPORTED = {"cli", "__main__", "viewer"}
MOST_MODULES = 12
REGISTERED = ("io/formats", "segmentation/methods", "cli/commands")
"""Modules in one folder: more are more than one idea."""

SPELL_OUT_BODIES = ("anatomy", "calibration", "io", "live.codecs", "papers", "synth")
"""Parts that may write the names of bodies and sides as text: anatomy defines them, io
has the words of formats and live.codecs those of protocols, synth and papers make
figures of their own, and calibration has tables of its own."""

FACE = "__init__"


def name_of(path):
    name = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
    return name.removesuffix(".__init__")


MODULES = {name_of(path): path for path in sorted(SOURCE.rglob("*.py"))}
INSIDE = [module for module in MODULES if module != FACE]


def is_kernel(module):
    return module.endswith("_kernel") or module == "numerics.jit"


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


@cache
def parsed(module):
    return ast.parse(MODULES[module].read_text())


@pytest.fixture(scope="module", autouse=True)
def forget_parsed():
    yield
    parsed.cache_clear()


def may_import(part, other):
    if other == part:
        return True
    if other in NEVER_IMPORTED:
        return level_of(part) == level_of(other)
    if level_of(other) == level_of(part):
        return LAYERS[level_of(part)][1] == "together"
    return level_of(other) < level_of(part)


def allowed(module, other):
    if is_kernel(other) or (module == "numerics.jit" and part_of(other) == "kernels"):
        return True
    if is_kernel(module):
        return False
    if other == FACE:
        return part_of(module) in ("cli", "papers")
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
        if any(part.endswith("_kernel") for part in name.split("."))
    ]
    assert slow == []


def test_names_of_bodies_come_from_anatomy():
    """A name is written once, so that it can be found and changed there."""
    bodies = {names.HIPS, names.TAIL, *names.TRUNK, *names.ARM, *names.LEG}
    spelt_out = [
        (module, node.value)
        for module in MODULES
        if not module.startswith(SPELL_OUT_BODIES)
        for node in ast.walk(parsed(module))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if node.value in names.SIDES or names.without_side(node.value) in bodies
    ]
    assert spelt_out == []


def test_nothing_prints_outside_the_command_line():
    printing = {
        module
        for module in MODULES
        for node in ast.walk(parsed(module))
        if isinstance(node, ast.Call) and dotted(node.func) == "print"
    }
    assert [module for module in printing if part_of(module) != "cli"] == []


def test_no_folder_holds_more_than_one_idea():
    """Folders of a registry grow by one entry in one file."""
    folders = Counter(path.parent for path in MODULES.values() if path.stem != FACE)
    crowded = {
        str(folder): n
        for folder, n in folders.items()
        if n > MOST_MODULES and not str(folder).endswith(REGISTERED)
    }
    assert crowded == {}


def test_no_module_is_hidden_by_a_name_of_its_package():
    """`import marey.a.b as b` gives the module, whatever the package exports."""
    hidden = []
    for module in INSIDE:
        if module == "__main__":
            continue
        loaded = importlib.import_module(f"marey.{module}")
        package, _, name = f"marey.{module}".rpartition(".")
        if getattr(importlib.import_module(package), name, loaded) is not loaded:
            hidden.append(module)
    assert hidden == []


def exported(package):
    """Names that the face of a package offers: its own, and those it imports as such.

    Where it imports a module under the name of the module, or lists one in `__all__`,
    the names of that module are public as well.
    """
    for node in parsed(package).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.ImportFrom):
            yield from (a.name for a in node.names if a.asname == a.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if ast.unparse(target) == "__all__":
                    yield from ast.literal_eval(node.value)
                elif isinstance(target, ast.Name):
                    yield target.id


def is_public(name):
    """Whether a dotted name below marey is one that a user may rely on."""
    first, _, rest = name.partition(".")
    if first == "papers" or MODULES.get(first, SOURCE).stem == first:
        return True  # the papers themselves, and the nouns
    if first in MODULES and rest:
        return rest.partition(".")[0] in set(exported(first))
    return first in MODULES or first in marey.__all__


def dotted(node):
    """A name or a chain of attributes as a dotted name; "" for anything else."""
    if isinstance(node, ast.Attribute):
        base = dotted(node.value)
        return f"{base}.{node.attr}" if base else ""
    return node.id if isinstance(node, ast.Name) else ""


def names_used(tree):
    """Dotted names below marey that a module imports, or reaches by attributes."""
    homes = {"marey": "marey"}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                homes[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    used = set(homes.values())
    for chain in map(dotted, ast.walk(tree)):
        first, dot, rest = chain.partition(".")
        used.add(homes.get(first, "") + dot + rest)
    return {name.removeprefix("marey.") for name in used if name.startswith("marey.")}


def test_papers_call_marey_by_its_public_names_as_a_user_does():
    private = {
        (module, name)
        for module in INSIDE
        if part_of(module) == "papers"
        for name in names_used(parsed(module))
        if not is_public(name)
    }
    assert private == set()


@pytest.mark.parametrize(
    ("name", "public"),
    [
        ("fit_joints", True),
        ("joints.fit_sphere", True),
        ("joints.sphere.fit.fit_sphere", False),
        ("numerics.robust.tukey", True),
        ("plot.style.BLUE", True),
        ("plot.scene.build_plot_scene", False),
        ("take.Take", True),
    ],
)
def test_public_is_what_a_face_exports(name, public):
    assert is_public(name) == public


# --- the page -------------------------------------------------------------------------


def quoted(text):
    """What stands between backquotes, blocks aside: "stages/takes.py: read_takes"."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))


@cache
def places(path):
    """Files and folders of the sources whose path ends so."""
    ending = f"/{path.rstrip('/')}"
    return [place for place in EVERYWHERE if f"/{place}".endswith(ending)]


def defines(place, name):
    """Whether a file, or the face of a package, has a function of this name."""
    file = ROOT / (place if place.suffix else place / "__init__.py")
    return bool(re.search(rf"(def|as) {name}\b", file.read_text(encoding="utf-8")))


def test_the_page_names_files_and_functions_that_are_there():
    lost = []
    for one in quoted(PAGE.read_text(encoding="utf-8")):
        path, colon, name = one.partition(": ")
        if "*" in path or not ("/" in path or path.endswith(".py") or colon):
            continue
        found = places(path)
        if not found or (colon and not any(defines(place, name) for place in found)):
            lost.append(one)
    assert lost == []


def test_the_way_of_one_take_has_the_stages_in_the_order_of_the_code():
    page = PAGE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\w+) \| `stages/.+?: (\w+)`(?:, `(\w+)`)? \|", page, re.M)
    stages = [row[0] for row in rows]
    called = [name for _, *names in rows[1:] for name in names if name]
    tree = parsed("pipeline.run")
    functions = {f.name: f for f in tree.body if isinstance(f, ast.FunctionDef)}
    run = list(names_in_order(functions["solve_takes"], functions))
    assert stages[:3] == ["read", "clean", "segment"]
    assert [name for name in run if name in called] == called


def names_in_order(node, functions):
    """Names in the order in which they are written, functions of the file unfolded."""
    for one in ast.iter_child_nodes(node):
        if isinstance(one, ast.Name) and one.id in functions:
            yield from names_in_order(functions[one.id], functions)
        elif isinstance(one, ast.Name):
            yield one.id
        yield from names_in_order(one, functions)


@pytest.mark.parametrize(
    ("part", "other", "may"),
    [
        ("take", "report", True),
        ("motion", "numerics", True),
        ("solution", "joint_fits", True),
        ("numerics", "errors", True),
        ("numerics", "take", False),
        ("take", "io", False),
        ("io", "synth", False),
        ("joints", "segmentation", False),
        ("anatomy", "articulated", True),
        ("pose", "anatomy", True),
        ("pipeline", "io", True),
        ("pipeline", "edits", True),
        ("pipeline", "editing", False),
        ("editing", "pipeline", True),
        ("live", "pipeline", True),
        ("live", "editing", False),
        ("viewer", "live", True),
        ("io", "edits", False),
        ("library", "pipeline", True),
        ("viewer", "library", False),
        ("pipeline", "viewer", False),
        ("papers", "plot", True),
        ("plot", "metrics", False),
        ("cli", "viewer", False),
        ("library", "cli", False),
        ("__main__", "cli", True),
    ],
)
def test_the_table_says_what_it_means(part, other, may):
    assert may_import(part, other) == may
