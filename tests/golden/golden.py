"""The golden runner: finds inputs, runs one arrow of translation, compares with the expected file beside the input."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from unittest import mock

import msgspec

from gwd.core import ids, sse
from gwd.core.cost import Cost, Price
from gwd.core.events import Event, Failed, Finished, Settled, check_grammar, collect
from gwd.core.request import Generate, Message, Request, TextPart, Tool
from gwd.core.target import Credential, Flags, Target
from gwd.core.usage import Usage
from gwd.dialects.base import Dialect, Reply
from gwd.vendors.base import Adapter
from gwd.vendors.formats import FORMATS

ROOT: Final = Path(__file__).parent
SCENARIOS: Final = frozenset(
    (
        "text",
        "system",
        "multi_turn",
        "image",
        "file",
        "tool_call",
        "parallel_tool_calls",
        "tool_result",
        "tool_call_no_arguments",
        "reasoning",
        "reasoning_replay",
        "json_schema",
        "cache_control",
        "cache_read",
        "length",
        "content_filter",
        "empty",
        "usage_missing",
        "cut_off",
        "error_mid_stream",
        "full",
    )
)
DIALECTS: Final = (
    *("chat_completions", "messages", "responses", "gemini", "completions", "embeddings"),
)
ADAPTERS: Final = (
    "openai_chat",
    "openai_responses",
    "anthropic_messages",
    "gemini",
    "openai_embeddings",
)
WORDS: Final = frozenset(
    (
        *("temperature", "top_p", "top_k", "min_p", "frequency_penalty", "presence_penalty"),
        *("repetition_penalty", "max_tokens", "max_completion_tokens", "logit_bias", "logprobs"),
        *("top_logprobs", "seed", "response_format", "structured_outputs", "stop", "tools"),
        *("tool_choice", "parallel_tool_calls", "include_reasoning", "reasoning"),
        *("reasoning_effort", "verbosity"),
    )
)
REPLY: Final = Reply(
    generation_id="gen-0000000000000000000001",
    created_s=1_767_225_600,
    model="test/model",
    vendor="Test",
    prompt=Usage(input=7),
)
COST: Final = Cost(prompt_nano=1_000, completion_nano=20_500, total_nano=21_500)


def inputs(folder: str, *suffixes: str) -> list[Path]:
    """The input files of a folder such as `requests/messages`: their names have one dot."""
    return sorted(
        path
        for path in (ROOT / folder).iterdir()
        if path.suffix in suffixes and "." not in path.stem
    )


def name_of(path: Path) -> str:
    """A parameter's id in pytest's output."""
    return path.name


def target(adapter: str, **changes: Any) -> Target:
    """A target of the adapter's kind that takes every parameter."""
    base = Target(
        endpoint_id="end_1",
        model="test/model",
        vendor="Test",
        provider="host",
        provider_name="Host",
        tag="host",
        format=FORMATS[adapter],
        base_url="https://api.example.com",
        auth=FORMATS[adapter].auth,
        headers={},
        upstream_model="model-up",
        context_length=200_000,
        max_completion_tokens=64_000,
        default_max_tokens=4_096,
        supported_parameters=WORDS,
        flags=Flags(),
        price=Price(
            version="v1",
            prompt_pico=2_000_000,
            completion_pico=8_000_000,
            cache_read_pico=500_000,
            cache_write_5m_pico=2_000_000,
            cache_write_1h_pico=2_000_000,
            reasoning_pico=8_000_000,
        ),
        credential=Credential(id="cred_1", secret="up-key"),
    )
    return msgspec.structs.replace(base, **changes)


def request(**changes: Any) -> Request:
    """The request that answers are decoded and rendered for: a question with one tool at hand, cost asked for."""
    base = Request(
        dialect="chat_completions",
        family="openai_chat",
        models=("test/model",),
        body=Generate(
            messages=(Message(role="user", parts=(TextPart(text="Hi"),)),),
            tools=(Tool(name="get_weather", parameters={"type": "object", "properties": {}}),),
        ),
        include_cost=True,
    )
    return msgspec.structs.replace(base, **changes)


def check_request(dialect: Dialect, path: Path, *, update: bool) -> None:
    """What a client sends parses to the Request in `<scenario>.request.json`."""
    parsed = dialect.parse(path.read_bytes(), {})
    compare(path.with_suffix(".request.json"), pretty(parsed), update=update)


def check_build(
    dialect: Dialect, adapter: Adapter, path: Path, to: Target, *, update: bool
) -> None:
    """What a client sends goes upstream as in `<scenario>.<adapter>.json`."""
    call = adapter.build(dialect.parse(path.read_bytes(), {}), to)
    shown = {
        "url": call.url,
        "body": msgspec.json.decode(call.body),
        "stream": call.stream,
        "dropped": call.dropped,
    }
    compare(path.with_suffix(f".{adapter.format.name}.json"), pretty(shown), update=update)


