"""Identifiers are unbiased random base62 behind a prefix."""

import os
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


def test_ids_of_a_run_begin_alike_and_differ():
    made = [ids.mint_in_runs("gen-") for _ in range(3 * ids.RUN_LENGTH)]
    assert len(set(made)) == len(made)
    assert {len(name) for name in made} == {4 + ids.SUFFIX_LENGTH}
    beginnings = Counter(name[4 : 4 + ids.RUN_DIGITS] for name in made)
    assert len(beginnings) <= 4
    assert max(beginnings.values()) <= ids.RUN_LENGTH


def test_every_digit_of_a_run_is_about_equally_likely():
    counts = Counter(
        digit for _ in range(4_000) for digit in ids.mint_in_runs("")[ids.RUN_DIGITS :]
    )
    # 1,097 are expected of each; nine standard deviations either way.
    assert all(800 < counts[digit] < 1_400 for digit in ids.BASE62)


def test_a_fork_mints_ids_of_its_own():
    """Suffixes are minted ahead; those that are there belong to the parent."""
    ids.mint("")
    ids.mint_in_runs("")
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(writing, "".join((ids.mint(""), ids.mint_in_runs(""))).encode())
        os._exit(0)
    os.waitpid(pid, 0)
    reported = os.read(reading, 1_000).decode()
    os.close(reading)
    os.close(writing)
    assert len(reported) == 2 * ids.SUFFIX_LENGTH
    assert reported[: ids.SUFFIX_LENGTH] not in {ids.mint("") for _ in range(200)}
    assert reported[ids.SUFFIX_LENGTH :][: ids.RUN_DIGITS] != ids.mint_in_runs("")[: ids.RUN_DIGITS]
