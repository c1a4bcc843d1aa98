"""How a room asks the database stands in its first page, and no column is read by its number."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SQL = re.compile(r"\bconnection\.(?:row|rows|execute|execute_many)\(")
ORM = re.compile(r"^from peewee |\.select\(|\bconnection\.(?:run|first|count)\(", re.MULTILINE)
# Rows of more than two columns are unpacked, or given names.
LAST_NUMBER = 1


def files(room: Path) -> list[Path]:
    return [path for path in sorted(room.rglob("*.py")) if "migrations" not in path.parts]


def test_no_column_is_read_by_its_number():
    numbered = []
    for path in files(ROOT / "gwd"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if (
                isinstance(node, ast.Subscript)
                and isinstance(node.value, ast.Name)
                and node.value.id == "row"
                and isinstance(node.slice, ast.Constant)
                and isinstance(node.slice.value, int)
                and not 0 <= node.slice.value <= LAST_NUMBER
            ):
                numbered.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert numbered == []


def test_every_room_that_asks_the_database_says_how():
    wrong = []
    for page in sorted((ROOT / "gwd").glob("*/__init__.py")):
        texts = [path.read_text("utf-8") for path in files(page.parent)]
        asks_plainly = any(SQL.search(text) for text in texts)
        asks_peewee = any(ORM.search(text) for text in texts)
        said = re.search(
            r"^Queries: (.*)", ast.get_docstring(ast.parse(page.read_text())) or "", re.M
        )
        line = said[1] if said else ""
        if page.parent.name == "store":
            continue  # it is what they ask with
        if asks_plainly != ("plain SQL" in line) or asks_peewee != ("peewee" in line):
            wrong.append(
                f"{page.parent.name}: plain SQL {asks_plainly}, peewee {asks_peewee}: {line!r}"
            )
    assert wrong == []
