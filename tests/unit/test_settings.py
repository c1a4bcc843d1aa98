"""Settings: defaults, who beats whom, and that every mistake is one line with place and remedy."""

from pathlib import Path

import msgspec
import pytest

from gwd.settings import (
    SECTIONS,
    Settings,
    SettingsError,
    as_toml,
    load,
    otel_headers,
    smtp_password,
)

EXAMPLE = Path(__file__).parents[2] / "examples" / "gwd.toml"


@pytest.fixture
def read(tmp_path):
    def read(toml="", environ=None, **arguments) -> Settings:
        (tmp_path / "gwd.toml").write_text(toml)
        return load(tmp_path / "gwd.toml", environ or {}, **arguments)

    return read


def refused(read, *arguments, **named) -> str:
    with pytest.raises(SettingsError) as caught:
        read(*arguments, **named)
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_example_holds_every_setting_at_its_default():
    assert EXAMPLE.read_text() == as_toml(commented=False)


def test_example_reads_as_an_empty_file_does(read):
    assert read(as_toml(commented=False)) == read("") == read(as_toml(commented=True))


def test_every_setting_has_a_line_of_explanation():
    lines = as_toml(commented=False).splitlines()
    for number, line in enumerate(lines):
        if " = " in line and not line.startswith("#"):
            assert lines[number - 1].startswith("# "), line


def test_defaults_are_those_of_the_specification(read):
    found = read()
    assert found.limits.default_rate_limit_per_minute == 600
    assert found.limits.default_output_bound == 32_768
    assert found.limits.request_body_max_bytes == 32 * 1024 * 1024
    assert found.limits.in_flight_per_key == 0
    assert msgspec.structs.astuple(found.timeouts) == (5, 120, 120, 900, 120, 10)
    assert (found.server.host, found.server.port) == ("127.0.0.1", 8080)
    assert found.server.base_url == "http://127.0.0.1:8080/api/v1"
    assert found.server.app_url == "http://127.0.0.1:8080/app"
    assert found.server.page is True
    assert found.credits.self_service is True


def test_files_lie_beside_the_configuration(read, tmp_path):
    found = read('[store]\ndatabase = "other.db"\n')
    assert found.directory == tmp_path
    assert found.database == tmp_path / "other.db"
    assert found.keyring == tmp_path / "keyring.json"


def test_key_ring_of_systemd_comes_first(read, tmp_path):
    credentials = tmp_path / "credentials"
    credentials.mkdir()
    environ = {"CREDENTIALS_DIRECTORY": str(credentials)}
    assert read("", environ).keyring == tmp_path / "keyring.json"
    (credentials / "gwd-keyring").write_text("{}")
    assert read("", environ).keyring == credentials / "gwd-keyring"


def test_a_directory_stands_for_its_gwd_toml(read, tmp_path):
    read("[server]\nport = 9001\n")
    assert load(tmp_path, {}).server.port == 9001


def test_argument_beats_environment_beats_file(read):
    toml = "[server]\nport = 1001\n"
    environ = {"GWD_SERVER_PORT": "1002"}
    assert read(toml).server.port == 1001
    assert read(toml, environ).server.port == 1002
    assert read(toml, environ, port=1003).server.port == 1003
    assert read(toml, environ, port=1003).server.base_url == "http://127.0.0.1:1003/api/v1"


@pytest.mark.parametrize("section", SECTIONS)
def test_every_setting_can_be_given_in_the_environment(read, section):
    default = getattr(read(), section)
    for field in msgspec.structs.fields(SECTIONS[section]):
        variable = f"GWD_{section}_{field.encode_name}".upper()
        value = getattr(default, field.name)
        if isinstance(value, str):
            continue
        text = ",".join(value) if isinstance(value, tuple) else str(value)
        assert getattr(read("", {variable: text}), section) == default


def test_a_list_is_comma_separated_in_the_environment(read):
    environ = {"GWD_WEBHOOKS_ALLOW_NETWORKS": "127.0.0.0/8, 10.0.0.0/8"}
    assert read("", environ).webhooks.allow_networks == ("127.0.0.0/8", "10.0.0.0/8")
    assert read('[webhooks]\nallow_networks = ["::1/128"]').webhooks.allow_networks == ("::1/128",)


