"""What a vendor's API format has to offer the server."""

from collections.abc import Callable, Iterator, Mapping
from typing import Literal, Protocol

import msgspec

from gwd.demo.answer import Answer, Ask
from gwd.demo.behaviour import Behaviour
from gwd.demo.frames import Frame
from gwd.demo.prompt_cache import PromptCache
from gwd.demo.refusals import RefusedError
from gwd.demo.traits import ModelTraits
from gwd.demo.wire import Json

FormatName = Literal[
    "chat", "messages", "count_tokens", "responses", "embeddings", "gemini", "gemini_embeddings"
]
Check = Callable[[Json, Mapping[str, str], ModelTraits], None]
"""Looks at a request's body and headers as the real vendor does; raises RefusedError for what that refuses."""


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """Everything an answer is written from."""

    body: Json
    traits: ModelTraits
    answer: Answer
    behaviour: Behaviour
    call_seed: bytes
    """Differs from call to call: identifiers are made from it."""

    created_s: int


UNREADABLE = (KeyError, TypeError, ValueError, AttributeError, IndexError)
"""What a body raises that is not of the format, when nobody has checked it."""


class Format(Protocol):
    """One API shape of an upstream."""

    @property
    def name(self) -> FormatName: ...

    def check_caller(self, headers: Mapping[str, str], keys: frozenset[str] | None) -> None:
        """Raises RefusedError without a credential, or with one that is not among `keys`."""
        ...

    def check_size(self, body: Json, traits: ModelTraits) -> None:
        """Raises RefusedError for a prompt that is longer than the model's context."""
        ...

    def ask(self, body: Json, traits: ModelTraits, cache: PromptCache) -> Ask:
        """The request in neutral words. A body that is not of this format raises what `UNREADABLE` names."""
        ...

    def user_text(self, body: Json) -> str:
        """Text of the last user message of an unchecked body."""
        ...

    def whole(self, reply: Reply) -> Json: ...

    def frames(self, reply: Reply) -> Iterator[Frame]: ...

    def error_frames(self, reply: Reply) -> Iterator[Frame]:
        """What a stream holds when the vendor fails in the middle of it; nothing comes after."""
        ...

    def refusal(self, refused: RefusedError, request_id: str) -> Json:
        """The error body."""
        ...

    def scripted(self, behaviour: Behaviour, status: int | None = None) -> RefusedError:
        """A scripted refusal in the vendor's own words."""
        ...

    def unknown_model(self, name: str) -> RefusedError: ...

    def headers(self, request_id: str) -> dict[str, str]:
        """Headers of every answer."""
        ...


_CREDENTIALS = frozenset(("authorization", "api-key", "x-api-key", "x-goog-api-key"))


def check_caller(form: Format, headers: Mapping[str, str], keys: frozenset[str] | None) -> None:
    """The format's own look at the credential; without any `keys` none may be sent, in whatever header.

    Raises RefusedError.
    """
    if keys is None or keys:
        form.check_caller(headers, keys)
    elif not _CREDENTIALS.isdisjoint(headers):
        raise RefusedError("This server takes no credential.", status=401)
