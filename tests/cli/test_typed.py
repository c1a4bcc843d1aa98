"""What people type and what their editors write: numbers, days, verbs of other programs, marks and line ends."""

from pathlib import Path
from typing import Any

from gwctl import time_input
from tests.cli.analytics import used
from tests.cli.conftest import Run
from tests.cli.gateway import Answer, FakeGateway

# command, option and value (the value stands for {}), what is said
MISTYPED = {
    "credit purchase {}": {"12,50": "12.50", "1_000": "1000", "1.250,50": "1250.50", "\u0661\u0662": "12"},
    "credit grant {}": {"0,500": "0.500", "12,5": "12.5"},
    "credit refund {} --note n --yes": {"1'250": "1250"},
    "credit topup --threshold {}": {"12,50": "12.50"},
    "credit topup --monthly-cap {}": {"1,2345": "1.2345"},
    "budget set organization --monthly {}": {"1.000,00": "1000.00"},
    "key create x --limit {}": {"12,50": "12.50", "5 USD": "5"},
    "key create x --rpm {}": {"1.200": "1200", "1,20": "", "2,5": "", "\uff11\uff12": "12", "12.5": ""},
    "key update x --in-flight {}": {"1_0": "10"},
    "workspace create w --key-limit {}": {"12,50": "12.50"},
    "model add v/m --context {}": {"32.000": "32000", "3_2": "32"},
    "model add v/m --context 9 --prompt {}": {"0,5": "0.5", "0.1234567": ""},
    "model price set v/m --prompt {}": {"1,25": "1.25"},
    "model price set v/m --prompt 1 --factor service_tier.flex={}": {"0,5": "0.5"},
    "model price set v/m --image {}": {"0,01": "0.01"},
    "endpoint add v/m --provider p --weight {}": {"0,5": "0.5"},
    "key list --limit {}": {"1_0": "10", "0": ""},
    "route explain v/m --max-tokens {}": {"2.000": "2000"},
    "usage summary --timeout {}": {"1,5": ""},
    "chat v/m hi --temperature {}": {"0,2": "0.2"},
    "org settings low_balance_threshold={}": {"12,50": "12.50", "1_000": "1000"},
    "org settings retention_days={}": {"\u0663": "3"},
}  # fmt: skip


def test_every_option_reads_numbers_by_one_grammar(run: Run, gateway: FakeGateway) -> None:
    gateway.collection("/catalog/models", {"id": "v/m"})
    wrong = []
    for line, values in MISTYPED.items():
        for value, reading in values.items():
            words = [word.replace("{}", value) for word in line.split()]
            code, out, err = run(*words)
            hinted = "did you mean" in err and f"{reading}?" in err
            if (code, out) != (2, "") or (reading and not hinted):
                wrong.append((line, value, code, out, err))
    assert wrong == []
    assert gateway.writes() == []


def test_what_is_in_the_grammar_is_sent_as_that_number(run: Run, gateway: FakeGateway) -> None:
    gateway.on("POST", "/credits/purchases", Answer({"data": {"id": "led_1"}}))
    for typed, sent in (
        ("1,250", "1250"),
        ("$12.50", "12.50"),
        ("1,250.5", "1250.5"),
        ("50", "50"),
    ):
        assert run("credit", "purchase", typed).code == 0
        assert f'"amount": {sent}}}' in gateway.sent("POST", "/credits/purchases").text


def test_numbers_of_a_file_follow_the_same_grammar(
    run: Run, gateway: FakeGateway, home: Path
) -> None:
    gateway.collection("/keys")
    head = '[[models]]\nid = "a/b"\nname = "B"\nvendor = "A"\ncontext_length = 9\nmax_completion_tokens = 9\n'
    path = home / "gw.toml"
    for text, reading in (
        ('[[keys]]\nname = "a"\nlimit = "12,50"', "12.50"),
        ('[[keys]]\nname = "a"\nrate_limit_per_minute = "1_200"', "1200"),
        (f'{head}pricing = {{ prompt = "0,0000025" }}', "0.0000025"),
        (
            f'{head}pricing_tiers = [{{ above_prompt_tokens = 9, pricing = {{ prompt = "1_0" }} }}]',
            "10",
        ),
    ):
        path.write_text(text)
        code, _, err = run("apply", "-f", str(path))
        assert (code, f"did you mean {reading}?" in err) == (2, True), err
    path.write_text('[[keys]]\nname = "a"\nlimit = "1,250.50"')
    assert run("apply", "-f", str(path)).code == 0
    assert gateway.sent("POST", "/keys").body["limit"] == 1250.5


VERBS = {
    "key get ci": "key show", "key ls": "key list", "key rm ci": "key delete", "key revoke ci": "key delete",
    "key view ci": "key show", "member rm a@b": "member remove", "budget ls": "budget list",
    "model view m": "model show", "endpoint rm x": "endpoint delete", "key new x": "key create",
    "provider create x": "provider add", "key edit x": "key update", "org get": "org show",
}  # fmt: skip


