"""openai_chat: the chat completions format, spoken by OpenAI and by most other servers.

Owns: building its calls, decoding its answers, reading its errors; what servers keep for themselves in a history.
Does not own: HTTP, retries, the signature memory itself, money.
Invariants: what a client of the same family sent in fields we do not know goes out unchanged; every call in the history
has its result behind it.
Speaks to: core, the shared tools of the vendors.
"""

from gwd.vendors.openai_chat.adapter import ADAPTER

__all__ = ["ADAPTER"]
