"""Tool names and call ids fit the vendor and come back as the client wrote them."""

import re

from hypothesis import given
from hypothesis import strategies as st

from gwd.vendors.tool_names import NAME_LENGTH, NameRule, ToolNames, call_id_for

names = st.lists(st.text(min_size=1, max_size=100), max_size=8, unique=True)
_FITS = re.compile(r"[a-zA-Z0-9_-]{1,64}")


@given(names)
def test_every_name_fits_and_comes_back(wanted: list[str]):
    mapped = ToolNames(wanted)
    sent = [mapped.upstream(name) for name in wanted]
    assert all(_FITS.fullmatch(name) for name in sent)
    assert len(set(sent)) == len(wanted)
    assert [mapped.client(name) for name in sent] == wanted


def test_a_name_that_fits_stays_and_wins_over_a_renamed_one():
    mapped = ToolNames(["look at", "look_at"])
    assert mapped.upstream("look_at") == "look_at"
    assert mapped.upstream("look at") != "look_at"


def test_names_of_the_history_that_are_not_offered_are_renamed_too():
    mapped = ToolNames(["look_at"])
    assert mapped.upstream("old") == "old"
    assert mapped.upstream("look at") not in ("look at", "look_at")


def test_a_name_the_vendor_made_up_comes_back_unchanged():
    assert ToolNames(["a b"]).client("invented") == "invented"


def test_long_names_that_differ_at_the_end_stay_apart():
    long = "x" * NAME_LENGTH
    mapped = ToolNames([long + "1", long + "2"])
    assert mapped.upstream(long + "1") != mapped.upstream(long + "2")


@given(st.text(max_size=100), st.sampled_from((40, 64)))
def test_a_call_id_fits_and_is_the_same_for_call_and_result(call_id: str, length: int):
    sent = call_id_for(call_id, length=length)
    assert re.fullmatch(r"[a-zA-Z0-9_-]+", sent)
    assert len(sent) <= length
    assert call_id_for(call_id, length=length) == sent


def test_a_call_id_that_fits_is_kept():
    assert call_id_for("call_1", length=40) == "call_1"


def test_long_call_ids_that_differ_at_the_end_stay_apart():
    assert call_id_for("x" * 71 + "a", length=40) != call_id_for("x" * 71 + "b", length=40)


def test_a_vendor_may_take_other_characters_and_refuse_some_at_the_start():
    rule = NameRule(12, re.compile(r"[^a-z0-9.:-]"), re.compile(r"[^a-z]"))
    mapped = ToolNames(["a.b:c", "9lives", "look at this one"], rule=rule)
    sent = [mapped.upstream(name) for name in ("a.b:c", "9lives", "look at this one")]
    assert sent[0] == "a.b:c"
    assert sent[1] == "_9lives"
    assert len(sent[2]) == 12
    assert [mapped.client(name) for name in sent] == ["a.b:c", "9lives", "look at this one"]
