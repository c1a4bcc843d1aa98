"""No spelling of an inner address gets through, and what the operator allows does."""

import ipaddress

import pytest

from gwd.core.errors import InvalidValue
from gwd.outbound.guard import (
    AddressRefused,
    Rules,
    allowed,
    check_literal,
    check_url,
    resolve,
    route,
)

PUBLIC = Rules()
LOOPBACK = Rules(
    allow_networks=(ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1/128")),
    allow_http=True,
)

SPELLINGS = [
    "https://127.0.0.1/",
    "https://127.0.0.1./",
    "https://127.1/",
    "https://127.0.1/",
    "https://0/",
    "https://0.0.0.0/",
    "https://2130706433/",
    "https://0x7f000001/",
    "https://0x7f.0.0.1/",
    "https://0177.0.0.1/",
    "https://017700000001/",
    "https://localhost/",
    "https://LOCALHOST/",
    "https://localhost./",
    "https://[::1]/",
    "https://[::]/",
    "https://[0:0:0:0:0:0:0:1]/",
    "https://[::ffff:127.0.0.1]/",
    "https://[::ffff:7f00:1]/",
    "https://[::127.0.0.1]/",
    "https://[64:ff9b::7f00:1]/",
    "https://[64:ff9b:1::1]/",
    "https://[2002:7f00:1::]/",
    "https://[2001:0:7f00:1::]/",
    "https://[2001:db8::1]/",
    "https://[fe80::1]/",
    "https://[fec0::1]/",
    "https://[fc00::1]/",
    "https://[fd12:3456::1]/",
    "https://[ff02::1]/",
    "https://[100::1]/",
    "https://[3fff::1]/",
    "https://[5f00::1]/",
    "https://10.0.0.1/",
    "https://10.255.255.255/",
    "https://100.64.0.1/",
    "https://169.254.169.254/latest/meta-data/",
    "https://172.16.0.1/",
    "https://172.31.255.255/",
    "https://192.0.0.8/",
    "https://192.0.2.1/",
    "https://192.88.99.1/",
    "https://192.168.1.1/",
    "https://198.18.0.1/",
    "https://198.19.255.255/",
    "https://198.51.100.7/",
    "https://203.0.113.9/",
    "https://224.0.0.1/",
    "https://240.0.0.1/",
    "https://255.255.255.255/",
    "https://user@127.0.0.1/",
    "https://example.com@127.0.0.1/",
    "https://user:word@example.com/",
    "https://①②⑦.⓪.⓪.①/",
    "https://127。0。0。1/",
    "https://exa mple.com/",
    "https://127.0.0.1\\@example.com/",
    "https:///path",
    "https://",
    "//example.com/",
    "example.com",
    "ftp://example.com/",
    "file:///etc/passwd",
    "gopher://127.0.0.1/",
    "http://93.184.216.34/",
    "https://93.184.216.34:22/",
    "https://93.184.216.34:6379/",
    "https://93.184.216.34:99999/",
    "https://93.184.216.34\r\nx: y/",
    "",
]


@pytest.mark.parametrize("url", SPELLINGS)
async def test_no_spelling_of_an_inner_address_is_let_out(url: str) -> None:
    with pytest.raises(AddressRefused):
        await route(url, PUBLIC)


@pytest.mark.parametrize(
    "url",
    [
        "https://93.184.216.34/",
        "https://93.184.216.34:8443/hook?x=1",
        "https://[2606:2800:21f:cb07::1]/",
        "https://[::ffff:93.184.216.34]/",
        "https://172.32.0.1/",
        "https://100.128.0.1/",
    ],
)
async def test_public_addresses_are_let_out(url: str) -> None:
    found = await route(url, PUBLIC)
    assert found.addresses


async def test_one_inner_answer_among_public_ones_refuses_the_name() -> None:
    async def mixed(host: str, port: int) -> list[str]:
        return ["93.184.216.34", "10.0.0.1"]

    with pytest.raises(AddressRefused, match="not a public address"):
        await route("https://mixed.example/", PUBLIC, mixed)


async def test_a_refusal_does_not_show_what_the_name_resolved_to() -> None:
    async def inner(host: str, port: int) -> list[str]:
        return ["10.11.12.13"]

    with pytest.raises(InvalidValue) as refused:
        await check_url("https://inner.example/", PUBLIC, param="url", resolver=inner)
    assert refused.value.param == "url"
    assert "10.11.12.13" not in refused.value.message


async def test_a_name_that_does_not_resolve_is_refused() -> None:
    async def nothing(host: str, port: int) -> list[str]:
        raise OSError("no such name")

    with pytest.raises(AddressRefused, match="does not resolve"):
        await route("https://nowhere.example/", PUBLIC, nothing)


async def test_the_operator_s_networks_may_be_called_on_any_port_and_without_tls() -> None:
    assert (await route("http://127.0.0.1:9000/", LOOPBACK)).port == 9000
    assert (await route("http://localhost:9000/", LOOPBACK)).addresses
    with pytest.raises(AddressRefused, match="https"):
        await route("http://93.184.216.34/", LOOPBACK)
    with pytest.raises(AddressRefused):
        await route("https://10.0.0.1/", LOOPBACK)


async def test_plain_http_inside_the_networks_needs_its_own_word() -> None:
    rules = Rules(allow_networks=LOOPBACK.allow_networks)
    with pytest.raises(AddressRefused, match="https"):
        await route("http://127.0.0.1:9000/", rules)


def test_the_node_s_own_addresses_are_never_called() -> None:
    own = ipaddress.ip_address("93.184.216.34")
    networks = (ipaddress.ip_network("93.0.0.0/8"),)
    for rules in (
        Rules(own_sockets=((own, 443),)),
        Rules(own_sockets=((own, 443),), allow_networks=networks),
    ):
        assert not allowed(own, 443, rules)
        assert allowed(own, 8443, rules)


@pytest.mark.parametrize("everywhere", ["0.0.0.0", "::"])
def test_a_node_that_listens_everywhere_owns_every_address_of_the_machine(everywhere: str) -> None:
    rules = Rules(
        own_sockets=((ipaddress.ip_address(everywhere), 8080),),
        allow_networks=(ipaddress.ip_network("0.0.0.0/0"),),
    )
    assert not allowed(ipaddress.ip_address("127.0.0.1"), 8080, rules)
    assert not allowed(ipaddress.ip_address("::ffff:127.0.0.1"), 8080, rules)
    assert allowed(ipaddress.ip_address("127.0.0.1"), 9000, rules)
    assert allowed(ipaddress.ip_address("93.184.216.34"), 8080, rules)


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "127.1", "2130706433", "0x7f.0.0.1", "0", "localhost"),
        *("a.localhost", "10.0.0.1", "169.254.169.254", "[::1]", "[::ffff:7f00:1]"),
        *("[64:ff9b::7f00:1]", "[fe80::1]", "224.0.0.1", "127.0.0.1."),
    ],
)
def test_an_address_that_is_written_out_is_judged_at_once(host: str) -> None:
    with pytest.raises(InvalidValue, match="not a public address") as refused:
        check_literal(f"https://{host}/hook", PUBLIC, param="hook_url")
    assert refused.value.param == "hook_url"


def test_what_needs_a_resolver_is_judged_later_and_allowed_networks_are_allowed() -> None:
    check_literal("https://pay.example/hook", PUBLIC, param="hook_url")
    check_literal("https://93.184.216.34/hook", PUBLIC, param="hook_url")
    check_literal("http://127.0.0.1:9000/hook", LOOPBACK, param="hook_url")
    with pytest.raises(InvalidValue, match="port 9000"):
        check_literal("https://93.184.216.34:9000/hook", PUBLIC, param="hook_url")


async def test_the_system_s_resolver_answers_with_addresses() -> None:
    assert await resolve("127.0.0.1", 443) == ["127.0.0.1"]
