"""A gateway as a file: whatever it holds, export, apply to an empty one and export again give the same file."""

import contextlib
import io
import json
import tomllib
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest import mock

import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from gwctl.app import main
from gwctl.desired import KINDS
from gwctl.jsontext import dumps
from tests.cli.daemon import Daemon, serving

TEXTS = st.sampled_from(
    ["", "plain", 'quo"te \\ and \n line', "名前 🙂 e\u0301", "'''", "#no comment"]
)
NAMES = st.sampled_from(["n", "a b", "it's", "名前", '"q"', "x" * 60, "none", "007", "true", "1e3"])
SLUGS = st.sampled_from(["a", "b-1", "c2"])
MONEY = st.sampled_from(["0.000000001", "0.01", "12.5", "1250", "999999.999999999"]).map(Decimal)
COUNTS = st.integers(1, 9_999)
PERCENTS = st.lists(st.integers(1, 100), max_size=3, unique=True).map(sorted)
TIMES = st.sampled_from(["2031-01-01T00:00:00Z", "2040-02-29T23:59:59Z"])
PRICE = st.sampled_from(["0", "0.000000000001", "0.0000025", "0.001"])
PRICING = st.fixed_dictionaries(
    {"prompt": PRICE, "completion": PRICE},
    optional={"input_cache_read": PRICE, "request": PRICE.map(lambda p: p[:11]), "internal_reasoning": PRICE},
)  # fmt: skip
FLAGS = st.sampled_from([{}, {"supports_prefill": False}, {"first_event_s": 30}])


def maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


