"""What is read from the database is remembered in one way only: by a finder that `cached` marks."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
CHANGES = frozenset(("add", "append", "clear", "extend", "insert", "pop", "setdefault", "update"))
MEMORIES = frozenset(("cache", "lru_cache", "cached_property"))


def faults_of(source: str) -> Iterator[str]:
    """Functions of a connection that keep something of their own, or look into the writer's memory by themselves."""
    tree = ast.parse(source)
    kept = {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef) or not _takes_connection(function):
            continue
        for decorator in function.decorator_list:
            if _last_name(decorator) in MEMORIES:
                yield f"{function.name} is remembered with {_last_name(decorator)}"
        for node in ast.walk(function):
            if isinstance(node, ast.Global):
                yield f"{function.name} sets {', '.join(node.names)}"
            elif isinstance(node, ast.Attribute) and node.attr == "cached_rows":
                yield f"{function.name} looks at connection.cached_rows"
            elif (changed := _changed(node)) in kept:
                yield f"{function.name} keeps something in {changed}"


def _takes_connection(function: ast.FunctionDef) -> bool:
    return any(
        argument.annotation is not None and _last_name(argument.annotation) == "Connection"
        for argument in function.args.args
    )


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _changed(node: ast.AST) -> str | None:
    """The name whose content a statement changes: `x[…] = …`, `del x[…]`, `x.append(…)`."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
        return node.value.id if isinstance(node.value, ast.Name) else None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        owner = node.func.value
        if node.func.attr in CHANGES and isinstance(owner, ast.Name):
            return owner.id
    return None


def test_no_function_of_a_connection_has_a_memory_of_its_own():
    found = [
        f"{path.relative_to(ROOT)}: {fault}"
        for path in sorted((ROOT / "gwd").rglob("*.py"))
        if not path.is_relative_to(ROOT / "gwd" / "store")
        for fault in faults_of(path.read_text("utf-8"))
    ]
    assert found == []


def test_each_way_to_have_one_is_found():
    head = "from functools import cache\nSEEN: dict[str, int] = {}\n"
    for body, said in (
        ("def f(connection: Connection, k: str):\n    SEEN[k] = 1", "keeps something in SEEN"),
        ("def f(connection: Connection, k: str):\n    del SEEN[k]", "keeps something in SEEN"),
        ("def f(c: store.Connection):\n    SEEN.setdefault('a', 1)", "keeps something in SEEN"),
        ("def f(connection: Connection):\n    global SEEN\n    SEEN = {}", "sets SEEN"),
        ("@cache\ndef f(connection: Connection): ...", "remembered with cache"),
        ("@functools.lru_cache(9)\ndef f(connection: Connection): ...", "with lru_cache"),
        (
            "def f(connection: Connection):\n    connection.cached_rows['a'] = 1",
            "connection.cached_rows",
        ),
    ):
        assert any(said in fault for fault in faults_of(head + body)), body
    assert not list(faults_of(head + "@cached('x')\ndef f(connection: Connection): ..."))
