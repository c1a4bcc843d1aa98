"""gwctl and its tests keep to the written API: routes, fields, kinds, and what can be changed."""

import importlib
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import gwctl.commands
from gwctl import catalog, keys, schema
from gwctl.records import Resource
from gwctl.tables import Column
from tests.cli.conftest import ROOT, Run
from tests.cli.gateway import Answer, FakeGateway, error
from tests.cli.written import Untrue
from tools.pages.schema import kinds

# Kinds of fields that read as plain text.
AS_TEXT = {"slug", "secret", "factor", "unix_seconds", "usd_per_million_tokens"}


def modules() -> Iterator[Any]:
    yield from (catalog, keys)
    for found in pkgutil.iter_modules(gwctl.commands.__path__):
        yield importlib.import_module(f"gwctl.commands.{found.name}")


def columns() -> Iterator[tuple[str, Column]]:
    for module in modules():
        for name, value in vars(module).items():
            for column in getattr(value, "columns", value if isinstance(value, tuple) else ()):
                if isinstance(column, Column):
                    yield f"{module.__name__}.{name}", column


def test_columns_are_fields_of_the_api_and_say_no_kind_that_it_says() -> None:
    wrong, seen = [], 0
    for place, column in columns():
        if not column.record:
            continue  # of rows that a command makes up itself
        if not isinstance(column.pick, str):
            continue
        seen += 1
        head, _, rest = column.pick.partition(".")
        known = schema.fields(column.record)
        if head not in known or (rest and rest not in schema.fields(known[head].record)):
            # The name of a scope is put beside its id by the command.
            wrong.append((place, column.record, column.pick))
        elif column.shown == schema.field(column.record, column.pick).kind != "text":
            wrong.append((place, column.pick, "says its kind twice"))
    assert wrong == []
    assert seen > 60


def test_resources_are_lists_of_the_record_their_columns_are_of() -> None:
    found = {
        (each.noun, each.record, column.record)
        for module in modules()
        for each in vars(module).values()
        if isinstance(each, Resource)
        for column in each.columns
    }
    assert [each for each in found if each[1] != each[2] or not each[1]] == []
    assert len(found) >= 12


def test_records_that_are_shown_by_name_are_in_the_schema() -> None:
    text = "".join(path.read_text("utf-8") for path in (ROOT / "gwctl").rglob("*.py"))
    named = set(re.findall(r'out\.record\([^\n]*, "(\w+)"\)', text))
    assert {"GenerationRecord", "SettingsRecord"} <= named
    assert [name for name in named if not schema.fields(name)] == []


def test_every_kind_of_field_is_known() -> None:
    assert {kind for kind in kinds() if schema.Field(kind).kind == "text"} == AS_TEXT


def test_a_field_says_what_it_is() -> None:
    assert schema.field("KeyRecord", "limit").kind == "money"
    assert schema.field("ModelRecord", "pricing.prompt").kind == "price"
    assert schema.field("ModelRecord", "pricing.request").kind == "each"
    assert schema.field("ModelRecord", "pricing.price_modifiers").kind == "text"
    assert schema.field("SettingsRecord", "low_balance_threshold").kind == "money"
    assert schema.field("KeyRecord", "no.such").kind == "text"
    assert schema.field("EndpointPatch", "pricing_tiers").holds_prices
    assert not schema.field("EndpointPatch", "pricing_tiers").is_price_list
    assert schema.taken("PATCH", "/catalog/models/acme/fast") == "ModelPatch"
    assert schema.answered("GET", "/models/acme/fast/endpoints") == "ModelEndpoints"
    assert schema.answered("GET", "/no/such") == ""


