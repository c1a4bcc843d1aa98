"""The shape of a key: a prefix for its kind, random characters, and a checksum that covers both."""

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gwd.core.errors import MissingApiKey, Unauthenticated
from gwd.core.ids import BASE62
from gwd.keys import secret

PEPPER = b"p" * 32


@pytest.mark.parametrize(("kind", "prefix"), [("inference", "gwi_"), ("management", "gwm_")])
def test_a_key_is_prefix_43_characters_and_6_of_checksum(kind, prefix):
    key = secret.generate(kind)
    assert key.startswith(prefix)
    assert len(key) == 53
    assert key.isascii()
    assert secret.is_well_formed(key)
    assert secret.kind_of(key) == kind


def test_the_checksum_is_crc_32_over_prefix_and_body_most_significant_digit_first():
    key = secret.generate("inference")
    value = 0
    for digit in key[-6:]:
        value = value * 62 + BASE62.index(digit)
    assert value == zlib.crc32(key[:47].encode())


def test_a_small_checksum_is_padded_to_six_digits():
    keys = (secret.generate("inference") for _ in range(400))
    assert any(key[-6] == "0" for key in keys), "CRC-32 is below 62⁵ in one of five keys"


def test_a_key_relabelled_as_the_other_kind_is_not_well_formed():
    key = secret.generate("inference")
    assert not secret.is_well_formed("gwm_" + key[4:])


@given(position=st.integers(0, 52), digit=st.sampled_from(BASE62))
def test_any_single_change_is_noticed(position, digit):
    body = "gwi_" + "A" * 43
    key = body + secret._checksum(body)
    changed = key[:position] + digit + key[position + 1 :]
    assert secret.is_well_formed(changed) == (changed == key)


@pytest.mark.parametrize("text", ["", "gwi_", "sk-foreign", "x" * 100_000, "gwi_" + "é" * 49])
def test_foreign_text_is_not_well_formed(text):
    assert not secret.is_well_formed(text)
    assert not secret.is_well_formed(text + "\n")


def test_a_trailing_newline_is_not_part_of_a_key():
    assert not secret.is_well_formed(secret.generate("inference") + "\n")


def test_digest_public_hash_and_key_are_three_different_things():
    key = secret.generate("inference")
    assert len(secret.digest(key, PEPPER)) == 32
    assert secret.digest(key, PEPPER) != secret.digest(key, b"q" * 32)
    assert len(secret.public_hash(key)) == 64
    assert secret.public_hash(key) != secret.digest(key, PEPPER).hex()
    assert not secret.is_well_formed(secret.public_hash(key))


def test_an_empty_pepper_is_refused():
    with pytest.raises(AssertionError):
        secret.digest(secret.generate("inference"), b"")


def test_the_label_shows_four_and_four():
    key = "gwi_6vR2" + "x" * 41 + "9Zq1"
    assert secret.label(key) == "gwi_6vR2…9Zq1"


KEY = "gwi_" + "A" * 43 + secret._checksum("gwi_" + "A" * 43)


@pytest.mark.parametrize(
    ("authorization", "x_api_key"),
    [
        (f"Bearer {KEY}", None),
        (f"bearer   {KEY} ", None),
        (KEY, None),
        (None, KEY),
        (f"Bearer {KEY}", "old-value"),
        ("Bearer sk-ant-foreign", KEY),
        (f"Bearer {KEY}", KEY),
        ("Basic dTpw", KEY),
    ],
)
def test_of_two_headers_the_well_formed_gateway_key_counts(authorization, x_api_key):
    assert secret.pick(authorization, x_api_key) == KEY


@pytest.mark.parametrize("headers", [(None, None), ("", ""), ("Bearer ", None), (None, "  ")])
def test_no_credential_is_missing_api_key(headers):
    with pytest.raises(MissingApiKey):
        secret.pick(*headers)


def test_two_different_gateway_keys_are_refused():
    other = secret.generate("inference")
    with pytest.raises(Unauthenticated) as refused:
        secret.pick(f"Bearer {KEY}", other)
    assert KEY not in refused.value.message
    assert other not in refused.value.message


def test_malformed_and_unknown_keys_get_one_text_that_echoes_nothing():
    with pytest.raises(Unauthenticated) as refused:
        secret.pick("Bearer sk-not-a-key-7f3a9c", None)
    assert refused.value.code == "invalid_api_key"
    assert refused.value.message == secret.unknown_key().message
    assert "7f3a" not in refused.value.message