def test_a_list_is_read_in_the_environment_as_in_the_file(read):
    environ = {"GWD_WEBHOOKS_ALLOW_NETWORKS": '["127.0.0.0/8", "10.0.0.0/8"]'}
    assert read("", environ).webhooks.allow_networks == ("127.0.0.0/8", "10.0.0.0/8")
    assert read("", {"GWD_WEBHOOKS_ALLOW_NETWORKS": "[]"}).webhooks.allow_networks == ()
    text = refused(read, "", {"GWD_WEBHOOKS_ALLOW_NETWORKS": "[10.0.0.0/8"})
    assert text.startswith("GWD_WEBHOOKS_ALLOW_NETWORKS: ")
    assert 'write a,b or ["a", "b"]' in text


@pytest.mark.parametrize(
    ("variable", "near"),
    [("GWD_SEVER_PORT", "GWD_SERVER_PORT"), ("GWD_PORT", "GWD_S"), ("GWD_DEBUG", "GWD_")],
)
def test_any_name_of_ours_that_is_no_setting_is_refused(read, variable, near):
    text = refused(read, "", {variable: "9000"})
    assert text.startswith(f"{variable} is no setting; ")
    assert near in text


def test_what_an_orchestrator_says_of_a_service_is_no_setting(read):
    environ = {
        "GWD_SERVICE_HOST": "10.0.0.7",
        "GWD_SERVICE_PORT": "80",
        "GWD_SERVICE_PORT_HTTP": "80",
        "GWD_PORT": "tcp://10.0.0.7:80",
        "GWD_PORT_80_TCP": "tcp://10.0.0.7:80",
        "GWD_PORT_80_TCP_ADDR": "10.0.0.7",
        "GWD_SERVER_PORT": "tcp://10.0.0.8:80",  # of a service named gwd-server
    }
    assert read("", environ) == read("")


def test_files_of_any_editor_are_read_or_their_encoding_is_named(read, tmp_path):
    config = tmp_path / "gwd.toml"
    config.write_bytes("[server]\nport = 4711\n".encode("utf-8-sig"))
    assert load(config, {}).server.port == 4711
    config.write_bytes("[server]\nport = 4711\n".encode("utf-16"))
    with pytest.raises(SettingsError, match=r"gwd.toml cannot be read: it is UTF-16 text"):
        load(config, {})
    held = tmp_path / "port"
    held.write_bytes("4711\r\n".encode("utf-8-sig"))
    assert read("", {"GWD_SERVER_PORT_FILE": str(held)}).server.port == 4711
    held.write_bytes("4711".encode("utf-16"))
    assert "it is UTF-16 text" in refused(read, "", {"GWD_SERVER_PORT_FILE": str(held)})


def test_a_file_can_hold_a_value(read, tmp_path):
    (tmp_path / "port").write_text("4711\n")
    environ = {"GWD_SERVER_PORT_FILE": str(tmp_path / "port")}
    assert read("", environ).server.port == 4711
    text = refused(read, "", environ | {"GWD_SERVER_PORT": "1"})
    assert text == "GWD_SERVER_PORT and GWD_SERVER_PORT_FILE are both set; unset one"
    (tmp_path / "port").write_text("")
    assert "is empty" in refused(read, "", environ)
    (tmp_path / "port").unlink()
    assert "cannot be read" in refused(read, "", environ)


def test_pem_files_are_read_before_they_are_used(read, tmp_path):
    block = "-----BEGIN CERTIFICATE-----"
    for content, said in (
        (b"\xef\xbb\xbf" + block.encode(), "begins with a byte order mark"),
        (block.encode("utf-16"), "is no PEM file in UTF-8"),
        (b"\x30\x82\x01\x0a", "is no PEM file in UTF-8"),
        (b"pem", "is no PEM file in UTF-8"),
    ):
        (tmp_path / "ca.pem").write_bytes(content)
        assert said in refused(read, "", {"GWD_UPSTREAM_CA_FILE": "ca.pem"}), content


def test_setting_that_ends_in_file_is_itself(read, tmp_path):
    (tmp_path / "ca.pem").write_text("-----BEGIN CERTIFICATE-----")
    found = read("", {"GWD_UPSTREAM_CA_FILE": "ca.pem"})
    assert found.upstream.ca_file == str(tmp_path / "ca.pem")


