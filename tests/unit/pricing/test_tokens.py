"""The token estimate against real counts: within ten per cent on every class of the corpus, and linear in time."""

import json
from pathlib import Path
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gwd.pricing.bound import bound_text
from gwd.pricing.tokens import WHOLE_LIMIT, estimate_text

CORPUS = Path(__file__).parent / "corpus"
REFERENCE = json.loads((CORPUS / "reference.json").read_text())
CLASSES = ["base64", "chinese", "code", "digits", "english", "japanese", "json", "russian"]
DOCUMENTED_PERCENT = {
    "english": -4,
    "chinese": -5,
    "japanese": -9,
    "russian": -6,
    "code": 5,
    "json": -3,
    "digits": -4,
    "base64": 0,
}


def text_of(name: str) -> str:
    return (CORPUS / f"{name}.txt").read_text(encoding="utf-8")


def test_the_corpus_has_every_class_and_its_texts_are_unchanged() -> None:
    assert sorted(REFERENCE) == CLASSES
    for name in CLASSES:
        text = text_of(name)
        assert (len(text), len(text.encode())) == (
            REFERENCE[name]["characters"],
            REFERENCE[name]["bytes"],
        )


@pytest.mark.parametrize("name", CLASSES)
def test_the_estimate_is_within_ten_per_cent_of_the_real_count(name: str) -> None:
    real = REFERENCE[name]["o200k_base"]
    assert abs(estimate_text(text_of(name)) - real) <= real * 0.10


@pytest.mark.parametrize("name", CLASSES)
def test_the_documented_error_is_the_measured_one(name: str) -> None:
    real = REFERENCE[name]["o200k_base"]
    error = (estimate_text(text_of(name)) / real - 1) * 100
    assert round(error) == DOCUMENTED_PERCENT[name]


@pytest.mark.parametrize("vocabulary", ["o200k_base", "cl100k_base"])
@pytest.mark.parametrize("name", CLASSES)
def test_the_bound_is_never_under_a_real_count(name: str, vocabulary: str) -> None:
    assert bound_text(text_of(name)) >= REFERENCE[name][vocabulary]


@pytest.mark.parametrize("name", CLASSES)
def test_a_long_text_is_sampled_without_losing_the_measure(name: str) -> None:
    text = text_of(name)
    times = WHOLE_LIMIT // len(text) + 2
    assert len(text * times) > WHOLE_LIMIT
    real = REFERENCE[name]["o200k_base"] * times
    assert abs(estimate_text(text * times) - real) <= real * 0.12


def test_an_empty_text_has_no_tokens_and_any_other_at_least_one() -> None:
    assert estimate_text("") == 0
    assert estimate_text(" ") == estimate_text("\x01") == 1


@given(st.text())
def test_no_text_is_estimated_far_above_its_bound(text: str) -> None:
    assert 0 <= estimate_text(text) <= max(1, 2 * bound_text(text))


@given(st.text(alphabet=st.characters(codec=None)))
def test_lone_surrogates_do_not_break_it(text: str) -> None:
    assert bound_text(text) >= len(text)
    assert estimate_text(text) >= 0


def test_normalisation_that_lengthens_a_text_is_covered() -> None:
    ligature = "\ufdfa"
    assert bound_text(ligature) >= 33 > len(ligature.encode())


@pytest.mark.parametrize(
    "text",
    [
        "a" * 200_000,
        " " * 200_000,
        "A" * 200_000 + "b",
        "=" * 200_000,
        "aé" * 100_000,
        "1aA" * 70_000,
    ],
    ids=["letters", "spaces", "capitals", "signs", "accents", "random"],
)
def test_hostile_texts_take_linear_time(text: str) -> None:
    started = process_time()
    estimate_text(text)
    assert process_time() - started < 2.0
