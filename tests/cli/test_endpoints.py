"""Several endpoints of one model in one command: all of them, or after a refusal none."""

import json
from typing import Any

from tests.cli.conftest import Run
from tests.cli.gateway import Answer, FakeGateway, Received, error

ADD = "endpoint add acme/fast --provider a --provider b"


def endpoints(gateway: FakeGateway) -> list[dict[str, Any]]:
    gateway.collection("/catalog/models", {"id": "acme/fast"})
    rows: list[dict[str, Any]] = [
        {"id": "ep_1", "model": "acme/fast", "tag": "a", "weight": 1},
        {"id": "ep_2", "model": "acme/fast", "tag": "b/eu", "weight": 1},
    ]
    return gateway.collection("/catalog/endpoints", *rows).rows


def refuse(gateway: FakeGateway, method: str, path: str, *, after: int) -> None:
    """The collection answers, and the request after so many of them is refused."""
    seen: list[Received] = []
    collection = gateway.collections["/catalog/endpoints"]

    def answer(request: Received) -> Answer:
        seen.append(request)
        if len(seen) > after:
            return error(400, "invalid_request", "no")
        return collection.answer(request, request.path[len("/catalog/endpoints") + 1 :])

    gateway.on(method, path, answer)


def test_several_endpoints_are_added_with_their_weights(run: Run, gateway: FakeGateway) -> None:
    gateway.collection("/catalog/endpoints")
    words = "--weight a=3 --weight b=1 --upstream-model b=deploy-1 --json"
    code, out, _ = run(*ADD.split(), *words.split())
    assert code == 0
    assert [record["weight"] for record in json.loads(out)] == [3, 1]
    sent = [r.body for r in gateway.requests if r.method == "POST"]
    assert [(b["provider"], b["upstream_model"], b["weight"]) for b in sent] == [
        ("a", "fast", 3),
        ("b", "deploy-1", 1),
    ]


def test_after_a_refusal_none_of_them_is_left(run: Run, gateway: FakeGateway) -> None:
    rows = gateway.collection("/catalog/endpoints").rows
    refuse(gateway, "POST", "/catalog/endpoints", after=1)
    code, out, err = run(*ADD.split())
    assert (code, out, rows) == (1, "", [])
    assert "1 change before it taken back" in err


def test_a_price_that_looks_like_a_slip_is_asked_about(run: Run, gateway: FakeGateway) -> None:
    gateway.collection("/catalog/endpoints")
    refused = error(409, "price_not_accepted", "0.002 a token is above 0.001; send accept")
    gateway.on("POST", "/catalog/endpoints", refused)
    code, _, err = run(*ADD.split(), "--prompt", "2000", "--completion", "1")
    assert code == 1
    assert "add --accept if that is meant" in err


def test_what_cannot_be_taken_back_is_named(run: Run, gateway: FakeGateway) -> None:
    gateway.collection("/catalog/endpoints")
    refuse(gateway, "POST", "/catalog/endpoints", after=1)
    gateway.collections["/catalog/endpoints"].prefix = "ep_"
    gateway.on("DELETE", "/catalog/endpoints/ep_1", error(503, "storage_unavailable", "in use"))
    code, _, err = run(*ADD.split())
    assert code == 1
    assert "acme/fast at a could not be taken back:" in err


def test_options_of_several_say_of_which_they_are(run: Run, gateway: FakeGateway) -> None:
    wrong = []
    for words, said in {
        "--weight 3": "--weight '3' is of none of a, b",
        "--weight c=3": "--weight 'c=3' is of none of a, b",
        "--weight a=": "--weight 'a=' is of none of a, b",
        "--weight a=1 --weight a=2": "--weight is given twice for a",
        "--weight a=much": "--weight 'much' is not a number",
        "--tag a/eu": "--tag is of one endpoint",
        "--base-url https://x.example": "--base-url is of one endpoint",
        "--provider a": "a name is given twice",
    }.items():
        code, _, err = run(*ADD.split(), *words.split())
        if code != 2 or said not in err:
            wrong.append((words, code, err))
    assert wrong == []
    assert gateway.writes() == []


