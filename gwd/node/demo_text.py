"""What `gwd demo` prints: the same gateway as curl, the SDKs and the agents reach it."""

from collections.abc import Sequence

from gwd.node.demo_vendor import CHAT_MODEL, MESSAGES_MODEL, MODELS, REAL_VENDORS


def snippets(base_url: str, key: str, management_key: str, real_models: Sequence[str]) -> str:
    """Ready to paste. `real_models` are those to try of the vendors whose keys were found."""
    root = base_url.removesuffix("/v1")
    return f"""\
gwd demo serves {base_url}, with 10 USD and a simulated vendor: {", ".join(MODELS)}.
{_real(real_models)}
Everything lies in a throw-away directory and is gone when this ends (Ctrl-C).

curl
  curl -N {base_url}/chat/completions -H 'authorization: Bearer {key}' \
    -H 'content-type: application/json' -H 'x-gw-metadata: enabled' \
    -d '{{"model": "{CHAT_MODEL}", "stream": true, "messages": [{{"role": "user", "content": "Hello"}}]}}'

openai SDK
  from openai import OpenAI
  client = OpenAI(base_url="{base_url}", api_key="{key}")
  answer = client.chat.completions.create(
      model="{CHAT_MODEL}", messages=[{{"role": "user", "content": "Hello"}}])
  print(answer.choices[0].message.content)

base address of each client
  openai       {base_url}
  anthropic    {root}
  Claude Code  ANTHROPIC_BASE_URL={root} ANTHROPIC_AUTH_TOKEN={key} ANTHROPIC_MODEL={MESSAGES_MODEL} claude
  Codex        OPENAI_API_KEY={key} codex -m {CHAT_MODEL} -c model_provider=gwd -c model_providers.gwd.name=gwd \
                 -c model_providers.gwd.base_url={base_url} \
                 -c model_providers.gwd.env_key=OPENAI_API_KEY -c model_providers.gwd.wire_api=responses

manage it
  export GWCTL_URL={base_url} GWCTL_KEY={management_key}
  gwctl status
  gwctl open                  # the page in a browser
  gwctl ledger list
"""


def _real(models: Sequence[str]) -> str:
    if models:
        return (
            "Real vendors, at their list prices, for the keys you have set; try "
            + ", ".join(models)
            + "."
        )
    return f"Set {', '.join(REAL_VENDORS)} (any of them) to reach real vendors too."
