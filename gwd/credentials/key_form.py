"""A key of one vendor that was set for another: told at once where both are certain, and by nobody's key else.

Vendors change what their keys look like, and many servers take keys of any form, so that only a prefix which one vendor
alone has, at another vendor's own address, is refused. Read 2026-11-29: sk-ant- in gitlab.com/gitlab-org/gitlab issue
481547, AIza and sk- in ai-tldr.dev/learn/llm-apis/api-basics/api-keys-explained, sk-or- in
keyforge.dimssu.com/test/openrouter-api-key.
"""

from typing import Final

from gwd.core.errors import InvalidValue
from gwd.core.web_address import read_web_address

_OF_PREFIX: Final = {"sk-ant-": "Anthropic", "sk-or-": "OpenRouter", "AIza": "Google"}
_AT_HOST: Final = {
    "api.anthropic.com": "Anthropic",
    "api.openai.com": "OpenAI",
    "generativelanguage.googleapis.com": "Google",
    "openrouter.ai": "OpenRouter",
}


def check(key: str, origin: str) -> None:
    """Raises InvalidValue for a key that is certainly another vendor's than the one at this origin."""
    there = _AT_HOST.get(read_web_address(origin).host)
    whose = next((vendor for prefix, vendor in _OF_PREFIX.items() if key.startswith(prefix)), None)
    if there is not None and whose is not None and whose != there:
        raise InvalidValue(
            f"`key` is a key of {whose}, and it would go to {there} at {origin}; set it for another provider",
            param="key",
        )
