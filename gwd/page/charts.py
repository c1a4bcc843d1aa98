"""Drawings: numbers to shapes as inline SVG; every word of a drawing is HTML, so that nothing shrinks or blurs.

Lengths are attributes of shapes, never styles. What comes from others goes through `escape`.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Final

import msgspec
from markupsafe import Markup, escape

from gwd.page.formats import Amount, clean, day_text, usd, weekday_text

SERIES: Final = 5
HEIGHT: Final = 1000
BAR: Final = 10
_GAP: Final = 7
_WIDTH: Final = Decimal("7.2")
_LEAST_APART: Final = Decimal(15)
_LEAST_SPAN: Final = timedelta(days=1)
_MOST_AHEAD: Final = Decimal(60)

Text = Callable[[Amount], str]


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """One colour of a stacked chart: what it is called, its amounts by day, and their sum."""

    name: str
    colour: str
    amounts: tuple[Amount, ...]
    total: Amount


class Stacked(msgspec.Struct, frozen=True, kw_only=True):
    """Amounts by day, parted into at most five series and the rest."""

    days: tuple[date, ...]
    series: tuple[Series, ...]
    totals: tuple[Amount, ...]
    total: Amount

    @property
    def is_empty(self) -> bool:
        return not any(self.totals)


def stacked(
    days: Sequence[date], amounts: Mapping[str, Mapping[date, Amount]], *, rest: str
) -> Stacked:
    """The largest names by what they come to in these days, then the rest as one: `rest` is their noun."""
    sums = {name: sum(by_day.values()) for name, by_day in amounts.items()}
    order = sorted(sums, key=lambda name: (-sums[name], name))
    kept = order if len(order) == SERIES + 1 else order[:SERIES]
    others = order[len(kept) :]
    series = [
        Series(
            name=name,
            colour=f"c{place + 1}" if place < SERIES else "c0",
            amounts=tuple(amounts[name].get(day, 0) for day in days),
            total=sums[name],
        )
        for place, name in enumerate(kept)
    ]
    if others:
        series.append(
            Series(
                name=f"{len(others)} other {rest}",
                colour="c0",
                amounts=tuple(sum(amounts[name].get(day, 0) for name in others) for day in days),
                total=sum(sums[name] for name in others),
            )
        )
    totals = tuple(
        sum((each.amounts[place] for each in series), start=Decimal(0))
        for place in range(len(days))
    )
    return Stacked(days=tuple(days), series=tuple(series), totals=totals, total=sum(totals))


def topped(
    days: Sequence[date],
    amounts: Mapping[str, Mapping[date, Amount]],
    totals: Mapping[date, Amount],
    *,
    rest: str,
) -> Stacked:
    """Names in the order given, and as `rest` what they leave of each day's total.

    They may overlap, as tags do, and leave nothing.
    """
    series = [
        Series(
            name=name,
            colour=f"c{place + 1}" if place < SERIES else "c0",
            amounts=tuple(by_day.get(day, 0) for day in days),
            total=sum(by_day.values()),
        )
        for place, (name, by_day) in enumerate(amounts.items())
    ]
    left = tuple(
        max(0, totals.get(day, 0) - sum(each.amounts[place] for each in series))
        for place, day in enumerate(days)
    )
    if any(left):
        series.append(Series(name=rest, colour="c0", amounts=left, total=sum(left)))
    by_place = tuple(totals.get(day, 0) for day in days)
    return Stacked(days=tuple(days), series=tuple(series), totals=by_place, total=sum(by_place))


def bars(chart: Stacked, *, what: str, text: Text = usd) -> Markup:
    """Stacked bars by day. `what` begins the sentence that says what is drawn."""
    top = round_top(max(chart.totals, default=0))
    width = BAR * max(1, len(chart.days))
    grid = _grid(width, 4)
    groups = [_bar(place, day, chart, top, text) for place, day in enumerate(chart.days)]
    highest = max(range(len(chart.days)), key=lambda place: chart.totals[place], default=None)
    said = what
    if chart.days:
        said += (
            f", {day_text(chart.days[0])} to {day_text(chart.days[-1])}, total {text(chart.total)}"
        )
        if highest is not None and chart.totals[highest]:
            said += (
                f", highest {text(chart.totals[highest])} on {weekday_text(chart.days[highest])}"
            )
    plot = Markup(
        '<svg class="plot" viewBox="0 0 {} {}" preserveAspectRatio="none" role="img" aria-label="{}">{}{}</svg>'
    ).format(width, HEIGHT, clean(said), grid, Markup("").join(groups))
    word = axis_usd if text is usd else text
    ticks = [word(top * part / 4) for part in range(4, -1, -1)]
    marks = _day_marks(chart.days)
    return _framed(ticks, plot, marks)


def legend(chart: Stacked) -> Markup:
    """What each colour is."""
    items = Markup("").join(
        Markup('<li><span class="sw {}"></span>{}</li>').format(each.colour, clean(each.name)[:200])
        for each in chart.series
    )
    return Markup('<ul class="legend">{}</ul>').format(items)


def burn_down(
    points: Sequence[tuple[datetime, Amount]],
    *,
    now: datetime,
    a_day: Amount,
    what: str,
) -> Markup:
    """What was available over time, steps at purchases, and the forecast at `a_day` from now on."""
    first, left = points[0][0], max(Decimal(0), Decimal(points[-1][1]))
    lasts = min(_MOST_AHEAD, left / Decimal(a_day)) if a_day > 0 else _MOST_AHEAD
    ends = max(now + timedelta(seconds=int(lasts * 86_400)), now + _LEAST_SPAN)
    top = round_top(max(amount for _, amount in points), parts=2)
    length = ends - first

    def x(at: datetime) -> str:
        return f"{Decimal((at - first) / length * 1000):.1f}"

    def y(amount: Amount) -> str:
        return f"{HEIGHT - max(Decimal(0), Decimal(amount)) / Decimal(top) * HEIGHT:.1f}"

    line = "L".join(f"{x(at)} {y(amount)}" for at, amount in points)
    here = f"{x(now)} {y(left)}"
    after = max(Decimal(0), left - Decimal(a_day) * Decimal((ends - now) / timedelta(days=1)))
    plot = Markup(
        '<svg class="plot low" viewBox="0 0 1000 {}" preserveAspectRatio="none" role="img" aria-label="{}">{}'
        '<path class="at" d="M{} 0V1000"/><path class="area" d="M{}L{} 1000L0 1000Z"/><path class="line" d="M{}"/>'
        '<path class="line dash" d="M{}L{} {}"/><path class="line dot" d="M{}h0"/></svg>'
    ).format(
        HEIGHT,
        clean(what),
        _grid(1000, 2),
        x(now),
        line,
        x(now),
        line,
        here,
        x(ends),
        y(after),
        here,
    )
    place = Decimal((now - first) / length * 100)
    marks = [(Decimal(0), day_text(first.date()))] if place >= _LEAST_APART else []
    marks.append((place, "now"))
    if 100 - place >= _LEAST_APART:
        marks.append((Decimal(100), day_text(ends.date())))
    return _framed([axis_usd(top * part / 2) for part in (2, 1, 0)], plot, marks)


def spark(amounts: Sequence[Amount], *, what: str) -> Markup:
    """One small line."""
    top = max(amounts, default=0) or 1
    steps = max(1, len(amounts) - 1)
    points = "L".join(
        f"{88 * place // steps} {20 - Decimal(amount) / Decimal(top) * 18:.1f}"
        for place, amount in enumerate(amounts)
    )
    return Markup(
        '<svg class="spark" viewBox="0 0 88 22" role="img" aria-label="{}"><path class="line" d="M{}"/></svg>'
    ).format(clean(what), points or "0 20")


def meter(used: Amount, limit: Amount, *, what: str, expected: Amount | None = None) -> Markup:
    """How much of a limit is used and how much will be; the limit is a tick where the scale goes beyond it."""
    end = max(Decimal(limit), Decimal(used), Decimal(expected or 0)) or Decimal(1)
    is_over = limit > 0 and expected is not None and expected > limit
    state = "bad" if used >= limit else "warn" if used * 5 >= limit * 4 or is_over else "ok"
    parts = [Markup('<rect class="track" width="100%" height="8" rx="4"/>')]
    if expected is not None and expected > used:
        parts.append(_length("proj", Decimal(expected) / end))
    parts.append(_length("used", Decimal(used) / end))
    if Decimal(limit) < end:
        place = f"{Decimal(limit) / end * 100:.1f}%"
        parts.append(
            Markup('<line class="tick" x1="{}" x2="{}" y1="0" y2="8"/>').format(place, place)
        )
    return Markup('<svg class="meter {}" role="img" aria-label="{}">{}</svg>').format(
        state, clean(what), Markup("").join(parts)
    )


def parts(amounts: Sequence[tuple[str, Amount]], *, what: str) -> Markup:
    """Shares of one bar, each with its colour."""
    total = sum((Decimal(amount) for _, amount in amounts), start=Decimal(0)) or Decimal(1)
    at, shapes = Decimal(0), []
    for colour, amount in amounts:
        length = Decimal(amount) / total * 100
        shapes.append(
            Markup('<rect class="{}" x="{}%" width="{}%" height="8"/>').format(
                colour, f"{at:.2f}", f"{length:.2f}"
            )
        )
        at += length
    return Markup('<svg class="meter" role="img" aria-label="{}">{}</svg>').format(
        clean(what), Markup("").join(shapes)
    )


def life(
    begins: date,
    ends: date,
    today: date,
    *,
    since: date | None,
    deprecated: date | None,
    retired: date | None,
    what: str,
) -> Markup:
    """The life of a model between two days: active, deprecated, and a bare line where it is retired."""
    length = (ends - begins).days

    def x(day: date) -> Decimal:
        return Decimal(min(max((day - begins).days, 0), length)) / length * 100

    beyond = ends if retired is None else retired
    active = x(since or begins), x(min(deprecated or beyond, beyond))
    shapes = [
        Markup('<line class="grid" x1="0" x2="100%" y1="7" y2="7"/>'),
        _stretch("on", *active),
    ]
    if deprecated is not None and deprecated < beyond:
        shapes.append(_stretch("dep", x(deprecated), x(beyond)))
    place = f"{x(today):.1f}%"
    shapes.append(
        Markup('<line class="tick" x1="{}" x2="{}" y1="0" y2="14"/>').format(place, place)
    )
    return Markup('<svg class="life" role="img" aria-label="{}">{}</svg>').format(
        clean(what), Markup("").join(shapes)
    )


def round_top(highest: Amount, *, parts: int = 4) -> Decimal:
    """The round number at or above the highest amount that is divided evenly by the lines of the grid."""
    if highest <= 0:
        return Decimal(1 if parts == 2 else 4)
    unit = Decimal(1).scaleb(Decimal(highest).adjusted() - 1)
    for step in (
        (10, 12, 16, 20, 40, 60, 80, 100) if parts == 4 else (10, 20, 30, 40, 50, 60, 80, 100)
    ):
        if unit * step >= highest:
            return unit * step
    return unit * 100


def _bar(place: int, day: date, chart: Stacked, top: Decimal, text: Text) -> Markup:
    lines = [f"{weekday_text(day)}: {text(chart.totals[place])}"]
    lines += [
        f"{clean(each.name)[:200]} {text(each.amounts[place])}"
        for each in reversed(chart.series)
        if each.amounts[place]
    ]
    shapes, at = [], Decimal(HEIGHT)
    for each in chart.series:
        length = Decimal(each.amounts[place]) / top * HEIGHT
        if length > 0:
            height = max(Decimal(1), length - _GAP if length > 2 * _GAP else length)
            shapes.append(
                Markup('<path class="{}" d="M{} {}h{}v{}h-{}z"/>').format(
                    each.colour,
                    f"{place * BAR + Decimal('1.4')}",
                    f"{at - height:.0f}",
                    _WIDTH,
                    f"{height:.0f}",
                    _WIDTH,
                )
            )
        at -= length
    return Markup(
        '<g><title>{}</title><path d="M{} 0h10v1000h-10z" fill="transparent"/>{}</g>'
    ).format("\n".join(lines), place * BAR, Markup("").join(shapes))


def _grid(width: int, parts: int) -> Markup:
    return Markup("").join(
        Markup('<path class="grid" d="M0 {}H{}"/>').format(HEIGHT * part // parts, width)
        for part in range(parts + 1)
    )


def _framed(ticks: Sequence[str], plot: Markup, marks: Sequence[tuple[Decimal, str]]) -> Markup:
    words = Markup("").join(Markup("<span>{}</span>").format(tick) for tick in ticks)
    texts = Markup("").join(
        Markup('<text x="{}%" y="12" text-anchor="{}">{}</text>').format(
            f"{place:.1f}",
            "start" if place < 5 else "end" if place > 95 else "middle",
            escape(word),
        )
        for place, word in marks
    )
    return Markup(
        '<div class="chart"><div class="y" aria-hidden="true">{}</div>{}'
        '<svg class="x" aria-hidden="true">{}</svg></div>'
    ).format(words, plot, texts)


def _day_marks(days: Sequence[date]) -> list[tuple[Decimal, str]]:
    """The first day, the last, and those between that leave room for their words."""
    if not days:
        return []
    marks = [(Decimal(0), day_text(days[0]))]
    step = 7 if len(days) <= 62 else 30
    for place in range(step, len(days), step):
        at = (Decimal(place) + Decimal("0.5")) / len(days) * 100
        if at - marks[-1][0] >= _LEAST_APART and 100 - at >= _LEAST_APART:
            marks.append((at, day_text(days[place])))
    if len(days) > 1:
        marks.append((Decimal(100), day_text(days[-1])))
    return marks


def _length(name: str, share: Decimal) -> Markup:
    length = max(Decimal(0), min(share, Decimal(1))) * 100
    return Markup('<rect class="{}" width="{}%" height="8" rx="4"/>').format(name, f"{length:.1f}")


def _stretch(name: str, begins: Decimal, ends: Decimal) -> Markup:
    return Markup('<rect class="{}" x="{}%" width="{}%" y="3" height="8" rx="2"/>').format(
        name, f"{begins:.1f}", f"{max(Decimal(0), ends - begins):.1f}"
    )


def axis_usd(amount: Amount) -> str:
    value = Decimal(amount)
    return f"${value:,.0f}" if value == value.to_integral_value() else f"${value.normalize():f}"
