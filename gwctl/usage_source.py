"""Where the numbers of `gwctl usage` come from: one question, answered in rows."""

from collections.abc import Mapping, Sequence
from typing import Any

from gwctl.records import pages
from gwctl.session import Session
from gwctl.usage_fold import fold


def per_day(
    session: Session, span: Mapping[str, str], dimensions: Sequence[str]
) -> list[dict[str, Any]]:
    """What was used between `from` and `to`: one row per combination of dimensions and UTC day, refusals left out.

    Each row has its dimensions, `date__day`, `requests`, tokens, `cost` and `cache_discount` in USD. The records are
    read page by page and added up at once: in memory are the rows, not the requests.
    """
    walk = pages(session, "/generations", span)
    return fold((record for page, _ in walk for record in page), dimensions, daily=True)
