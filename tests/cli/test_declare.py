"""apply, diff, export, provider add: the gateway as a file."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from gwctl import shipped
from tests.cli.conftest import ROOT, Run
from tests.cli.gateway import SECRET, FakeGateway, error

FILE = """
# committed to the repository
[[providers]]
slug = "acme"
name = "Acme"
adapter = "openai_chat"
base_url = "https://api.acme.example/v1"

[[credentials]]
provider = "acme"
secret = "env:ACME_KEY"

[[models]]
id = "acme/old"
name = "Old"
vendor = "Acme"
context_length = 32000
max_completion_tokens = 4096
supported_parameters = ["max_tokens", "tools"]
pricing = { prompt = "0.0000005", completion = "0.000002" }
deprecated_at = 2026-11-01T00:00:00Z
successor = "acme/new"

[[models]]
id = "acme/new"
name = "New"
vendor = "Acme"
context_length = 64000
max_completion_tokens = 4096
supported_parameters = ["max_tokens"]
pricing = { prompt = 0.0000005, completion = "0.000002" }

[[endpoints]]
model = "acme/new"
provider = "acme"
upstream_model = "new-1"

[[keys]]
name = "ci"
workspace = "web"
limit = 50
limit_reset = "monthly"

[[budgets]]
scope = "workspace:web"
interval = "monthly"
limit = 250.00

[[budgets]]
scope = "key:ci"
interval = "daily"
limit = 5