def rows(
    fields: dict[str, st.SearchStrategy[Any]], *by: str
) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Up to three bodies, no two of one name; a field drawn as nothing is sent as null."""
    return st.lists(
        st.fixed_dictionaries(fields), max_size=3, unique_by=lambda row: tuple(row[n] for n in by)
    )


MODEL = {
    "id": SLUGS.map("v/{}".format), "name": NAMES, "vendor": NAMES, "description": maybe(TEXTS),
    "family": maybe(SLUGS), "context_length": COUNTS, "max_completion_tokens": COUNTS,
    "default_max_tokens": maybe(COUNTS), "supported_parameters": st.sampled_from([[], ["tools", "max_tokens"]]),
    "input_modalities": st.sampled_from([["text"], ["text", "image"]]), "is_moderated": st.booleans(),
    "pricing": maybe(PRICING), "released_at": maybe(TIMES),
}  # fmt: skip
PROVIDER = {
    "slug": SLUGS, "name": NAMES, "adapter": st.sampled_from(["openai_chat", "gemini"]),
    "base_url": st.just("https://api.example/v1"), "headers": st.sampled_from([{}, {"x-a": ""}, {"x-b": "1 2"}]),
    "flags": FLAGS, "disabled": st.booleans(),
}  # fmt: skip
ENDPOINT = {
    "tag": SLUGS, "upstream_model": NAMES, "base_url": maybe(st.just("https://other.example/v1")),
    "pricing": maybe(PRICING), "context_length": maybe(COUNTS), "max_completion_tokens": maybe(COUNTS),
    "supported_parameters": maybe(st.sampled_from([[], ["tools"]])), "flags": FLAGS,
    "weight": st.sampled_from(["0.000000001", "1", "2.5", "1000000"]).map(Decimal), "disabled": st.booleans(),
}  # fmt: skip
CREDENTIAL = {
    "name": maybe(NAMES), "key_ref": st.sampled_from(["env:K", "file:/k"]), "expires_at": maybe(TIMES),
    "sort_order": st.integers(0, 3), "disabled": st.booleans(),
}  # fmt: skip
WORKSPACE = {
    "slug": SLUGS, "name": NAMES, "description": maybe(st.sampled_from(["what for", "名前"])),
    "default_provider_sort": maybe(st.just("price")), "include_byok_in_budgets": st.booleans(),
}  # fmt: skip
KEY = {
    "name": NAMES, "limit": maybe(st.just(Decimal(0)) | MONEY), "limit_reset": maybe(st.just("monthly")),
    "allowed_models": maybe(st.sampled_from([["v/*"], ["*/x", "a/y*"]])), "strict": st.booleans(),
    "default_provider_sort": maybe(st.just("latency")), "data_policy": st.sampled_from(["allow", "deny"]),
    "rate_limit_per_minute": maybe(st.integers(1, 600)), "expires_at": maybe(TIMES),
    "include_byok_in_limit": st.booleans(), "in_flight_cap": maybe(COUNTS), "alert_thresholds": maybe(PERCENTS),
    "external_user": maybe(st.sampled_from(["u 1"])), "disabled": st.booleans(),
}  # fmt: skip
BYOK = {
    "name": NAMES, "key_ref": st.sampled_from(["env:K", "file:/k"]), "allowed_models": maybe(st.just(["v/*"])),
    "is_fallback": st.booleans(), "sort_order": st.integers(-2, 3), "disabled": st.booleans(),
    "everywhere": st.booleans(),
}  # fmt: skip
BUDGET = {
    "interval": st.sampled_from(["monthly"]), "kind": st.sampled_from(["hard", "soft"]), "limit": MONEY,
    "include_byok": st.booleans(), "alert_thresholds": PERCENTS, "on": st.sampled_from(["organization", "key"]),
    "shadow": st.booleans(),
}  # fmt: skip

WEBHOOK = {
    "name": NAMES, "type": st.just("webhook"), "min_severity": st.sampled_from(["info", "warning", "critical"]),
    "url": st.sampled_from(["http://127.0.0.1:9/a?b=c&d", "https://127.0.0.1/"]), "enabled": st.booleans(),
    "events": st.sampled_from([[], ["key_limit"], ["low_balance", "node"]]),
}  # fmt: skip
MAIL = {**WEBHOOK, "type": st.just("email"), "address": st.just("ops@example.com")}
del MAIL["url"]

GATEWAYS = st.fixed_dictionaries(
    {
        "providers": rows(PROVIDER, "slug"), "credentials": rows(CREDENTIAL, "name"), "models": rows(MODEL, "id"),
        "endpoints": rows(ENDPOINT, "tag"), "workspaces": rows(WORKSPACE, "slug"), "keys": rows(KEY, "name"),
        "byok": rows(BYOK, "name"), "budgets": rows(BUDGET, "on", "kind"),
        "webhooks": rows(WEBHOOK, "name") | rows(MAIL, "name"),
    }
)  # fmt: skip


REACHES_ITSELF = {
    "GWD_WEBHOOKS_ALLOW_NETWORKS": '["127.0.0.0/8"]', "GWD_WEBHOOKS_ALLOW_HTTP": "true",
    "GWD_SMTP_HOST": "127.0.0.1", "GWD_SMTP_PORT": "9", "GWD_SMTP_FROM": "gateway@example.com",
}  # fmt: skip


class Node:
    """One daemon: gwctl in this process, and the API for what is made without it."""

    def __init__(self, daemon: Daemon) -> None:
        self.environment = daemon.environment
        self.folder = daemon.folder
        key = self.environment["GWCTL_KEY"]
        self.api = httpx.Client(base_url=daemon.url, headers={"authorization": f"Bearer {key}"})

    def gwctl(self, *words: str, code: int = 0) -> str:
        out, err = io.StringIO(), io.StringIO()
        with (
            mock.patch.dict("os.environ", self.environment),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            found = main(list(words))
        assert found == code, (words, found, out.getvalue(), err.getvalue())
        return out.getvalue()

    def post(self, path: str, body: dict[str, Any], method: str = "POST") -> Any:
        content = dumps(body)
        reply = self.api.request(method, path, content=content)
        assert reply.status_code in (200, 201), (path, content, reply.text)
        return reply.json()["data"]

    def empty(self) -> None:
        """Nothing is left but what every node is born with."""
        file = self.folder / "empty.toml"
        file.write_text("".join(f"{kind.table} = []\n" for kind in KINDS))
        self.gwctl("apply", "-f", str(file), "--prune", "--yes")

    def fill(self, wanted: dict[str, list[dict[str, Any]]]) -> None:
        """A gateway made by hand; what refers to nothing that is there is left out."""
        for row in wanted["providers"]:
            self.post("/catalog/providers", row)
        slugs = [row["slug"] for row in wanted["providers"]]
        for row in wanted["credentials"] if slugs else []:
            self.post("/catalog/credentials", {**row, "provider": slugs[0]})
        for row in wanted["models"]:
            self.post("/catalog/models", row)
        for row in wanted["endpoints"] if slugs and wanted["models"] else []:
            model = wanted["models"][-1]["id"]
            self.post("/catalog/endpoints", {**row, "model": model, "provider": slugs[-1]})
        for row in wanted["workspaces"]:
            self.post("/workspaces", row)
        made = ""
        for row in wanted["keys"]:
            slug = wanted["workspaces"][0]["slug"] if wanted["workspaces"] else "default"
            body = {n: v for n, v in row.items() if n != "disabled"}
            made = self.post("/keys", {**body, "workspace_id": slug})["id"]
            if row["disabled"]:
                self.post(f"/keys/{made}", {"disabled": True}, "PATCH")
        for row in wanted["byok"] if slugs else []:
            body = {n: v for n, v in row.items() if n != "everywhere"}
            named = wanted["workspaces"] and not row["everywhere"]
            slug = wanted["workspaces"][0]["slug"] if named else None
            self.post("/byok", {**body, "provider": slugs[0], "workspace_id": slug})
        for row in wanted["budgets"]:
            if row["on"] == "organization" or made:
                scope = {"scope": row["on"]} | ({"scope_id": made} if row["on"] == "key" else {})
                shadow = {"shadow": row["shadow"] and row["kind"] == "hard"}
                self.post("/budgets", {n: v for n, v in row.items() if n != "on"} | scope | shadow)
        for row in wanted["webhooks"]:
            self.post("/notifications/destinations", row)


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Node, Node]]:
    with (
        serving(tmp_path_factory.mktemp("one"), **REACHES_ITSELF) as one,
        serving(tmp_path_factory.mktemp("two"), **REACHES_ITSELF) as two,
    ):
        made = Node(one), Node(two)
        yield made
        for node in made:
            node.api.close()


@settings(
    max_examples=12,
    phases=[Phase.generate],
    report_multiple_bugs=False,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    database=None,
    derandomize=True,
)
@given(wanted=GATEWAYS)
def test_export_apply_export_is_the_same(nodes: tuple[Node, Node], wanted: dict[str, Any]) -> None:
    one, two = nodes
    one.empty()
    two.empty()
    one.fill(wanted)
    exported = one.gwctl("export")
    file = one.folder / "gw.toml"
    file.write_text(exported)
    one.gwctl("diff", "-f", str(file), "--prune")  # a file that was exported changes nothing here
    two.gwctl("apply", "-f", str(file), "--accept")
    assert two.gwctl("export") == exported
    two.gwctl("diff", "-f", str(file), "--prune")
    for key in tomllib.loads(exported, parse_float=Decimal).get("keys", []):
        row = next(row for row in wanted["keys"] if row["name"] == key["name"])
        assert (key.get("limit"), key["disabled"]) == (row["limit"], row["disabled"])


def test_each_of_six_values_is_its_own(nodes: tuple[Node, Node]) -> None:
    """What the file leaves out stays; what it empties is null; 0, "", [] and false are set as they stand."""
    node, _ = nodes
    node.empty()
    first = (
        '[[keys]]\nname = "six"\nlimit = 5\nalert_thresholds = [50]\nstrict = true\nexternal_user = "u"\n'
        '[[models]]\nid = "v/six"\nname = "Six"\nvendor = "V"\ncontext_length = 9\nmax_completion_tokens = 9\n'
        'supported_parameters = ["tools"]\ndescription = "d"\n'
    )
    file = node.folder / "six.toml"
    file.write_text(first)
    node.gwctl("apply", "-f", str(file))

    def changed(key: str = "", model: str = "") -> tuple[list[str], Any, Any]:
        """Which fields a file changes; the key and the model afterwards."""
        model_row = first.partition("[[models]]")[2].replace('description = "d"\n', "")
        model_row = (
            model_row.replace('supported_parameters = ["tools"]\n', "") if model else model_row
        )
        text = f'[[keys]]\nname = "six"\n{key}\n[[models]]{model_row}{model}\n'
        file.write_text(text)
        found = json.loads(
            node.gwctl("diff", "-f", str(file), "--json", code=8 if key or model else 0)
        )
        node.gwctl("apply", "-f", str(file))
        node.gwctl("diff", "-f", str(file))
        return (
            [name for change in found for name in change["fields"]],
            json.loads(node.gwctl("key", "show", "six", "--json")),
            json.loads(node.gwctl("model", "show", "v/six", "--json")),
        )

    fields, key, model = changed()
    assert (fields, key["limit"], key["strict"], model["description"]) == ([], 5, True, "d")
    fields, key, _ = changed("limit = 0\nalert_thresholds = []\nstrict = false")
    assert fields == ["limit", "alert_thresholds", "strict"]
    assert (key["limit"], key["alert_thresholds"], key["strict"]) == (0, [], False)
    fields, key, _ = changed('clear = ["limit", "external_user"]')
    assert fields == ["limit", "external_user"]
    assert (key["limit"], key["external_user"]) == (None, None)
    fields, _, model = changed(model='supported_parameters = []\ndescription = ""')
    assert fields == ["supported_parameters", "description"]
    assert (model["supported_parameters"], model["description"]) == ([], "")
    fields, _, model = changed(model='clear = ["description"]')
    assert (fields, model["description"], model["supported_parameters"]) == (
        ["description"],
        None,
        [],
    )
    fields, key, _ = changed("limit = 0", "supported_parameters = []")
    assert fields == ["limit"]
    assert "limit  $0.00 -> -" in node.gwctl("key", "update", "six", "--limit", "none")


def test_unknown_names_are_found_before_the_first_change(
    nodes: tuple[Node, Node], tmp_path: Path
) -> None:
    node, _ = nodes
    node.empty()
    before = node.gwctl("export")
    head = '[[keys]]\nname = "first"\n'
    model = (
        '[[models]]\nid = "v/m"\nname = "M"\nvendor = "V"\ncontext_length = 9\nmax_completion_tokens = 9\n'
        "supported_parameters = []\n"
    )
    provider = '[[providers]]\nslug = "p"\nname = "P"\nadapter = "gemini"\nbase_url = "https://x.example"\n'
    for wrong in (
        '[[keys]]\nname = "b"\nworkspace = "nosuch"\n',
        '[[budgets]]\nscope = "workspace:nosuch"\ninterval = "daily"\nlimit = 5\n',
        '[[budgets]]\nscope = "key:nosuch"\ninterval = "daily"\nlimit = 5\n',
        f'{model}[[endpoints]]\nmodel = "v/m"\nprovider = "nosuch"\nupstream_model = "x"\n',
        f'{provider}[[endpoints]]\nmodel = "v/nosuch"\nprovider = "p"\nupstream_model = "x"\n',
        f'{model}deprecated_at = 2026-01-01T00:00:00Z\nsuccessor = "v/nosuch"\n',
        '[[credentials]]\nprovider = "nosuch"\nsecret = "env:K"\n',
    ):
        file = tmp_path / "gw.toml"
        keys = "" if wrong.startswith("[[keys]]") else head
        file.write_text(f"{head}{wrong}" if not keys else f"{wrong}{head}")
        node.gwctl("apply", "-f", str(file), code=3)
        assert node.gwctl("export") == before, wrong


def test_a_dear_price_in_a_file_is_refused_whole_without_accept(
    nodes: tuple[Node, Node], tmp_path: Path
) -> None:
    node, _ = nodes
    node.empty()
    before = node.gwctl("export")
    file = tmp_path / "gw.toml"
    text = (
        '[[models]]\nid = "v/{}"\nname = "M"\nvendor = "V"\ncontext_length = 9\nmax_completion_tokens = 9\n'
        'supported_parameters = []\npricing = {{ prompt = "{}", completion = "0.000001" }}\n'
    )
    file.write_text(text.format("fair", "0.000001") + text.format("dear", "0.25"))
    assert "needs --accept" in node.gwctl("diff", "-f", str(file), code=8)
    node.gwctl("apply", "-f", str(file), "--yes", code=1)
    assert node.gwctl("export") == before
    node.gwctl("apply", "-f", str(file), "--accept")
    file.write_text(text.format("fair", "0.00001001"))
    node.gwctl("apply", "-f", str(file), code=1)
    node.gwctl("apply", "-f", str(file), "--accept")
    shown = node.gwctl("model", "price", "show", "v/fair")
    assert "0.00001001" in shown
    node.gwctl("model", "price", "set", "v/fair", "--prompt", "0.9", code=1)
    assert "pricing.prompt  $10.01 -> $0.90" in node.gwctl(
        "model", "price", "set", "v/fair", "--prompt", "0.9", "--accept"
    )
