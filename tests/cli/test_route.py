"""`gwctl route explain` and `route estimate`: what is asked, how the answer is shown, and how they end."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.cli.gateway import SECRET, FakeGateway

PRICING = {"prompt": "0.00000125", "completion": "0.00001"}


def target(place: int, tag: str, **more: Any) -> dict[str, Any]:
    return {
        "place": place,
        "model": "acme/fast",
        "tag": tag,
        "provider": tag,
        "strategy": "expiry_first",
        "state": "healthy",
        "pricing": PRICING,
        "hold": 0.0213,
        "p50_ttft_ms": 390,
        **more,
    }


def refusal(code: str, status: int, message: str, **metadata: Any) -> dict[str, Any]:
    return {
        "code": code,
        "status": status,
        "message": message,
        "remedy": "Do something about it.",
        "metadata": metadata,
    }


TOLD: dict[str, Any] = {
    "dialect": "chat_completions",
    "serves": "cheap",
    "models": [{"requested": "acme/fast:floor", "model": "acme/fast", "lifecycle": "active"}],
    "targets": [
        target(1, "cheap", sort="price", drops=["seed"]),
        target(
            2,
            "dear",
            sort="price",
            state="resting",
            rest={"reason": "overloaded", "until": "2026-11-29T10:00:00Z"},
            skipped="its hold is more than the balance has",
        ),
    ],
    "left_out": [
        {
            "model": "acme/fast",
            "tag": "plain",
            "provider": "plain",
            "reason": "unsupported_parameters",
            "message": "others take `tools`",
            "lacks": ["tools"],
        }
    ],
    "prompt": {"estimate": 650, "bound": 3000},
    "output_cap": 2000,
    "hold": {"amount": 0.0213, "needed": 0.01, "available": 12.5},
}


@pytest.fixture
def told(gateway: FakeGateway) -> dict[str, Any]:
    """What the gateway answers; a test changes it before it asks."""
    answer = json.loads(json.dumps(TOLD))
    gateway.on("POST", "/route/explain", {"data": answer})
    return dict(answer)


def ask(gateway: FakeGateway, **changes: Any) -> None:
    gateway.on("POST", "/route/explain", {"data": {**TOLD, **changes}})


def test_the_options_make_up_a_request(run: Run, gateway: FakeGateway, told: Any) -> None:
    line = (
        "route explain acme/fast:floor --tools --schema --reasoning --max-tokens 2000 --sort price"
    )
    assert run(*line.split(), "--prompt-tokens", "3").code == 0
    sent = gateway.sent("POST", "/route/explain").body
    assert set(sent) == {"request"}
    request = sent["request"]
    assert request["model"] == "acme/fast:floor"
    assert request["messages"] == [{"role": "user", "content": "word word word"}]
    assert request["max_tokens"] == 2000
    assert request["provider"] == {"sort": "price"}
    assert request["tools"][0]["type"] == "function"
    assert request["response_format"]["type"] == "json_schema"
    assert request["reasoning"] == {"effort": "medium"}
    assert run("route", "explain", "acme/fast").code == 0
    request = gateway.sent("POST", "/route/explain").body["request"]
    assert set(request) == {"model", "messages"}
    assert len(request["messages"][0]["content"].split()) == 650


def test_a_file_is_sent_as_it_is(run: Run, gateway: FakeGateway, told: Any, tmp_path: Path) -> None:
    file = tmp_path / "request.json"
    file.write_text('{"model": "acme/fast", "temperature": 0.10, "input": "h\\u00e9"}')
    gateway.collection("/keys", {"id": "key_1", "name": "ci"})
    words = ("-f", str(file), "--dialect", "responses", "--key", "ci")
    assert run("route", "explain", *words).code == 0
    received = gateway.sent("POST", "/route/explain")
    assert received.body == {
        "request": {"model": "acme/fast", "temperature": 0.1, "input": "hé"},
        "dialect": "responses",
        "key_id": "key_1",
    }
    assert "0.10" in received.text


def test_what_does_not_go_together_is_wrong_usage(
    run: Run, gateway: FakeGateway, tmp_path: Path
) -> None:
    file = tmp_path / "request.json"
    file.write_text("[1]")
    for words, code in (
        ([], 2),
        (["acme/fast", "-f", str(file)], 2),
        (["-f", str(file), "--tools"], 2),
        (["acme/fast", "--dialect", "messages"], 2),
        (["-f", str(file), "--dialect", "telegram"], 2),
        (["acme/fast", "--sort", "colour"], 2),
        (["-f", str(file)], 1),
        (["-f", str(tmp_path / "none.json")], 1),
    ):
        for verb in ("explain", "estimate"):
            ended = run("route", verb, *words)
            assert (ended.code, ended.out) == (code, ""), words
            assert "  do:  " in ended.err, words
    assert gateway.requests == []


def test_a_pipe_gets_the_endpoints_and_people_the_rest(
    run: Run, gateway: FakeGateway, told: Any
) -> None:
    code, out, err = run("route", "explain", "acme/fast:floor", "--tools", "--max-tokens", "2000")
    assert code == 0
    assert out == (
        "1\tcheap\t0.00000125\t0.00001\thealthy\t390\t0.0213\tis not sent seed\n"
        "2\tdear\t0.00000125\t0.00001\tresting\t390\t0.0213\tpassed over: its hold is more than the balance has;"
        " after overloaded, until 2026-11-29T10:00:00Z\n"
        "-\tplain\t\t\tunsupported_parameters\t\t\tleft out: others take `tools`\n"
    )
    assert err == (
        "acme/fast   sort price   3 endpoints, 2 eligible   cheap would be tried first\n"
        "hold for this request: $0.0213 (about 650 tokens in, 2,000 out)   the balance can pay $12.50\n"
    )
    assert run("route", "explain", "acme/fast", "-q").out == "cheap\ndear\nplain\n"
    assert run("route", "explain", "acme/fast", "--jq", ".serves").out == "cheap\n"
    picked = json.loads(run("route", "explain", "acme/fast", "--json", "serves,output_cap").out)
    assert picked == {"serves": "cheap", "output_cap": 2000}


def test_every_limit_that_would_refuse_is_told_with_what_helps(
    run: Run, gateway: FakeGateway
) -> None:
    ask(
        gateway,
        serves=None,
        hold={"amount": None, "needed": 0.01, "available": 0},
        credentials=[
            {
                "credential_id": "pk_1",
                "tag": "plain",
                "provider": "plain",
                "message": "ACME_KEY is not set",
            }
        ],
        budgets=[
            {
                "budget_id": "bud_1",
                "kind": "soft",
                "interval": "monthly",
                "scope": "organization",
                "limit": 5,
                "spend": 5.5,
                "remaining": 0,
            }
        ],
        refusals=[
            refusal(
                "rate_limit_exceeded", 429, "this key may make 5 requests a minute", retry_after=7
            ),
            refusal("insufficient_credits", 402, "The balance does not cover this request."),
            refusal("unsupported_tool", 400, "no endpoint runs it"),
        ],
    )
    code, _, err = run("route", "explain", "acme/fast")
    assert code == 0
    assert err.splitlines()[2:] == [
        "credential pk_1 of plain: ACME_KEY is not set",
        "soft monthly budget of the organization: used up, $5.50 of $5.00",
        "would be refused: this key may make 5 requests a minute (rate_limit_exceeded, retry after 7 s)",
        "  do:  wait, then try again; gwctl key update NAME --rpm N changes the limit",
        "then: refused, the balance does not cover this request (insufficient_credits)",
        "  do:  gwctl credit purchase AMOUNT, or ask for less with --max-tokens",
        "then: no endpoint runs it (unsupported_tool)",
        "  do:  Do something about it.",
    ]


def test_an_unknown_model_is_not_found(run: Run, gateway: FakeGateway) -> None:
    unknown = refusal("model_not_found", 404, "no model `acme/none`", suggestions=["acme/fast"])
    ask(gateway, refusals=[unknown], targets=[], serves=None)
    code, out, err = run("route", "explain", "acme/none")
    assert (code, out) == (3, "")
    assert "nearest: acme/fast" in err
    assert "gwctl model list" in err


def test_a_model_of_embeddings_is_asked_for_those(run: Run, gateway: FakeGateway) -> None:
    wrong = refusal("wrong_endpoint", 400, "call /embeddings with it")
    ask(gateway, refusals=[wrong], targets=[])
    assert run("route", "explain", "acme/embed").code == 0
    sent = gateway.sent("POST", "/route/explain").body
    assert sent["dialect"] == "embeddings"
    assert set(sent["request"]) == {"model", "input"}
    assert run("route", "explain", "acme/embed", "--tools").code == 0
    assert "dialect" not in gateway.sent("POST", "/route/explain").body


def test_names_say_where_they_lead_and_several_models_have_a_column(
    run: Run, gateway: FakeGateway
) -> None:
    models = [
        {
            "requested": "old",
            "model": "acme/fast",
            "forwarded_from": "acme/old",
            "lifecycle": "deprecated",
            "retired_at": "2027-01-01T00:00:00Z",
            "successor": "acme/new",
        },
        {"requested": "acme/nope", "error": refusal("model_not_found", 404, "no model")},
    ]
    targets = [target(1, "a"), {**target(2, "b"), "model": "acme/other"}]
    ask(gateway, models=models, targets=targets, left_out=[], is_drawn=True)
    code, out, err = run("route", "explain", "old")
    assert code == 0
    assert [line.split("\t")[1:3] for line in out.splitlines()] == [
        ["acme/fast", "a"],
        ["acme/other", "b"],
    ]
    assert err.splitlines()[0] == (
        "acme/fast (forwarded from acme/old, which is retired; deprecated, retired from 2027-01-01, successor"
        " acme/new), acme/nope (model_not_found)   drawn by price   2 endpoints, 2 eligible"
        "   cheap would be tried first"
    )


def test_an_inference_key_alone_is_enough(
    run: Run, gateway: FakeGateway, told: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GWCTL_KEY")
    assert run("route", "explain", "acme/fast").code == 4
    monkeypatch.setenv("GWCTL_INFERENCE_KEY", SECRET)
    assert run("route", "explain", "acme/fast").code == 0
    assert SECRET in gateway.sent("POST", "/route/explain").headers["authorization"]


def test_an_estimate_goes_from_and_to(run: Run, gateway: FakeGateway) -> None:
    def cost(total: float) -> dict[str, Any]:
        return {"total": total}

    first = {
        "model": "acme/fast",
        "tag": "cheap",
        "output_from": 1,
        "output_to": 2000,
        "least": cost(0.001),
        "most": cost(0.0213),
        "hold": 0.0214,
    }
    answer = {
        "prompt": {"estimate": 650, "bound": 3000},
        "first": first,
        "dearest": {**first, "tag": "dear", "hold": 0.03},
        "without_price": ["acme/free"],
    }
    gateway.on("POST", "/estimate", {"data": answer})
    code, out, err = run("route", "estimate", "acme/fast", "--max-tokens", "2000")
    assert code == 0
    assert out == (
        "first\tcheap\t1 to 2,000\t0.001\t0.0213\t0.0214\n"
        "dearest\tdear\t1 to 2,000\t0.001\t0.0213\t0.03\n"
    )
    assert err == (
        "prompt     about 650 tokens, at most 3,000\n"
        "no price   acme/free: gwctl model price set acme/free\n"
    )
    assert run("route", "estimate", "acme/fast", "--jq", ".first.most.total").out == "0.0213\n"
    gateway.on("POST", "/estimate", {"data": {**answer, "first": None, "dearest": None}})
    assert run("route", "estimate", "acme/fast").out == ""
