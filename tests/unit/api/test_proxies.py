"""Whose address counts behind proxies: what trusted ones say, from the end, and nothing that anybody can write."""

import pytest
from sanic.compat import Header

from gwd.api.proxies import Proxies, one_client

TRUSTED = ("127.0.0.1", "10.0.0.0/8", "2001:db8:1::/48")
PEER = "10.0.0.9"


def client(header: str, *values: str) -> str:
    headers = Header([("host", "h"), *((header, value) for value in values)])
    return Proxies(TRUSTED, header).client(PEER, headers)


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ((), PEER),
        (("203.0.113.7",), "203.0.113.7"),
        (("1.1.1.1, 203.0.113.7",), "203.0.113.7"),
        (("203.0.113.7, 10.1.2.3",), "203.0.113.7"),
        (("1.1.1.1, 203.0.113.7,10.1.2.3 , 127.0.0.1",), "203.0.113.7"),
        (("1.1.1.1", "203.0.113.7", "10.1.2.3"), "203.0.113.7"),
        (("10.1.2.3, 10.4.5.6",), "10.1.2.3"),
        (("203.0.113.7:4711",), "203.0.113.7"),
        (("[2001:db8:2::7]:4711",), "2001:db8:2::7"),
        (("2001:DB8:2::7, 2001:db8:1::1",), "2001:db8:2::7"),
        (("::ffff:203.0.113.7, ::ffff:10.1.2.3",), "203.0.113.7"),
        (("203.0.113.7, unknown",), PEER),
        (("203.0.113.7, unknown, 10.1.2.3",), "10.1.2.3"),
        (("evil\x00, ",), PEER),
        (("",), PEER),
    ],
)
def test_the_last_that_is_no_proxy_is_the_client(values: tuple[str, ...], found: str) -> None:
    assert client("x-forwarded-for", *values) == found


@pytest.mark.parametrize(
    ("values", "found"),
    [
        (("for=203.0.113.7",), "203.0.113.7"),
        (("for=1.1.1.1;proto=http, For=203.0.113.7;by=10.0.0.9;proto=https",), "203.0.113.7"),
        (('for="[2001:db8:2::7]:4711"',), "2001:db8:2::7"),
        (('for=203.0.113.7;host="a,b", for="10.1.2.3:80"',), "203.0.113.7"),
        (("proto=https;for=203.0.113.7",), "203.0.113.7"),
        (("for=203.0.113.7, for=_hidden",), PEER),
        (("for=unknown",), PEER),
        (("by=10.0.0.1",), PEER),
        # What a client wrote cannot swallow what the proxy added behind it.
        (('for="1.1.1.1', "for=203.0.113.7"), "203.0.113.7"),
        (('for=1.1.1.1;x="', 'for="[2001:db8:2::7]:80"'), "2001:db8:2::7"),
        (('for="', 'for="203.0.113.7:80"'), "203.0.113.7"),
    ],
)
def test_the_header_of_the_standard_is_read_the_same_way(
    values: tuple[str, ...], found: str
) -> None:
    assert client("forwarded", *values) == found


def test_only_the_header_that_was_chosen_is_read() -> None:
    headers = Header([("forwarded", "for=1.1.1.1"), ("x-forwarded-for", "203.0.113.7")])
    assert Proxies(TRUSTED, "x-forwarded-for").client(PEER, headers) == "203.0.113.7"
    assert Proxies(TRUSTED, "forwarded").client(PEER, headers) == "1.1.1.1"


def test_who_is_trusted() -> None:
    proxies = Proxies(TRUSTED, "x-forwarded-for")
    assert [a for a in ("10.255.0.1", "127.0.0.1", "::ffff:10.0.0.1", "2001:db8:1::5")
            if not proxies.trusts(a)] == []  # fmt: skip
    assert [a for a in ("11.0.0.1", "127.0.0.2", "2001:db8:2::1", "", "nonsense")
            if proxies.trusts(a)] == []  # fmt: skip
    assert Proxies(("unix",), "x-forwarded-for").trusts("")
    assert not Proxies((), "x-forwarded-for").trusts("127.0.0.1")


@pytest.mark.parametrize(
    ("address", "bucket"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("", ""),
    ],
)
def test_one_client_s_addresses_are_one(address: str, bucket: str) -> None:
    assert one_client(address) == bucket
