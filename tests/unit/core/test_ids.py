"""Identifiers are unbiased random base62 behind a prefix."""

from collections import Counter

from gwd.core import ids


def test_an_id_is_its_prefix_and_22_digits():
    made = ids.mint("key_")
    assert made.startswith("key_")
    assert len(made) == 4 + ids.SUFFIX_LENGTH
    assert set(made[4:]) <= set(ids.BASE62)


def test_ids_do_not_repeat():
    assert len({ids.mint("") for _ in range(5_000)}) == 5_000


def test_every_digit_is_about_equally_likely():
    counts = Counter(ids.random_base62(62_000))
    assert set(counts) == set(ids.BASE62)
    # 1,000 are expected of each; eight standard deviations either way.
    assert all(750 < count < 1_250 for count in counts.values())


def test_any_length_can_be_had():
    assert [len(ids.random_base62(n)) for n in (0, 1, 43, 500)] == [0, 1, 43, 500]
