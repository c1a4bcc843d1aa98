"""`gwctl launch`: start an agent with its environment set for the gateway."""

import os
import shutil
from typing import Annotated

from gwctl.errors import CommandError, usage
from gwctl.inference import inference_key
from gwctl.session import Session
from gwctl.text import mask, mask_keys
from gwctl.tree import Noun
from gwctl.values import arg, flag, opt

top = Noun("", "Agents.")
NOUNS = [top]


@top.verb(
    "launch",
    "gwctl launch claude --model anthropic/claude-sonnet-4",
    "gwctl launch codex -- exec 'fix the failing test'",
)
def launch(
    session: Session,
    agent: Annotated[str, arg("AGENT", "claude or codex.")],
    arguments: Annotated[
        list[str] | None, arg("ARGS", "Arguments of the agent itself, after --.")
    ] = None,
    model: Annotated[str | None, opt("--model", "MODEL", "Model the agent should use.")] = None,
    show: Annotated[bool, flag("--print", "Only print the environment and the command.")] = False,
) -> None:
    """Start claude or codex against the gateway, with an inference key in its environment."""
    if agent not in ("claude", "codex"):
        raise usage(f"gwctl cannot launch {agent}", do="claude or codex")
    url = session.settings.url()
    key = inference_key(session)
    environment = claude(url, key, model) if agent == "claude" else codex(key)
    own = codex_arguments(url, model) if agent == "codex" else []
    command = [agent, *own, *(arguments or [])]
    if show:
        for name, value in environment.items():
            session.out.line(f"{name}={mask(value) if value == key else mask_keys(value)}")
        session.out.line(mask_keys(" ".join(command)))
        return
    if shutil.which(agent) is None:
        raise CommandError(
            f"{agent} is not installed",
            code="no_agent",
            do=f"install it, or see --print for {agent}",
        )
    inherited = {name: value for name, value in os.environ.items() if name not in _FOREIGN}
    os.execvpe(agent, command, {**inherited, **environment})  # noqa: S606


# Credentials of the vendor itself, which an agent would prefer to the gateway's.
_FOREIGN = {"ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "OPENAI_API_KEY", "OPENAI_BASE_URL"}


def claude(url: str, key: str, model: str | None) -> dict[str, str]:
    """Claude Code appends /v1/messages to its base address, so the address ends in /api."""
    environment = {
        "ANTHROPIC_BASE_URL": url.removesuffix("/v1"),
        "ANTHROPIC_AUTH_TOKEN": key,
    }
    return environment | ({"ANTHROPIC_MODEL": model} if model else {})


def codex(key: str) -> dict[str, str]:
    return {"GWCTL_INFERENCE_KEY": key}


def codex_arguments(url: str, model: str | None) -> list[str]:
    """A model provider of Codex, given on its command line so that its own file stays as it is."""
    settings = {
        "model_provider": "gateway",
        "model_providers.gateway.name": "gateway",
        "model_providers.gateway.base_url": url,
        "model_providers.gateway.env_key": "GWCTL_INFERENCE_KEY",
        "model_providers.gateway.wire_api": "responses",
    }
    words = [word for name, value in settings.items() for word in ("-c", f'{name}="{value}"')]
    return words + (["-m", model] if model else [])