def test_help_does_not_read_the_schema() -> None:
    code = (
        "import sys, gwctl.app\n"
        "gwctl.app.main(['--help'])\n"
        "gwctl.app.main(['key', 'create', '--help'])\n"
        "print(sys.modules['gwctl.schema']._file.cache_info().misses)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0"


def test_a_percentage_and_a_count_of_one_record_lose_no_digit(
    run: Run, gateway: FakeGateway
) -> None:
    path = "/organization/settings"
    gateway.on("GET", path, {"data": {"byok_fee_percent": 2.5}})
    gateway.on("PATCH", path, {"data": {"byok_fee_percent": 2.75}})
    assert (
        "byok_fee_percent  2.5 % -> 2.75 %" in run("org", "settings", "byok_fee_percent=2.75").out
    )


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (("GET", "/nosuch", {"data": []}), "the gateway has no route GET /nosuch"),
        (("PUT", "/keys/key_1", {"data": {}}), "the gateway has no route PUT /keys/key_1"),
        (("GET", "/keys/key_1", {"data": {"limt": 5}}), "KeyRecord has no field limt"),
        (("GET", "/keys/key_1", {"data": {"limit": "much"}}), "data.limit: 'much'"),
        (("GET", "/keys/key_1", {"data": None}), "data: None"),
        (("GET", "/credits", Answer({"data": {}}, 201)), "GET /credits does not answer 201"),
        (("GET", "/credits", error(402, "budget_exceeded", "No.")), "GET /credits does not answer 402"),
        (("GET", "/credits", error(403, "no_such_code", "No.")), "no error no_such_code of status 403"),
    ],
)  # fmt: skip
def test_a_script_that_no_daemon_follows_is_named(
    gateway: FakeGateway, script: tuple[str, str, Any], said: str
) -> None:
    with pytest.raises(Untrue, match=re.escape(said)):
        gateway.on(*script)


def test_a_request_that_the_daemon_refuses_fails_the_test(run: Run, gateway: FakeGateway) -> None:
    gateway.collection("/keys")
    for words, said in (
        (("audit", "list"), "GET /audit was asked, and the test scripts no answer"),
        (("key", "create", "x" * 101), "the body of POST /keys: name:"),
    ):
        assert run(*words).code == 1
        assert said in gateway.faults.pop()
    with pytest.raises(Untrue, match="has no field nmae"):
        gateway.collection("/keys", {"nmae": "ci"})


