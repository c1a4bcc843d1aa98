"""The exports of vendors: the columns by which each is known, and what one line of it says.

Columns were read in exports and in what others wrote of them, on 2026-11-29: OpenAI's usage page (usage and cost),
Anthropic's console (usage and cost), Google's cloud billing (reports of the console, detailed export of BigQuery).
Titles are compared in lower case with `_` for whatever is no letter or digit; what stands in brackets is the unit.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal

from gwctl.errors import CommandError, usage

VENDORS = ("openai", "anthropic", "gemini")
HOSTS = {"openai": "openai.com", "anthropic": "anthropic.com", "gemini": "googleapis.com"}
"""Where the vendor's own endpoints are: these and what lies below them."""

CLASSES = ("tokens_input", "tokens_cache_read", "tokens_cache_write", "tokens_output")
"""Classes of tokens that do not overlap; reasoning is output."""

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,2})?")
_GROUPED = re.compile(r"[+-]?[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?")
_LONGEST = 60
_LARGEST = 15  # powers of ten that an amount or a count of a day may have
_NONE = ("", "-", "none", "null", "nan")


class OddCellError(Exception):
    """A cell that cannot be what its column says; the reader adds the line."""


@dataclass(frozen=True)
class Line:
    """What one line counts. None is what the export does not say; `model` is empty where no model is named.

    `tool` names what the vendor ran or kept beside the model. `holders` are the keys, `projects` the projects or
    workspaces, by every name that the line gives them.
    """

    day: date
    model: str
    tool: str = ""
    holders: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    requests: int | None = None
    tokens: tuple[int, ...] | None = None
    cost: Decimal | None = None


class Cells:
    """The cells of one line by column; asked by several names, the first that is filled answers."""

    def __init__(self, values: Mapping[str, str], units: Mapping[str, str]) -> None:
        self._values = values
        self._units = units

    def text(self, *names: str) -> str:
        return next((found for name in names if (found := self._values.get(name, "").strip())), "")

    def all(self, *names: str) -> tuple[str, ...]:
        return tuple(found for name in names if (found := self.text(name)))

    def amount(self, *names: str) -> Decimal | None:
        """US dollars; None where nothing is written."""
        for name in names:
            written = self.text(name)
            if written.lower() not in _NONE:
                unit = self._units.get(name, "")
                if unit.upper() not in ("", "$", "US$", "USD"):
                    raise _foreign(unit)
                return number(name, written.removeprefix("US").removeprefix("$"))
        return None

    def count(self, *names: str) -> int:
        """A whole number, also when it reads 59200.0 or 59,200; 0 where nothing is written."""
        for name in names:
            written = self.text(name)
            if written.lower() not in _NONE:
                found = number(name, written)
                if found < 0 or found != found.to_integral_value():
                    raise OddCellError(f"{name} {written[:40]!r} is not a count")
                return int(found)
        return 0

    def day(self, *names: str) -> date | None:
        """The day of a date, or of a time in UTC; None where nothing is written."""
        for name in names:
            if written := self.text(name):
                return day_of(name, written)
        return None


def number(name: str, written: str) -> Decimal:
    """The number of a cell, exactly as it is written."""
    bare = written.replace(",", "") if _GROUPED.fullmatch(written) else written
    if len(bare) > _LONGEST or not _NUMBER.fullmatch(bare):
        raise OddCellError(f"{name} {written[:40]!r} is not a number")
    found = Decimal(bare)
    if found and not -_LONGEST < found.adjusted() <= _LARGEST:
        raise OddCellError(f"{name} {written[:40]!r} is out of range")
    return found


def day_of(name: str, written: str) -> date:
    """A date, a time with or without its zone (UTC then), or seconds since 1970."""
    try:
        if written.isascii() and written.isdigit() and len(written) == 10:
            return datetime.fromtimestamp(int(written), UTC).date()
        moment = datetime.fromisoformat(written.replace(" UTC", "+00:00"))
        return (moment.astimezone(UTC) if moment.tzinfo else moment).date()
    except (ValueError, OverflowError):
        raise OddCellError(f"{name} {written[:40]!r} is no date such as 2026-11-01") from None


