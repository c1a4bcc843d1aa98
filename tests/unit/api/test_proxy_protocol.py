"""The header that a proxy sends first: both versions, however the network cuts them, and what is none."""

import struct

import pytest

from gwd.api.proxy_protocol import MAX_BYTES, Introduction, NoIntroductionError, read

SIGNATURE = b"\r\n\r\n\x00\r\nQUIT\n"
FOUR = bytes((203, 0, 113, 7, 10, 0, 0, 1)) + struct.pack("!HH", 4711, 443)
SIX = bytes.fromhex("20010db8000200000000000000000007" + "00" * 16) + struct.pack("!HH", 4711, 443)
MORE = b"\x03\x00\x04abcd"  # a field of the binary form that nobody here reads


def binary(command: int, family: int, body: bytes) -> bytes:
    return SIGNATURE + bytes((command, family)) + struct.pack("!H", len(body)) + body


GOOD = {
    "v1, IPv4": (b"PROXY TCP4 203.0.113.7 10.0.0.1 4711 443\r\n", "203.0.113.7"),
    "v1, IPv6": (b"PROXY TCP6 2001:db8:2::7 2001:db8::1 4711 443\r\n", "2001:db8:2::7"),
    "v1, of the proxy itself": (b"PROXY UNKNOWN\r\n", None),
    "v1, unknown with more": (b"PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n", None),
    "v2, IPv4": (binary(0x21, 0x11, FOUR), "203.0.113.7"),
    "v2, IPv6": (binary(0x21, 0x21, SIX), "2001:db8:2::7"),
    "v2, with fields": (binary(0x21, 0x11, FOUR + MORE), "203.0.113.7"),
    "v2, of the proxy itself": (binary(0x20, 0x00, b""), None),
    "v2, of the proxy itself, with an address": (binary(0x20, 0x11, FOUR), None),
    "v2, over a Unix socket": (binary(0x21, 0x31, b"a" * 216), None),
}
BAD = {
    "a request": b"GET / HTTP/1.1\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01",
    "another word": b"PROXX TCP4",
    "too few words": b"PROXY TCP4 203.0.113.7\r\n",
    "no word": b"PROXY \r\n",
    "no address": b"PROXY TCP4 example.com 10.0.0.1 4711 443\r\n",
    "an address of the other kind": b"PROXY TCP4 2001:db8::7 2001:db8::1 4711 443\r\n",
    "bytes that are no text": b"PROXY TCP4 \xff\xfe 10.0.0.1 4711 443\r\n",
    "a line without an end": b"PROXY TCP4 " + b"1" * 200,
    "another version": binary(0x11, 0x11, FOUR),
    "another command": binary(0x22, 0x11, FOUR),
    "an address cut short": binary(0x21, 0x11, FOUR[:6]),
    "a header without bounds": SIGNATURE + b"\x21\x11" + struct.pack("!H", MAX_BYTES),
}


@pytest.mark.parametrize("kind", GOOD)
def test_a_header_is_read_however_it_is_cut_and_what_follows_is_left(kind: str) -> None:
    header, address = GOOD[kind]
    assert [read(header[:end]) for end in range(len(header))] == [None] * len(header)
    assert read(header + b"GET / HTTP/1.1\r\n") == Introduction(len(header), address)


@pytest.mark.parametrize("kind", BAD)
def test_what_is_no_header_is_refused(kind: str) -> None:
    with pytest.raises(NoIntroductionError):
        read(BAD[kind])
