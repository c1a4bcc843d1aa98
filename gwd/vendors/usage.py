"""What vendors' usage reports mean, for every format: raw counts in, disjoint classes out.

A report speaks of two sides, the prompt and the answer. The reports of one answer are cumulative and never added up: a
later one replaces the side that it speaks of. One that repeats a count without its details takes nothing back, and a
prompt side of zeros says nothing where a prompt was counted before: servers open, and close, with placeholders. A
number with a whole value (`512.0`) is a count; anything else in a count's place takes its side out of the report.

Whether a detail stands inside the count that it belongs to or beside it differs among servers of one format. The
report's own total tells; without a total that fits, the custom of the format holds, except that a detail larger than
its count stands beside it.
"""

from collections.abc import Mapping
from itertools import combinations
from typing import Final, NamedTuple

from gwd.core.usage import MAX_COUNT, Side, Usage, count_of
from gwd.vendors.usage_formats import Format, Json

Counts = dict[str, int]

_DETAILS: Final = ("cached", "written", "tools")
_PARTS_OF_WRITTEN: Final = ("written_5m", "written_1h")


class Reports:
    """The reports of one answer; `own` holds what they say besides tokens.

    `reasoning_excluded` is the endpoint's flag: reasoning stands beside the answer's count, whatever the total says.
    """

    __slots__ = ("_form", "_is_flagged", "_is_new", "_last", "_plain", "_reading", "_usage", "own")

    def __init__(self, form: Format, *, reasoning_excluded: bool = False) -> None:
        self.own: Json = {}
        self._form = form
        self._is_flagged = reasoning_excluded
        self._last: Json | None = None
        self._plain: Json | None = None
        self._reading: _Reading | None = None
        self._usage: Usage | None = None
        self._is_new = False

    def add(self, reported: object, *, is_opening: bool = False) -> None:
        """One usage object. In one that opens an answer the answer's own count is a placeholder."""
        if not isinstance(reported, dict) or reported == self._last:
            return
        self._last = None if is_opening else reported
        form, reading = self._form, self._reading
        for name in form.own:
            if reported.get(name) is not None:
                self.own[name] = reported[name]
        if reading is None:
            if self._plain is None and form.plain and not (is_opening or self._is_flagged):
                self._usage = form.plain(reported)
                if self._usage is not None:
                    self._plain = reported
                    return
            reading = self._reading = _Reading(form, is_flagged=self._is_flagged)
            if self._plain is not None:
                reading.add(self._plain, is_opening=False)
        reading.add(reported, is_opening=is_opening)
        self._is_new = True

    @property
    def usage(self) -> Usage | None:
        """What is known so far; None where nothing was reported of either side."""
        if self._is_new and self._reading is not None:
            self._usage, self._is_new = self._reading.known(), False
        return self._usage

    @property
    def is_whole(self) -> bool:
        """Whether both sides were counted."""
        reading = self._reading
        return self._plain is not None if reading is None else reading.is_whole


