"""The body of a PATCH follows from what a record is made of."""

from typing import Annotated

import msgspec
import pytest
from msgspec import UNSET, Meta

from gwd.core.patches import FIXED, named, patch_of


class Create(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: Annotated[str, Meta(description="What it is called.", max_length=5)]
    kind: Annotated[str, FIXED, Meta(description="What it is.")] = "plain"
    limit: Annotated[int | None, Meta(description="How much.")] = None
    strict: bool = False


Patch = patch_of(Create, "Patch", "Changes.", disabled=bool)


def read(text: str):
    return msgspec.json.decode(text, type=Patch)


def test_what_is_left_out_is_unchanged_and_null_clears_what_may_be_null() -> None:
    assert named(read("{}")) == {}
    changes = read('{"limit": null, "disabled": true, "strict": false}')
    assert named(changes) == {"limit": None, "strict": False, "disabled": True}
    assert changes.name is UNSET


@pytest.mark.parametrize(
    "text",
    ['{"kind": "x"}', '{"name": null}', '{"strict": null}', '{"name": "longer"}', '{"x": 1}'],
)
def test_what_cannot_be_changed_or_cannot_be_is_refused(text: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        read(text)


def test_descriptions_are_those_of_the_record() -> None:
    schema = msgspec.json.schema(Patch)["$defs"]["Patch"]
    assert schema["description"] == "Changes."
    assert schema["properties"]["limit"]["description"] == "How much."
    assert "required" not in schema or schema["required"] == []
