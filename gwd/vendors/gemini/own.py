"""What a client of this very format sent beside the known fields, as it goes back into the vendor's body."""

from typing import Any, Final

from gwd.core.request import Request
from gwd.core.target import Target
from gwd.vendors.gemini.format import FORMAT
from gwd.vendors.gemini.thinking import thinks

Json = dict[str, Any]

_ELSEWHERE: Final = frozenset(("generationConfig", "toolConfig", "service_tier", "max_tool_calls"))


class OwnFields:
    """The fields of one request; all of them are empty for clients of other formats.

    `fields` stand at the top of the body, `config` in its generationConfig, `thinking` is the client's own
    thinkingConfig where the target takes its form, `hosted` are the tools that the vendor is to run.
    """

    def __init__(self, request: Request, target: Target) -> None:
        self.is_own = request.family == FORMAT.family
        extras = (request.extras or {}) if self.is_own else {}
        self.fields = {name: value for name, value in extras.items() if name not in _ELSEWHERE}
        if "service_tier" in target.sold.values:
            self.fields["serviceTier"] = extras["service_tier"]
        config = dict(extras.get("generationConfig") or {})
        thinking = config.pop("thinkingConfig", None)
        self.config: Json = config
        self.thinking: Json | None = (
            thinking if thinking and _takes_thinking(thinking, target) else None
        )
        self._tool_config: Json = extras.get("toolConfig") or {}
        self.hosted: list[Json] = [
            {name: value for name, value in tool.items() if name != "type"}
            for tool in (request.hosted_tools if self.is_own else ())
            if tool["type"] in target.sold.tools
        ]

    def calling(self, config: Json) -> Json:
        """The calling config; a choice that binds schemas has a mode of its own, which no other format says."""
        wanted = (self._tool_config.get("functionCallingConfig") or {}).get("mode")
        return {**config, "mode": wanted} if wanted and config["mode"] == "AUTO" else config

    @property
    def tool_config(self) -> Json:
        """What else the client said of its tools."""
        return {
            name: value
            for name, value in self._tool_config.items()
            if name != "functionCallingConfig"
        }


def _takes_thinking(thinking: Json, target: Target) -> bool:
    """Models whose thinking is a budget refuse a level; those with levels take a budget, too."""
    is_level = bool(thinking.get("thinkingLevel"))
    return thinks(target) and not (is_level and target.flags.thinking_form in (None, "budget"))
