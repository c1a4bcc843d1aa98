"""Whose signature a part carries, read from its `thoughtSignature`, which every client sends back unchanged.

The field holds base64, and SDKs decode it: a signature of another vendor travels in it as base64 of its own text behind
a mark that names its format. Google's own signatures are bytes that never begin so.
"""

import base64
import binascii
from typing import Final

import msgspec

from gwd.core.request import ReasoningPart

OWN_FORMAT: Final = "google-gemini-v1"
_MARK: Final = "gw1:"
_STANDARD: Final = str.maketrans("-_", "+/")


class Signed(msgspec.Struct, frozen=True, kw_only=True):
    """A signature and whose it is; `kind` tells a text (t), a summary (s) and data in the text's place (r)."""

    value: str
    format: str = OWN_FORMAT
    kind: str = "s"
    item_id: str | None = None

    def reasoning(self, text: str) -> ReasoningPart:
        """The piece of reasoning that carries it."""
        is_data = self.kind == "r"
        return ReasoningPart(
            text=text,
            signature=None if is_data else self.value,
            redacted=self.value if is_data else None,
            format=self.format,
            summary=self.kind == "s",
            item_id=self.item_id,
        )


def shown(signed: Signed) -> str:
    """The signature as the client gets it."""
    if signed.format == OWN_FORMAT:
        return signed.value
    text = f"{_MARK}{signed.format}:{signed.kind}:{signed.item_id or ''}:{signed.value}"
    return base64.b64encode(text.encode()).decode("ascii")


def signed_by(signature: str) -> Signed:
    """What a client's signature stands for. SDKs may have written it in the alphabet for addresses."""
    standard = signature.translate(_STANDARD)
    try:
        text = base64.b64decode(standard + "=" * (-len(standard) % 4)).decode()
    except (binascii.Error, ValueError):
        return Signed(value=standard)
    pieces = text.removeprefix(_MARK).split(":", 3)
    if not text.startswith(_MARK) or len(pieces) != 4:
        return Signed(value=standard)
    format_, kind, item_id, value = pieces
    return Signed(value=value, format=format_, kind=kind, item_id=item_id or None)