@pytest.mark.parametrize(
    ("toml", "environ", "said"),
    [
        ("[server]\nprot = 1\n", {}, "[server] prot is no setting; did you mean port?"),
        ("[timeout]\n", {}, "[timeout] is no section; did you mean timeouts?"),
        ("[zzzzzz]\n", {}, "known are: server, limits"),
        ("server = 3\n", {}, "write [server]"),
        ("[server\n", {}, "not valid TOML"),
        (
            "",
            {"GWD_SERVER_PROT": "1"},
            "GWD_SERVER_PROT is no setting; did you mean GWD_SERVER_PORT?",
        ),
        ('[server]\nport = "8080"\n', {}, "[server] port: Expected `int`, got `str`"),
        ("", {"GWD_SERVER_PORT": "70000"}, "GWD_SERVER_PORT: Expected `int` <= 65535"),
        ("", {"GWD_SERVER_ALLOW_PLAIN_HTTP": "yes"}, "write true or false"),
        ('[server]\nallow_plain_http = "true"\n', {}, "write true or false"),
        ('[smtp]\ntls = "ssl"\n', {}, 'write one of "starttls", "tls", "none"'),
        ("[timeouts]\ntotal_s = nan\n", {}, "[timeouts] total_s: Expected `float` > 0.0"),
        ("[timeouts]\ntotal_s = inf\n", {}, "total_s: Expected `float` <="),
        ("[limits]\ndefault_output_bound = 0\n", {}, "default_output_bound: Expected `int` >= 1"),
        ('[server]\ncors_origins = "*"\n', {}, 'a list of texts, for example ["*"]'),
        ('[server]\nbase_url = "gw.example.com"\n', {}, "write https://host[:port][/path]"),
        ('[webhooks]\nallow_networks = ["127.0.0.1/8"]\n', {}, "has host bits set"),
        ('[server]\ntls_cert = "cert.pem"\n', {}, "tls_key: TLS needs both"),
        ('[server]\ntrusted_proxies = ["proxy"]\n', {}, "[server] trusted_proxies: 'proxy' does"),
        ('[server]\ntrusted_proxies = ["10.0.0.1/8"]\n', {}, "write 10.0.0.5, 10.0.0.0/8 or unix"),
        ("", {"GWD_SERVER_TRUSTED_PROXIES": "0.0.0.0/0"}, "0.0.0.0/0 is everybody"),
        ("", {"GWD_SERVER_PROXY_PROTOCOL": "true"}, "name the proxies in trusted_proxies"),
        ('[server]\npath_prefix = "gw"\n', {}, "[server] path_prefix: 'gw' is no path"),
        ('[server]\npath_prefix = "/gw/"\n', {}, "without a slash at its end"),
        (
            '[server]\nclient_address_header = "x-real-ip"\n',
            {},
            'write one of "x-forwarded-for", "forwarded"',
        ),
        ('[server]\ntls_cert = "a"\ntls_key = "b"\n', {}, "is not a file"),
        ('[upstream]\nca_file = "none.pem"\n', {}, "is not a file"),
        ('[upstream]\nproxy = "socks"\n', {}, "[upstream] proxy: 'socks' is no address"),
        ('[upstream]\nproxy = "http://a:99999"\n', {}, "'http://a:99999' is no address"),
        ('[upstream]\nproxy = "http://[a"\n', {}, "'http://[a' is no address"),
        ('[upstream]\nproxy = "http://a/b"\n', {}, "'http://a/b' is no address"),
        ("", {"GWD_UPSTREAM_PROXY": "http://me:pass@"}, "GWD_UPSTREAM_PROXY: it is no address"),
        ("", {"GWD_UPSTREAM_PROXY": "socks5://me:pass@a"}, "user and password percent-encoded"),
        ('[smtp]\nusername = "me"\n', {}, "password_ref: a login needs"),
        ('[smtp]\nusername = "me"\npassword_ref = "secret"\n', {}, "write env:NAME or file:"),
        ('[smtp]\nhost = "mail"\n', {}, "[smtp] from: mail needs a sender"),
        ('[otel]\nendpoint = "collector:4318"\n', {}, "[otel] endpoint: 'collector:4318' is no"),
        ('[otel]\nheaders = ["authorization=secret"]\n', {}, "write authorization=env:NAME"),
        ('[otel]\nheaders = ["a b=env:X"]\n', {}, "[otel] headers: a header is not NAME=REFER"),
        ("[otel]\nsample_ratio = 1.5\n", {}, "sample_ratio"),
        ("", {"GWD_SMTP_PASSWORD_REF": ""}, "GWD_SMTP_PASSWORD_REF: it is empty"),
    ],
)
def test_a_mistake_is_one_line_with_its_place_and_remedy(read, toml, environ, said):
    assert said in refused(read, toml, environ)


