"""How easy the code is to read: one table, so that two commits can be compared.

    python -m benchmarks.tools.code_size [--source DIR] [--json FILE] [--run]
        [--page FILE]

Lines of code are those that are not blank, comment or docstring. The body of a function
runs from its first statement after the docstring to its last line. Percentiles are
interpolated.

Cognitive complexity is Sonar's (G. Ann Campbell, "Cognitive Complexity"): 1, and 1 more
per level of nesting, for every if, for, while, except, match and conditional
expression; 1 for every elif, else and sequence of like boolean operators.
Comprehensions and recursion cost nothing. A nested function counts in the one around
it, a level deeper.

Constants are numeric literals that may have been tuned: each literal, also in a tuple
or dict, except

- 0, 1, 2 and 0.5, of either sign;
- factors of units (10, 100, 1000, 1e-3, 1e6, 1e-6, 60, 90, 180, 360) multiplied or
  divided, and n in 2**n;
- whole numbers in subscripts, shapes and ranges, unless they are compared there (masks)
  or the loop variable is `_` (a number of iterations); axis=, ddof= and the like, and
  the ranges of options (low=, high=, above=);
- guards, counted apart: caps (MAX_ITERATIONS and the like), floors (TINY, ROUNDING) up
  to 1e-4, all values up to 1e-9, and bounds of memory, caches and messages (BYTES,
  PER_CHUNK, CACHED, LISTED, LONGEST); in folders that serve (SERVING) also times to
  wait (PAUSE_S, TIMEOUT_S, seconds) and what a sender may ask for (MAX_QUEUE,
  MAX_CLIENTS);
- coefficients of formulas, counted apart: whole numbers up to 12 in sums, products and
  quotients inside a function (dimensions, 4/3 of a sphere) or named as degrees of
  freedom (POSE_FREEDOM), divisors of Taylor series (24, 120 ...), and every other 3
  inside a function, since space has three dimensions and three points fix a pose;
- published values, counted apart: a comment or docstring of the constant names a
  source, such as "Winter 2009", "29 (1996)" or "RFC 3550", or says "published"; and the
  whole numbers of network protocols: all below live/codecs, and every PORT.

"Named" are assigned to a name at module level or in a class body, which includes the
defaults of options; "members" stand in a tuple, list or dict assigned there; all others
are "in functions". Folders that do not estimate (OUTSIDE) are counted apart.

With --run, a take is generated and solved twice; the second time every call of a
function below the source is recorded. Compiled kernels are not seen. A package change
is a call from one top-level package into another; root modules are one package.

Duplicated lines are lines of code in runs of six or more that stand in another place as
well, to the letter or with other names, strings and numbers. Imports and lines without
a name do not count, nor runs that stand in more than eight places.

With --page, the figures replace the table in a page such as docs/code.md.
"""

import argparse
import ast
import inspect
import io
import json
import keyword
import re
import statistics
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain, pairwise, takewhile
from pathlib import Path
from types import FrameType
from typing import NamedTuple

OUTSIDE = {"io", "view", "viewer", "cli", "plot", "papers", "synth", "metrics"}
SERVING = {"live", "library", "workers", "kernels"}
PROTOCOLS = "live/codecs/"
ROOT = "(root)"
COMPLEX = 15

FIRST_VERSION = {
    "modules": 369,
    "modules in one folder, max": 45,
    "lines of code": 43800,
    "cognitive complexity above 15, functions": 58,
    "constants": 702,
    "duplicated lines, to the letter": 187,
    "duplicated lines, other names included": 2242,
}
"""Figures of the version before the packages were divided by idea, counted likewise."""

TABLE = re.compile(r"(?<=<!-- code_size -->\n).*?(?=<!-- end -->)", re.DOTALL)

