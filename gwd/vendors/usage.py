"""What vendors' usage reports mean, for every format: raw counts in, disjoint classes out.

A report speaks of two sides, the prompt and the answer. The reports of one answer are cumulative and never added up: a
later one replaces the side that it speaks of. One that repeats a count without its details takes nothing back, and a
prompt side of zeros says nothing where a prompt was counted before: servers open, and close, with placeholders. A
number with a whole value (`512.0`) is a count; anything else in a count's place takes its side out of the report.

Whether a detail stands inside the count that it belongs to or beside it differs among servers of one format. The
report's own total tells; without a total that fits, the custom of the format holds, except that a detail larger than
its count stands beside it.
"""

from collections.abc import Callable, Mapping
from itertools import combinations
from typing import Any, Final, NamedTuple

import msgspec

from gwd.core.usage import MAX_COUNT, Side, Usage

Json = dict[str, Any]
Counts = dict[str, int]

_PARTS_OF_WRITTEN: Final = ("written_5m", "written_1h")


class Said(NamedTuple):
    """One report in common words; what it leaves out is None.

    Of the prompt: `count`, `cached`, `written` (with its parts `written_5m` and `written_1h`), and `tools`, what the
    vendor's own tools put in. Of the answer: `count` and `reasoning`.
    """

    prompt: Mapping[str, object]
    answer: Mapping[str, object]
    total: object = None


class Format(msgspec.Struct, frozen=True, kw_only=True):
    """How one format reports: `beside` are the details that stand outside their count by custom.

    `leaves_out_zeros`: an answer without a count is what the total leaves for it. `own` names fields of the usage
    object that are no token counts; they are kept as they come.
    """

    read: Callable[[Json], Said]
    beside: frozenset[str] = frozenset()
    leaves_out_zeros: bool = False
    own: tuple[str, ...] = ()


class Reports:
    """The reports of one answer; `own` holds what they say besides tokens.

    `reasoning_excluded` is the endpoint's flag: reasoning stands beside the answer's count, whatever the total says.
    """

    def __init__(self, form: Format, *, reasoning_excluded: bool = False) -> None:
        self.own: Json = {}
        self._form = form
        self._is_flagged = reasoning_excluded
        self._prompt = _Side()
        self._answer = _Side()
        self._is_rest = False
        self._last: object = None

    def add(self, reported: object, *, is_opening: bool = False) -> None:
        """One usage object. In one that opens an answer the answer's own count is a placeholder."""
        if not isinstance(reported, dict) or reported == self._last:
            return
        self._last = None if is_opening else reported
        for name in self._form.own:
            if reported.get(name) is not None:
                self.own[name] = reported[name]
        said = self._form.read(reported)
        of_prompt, total = self._prompt.hear(said.prompt), _count(said.total)
        prompt = self._prompt.after(of_prompt)
        of_answer = {} if is_opening else self._answer.hear(said.answer)
        if self._form.leaves_out_zeros and of_answer is not None:
            of_answer = self._with_rest(of_answer, prompt, total)
        answer = self._answer.after(of_answer)
        # The total is of this report: a prompt of zeros is zero in it, whatever was counted before.
        placing = self._place({**prompt, **(of_prompt or {})}, answer, total)
        if of_prompt and (any(of_prompt.values()) or "count" not in self._prompt.counts):
            self._prompt.take(prompt, placing)
        if of_answer:
            self._answer.take(answer, placing)

    @property
    def usage(self) -> Usage | None:
        """What is known so far; None where nothing was reported of either side."""
        prompt, answer = self._prompt, self._answer
        refused = prompt.is_refused or answer.is_refused
        unknown: tuple[Side, ...] = ()
        if "count" not in prompt.counts:
            unknown = ("input",)
        if "count" not in answer.counts:
            unknown = (*unknown, "output")
        if len(unknown) == 2 and not refused:
            return None
        classes: Counts = {}
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
        custom = self._form.beside | {"reasoning"} if self._is_flagged else self._form.beside
        details = {
            "cached": prompt.get("cached", 0),
            "written": _written(prompt),
            "tools": prompt.get("tools", 0),
            "reasoning": answer.get("reasoning", 0),
        }
        details = {name: value for name, value in details.items() if value}
        if not details:
            return _Placing(custom)
        if total is not None and "count" in prompt and "count" in answer:
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
            if value is not None:
                number = _count(value)
                if number is None:
                    self._heard_nonsense = True
                    return None
                heard[name] = number
        return heard

    def after(self, heard: Counts | None) -> Counts:
        """The counts with a report: replaced if its count is another one, else completed by it."""
        held = self.counts
        if not heard:
            return held
        if "count" in heard and heard["count"] != held.get("count"):
            return heard
        if "written" in heard and heard["written"] != held.get("written"):
            held = _without(held, _PARTS_OF_WRITTEN)
        elif "written" not in heard and any(name in heard for name in _PARTS_OF_WRITTEN):
            held = _without(held, ("written",))
        return {**held, **heard}

    def take(self, counts: Counts, placing: _Placing) -> None:
        self.counts, self.placing = counts, placing


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


