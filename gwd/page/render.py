"""Templates: compiled once, with what they may call; and the static files, named by their content."""

import gzip
from collections.abc import Iterable, Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from gwd.page import charts, formats

_HERE: Final = Path(__file__).parent
_KINDS: Final = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_FILTERS: Final = (
    *(formats.usd, formats.usd_short, formats.usd_fine, formats.nine, formats.exact, formats.price),
    *(formats.count, formats.short_count, formats.duration, formats.long_time, formats.short_time),
    *(formats.clock, formats.plain_time, formats.day_text, formats.weekday_text, formats.long_day),
    *(formats.full_day, formats.month_name, formats.month_text, formats.whole, formats.plural),
)
_FUNCTIONS: Final = (
    *(
        charts.bars,
        charts.legend,
        charts.burn_down,
        charts.spark,
        charts.meter,
        charts.parts,
        charts.life,
    ),
    *(formats.percent, formats.used, formats.span, formats.last),
)


class StaticFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that the page is made of, plain and compressed."""

    name: str
    content_type: str
    body: bytes
    packed: bytes


@cache
def static_files() -> dict[str, StaticFile]:
    """By their plain names: style, script, icon."""
    return {path.name: _static(path) for path in sorted((_HERE / "static").iterdir())}


def html(template: str, values: Mapping[str, Any]) -> str:
    """A page."""
    return _environment().get_template(template).render(values)


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=formats.shown,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters |= {each.__name__: each for each in _FILTERS}
    made.filters |= {
        "zip_self": _zip_self,
        "merged": _merged,
        "map_pairs": _map_pairs,
        "less": _less,
    }
    made.globals |= {each.__name__: each for each in _FUNCTIONS}
    made.globals["files"] = {plain: file.name for plain, file in static_files().items()}
    return made


def _zip_self(words: Iterable[str]) -> list[tuple[str, str]]:
    """Words as the options of a choice."""
    return [(word, word) for word in words]


def _merged(known: Mapping[str, str], more: Mapping[str, str]) -> dict[str, str]:
    """The parameters of an address with others."""
    return {**known, **more}


def _map_pairs(parts: Iterable[tuple[str, str, Any]]) -> list[tuple[str, Any]]:
    """Colour and amount of parts that have a word, too."""
    return [(colour, amount) for colour, _, amount in parts]


def _less(amount: formats.Amount) -> formats.Amount:
    """What is taken off."""
    return -amount


def _static(path: Path) -> StaticFile:
    body = path.read_bytes()
    stem, _, kind = path.name.rpartition(".")
    return StaticFile(
        name=f"{stem}.{sha256(body).hexdigest()[:12]}.{kind}",
        content_type=_KINDS[kind],
        body=body,
        packed=gzip.compress(body, mtime=0),
    )