def test_other_variables_of_the_name_are_left_alone(read):
    # A container platform sets such names for a service that is called gwd.
    assert read("", {"GWD_SERVICE_HOST": "10.0.0.1", "GWD_PORT": "tcp://10.0.0.1:80"}) == read()


def test_missing_file_says_how_to_make_one(tmp_path):
    with pytest.raises(SettingsError, match="run `gwd init --dir"):
        load(tmp_path / "gwd.toml", {})


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_loopback_needs_neither_tls_nor_flag(read, host):
    assert read("", host=host).server.host == host


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.4", "gateway.example.com"])
def test_any_other_address_needs_tls_or_the_flag(read, host, tmp_path):
    assert "allow_plain_http = true" in refused(read, "", host=host)
    assert read("[server]\nallow_plain_http = true\n", host=host).server.host == host
    for name in ("cert.pem", "key.pem"):
        (tmp_path / name).write_text("-----BEGIN CERTIFICATE-----")
    tls = '[server]\ntls_cert = "cert.pem"\ntls_key = "key.pem"\n'
    found = read(tls, host=host).server
    assert found.tls_cert == str(tmp_path / "cert.pem")
    assert found.base_url.startswith("https://")


def test_derived_address_of_a_wildcard_can_be_called(read):
    plain = {"GWD_SERVER_ALLOW_PLAIN_HTTP": "true"}
    assert read("", plain, host="0.0.0.0").server.base_url == "http://127.0.0.1:8080/api/v1"
    assert read("", plain, host="::").server.base_url == "http://[::1]:8080/api/v1"


def test_app_address_follows_the_base_address(read):
    toml = '[server]\nbase_url = "https://gw.example.com/api/v1/"\n'
    assert read(toml).server.base_url == "https://gw.example.com/api/v1"
    assert read(toml).server.app_url == "https://gw.example.com/app"
    behind = '[server]\nbase_url = "https://gw.example.com/ai/api/v1"\n'
    assert read(behind).server.app_url == "https://gw.example.com/ai/app"
    assert read(f"{toml}page = false\n").server.app_url == "https://gw.example.com"


def test_a_path_that_a_proxy_leaves_is_in_the_derived_address(read):
    found = read('[server]\npath_prefix = "/gw"\n').server
    assert found.base_url == "http://127.0.0.1:8080/gw/api/v1"
    assert found.app_url == "http://127.0.0.1:8080/gw/app"


def test_a_header_in_front_of_tls_is_refused(read, tmp_path):
    (tmp_path / "c.pem").write_text("-----BEGIN CERTIFICATE-----")
    toml = '[server]\ntls_cert = "c.pem"\ntls_key = "c.pem"\nproxy_protocol = true\n'
    named = {"GWD_SERVER_TRUSTED_PROXIES": "10.0.0.1"}
    assert "let the proxy end TLS" in refused(read, toml, named)


def test_mail_password_comes_from_its_reference_and_is_never_empty(read):
    toml = (
        '[smtp]\nhost = "mail"\nfrom = "g@example.com"\nusername = "g"\npassword_ref = "env:MAIL"\n'
    )
    found = read(toml)
    assert smtp_password(found, {"MAIL": "hunter2"}) == "hunter2"
    assert "hunter2" not in repr(found)
    for environ in ({}, {"MAIL": ""}):
        with pytest.raises(SettingsError, match=r"\[smtp\] password_ref: env:MAIL is empty"):
            smtp_password(found, environ)
    assert smtp_password(read(), {}) is None


def test_settings_are_named_once():
    assert tuple(SECTIONS) == tuple(
        field.name for field in msgspec.structs.fields(Settings) if field.name in SECTIONS
    )


def test_headers_of_the_collector_are_read_where_they_are_kept(read, tmp_path):
    (tmp_path / "token").write_text("hunter2\n")
    headers = f'["x-key=env:OTEL", "authorization=file:{tmp_path}/token"]'
    found = read(f"[otel]\nheaders = {headers}\n")
    assert "hunter2" not in repr(found)
    assert otel_headers(found, {"OTEL": "a"}) == {"x-key": "a", "authorization": "hunter2"}
    with pytest.raises(SettingsError, match=r"\[otel\] headers: env:OTEL is empty or not set"):
        otel_headers(found, {})
    assert otel_headers(read(), {}) == {}