class _Reading:
    """The reports of one answer that cannot be taken at a glance."""

    def __init__(self, form: Format, *, is_flagged: bool) -> None:
        self._form = form
        self._is_flagged = is_flagged
        self._custom = form.beside | {"reasoning"} if is_flagged else form.beside
        self._usual = _Placing(self._custom)
        self._prompt = _Side()
        self._answer = _Side()
        self._is_rest = False

    def add(self, reported: Json, *, is_opening: bool) -> None:
        said = self._form.read(reported)
        of_prompt, total = self._prompt.hear(said.prompt), count_of(said.total)
        prompt = self._prompt.after(of_prompt)
        of_answer = {} if is_opening else self._answer.hear(said.answer)
        if self._form.leaves_out_zeros and of_answer is not None:
            of_answer = self._with_rest(of_answer, prompt, total)
        answer = self._answer.after(of_answer)
        # The total is of this report: a prompt of zeros is zero in it, whatever was counted before.
        placing = self._place({**prompt, **(of_prompt or {})}, answer, total)
        if of_prompt and (any(of_prompt.values()) or "count" not in self._prompt.counts):
            self._prompt.take(of_prompt, prompt, placing)
        if of_answer:
            self._answer.take(of_answer, answer, placing)

    @property
    def is_whole(self) -> bool:
        return "count" in self._prompt.counts and "count" in self._answer.counts

    def known(self) -> Usage | None:
        prompt, answer = self._prompt, self._answer
        refused = prompt.is_refused or answer.is_refused
        unknown: tuple[Side, ...] = ()
        if "count" not in prompt.counts:
            unknown = ("input",)
        if "count" not in answer.counts:
            unknown = (*unknown, "output")
        if len(unknown) == 2 and not refused:
            return None
        classes: Json = {}
        is_odd = False
        if "input" not in unknown:
            was_cut = _prompt_classes(prompt.counts, prompt.placing.beside, classes)
            is_odd = was_cut or prompt.placing.moved_input
        if "output" not in unknown:
            was_cut = _answer_classes(answer.counts, answer.placing.beside, classes)
            is_odd = is_odd or was_cut or answer.placing.moved_output
        return Usage(
            **classes,
            clamped=is_odd,
            unknown=unknown,
            refused=refused,
            reasoning_beside=self._caps_leave_reasoning_out(),
        )

    def _caps_leave_reasoning_out(self) -> bool:
        placing = self._answer.placing
        if "reasoning" in self._form.beside or not self._answer.counts.get("reasoning"):
            return False
        return self._is_flagged or ("reasoning" in placing.beside and placing.by_total)

    def _with_rest(self, of_answer: Counts, prompt: Counts, total: int | None) -> Counts:
        """The answer with its count where the report leaves that out: what the total has beside everything else."""
        if "count" in of_answer:
            self._is_rest = False
            return of_answer
        if "count" in self._answer.counts and not self._is_rest:
            return of_answer
        known = {**self._answer.counts, **of_answer}
        if total is not None and "count" in prompt:
            others = prompt["count"] + prompt.get("tools", 0) + known.get("reasoning", 0)
            known["count"] = max(0, total - others)
        elif of_answer:
            known["count"] = 0
        else:
            return of_answer
        self._is_rest = True
        return known

    def _place(self, prompt: Counts, answer: Counts, total: int | None) -> "_Placing":
        """Which details of a report stand beside their count."""
        details = {name: value for name in _DETAILS if (value := prompt.get(name))}
        if "written" not in prompt and (written := _written(prompt)):
            details["written"] = written
        if reasoning := answer.get("reasoning"):
            details["reasoning"] = reasoning
        custom = self._custom
        if not details:
            return self._usual
        if total is not None and "count" in prompt and "count" in answer:
            if not self._is_flagged and _is_usual(details, prompt, answer, total, custom):
                return self._usual
            found = _fitting(details, prompt, answer, total, custom)
            if found is not None and not (
                self._is_flagged and "reasoning" in details.keys() - found
            ):
                return _Placing(found, by_total=True)
        cached = {name for name in ("cached", "written") if name in details and name not in custom}
        moved_input = sum(details[name] for name in cached) > prompt.get("count", MAX_COUNT)
        moved_output = "reasoning" not in custom and (
            details.get("reasoning", 0) > answer.get("count", MAX_COUNT)
        )
        beside = custom | cached if moved_input else custom
        beside = beside | {"reasoning"} if moved_output else beside
        return _Placing(beside, moved_input=moved_input, moved_output=moved_output)


class _Placing(NamedTuple):
    """The details beside their count, whether a total told so, and whether one was moved there for its size."""

    beside: frozenset[str]
    by_total: bool = False
    moved_input: bool = False
    moved_output: bool = False


class _Side:
    """What is known of one side: its counts by name, and how they are placed."""

    def __init__(self) -> None:
        self.counts: Counts = {}
        self.placing = _Placing(frozenset())
        self._heard_nonsense = False

    @property
    def is_refused(self) -> bool:
        """Whether something was said of this side and nothing of it could be believed."""
        return self._heard_nonsense and "count" not in self.counts

    def hear(self, said: Mapping[str, object]) -> Counts | None:
        """The counts that a report states; None if what stands for one of them is no count."""
        heard: Counts = {}
        for name, value in said.items():
            if value is None:
                continue
            if type(value) is int and 0 <= value <= MAX_COUNT:  # nearly always
                heard[name] = value
            elif (number := count_of(value)) is not None:
                heard[name] = number
            else:
                self._heard_nonsense = True
                return None
        return heard

    def after(self, heard: Counts | None) -> Counts:
        """The counts with a report: replaced if its count is another one, else completed by it."""
        held = self.counts
        if not heard:
            return held
        if "count" in heard and heard["count"] != held.get("count", heard["count"]):
            return heard
        if "written" in heard and heard["written"] != held.get("written"):
            held = _without(held, _PARTS_OF_WRITTEN)
        elif "written" not in heard and any(name in heard for name in _PARTS_OF_WRITTEN):
            held = _without(held, ("written",))
        return {**held, **heard}

    def take(self, heard: Counts, counts: Counts, placing: _Placing) -> None:
        """Go on with `counts`; a total beside a count alone does not tell where earlier details stand."""
        if heard != {"count": self.counts.get("count")}:
            self.counts, self.placing = counts, placing


