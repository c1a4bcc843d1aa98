"""Files of any editor: with a mark or without, and what is no UTF-8 is named."""

import pytest

from gwd.core.text_file import NotUtf8Error, decode

TEXT = 'name = "Zürich"\r\n'


def test_a_byte_order_mark_is_no_part_of_the_text():
    assert decode(TEXT.encode("utf-8")) == decode(TEXT.encode("utf-8-sig")) == TEXT
    assert decode(b"") == ""


@pytest.mark.parametrize(
    ("encoding", "named"),
    [
        ("utf-16", "UTF-16"),
        ("utf-16-le", "UTF-16"),
        ("utf-16-be", "UTF-16"),
        ("utf-32", "UTF-32"),
        ("latin-1", "not UTF-8"),
    ],
)
def test_another_encoding_is_named_with_the_remedy(encoding, named):
    with pytest.raises(NotUtf8Error, match=rf"{named}.*save it as UTF-8"):
        decode(TEXT.encode(encoding))
