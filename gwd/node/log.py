"""The log on standard error: one line an event, as text or as JSON whose fields are a list of their own.

What is not on the list is in no line of JSON, whatever a call of the log hands over. Nobody hands over what was asked,
what was answered, headers or bodies. An error's words are in it where the gateway, the system or SQLite wrote them.
"""

import logging
import sys
import traceback
from pathlib import PurePath
from typing import Annotated, Any, Final, Literal

import apsw
import msgspec
from msgspec import Meta

from gwd.core.clock import US_PER_S, iso
from gwd.core.errors import GatewayError
from gwd.core.secret_patterns import hide_credentials

IDS: Final = ("generation_id", "request_id")
"""In text they stand behind the message."""

MAX_TEXT: Final = 2_048
MAX_FRAMES: Final = 20
_ITS_OWN: Final = ("time", "level", "logger", "event", "message", "error")
_KNOWN_WORDS: Final = (GatewayError, OSError, apsw.Error, AssertionError)

Level = Literal["debug", "info", "warning", "error", "critical"]


class LogError(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The error that an event is about."""

    type: Annotated[str, Meta(description="Its class.")]
    text: Annotated[
        str | None,
        Meta(description="What it says; only of errors of the gateway, the system or SQLite."),
    ] = None
    trace: Annotated[
        list[str], Meta(description="Where it came from, `FILE:LINE FUNCTION`, the innermost last.")
    ] = msgspec.field(default_factory=list)


class LogLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of the log. What is not known of an event is left out."""

    time: Annotated[str, Meta(description="When, ISO 8601 in UTC with milliseconds.")]
    level: Annotated[Level, Meta(description="How bad it is.")]
    logger: Annotated[str, Meta(description="Which part says so; `gwd.requests`: a request ended.")]
    event: Annotated[
        str, Meta(description="The sentence without its values: the same for all events of a kind.")
    ]
    message: Annotated[str, Meta(description="The sentence, cut to 2,048 characters.")]
    error: Annotated[LogError | None, Meta(description="The error, where there is one.")] = None
    request_id: Annotated[str | None, Meta(description="As in `x-request-id`.")] = None
    generation_id: Annotated[str | None, Meta(description="As in `x-gw-generation-id`.")] = None
    organization_id: Annotated[str | None, Meta(description="Whose request it was.")] = None
    workspace_id: Annotated[str | None, Meta(description="The workspace of its key.")] = None
    key_id: Annotated[str | None, Meta(description="The id of its key, never the key.")] = None
    dialect: Annotated[str | None, Meta(description="The API shape that its client speaks.")] = None
    model: Annotated[str | None, Meta(description="The model that served, or was tried.")] = None
    provider: Annotated[str | None, Meta(description="The provider that served.")] = None
    status: Annotated[
        str | None, Meta(description="succeeded, incomplete, failed, cancelled or refused.")
    ] = None
    error_code: Annotated[str | None, Meta(description="The code that its client was told.")] = None
    finish_reason: Annotated[str | None, Meta(description="Why the answer ended.")] = None
    streamed: Annotated[bool | None, Meta(description="Whether it was streamed.")] = None
    attempts: Annotated[int | None, Meta(description="How many calls to vendors it took.")] = None
    tokens_prompt: Annotated[int | None, Meta(description="Tokens in, cached ones too.")] = None
    tokens_completion: Annotated[
        int | None, Meta(description="Tokens out, those of reasoning too.")
    ] = None
    cost_nano: Annotated[
        int | None, Meta(description="What it was charged, in billionths of a dollar.")
    ] = None
    ttft_ms: Annotated[int | None, Meta(description="Until its first output, milliseconds.")] = None
    latency_ms: Annotated[int | None, Meta(description="Until its end, milliseconds.")] = None


EXTRAS: Final = tuple(name for name in LogLine.__struct_fields__ if name not in _ITS_OWN)
"""What a call of the log may hand over as `extra`."""


def configure(level: str, form: Literal["text", "json"] = "text") -> None:
    """One line an event on stderr. `level` is gwd's own: a library that tells more could tell a secret."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLine() if form == "json" else _TextLine())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("gwd").setLevel(level.upper())


class _TextLine(logging.Formatter):
    """Behind the message stand the ids of the request it is about, as they are in the client's headers."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the library's name
        line = super().formatMessage(record)
        ids = [f"{name}={record.__dict__[name]}" for name in IDS if name in record.__dict__]
        return " ".join([line, *ids])


class JsonLine(logging.Formatter):
    """A `LogLine` in ASCII, whatever stands in a message."""

    def format(self, record: logging.LogRecord) -> str:
        known = {name: record.__dict__[name] for name in EXTRAS if name in record.__dict__}
        error = record.exc_info[1] if record.exc_info else None
        line = LogLine(
            time=iso(int(record.created * 1_000) * (US_PER_S // 1_000)),
            level=_level(record.levelno),
            logger=record.name,
            event=_cut(str(record.msg)),
            message=_cut(record.getMessage()),
            error=None if error is None else _error(error),
            **known,
        )
        return _ascii(msgspec.json.encode(line, enc_hook=str).decode())


def _level(number: int) -> Level:
    names: tuple[Level, ...] = ("debug", "info", "warning", "error", "critical")
    return names[min(max(number // 10 - 1, 0), 4)]


def _error(error: BaseException) -> LogError:
    frames = traceback.extract_tb(error.__traceback__)[-MAX_FRAMES:]
    return LogError(
        type=type(error).__name__,
        text=_cut(str(error)) if isinstance(error, _KNOWN_WORDS) else None,
        trace=[f"{_place(frame.filename)}:{frame.lineno} {frame.name}" for frame in frames],
    )


def _place(file: str) -> str:
    """The file from its package on."""
    parts = PurePath(file).parts
    starts = [at for at, part in enumerate(parts) if part in ("gwd", "site-packages")]
    return "/".join(parts[starts[-1] :]) if starts else parts[-1]


def _cut(text: str) -> str:
    return hide_credentials(text[:MAX_TEXT])


def _ascii(line: str) -> str:
    """JSON whose other characters are escapes: no terminal obeys them, no reader breaks a line at one."""
    if line.isascii():
        return line
    return "".join(one if one.isascii() else _escaped(one) for one in line)


def _escaped(character: str) -> str:
    units: Any = character.encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
