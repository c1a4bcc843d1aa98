"""Settings and secrets: flag > environment > profile > default, the file, login, key_command."""

import json
import stat
from pathlib import Path

import pytest

from gwctl.profile import plain_http_host
from tests.cli.conftest import Run
from tests.cli.gateway import KEY, SECRET, FakeGateway, error


@pytest.fixture
def file(home: Path) -> Path:
    path = home / "config" / "gwctl" / "config.toml"
    path.parent.mkdir(parents=True)
    path.write_text(
        "# my gateways\n"
        'current = "prod"\n\n'
        "[profile.prod]  # the real one\n"
        'url = "https://gw.example.com/api/v1"\n'
        "timeout = 7 # patience\n"
    )
    path.chmod(0o600)
    return path


def origins(run: Run, *words: str) -> dict[str, tuple[str, str]]:
    rows = json.loads(run("config", "list", "--show-origin", "--json", *words).out)
    return {row["name"]: (row["value"], row["origin"]) for row in rows}


def test_flag_beats_environment_beats_profile_beats_default(
    run: Run, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GWCTL_TIMEOUT", "9")
    assert origins(run, "--timeout", "3")["timeout"] == ("3", "flag --timeout")
    assert origins(run)["timeout"] == ("9", "environment GWCTL_TIMEOUT")
    monkeypatch.delenv("GWCTL_TIMEOUT")
    assert origins(run)["timeout"] == ("7", f"profile prod in {file}")
    file.unlink()
    assert origins(run)["timeout"] == ("30", "default")


def test_show_origin_masks_keys(run: Run) -> None:
    out = run("config", "list", "--show-origin").out
    assert KEY not in out
    assert "gwm_mmmm…CDEF\tenvironment GWCTL_KEY" in out


def test_the_profile_is_chosen_by_flag_environment_or_current(
    run: Run, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert origins(run)["profile"] == ("prod", f"current in {file}")
    monkeypatch.setenv("GWCTL_PROFILE", "env")
    assert origins(run)["profile"] == ("env", "environment GWCTL_PROFILE")
    assert origins(run, "-P", "flag")["profile"] == ("flag", "flag --profile")


def test_a_misspelt_profile_reaches_no_gateway(run: Run, gateway: FakeGateway, file: Path) -> None:
    code, _, err = run("key", "list", "-P", "prdo")
    assert code == 2
    assert "prod" in err
    assert gateway.requests == []


def test_config_set_keeps_comments_and_mode(run: Run, file: Path) -> None:
    assert run("config", "set", "timeout", "11").code == 0
    text = file.read_text()
    assert "# my gateways" in text
    assert "# the real one" in text
    assert "timeout = " in text
    assert "11" in text
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert run("config", "get", "timeout").out == "11\n"


def test_config_use_needs_a_profile_that_exists(run: Run, file: Path) -> None:
    assert run("config", "use", "stage").code == 3
    assert run("config", "set", "timeout", "5", "-P", "stage").code == 0
    assert run("config", "use", "stage").code == 0
    assert 'current = "stage"' in file.read_text()
    assert file.read_text().startswith("# my gateways\n")


def test_a_file_others_can_read_is_refused(run: Run, gateway: FakeGateway, file: Path) -> None:
    file.chmod(0o640)
    code, _, err = run("key", "list")
    assert code == 1
    assert f"chmod 600 {file}" in err
    assert gateway.requests == []


def test_a_secret_is_never_an_argument(run: Run, file: Path) -> None:
    code, _, err = run("config", "set", "key", KEY)
    assert code == 2
    assert KEY not in err
    assert KEY not in file.read_text()
    assert run("config", "set", "key").code == 2  # no terminal to ask on
    assert run("config", "set", "key", "--secret-stdin", stdin=f"{KEY}\n").code == 0
    assert KEY in file.read_text()


def test_login_stores_a_key_the_gateway_knows(
    run: Run, gateway: FakeGateway, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GWCTL_KEY")
    gateway.on("GET", "/auth/key", {"data": {"id": "mk_1", "name": "ops", "type": "management"}})
    code, out, _ = run("login", "-P", "prod", "--url", gateway.url, "--secret-stdin", stdin=KEY)
    assert code == 0
    assert KEY not in out
    assert gateway.sent("GET", "/auth/key").headers["authorization"] == f"Bearer {KEY}"
    path = home / "config" / "gwctl" / "config.toml"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    monkeypatch.delenv("GWCTL_URL")
    gateway.collection("/keys")
    assert run("key", "list").code == 0
    assert gateway.sent("GET", "/keys").headers["authorization"] == f"Bearer {KEY}"


def test_login_takes_the_key_from_a_file_and_an_inference_key_beside_it(
    run: Run, gateway: FakeGateway, home: Path
) -> None:
    gateway.on("GET", "/auth/key", {"data": {"id": "key_1", "name": "mine"}})
    secret = home / "secret"
    secret.write_text(SECRET + "\n")
    assert run("login", "--secret-file", str(secret)).code == 0
    assert f'inference_key = "{SECRET}"' in (home / "config/gwctl/config.toml").read_text()


def test_a_key_goes_over_plain_http_to_this_machine_only() -> None:
    unprotected = {
        "http://gateway.example.com/api/v1": "gateway.example.com",
        "http://10.0.0.5:8080/api/v1": "10.0.0.5",
        "http://[2001:db8::1]:8080": "2001:db8::1",
        "https://gateway.example.com": "",
        "http://127.0.0.1:8080": "",
        "http://127.9.9.9": "",
        "http://[::1]:8080": "",
        "http://localhost:8080": "",
    }
    assert {url: plain_http_host(url) for url in unprotected} == unprotected


def test_login_warns_before_it_sends_a_key_unprotected(
    run: Run, gateway: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gwctl.profile.plain_http_host", lambda url: "gateway.example.com")
    gateway.on("GET", "/auth/key", error(401, "invalid_api_key", "no such key"))
    code, _, err = run("login", "--url", gateway.url, "--secret-stdin", stdin=KEY)
    assert code == 4
    assert "over plain http to gateway.example.com" in err


def test_login_with_a_refused_key_stores_nothing(
    run: Run, gateway: FakeGateway, home: Path
) -> None:
    gateway.on("GET", "/auth/key", error(401, "invalid_api_key", "Unknown key."))
    assert run("login", "--secret-stdin", stdin=KEY).code == 4
    assert run("login", "--secret-stdin", stdin="sk-other").code == 4
    assert run("login").code == 2
    assert not (home / "config" / "gwctl" / "config.toml").exists()


def test_logout_forgets_the_keys_and_keeps_the_address(run: Run, file: Path) -> None:
    run("config", "set", "key", "--secret-stdin", stdin=KEY)
    code, _, err = run("logout")
    assert code == 0
    assert KEY not in file.read_text()
    assert "gw.example.com" in file.read_text()
    assert "GWCTL_KEY is still set" in err


def test_key_command_gives_the_key_without_a_shell(
    run: Run, gateway: FakeGateway, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GWCTL_KEY")
    gateway.collection("/keys")
    run("config", "set", "key_command", f"printf '%s\\nsecond line' {KEY}")
    assert run("key", "list").code == 0
    assert gateway.sent("GET", "/keys").headers["authorization"] == f"Bearer {KEY}"
    run("config", "set", "key_command", "false")
    code, _, err = run("key", "list")
    assert code == 4
    assert "key_command failed" in err


def test_whoami_shows_the_key_in_use(run: Run, gateway: FakeGateway) -> None:
    gateway.on("GET", "/auth/key", {"data": {"id": "mk_1", "name": "ops", "role": "owner"}})
    assert json.loads(run("whoami", "--json", "id,role").out) == {"id": "mk_1", "role": "owner"}


def test_a_bare_host_gets_the_path_of_the_api(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GWCTL_URL")
    assert run("config", "set", "url", "https://gw.example.com/").code == 0
    assert run("config", "get", "url").out == "https://gw.example.com/api/v1\n"
    assert run("config", "set", "url", "gw.example.com").code == 2


def test_gwctl_config_names_another_file(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = home / "other.toml"
    monkeypatch.setenv("GWCTL_CONFIG", str(other))
    assert run("config", "path").out == f"{other}\n"
    run("config", "set", "timeout", "4")
    assert "4" in other.read_text()