PLAIN = {0, 1, 2, 0.5}
UNITS = {10, 100, 1000, 1e-3, 1e6, 1e-6, 60, 90, 180, 360}
SMALLEST = 1e-9
LARGEST_COEFFICIENT = 12
TAYLOR_DIVISORS = {20, 24, 30, 42, 56, 72, 120}
DIMENSIONS = 3
CAP = re.compile(r"ITERATIONS|_BYTES|_PER_CHUNK|_CACHED|_LISTED|LONGEST_|NICENESS")
FLOOR = re.compile(r"TINY|ROUNDING")
LIMIT = re.compile(
    r"(?:PAUSE|RETRY|FLUSH|CONNECT|BUFFER|INTERRUPT|TIMEOUT)_S|seconds"
    r"|MAX_(?:QUEUE|CLIENTS|CHANNELS|ATTEMPTS|DEPTH|NAMES|POINTS|SEGMENTS|CHARACTERS)"
)
PORT = re.compile(r"(?:\w+_)?PORT")
LARGEST_FLOOR = 1e-4
YEAR = r"(?:18|19|20)\d\d"
SOURCE = re.compile(
    rf"(?i:\bpublished)|\({YEAR}\)|\bRFC \d+"
    rf"|\b[A-Z][\w'-]+(?: et al\.| and [A-Z][\w'-]+)?,? ?\(?{YEAR}\b"
)
STRUCTURE_KEYWORDS = re.compile(
    r"above|ax[ie]s\d?|ddof|decimals|digits|high|low|maxsize|maxsplit|ndigits|ndim|ndmin|ord|shape|size"
    r"|stacklevel"
)
SHAPE_FIRST = re.compile(r"zeros|empty|ones|full|eye|identity")
SHAPE_ALL = re.compile(
    r"Array|aligned_zeros|arange|broadcast_to|empty_array|moveaxis|range|repeat|reshape"
    r"|round|slice|swapaxes|tile|to_bytes|transpose"
)

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
WITH_ELSE = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.Try)
BRANCHES = (*WITH_ELSE[:-1], ast.ExceptHandler, ast.IfExp, ast.Match)
CONTAINERS = (ast.Tuple, ast.List, ast.Set, ast.Dict)


RUN = 6
MAX_PLACES = 8
SHAPES = {tokenize.NAME: "name", tokenize.STRING: "text", tokenize.NUMBER: "number"}

Place = tuple[str, int]


class Row(NamedTuple):
    """One line of the table."""

    measure: str
    value: float
    note: str = ""


class Module(NamedTuple):
    """A parsed file."""

    path: Path
    """Relative to the source."""

    tree: ast.Module
    lines: list[str]
    prose: dict[int, str]
    """Comments and docstrings by line number."""

    n_code: int
    """Lines of code."""


class CodeLine(NamedTuple):
    """A line of code: its file and number, its letters, and its kinds of tokens."""

    place: Place
    text: str
    shape: str


class Function(NamedTuple):
    """A function with its dotted name."""

    name: str
    node: ast.FunctionDef | ast.AsyncFunctionDef
    nested: bool


class Constant(NamedTuple):
    """A numeric literal that is not structure."""

    path: str
    line: int
    column: int
    value: float
    name: str
    """The name it is assigned to, empty without one."""

    place: str
    """"named", "member" or "function"."""

    status: str
    """"tuned", "guard", "formula", "published" or "plain" (0, 1, 2 or 0.5)."""


# Files


def read_module(path: Path, source: Path) -> Module:
    text = path.read_text(encoding="utf-8")
    tree, lines = ast.parse(text, str(path)), text.splitlines()
    docstrings = {
        line: lines[line - 1]
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt) and is_docstring(node)
        for line in lines_of(node)
    }
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    comments = [token for token in tokens if token.type == tokenize.COMMENT]
    alone = {t.start[0] for t in comments if t.line.lstrip().startswith("#")}
    n_code = sum(
        bool(line.strip()) and i not in docstrings and i not in alone
        for i, line in enumerate(lines, 1)
    )
    prose = {t.start[0]: t.string.lstrip("# ") for t in comments} | docstrings
    return Module(path.relative_to(source), tree, lines, prose, n_code)


