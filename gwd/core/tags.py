"""Tags: short words of an organization's own on its requests, for reports and budgets."""

from collections.abc import Iterable
from typing import Annotated, Final

from msgspec import Meta

from gwd.core.errors import InvalidValue

MOST_TAGS: Final = 8
TAG_LENGTH: Final = 64

TagsInput = Annotated[
    list[Annotated[str, Meta(extra_json_schema={"minLength": 1, "maxLength": TAG_LENGTH})]],
    Meta(extra_json_schema={"maxItems": MOST_TAGS}),
]
"""Tags in a body; `checked` says what is wrong with them."""


def checked(words: Iterable[str], *, param: str) -> tuple[str, ...]:
    """The tags without outer blanks, each once, in their order; upper and lower case are two tags.

    Raises InvalidValue for more than eight, and for one that is empty, longer than 64 characters, or holds a comma or
    what cannot be printed.
    """
    found = tuple(dict.fromkeys(checked_one(word, param=param) for word in words))
    if len(found) > MOST_TAGS:
        raise InvalidValue(
            f"`{param}` takes at most {MOST_TAGS} tags, and {len(found)} were given", param=param
        )
    return found


def from_text(text: str, *, param: str) -> tuple[str, ...]:
    """The tags of a text with commas between; nothing between two commas is no tag. Raises what `checked` does."""
    return checked((word for word in text.split(",") if word.strip()), param=param)


def checked_one(word: str, *, param: str) -> str:
    """One tag without outer blanks. Raises InvalidValue."""
    tag = word.strip()
    if not 1 <= len(tag) <= TAG_LENGTH:
        raise InvalidValue(f"`{param}`: a tag has 1 to {TAG_LENGTH} characters", param=param)
    if "," in tag or not tag.isprintable():
        raise InvalidValue(
            f"`{param}`: a tag must not hold a comma or control characters", param=param
        )
    return tag
