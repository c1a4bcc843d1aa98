"""`gwctl launch`: start an agent with its environment set for the gateway."""

import os
import shutil
from pathlib import Path
from typing import Annotated

from gwctl.errors import CommandError, usage
from gwctl.files import replacing
from gwctl.inference import inference_key
from gwctl.profile import config_path
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
    "gwctl launch gemini --model google/gemini-3.6-flash",
)
def launch(
    session: Session,
    agent: Annotated[str, arg("AGENT", "claude, codex or gemini.")],
    arguments: Annotated[
        list[str] | None, arg("ARGS", "Arguments of the agent itself, after --.")
    ] = None,
    model: Annotated[str | None, opt("--model", "MODEL", "Model the agent should use.")] = None,
    show: Annotated[bool, flag("--print", "Only print the environment and the command.")] = False,
) -> None:
    """Start claude, codex or gemini against the gateway, with an inference key in its environment."""
    if agent not in ("claude", "codex", "gemini"):
        raise usage(f"gwctl cannot launch {agent}", do="claude, codex or gemini")
    url = session.settings.url()
    key = inference_key(session)
    own: list[str] = []
    match agent:
        case "claude":
            environment = claude(url, key, model)
        case "codex":
            environment, own = codex(key), codex_arguments(url, model)
        case _:
            environment = gemini(url, key, model)
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
    if agent == "gemini":
        write_gemini_settings()
    inherited = {name: value for name, value in os.environ.items() if name not in _FOREIGN}
    os.execvpe(agent, command, {**inherited, **environment})  # noqa: S606


# Credentials of the vendor itself, which an agent would prefer to the gateway's.
_FOREIGN = {
    *("ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "OPENAI_API_KEY", "OPENAI_BASE_URL"),
    *("GOOGLE_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA"),
}
# The agent takes its kind of credential from a file alone; without it, it asks, or goes to Google with an account.
_GEMINI_SETTINGS = '{"security": {"auth": {"selectedType": "gemini-api-key"}}}\n'


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


def gemini(url: str, key: str, model: str | None) -> dict[str, str]:
    """The Gemini command line appends /v1beta/models/… to its base address, so the address ends in /api."""
    environment = {
        "GOOGLE_GEMINI_BASE_URL": url.removesuffix("/v1"),
        "GEMINI_API_KEY": key,
        "GEMINI_CLI_SYSTEM_SETTINGS_PATH": str(_gemini_settings()),
    }
    return environment | ({"GEMINI_MODEL": model} if model else {})


def write_gemini_settings() -> None:
    """The settings that stand above the person's own, which stay as they are."""
    path = _gemini_settings()
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path, "no_agent") as file:
        file.write(_GEMINI_SETTINGS)


def _gemini_settings() -> Path:
    return config_path().with_name("gemini-cli.json")