FIELDS: dict[str, dict[str, str]] = {
    "PATCH /keys/{}": {
        "name": "key update ci --name web",
        "limit": "key update ci --limit 5",
        "limit_reset": "key update ci --reset daily",
        "include_byok_in_limit": "key update ci --include-byok",
        "strict": "key update ci --strict",
        "in_flight_cap": "key update ci --in-flight 3",
        "rate_limit_per_minute": "key update ci --rpm 7",
        "allowed_models": "key update ci --model a/b",
        "allowed_providers": "key update ci --provider openai",
        "ignored_providers": "key update ci --ignore-provider azure",
        "default_provider_sort": "key update ci --sort price",
        "data_policy": "key update ci --data-policy deny",
        "alert_thresholds": "key update ci --alerts 50",
        "tags": "key update ci --tag nightly",
        "expires_at": "key update ci --expires 7d",
        "external_user": "key update ci --external-user ada",
        "disabled": "key disable ci",
    },
    "PATCH /budgets/{}": {
        "limit": "budget set organization --monthly 7",
        "include_byok": "budget set organization --monthly 7 --include-byok",
        "alert_thresholds": "budget set organization --monthly 7 --alerts 50",
        "shadow": "budget set organization --monthly 7 --shadow",
    },
    "PATCH /workspaces/{}": {
        "name": "workspace update web --name Shop",
        "slug": "workspace update web --slug shop",
        "description": "workspace update web --description Shop",
        "default_provider_sort": "workspace update web --sort price",
        "default_text_model": "workspace update web --default-model a/b",
        "tags": "workspace update web --tag web",
        "include_byok_in_budgets": "workspace settings web include_byok_in_budgets=true",
    },
    "PATCH /organization": {
        "name": "org update --name Acme",
        "slug": "org update --slug acme",
    },
    "PATCH /organizations/{}": {
        "name": "org update --org acme --name Acme",
        "slug": "org update --org acme --slug acme-2",
        "suspended": "org suspend acme",
    },
    "PATCH /organization/members/{}": {"role": "member role ada@example.com billing"},
    "PATCH /catalog/providers/{}": {
        "name": "provider update acme --name Acme",
        "adapter": "provider update acme --adapter gemini",
        "base_url": "provider update acme --base-url https://acme.example",
        "auth": "provider update acme --auth none",
        "headers": "provider update acme --header x-team=7",
        "flags": "provider update acme --flag no_stream_options=true",
        "disabled": "provider disable acme",
    },
    "PATCH /catalog/models/{}": {
        "name": "model update acme/fast --name Fast",
        "vendor": "model update acme/fast --vendor Acme",
        "context_length": "model update acme/fast --context 64000",
        "max_completion_tokens": "model update acme/fast --max-output 4096",
        "supported_parameters": "model update acme/fast --parameter tools",
        "input_modalities": "model update acme/fast --input image",
        "output_modalities": "model update acme/fast --output image",
        "pricing": "model price set acme/fast --prompt 1 --completion 2",
        "effective_at": "model price set acme/fast --prompt 1 --completion 2 --effective 7d",
        "accept": "model price set acme/fast --prompt 1 --completion 2 --accept",
        "description": "model update acme/fast --description quick",
        "family": "model update acme/fast --family fast",
        "aliases": "model alias acme/fast quick",
        "default_max_tokens": "model update acme/fast --default-output 1000",
        "is_moderated": "model update acme/fast --moderated",
        "released_at": "model update acme/fast --released 2026-10-01",
        "deprecated_at": "model deprecate acme/fast --successor acme/new",
        "retired_at": "model retire acme/fast --successor acme/new",
        "successor": "model deprecate acme/fast --successor acme/new",
    },
    "PATCH /catalog/endpoints/{}": {
        "upstream_model": "endpoint update ep_1 --upstream-model fast-2",
        "tag": "endpoint update ep_1 --tag acme/us",
        "base_url": "endpoint update ep_1 --base-url https://us.acme.example",
        "pricing": "endpoint update ep_1 --prompt 1 --completion 2",
        "accept": "endpoint update ep_1 --prompt 1 --completion 2 --accept",
        "context_length": "endpoint update ep_1 --context 64000",
        "max_completion_tokens": "endpoint update ep_1 --max-output 4096",
        "supported_parameters": "endpoint update ep_1 --parameter tools",
        "flags": "endpoint update ep_1 --flag no_stream_options=true",
        "weight": "endpoint update ep_1 --weight 0.5",
        "effective_at": "endpoint update ep_1 --prompt 1 --completion 2 --effective 7d",
        "disabled": "endpoint disable ep_1",
    },
    "PATCH /catalog/credentials/{}": {
        "key": "provider secret acme --secret-stdin",
        "key_ref": "provider secret acme --key-ref env:X",
        "base_url": "provider secret acme --key-ref env:X --base-url https://acme.example",
    },
    "PATCH /byok/{}": {
        "key": "byok rotate acme --secret-stdin",
        "key_ref": "byok rotate acme --key-ref env:X",
        "base_url": "byok rotate acme --key-ref env:X --base-url https://acme.example",
        "name": "byok update acme --name second",
        "workspace_id": "byok update acme --workspace ws_1",
        "allowed_models": "byok update acme --model a/b",
        "allowed_api_key_hashes": "byok update acme --key ci",
        "allowed_user_ids": "byok update acme --user usr_1",
        "is_fallback": "byok update acme --fallback",
        "is_required": "byok update acme --required",
        "sort_order": "byok update acme --order 3",
        "disabled": "byok disable acme",
    },
    "PATCH /credits/auto-topup": {
        "enabled": "credit topup --enable",
        "threshold": "credit topup --threshold 7",
        "amount": "credit topup --amount 50",
        "monthly_cap": "credit topup --monthly-cap 500",
        "hook_url": "credit topup --hook-url https://pay.example/hook",
    },
    "PATCH /notifications/destinations/{}": {
        "name": "webhook update ops --name night",
        "url": "webhook update ops --target https://hooks.example/next",
        "address": "webhook update ops --target ops@example.com",
        "events": "webhook update ops --event key_limit",
        "min_severity": "webhook update ops --min-severity critical",
        "format": "webhook update ops --format teams",
    },
    "PATCH /notifications/alerts": {
        "category": "alert settings key_limit --disable",
        "enabled": "alert settings key_limit --disable",
        "thresholds": "alert settings key_limit --thresholds 80",
        "channels": "alert settings key_limit --channel ops",
        "email_roles": "alert settings key_limit --email-role owner",
        "muted_until": "alert mute key_limit --for 24h",
    },
}
IN_A_FILE = "several of them at once are what a file is for: gwctl apply"
SETTINGS = {
    "PATCH /organization/settings": "org settings retention_days=7",
    "PATCH /organizations/{}/settings": "org settings --org acme retention_days=7",
}
ANY_NAME = "settings NAME=VALUE takes every name that there is"
EXCEPTIONS = {
    ("PATCH /catalog/models/{}", "pricing_tiers"): IN_A_FILE,
    ("PATCH /catalog/endpoints/{}", "pricing_tiers"): IN_A_FILE,
    ("PATCH /catalog/credentials/{}", "name"): IN_A_FILE,
    ("PATCH /catalog/credentials/{}", "expires_at"): IN_A_FILE,
    ("PATCH /catalog/credentials/{}", "sort_order"): IN_A_FILE,
    ("PATCH /catalog/credentials/{}", "disabled"): IN_A_FILE,
    ("PATCH /notifications/destinations/{}", "enabled"): "enable and disable are commands",
    ("PATCH /organization/settings", "*"): ANY_NAME,
    ("PATCH /organizations/{}/settings", "*"): ANY_NAME,
}


