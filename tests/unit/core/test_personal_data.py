"""What people and secrets look like in a text, what only looks like it, and that no text takes long to read."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gwd.core.personal_data import PIECE, RULES, Redactor, pattern_error
from tests.support.pace import slowness

ALL = Redactor(RULES)


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("mail ada@example.com now", "mail [email] now"),
        ("<ada.o'neil+x@mail.ex-ample.co.uk>", "<[email]>"),
        ("müller@beispiel.de", "[email]"),
        ("4111 1111 1111 1111 and 5500-0000-0000-0004", "[card] and [card]"),
        ("card=378282246310005;", "card=[card];"),
        ("DE89 3704 0044 0532 0130 00 please", "[iban] please"),
        ("gb82west12345698765432", "[iban]"),
        ("+49 30 901820, (212) 555-0123, 030/901820-12", "[phone], [phone], [phone]"),
        ("tel:+4930901820", "tel:[phone]"),
        ("use sk-abcdefgh1234", "use ***"),
        ("Bearer abcdef123456", "Bearer ***"),
        ("token ghp_abcdefghijklmnop1234", "token [secret]"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIx.abc", "[secret]"),
    ],
)
def test_what_a_rule_is_for_is_hidden(text: str, redacted: str) -> None:
    assert ALL.text(text) == redacted


@pytest.mark.parametrize(
    "text",
    [
        "4111111111111112",  # no card: its check digit is wrong
        "0000 0000 0000 0000",
        "FR14 2004 1010 0505 0001 3M02 607",
        "2026-11-29 12:11:05 and 11/29/2026",
        "1764418301, 3.14159265358979, 1,234,567,890",
        "192.168.100.200:8080 and v1.2.3-4567",
        "a @ b, @decorator, x@y",
        "an ordinary sentence about Internationalization",
    ],
)
def test_what_only_looks_like_it_stays(text: str) -> None:
    assert ALL.text(text) == text


def test_only_the_rules_that_are_named_hide_anything() -> None:
    text = "ada@example.com 4111111111111111"
    assert Redactor(["email"]).text(text) == "[email] 4111111111111111"
    assert Redactor([]).text(text) == text


def test_patterns_are_texts_with_digits_and_the_rest_of_a_word() -> None:
    own = Redactor([], ["MRN-######", "project-*", "Jane Doe", "a.c"])
    assert own.text("mrn-123456, Project-Zeus! and JANE DOE") == (
        "[redacted], [redacted] and [redacted]"
    )
    assert own.text("abc a.c MRN-12345") == "abc [redacted] MRN-12345"


@pytest.mark.parametrize(
    "pattern", ["", "ab", "ab*", "*", "a*b*", "*abc", " abc", "abc\n", "x" * 101]
)
def test_a_pattern_that_does_not_serve_is_told_why(pattern: str) -> None:
    assert pattern_error(pattern)


def test_what_lies_where_a_long_text_is_cut_is_hidden_too() -> None:
    for word in (
        "4111 1111 1111 1111",
        "ada@example.com",
        "DE89 3704 0044 0532 0130 00",
        "Jane Doe",
    ):
        redactor = Redactor(RULES, ["Jane Doe"])
        for before in range(PIECE - len(word) - 1, PIECE + 2, 4):
            text = "x" * (before - 1) + " " + word + " " + "y" * PIECE
            assert word not in redactor.text(text), (word, before)


@given(st.text(alphabet='aA1 -.@\n"é', max_size=60), st.integers(0, 2_000))
def test_a_text_without_anything_of_the_kind_stays_as_it_is(text: str, times: int) -> None:
    """However it is cut."""
    whole = text * times
    assert Redactor([], ["zzz"]).text(whole) == whole


def test_no_text_takes_long() -> None:
    """The worst that the expressions can be given, fifty thousand characters of each."""
    patterns = ["MRN-######", "a1*", "aaaaaaaaab", "@@@"]
    redactor = Redactor(RULES, [each for each in patterns if pattern_error(each) is None])
    slow = slowness()
    pieces = ("a", "a@", "1 ", "1", "a.", "(1", "DE89 ", "-1", "x@x.xx.", "bearer ", "sk-", "AB12")
    for piece in pieces:
        text = piece * (50_000 // len(piece))
        began_s = time.process_time()
        redactor.text(text)
        assert time.process_time() - began_s < 0.3 * slow, piece