def is_docstring(node: ast.stmt) -> bool:
    """Whether a statement is a bare string, of a definition or an attribute."""
    value = node.value if isinstance(node, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def lines_of(node: ast.stmt) -> range:
    """Return the line numbers of a statement."""
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def package_of(path: Path) -> str:
    """Return the top-level folder of a path below the source."""
    return path.parts[0] if len(path.parts) > 1 else ROOT


# Functions


def functions_of(node: ast.AST, name: str, nested: bool = False) -> Iterator[Function]:
    """Return all functions and methods below a node of the given name."""
    for child in ast.iter_child_nodes(node):
        inner = f"{name}.{getattr(child, 'name', '')}"
        if isinstance(child, FUNCTIONS):
            yield Function(inner, child, nested)
            yield from functions_of(child, inner, nested=True)
        else:
            is_class = isinstance(child, ast.ClassDef)
            yield from functions_of(child, inner if is_class else name, nested)


def body_length(function: Function) -> int:
    """Return the lines of a function's body without its docstring."""
    body = function.node.body
    statements = body[1:] if is_docstring(body[0]) else body
    return lines_of(function.node).stop - statements[0].lineno if statements else 0


def cognitive_complexity(node: ast.AST, nesting: int) -> int:
    """Return the cognitive complexity of a node and all below it."""
    total = 1 + nesting if isinstance(node, BRANCHES) else 0
    total += isinstance(node, ast.BoolOp)
    total += isinstance(node, WITH_ELSE) and bool(node.orelse)  # else or elif
    for field, value in ast.iter_fields(node):
        level = nesting + nests(node, field)
        for child in value if isinstance(value, list) else [value]:
            if field == "orelse" and is_elif(node, child):  # counted with its if
                total += cognitive_complexity(child, nesting) - nesting - 1
            elif isinstance(child, ast.AST):
                total += cognitive_complexity(child, level)
    return total


def nests(node: ast.AST, field: str) -> bool:
    """Whether what stands in a field of a node is a level deeper."""
    if isinstance(node, ast.Try):
        return field == "orelse"
    deeper = (*BRANCHES, *FUNCTIONS, ast.Lambda)
    return isinstance(node, deeper) and field in {"body", "orelse", "cases"}


def is_elif(node: ast.AST, child: object) -> bool:
    """Whether what stands in the else of a node is an elif: in the same column."""
    if isinstance(node, ast.If) and isinstance(child, ast.If):
        return child.col_offset == node.col_offset
    return False


# Constants


def constants_of(module: Module) -> Iterator[Constant]:
    """Return the numeric literals of a module that are not structure."""
    parents = {
        child: node
        for node in ast.walk(module.tree)
        for child in ast.iter_child_nodes(node)
    }
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            chain: list[ast.AST] = [node]
            while chain[-1] in parents:
                chain.append(parents[chain[-1]])
            if not is_structure(chain, node.value):
                yield describe_constant(module, node, chain)


def is_structure(chain: Sequence[ast.AST], value: object) -> bool:
    """Whether a literal is an index, a shape, an axis or a factor of units.

    Args:
        chain: The literal and all that it stands in, outwards.
        value: Of the literal.
    """
    if is_unit_factor(chain, value) or is_power_of_two(chain):
        return True
    for i, (child, parent) in enumerate(pairwise(chain)):
        if isinstance(parent, (ast.Compare, ast.stmt)):
            return False
        if isinstance(parent, ast.keyword):
            if STRUCTURE_KEYWORDS.fullmatch(parent.arg or ""):
                return True
        elif isinstance(value, int) and is_index(child, parent, chain[i + 2]):
            return True
    return False


def is_unit_factor(chain: Sequence[ast.AST], value: object) -> bool:
    """Whether a literal scales units: a direct operand of * or /."""
    parent = chain[2] if isinstance(chain[1], ast.UnaryOp) else chain[1]
    if not isinstance(parent, (ast.BinOp, ast.AugAssign)) or value not in UNITS:
        return False
    return isinstance(parent.op, (ast.Mult, ast.Div))


def is_power_of_two(chain: Sequence[ast.AST]) -> bool:
    """Whether a literal is the n of 2**n."""
    parent = chain[1]
    if not (isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Pow)):
        return False
    base = parent.left
    return isinstance(base, ast.Constant) and base.value == 2 and base is not chain[0]


def is_coefficient(chain: Sequence[ast.AST], value: float) -> bool:
    """Whether a literal in a function belongs to a formula and not to a decision."""
    parent = chain[2] if isinstance(chain[1], ast.UnaryOp) else chain[1]
    if value == DIMENSIONS:
        return True
    if not isinstance(parent, (ast.BinOp, ast.AugAssign)) or value != round(value):
        return False
    is_divisor = isinstance(parent.op, ast.Div) and value in TAYLOR_DIVISORS
    return is_divisor or value <= LARGEST_COEFFICIENT


