"""What a policy permits, as a table."""

from typing import Any

import pytest

from gwd.core.errors import InvalidValue
from gwd.orgs.policy import Policy, checked_models, policy_of

OPEN: dict[str, Any] = {
    "allowed_models": None,
    "allowed_providers": None,
    "ignored_providers": [],
    "data_policy": "allow",
}
HERE = ("openai/eu", "openai", "open ai")


def policy(**fields: Any) -> Policy:
    made = policy_of("key", **{**OPEN, **fields})
    assert made is not None
    return made


def test_what_permits_everything_is_no_policy() -> None:
    assert policy_of("organization", **OPEN) is None


def test_models_are_matched_by_what_would_serve_not_by_what_was_written() -> None:
    """An alias is checked by its target; a pattern sees the id, or the alias of a family."""
    latest = ["~test/oai-latest", "other/short"]
    table = [
        (["test/oai"], (), True),
        (["test/oai-b"], latest, False),
        (["~test/oai-latest"], latest, True),
        (["~test/*"], latest, True),
        (["~test/*"], (), False),
        (["other/short"], latest, True),
        (["other/*"], latest, False),
        (["test/*"], (), True),
        (["tes/*"], (), False),
        (["*/oa*"], (), True),
        (["*"], (), True),
        (["nobody/x", "*/oai"], (), True),
    ]
    assert [
        (names, aliases)
        for names, aliases, wanted in table
        if policy(allowed_models=names).allows_model("test/oai", aliases) is not wanted
    ] == []
    assert policy(ignored_providers=["x"]).allows_model("test/oai", ())


def test_endpoints_are_left_out_by_slug_name_and_tag() -> None:
    table: list[tuple[dict[str, Any], str | None]] = [
        ({"allowed_providers": ["OpenAI"]}, None),
        ({"allowed_providers": ["Open AI", "x"]}, None),
        ({"allowed_providers": ["openai/us"]}, "allowed_providers"),
        ({"ignored_providers": ["openai/eu"]}, "ignored_providers"),
        ({"ignored_providers": ["openai/us"]}, None),
        ({"data_policy": "deny"}, "data_policy"),
        ({"allowed_models": ["a/b"]}, None),
    ]
    assert [
        fields
        for fields, wanted in table
        if policy(**fields).leaves_out(HERE, trains=True) != wanted
    ] == []
    assert policy(data_policy="deny").leaves_out(HERE, trains=False) is None


def test_a_list_is_stored_once_each_and_in_order() -> None:
    assert checked_models(["a/b", " a/b ", "c/*", "*/d*"]) == ["a/b", "c/*", "*/d*"]
    assert checked_models(None) is None
    for names, param in (([], "allowed_models"), (["a/b", "/x*"], "allowed_models[1]")):
        with pytest.raises(InvalidValue) as caught:
            checked_models(names)
        assert caught.value.param == param