def _is_usual(
    details: Counts, prompt: Counts, answer: Counts, total: int, custom: frozenset[str]
) -> bool:
    """Whether the total is right as the format counts by custom, and every detail fits where it belongs."""
    rest = total - prompt["count"] - answer["count"]
    room_in_prompt, room_in_answer = prompt["count"], answer["count"]
    for name, value in details.items():
        if name in custom:
            rest -= value
        elif name == "reasoning":
            room_in_answer -= value
        else:
            room_in_prompt -= value
    return rest == 0 and room_in_prompt >= 0 and room_in_answer >= 0


def _fitting(
    details: Counts, prompt: Counts, answer: Counts, total: int, custom: frozenset[str]
) -> frozenset[str] | None:
    """The details that must stand beside their counts for the report's total to be right; None if none make it so.

    Of several readings, one whose other details fit inside their counts, and then the one nearest to custom.
    """
    readings = []
    for size in range(len(details) + 1):
        for names in combinations(details, size):
            if prompt["count"] + answer["count"] + sum(map(details.__getitem__, names)) == total:
                inside = _without(details, names)
                too_much = inside.pop("reasoning", 0) > answer["count"]
                too_much |= sum(inside.values()) > prompt["count"]
                changes = len(set(names) ^ (custom & details.keys()))
                readings.append((too_much, changes, frozenset(names)))
    return min(readings, key=lambda reading: reading[:2])[2] if readings else None


def _prompt_classes(counts: Counts, beside: frozenset[str], classes: Json) -> bool:
    """Put the prompt's classes among `classes`; whether a detail larger than its whole was cut."""
    count, cached, written = counts["count"], counts.get("cached", 0), _written(counts)
    room = count
    if "cached" not in beside:
        cached = min(cached, room)
        room -= cached
    if "written" not in beside:
        written = min(written, room)
        room -= written
    # Writes that the vendor did not split by time to live are short-lived ones.
    short = min(counts.get("written_5m", 0), written)
    long = min(counts.get("written_1h", 0), written - short)
    tools = counts.get("tools", 0) if "tools" in beside else 0
    classes |= {
        "input": room + tools,
        "cache_read": cached,
        "cache_write_5m": written - long,
        "cache_write_1h": long,
    }
    return (
        cached != counts.get("cached", 0)
        or written != _written(counts)
        or (short, long) != (counts.get("written_5m", 0), counts.get("written_1h", 0))
    )


def _answer_classes(counts: Counts, beside: frozenset[str], classes: Json) -> bool:
    """Put the answer's classes among `classes`; whether the reasoning was larger than its whole and cut."""
    count, reasoning = counts["count"], counts.get("reasoning", 0)
    inside = 0 if "reasoning" in beside else min(reasoning, count)
    classes |= {
        "output": count - inside,
        "reasoning": reasoning if "reasoning" in beside else inside,
    }
    return inside != reasoning and "reasoning" not in beside


def _written(counts: Counts) -> int:
    parts = counts.get("written_5m", 0) + counts.get("written_1h", 0)
    return counts.get("written", parts)


def _without(counts: Counts, names: tuple[str, ...]) -> Counts:
    return {name: value for name, value in counts.items() if name not in names}


def usage_of(reported: object, form: Format, *, reasoning_excluded: bool = False) -> Usage | None:
    """The usage of a whole answer; None where none was reported."""
    reports = Reports(form, reasoning_excluded=reasoning_excluded)
    reports.add(reported)
    return reports.usage
