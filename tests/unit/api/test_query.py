"""Query parameters: read by the same declaration that the pages show."""

import pytest

from gwd.api import query
from gwd.api.query import Flag, Moment, Query, Text, Whole, Words
from gwd.core.errors import GatewayError

KNOWN = (
    query.limit(50),
    query.OFFSET,
    Query("name", Text(), "A name."),
    Query("kind", Words(("hard", "soft")), "A kind."),
    Query("all", Flag(), "All.", default=False),
    Query("from", Moment(), "A time."),
)


def test_what_is_read_has_the_type_of_its_kind_and_defaults_stand_in() -> None:
    sent = [("offset", "7"), ("kind", "soft"), ("all", "TRUE"), ("from", "1970-01-01T00:00:01Z")]
    assert query.read(sent, KNOWN) == {
        "limit": 50,
        "offset": 7,
        "kind": "soft",
        "all": True,
        "from": 1_000_000,
    }
    assert query.read([("name", "")], KNOWN) == {"limit": 50, "name": "", "all": False}
    # A form turns the + of an offset into a blank.
    assert query.read([("from", "1970-01-01T01:00:00 01:00")], KNOWN)["from"] == 0


def test_what_cannot_be_read_is_named_with_what_would_do() -> None:
    wrong = {
        (("limti", "1"),): ("unknown_parameter", "limti", "takes limit, offset, name"),
        (("name", "a"), ("name", "b")): ("invalid_request", "name", "given twice"),
        (("limit", "0"),): ("invalid_value", "limit", "from 1 to 100"),
        (("limit", "101"),): ("invalid_value", "limit", "from 1 to 100"),
        (("limit", "٣"),): ("invalid_value", "limit", "whole number"),
        (("limit", "9" * 5_000),): ("invalid_value", "limit", "whole number"),
        (("offset", "-1"),): ("invalid_value", "offset", "whole number"),
        (("kind", "Hard"),): ("invalid_value", "kind", "one of hard, soft"),
        (("all", "yes"),): ("invalid_value", "all", "true or false"),
        (("from", "2026-11-27"),): ("invalid_value", "from", "offset"),
        (("from", "soon"),): ("invalid_value", "from", "ISO 8601"),
        (("kind", "x"), ("limit", "x")): ("invalid_value", "limit", "whole number"),
    }
    for sent, (code, param, words) in wrong.items():
        with pytest.raises(GatewayError) as refused:
            query.read(sent, KNOWN)
        assert (refused.value.code, refused.value.param) == (code, param), sent
        assert words in refused.value.message, sent


def test_a_whole_number_keeps_its_bounds() -> None:
    assert Whole(1, 3).read("n", "3") == 3
    assert Whole(1, 3).schema == {"type": "integer", "minimum": 1, "maximum": 3}
