"""Lists of names with `*`: they fit what a plain restatement says, and no pattern takes long."""

from hypothesis import given
from hypothesis import strategies as st

from gwd.core.name_patterns import is_pattern, pattern_of, patterns_of

TEXTS = st.text("ab/*~", max_size=12)
NAMES = st.text("ab/~", max_size=16)


def fits(pattern: str, name: str) -> bool:
    """The rule, tried out in every way: a star takes nothing, or one character and is asked again."""
    ways = {(0, 0)}
    seen = set(ways)
    while ways:
        at, place = ways.pop()
        if at == len(pattern):
            if place == len(name):
                return True
            continue
        if pattern[at] == "*":
            steps = {(at + 1, place)} | ({(at, place + 1)} if place < len(name) else set())
        elif place < len(name) and pattern[at] == name[place]:
            steps = {(at + 1, place + 1)}
        else:
            steps = set()
        ways |= steps - seen
        seen |= steps
    return False


@given(st.lists(TEXTS, max_size=4), NAMES)
def test_a_list_names_what_one_of_its_entries_fits(entries: list[str], name: str) -> None:
    assert patterns_of(entries).names(name) is any(fits(entry, name) for entry in entries)


def test_patterns_as_people_write_them() -> None:
    table = [
        ("anthropic/*", "anthropic/claude-x", True),
        ("anthropic/*", "anthropical/claude-x", False),
        ("*/gpt-5*", "openai/gpt-5", True),
        ("*/gpt-5*", "openai/gpt-5-mini", True),
        ("*/gpt-5*", "openai/gpt-4", False),
        ("~anthropic/*-latest", "~anthropic/claude-latest", True),
        ("a*a", "a", False),
        ("*", "anything/at-all", True),
        ("a?c", "abc", False),
        ("[a]*", "abc", False),
    ]
    assert [
        (pattern, name)
        for pattern, name, wanted in table
        if patterns_of([pattern]).names(name) is not wanted
    ] == []
    assert is_pattern("a/*")
    assert not is_pattern("a/b")


def test_no_pattern_takes_long() -> None:
    """One that goes back and tries again would not end within the age of the universe."""
    assert not pattern_of("a*" * 100 + "b*c").matches("a" * 100_000 + "c")
    assert pattern_of("*a" * 100 + "*").matches("a" * 100_000)
