"""What the log may say: gwd's own lines at the level that was set, the libraries' warnings only, fields from a list."""

import ast
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import pytest

from gwd.core.errors import InvalidValue
from gwd.node.log import EXTRAS, JsonLine, LogLine

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "docs" / "logs.schema.json").read_text())
LEVELS = ("debug", "info", "warning", "error", "critical", "exception")
PROGRAM = """
import logging
from gwd.node import log
log.configure("debug", {form!r})
for name in ("peewee", "httpx", "httpcore.http11", "sanic.root", "asyncio", "anything.new"):
    logging.getLogger(name).info("canary")
    logging.getLogger(name).debug("canary")
    logging.getLogger(name).warning("%s warns", name)
logging.getLogger("gwd.pipeline").debug("gwd tells", extra={{"request_id": "req_1"}})
"""


def written(form: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(form=form)],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    return done.stderr


def test_no_library_speaks_below_a_warning_at_any_level() -> None:
    text = written("text")
    assert "canary" not in text
    assert text.count(" warns") == 6
    assert text.endswith("gwd.pipeline gwd tells request_id=req_1\n")


def test_in_json_each_event_is_one_object_of_the_schema() -> None:
    lines = [json.loads(line) for line in written("json").splitlines()]
    for line in lines:
        jsonschema.validate(line, SCHEMA)
    assert [line["event"] for line in lines] == ["%s warns"] * 6 + ["gwd tells"]
    assert lines[0]["message"] == "peewee warns"
    assert (lines[-1]["level"], lines[-1]["request_id"]) == ("debug", "req_1")


def line_of(message: str, *args: object, **fields: object) -> tuple[str, dict]:
    error = fields.pop("error", None)
    record = logging.LogRecord("gwd.x", logging.ERROR, "", 1, message, args, None)
    if isinstance(error, BaseException):
        record.exc_info = (type(error), error, error.__traceback__)
    record.__dict__.update(fields)
    text = JsonLine().format(record)
    found = json.loads(text)
    jsonschema.validate(found, SCHEMA)
    return text, found


def test_a_field_that_is_not_on_the_list_is_not_written() -> None:
    text, found = line_of("asked", prompt="canary", authorization="canary", key_id="key_1")
    assert "canary" not in text
    assert found["key_id"] == "key_1"


def test_a_line_is_ascii_whatever_stands_in_it() -> None:
    text, found = line_of("%s", "a\nb\x1b[31m\u2028\u202e\U0001f600é\x7f")
    assert text.isascii()
    assert "\n" not in text
    assert "\x1b" not in text
    assert found["message"] == "a\nb\x1b[31m\u2028\u202e\U0001f600é\x7f"


def test_long_texts_are_cut_and_credentials_hidden() -> None:
    _, found = line_of("%s", "Bearer sk-canary-0123456789 " + "x" * 10_000)
    assert len(found["message"]) <= 2_048
    assert "canary" not in found["message"]


def test_only_known_errors_are_quoted() -> None:
    _, quiet = line_of("failed", error=ValueError("the prompt was canary"))
    assert quiet["error"] == {"type": "ValueError"}
    for error in (
        OSError(28, "no space"),
        InvalidValue("`x` must be a number"),
        AssertionError("1"),
    ):
        assert line_of("failed", error=error)[1]["error"]["text"] == str(error)
    with pytest.raises(ZeroDivisionError) as raised:
        line_of("failed", broken=1 / 0)
    _, traced = line_of("failed", error=raised.value)
    assert traced["error"]["trace"][-1].startswith("test_logging.py:")


def calls() -> Iterator[tuple[str, ast.Call, set[str]]]:
    """(place, call of a log, names of the dictionaries of constant keys in its file)."""
    for path in sorted((ROOT / "gwd").rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        for node in ast.walk(tree):
            is_log = (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in LEVELS
                and isinstance(node.func.value, ast.Name)
                and node.func.value.id == "log"
            )
            if is_log:
                assert isinstance(node, ast.Call)
                yield f"{path.relative_to(ROOT)}:{node.lineno}", node, keys_of(node, tree)


def keys_of(call: ast.Call, tree: ast.Module) -> set[str]:
    """The fields that a call hands over: written there, or where the name it uses got its value."""
    (extra,) = [word.value for word in call.keywords if word.arg == "extra"] or [ast.Dict([], [])]
    if not isinstance(extra, ast.Dict):
        name = ast.unparse(extra)
        (extra,) = [
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name
        ]
    assert isinstance(extra, ast.Dict)
    keys = [key.value for key in extra.keys if isinstance(key, ast.Constant)]
    assert len(keys) == len(extra.keys), ast.unparse(call)
    return {str(key) for key in keys}


def test_every_call_has_a_constant_sentence_and_fields_from_the_list() -> None:
    wrong, count = [], 0
    for place, call, keys in calls():
        count += 1
        sentence = call.args[0]
        if not isinstance(sentence, ast.Constant) or len(str(sentence.value)) < 8:
            wrong.append((place, "its sentence is no constant", ast.unparse(sentence)))
        wrong += [(place, "is not on the list", key) for key in keys - set(EXTRAS)]
        names = {word.arg for word in call.keywords} - {"extra", "exc_info"}
        wrong += [(place, "unknown argument", str(name)) for name in names]
    assert wrong == []
    assert count > 30


def test_the_words_of_the_list_are_those_of_the_schema() -> None:
    assert set(SCHEMA["$defs"]["LogLine"]["properties"]) == set(LogLine.__struct_fields__)
    assert SCHEMA["$defs"]["LogLine"]["additionalProperties"] is False
