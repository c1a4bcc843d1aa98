"""Custom tools, namespaces and sealed signatures: what goes in one way comes out the other."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gwd.dialects.responses.custom_input import CustomInput
from gwd.dialects.responses.namespaces import MAX_NAME, Namespaces
from gwd.dialects.responses.sealing import Sealed, seal, unseal

NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=40)


def unwrapped(arguments: str, size: int) -> str:
    """The input text of a custom call, fed in pieces; what is streamed adds up to the text."""
    custom = CustomInput()
    streamed = [custom.feed(arguments[at : at + size]) for at in range(0, len(arguments), size)]
    streamed.append(custom.close())
    assert "".join(streamed) == custom.text
    return custom.text


@given(text=st.text(), size=st.integers(1, 9))
def test_the_input_of_a_custom_call_survives_its_json_form(text: str, size: int):
    arguments = msgspec.json.encode({"input": text}).decode()
    assert unwrapped(arguments, size) == text


@given(text=st.text(), size=st.integers(1, 9))
def test_escaped_characters_arrive_whole(text: str, size: int):
    """Vendors may escape everything beyond ASCII, surrogate pairs included."""
    body = "".join(f"\\u{unit:04x}" for unit in memoryview(text.encode("utf-16-le")).cast("H"))
    assert unwrapped(f'{{ "input" : "{body}" }}', size) == text


@pytest.mark.parametrize("size", [1, 3, 100])
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("", ""),
        ("{}", ""),
        ('{"input":""}', ""),
        ('{"input":"cut of', "cut of"),
        ('{"input":"cut \\u00', "cut "),
        ('{"input":"raw\nbreak \\t"}', "raw\nbreak \t"),
        ('{"input":"half \\ud83d pair"}', "half \ufffd pair"),
        ('{"input":"it\\\'s"}', "it\\'s"),
        ('{"why":1,"input":"second"}', "second"),
        ('{"cmd":"ls"}', "ls"),
        ('{"cmd":"a\nb"}', "a\nb"),
        ('{"cmd":"half \\ud83d pair"}', "half \ufffd pair"),
        ('{"cmd":"cut of', '{"cmd":"cut of'),
        ('{"cmd":""}', ""),
        ('{"input":{"cmd":"ls"}}', "ls"),
        ('{"cmd":1}', '{"cmd":1}'),
        ('{"cmd":null}', '{"cmd":null}'),
        ('{"cmd":["ls"]}', '{"cmd":["ls"]}'),
        ('{"cmd":"ls","why":"x"}', '{"cmd":"ls","why":"x"}'),
        ('"ls"', "ls"),
        ("7", "7"),
        ("ls -l", "ls -l"),
    ],
)
def test_a_model_that_does_not_keep_to_the_form_is_still_understood(
    arguments: str, text: str, size: int
):
    assert unwrapped(arguments, size) == text


def test_text_is_streamed_before_the_call_is_complete():
    custom = CustomInput()
    assert custom.feed('{"input":"*** Begin') == "*** Begin"
    assert custom.feed(" Patch\\n+a") == " Patch\n+a"


@given(members=st.lists(st.tuples(NAMES, NAMES), max_size=8), plain=st.lists(NAMES, max_size=4))
def test_flat_names_are_unique_and_lead_back(members: list[tuple[str, str]], plain: list[str]):
    namespaces = Namespaces(plain)
    flat = {member: namespaces.add(*member) for member in members}
    assert len({*flat.values(), *plain}) == len(flat) + len(set(plain))
    assert all(len(name) <= MAX_NAME for name in flat.values())
    for member, name in flat.items():
        assert namespaces.flat(*member) == name
        found = namespaces.by_flat_name()[name]
        assert (found.namespace, found.name) == member


def test_a_plain_name_is_never_shadowed_by_a_joined_one():
    namespaces = Namespaces(["a__b"])
    assert namespaces.add("a", "b") != "a__b"
    assert namespaces.add("a__b", "c") == "a__b__c"
    assert namespaces.add("a", "b__c") != "a__b__c"


@pytest.mark.parametrize(
    "sealed",
    [
        Sealed("openai-responses-v1", signature="gAAAAB"),
        Sealed("anthropic-claude-v1", signature="Sig:with:colons=="),
        Sealed("anthropic-claude-v1", redacted="hidden"),
        Sealed("google-gemini-v1", signature="thought"),
    ],
)
def test_a_signature_comes_back_to_its_own_family(sealed: Sealed):
    assert unseal(seal(sealed)) == sealed


def test_openai_content_is_not_touched():
    assert seal(Sealed("openai-responses-v1", signature="gAAAAB")) == "gAAAAB"


@pytest.mark.parametrize("text", [None, "", "gw1:", "gw1:x", "gw1:x:y:z"])
def test_a_broken_seal_proves_nothing(text: str | None):
    assert unseal(text) == Sealed("unknown")
