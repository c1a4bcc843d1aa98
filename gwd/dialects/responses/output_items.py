"""Messages and reasoning while they grow: each item writes its own events and can show itself whole at any time."""

from typing import Any, Literal, Protocol

from gwd.core.events import PartEnded, PartStarted
from gwd.dialects.responses.event_writer import EventWriter, delta_head
from gwd.dialects.responses.sealing import OPENAI_FORMAT, UNKNOWN_FORMAT, Sealed, seal

ItemStatus = Literal["in_progress", "completed", "incomplete"]

# Agents replay summaries but drop raw reasoning; text whose signature covers it has to come back whole.
_SHOWN_AS_SUMMARY = ("anthropic-claude-v1",)


class OutputItem(Protocol):
    """One item of `output`. It takes the parts that belong to it, one at a time."""

    id: str
    part_is_open: bool

    def takes(self, part: PartStarted) -> bool: ...
    def start(self, part: PartStarted) -> None: ...
    def delta(self, text: str, extras: dict[str, Any] | None) -> None: ...
    def end(self, ended: PartEnded) -> None: ...
    def body(self, status: ItemStatus) -> dict[str, Any]: ...


class MessageOutput:
    """An assistant message: neighbouring text and refusal parts are its content."""

    def __init__(self, writer: EventWriter, item_id: str, output_index: int) -> None:
        self.id = item_id
        self.part_is_open = False
        self._writer = writer
        self._index = output_index
        self._content: list[dict[str, Any]] = []
        self._refusing = False
        self._texts: list[str] = []
        self._annotations: list[dict[str, Any]] = []
        self._logprobs: list[Any] = []
        self._at: dict[str, Any] = {}
        self._head = b""

    @property
    def text(self) -> str:
        return "".join(part["text"] for part in self._content if part["type"] == "output_text")

    @property
    def has_refusal(self) -> bool:
        return any(part["type"] == "refusal" for part in self._content)

    def takes(self, part: PartStarted) -> bool:
        return part.kind in ("text", "refusal") and part.item is None

    def start(self, part: PartStarted) -> None:
        self.part_is_open, self._refusing = True, part.kind == "refusal"
        self._texts, self._annotations, self._logprobs = [], [], []
        self._at = {
            "item_id": self.id,
            "output_index": self._index,
            "content_index": len(self._content),
        }
        self._writer.event("response.content_part.added", {**self._at, "part": self._part()})
        if self._refusing:
            self._head = delta_head("response.refusal.delta", self._at)
        else:
            self._head = delta_head("response.output_text.delta", {**self._at, "logprobs": []})

    def delta(self, text: str, extras: dict[str, Any] | None) -> None:
        if extras is not None and not self._refusing:
            self._delta_with_extras(text, extras)
            return
        self._texts.append(text)
        self._writer.delta(self._head, text)

    def end(self, ended: PartEnded) -> None:
        if ended.extras and not self._refusing:
            self._annotate(ended.extras)
        part = self._part()
        self._content.append(part)
        self.part_is_open = False
        if self._refusing:
            done = {**self._at, "refusal": part["refusal"]}
            self._writer.event("response.refusal.done", done)
        else:
            done = {**self._at, "text": part["text"], "logprobs": part["logprobs"]}
            self._writer.event("response.output_text.done", done)
        self._writer.event("response.content_part.done", {**self._at, "part": part})

    def body(self, status: ItemStatus) -> dict[str, Any]:
        content = [*self._content, self._part()] if self.part_is_open else self._content
        return {
            "id": self.id,
            "type": "message",
            "role": "assistant",
            "status": status,
            "content": content,
        }

    def _part(self) -> dict[str, Any]:
        text = "".join(self._texts)
        if self._refusing:
            return {"type": "refusal", "refusal": text}
        return {
            "type": "output_text",
            "text": text,
            "annotations": list(self._annotations),
            "logprobs": list(self._logprobs),
        }

    def _delta_with_extras(self, text: str, extras: dict[str, Any]) -> None:
        self._annotate(extras)
        logprobs = _logprobs(extras.get("logprobs"))
        self._logprobs += logprobs
        self._texts.append(text)
        if text or logprobs:
            head = delta_head("response.output_text.delta", {**self._at, "logprobs": logprobs})
            self._writer.delta(head, text)

    def _annotate(self, extras: dict[str, Any]) -> None:
        for annotation in _annotations(extras.get("annotations")):
            self._writer.event(
                "response.output_text.annotation.added",
                {
                    **self._at,
                    "annotation_index": len(self._annotations),
                    "annotation": annotation,
                },
            )
            self._annotations.append(annotation)


