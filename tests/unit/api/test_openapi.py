"""The written shape of the API: valid, whole, and said in the types."""

import re
from typing import Any

import msgspec
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from gwd.api.openapi import document, encoded
from gwd.api.openapi.management import AnyRoute
from gwd.api.routes import LIVE_ROUTES, OPEN_ROUTES, ROUTES
from gwd.dialects import gemini
from gwd.dialects.table import DIALECTS

TABLE: tuple[AnyRoute, ...] = (*ROUTES, *LIVE_ROUTES, *OPEN_ROUTES)
Json = dict[str, Any]


@pytest.fixture(scope="module")
def written() -> Json:
    return document()


def operations(written: Json) -> dict[tuple[str, str], Json]:
    return {
        (method.upper(), path): operation
        for path, methods in written["paths"].items()
        for method, operation in methods.items()
    }


def test_it_is_valid_openapi_and_json(written: Json) -> None:
    OpenAPIV31SpecValidator(written).validate()
    assert msgspec.json.decode(encoded()) == written


def test_every_route_is_in_it_and_nothing_that_is_none(written: Json) -> None:
    found = set(operations(written))
    table = {(r.method, re.sub(r"<(\w+)(:\w+)?>", r"{\1}", r.path)) for r in TABLE}
    dialects = {("POST", dialect.path) for dialect in DIALECTS if dialect is not gemini.DIALECT}
    dialects |= {("POST", f"/models/{{model}}:{method}") for method in gemini.METHODS}
    beside = {("POST", "/messages/count_tokens")} | {
        ("GET", path)
        for path in ("/models", "/models/{model}", "/models/{model}/endpoints", "/openapi.json")
    }
    assert found == table | dialects | beside


def test_operations_have_names_of_their_own_and_no_schema_an_odd_one(written: Json) -> None:
    names = [operation["operationId"] for operation in operations(written).values()]
    assert len(names) == len(set(names))
    odd = [name for name in (*names, *written["components"]["schemas"]) if name.startswith("_")]
    assert odd == []
    known = {tag["name"] for tag in written["tags"]}
    used = {tag for operation in operations(written).values() for tag in operation["tags"]}
    assert used == known
    silent = [n for n, operation in operations(written).items() if len(operation["summary"]) < 8]
    assert silent == []


def test_every_parameter_is_described_and_typed(written: Json) -> None:
    for name, operation in operations(written).items():
        for parameter in operation["parameters"]:
            assert parameter["description"].endswith("."), (name, parameter)
            assert "type" in parameter["schema"], (name, parameter)


def test_every_field_of_a_body_is_described(written: Json) -> None:
    """Said once, in the type: what the page, the help and this document say of a field is the same sentence."""
    silent = []
    for shape in {**dict.fromkeys(bodies(written))}:
        for name, field in written["components"]["schemas"][shape]["properties"].items():
            if not field.get("description", "").endswith("."):
                silent.append(f"{shape}.{name}")
    assert silent == []


def test_what_a_record_always_has_is_required_of_it(written: Json) -> None:
    schemas = written["components"]["schemas"]
    assert {"do", "message"} <= set(schemas["Check"]["required"])
    assert schemas["Deleted"]["required"] == ["deleted", "id"]
    assert schemas["Booked"]["required"] == ["data"]
    assert "kind" in schemas["NewBudget"]["properties"]
    assert "kind" not in schemas["NewBudget"]["required"]


def bodies(written: Json) -> list[str]:
    """The schemas of all request bodies, and those inside of them."""
    found: list[str] = []
    waiting = [operation.get("requestBody", {}) for operation in operations(written).values()]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += value.values()
            name = str(value.get("$ref", "")).rpartition("/")[2]
            if name and name not in found:
                found.append(name)
                waiting.append(written["components"]["schemas"][name])
        elif isinstance(value, list):
            waiting += value
    return found