def test_every_field_that_can_be_changed_has_an_option(
    run: Run, gateway: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A field that is new in the API fails here until an option sends it, or a reason says why none does."""
    model = {"id": "acme/fast", "name": "Slow", "context_length": 1, "vendor": "A"}
    gateway.on("GET", "/organization", {"data": {"name": "Old", "slug": "old"}})
    gateway.on("PATCH", "/organization", {"data": {"name": "Old", "slug": "old"}})
    for path in ("/organization/settings", "/organizations/org_1/settings"):
        gateway.on("GET", path, {"data": {"retention_days": 30}})
        gateway.on("PATCH", path, {"data": {"retention_days": 30}})
    gateway.on("GET", "/credits/auto-topup", {"data": {}})
    gateway.on("PATCH", "/credits/auto-topup", {"data": {}})
    setting = {"category": "key_limit", "enabled": True, "email_roles": []}
    gateway.on("GET", "/notifications/alerts", {"data": [setting], "total_count": 1})
    gateway.on("PATCH", "/notifications/alerts", {"data": setting})
    faults = []
    lines = FIELDS | {route: {"retention_days": line} for route, line in SETTINGS.items()}
    for route, options in lines.items():
        fields = schema.fields(schema.taken(*route.split(" ")))
        spared = {name for each, name in EXCEPTIONS if each == route}
        if "*" not in spared:
            faults += [(route, name) for name in fields.keys() ^ options.keys() ^ spared]
        for name, line in options.items():
            gateway.collection("/keys", {"id": "key_1", "name": "ci"})
            gateway.collection("/workspaces", {"id": "ws_1", "slug": "web", "name": "Web"})
            gateway.collection(
                "/budgets", {"id": "bud_1", "scope": "organization", "interval": "monthly"}
            )
            member = {"id": "usr_1", "email": "ada@example.com", "role": "member"}
            gateway.collection("/organization/members", member)
            gateway.collection("/organizations", {"id": "org_1", "slug": "acme", "name": "Old"})
            gateway.collection("/catalog/providers", {"slug": "acme", "name": "Slow"})
            gateway.collection("/catalog/models", dict(model))
            gateway.collection("/catalog/endpoints", {"id": "ep_1", "model": "acme/fast"})
            gateway.collection("/catalog/credentials", {"id": "pk_1", "provider": "acme"})
            gateway.collection("/byok", {"id": "pk_2", "provider": "acme", "name": "first"})
            gateway.collection(
                "/notifications/destinations",
                {"id": "dst_1", "name": "ops", "url": "https://a.example", "min_severity": "info"},
            )
            gateway.requests.clear()
            run(*line.split(), stdin="sk-1")
            sent = [each for each in gateway.requests if each.method == "PATCH"]
            if not sent or name not in sent[-1].body or not is_of(route, sent[-1].path):
                faults.append((line, name))
    assert not faults, (faults, gateway.faults)


def is_of(route: str, path: str) -> bool:
    """Whether a path is one of `PATCH /keys/{}`; the id of a model is two parts of it."""
    pattern = re.escape(route.partition(" ")[2]).replace(r"\{\}", "[^/]+(?:/[^/]+)?")
    return re.fullmatch(pattern, path) is not None


def test_every_route_that_changes_a_record_has_a_command() -> None:
    """A PATCH that is new in the API fails here until a line above sends it."""
    routes = {name for name in schema.routes() if name.startswith("PATCH ")}
    assert routes == FIELDS.keys() | SETTINGS.keys()
    for (route, field), reason in EXCEPTIONS.items():
        assert reason, (route, field)
        assert field == "*" or field in schema.fields(schema.taken(*route.split(" "))), route


def test_paths_that_gwctl_asks_are_routes() -> None:
    """Also those of commands that no test runs. A part such as `/rotate` is added to the path of a record."""
    known = [name.split(" ")[1] for name in schema.routes()]
    known += ["/healthz", "/readyz", "/chat/completions", "/embeddings"]
    asked = {
        (path.name, text)
        for path in (ROOT / "gwctl").rglob("*.py")
        for text in re.findall(r'"(/[a-z][a-z/-]+)"', path.read_text("utf-8"))
        if path.name not in ("profile.py", "reach.py", "launch.py", "page.py")
    }
    assert [each for each in asked if not any(one.endswith(each[1]) for one in known)] == []
    assert len(asked) > 30
