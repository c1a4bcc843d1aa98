"""Limits that a body's type sets: refused where bodies are read, with both ends in the message."""

from typing import Any

import msgspec
import pytest

from gwd.api.bodies import strict
from gwd.api.workspaces import AddMembers
from gwd.budgets import NewBudget
from gwd.catalog.inputs import EndpointInput, ModelPatch
from gwd.core.errors import InvalidValue
from gwd.keys.fields import CreateKey, PatchKey
from gwd.management.invitations import CreateInvitation
from gwd.orgs.settings import PatchSettings

REFUSED: list[tuple[type[msgspec.Struct], dict[str, Any], str, str]] = [
    (CreateKey, {"name": "a", "in_flight_cap": 0}, "in_flight_cap", "must be from 1 to 10000"),
    (PatchKey, {"in_flight_cap": 10_001}, "in_flight_cap", "must be from 1 to 10000"),
    (PatchKey, {"alert_thresholds": [1] * 11}, "alert_thresholds", "must have at most 10 items"),
    (PatchKey, {"allowed_models": ["a"] * 501}, "allowed_models", "must have at most 500 items"),
    (PatchSettings, {"retention_days": 0}, "retention_days", "must be from 1 to 3650"),
    (PatchSettings, {"retention_days": 3_651}, "retention_days", "must be from 1 to 3650"),
    (
        PatchSettings,
        {"alert_email_min_percent": -1},
        "alert_email_min_percent",
        "must be from 0 to 100",
    ),
    (
        CreateInvitation,
        {"email": "a@b", "workspace_ids": ["w"] * 101},
        "workspace_ids",
        "must have at most 100 items",
    ),
    (AddMembers, {"user_ids": []}, "user_ids", "must have from 1 to 100 items"),
    (AddMembers, {"user_ids": ["u"] * 101}, "user_ids", "must have from 1 to 100 items"),
    (ModelPatch, {"context_length": 0}, "context_length", "must be from 1 to 1000000000"),
    (
        ModelPatch,
        {"supported_parameters": ["p" * 257]},
        "supported_parameters[0]",
        "must have at most 256 characters",
    ),
    (
        NewBudget,
        {"scope": "organization", "interval": "daily", "limit": 1, "alert_thresholds": [1] * 11},
        "alert_thresholds",
        "must have at most 10 items",
    ),
    (
        EndpointInput,
        {
            "model": "a/b",
            "provider": "c",
            "upstream_model": "d",
            "pricing_tiers": [{"above_prompt_tokens": 1, "pricing": {}}] * 33,
        },
        "pricing_tiers",
        "must have at most 32 items",
    ),
]


def test_what_passes_a_limit_is_told_both_ends_of_it() -> None:
    wrong = []
    for shape, body, param, words in REFUSED:
        with pytest.raises(InvalidValue) as refused:
            strict(msgspec.json.encode(body), shape)
        found = (refused.value.param, refused.value.message)
        if found != (param, f"`{param}` {words}"):
            wrong.append((shape.__name__, body, found))
    assert wrong == []


def test_other_mistakes_keep_their_words() -> None:
    with pytest.raises(InvalidValue) as refused:
        strict(b'{"in_flight_cap": "many"}', PatchKey)
    assert refused.value.message == "`in_flight_cap`: Expected `int | null`, got `str`"


def test_every_exact_number_of_a_body_is_read_by_the_one_grammar() -> None:
    """However a field is described: a text that Python takes for a number is not one here."""
    for shape, name in (
        (CreateKey, "limit"),
        (PatchKey, "limit"),
        (PatchSettings, "byok_fee_percent"),
        (PatchSettings, "low_balance_threshold"),
        (EndpointInput, "weight"),
        (NewBudget, "limit"),
    ):
        with pytest.raises(InvalidValue) as refused:
            strict(msgspec.json.encode({name: "1_000"}), shape)
        assert refused.value.message == f"`{name}`: '1_000' is not a number; did you mean 1000?"
