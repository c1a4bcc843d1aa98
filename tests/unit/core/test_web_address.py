"""The one reading of addresses: what every parser reads alike passes, everything else says what is wrong."""

import pytest

from gwd.core.web_address import WebAddress, WebAddressError, read_web_address

REFUSED = {
    "": "must begin with",
    "api.example.com": "must begin with",
    "ftp://example.com": "must begin with",
    "https:/example.com": "must begin with",
    "https:example.com": "must begin with",
    "https://": "no host",
    "https://:443/": "no host",
    "https:///v1": "no host",
    "https://[/": "no IPv6 address",
    "https://[::1": "no IPv6 address",
    "https://]/": "no IPv6 address",
    "https://[::1]x/": "must have a host",
    "https://[not-an-address]/": "no IPv6 address",
    "https://[fe80::1%25eth0]/": "encoded character",
    "https://me:secret@example.com": "user name or password",
    "https://:secret@example.com": "user name or password",
    "https://@example.com": "user name or password",
    "https://example.com:secret@other.example": "user name or password",
    "https://example.com:0/": "port 0",
    "https://example.com:65536/": "port 65536",
    "https://example.com:99999999/": "must have a host",
    "https://example.com:/": "must have a host",
    "https://example.com:https/": "must have a host",
    "https://example.com:+443/": "must have a host",
    "https://example.com:٤٤٣/": "plain ASCII",
    "https://exämple.com": "plain ASCII",
    "https://example.com/ v1": "plain ASCII",
    "https://example.com\\@other.example": "plain ASCII",
    "https://example.com\n.other": "plain ASCII",
    "https://ex%61mple.com/": "encoded character",
    "https://127.0.0.1%2f@x/": "user name",
    "https://127.0.0.1%2f.example.com/": "encoded character",
    "https://example..com/": "no name",
    "https://-example.com/": "no name",
    "https://exa$mple.com/": "no name",
    "https://example.com/#x": "behind #",
    "https://example.com/" + "x" * 3_000: "longer than",
}


def test_what_can_be_read_in_two_ways_is_refused_with_the_reason():
    wrong = {}
    for text, reason in REFUSED.items():
        try:
            wrong[text] = str(read_web_address(text))
        except WebAddressError as error:
            reported = str(error)
            if reason not in reported or ":secret" in reported:
                wrong[text] = reported
    assert wrong == {}


@pytest.mark.parametrize(
    ("text", "host", "port", "path", "query"),
    [
        ("https://API.Example.com", "api.example.com", 443, "", ""),
        ("http://localhost:11434/v1/", "localhost", 11434, "/v1/", ""),
        ("https://example.com./x?api-version=1", "example.com", 443, "/x", "api-version=1"),
        ("http://[::1]:8000", "::1", 8000, "", ""),
        ("https://[2001:DB8:0::1]/", "2001:db8::1", 443, "/", ""),
        ("http://my_host/", "my_host", 80, "/", ""),
        ("HTTPS://10.0.0.1:8443/%7Ea", "10.0.0.1", 8443, "/%7Ea", ""),
    ],
)
def test_an_address_is_read(text, host, port, path, query):
    read = read_web_address(text)
    scheme = text.partition(":")[0].lower()
    assert read == WebAddress(scheme=scheme, host=host, port=port, path=path, query=query)