def _prompt_classes(counts: Counts, beside: frozenset[str], classes: Counts) -> bool:
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


def _answer_classes(counts: Counts, beside: frozenset[str], classes: Counts) -> bool:
    """Put the answer's classes among `classes`; whether the reasoning was larger than its whole and cut."""
    count, reasoning = counts["count"], counts.get("reasoning", 0)
    inside = 0 if "reasoning" in beside else min(reasoning, count)
    classes |= {
        "output": count - inside,
        "reasoning": reasoning if "reasoning" in beside else inside,
    }
    return classes["reasoning"] != reasoning


def _written(counts: Counts) -> int:
    parts = counts.get("written_5m", 0) + counts.get("written_1h", 0)
    return counts.get("written", parts)


def _count(value: object) -> int | None:
    """A whole number from 0 to the largest that any answer can have; None for everything else."""
    if type(value) is float and value.is_integer():
        value = int(value)
    return value if type(value) is int and 0 <= value <= MAX_COUNT else None


def _without(counts: Counts, names: tuple[str, ...]) -> Counts:
    return {name: value for name, value in counts.items() if name not in names}


# How the formats write it.


def _openai(reported: Json) -> Said:
    """Chat completions and responses, with the spellings of their relatives."""
    inside = _details(reported, "prompt_tokens_details", "input_tokens_details")
    made = _details(reported, "completion_tokens_details", "output_tokens_details")
    creation = _details(reported, "cache_creation")
    hit, miss = reported.get("prompt_cache_hit_tokens"), reported.get("prompt_cache_miss_tokens")
    prompt = {
        "count": _first(reported.get("prompt_tokens"), reported.get("input_tokens")),
        "cached": _first(
            inside.get("cached_tokens"),
            hit,
            reported.get("cached_tokens"),
            reported.get("cache_read_input_tokens"),
        ),
        "written": _first(
            inside.get("cache_write_tokens"),
            inside.get("cache_creation_tokens"),
            inside.get("cached_creation_tokens"),
            inside.get("cache_creation_input_tokens"),
            reported.get("cache_creation_input_tokens"),
        ),
        "written_5m": creation.get("ephemeral_5m_input_tokens"),
        "written_1h": creation.get("ephemeral_1h_input_tokens"),
    }
    if prompt["count"] is None and miss is not None:
        parts = (_count(miss), _count(hit or 0))
        prompt["count"] = miss if None in parts else sum(part or 0 for part in parts)
    answer = {
        "count": _first(reported.get("completion_tokens"), reported.get("output_tokens")),
        "reasoning": _first(made.get("reasoning_tokens"), reported.get("reasoning_tokens")),
    }
    return Said(prompt, answer, reported.get("total_tokens"))


def _anthropic(reported: Json) -> Said:
    creation = _details(reported, "cache_creation")
    prompt = {
        "count": reported.get("input_tokens"),
        "cached": reported.get("cache_read_input_tokens"),
        "written": reported.get("cache_creation_input_tokens"),
        "written_5m": creation.get("ephemeral_5m_input_tokens"),
        "written_1h": creation.get("ephemeral_1h_input_tokens"),
    }
    answer = {
        "count": reported.get("output_tokens"),
        "reasoning": _details(reported, "output_tokens_details").get("thinking_tokens"),
    }
    return Said(prompt, answer, reported.get("total_tokens"))


def _gemini(reported: Json) -> Said:
    prompt = {
        "count": reported.get("promptTokenCount"),
        "cached": reported.get("cachedContentTokenCount"),
        "tools": reported.get("toolUsePromptTokenCount"),
    }
    answer = {
        "count": reported.get("candidatesTokenCount"),
        "reasoning": reported.get("thoughtsTokenCount"),
    }
    return Said(prompt, answer, reported.get("totalTokenCount"))


def _embeddings(reported: Json) -> Said:
    """Vectors cost their prompt only; some servers give just the total."""
    names = ("prompt_tokens", "input_tokens", "promptTokenCount", "total_tokens", "totalTokenCount")
    count = _first(*map(reported.get, names))
    return Said({"count": count}, {"count": None if count is None else 0})


def _details(reported: Json, *names: str) -> Json:
    """The first of these objects that is there."""
    for name in names:
        found = reported.get(name)
        if isinstance(found, dict):
            return found
    return {}


def _first(*values: object) -> object:
    return next((value for value in values if value is not None), None)


OPENAI: Final = Format(read=_openai)
ANTHROPIC: Final = Format(
    read=_anthropic,
    beside=frozenset({"cached", "written"}),
    own=("server_tool_use", "service_tier", "inference_geo", "speed"),
)
GEMINI: Final = Format(
    read=_gemini, beside=frozenset({"tools", "reasoning"}), leaves_out_zeros=True
)
EMBEDDINGS: Final = Format(read=_embeddings)


def usage_of(reported: object, form: Format, *, reasoning_excluded: bool = False) -> Usage | None:
    """The usage of a whole answer; None where none was reported."""
    reports = Reports(form, reasoning_excluded=reasoning_excluded)
    reports.add(reported)
    return reports.usage