def is_index(child: ast.AST, parent: ast.AST, outer: ast.AST) -> bool:
    """Whether a node stands in a subscript, a shape or a range."""
    if isinstance(parent, ast.Subscript):
        return child is parent.slice
    if not isinstance(parent, ast.Call) or child not in parent.args:
        return False
    name = getattr(parent.func, "attr", getattr(parent.func, "id", ""))
    if isinstance(outer, (ast.For, ast.comprehension)) and name == "range":
        return ast.unparse(outer.target) != "_"
    first = child is parent.args[0] and SHAPE_FIRST.fullmatch(name)
    return bool(first or SHAPE_ALL.fullmatch(name))


def describe_constant(
    module: Module, literal: ast.Constant, chain: Sequence[ast.AST]
) -> Constant:
    value = literal.value
    assert isinstance(value, (int, float))
    name, place, assigned = place_of(chain)
    if value in PLAIN:
        status = "plain"
    elif is_guard(name, value) or is_limit(module, name):
        status = "guard"
    elif is_protocol(module, name, value):
        status = "published"
    elif is_freedom(name, value) or (
        place == "function" and is_coefficient(chain, value)
    ):
        status = "formula"
    else:
        text = f"{name} {prose_of(module, literal, assigned)}"
        status = "published" if SOURCE.search(text) else "tuned"
    path = module.path.as_posix()
    return Constant(
        path, literal.lineno, literal.col_offset, value, name, place, status
    )


def is_guard(name: str, value: float) -> bool:
    """Whether a number only bounds effort, memory, text or rounding."""
    is_floor = value <= LARGEST_FLOOR and FLOOR.search(name)
    return bool(value <= SMALLEST or CAP.search(name) or is_floor)


def is_freedom(name: str, value: float) -> bool:
    """Whether a number counts degrees of freedom."""
    return name.endswith("_FREEDOM") and value in range(LARGEST_COEFFICIENT + 1)


def is_limit(module: Module, name: str) -> bool:
    """Whether a number bounds what is waited for, or what others may ask for."""
    return package_of(module.path) in SERVING and bool(LIMIT.fullmatch(name))


def is_protocol(module: Module, name: str, value: float) -> bool:
    """Whether a number is part of a network protocol."""
    is_code = module.path.as_posix().startswith(PROTOCOLS) and isinstance(value, int)
    return is_code or bool(PORT.fullmatch(name))


def place_of(chain: Sequence[ast.AST]) -> tuple[str, str, ast.stmt | None]:
    """Return the name and place of a literal, and its assignment outside functions."""
    path = list(takewhile(lambda node: not isinstance(node, ast.stmt), chain))
    statement = chain[len(path)]
    if isinstance(statement, ast.Assign):
        target = statement.targets[0]
    elif isinstance(statement, ast.AnnAssign):
        target = statement.target
    else:
        return "", "function", None
    if isinstance(target, ast.Tuple) and isinstance(path[-1], ast.Tuple):  # A, B = 1, 2
        values = path.pop()
        target = target.elts[list(ast.iter_child_nodes(values)).index(path[-1])]
    name = ast.unparse(target)
    if any(isinstance(node, (*FUNCTIONS, ast.Lambda)) for node in chain):
        return name, "function", None
    held = any(isinstance(node, CONTAINERS) for node in path)
    return name, "member" if held else "named", statement


def prose_of(module: Module, literal: ast.Constant, assigned: ast.stmt | None) -> str:
    """Return the comments on and right above a literal, and a constant's docstring."""
    lines, prose = module.lines, module.prose
    rows = lines_of(assigned) if assigned else [literal.lineno]
    first, last = rows[0], rows[-1]
    while first > 1 and lines[first - 2].lstrip().startswith("#"):
        first -= 1
    while assigned and last + 1 in prose and not lines[last].lstrip().startswith("#"):
        last += 1
    return " ".join(prose.get(line, "") for line in range(first, last + 1))


# Calls of a solve