def test_verbs_of_other_programs_lead_to_ours(run: Run, gateway: FakeGateway) -> None:
    said = {words: run(*words.split()) for words in VERBS}
    wrong = {
        w: r.err
        for w, r in said.items()
        if f"did you mean: gwctl {VERBS[w]}\n" not in r.err or r.code != 2
    }
    assert wrong == {}
    assert gateway.requests == []


def test_a_day_is_meant_whole_and_its_zone_is_told(run: Run, gateway: FakeGateway) -> None:
    for path in ("/credits/ledger", "/generations", "/audit"):
        gateway.collection(path)
    for noun, path in (
        ("ledger", "/credits/ledger"),
        ("activity", "/generations"),
        ("audit", "/audit"),
    ):
        _, _, err = run(noun, "list", "--from", "2026-11-01", "--to", "2026-11-28")
        query = gateway.sent("GET", path).query
        assert (query["from"], query["to"]) == ("2026-11-01T00:00:00Z", "2026-11-29T00:00:00Z")
        assert "from 2026-11-01 up to and including 2026-11-28 (UTC)" in err
        _, _, err = run(noun, "list", "--to", "2026-11-28T12:00:00+01:00")
        assert gateway.sent("GET", path).query["to"] == "2026-11-28T11:00:00Z"
        assert "UTC" not in err
    used(gateway)
    run("usage", "summary", "--from", "2026-11-01", "--to", "2026-11-28")
    between = {"from": "2026-11-01T00:00:00Z", "to": "2026-11-29T00:00:00Z"}
    assert gateway.sent("POST", "/analytics/query").body["range"] == between
    assert time_input.end_of("yesterday") == time_input.past("today")


def test_a_rest_without_end_says_what_ends_it(run: Run, gateway: FakeGateway) -> None:
    rest = {"reason": "auth_invalid", "until": None, "tried": True}
    endless: dict[str, Any] = {
        "model": "v/m", "tag": "t", "status": "cooling_down", "reason": "auth_invalid",
        "cooldown_until": "2036-11-28T00:00:00Z", "rests": [],
    }  # fmt: skip
    for credential_id, ends in (("pk_1", "its key"), (None, "its provider")):
        endless["rests"] = [{**rest, "credential_id": credential_id}]
        for row in (endless, {**endless, "cooldown_until": None}):
            gateway.on("GET", "/operator/status", {"data": {"endpoints": [row], "credits": {}}})
            assert f"until {ends} is changed" in run("endpoint", "health").out
            assert f"cooling down until {ends} is changed (auth_invalid)" in run("status").out


def test_files_of_other_machines_are_read(run: Run, gateway: FakeGateway, home: Path) -> None:
    keys = gateway.collection("/keys")
    path = home / "gw.toml"
    text = '[[keys]]\r\nname = "名前"\r\nlimit = 5\r\n'
    for content in (text.encode(), b"\xef\xbb\xbf" + text.encode()):
        path.write_bytes(content)
        keys.rows.clear()
        assert run("apply", "-f", str(path)).code == 0
        assert keys.rows[0]["name"] == "名前"
    keys.rows.clear()
    assert run("apply", "-f", "-", stdin=f"\ufeff{text}").code == 0
    for encoding in ("utf-16", "utf-16-le", "utf-16-be"):
        path.write_bytes(text.encode(encoding))
        code, _, err = run("apply", "-f", str(path))
        assert (code, "is written in UTF-16" in err) == (1, True)
    path.write_bytes(text.encode("utf-32"))
    assert "is written in UTF-32" in run("apply", "-f", str(path)).err
    path.write_bytes(text.encode("gbk"))
    assert "is not valid UTF-8 (line 2)" in run("diff", "-f", str(path)).err
    secret = home / "secret"
    gateway.collection("/catalog/providers", {"slug": "p", "id": "p"})
    gateway.collection("/catalog/credentials")
    for content, code in ((b"\xef\xbb\xbfsk-abc\r\n", 0), ("sk-abc\r\n".encode("utf-16"), 1)):
        secret.write_bytes(content)
        done = run("provider", "secret", "p", "--name", "n", "--secret-file", str(secret))
        assert done.code == code
    assert gateway.sent("POST", "/catalog/credentials").body["key"] == "sk-abc"


def test_a_profile_file_with_a_mark_is_read(
    run: Run, gateway: FakeGateway, home: Path, monkeypatch: Any
) -> None:
    path = home / "config.toml"
    path.write_bytes(b'\xef\xbb\xbf[profile.default]\r\ntimeout = "12"\r\n')
    path.chmod(0o600)
    monkeypatch.setenv("GWCTL_CONFIG", str(path))
    assert run("config", "get", "timeout").out == "12\n"
    assert run("config", "set", "timeout", "15").code == 0
    assert run("config", "get", "timeout").out == "15\n"


def test_a_full_disk_behind_the_output_is_an_error(shell: Any, gateway: FakeGateway) -> None:
    gateway.collection("/keys", *({"id": f"key_{n}", "name": "x" * 200} for n in range(50)))
    done = shell("sh", "-c", "gwctl key list >/dev/full")
    assert done.returncode == 1
    assert "the output could not be written" in done.stderr
    assert "Traceback" not in done.stderr
