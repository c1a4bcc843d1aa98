"""What a tag may be."""

import pytest

from gwd.core import tags
from gwd.core.errors import InvalidValue


def test_tags_are_trimmed_and_each_is_there_once_in_the_order_given() -> None:
    assert tags.from_text(" b, a ,b,B , ", param="x") == ("b", "a", "B")
    assert tags.from_text("Rés é:1/2 #3", param="x") == ("Rés é:1/2 #3",)
    assert tags.from_text(" , ", param="x") == ()
    assert tags.checked(["a", " a"], param="x") == ("a",)


def test_eight_tags_of_64_characters_are_taken_and_no_more() -> None:
    eight = [f"{number}" * 64 for number in range(8)]
    assert tags.checked(eight, param="x") == tuple(eight)
    assert len(tags.checked([*eight, eight[0]], param="x")) == 8
    for wrong in ([*eight, "nine"], ["a" * 65]):
        with pytest.raises(InvalidValue) as caught:
            tags.checked(wrong, param="x")
        assert caught.value.param == "x"


@pytest.mark.parametrize("word", ["", " ", "a,b", "a\nb", "a\x00", "\udcff", "a\u2028b"])
def test_what_is_no_tag_is_refused_with_the_field(word: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        tags.checked(["fine", word], param="metadata.tags")
    assert caught.value.param == "metadata.tags"
    assert "`metadata.tags`" in caught.value.message