class CallRecorder:
    """A profile function that records which modules are entered from which package."""

    def __init__(self, source: Path) -> None:
        self.modules: set[Path] = set()
        self.changes: Counter[tuple[str, str]] = Counter()
        self._source = source
        self._path = cache(self._path_of)

    def _path_of(self, name: str) -> Path | None:
        below = Path(name).is_relative_to(self._source)
        return Path(name).relative_to(self._source) if below else None

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """Record a call of a function; bodies of modules and classes are none."""
        path = self._path(frame.f_code.co_filename)
        is_function = frame.f_code.co_flags & inspect.CO_OPTIMIZED
        if event != "call" or path is None or not is_function:
            return
        self.modules.add(path)
        caller, origin = frame.f_back, None
        while caller and origin is None:
            origin = self._path(caller.f_code.co_filename)
            caller = caller.f_back
        if origin and package_of(origin) != package_of(path):
            self.changes[package_of(origin), package_of(path)] += 1


def record_solve(source: Path) -> CallRecorder:
    """Return the calls of one solve of a generated walk."""
    sys.path.insert(0, str(source.parent))
    import marey

    if Path(marey.__file__).resolve().parent != source:
        sys.exit(f"--run imported {marey.__file__}, not {source}")
    take = marey.synth.human(seed=0).record("walk", seconds=2.0)
    marey.solve(take)  # imports and compiles
    recorder = CallRecorder(source)
    sys.setprofile(recorder)
    try:
        marey.solve(take)
    finally:
        sys.setprofile(None)
    return recorder


# Rows


def spread_rows(measure: str, sizes: Sequence[tuple[int, str]]) -> list[Row]:
    """Return median, 90th percentile and maximum, with the name of the largest."""
    values = [size for size, _ in sizes]
    p90 = round(statistics.quantiles(values, n=10, method="inclusive")[-1])
    return [
        Row(f"{measure}, median", statistics.median(values)),
        Row(f"{measure}, p90", p90),
        Row(f"{measure}, max", *max(sizes)),
    ]


def file_rows(modules: Sequence[Module]) -> list[Row]:
    folders = Counter(m.path.parent.as_posix() for m in modules)
    largest, most = folders.most_common(1)[0]
    code: Counter[str] = Counter()
    for module in modules:
        code[package_of(module.path)] += module.n_code
    return [
        Row("modules", len(modules)),
        Row("folders with modules", len(folders)),
        Row("modules in one folder, max", most, largest),
        *spread_rows("lines per file", [(len(m.lines), str(m.path)) for m in modules]),
        Row("lines of code", code.total()),
        *(Row(f"lines of code, {name}", code[name]) for name in sorted(code)),
    ]


def function_rows(modules: Iterable[Module]) -> list[Row]:
    functions = [
        function
        for module in modules
        for function in functions_of(
            module.tree, ".".join(module.path.with_suffix("").parts)
        )
    ]
    costs = [
        (sum(cognitive_complexity(child, 0) for child in f.node.body), f.name)
        for f in functions
        if not f.nested
    ]
    above = sum(cost > COMPLEX for cost, _ in costs)
    return [
        Row("functions", len(functions)),
        *spread_rows("body lines", [(body_length(f), f.name) for f in functions]),
        Row(f"cognitive complexity above {COMPLEX}, functions", above),
        Row("cognitive complexity, max", *max(costs)),
    ]


def constant_rows(constants: Sequence[Constant]) -> list[Row]:
    inside = [c for c in constants if package_of(Path(c.path)) not in OUTSIDE]
    status = Counter(c.status for c in inside)
    tuned = [c for c in inside if c.status == "tuned"]
    others = sum(c.status == "tuned" for c in constants) - len(tuned)
    place = Counter(c.place for c in tuned)
    whole = sum(isinstance(c.value, int) for c in tuned if c.place == "function")
    plain = sum(c.value in (2, 0.5) and c.place == "named" for c in inside)
    return [
        Row("constants", len(tuned)),
        Row("constants, named", place["named"]),
        Row("constants, members of tuples and dicts", place["member"]),
        Row("constants, in functions", place["function"], f"{whole} whole numbers"),
        Row("named as 2 or 0.5, not in constants", plain),
        Row("guards, not in constants", status["guard"]),
        Row("in formulas, not in constants", status["formula"]),
        Row("published, not in constants", status["published"]),
        Row("constants outside the estimators", others),
    ]


