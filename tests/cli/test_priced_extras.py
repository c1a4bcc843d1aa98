"""Prices of what makes a call dearer: set, shown, applied from a file, and told in a receipt."""

from pathlib import Path
from typing import Any

import pytest

from gwctl.inference import receipt_lines
from tests.cli.conftest import Run
from tests.cli.gateway import FakeGateway
from tests.cli.test_inference import RECEIPT
from tests.cli.test_nouns import MODEL

PRICING: dict[str, Any] = {
    "prompt": "0.0000005",
    "completion": "0.000002",
    "web_search": "0.01",
    "price_modifiers": {"service_tier": {"priority": "2", "flex": "0.5"}},
}
PATH = "/catalog/models/acme/fast"
FILE = """
[[models]]
id = "acme/fast"
name = "Fast"
vendor = "Acme"
context_length = 32000
max_completion_tokens = 4096
"""


@pytest.fixture
def node(gateway: FakeGateway) -> FakeGateway:
    record = {**MODEL, "pricing": PRICING, "vendor": "Acme", "max_completion_tokens": 4096}
    gateway.collection("/catalog/models", record)
    return gateway


@pytest.mark.parametrize(
    ("words", "changed"),
    [
        ("--web-search 0.025", {"web_search": "0.025"}),
        (
            "--factor speed.fast=6",
            {
                "price_modifiers": {
                    "service_tier": {"priority": "2", "flex": "0.5"},
                    "speed": {"fast": "6"},
                }
            },
        ),
        (
            "--factor service_tier.flex=none --factor service_tier.priority=2.5",
            {"price_modifiers": {"service_tier": {"priority": "2.5"}}},
        ),
        (
            "--factor service_tier.flex=none --factor service_tier.priority=none",
            {"price_modifiers": {}},
        ),
    ],
)
def test_a_factor_is_set_beside_those_that_stay(
    run: Run, node: FakeGateway, words: str, changed: dict[str, Any]
) -> None:
    assert run("model", "price", "set", "acme/fast", *words.split()).code == 0
    assert node.sent("PATCH", PATH).body == {"pricing": {**PRICING, **changed}}


def test_what_is_so_already_is_not_written(run: Run, node: FakeGateway) -> None:
    words = "--factor service_tier.flex=0.50 --web-search 0.010"
    assert run("model", "price", "set", "acme/fast", *words.split()).code == 0
    assert node.writes() == []


@pytest.mark.parametrize("factor", ["flex=0.5", "service_tier.flex", ".flex=2", "service_tier.=2"])
def test_a_factor_names_its_field_and_value(run: Run, node: FakeGateway, factor: str) -> None:
    code, _, err = run("model", "price", "set", "acme/fast", "--factor", factor)
    assert code == 2
    assert "service_tier.flex=0.5" in err
    assert node.writes() == []


def test_prices_show_factors_and_searches(run: Run, node: FakeGateway) -> None:
    out = run("model", "price", "show", "acme/fast").out
    assert "one web search\t\t0.01\t" in out
    assert "all tokens with service_tier flex\t\t\t0.5" in out
    assert "0.5" in run("model", "show", "acme/fast").out


def test_a_file_says_which_factors_there_are(run: Run, node: FakeGateway, tmp_path: Path) -> None:
    """Numbers or texts; what the file's table of factors leaves out is gone, a price it leaves out stays."""
    file = tmp_path / "gw.toml"
    same = 'pricing = { price_modifiers = { service_tier = { priority = 2.0, flex = "0.5" } } }'
    file.write_text(FILE + same)
    assert run("apply", "-f", str(file)).code == 0
    assert node.writes() == []
    file.write_text(FILE + "pricing = { price_modifiers = { service_tier = { flex = 0.5 } } }")
    code, out, _ = run("diff", "-f", str(file))
    assert code == 8
    assert "pricing.price_modifiers" in out
    assert run("apply", "-f", str(file)).code == 0
    modifiers = {"service_tier": {"flex": "0.5"}}
    assert node.sent("PATCH", PATH).body == {"pricing": {**PRICING, "price_modifiers": modifiers}}


def test_an_export_keeps_them(run: Run, node: FakeGateway, tmp_path: Path) -> None:
    file = tmp_path / "gw.toml"
    file.write_text(run("export", "--only", "models").out)
    assert run("apply", "-f", str(file)).code == 0
    assert node.writes() == []


def test_a_receipt_tells_factors_and_searches() -> None:
    receipt = {
        **RECEIPT,
        "cost": {**RECEIPT["cost"], "web_search": 0.03},
        "pricing": {
            "web_search": 0.01,
            "searches": 3,
            "modifiers": {"service_tier": {"value": "priority", "factor": "2"}},
        },
    }
    text = "\n".join(receipt_lines(receipt))
    assert "web search $0.03" in text
    assert "service_tier priority: tokens at 2 times the list price" in text
    assert "3 by the vendor, $0.01 each" in text


def test_a_dry_run_tells_what_a_price_does_to_the_last_30_days(run: Run, node: FakeGateway) -> None:
    effect = {"requests": 1_204, "charged": 6.5, "at_old": 6.5, "at_new": 9.75}
    difference = {
        "model": "acme/fast",
        "endpoint_id": None,
        "effective_at": "2026-12-01T00:00:00Z",
        "announced": False,
        "classes": [],
        "needs_acceptance": True,
        "reasons": ["pricing.prompt changes by more than tenfold"],
        "last_30d": effect,
    }
    node.on("POST", "/catalog/prices/effect", {"data": [difference], "total_count": 1})
    words = ("model", "price", "set", "acme/fast", "--prompt", "40")
    code, out, _ = run(*words, "--dry-run")
    assert code == 8
    assert "the tokens of 1,204 requests in 30 days: $6.50 -> $9.75" in out
    assert "wants --accept: pricing.prompt changes by more than tenfold" in out
    sent = node.sent("POST", "/catalog/prices/effect").body
    assert (sent["model"], sent["pricing"]["prompt"]) == ("acme/fast", "0.000040")
    assert "wants --accept" not in run(*words, "--accept", "--dry-run").out
    assert node.writes() == [("POST", "/catalog/prices/effect")] * 2