[[webhooks]]
name = "ops"
url = "https://hooks.example.com/gw"
events = ["budget_threshold"]
min_severity = "warning"
"""


@pytest.fixture
def file(home: Path) -> Path:
    path = home / "gw.toml"
    path.write_text(FILE)
    return path


@pytest.fixture
def node(gateway: FakeGateway) -> FakeGateway:
    """A gateway without a catalog, with one workspace."""
    gateway.collection("/catalog/providers")
    gateway.collection("/catalog/credentials", prefix="cred_")
    gateway.collection("/catalog/models")
    gateway.collection("/catalog/endpoints", prefix="ep_")
    gateway.collection("/workspaces", {"id": "ws_1", "slug": "web", "name": "Web"})
    gateway.collection("/keys", prefix="key_")
    gateway.collection("/byok", prefix="pk_")
    gateway.collection("/budgets", prefix="bud_")
    gateway.collection("/notifications/destinations", prefix="dst_")
    return gateway


def test_apply_twice_changes_nothing_the_second_time(
    run: Run, node: FakeGateway, file: Path
) -> None:
    code, out, err = run("apply", "-f", str(file))
    assert (code, err) == (0, "")
    assert "9 changes made" in out
    assert out.count(SECRET) == 2  # the key's and the webhook's, once each
    assert "Webhook ops created. It is shown once; keep it now." in out
    first = len(node.writes())
    code, out, _ = run("apply", "-f", str(file))
    assert code == 0
    assert "0 changes made" in out
    assert len(node.writes()) == first
    assert run("diff", "-f", str(file)).code == 0


def test_references_are_resolved_and_successors_come_first(
    run: Run, node: FakeGateway, file: Path
) -> None:
    run("apply", "-f", str(file))
    bodies = {(r.path, i): r.body for i, r in enumerate(node.requests) if r.method == "POST"}
    models = [body["id"] for (path, _), body in bodies.items() if path == "/catalog/models"]
    assert models == ["acme/new", "acme/old"]
    assert node.sent("POST", "/keys").body["workspace_id"] == "ws_1"
    scopes = [b for (path, _), b in bodies.items() if path == "/budgets"]
    assert [b["scope_id"] for b in scopes] == ["ws_1", "key_1"]
    credential = node.sent("POST", "/catalog/credentials").body
    assert credential == {"provider": "acme", "key_ref": "env:ACME_KEY"}
    assert node.sent("POST", "/catalog/models").body["deprecated_at"] == "2026-11-01T00:00:00Z"
    assert node.requests[-1].method in ("GET", "POST")


def test_dry_run_lists_differences_field_by_field_and_exits_8(
    run: Run, node: FakeGateway, file: Path
) -> None:
    run("apply", "-f", str(file))
    file.write_text(
        FILE.replace("limit = 250.00", "limit = 300").replace('"0.0000005", c', '"0.000001", c')
    )
    before = len(node.writes())
    code, out, _ = run("apply", "-f", str(file), "--dry-run")
    assert code == 8
    assert "~ budget     workspace:web monthly   limit $250.00 -> $300.00" in out
    assert "~ model      acme/old   pricing.prompt $0.50 -> $1.00" in out
    assert out.endswith("2 changes, 0 left alone. Nothing was done.\n")
    assert len(node.writes()) == before
    assert run("diff", "-f", str(file)).code == 8


def test_a_changed_price_is_sent_whole(run: Run, node: FakeGateway, file: Path) -> None:
    run("apply", "-f", str(file))
    file.write_text(FILE.replace('"0.0000005", c', '"0.000001", c'))
    run("apply", "-f", str(file))
    assert node.sent("PATCH", "/catalog/models/acme/old").body == {
        "pricing": {"prompt": "0.000001", "completion": "0.000002"}
    }


def test_what_the_file_lacks_is_deleted_only_with_prune(
    run: Run, node: FakeGateway, file: Path
) -> None:
    run("apply", "-f", str(file))
    node.collections["/keys"].rows += [
        {"id": "key_8", "name": "old-ci", "type": "inference"},
        {"id": "mk_1", "name": "ops", "type": "management"},
    ]
    code, out, _ = run("apply", "-f", str(file), "--dry-run")
    assert code == 0
    assert "- key        old-ci   (only with --prune)" in out
    assert "0 changes, 1 left alone" in out
    assert run("apply", "-f", str(file), "--prune").code == 2
    assert ("DELETE", "/keys/key_8") not in node.writes()
    assert run("apply", "-f", str(file), "--prune", "--yes").code == 0
    assert [w for w in node.writes() if w[0] == "DELETE"] == [("DELETE", "/keys/key_8")]


def test_only_tables_in_the_file_are_touched(run: Run, node: FakeGateway, home: Path) -> None:
    path = home / "keys.toml"
    path.write_text('[[keys]]\nname = "ci"\n')
    node.collections["/budgets"].rows.append({"id": "bud_7", "scope": "organization"})
    run("apply", "-f", str(path), "--prune", "--yes")
    assert node.writes() == [("POST", "/keys")]


def test_export_gives_a_file_that_changes_nothing(run: Run, node: FakeGateway, file: Path) -> None:
    run("apply", "-f", str(file))
    exported = run("export").out
    assert SECRET not in exported
    tables = tomllib.loads(exported)
    assert tables["budgets"][0]["scope"] == "workspace:web"
    assert tables["credentials"][0]["key_ref"] == "env:ACME_KEY"
    file.write_text(exported)
    before = len(node.writes())
    assert run("apply", "-f", str(file), "--prune", "--yes").code == 0
    assert len(node.writes()) == before
    assert list(tomllib.loads(run("export", "--only", "keys").out)) == ["keys"]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('[[provders]]\nslug = "x"', "providers"),
        ('[[keys]]\nnmae = "x"', "name"),
        ("[[keys]]\nlimit = 5", "name is missing"),
        ('[[credentials]]\nprovider = "x"\nsecret = "sk-plain"', "by reference only"),
        ('[[keys]]\nname = "x"\nexpires_at = 2026-11-01T00:00:00', "no offset"),
        ('[[keys]]\nname = "x"\n[[keys]]\nname = "x"', "twice"),
        ("[[keys]", "not valid TOML"),
        ('[[webhooks]]\nname = "x"', "url is missing"),
        ('[[webhooks]]\nname = "x"\ntype = "email"\nurl = "https://a.example"', "address"),
        ('[[webhooks]]\nname = "x"\nurl = "https://a.example"\naddress = "a@b.example"', "url"),
        ('[[webhooks]]\nname = "x"\nurl = "https://a.example"\nformat = "slack"', "format"),
        ('[[webhooks]]\nname = "x"\ntype = "pigeon"\nurl = "https://a.example"', "pigeon"),
        ('[[webhooks]]\nname = "x"\ntype = "chat"\nurl = "https://a.example"', "is a secret"),
    ],
)
def test_a_mistake_in_the_file_is_named_and_nothing_is_sent(
    run: Run, node: FakeGateway, home: Path, text: str, named: str
) -> None:
    path = home / "bad.toml"
    path.write_text(text)
    code, out, err = run("apply", "-f", str(path))
    assert code in (1, 2)
    assert out == ""
    assert named in err
    assert node.requests == []


def test_webhooks_and_mail_are_compared_and_chat_channels_left_alone(
    run: Run, node: FakeGateway, home: Path
) -> None:
    path, rows = home / "hooks.toml", node.collections["/notifications/destinations"].rows
    chat = {"id": "dst_9", "name": "team", "type": "chat", "url": "https://hooks.slack.com/…"}
    rows.append({**chat, "enabled": True})
    mail = '[[webhooks]]\nname = "mail"\naddress = "ops@example.com"\n'
    hook = '[[webhooks]]\nname = "ops"\nurl = "https://hooks.example.com/gw"\n'
    path.write_text(mail + hook)
    assert run("apply", "-f", str(path)).out.count(SECRET) == 1
    sent = [r.body for r in node.requests if r.method == "POST"]
    assert [body["type"] for body in sent] == ["email", "webhook"]
    more = 'events = ["node"]\nmin_severity = "warning"\nenabled = true\n'
    path.write_text(mail + hook + more)
    code, out, _ = run("diff", "-f", str(path))
    assert code == 8
    assert "~ webhook    ops   events [] -> node" in out
    run("apply", "-f", str(path), "--prune", "--yes")
    assert run("diff", "-f", str(path), "--prune").code == 0
    assert (rows[-1]["enabled"], rows[-1]["min_severity"]) == (True, "warning")
    exported = run("export", "--only", "webhooks").out
    assert "slack" not in exported
    path.write_text(exported)
    assert run("diff", "-f", str(path), "--prune").code == 0
    path.write_text(hook + 'type = "email"\n')
    assert "url is not for type email" in run("apply", "-f", str(path)).err
    path.write_text('[[webhooks]]\nname = "ops"\naddress = "ops@example.com"\n')
    assert "type of webhook ops cannot change" in run("apply", "-f", str(path)).err
    path.write_text("webhooks = []\n")
    run("apply", "-f", str(path), "--prune", "--yes")
    assert [row["id"] for row in rows] == ["dst_9"]


def test_a_field_the_api_cannot_change_is_refused_before_anything_is_done(
    run: Run, node: FakeGateway, file: Path
) -> None:
    run("apply", "-f", str(file))
    before = len(node.writes())
    block = FILE[FILE.index("[[providers]]") : FILE.index("[[credentials]]")]
    moved = 'provider = "other"\ntag = "acme"\nupstream_model'
    text = FILE.replace('provider = "acme"\nupstream_model', moved)
    file.write_text(text + block.replace('slug = "acme"', 'slug = "other"'))
    code, _, err = run("apply", "-f", str(file))
    assert code == 2
    assert "provider of endpoint acme/new acme cannot change" in err
    assert len(node.writes()) == before


def test_diff_as_json_holds_every_field(run: Run, node: FakeGateway, file: Path) -> None:
    run("apply", "-f", str(file))
    file.write_text(FILE.replace("limit = 50\n", "limit = 60\n"))
    code, out, _ = run("diff", "-f", str(file), "--json")
    assert code == 8
    assert json.loads(out) == [
        {
            "action": "change",
            "kind": "key",
            "name": "ci",
            "fields": {"limit": {"before": 50, "after": 60}},
        }
    ]


def test_a_shipped_vendor_comes_with_models_prices_and_endpoints(
    run: Run, node: FakeGateway
) -> None:
    code, out, _ = run("provider", "add", "anthropic", "--key-ref", "env:ANTHROPIC_API_KEY")
    assert code == 0
    assert "models" in out
    posts = [r for r in node.requests if r.method == "POST"]
    paths = [r.path for r in posts]
    assert paths.index("/catalog/credentials") < paths.index("/catalog/models")
    assert paths.index("/catalog/models") < paths.index("/catalog/endpoints")
    assert all(r.body["pricing"]["prompt"] for r in posts if r.path == "/catalog/models")
    before = len(node.writes())
    assert run("provider", "add", "anthropic").code == 0  # the second time asks for nothing
    assert len(node.writes()) == before


def test_adding_a_vendor_leaves_edited_prices_alone(run: Run, node: FakeGateway) -> None:
    run("provider", "add", "google", "--key-ref", "env:GEMINI_API_KEY")
    model: dict[str, Any] = node.collections["/catalog/models"].rows[0]
    model["pricing"] = {"prompt": "1", "completion": "1"}
    run("provider", "add", "google")
    assert model["pricing"] == {"prompt": "1", "completion": "1"}


def test_a_vendors_key_comes_from_stdin_and_is_asked_for_before_anything_is_made(
    run: Run, node: FakeGateway
) -> None:
    assert run("provider", "add", "openai").code == 2
    assert node.writes() == []
    assert run("provider", "add", "openai", "--secret-stdin", stdin="sk-abc123\n").code == 0
    credentials = [r.body for r in node.requests if r.path == "/catalog/credentials" and r.text]
    assert credentials
    assert all(body["key"] == "sk-abc123" for body in credentials)
    assert {body["provider"] for body in credentials} == {
        entry["slug"] for entry in (shipped.vendor("openai") or {})["providers"]
    }


def test_any_other_provider_needs_adapter_and_address(run: Run, node: FakeGateway) -> None:
    code, _, err = run("provider", "add", "local", "--key-ref", "env:X")
    assert code == 2
    assert "--adapter" in err
    words = [
        "provider",
        "add",
        "local",
        "--adapter",
        "openai_chat",
        "--base-url",
        "http://127.0.0.1:1/v1",
    ]
    assert run(*words, "--key-ref", "env:X").code == 0
    assert node.sent("POST", "/catalog/providers").body == {
        "slug": "local",
        "name": "local",
        "adapter": "openai_chat",
        "base_url": "http://127.0.0.1:1/v1",
    }


def test_a_preset_is_a_provider_with_its_flags_and_nothing_else(
    run: Run, node: FakeGateway
) -> None:
    assert run("provider", "add", "deepseek", "--key-ref", "env:DEEPSEEK_API_KEY").code == 0
    made = node.sent("POST", "/catalog/providers").body
    assert (made["slug"], made["adapter"]) == ("deepseek", "openai_chat")
    assert made["flags"]["reasoning_replay"] == "tool_turns"
    assert node.sent("POST", "/catalog/credentials").body["key_ref"] == "env:DEEPSEEK_API_KEY"
    assert {path for _, path in node.writes()} == {"/catalog/providers", "/catalog/credentials"}


@pytest.mark.parametrize(
    ("slug", "address"),
    [
        ("ollama", "http://127.0.0.1:11434/v1"),
        ("vllm", "http://127.0.0.1:8000/v1"),
        ("llamacpp", "http://127.0.0.1:8080/v1"),
    ],
)
def test_a_server_on_this_machine_needs_no_key_and_no_address(
    run: Run, node: FakeGateway, slug: str, address: str
) -> None:
    assert run("provider", "add", slug).code == 0
    made = node.sent("POST", "/catalog/providers").body
    assert (made["base_url"], made["auth"]) == (address, "none")
    assert node.writes() == [("POST", "/catalog/providers")]
    code, _, err = run("provider", "add", f"{slug}-embeddings", "--key-ref", "env:K")
    assert (code, len(node.writes())) == (2, 1)
    assert "takes no key unless it was started with one" in err
    words = "--auth bearer --key-ref env:K --base-url http://10.0.0.7:9000/v1"
    assert run("provider", "add", f"{slug}-embeddings", *words.split()).code == 0
    made = node.sent("POST", "/catalog/providers").body
    assert made["adapter"] == "openai_embeddings"
    assert (made["base_url"], made["auth"]) == ("http://10.0.0.7:9000/v1", "bearer")
    assert node.sent("POST", "/catalog/credentials").body["key_ref"] == "env:K"


def test_azure_asks_for_the_address_that_is_ones_own(run: Run, node: FakeGateway) -> None:
    code, _, err = run("provider", "add", "azure", "--key-ref", "env:K")
    assert (code, node.writes()) == (2, [])
    assert "--base-url 'https://RESOURCE.openai.azure.com/openai/v1'" in err
    assert "api-version=" in err
    words = "--key-ref env:K --base-url https://acme.openai.azure.com/openai/v1"
    assert run("provider", "add", "azure", *words.split()).code == 0
    assert node.sent("POST", "/catalog/providers").body["auth"] == "api-key"
    assert run("provider", "add", "azure").code == 0  # what is there has its address


def test_headers_and_flags_are_given_beside_those_of_a_preset(run: Run, node: FakeGateway) -> None:
    words = (
        "--header x-team=7 --flag takes_image_urls=none --flag usage_unreliable=true --name Mine"
    )
    assert run("provider", "add", "ollama", *words.split()).code == 0
    made = node.sent("POST", "/catalog/providers").body
    assert (made["headers"], made["name"]) == ({"x-team": "7"}, "Mine")
    assert made["flags"] == {
        "reasoning_field": "reasoning",
        "first_event_s": 300,
        "usage_unreliable": True,
    }
    code, _, err = run("provider", "add", "openai", "--name", "Mine", "--key-ref", "env:K")
    assert code == 2
    assert "--name is of one provider, and openai makes openai, openai-chat" in err


def test_every_shipped_vendor_is_complete() -> None:
    named = "ollama vllm llamacpp azure openrouter groq deepseek mistral xai together fireworks"
    assert {"openai", "anthropic", "google", *named.split()} <= set(shipped.vendors())
    for slug in ("openai", "anthropic", "google"):
        tables = shipped.vendor(slug)
        assert tables is not None
        models = {entry["id"] for entry in tables["models"]}
        assert {entry["model"] for entry in tables["endpoints"]} <= models


def test_an_export_that_is_not_allowed_whole_writes_nothing(
    run: Run, node: FakeGateway, file: Path
) -> None:
    run("apply", "-f", str(file))
    assert "keys" in tomllib.loads(run("export").out)
    node.on("GET", "/catalog/providers", error(403, "insufficient_role", "Operators only."))
    code, out, _ = run("export")
    assert (code, out) == (4, "")


def test_of_several_records_of_one_name_export_writes_the_live_one(
    run: Run, node: FakeGateway, file: Path
) -> None:
    node.collections["/keys"].rows += [
        {"id": "key_7", "name": "ci", "limit": 1, "disabled": True},
        {"id": "key_8", "name": "ci", "limit": 2},
        {"id": "key_9", "name": "ci", "limit": 3},
    ]
    code, out, err = run("export", "--only", "keys")
    assert code == 0
    assert [entry["limit"] for entry in tomllib.loads(out)["keys"]] == [2]
    assert err.count("several records are called key ci") == 1
    file.write_text(out)
    assert run("apply", "-f", str(file), "--prune", "--yes").code == 0
    assert node.writes() == []


@pytest.mark.parametrize("shape", [(), ("--json",), ("-q",)])
def test_secrets_made_before_a_failure_are_printed(
    run: Run, node: FakeGateway, home: Path, shape: tuple[str, ...]
) -> None:
    path = home / "keys.toml"
    path.write_text('[[keys]]\nname = "a"\n[[keys]]\nname = "b"\n[[keys]]\nname = "c"\n')
    keys = node.collections["/keys"]

    def refuse_b(request: Any) -> Any:
        if request.body["name"] == "b":
            return error(400, "invalid_value", "No such luck.")
        return keys.answer(request, "")

    node.on("POST", "/keys", refuse_b)
    code, out, err = run("apply", "-f", str(path), *shape)
    assert code == 1
    assert out.count(SECRET) == 1
    assert f"{path}: [[keys]] number 2: No such luck" in err
    if shape == ("--json",):
        assert [row["name"] for row in json.loads(out)] == ["a"]
    elif not shape:
        assert out.endswith("+ key        a\n1 change made, 2 not done.\n")


def test_a_filter_that_does_not_fit_loses_no_secret(run: Run, node: FakeGateway) -> None:
    code, out, _ = run("key", "create", "ci", "--json", "--jq", ".[")
    assert (code, out) == (2, "")
    assert node.writes() == []
    code, out, _ = run("key", "create", "ci", "--json", "--jq", ".name.deeper")
    assert code == 1
    assert SECRET in out


@pytest.mark.parametrize(
    ("text", "code", "named"),
    [
        ('[[keys]]\nname = "a"\n[[keys]]\nname = "b"\nlimit = nan', 2, "[[keys]] number 2: limit"),
        ('[[keys]]\nname = "b"\nlimit = inf', 2, "is Infinity, which is no number"),
        ('[[models]]\nid = "a/b"\npricing = { prompt = nan }', 2, "pricing.prompt is NaN"),
        (
            '[[budgets]]\nscope = "team:x"\ninterval = "daily"\nlimit = 5',
            2,
            "[[budgets]] number 1: scope team:x is not known",
        ),
        ('[[keys]]\nname = "a"\nworkspace = "nosuch"', 3, "[[keys]] number 1: no workspace"),
        ('[[keys]]\nname = "a"\nallowed_models = ["x/*", "a/b"]', 3, "no model is called a/b"),
        ('[[keys]]\nname = "a"\nignored_providers = ["who"]', 3, "no provider is called who"),
        (
            '[[workspaces]]\nslug = "web"\nname = "Web"\ndefault_text_model = "a/b:nitro"',
            3,
            "[[workspaces]] number 1: no model is called a/b",
        ),
    ],
)
def test_what_cannot_be_applied_is_named_with_its_place(
    run: Run, node: FakeGateway, home: Path, text: str, code: int, named: str
) -> None:
    path = home / "bad.toml"
    path.write_text(text)
    found = run("apply", "-f", str(path))
    assert found.code == code
    assert f"{path}: " in found.err
    assert named in found.err
    assert node.writes() == []


def test_a_keys_lists_name_what_the_file_or_the_gateway_has(
    run: Run, node: FakeGateway, file: Path
) -> None:
    lists = (
        'allowed_models = ["acme/new", "~acme/quick-latest", "there/*"]\n'
        'allowed_providers = ["ACME", "acme/eu", "other"]\n'
    )
    text = file.read_text().replace('name = "ci"\n', 'name = "ci"\n' + lists)
    text = text.replace('id = "acme/new"\n', 'id = "acme/new"\nfamily = "quick"\n')
    file.write_text(
        text.replace('upstream_model = "new-1"', 'upstream_model = "n"\ntag = "acme/eu"')
    )
    node.collection("/catalog/providers", {"slug": "other", "name": "Other"})
    assert run("apply", "-f", str(file)).code == 0
    assert node.sent("POST", "/keys").body["allowed_providers"] == ["ACME", "acme/eu", "other"]


def test_a_budget_may_name_an_id(run: Run, node: FakeGateway) -> None:
    text = '[[budgets]]\nscope = "key:key_old"\ninterval = "daily"\nlimit = 5\n'
    assert run("apply", "-f", "-", stdin=text).code == 0
    assert node.sent("POST", "/budgets").body["scope_id"] == "key_old"


def test_a_tag_s_and_a_user_s_budget_are_declared_by_name(
    run: Run, node: FakeGateway, file: Path
) -> None:
    text = "".join(
        f'[[budgets]]\nscope = "{scope}"\ninterval = "daily"\nlimit = 5\n'
        for scope in ("tag:team: web", "user:ann@example.com")
    )
    file.write_text(text)
    assert run("apply", "-f", str(file)).code == 0
    sent = [one.body for one in node.requests if (one.method, one.path) == ("POST", "/budgets")]
    assert [(one["scope"], one["scope_id"]) for one in sent] == [
        ("tag", "team: web"),
        ("user", "ann@example.com"),
    ]
    exported = run("export", "--only", "budgets").out
    assert [one["scope"] for one in tomllib.loads(exported)["budgets"]] == [
        "tag:team: web",
        "user:ann@example.com",
    ]
    before = len(node.writes())
    assert run("apply", "-f", str(file), "--prune", "--yes").code == 0
    assert len(node.writes()) == before


def test_apply_reads_standard_input(run: Run, node: FakeGateway) -> None:
    assert run("apply", "-f", "-", stdin='[[keys]]\nname = "ci"\n').code == 0
    assert node.writes() == [("POST", "/keys")]
    assert "standard input is not valid TOML" in run("diff", "-f", "-", stdin="[[").err


def test_adding_a_provider_again_leaves_its_key_and_address(run: Run, node: FakeGateway) -> None:
    words = ["provider", "add", "local", "--adapter", "openai_chat"]
    url = ["--base-url", "http://127.0.0.1:1/v1"]
    assert run(*words, *url, "--key-ref", "env:GOOD").code == 0
    before = len(node.writes())
    code, _, err = run(*words, *url, "--key-ref", "env:BAD")
    assert code == 0
    assert "gwctl provider secret local" in err
    for other in (
        [*words, "--base-url", "http://127.0.0.1:2/v1"],
        ["provider", "add", "local", "--adapter", "gemini", *url],
    ):
        code, _, err = run(*other, "--key-ref", "env:X")
        assert code == 2
        assert "provider local exists with --" in err
    assert len(node.writes()) == before
    assert node.collections["/catalog/credentials"].rows[0]["key_ref"] == "env:GOOD"


def test_a_provider_without_a_key_is_added_without_asking_for_one(
    run: Run, node: FakeGateway
) -> None:
    words = ["provider", "add", "local", "--adapter", "openai_chat", "--auth", "none"]
    url = ["--base-url", "http://127.0.0.1:1/v1"]
    refused = run(*words, *url, "--key-ref", "env:K")
    assert (refused.code, node.writes()) == (2, [])
    assert "--auth none and a key exclude each other" in refused.err
    for _ in range(2):  # the second time nothing is left to be made
        assert run(*words, *url).code == 0
        assert node.writes() == [("POST", "/catalog/providers")]
    assert node.sent("POST", "/catalog/providers").body["auth"] == "none"
    told = run(*words[:-2], *url, "--key-ref", "env:K")
    assert "the key is not kept; gwctl provider update local --auth bearer" in told.err
    assert node.writes() == [("POST", "/catalog/providers")]


def test_a_vendors_second_provider_gets_the_key_it_lacks(run: Run, node: FakeGateway) -> None:
    node.collections["/catalog/credentials"].rows.append({"id": "c", "provider": "openai"})
    assert run("provider", "add", "openai", "--key-ref", "env:K").code == 0
    given = [
        r.body["provider"] for r in node.requests if r.path == "/catalog/credentials" and r.text
    ]
    assert given
    assert "openai" not in given


def test_a_named_key_is_looked_for_at_its_own_provider(run: Run, node: FakeGateway) -> None:
    node.collections["/catalog/providers"].rows += [{"slug": "a"}, {"slug": "b"}]
    other = {"id": "cred_9", "provider": "a", "name": "second", "key_ref": "env:A"}
    node.collections["/catalog/credentials"].rows.append(other)
    assert run("provider", "secret", "b", "--name", "second", "--key-ref", "env:B").code == 0
    assert other["key_ref"] == "env:A"
    assert node.sent("POST", "/catalog/credentials").body["provider"] == "b"


OUR_KEY = "sk-ours-4f9c2d71e8ab5533"


def test_the_example_is_a_file_that_can_be_applied(
    run: Run, node: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(ROOT / "examples" / "gw.toml")
    monkeypatch.setenv("WEB_ACME_KEY", OUR_KEY)
    assert run("apply", "-f", path).code == 0
    node.collections["/byok"].rows[0]["label"] = "sk-…5533"
    assert [row["limit"] for row in node.collections["/keys"].rows] == [50, 0]
    assert run("diff", "-f", path).code == 0


OWN = """
[[byok]]
provider = "acme"
name = "ours"
secret = "env:OUR_ACME_KEY"
workspace = "web"
allowed_models = ["acme/*"]
is_required = true
"""


def test_own_keys_are_read_by_gwctl_and_compared_by_their_label(
    run: Run, node: FakeGateway, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gateway never reads a tenant's reference: gwctl does, and sends the key when the label tells another one."""
    node.collections["/catalog/providers"].rows.append({"slug": "acme", "name": "Acme"})
    path = home / "gw.toml"
    path.write_text(OWN)
    code, _, err = run("apply", "-f", str(path))
    assert code == 2
    assert "number 1: the secret from the environment's OUR_ACME_KEY is empty" in err
    assert node.writes() == []

    monkeypatch.setenv("OUR_ACME_KEY", OUR_KEY)
    dry = run("apply", "-f", str(path), "--dry-run")
    assert (dry.code, node.writes()) == (8, [])
    assert run("apply", "-f", str(path)).code == 0
    assert node.sent("POST", "/byok").body == {
        "provider": "acme",
        "name": "ours",
        "key": OUR_KEY,
        "workspace_id": "ws_1",
        "allowed_models": ["acme/*"],
        "is_required": True,
    }
    (row,) = node.collections["/byok"].rows
    row |= {"label": "sk-…5533"}
    row.pop("key", None)
    before = len(node.writes())
    assert run("diff", "-f", str(path)).code == 0
    monkeypatch.delenv("OUR_ACME_KEY")
    kept = run("apply", "-f", str(path))
    assert kept.code == 0
    assert "acme/ours keeps its key" in kept.err
    assert len(node.writes()) == before

    exported = run("export", "--only", "byok").out
    assert "its key is stored in the gateway" in exported
    assert 'workspace = "web"' in exported
    assert "label" not in tomllib.loads(exported)["byok"][0]
    path.write_text(exported)
    assert run("diff", "-f", str(path), "--prune").code == 0

    monkeypatch.setenv("OUR_ACME_KEY", "sk-next-97d1c0ffee120044")
    path.write_text(OWN.replace('"web"', '"default"').replace("is_required = true", 'clear = ["workspace"]')
                    .replace('workspace = "default"\n', ""))  # fmt: skip
    found = run("diff", "-f", str(path))
    assert found.code == 8
    assert "secret sk-…5533 -> sk-…0044" in found.out
    assert run("apply", "-f", str(path)).code == 0
    patch = node.sent("PATCH", f"/byok/{row['id']}").body
    assert patch == {"key": "sk-next-97d1c0ffee120044", "workspace_id": None}
    for text in (dry, found, kept):
        assert OUR_KEY not in text.out + text.err
        assert "97d1c0ffee" not in text.out + text.err


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('provider = "x"\nsecret = "sk-plain"', "by reference only"),
        ('provider = "x"\nkey = "sk-plain"', "by reference only"),
        ('provider = "x"\nsecret = "env:A"\nkey_ref = "env:A"', "exclude each other"),
        ('provider = "x"', "is new and has no secret"),
        ('name = "x"', "provider is missing"),
        ('provider = "x"\nlabel = "x"', "there is no field label"),
        ('provider = "x"\nsecret = "file:/no/such/file"', "/no/such/file"),
    ],
)
def test_what_is_wrong_of_an_own_key_is_said_before_anything_is_done(
    run: Run, node: FakeGateway, home: Path, text: str, named: str
) -> None:
    node.collections["/catalog/providers"].rows.append({"slug": "x", "name": "X"})
    path = home / "gw.toml"
    path.write_text(f"[[byok]]\n{text}\n")
    code, _, err = run("apply", "-f", str(path))
    assert code != 0
    assert named in err
    assert "sk-plain" not in err
    assert node.writes() == []