@dataclass(frozen=True)
class Form:
    """One export. `needs` are its columns, each by one of several titles; `read` gives None for what is no usage."""

    vendor: str
    name: str
    needs: tuple[tuple[str, ...], ...]
    read: Callable[[Cells], Line | None]
    zone: str = "UTC"

    @property
    def columns(self) -> str:
        return ", ".join(titles[0] for titles in self.needs)

    def fits(self, titles: Iterable[str]) -> bool:
        there = set(titles)
        return all(there.intersection(one) for one in self.needs)


def _foreign(unit: str) -> CommandError:
    return usage(
        f"the export is in {unit[:20]}, the gateway counts in US dollars",
        do="export it in US dollars, or give the usage export alone: tokens have no currency",
        code="vendor_export",
    )


# OpenAI

_OPENAI_DAY = ("start_time_iso", "start_time", "usage_date", "date")
_OPENAI_KEYS = ("api_key_id", "api_key_name", "api_key")
_OPENAI_PROJECTS = ("project_id", "project_name", "project")
_OPENAI_TOOLS = re.compile(
    r"web.?search|file.?search|code.?interpreter|tool.?call|vector.?store|storage|session|container",
    re.IGNORECASE,
)


def _openai_usage(cells: Cells) -> Line | None:
    """Its input holds what was read from the cache and written to it; that of embeddings has no output."""
    day = cells.day(*_OPENAI_DAY)
    if day is None:
        return None
    whole = cells.count("input_tokens")
    cached = cells.count("input_cached_tokens")
    written = cells.count("input_cache_write_tokens")
    return Line(
        day=day,
        model=cells.text("model"),
        holders=cells.all(*_OPENAI_KEYS),
        projects=cells.all(*_OPENAI_PROJECTS),
        requests=cells.count("num_model_requests", "num_requests"),
        tokens=(_rest(whole, cached, written), cached, written, cells.count("output_tokens")),
    )


def _openai_old_usage(cells: Cells) -> Line | None:
    day = cells.day("aggregation_timestamp", "timestamp")
    if day is None:
        return None
    whole = cells.count("n_context_tokens_total")
    cached = cells.count("n_cached_context_tokens_total")
    return Line(
        day=day,
        model=cells.text("snapshot_id"),
        holders=cells.all(*_OPENAI_KEYS, "api_key_redacted"),
        projects=cells.all(*_OPENAI_PROJECTS),
        requests=cells.count("n_requests"),
        tokens=(_rest(whole, cached, 0), cached, 0, cells.count("n_generated_tokens_total")),
    )


def _openai_cost(cells: Cells) -> Line | None:
    """`MODEL, cached input` and the like; the name of a tool; nothing where the export is not grouped by line item."""
    day, cost = cells.day(*_OPENAI_DAY), cells.amount("amount_value")
    if day is None or cost is None:
        return None
    currency = cells.text("amount_currency")
    if currency.lower() not in ("", "usd"):
        raise _foreign(currency)
    item = cells.text("line_item")
    is_tool = bool(_OPENAI_TOOLS.search(item))
    return Line(
        day=day,
        model="" if is_tool else item.partition(", ")[0],
        tool=item if is_tool else "",
        holders=cells.all(*_OPENAI_KEYS),
        projects=cells.all(*_OPENAI_PROJECTS),
        cost=cost,
    )


def _rest(whole: int, cached: int, written: int) -> int:
    if cached + written > whole:
        raise OddCellError(f"of {whole} input tokens {cached} are cached and {written} written")
    return whole - cached - written


# Anthropic

_ANTHROPIC_DAY = ("usage_date_utc", "usage_date", "starting_at")
_ANTHROPIC_KEYS = ("api_key", "api_key_id")
_ANTHROPIC_PROJECTS = ("workspace", "workspace_id")
_ANTHROPIC_TOOLS = re.compile(r"search|execution|session|tool", re.IGNORECASE)
_ANTHROPIC_INPUT = ("usage_input_tokens_no_cache", "uncached_input_tokens")
_ANTHROPIC_OUTPUT = ("usage_output_tokens", "output_tokens")


