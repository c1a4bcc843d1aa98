"""Whether an organization has its requests stored, which of them, for how long, and what is hidden in them before."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from gwd.core.errors import InvalidValue
from gwd.core.fields import Id
from gwd.core.personal_data import RULES, Redactor, Rule, pattern_error

MAX_DAYS: Final = 365
MOST_PATTERNS: Final = 50
MOST_NAMED: Final = 500

Ids = Annotated[list[Id], Meta(max_length=MOST_NAMED)]


class ContentLog(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is stored of requests and their answers. Where neither keys nor workspaces are named, all are."""

    days: Annotated[
        int,
        Meta(ge=1, le=MAX_DAYS, description="After how many days what is stored is erased."),
    ]
    redact: Annotated[
        tuple[Rule, ...],
        Meta(
            description="What is hidden before anything is stored: payment cards, mail addresses, account numbers,"
            " phone numbers, credentials. Left out it is all of them."
        ),
    ] = RULES
    patterns: Annotated[
        list[str],
        Meta(
            max_length=MOST_PATTERNS,
            description="Further texts to hide, capitals or not; `#` stands for a digit, `*` at the end for the rest of"
            " the word: MRN-######, project-*.",
        ),
    ] = []
    keys: Annotated[
        Ids | None,
        Meta(
            description="Only requests of these keys and their successors by rotation, and of `workspaces`; null names"
            " none.",
        ),
    ] = None
    workspaces: Annotated[
        Ids | None,
        Meta(
            description="Only requests of the keys of these workspaces, and of `keys`; null names none.",
        ),
    ] = None

    def redactor(self) -> Redactor:
        """What hides what is to be hidden."""
        return Redactor(self.redact, self.patterns)


def checked(wanted: ContentLog | None) -> ContentLog | None:
    """As it is stored: nothing twice. Raises InvalidValue for a pattern that does not serve and for empty lists."""
    if wanted is None:
        return None
    for index, pattern in enumerate(wanted.patterns):
        if (wrong := pattern_error(pattern)) is not None:
            param = f"content_log.patterns[{index}]"
            raise InvalidValue(f"{param} {wrong}.", param=param)
    for name in ("keys", "workspaces"):
        if getattr(wanted, name) == []:
            raise InvalidValue(
                f"content_log.{name} must name at least one; use null to name none.",
                param=f"content_log.{name}",
            )
    return msgspec.structs.replace(
        wanted,
        redact=tuple(rule for rule in RULES if rule in wanted.redact),
        patterns=list(dict.fromkeys(wanted.patterns)),
    )