def duplicate_rows(modules: Iterable[Module]) -> list[Row]:
    """Return the lines in runs that stand in several places, by letter and by shape."""
    lines = [code_lines(module) for module in modules]
    exact = [[(line.place, line.text) for line in file] for file in lines]
    shape = [[(line.place, line.shape) for line in file] for file in lines]
    same = len(repeated_places(exact))
    return [
        Row("duplicated lines, to the letter", same),
        Row("duplicated lines, other names included", len(repeated_places(shape))),
    ]


def code_lines(module: Module) -> list[CodeLine]:
    """Return the lines of a module that hold a name, without imports and docstrings."""
    imports = {
        line
        for node in ast.walk(module.tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for line in lines_of(node)
    }
    words: dict[int, list[str]] = defaultdict(list)
    text = "\n".join(module.lines) + "\n"
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in SHAPES or token.type == tokenize.OP:
            words[token.start[0]].append(token_shape(token))
    return [
        CodeLine((str(module.path), i), module.lines[i - 1].strip(), " ".join(shape))
        for i, shape in sorted(words.items())
        if "name" in shape and i not in imports and i not in module.prose
    ]


def token_shape(token: tokenize.TokenInfo) -> str:
    """Return the kind of a name, string or number, and other tokens as they are."""
    if token.type == tokenize.NAME and keyword.iskeyword(token.string):
        return token.string
    return SHAPES.get(token.type, token.string)


def repeated_places(files: Iterable[Sequence[tuple[Place, str]]]) -> set[Place]:
    """Return the places of lines in runs of `RUN` that stand in two to eight places."""
    runs: dict[tuple[str, ...], list[tuple[Place, ...]]] = defaultdict(list)
    for file in files:
        for i in range(len(file) - RUN + 1):
            places, lines = zip(*file[i : i + RUN], strict=True)
            runs[lines].append(places)
    repeated = (places for places in runs.values() if 2 <= len(places) <= MAX_PLACES)
    return {place for run in chain.from_iterable(repeated) for place in run}


def run_rows(source: Path) -> list[Row]:
    calls = record_solve(source)
    packages = Counter(map(package_of, calls.modules))
    folders = sum(n for pair, n in calls.changes.items() if ROOT not in pair)
    return [
        Row("modules entered by a solve", len(calls.modules)),
        Row("modules entered per package, mean", statistics.mean(packages.values())),
        Row("package changes per solve", calls.changes.total()),
        Row("package changes per solve, root modules aside", folders),
    ]


def markdown(rows: Iterable[Row]) -> str:
    cells = [("measure", "value", "note"), ("---", "---:", "---")]
    cells += [(row.measure, f"{row.value:.10g}", row.note) for row in rows]
    width = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(
        f"| {a:<{width[0]}} | {b:>{width[1]}} | {c:<{width[2]}} |" for a, b, c in cells
    )


def page_table(rows: Iterable[Row]) -> str:
    """Return the table of a page: the figures of the first version and those of now."""
    lines = ["| measure | first version | now |", "|---|---:|---:|"]
    for measure, value, _ in rows:
        if not measure.startswith("lines of code,"):
            before = f"{FIRST_VERSION[measure]:,}" if measure in FIRST_VERSION else ""
            lines.append(f"| {measure} | {before} | {round(value, 1):,} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    beside = Path(__file__).resolve().parents[2] / "src" / "marey"
    parser.add_argument("--source", type=Path, default=beside)
    parser.add_argument("--json", type=Path, help="for the rows and every constant")
    parser.add_argument("--run", action="store_true", help="also record a solve")
    parser.add_argument("--page", type=Path, help="page whose table to replace")
    arguments = parser.parse_args()
    source = arguments.source.resolve()
    modules = [read_module(path, source) for path in sorted(source.rglob("*.py"))]
    if not modules:
        parser.error(f"no Python files below {source}")
    constants = [c for module in modules for c in constants_of(module)]
    rows = file_rows(modules) + function_rows(modules)
    rows += constant_rows(constants) + duplicate_rows(modules)
    rows += run_rows(source) if arguments.run else []
    print(markdown(rows))
    if arguments.page:
        text = arguments.page.read_text(encoding="utf-8")
        table = TABLE.sub(lambda _: page_table(rows), text)
        arguments.page.write_text(table, encoding="utf-8")
    if arguments.json:
        kept = [c._asdict() for c in constants if c.status != "plain"]
        values = {row.measure: row.value for row in rows}
        arguments.json.write_text(json.dumps({"rows": values, "constants": kept}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