def _anthropic_usage(cells: Cells) -> Line | None:
    """Its classes of input do not overlap. Older exports have one column for both kinds of cache writes."""
    day = cells.day(*_ANTHROPIC_DAY)
    if day is None:
        return None
    written = (
        cells.count(
            "usage_input_tokens_cache_write_5m",
            "cache_creation_ephemeral_5m_input_tokens",
            "usage_input_tokens_cache_write",
        ),
        cells.count(
            "usage_input_tokens_cache_write_1h", "cache_creation_ephemeral_1h_input_tokens"
        ),
    )
    return Line(
        day=day,
        model=cells.text("model_version", "model"),
        holders=cells.all(*_ANTHROPIC_KEYS),
        projects=cells.all(*_ANTHROPIC_PROJECTS),
        tokens=(
            cells.count(*_ANTHROPIC_INPUT),
            cells.count("usage_input_tokens_cache_read", "cache_read_input_tokens"),
            sum(written),
            cells.count(*_ANTHROPIC_OUTPUT),
        ),
    )


def _anthropic_cost(cells: Cells) -> Line | None:
    """Models have their names for people here, amounts are rounded to the cent."""
    day, cost = cells.day(*_ANTHROPIC_DAY), cells.amount("cost_usd")
    if day is None or cost is None:
        return None
    kind = next(filter(_ANTHROPIC_TOOLS.search, cells.all("cost_type", "token_type")), "")
    return Line(
        day=day,
        model="" if kind else cells.text("model"),
        tool=kind,
        holders=cells.all(*_ANTHROPIC_KEYS),
        projects=cells.all(*_ANTHROPIC_PROJECTS),
        cost=cost,
    )


# Google

_SKU = ("sku_description",)
_GOOGLE_COST = ("unrounded_subtotal", "unrounded_cost", "subtotal", "cost")
_GEMINI = re.compile(
    r"gemini(?:[ -](?:[0-9]+(?:\.[0-9]+)?|pro|flash|lite|ultra|nano|embedding|preview|exp)(?![a-z]))*",
    re.IGNORECASE,
)
_SERVICES = ("gemini", "generative language", "vertex", "agent platform")


def _google(cells: Cells, *days: str) -> Line | None:
    """One SKU of a day. Lines without a date repeat the sum; services other than those of models are left out."""
    day, cost = cells.day(*days), cells.amount(*_GOOGLE_COST)
    service = cells.text("service_description").lower()
    is_foreign = service and not any(word in service for word in _SERVICES)
    if day is None or cost is None or is_foreign:
        return None
    currency = cells.text("currency")
    if currency.upper() not in ("", "USD"):
        raise _foreign(currency)
    sku = cells.text(*_SKU)
    found = _GEMINI.search(sku)
    is_tool = found is None or "hour" in sku.lower() or "storage" in sku.lower()
    return Line(
        day=day,
        model="" if is_tool or found is None else found[0],
        tool=sku if is_tool else "",
        projects=cells.all("project_id", "project_name"),
        tokens=None if is_tool else _google_tokens(sku, cells),
        cost=cost,
    )


def _google_tokens(sku: str, cells: Cells) -> tuple[int, ...] | None:
    words = sku.lower()
    if "token count" not in words:
        return None
    count = cells.count("usage_amount", "usage_quantity")
    cached = "cached" in words or "caching" in words
    return (
        count if "input" in words.partition("token count")[0] and not cached else 0,
        count if cached else 0,
        0,
        count if "output token count" in words else 0,
    )


def _google_report(cells: Cells) -> Line | None:
    return _google(cells, "usage_start_date", "date")


def _google_bigquery(cells: Cells) -> Line | None:
    return _google(cells, "usage_start_time")


FORMS = (
    Form(
        "openai",
        "usage",
        (_OPENAI_DAY, ("model",), ("input_tokens",)),
        _openai_usage,
    ),
    Form("openai", "cost", (_OPENAI_DAY, ("amount_value",)), _openai_cost),
    Form(
        "openai",
        "old usage",
        (
            ("aggregation_timestamp", "timestamp"),
            ("snapshot_id",),
            ("n_context_tokens_total",),
            ("n_generated_tokens_total",),
        ),
        _openai_old_usage,
    ),
    Form(
        "anthropic",
        "usage",
        (_ANTHROPIC_DAY, ("model_version", "model"), _ANTHROPIC_INPUT, _ANTHROPIC_OUTPUT),
        _anthropic_usage,
    ),
    Form("anthropic", "cost", (_ANTHROPIC_DAY, ("model",), ("cost_usd",)), _anthropic_cost),
    Form("gemini", "BigQuery", (("usage_start_time",), _SKU, ("cost",)), _google_bigquery),
    Form(
        "gemini",
        "report",
        (("usage_start_date", "date"), _SKU, _GOOGLE_COST),
        _google_report,
        zone="Pacific time",
    ),
)
