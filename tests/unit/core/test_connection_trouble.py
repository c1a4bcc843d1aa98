"""Where a redirect leads, as it may be shown."""

import ssl

from gwd.core.connection_trouble import redirect_trouble, ssl_error_of

HOOK = "https://hooks.example/T0/s3cret"
CASES = (
    ("https://user:word@new.example:8443/a?key=1#b", " to https://new.example:8443/a", " to https://new.example:8443"),
    ("HTTPS://New.Example/a", " to https://new.example/a", " to https://new.example"),
    ("http://[2001:db8::1]:80/a", " to http://[2001:db8::1]:80/a", " to http://[2001:db8::1]:80"),
    ("/login", " to /login", " to https://hooks.example"),
    ("//other.example/x", " to //other.example/x", " to https://other.example"),
    ("https://new.example/sk-abcdefgh1234/a", " to https://new.example/***/a", " to https://new.example"),
    ("https://new.example/\x1b[31m\n\x00", " to https://new.example/[31m", " to https://new.example"),
    ("javascript:alert(1)", ", without saying where to", ", without saying where to"),
    ("ftp://new.example/a", ", without saying where to", ", without saying where to"),
    ("http://new.example:99999/", ", without saying where to", ", without saying where to"),
    ("https://[/", ", without saying where to", ", without saying where to"),
    ("", ", without saying where to", ", without saying where to"),
    (None, ", without saying where to", ", without saying where to"),
)  # fmt: skip


def test_a_redirect_is_shown_without_its_secrets() -> None:
    begin = "answered with a redirect (status 302)"
    wrong = []
    for location, shown, shown_of_hook in CASES:
        found = redirect_trouble(302, location), redirect_trouble(302, location, asked=HOOK)
        if found != (begin + shown, begin + shown_of_hook):
            wrong.append((location, found))
    assert not wrong


def test_the_tls_error_is_found_inside_those_of_libraries() -> None:
    inner = ssl.SSLError(1, "inner")
    outer = RuntimeError("outer")
    outer.__cause__ = OSError("between")
    outer.__cause__.__context__ = inner
    assert ssl_error_of(outer) is inner
    inner.__cause__ = outer  # a circle ends as well
    assert ssl_error_of(RuntimeError("none")) is None