class OwnOutput:
    """An item of the vendor's own kind, shown as it came."""

    def __init__(self, item_id: str, item: dict[str, Any]) -> None:
        own_id = item.get("id")
        self.id = own_id if isinstance(own_id, str) and own_id else item_id
        self.part_is_open = False
        self._item = {**item, "id": self.id}

    def takes(self, part: PartStarted) -> bool:
        return False

    def start(self, part: PartStarted) -> None:
        self.part_is_open = True

    def delta(self, text: str, extras: dict[str, Any] | None) -> None:
        pass

    def end(self, ended: PartEnded) -> None:
        self.part_is_open = False

    def body(self, status: ItemStatus) -> dict[str, Any]:
        return self._item


class ReasoningOutput:
    """A reasoning item: a summary, or the raw text where the vendor shows it; its signature is sealed at the end."""

    def __init__(
        self, writer: EventWriter, item_id: str, output_index: int, part: PartStarted
    ) -> None:
        self._format = part.format or UNKNOWN_FORMAT
        # OpenAI binds its encrypted content to the id of its own item.
        own_id = part.item_id if self._format == OPENAI_FORMAT else None
        self.id = own_id or item_id
        self.part_is_open = False
        self._writer = writer
        self._redacted = part.redacted
        self._is_summary = part.summary or self._format in _SHOWN_AS_SUMMARY
        place = "summary_index" if self._is_summary else "content_index"
        self._at: dict[str, Any] = {"item_id": self.id, "output_index": output_index, place: 0}
        self._texts: list[str] = []
        self._head = b""
        self._sealed: str | None = None

    def takes(self, part: PartStarted) -> bool:
        return False

    def start(self, part: PartStarted) -> None:
        self.part_is_open = True

    def delta(self, text: str, extras: dict[str, Any] | None) -> None:
        if not text:
            return
        if not self._texts:
            self._open_text()
        self._texts.append(text)
        self._writer.delta(self._head, text)

    def end(self, ended: PartEnded) -> None:
        self.part_is_open = False
        self._sealed = seal(
            Sealed(self._format, signature=ended.signature, redacted=self._redacted)
        )
        if not self._texts:
            return
        text = "".join(self._texts)
        kind = "reasoning_summary_text" if self._is_summary else "reasoning_text"
        part = "reasoning_summary_part" if self._is_summary else "content_part"
        self._writer.event(f"response.{kind}.done", {**self._at, "text": text})
        self._writer.event(f"response.{part}.done", {**self._at, "part": self._part(text)})

    def body(self, status: ItemStatus) -> dict[str, Any]:
        parts = [self._part("".join(self._texts))] if self._texts else []
        body: dict[str, Any] = {
            "id": self.id,
            "type": "reasoning",
            "summary": parts if self._is_summary else [],
            "encrypted_content": self._sealed,
            "status": status,
        }
        if not self._is_summary:
            body["content"] = parts
        return body

    def _open_text(self) -> None:
        """Nothing is said about text before there is some: encrypted reasoning may come without any."""
        part = "reasoning_summary_part" if self._is_summary else "content_part"
        kind = "reasoning_summary_text" if self._is_summary else "reasoning_text"
        self._writer.event(f"response.{part}.added", {**self._at, "part": self._part("")})
        self._head = delta_head(f"response.{kind}.delta", self._at)

    def _part(self, text: str) -> dict[str, Any]:
        return {"type": "summary_text" if self._is_summary else "reasoning_text", "text": text}


def _annotations(found: object) -> list[dict[str, Any]]:
    """Annotations in this dialect's flat form; chat-format vendors nest a citation under its type."""
    flat = []
    for annotation in found if isinstance(found, list) else ():
        if not isinstance(annotation, dict):
            continue
        nested = annotation.get("url_citation")
        flat.append({"type": "url_citation", **nested} if isinstance(nested, dict) else annotation)
    return flat


def _logprobs(found: object) -> list[Any]:
    """Token probabilities as a list; chat-format vendors hold it in an object's `content`."""
    if isinstance(found, dict):
        found = found.get("content")
    return found if isinstance(found, list) else []