def test_a_key_for_an_endpoints_own_address_comes_after_the_endpoint(
    run: Run, node: FakeGateway, home: Path
) -> None:
    path = home / "gw.toml"
    path.write_text(
        '[[providers]]\nslug = "a"\nname = "A"\nadapter = "openai_chat"\nbase_url = "https://a.example/v1"\n'
        '[[credentials]]\nprovider = "a"\nname = "eu"\nsecret = "env:EU"\nbase_url = "https://eu.a.example/v1"\n'
        '[[credentials]]\nprovider = "a"\nname = "us"\nsecret = "env:US"\n'
        '[[endpoints]]\nmodel = "a/m"\nprovider = "a"\nupstream_model = "m"\nbase_url = "https://eu.a.example/v1"\n'
    )
    node.collections["/catalog/models"].rows.append({"id": "a/m", "name": "M"})
    assert run("apply", "-f", str(path)).code == 0
    made = [(r.path, r.body.get("name")) for r in node.requests if r.method == "POST"]
    places = [path for path, _ in made]
    assert places == [
        "/catalog/providers",
        "/catalog/credentials",
        "/catalog/endpoints",
        "/catalog/credentials",
    ]
    assert made[-1][1] == "eu"
    row = next(r for r in node.collections["/catalog/credentials"].rows if r["name"] == "eu")
    row["base_url"] = "https://old.a.example/v1"
    assert run("apply", "-f", str(path)).code == 0
    assert node.sent("PATCH", f"/catalog/credentials/{row['id']}").body == {
        "base_url": "https://eu.a.example/v1",
        "key_ref": "env:EU",
    }
