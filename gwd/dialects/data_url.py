"""The head of a data URL: what stands before its comma."""

from typing import Final, NamedTuple

MAX_HEAD: Final = 1_024
"""A media type and its parameters are never longer; a longer head is not taken apart."""


class DataUrl(NamedTuple):
    """A data URL: its media type (as it was declared, in lower case), whether its payload is base64, the payload."""

    media_type: str
    is_base64: bool
    payload: str


def read(url: str) -> DataUrl | None:
    """The data URL, or None for what is none. Parameters other than base64 mean nothing here."""
    if url[:5].lower() != "data:":
        return None
    comma = url.find(",", 0, MAX_HEAD)
    if comma < 0:
        return None
    media_type, *parameters = (piece.strip().lower() for piece in url[5:comma].split(";"))
    return DataUrl(media_type, "base64" in parameters, url[comma + 1 :])
