"""Tables, tabs, JSON, quiet: what people and what programs read, which stream it goes to, money and time."""

import json
from decimal import Decimal
from typing import Any

import pytest

from gwctl import jsontext, text
from gwctl.time_input import future, past, utc_now
from tests.cli.conftest import Run
from tests.cli.gateway import Answer, FakeGateway

CI: dict[str, Any] = {
    "id": "key_01JDabc",
    "name": "ci",
    "usage": 12.083456789,
    "limit": 50,
    "limit_remaining": 37.916543211,
    "limit_reset": "monthly",
    "rate_limit_per_minute": 120,
    "disabled": False,
    "last_used_at": "2026-11-01T10:00:00Z",
}


def test_without_a_terminal_a_list_is_tab_separated_exact_and_uncut(
    run: Run, gateway: FakeGateway
) -> None:
    gateway.collection("/keys", CI)
    code, out, err = run("key", "list")
    assert code == 0
    assert out.splitlines() == [
        "ci\tkey_01JDabc\t12.083456789\t$50.00 monthly\t75.833086422\t120\tenabled"
        "\t2026-11-01T10:00:00Z"
    ]
    assert err == ""


def test_a_plural_noun_is_the_noun(run: Run, gateway: FakeGateway) -> None:
    gateway.collection("/keys", CI)
    assert run("keys", "list").out == run("key", "list").out


def test_json_lists_are_one_array_of_the_apis_records(run: Run, gateway: FakeGateway) -> None:
    keys = gateway.collection("/keys", CI, {**CI, "id": "key_2"})
    found = json.loads(run("key", "list", "--json").out)
    assert found == [keys.whole(CI), keys.whole({**CI, "id": "key_2"})]


def test_json_with_fields_picks_them_in_order(run: Run, gateway: FakeGateway) -> None:
    gateway.collection("/keys", CI)
    assert json.loads(run("key", "list", "--json", "name,id").out) == [
        {"name": "ci", "id": "key_01JDabc"}
    ]


def test_the_word_after_json_is_the_argument_when_the_command_needs_one(
    run: Run, gateway: FakeGateway
) -> None:
    gateway.collection("/keys", CI)
    assert json.loads(run("key", "show", "--json", "ci").out)["id"] == "key_01JDabc"
    assert json.loads(run("key", "show", "ci", "--json", "id").out) == {"id": "key_01JDabc"}


def test_an_unknown_field_is_named_on_stderr_with_those_there_are(
    run: Run, gateway: FakeGateway
) -> None:
    gateway.collection("/keys", CI)
    code, out, err = run("key", "list", "--json", "id,nmae")
    assert (code, out) == (2, "")
    assert "nmae" in err
    assert "name" in json.loads(err)["hint"]


def test_jq_filters_and_prints_text_without_quotes(run: Run, gateway: FakeGateway) -> None:
    gateway.collection("/keys", CI)
    assert run("key", "list", "--json", "id,name", "--jq", ".[].id").out == "key_01JDabc\n"
    assert run("key", "list", "--jq", ".[] | {name, usage}").out == (
        '{"name": "ci", "usage": 12.083456789}\n'
    )


def test_a_jq_expression_it_does_not_understand_is_wrong_usage(
    run: Run, gateway: FakeGateway
) -> None:
    gateway.collection("/keys", CI)
    code, out, err = run("key", "list", "--jq", ".[] | ltrimstr(1)")
    assert (code, out) == (2, "")
    assert "ltrimstr" in err


def test_jsonl_prints_one_record_a_line(run: Run, gateway: FakeGateway) -> None:
    gateway.collection("/keys", CI, {**CI, "id": "key_2"})
    lines = run("key", "list", "--jsonl").out.splitlines()
    assert [json.loads(line)["id"] for line in lines] == ["key_01JDabc", "key_2"]


def test_quiet_prints_ids_alone(run: Run, gateway: FakeGateway) -> None:
    gateway.collection("/keys", CI)
    assert run("key", "list", "-q").out == "key_01JDabc\n"


def test_numbers_of_the_api_keep_every_digit(run: Run, gateway: FakeGateway) -> None:
    raw = b'{"data": [{"id": "key_1", "usage": 0.000000001, "limit": 50.00, "x": 1.5E-7}]}'
    gateway.on("GET", "/keys", Answer(raw=raw))
    out = run("key", "list", "--jsonl").out
    assert out == '{"id": "key_1", "usage": 0.000000001, "limit": 50.00, "x": 0.00000015}\n'
    assert '"limit": 9007199254740993.123456789' in jsontext.dumps(
        jsontext.loads('{"limit": 9007199254740993.123456789}')
    )


def test_json_is_ascii_and_text_loses_what_moves_a_terminal(run: Run, gateway: FakeGateway) -> None:
    hostile = "a\x1b[31mred\x1b]0;title\x07\u202ecba\u200b\x7f\r\nb"
    gateway.collection("/keys", {**CI, "name": hostile})
    machine = run("key", "list", "--json").out
    assert machine.isascii()
    assert "\x7f" not in machine
    assert json.loads(machine)[0]["name"] == hostile
    row = run("key", "list").out
    assert row.startswith("aredcba b\t")
    assert "\x1b" not in run("key", "list", "--jq", ".[].name").out


def test_error_text_from_the_server_is_cleaned_too(run: Run, gateway: FakeGateway) -> None:
    from tests.cli.gateway import error

    gateway.on("GET", "/keys", error(400, "invalid_value", "bad \x1b[2Jvalue\nsecond line"))
    err = run("key", "list").err
    assert "\x1b" not in err
    assert "bad value second line" in err


def test_default_limit_is_thirty_and_all_reads_every_page(run: Run, gateway: FakeGateway) -> None:
    gateway.collection("/keys", *({**CI, "id": f"key_{n}"} for n in range(250)))
    assert len(run("key", "list", "-q").out.splitlines()) == 30
    assert run("key", "list", "--json").err == "30 of 250 shown; --all shows every one\n"
    assert len(run("key", "list", "-q", "--limit", "120").out.splitlines()) == 120
    assert run("key", "list", "-q", "--all").out.splitlines()[-1] == "key_249"


def test_a_server_that_ignores_paging_is_asked_once(run: Run, gateway: FakeGateway) -> None:
    gateway.on("GET", "/keys", {"data": [CI] * 100})
    assert len(run("key", "list", "-q", "--limit", "100").out.splitlines()) == 100
    assert len(gateway.requests) == 1


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        ("182.41", "$182.41"),
        ("0.000138", "$0.000138"),
        ("0.0213", "$0.0213"),
        ("12.083456", "$12.08"),
        ("6.1234", "$6.123"),
        ("50", "$50.00"),
        ("1234567.891", "$1,234,567.89"),
        ("0.00001234567", "$0.00001235"),
        ("-3.4", "-$3.40"),
        ("0", "$0.00"),
        (None, "-"),
    ],
)
def test_money_has_four_significant_digits_and_at_least_cents(
    amount: str | None, shown: str
) -> None:
    assert text.money(None if amount is None else Decimal(amount)) == shown


def test_times_are_relative_to_now() -> None:
    now = utc_now().replace(microsecond=0)
    assert text.ago(past("3min", now), now) == "3 min ago"
    assert text.ago(past("4d", now), now) == "4 d ago"
    assert text.ago(future("2h", now), now) == "in 2 h"
    assert text.ago(None, now) == "-"


def test_per_token_prices_are_shown_per_million() -> None:
    assert text.per_million("0.00000125") == "$1.25"
    assert text.per_million("0.0000000375") == "$0.0375"