def check_answer(
    adapter: Adapter,
    path: Path,
    *,
    update: bool,
    asked: Request | None = None,
    to: Target | None = None,
) -> None:
    """What a vendor answers decodes to the events in `<scenario>.events.json` (`.sse.events.json` for streams)."""
    events = events_of(adapter, path, asked=asked, to=to)
    compare(expected_events(path), pretty(events), update=update)


def check_rendered(
    adapter: Adapter,
    dialect: Dialect,
    path: Path,
    *,
    update: bool,
    asked: Request | None = None,
    to: Target | None = None,
) -> None:
    """What a vendor answers reaches the client as in `<scenario>.<dialect>.json` or `.sse`."""
    asked = asked or request(dialect=dialect.name)
    events = events_of(adapter, path, asked=asked, to=to)
    compare(rendered_path(path, dialect.name), render(dialect, asked, path, events), update=update)


def check_fault(adapter: Adapter, path: Path, *, update: bool) -> None:
    """A failed answer is the Fault in `<scenario>.fault.json`."""
    head, _, body = path.read_bytes().partition(b"\n\n")
    status, *lines = head.decode().splitlines()
    headers = dict(line.lower().split(": ", 1) for line in lines)
    fault = adapter.fault(int(status.split()[1]), headers, body.rstrip(b"\n"))
    compare(path.with_suffix(".fault.json"), pretty(fault), update=update)


def expected_events(path: Path) -> Path:
    return path.with_name(f"{path.stem}{'.sse' if path.suffix == '.sse' else ''}.events.json")


def rendered_path(path: Path, dialect: str) -> Path:
    return path.with_name(f"{path.stem}.{dialect}{path.suffix}")


def events_of(
    adapter: Adapter, path: Path, *, asked: Request | None = None, to: Target | None = None
) -> list[Event]:
    """The events of an answer. A stream is fed whole, byte by byte and in sevens: the events are the same."""
    asked, to = asked or request(), to or target(adapter.format.name)
    data = path.read_bytes()
    if path.suffix == ".json":
        with fixed_ids():
            events = adapter.decode(data, asked, to)
        check_grammar(events)
        return events
    runs = [_stream(adapter, asked, to, pieces(data, size)) for size in (len(data), 1, 7)]
    assert runs[0] == runs[1] == runs[2]
    check_grammar(runs[0])
    return runs[0]


def render(dialect: Dialect, asked: Request, path: Path, events: Sequence[Event]) -> bytes:
    """The client's bytes: frames for a stream, one body for a whole answer."""
    reported = next((event.usage for event in events if isinstance(event, Finished)), None)
    estimated: dict[str, Any] = {"input": 3, "output": 5}
    if reported is None:
        reported = Usage(**estimated, estimated=True)
    elif reported.unknown:
        filled = {side: estimated[side] for side in reported.unknown}
        reported = msgspec.structs.replace(reported, **filled, unknown=(), estimated=True)
    settled = Settled(reported, COST, None)
    with fixed_ids():
        renderer = dialect.renderer(asked, REPLY)
        if path.suffix == ".sse":
            # One event at a time and all at once must give the same bytes.
            stream = [*events, settled]
            frames = b"".join(renderer.feed([event]) for event in stream)
            return sse.safe(frames)
        assert not any(isinstance(event, Failed) for event in events)
        body = renderer.whole(collect(events), settled)
    return msgspec.json.format(body, indent=2) + b"\n"


def pieces(data: bytes, size: int) -> Iterator[bytes]:
    for start in range(0, len(data), max(size, 1)):
        yield data[start : start + size]


def pretty(value: object) -> bytes:
    """JSON for people: indented, sets in a fixed order."""
    text = msgspec.json.encode(value, order="deterministic")
    return msgspec.json.format(text, indent=2) + b"\n"


def compare(path: Path, actual: bytes, *, update: bool) -> None:
    """Write the expected file, or insist that it exists and says the same."""
    if update:
        path.write_bytes(actual)
        return
    assert path.exists(), f"{path.name} is missing: run pytest tests/golden --update-golden"
    assert actual.decode() == path.read_text(), f"{path.relative_to(ROOT)} differs"


@contextmanager
def fixed_ids() -> Iterator[None]:
    """Minted ids count up from 1."""
    count = iter(range(1, 10_000))

    def next_suffix() -> str:
        return f"{next(count):0{ids.SUFFIX_LENGTH}d}"

    with mock.patch.object(ids, "_suffix", next_suffix):
        yield


def _stream(adapter: Adapter, asked: Request, to: Target, data: Iterable[bytes]) -> list[Event]:
    splitter, decoder = sse.SseSplitter(), adapter.decoder(asked, to)
    events: list[Event] = []
    with fixed_ids():
        for piece in data:
            for frame in splitter.feed(piece):
                events += decoder.feed(frame)
        for frame in splitter.close():
            events += decoder.feed(frame)
        events += decoder.close()
    return events
