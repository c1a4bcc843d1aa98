"""Which refusals are worth one more call, with the reasoning of earlier turns sent otherwise.

A vendor that names sealed content, a signature or thinking means what an earlier turn brought along; servers that
know `reasoning_content` want it back or refuse it. Whether the request carried any is for the sender to see: a call
that would be the same is not made. The whole message counts, what it quotes too: at worst one call more is sent to
the vendor that has just refused.
"""

import re
from typing import Final

from gwd.core.errors import FaultDetail

_SIGNATURE: Final = re.compile(
    r"encrypted[ _-]?(?:content|reasoning|thinking)|signature|thinking|thought|redacted"
    r"|\breasoning[ _](?:item|block|detail|content)|of type 'reasoning'|item with id 'rs_"
)
_FIELD: Final = re.compile(r"\breasoning[_ ]?content\b")
_MISSING: Final = re.compile(
    r"\bmissing\b|\brequire[ds]?\b|pass(?:ed|ing)? (?:it )?back|not (?:found|provided|present|included|set)\b"
    r"|must (?:contain|have|include|provide|exist|be (?!removed|omitted|absent|stripped|null|empty))"
    r"|should (?:contain|have|include|be (?:passed|included|provided|sent|present))"
    r"|\bneeds?\b|\blacks?\b|\bwithout\b|cannot be (?:empty|null|omitted)|\bexpected\b"
)
_REFUSED: Final = re.compile(
    r"not (?:permitted|allowed|supported|accepted|expected|required|be (?:included|sent|passed|provided))"
    r"|unsupported|unexpected|unknown|unrecogni[sz]ed|extra (?:inputs?|fields?)|additional propert|forbidden"
    r"|\bremoved?\b|\bomit(?:ted)?\b"
)


def detail_of(status: int | None, codes: str, message: str) -> FaultDetail | None:
    """What a refused request may be sent again without, or with; texts are in lower case."""
    if status not in (None, 400, 413, 422):
        return None
    message = message.replace("`", "")
    if _FIELD.search(message):
        is_missing = _MISSING.search(message) and not _REFUSED.search(message)
        return "reasoning_missing" if is_missing else "reasoning_refused"
    return "invalid_signature" if _SIGNATURE.search(f"{codes} {message}") else None
