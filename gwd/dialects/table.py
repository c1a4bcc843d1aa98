"""All dialects, in the order in which they are served and shown."""

from typing import Final

from gwd.dialects import chat_completions, completions, embeddings, gemini, messages, responses
from gwd.dialects.base import Dialect

DIALECTS: Final[tuple[Dialect, ...]] = (
    chat_completions.DIALECT,
    messages.DIALECT,
    responses.DIALECT,
    gemini.DIALECT,
    completions.DIALECT,
    embeddings.DIALECT,
)
