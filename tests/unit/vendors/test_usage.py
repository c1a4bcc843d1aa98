"""What every format's usage reports mean: one table of reports and the classes that they become."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gwd.core.usage import MAX_COUNT, Side, Usage
from gwd.vendors.usage import Reports, usage_of
from gwd.vendors.usage_formats import ANTHROPIC, EMBEDDINGS, GEMINI, OPENAI, Format

Report = dict[str, Any]


def chat(prompt: object, completion: object, total: object = None, **details: object) -> Report:
    """A chat report; `cached` and `written` are details of the prompt, `reasoning` of the completion."""
    of_prompt = {"cached_tokens": details.pop("cached", None)}
    of_prompt["cache_write_tokens"] = details.pop("written", None)
    of_answer = {"reasoning_tokens": details.pop("reasoning", None)}
    report = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": total,
        "prompt_tokens_details": of_prompt,
        "completion_tokens_details": of_answer,
        **details,
    }
    return {name: value for name, value in report.items() if value is not None}


def messages(input_: object = None, output: object = None, **more: object) -> Report:
    names = {"read": "cache_read_input_tokens", "written": "cache_creation_input_tokens"}
    report = {"input_tokens": input_, "output_tokens": output}
    report |= {names.get(name, name): value for name, value in more.items()}
    return {name: value for name, value in report.items() if value is not None}


def split(short: object = None, long: object = None) -> Report:
    return {"ephemeral_5m_input_tokens": short, "ephemeral_1h_input_tokens": long}


def gemini(prompt: object = None, candidates: object = None, **more: object) -> Report:
    names = {
        "cached": "cachedContentTokenCount",
        "thoughts": "thoughtsTokenCount",
        "tools": "toolUsePromptTokenCount",
        "total": "totalTokenCount",
    }
    report = {"promptTokenCount": prompt, "candidatesTokenCount": candidates}
    report |= {names[name]: value for name, value in more.items()}
    return {name: value for name, value in report.items() if value is not None}


NO_INPUT: tuple[Side, ...] = ("input",)
NO_OUTPUT: tuple[Side, ...] = ("output",)
NEITHER: tuple[Side, ...] = ("input", "output")

# What it shows, the format, the reports of one answer in their order, what is known at the end.
TABLE: list[tuple[str, Format, list[Any], Usage | None]] = [
    # Chat completions.
    ("inside by custom", OPENAI, [chat(2_000, 100, cached=1_500, reasoning=40)],
     Usage(input=500, cache_read=1_500, output=60, reasoning=40)),
    ("inside, the total agrees", OPENAI, [chat(2_000, 100, 2_100, cached=1_500, written=100)],
     Usage(input=400, cache_read=1_500, cache_write_5m=100, output=100)),
    ("reasoning beside, by the total", OPENAI, [chat(36, 10, 736, reasoning=690)],
     Usage(input=36, output=10, reasoning=690, reasoning_beside=True)),
    ("reasoning beside by the total, though it would fit inside", OPENAI,
     [chat(36, 1_000, 1_726, reasoning=690)],
     Usage(input=36, output=1_000, reasoning=690, reasoning_beside=True)),
    ("reasoning beside, by its size", OPENAI, [chat(36, 10, reasoning=690)],
     Usage(input=36, output=10, reasoning=690, clamped=True)),
    ("reasoning cut, the total says inside", OPENAI, [chat(100, 10, 110, reasoning=50)],
     Usage(input=100, reasoning=10, clamped=True)),
    ("cached beside, by the total", OPENAI, [chat(100, 10, 1_610, cached=1_500)],
     Usage(input=100, cache_read=1_500, output=10)),
    ("cached beside by the total, though it would fit inside", OPENAI,
     [chat(2_000, 10, 3_510, cached=1_500)], Usage(input=2_000, cache_read=1_500, output=10)),
    ("both cache classes beside, by the total", OPENAI,
     [chat(100, 10, 2_310, cached=1_500, written=700)],
     Usage(input=100, cache_read=1_500, cache_write_5m=700, output=10)),
    ("only writes beside, by the total", OPENAI, [chat(2_000, 10, 2_710, cached=1_500, written=700)],
     Usage(input=500, cache_read=1_500, cache_write_5m=700, output=10)),
    ("everything beside, by the total", OPENAI,
     [chat(100, 10, 2_360, cached=1_500, written=700, reasoning=50)],
     Usage(input=100, cache_read=1_500, cache_write_5m=700, output=10, reasoning=50, reasoning_beside=True)),
    ("of two readings that fit the total, the one whose details fit", OPENAI,
     [chat(100, 10, 160, cached=50, reasoning=50)],
     Usage(input=50, cache_read=50, output=10, reasoning=50, reasoning_beside=True)),
    ("cached beside, by its size", OPENAI, [chat(100, 10, cached=150)],
     Usage(input=100, cache_read=150, output=10, clamped=True)),
    ("cached cut, the total says inside", OPENAI, [chat(100, 10, 110, cached=150)],
     Usage(cache_read=100, output=10, clamped=True)),
    ("a total that fits nothing tells nothing", OPENAI, [chat(100, 10, 9_999, cached=50)],
     Usage(input=50, cache_read=50, output=10)),
    ("a total that is no count tells nothing", OPENAI, [chat(100, 10, "110", cached=50)],
     Usage(input=50, cache_read=50, output=10)),
    ("hit and miss", OPENAI,
     [chat(100, 10, 110, prompt_cache_hit_tokens=64, prompt_cache_miss_tokens=36)],
     Usage(input=36, cache_read=64, output=10)),
    ("hit and miss alone", OPENAI,
     [chat(None, 10, prompt_cache_hit_tokens=64, prompt_cache_miss_tokens=36)],
     Usage(input=36, cache_read=64, output=10)),
    ("a miss that is no count", OPENAI, [chat(None, 10, prompt_cache_miss_tokens="36")],
     Usage(output=10, unknown=NO_INPUT, refused=True)),
    ("cached at the top", OPENAI, [chat(100, 10, cached_tokens=64)],
     Usage(input=36, cache_read=64, output=10)),
    ("a relay with the other vendor's names", OPENAI,
     [chat(100, 10, 870, cache_read_input_tokens=700, cache_creation_input_tokens=60,
           cache_creation=split(20, 40))],
     Usage(input=100, cache_read=700, cache_write_5m=20, cache_write_1h=40, output=10)),
    ("counts with a point", OPENAI, [chat(512.0, 20.0, 532.0, cached=12.0)],
     Usage(input=500, cache_read=12, output=20)),
    ("explicit zeros", OPENAI, [chat(0, 0, 0)], Usage()),
    ("null and missing", OPENAI, [None, {}, {"prompt_tokens": None}], None),
    ("no object", OPENAI, ["none", 7, [1], True], None),
    ("only one side", OPENAI, [chat(10, None)], Usage(input=10, unknown=NO_OUTPUT)),
    ("the last report, though smaller", OPENAI,
     [chat(5_000, 1, 5_001), chat(5_000, 40, 5_040), chat(3_000, 30, 3_030, cached=1_000)],
     Usage(input=2_000, cache_read=1_000, output=30)),
    ("the same report again", OPENAI, [chat(10, 5, 15, cached=4)] * 3,
     Usage(input=6, cache_read=4, output=5)),
    ("repeated without its details", OPENAI, [chat(10, 5, 15, cached=4, reasoning=2), chat(10, 5, 15)],
     Usage(input=6, cache_read=4, output=3, reasoning=2)),
    ("repeated without its details, which stood beside", OPENAI,
     [chat(100, 10, 1_610, cached=1_500), chat(100, 12, 112)],
     Usage(input=100, cache_read=1_500, output=12)),
    ("another count without details", OPENAI, [chat(10, 5, 15, cached=4), chat(9, 6, 15)],
     Usage(input=9, output=6)),
    ("a prompt of zeros at the end", OPENAI, [chat(10, 1, 11, cached=4), chat(0, 6, 6)],
     Usage(input=6, cache_read=4, output=6)),
    ("zeros at the end and reasoning beside", OPENAI,
     [chat(10, 1, 11), chat(0, 6, 26, reasoning=20)],
     Usage(input=10, output=6, reasoning=20, reasoning_beside=True)),
    ("zeros at the start", OPENAI, [chat(0, 0, 0), chat(10, 6, 16)], Usage(input=10, output=6)),
    ("sides in turn", OPENAI, [chat(10, None), chat(None, 4), chat(None, 6)],
     Usage(input=10, output=6)),
    ("nonsense on one side", OPENAI, [chat("10", 5)],
     Usage(output=5, unknown=NO_INPUT, refused=True)),
    ("nonsense in a detail", OPENAI, [chat(10, 5, reasoning=True)],
     Usage(input=10, unknown=NO_OUTPUT, refused=True)),
    ("nonsense on both", OPENAI, [chat(-10, float("nan"))], Usage(unknown=NEITHER, refused=True)),
    ("nonsense after a good report", OPENAI, [chat(10, 5, 15), chat(-1, 6)],
     Usage(input=10, output=6)),
    ("a good report after nonsense", OPENAI, [chat(1.5, True), chat(10, 5)],
     Usage(input=10, output=5)),
    ("infinity", OPENAI, [chat(float("inf"), 5)], Usage(output=5, unknown=NO_INPUT, refused=True)),
    ("beyond any answer", OPENAI, [chat(10, 2**63)],
     Usage(input=10, unknown=NO_OUTPUT, refused=True)),
    # Responses: the same reader, other names.
    ("responses", OPENAI,
     [{"input_tokens": 2_000, "output_tokens": 100, "total_tokens": 2_100,
       "input_tokens_details": {"cached_tokens": 1_500},
       "output_tokens_details": {"reasoning_tokens": 40}}],
     Usage(input=500, cache_read=1_500, output=60, reasoning=40)),
    ("responses, reasoning beside", OPENAI,
     [{"input_tokens": 36, "output_tokens": 10, "total_tokens": 736,
       "output_tokens_details": {"reasoning_tokens": 690}}],
     Usage(input=36, output=10, reasoning=690, reasoning_beside=True)),
    # Messages.
    ("caches beside", ANTHROPIC, [messages(4, 500, read=20, written=10_000)],
     Usage(input=4, cache_read=20, cache_write_5m=10_000, output=500)),
    ("writes by time to live", ANTHROPIC,
     [messages(10, 10, written=1_000, cache_creation=split(400, 600))],
     Usage(input=10, cache_write_5m=400, cache_write_1h=600, output=10)),
    ("writes only by time to live", ANTHROPIC, [messages(10, 10, cache_creation=split(400, 600))],
     Usage(input=10, cache_write_5m=400, cache_write_1h=600, output=10)),
    ("parts above their whole", ANTHROPIC,
     [messages(10, 10, written=700, cache_creation=split(400, 600))],
     Usage(input=10, cache_write_5m=400, cache_write_1h=300, output=10, clamped=True)),
    ("thinking inside", ANTHROPIC, [messages(10, 50, output_tokens_details={"thinking_tokens": 30})],
     Usage(input=10, output=20, reasoning=30)),
    ("a closing split replaces the opening sum", ANTHROPIC,
     [("open", messages(8_834, 0)),
      messages(18, 426, read=8_831, written=0, cache_creation=split(0))],
     Usage(input=18, cache_read=8_831, output=426)),
    ("a closing sum replaces the opening split", ANTHROPIC,
     [("open", messages(3, 1, read=8_831)), messages(8_834, 426)],
     Usage(input=8_834, output=426)),
    ("the opening counts no answer", ANTHROPIC, [("open", messages(25, 7, read=5))],
     Usage(input=25, cache_read=5, unknown=NO_OUTPUT)),
    ("a detail before its count", ANTHROPIC,
     [("open", messages(None, 1, read=5)), messages(25, 15)],
     Usage(input=25, cache_read=5, output=15)),
    ("the ending speaks of the answer only", ANTHROPIC,
     [("open", messages(25, 1, read=5)), messages(None, 15), messages(None, 14)],
     Usage(input=25, cache_read=5, output=14)),
    ("the ending repeats the prompt without its caches", ANTHROPIC,
     [("open", messages(25, 1, read=5, written=9, cache_creation=split(4, 5))),
      messages(25, 15, written=9)],
     Usage(input=25, cache_read=5, cache_write_5m=4, cache_write_1h=5, output=15)),
    ("the ending closes with zeros", ANTHROPIC,
     [("open", messages(25, 1, read=5)), messages(0, 15, read=0, written=0)],
     Usage(input=25, cache_read=5, output=15)),
    ("the opening is a placeholder of zeros", ANTHROPIC,
     [("open", messages(0, 0, read=0)), messages(25, 15, read=5)],
     Usage(input=25, cache_read=5, output=15)),
    ("a total that says inside", ANTHROPIC, [messages(100, 10, read=60, total_tokens=110)],
     Usage(input=40, cache_read=60, output=10)),
    ("points", ANTHROPIC, [messages(10.0, 5.0, read=2.0)], Usage(input=10, cache_read=2, output=5)),
    ("nonsense in a cache class", ANTHROPIC, [messages(10, 5, read="2")],
     Usage(output=5, unknown=NO_INPUT, refused=True)),
    # Gemini.
    ("thoughts beside, cached inside", GEMINI, [gemini(10, 5, thoughts=20, cached=4, total=35)],
     Usage(input=6, cache_read=4, output=5, reasoning=20)),
    ("tool results beside", GEMINI, [gemini(10, 5, tools=30, thoughts=20, total=65)],
     Usage(input=40, output=5, reasoning=20)),
    ("tool results inside, by the total", GEMINI, [gemini(40, 5, tools=30, total=45)],
     Usage(input=40, output=5)),
    ("thoughts inside, by the total", GEMINI, [gemini(10, 25, thoughts=20, total=35)],
     Usage(input=10, output=5, reasoning=20)),
    ("no total", GEMINI, [gemini(10, 5, tools=30, thoughts=20)],
     Usage(input=40, output=5, reasoning=20)),
    ("zeros are left out", GEMINI, [gemini(10, total=10)], Usage(input=10)),
    ("the answer only in the total", GEMINI, [gemini(10, thoughts=20, total=37)],
     Usage(input=10, output=7, reasoning=20)),
    ("only thoughts", GEMINI, [gemini(10, thoughts=20)], Usage(input=10, reasoning=20)),
    ("nothing of the answer", GEMINI, [gemini(10)], Usage(input=10, unknown=NO_OUTPUT)),
    ("a total that grows", GEMINI, [gemini(10, total=10), gemini(10, thoughts=20, total=30),
                                    gemini(10, total=37)],
     Usage(input=10, output=7, reasoning=20)),
    ("the last of every chunk", GEMINI, [gemini(10, 1, total=11), gemini(10, 5, total=15),
                                         gemini(9, 4, total=13)],
     Usage(input=9, output=4)),
    ("nonsense in the answer is not made good by the total", GEMINI, [gemini(10, -5, total=15)],
     Usage(input=10, unknown=NO_OUTPUT, refused=True)),
    ("points", GEMINI, [gemini(10.0, 5.0, total=15.0)], Usage(input=10, output=5)),
    # Embeddings.
    ("prompt", EMBEDDINGS, [{"prompt_tokens": 12, "total_tokens": 12}], Usage(input=12)),
    ("only the total", EMBEDDINGS, [{"total_tokens": 12.0}], Usage(input=12)),
    ("in camel case", EMBEDDINGS, [{"promptTokenCount": 12}], Usage(input=12)),
    ("nonsense", EMBEDDINGS, [{"prompt_tokens": "12"}], Usage(unknown=NO_INPUT, refused=True)),
]  # fmt: skip


def known(form: Format, reports: list[Any], *, reasoning_excluded: bool = False) -> Usage | None:
    heard = Reports(form, reasoning_excluded=reasoning_excluded)
    for report in reports:
        is_opening = isinstance(report, tuple)
        heard.add(report[1] if is_opening else report, is_opening=is_opening)
    return heard.usage


def test_every_format_says_what_it_means() -> None:
    differences = []
    for name, form, reports, expected in TABLE:
        found = known(form, reports)
        if found != expected:
            differences.append(f"{name}:\n  {found}\n  {expected}")
    assert not differences, "\n".join(differences)


def test_the_endpoints_flag_overrules_the_total() -> None:
    for report in (
        chat(10, 20, 30, reasoning=15),
        chat(10, 20, reasoning=15),
        chat(10, 20, 45, reasoning=15),
    ):
        assert known(OPENAI, [report], reasoning_excluded=True) == Usage(
            input=10, output=20, reasoning=15, reasoning_beside=True
        )


@pytest.mark.parametrize("wrong", [True, False, "7", 1.5, -1, float("nan"), float("-inf"), [1], {}])
def test_what_is_no_count_takes_its_side_out(wrong: object) -> None:
    differences = [
        report
        for form, report, unknown in (
            (OPENAI, chat(wrong, 5), NO_INPUT),
            (OPENAI, chat(9, 5, cached=wrong), NO_INPUT),
            (OPENAI, chat(9, wrong), NO_OUTPUT),
            (OPENAI, chat(9, 5, reasoning=wrong), NO_OUTPUT),
            (ANTHROPIC, messages(wrong, 5), NO_INPUT),
            (ANTHROPIC, messages(9, 5, written=wrong), NO_INPUT),
            (ANTHROPIC, messages(9, 5, cache_creation=split(wrong)), NO_INPUT),
            (ANTHROPIC, messages(9, wrong), NO_OUTPUT),
            (GEMINI, gemini(wrong, 5), NO_INPUT),
            (GEMINI, gemini(9, 5, tools=wrong), NO_INPUT),
            (GEMINI, gemini(9, 5, thoughts=wrong), NO_OUTPUT),
        )
        if (found := usage_of(report, form)) is None
        or (found.unknown, found.refused) != (unknown, True)
    ]
    assert not differences


def test_fields_that_are_no_tokens_are_kept_as_they_come() -> None:
    heard = Reports(ANTHROPIC)
    heard.add(messages(1, 1, service_tier="standard"), is_opening=True)
    heard.add(
        messages(None, 5, service_tier="priority", server_tool_use={"web_search_requests": 2})
    )
    heard.add(messages(None, 5))
    assert heard.own == {"service_tier": "priority", "server_tool_use": {"web_search_requests": 2}}


counts = st.integers(0, MAX_COUNT)
maybe = st.none() | counts


@given(counts, counts, maybe, maybe, maybe, maybe)
def test_no_class_is_negative_and_a_total_that_fits_is_the_bill(
    prompt: int, completion: int, total: int | None, cached: int | None, written: int | None,
    reasoning: int | None,
) -> None:  # fmt: skip
    usage = usage_of(
        chat(prompt, completion, total, cached=cached, written=written, reasoning=reasoning), OPENAI
    )
    assert usage is not None
    assert min(usage.input, usage.cache_read, usage.cache_write, usage.output, usage.reasoning) >= 0
    assert usage.total >= prompt + completion
    details = [value or 0 for value in (cached, written, reasoning)]
    assert usage.total <= prompt + completion + sum(details)
    if total == prompt + completion:
        assert usage.total == total


@given(counts, counts, st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6))
def test_details_beside_add_up_to_the_total(
    prompt: int, completion: int, cached: int, written: int, reasoning: int
) -> None:
    total = prompt + completion + cached + written + reasoning
    if total > MAX_COUNT:
        return
    report = chat(prompt, completion, total, cached=cached, written=written, reasoning=reasoning)
    usage = usage_of(report, OPENAI)
    assert usage is not None
    assert (usage.total, usage.clamped) == (total, False)


careless = st.one_of(st.none(), st.integers(-1, 12), st.booleans(), st.just(MAX_COUNT), st.floats())
names = st.sampled_from(
    [
        "prompt_tokens",
        "completion_tokens",
        "input_tokens",
        "cached_tokens",
        "reasoning_tokens",
        "odd",
    ]
)
details = st.one_of(
    st.none(),
    st.dictionaries(
        st.sampled_from(
            ["cached_tokens", "cache_write_tokens", "cache_creation_tokens", "audio_tokens"]
        ),
        careless,
    ),
)
made = st.one_of(st.none(), st.dictionaries(st.sampled_from(["reasoning_tokens", "odd"]), careless))


@given(
    st.integers(-1, 20),
    st.integers(-1, 20),
    st.integers(-1, 3),
    st.dictionaries(names, careless, max_size=1),
    details,
    made,
)
def test_a_report_taken_at_a_glance_means_what_a_careful_reading_says(
    prompt: int,
    answer: int,
    off: int,
    more: Report,
    inside: Report | None,
    made: Report | None,
) -> None:
    reported = {
        "prompt_tokens": prompt,
        "completion_tokens": answer,
        "total_tokens": prompt + answer + (off if off > 0 else 0),
        **({} if inside is None else {"prompt_tokens_details": inside}),
        **({} if made is None else {"completion_tokens_details": made}),
        **more,
    }
    careful = msgspec.structs.replace(OPENAI, plain=None)
    assert known(OPENAI, [reported]) == known(careful, [reported])
    later = {**reported, "completion_tokens": answer + 1}
    assert known(OPENAI, [reported, later]) == known(careful, [reported, later])


def test_nearly_every_report_is_taken_at_a_glance() -> None:
    assert OPENAI.plain is not None
    usual = {"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150}
    inside = {"cached_tokens": 20, "audio_tokens": 0}
    made = {"reasoning_tokens": 10, "accepted_prediction_tokens": 0}
    for details in ({}, {"prompt_tokens_details": inside, "completion_tokens_details": made}):
        assert OPENAI.plain(usual | details) is not None
