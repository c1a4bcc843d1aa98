"""What a credential looks like: known prefixes, bearer values, tokens of nothing but random characters."""

import re
from typing import Final
from urllib.parse import parse_qsl

# Prefixes of vendors, values behind the words bearer and key. Within a sentence nothing else is safe to hide.
_WITHIN_TEXT: Final = re.compile(
    r"(?i)(?:\b(?:sk|pk|rk|gw[im]|xai|gsk|hf|AIza|ya29)[-_][A-Za-z0-9_\-.*]{6,}"
    r"|\bAIza[A-Za-z0-9_\-]{8,}"
    r"|(?<=bearer )[A-Za-z0-9_\-.=+/*]{6,}"
    r"|(?<=key: )[A-Za-z0-9_\-.=+/*]{6,}|(?<=key provided: )[A-Za-z0-9_\-.=+/*]{4,})"
)
_WHOLE_VALUE: Final = re.compile(
    r"(?i:bearer|basic|token|apikey|digest)\s+\S+"
    r"|(?:gh[pousr]|github_pat|glpat|xox[abprs]|nvapi|fw|tgp_v1|pplx|r8|AKIA|ASIA|whsec)[-_]?[A-Za-z0-9_-]{12,}"
    r"|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)?"
)
_SECRET_NAME: Final = re.compile(
    r"(?i)(?:^|[-_])(?:auth|authorization|authentication|cookie|credentials?|jwt|passw(?:or)?d|secret|sig|signature|token"
    r"|(?:access|api|auth|client|license|private|secret|subscription)?key)s?(?:[-_]|$)"
)
_ID_NAME: Final = re.compile(
    r"(?i)(?:^|[-_])(?:id|account|deployment|org|organization|project|tenant|workspace)(?:[-_]|$)"
)
_BETWEEN_WORDS: Final = re.compile(r"[^A-Za-z0-9]+|(?<=[a-z0-9])(?=[A-Z])")
# No word and no version is as long as this with capitals, small letters and digits mixed.
_RANDOM: Final = re.compile(r"(?=.*[a-z])(?=.*[A-Z])(?=.*[0-9])[A-Za-z0-9+/_=-]{24,}|[0-9a-f]{32,}")


def hide_credentials(text: str) -> str:
    """A sentence without anything that looks like a credential."""
    return _WITHIN_TEXT.sub("***", text)


def holds_a_credential(query: str) -> bool:
    """Whether a URL's query has a field that looks like a credential, by its name in any spelling or by its value."""
    for name, value in parse_qsl(query, keep_blank_values=True):
        spelled = _BETWEEN_WORDS.sub("_", name)
        if looks_like_a_credential(spelled, value) or looks_like_a_credential("", name):
            return True
    return False


def looks_like_a_credential(name: str, value: str) -> bool:
    """Whether a header with this name and value should be kept where secrets are kept.

    What is named as an id (a project's, an account's) may be as random as it likes.
    """
    value = value.strip()
    if _SECRET_NAME.search(name) or _WITHIN_TEXT.search(value) or _WHOLE_VALUE.fullmatch(value):
        return True
    return _RANDOM.fullmatch(value) is not None and not _ID_NAME.search(name)