def test_an_option_of_one_endpoint_may_hold_an_equals_sign(run: Run, gateway: FakeGateway) -> None:
    gateway.collection("/catalog/endpoints")
    words = "endpoint add acme/fast --provider a --upstream-model v=1 --weight a=2"
    assert run(*words.split()).code == 0
    sent = gateway.sent("POST", "/catalog/endpoints").body
    assert (sent["upstream_model"], sent["weight"]) == ("v=1", 2)


def test_weights_are_changed_together_and_only_where_they_differ(
    run: Run, gateway: FakeGateway
) -> None:
    rows = endpoints(gateway)
    code, out, _ = run("endpoint", "weights", "acme/fast", "a=3", "ep_2=1", "--dry-run")
    assert (code, out) == (8, "~ a  weight 1 -> 3\n")
    assert run("endpoint", "weights", "acme/fast", "a=3", "b/eu=0.5").code == 0
    assert [row["weight"] for row in rows] == [3, 0.5]
    before = len(gateway.writes())
    code, out, err = run("endpoint", "weights", "acme/fast", "a=3.0")
    assert (code, len(gateway.writes())) == (0, before)
    assert "already so" in err
    assert "b/eu" in run("endpoint", "weights", "acme/fast").out


def test_after_a_refusal_the_weights_are_as_before(run: Run, gateway: FakeGateway) -> None:
    rows = endpoints(gateway)
    refuse(gateway, "PATCH", "/catalog/endpoints/ep_2", after=0)
    code, out, err = run("endpoint", "weights", "acme/fast", "a=3", "b/eu=1000")
    assert (code, out) == (1, "")
    assert [row["weight"] for row in rows] == [1, 1]
    assert "1 change before it taken back" in err


def test_a_weight_of_nothing_is_refused_before_any_is_changed(
    run: Run, gateway: FakeGateway
) -> None:
    endpoints(gateway)
    wrong = []
    for words, code, said in (
        ("a=3 c=1", 3, "one of: a, b/eu"),
        ("a=3 a=1", 2, "named twice"),
        ("a=3 ep_1=1", 2, "named twice"),
        ("a", 2, "openai=3 azure=1"),
        ("a=0,5", 2, "0.5"),
    ):
        found = run("endpoint", "weights", "acme/fast", *words.split())
        if found.code != code or said not in found.err:
            wrong.append((words, found))
    assert wrong == []
    assert gateway.writes() == []


def test_an_announced_price_of_an_endpoint_keeps_what_it_does_not_name(
    run: Run, gateway: FakeGateway
) -> None:
    """What holds then is carried over: the endpoint's own announced price, else the model's."""
    gateway.collection(
        "/catalog/models",
        {
            "id": "acme/fast",
            "pricing": {"prompt": "0.000001", "completion": "0.000002"},
            "prices": [
                {
                    "effective_at": "2026-01-01T00:00:00Z",
                    "pricing": {"prompt": "0.000001", "completion": "0.000002"},
                }
            ],
        },
    )
    own = {"effective_at": "2098-01-01T00:00:00Z", "pricing": {"prompt": "0.000009"}}
    gateway.collection(
        "/catalog/endpoints",
        {"id": "ep_1", "model": "acme/fast", "tag": "a", "pricing": None, "prices": [own]},
    )
    words = "endpoint update ep_1 --completion 8 --effective"
    assert run(*words.split(), "2097-01-01").code == 0
    sent = gateway.sent("PATCH", "/catalog/endpoints/ep_1").body
    assert sent["pricing"] == {"prompt": "0.000001", "completion": "0.000008"}
    assert sent["effective_at"].startswith("2097-01-01T")
    gateway.collections["/catalog/endpoints"].rows[0]["prices"] = [own]
    assert run(*words.split(), "2099-01-01").code == 0
    sent = gateway.sent("PATCH", "/catalog/endpoints/ep_1").body
    assert sent["pricing"] == {"prompt": "0.000009", "completion": "0.000008"}
    assert run("endpoint", "update", "ep_1", "--effective", "7d").code == 2
