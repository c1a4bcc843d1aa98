"""The blocks of docs/vendors.md work as they stand, and what arrives at each vendor is what its own pages say."""

import re
import shlex
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import httpx
import pytest

from gwctl import shipped
from gwd.demo import ModelTraits
from tests.cli.daemon import Daemon, serving
from tests.pages.vendors_behind_proxy import Arrived, Vendors, answering
from tests.support import warm

PAGE = (Path(__file__).parents[2] / "docs" / "vendors.md").read_text("utf-8")
PART = PAGE.split("\n## Adding a provider\n", 1)[1].split("\n## ", 1)[0]
SECTIONS = dict(text.split("\n", 1) for text in PART.split("\n### ")[1:])
KEYS = (
    "OPENAI ANTHROPIC GEMINI AZURE_OPENAI OPENROUTER GROQ DEEPSEEK MISTRAL XAI TOGETHER FIREWORKS"
    " MOONSHOT ZAI MINIMAX DASHSCOPE CEREBRAS VLLM"
)
ENVIRONMENT = {f"{name}_API_KEY": f"key-of-{name.lower()}" for name in KEYS.split()}

GET, POST = "GET", "POST"
CHAT = "/v1/chat/completions"
OLLAMA, VLLM, LLAMACPP = "127.0.0.1:11434", "127.0.0.1:8000", "127.0.0.1:8080"
AZURE = "my-resource.openai.azure.com"
GEMINI = "/v1beta/models"

# What the vendors' own pages say of the calls that a section makes, in order: host, method and target byte for byte.
# Sources stand in examples/providers.toml, azure.toml and catalog.toml.
CALLS: dict[str, list[tuple[str, str, str]]] = {
    "Ollama": [
        (OLLAMA, GET, "/v1/models"),
        (OLLAMA, POST, CHAT),
        (OLLAMA, GET, "/v1/models"),
        (OLLAMA, POST, "/v1/embeddings"),
    ],
    "vLLM": [
        (VLLM, GET, "/v1/models"),
        (VLLM, POST, CHAT),
        ("10.0.0.7:8000", GET, "/v1/models"),
        ("10.0.0.7:8000", POST, CHAT),
    ],
    "llama.cpp": [(LLAMACPP, GET, "/v1/models"), (LLAMACPP, POST, CHAT)],
    "OpenAI": [
        ("api.openai.com", POST, "/v1/responses"),
        ("api.openai.com", POST, "/v1/embeddings"),
    ],
    "Anthropic": [("api.anthropic.com", POST, "/v1/messages")],
    "Google": [
        (
            "generativelanguage.googleapis.com",
            POST,
            f"{GEMINI}/gemini-3.5-flash-lite:streamGenerateContent?alt=sse",
        ),
        (
            "generativelanguage.googleapis.com",
            POST,
            f"{GEMINI}/gemini-embedding-001:batchEmbedContents",
        ),
    ],
    "Azure OpenAI": [
        (AZURE, POST, "/openai/v1/chat/completions"),
        (
            AZURE,
            POST,
            "/openai/deployments/my-gpt-4o/chat/completions?api-version=2024-10-21",
        ),
        (AZURE, POST, "/openai/v1/embeddings"),
    ],
    "OpenRouter": [
        ("openrouter.ai", GET, "/api/v1/models"),
        ("openrouter.ai", POST, "/api/v1/chat/completions"),
    ],
    "Groq": [
        ("api.groq.com", GET, "/openai/v1/models"),
        ("api.groq.com", POST, "/openai/v1/chat/completions"),
    ],
    "DeepSeek": [("api.deepseek.com", GET, "/v1/models"), ("api.deepseek.com", POST, CHAT)],
    "Mistral": [
        ("api.mistral.ai", GET, "/v1/models"),
        ("api.mistral.ai", POST, CHAT),
        ("api.mistral.ai", GET, "/v1/models"),
        ("api.mistral.ai", POST, "/v1/embeddings"),
    ],
    "xAI": [("api.x.ai", GET, "/v1/models"), ("api.x.ai", POST, CHAT)],
    "Together AI": [
        ("api.together.ai", GET, "/v1/models"),
        ("api.together.ai", POST, CHAT),
        ("api.together.ai", GET, "/v1/models"),
        ("api.together.ai", POST, "/v1/embeddings"),
    ],
    "Fireworks": [
        ("api.fireworks.ai", GET, "/inference/v1/models"),
        ("api.fireworks.ai", POST, "/inference/v1/chat/completions"),
    ],
    "Moonshot AI": [("api.moonshot.ai", POST, CHAT)],
    "Z.ai": [("api.z.ai", POST, "/api/paas/v4/chat/completions")],
    "MiniMax": [("api.minimax.io", POST, CHAT)],
    "Alibaba Cloud": [
        ("dashscope-intl.aliyuncs.com", POST, "/compatible-mode/v1/chat/completions")
    ],
    "Cerebras": [("api.cerebras.ai", GET, "/v1/models"), ("api.cerebras.ai", POST, CHAT)],
}
# The header that carries the key, and the key in it; nothing: none may be sent.
CREDENTIALS: dict[str, dict[str, str]] = {
    OLLAMA: {},
    VLLM: {},
    LLAMACPP: {},
    "10.0.0.7:8000": {"authorization": "Bearer key-of-vllm"},
    "api.openai.com": {"authorization": "Bearer key-of-openai"},
    "api.anthropic.com": {"x-api-key": "key-of-anthropic"},
    "generativelanguage.googleapis.com": {"x-goog-api-key": "key-of-gemini"},
    AZURE: {"api-key": "key-of-azure_openai"},
    "openrouter.ai": {"authorization": "Bearer key-of-openrouter"},
    "api.groq.com": {"authorization": "Bearer key-of-groq"},
    "api.deepseek.com": {"authorization": "Bearer key-of-deepseek"},
    "api.mistral.ai": {"authorization": "Bearer key-of-mistral"},
    "api.x.ai": {"authorization": "Bearer key-of-xai"},
    "api.together.ai": {"authorization": "Bearer key-of-together"},
    "api.fireworks.ai": {"authorization": "Bearer key-of-fireworks"},
    "api.moonshot.ai": {"authorization": "Bearer key-of-moonshot"},
    "api.z.ai": {"authorization": "Bearer key-of-zai"},
    "api.minimax.io": {"authorization": "Bearer key-of-minimax"},
    "dashscope-intl.aliyuncs.com": {"authorization": "Bearer key-of-dashscope"},
    "api.cerebras.ai": {"authorization": "Bearer key-of-cerebras"},
}
# What a vendor wants beside the key.
EXTRA = {"api.anthropic.com": {"anthropic-version": "2023-06-01"}}
# Headers of the connection and of the body, which say nothing of the node.
PLAIN = {"accept", "accept-encoding", "content-length", "content-type", "host", "user-agent"}


def listed(*names: str, **more: Any) -> dict[str, Any]:
    """A list of models as OpenAI-format servers give it."""
    rows = [{"id": name, "object": "model", "created": 1, **more} for name in names]
    return {"object": "list", "data": rows}


LISTS: dict[str, Any] = {
    OLLAMA: listed("llama3.2:3b", "qwen3:8b", "nomic-embed-text:latest", owned_by="library"),
    VLLM: listed("Qwen/Qwen3-8B", owned_by="vllm", max_model_len=40960),
    "10.0.0.7:8000": listed("Qwen/Qwen3-8B", owned_by="vllm", max_model_len=40960),
    LLAMACPP: listed("../models/Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf", owned_by="llamacpp"),
    "openrouter.ai": listed(
        "meta-llama/llama-3.3-70b-instruct", "openai/gpt-5", context_length=131072
    ),
    "api.groq.com": listed("openai/gpt-oss-20b", "openai/gpt-oss-120b", context_window=131072),
    "api.deepseek.com": listed("deepseek-chat", "deepseek-reasoner", owned_by="deepseek"),
    "api.mistral.ai": listed("mistral-small-latest", "mistral-embed"),
    "api.x.ai": listed("grok-4.3", "grok-4.20"),
    "api.together.ai": listed("openai/gpt-oss-20b", "intfloat/multilingual-e5-large-instruct"),
    "api.fireworks.ai": listed("accounts/fireworks/models/gpt-oss-20b"),
    "api.cerebras.ai": listed("gpt-oss-120b", "zai-glm-4.7"),
}
EMBEDDINGS = (
    "nomic-embed-text:latest text-embedding-3-small gemini-embedding-001 my-embeddings mistral-embed"
    " intfloat/multilingual-e5-large-instruct"
)
OTHERS = (
    "gpt-5-mini claude-haiku-4-5 gemini-3.5-flash-lite my-gpt-4-1 my-gpt-4o my-gpt-5 kimi-k2.6"
    " glm-5.1 MiniMax-M2.7 qwen3.6-plus"
)

MISTRAL_FIELDS = (
    "model messages temperature top_p max_tokens stream stop random_seed metadata response_format tools tool_choice"
    " presence_penalty frequency_penalty n prediction parallel_tool_calls reasoning_effort prompt_mode guardrails"
    " prompt_cache_key safe_prompt input encoding_format output_dimension output_dtype"
)


def refused_by_mistral(body: dict[str, Any]) -> str | None:
    strange = body.keys() - set(MISTRAL_FIELDS.split())
    named = [message for message in body.get("messages", ()) if "name" in message]
    return f"extra_forbidden: {strange or 'name'}" if strange or named else None


def refused_by_groq(body: dict[str, Any]) -> str | None:
    named = [message for message in body["messages"] if "name" in message]
    return "property 'name' is unsupported" if named else None


def refused_by_xai(body: dict[str, Any]) -> str | None:
    found = {"stop", "presence_penalty", "frequency_penalty"} & body.keys()
    return f"Argument not supported on this model: {found}" if found else None


@pytest.fixture(scope="module")
def vendors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Vendors]:
    listed_names = [row["id"] for each in LISTS.values() for row in each["data"]]
    embeddings = EMBEDDINGS.split()
    chats = dict.fromkeys(chain(listed_names, OTHERS.split()))
    models = [ModelTraits(name=name) for name in chats if name not in embeddings]
    models += [ModelTraits(name=name, kind="embedding") for name in embeddings]
    with answering(tmp_path_factory.mktemp("vendors"), models) as vendors:
        vendors.lists = LISTS
        vendors.refusals = {
            "api.mistral.ai": refused_by_mistral,
            "api.groq.com": refused_by_groq,
            "api.x.ai": refused_by_xai,
        }
        yield vendors


@pytest.fixture(scope="module")
def node(vendors: Vendors, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A node that reaches every vendor through the proxy and has the keys that the page names."""
    upstream = {"GWD_UPSTREAM_PROXY": vendors.proxy, "GWD_UPSTREAM_CA_FILE": str(vendors.ca_file)}
    with serving(tmp_path_factory.mktemp("node"), **upstream, **ENVIRONMENT) as daemon:
        key = daemon("key", "create", "mine", "-q").strip()
        daemon.environment["GWCTL_INFERENCE_KEY"] = key
        yield daemon
        assert daemon("ledger", "verify")


def blocks(section: str) -> list[str]:
    found: list[str] = re.findall(r"^```\w*\n(.*?)^```", SECTIONS[section], re.M | re.S)
    return found


def lines(section: str) -> list[list[str]]:
    """The commands of a section's blocks, as a shell takes them apart."""
    text = "\n".join(blocks(section)).replace("\\\n", " ")
    assert not re.search(r"[$;&|<>`*](?=(?:[^']*'[^']*')*[^']*$)", text), (
        "more than words and quotes"
    )
    return [words for line in text.splitlines() if (words := shlex.split(line, comments=True))]


def run(node: Daemon, words: list[str]) -> str:
    assert words[0] == "gwctl"
    done = warm.run("gwctl", words[1:], node.environment)
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout


@pytest.mark.parametrize("section", SECTIONS)
def test_the_blocks_of_a_vendor(section: str, node: Daemon, vendors: Vendors) -> None:
    """They are run one after the other; then their commands once more change nothing."""
    vendors.arrived.clear()
    for words in lines(section):
        said = run(node, words)
        assert said.strip(), words
    wrong = [fault for request in vendors.arrived if (fault := strange(request))]
    assert wrong == []
    assert [(r.host, r.method, r.target) for r in vendors.arrived] == CALLS[section]
    for words in lines(section):
        if words[1:3] in (["provider", "add"], ["provider", "models"]):
            run(node, words)
    assert {r.method for r in vendors.arrived[len(CALLS[section]) :]} <= {GET}


def strange(request: Arrived) -> str:
    """What a request says that the vendor's pages do not, or lacks."""
    expected = CREDENTIALS[request.host] | EXTRA.get(request.host, {}) | {"host": request.host}
    sent = {
        name: value
        for name, value in request.headers.items()
        if name not in PLAIN or name == "host"
    }
    if sent != expected:
        return f"{request.host}: {sent} and not {expected}"
    if request.method == POST and request.headers.get("content-type") != "application/json":
        return f"{request.host}: {request.headers.get('content-type')}"
    return ""


def test_every_preset_has_its_block_and_every_block_its_calls() -> None:
    added = {words[3] for section in SECTIONS for words in lines(section) if words[2] == "add"}
    presets = {slug for slug in shipped.vendors() if not slug.startswith("openai-")}
    untold = {slug for slug in presets - added if not slug.endswith("-embeddings")}
    assert untold == set()
    assert SECTIONS.keys() == CALLS.keys()
    outside = PAGE.replace("".join(chain.from_iterable(map(blocks, SECTIONS))), "")
    assert all(f"```sh\n{block}" in PAGE for section in SECTIONS for block in blocks(section))
    outside, _, _ = outside.partition("\n## Keys of your own\n")  # needs keys, and files with them
    assert outside.count("```") == 2 * sum(len(blocks(section)) for section in SECTIONS)


@pytest.mark.parametrize("stream", [False, True])
def test_what_strict_vendors_refuse_is_left_out(
    node: Daemon, vendors: Vendors, stream: bool
) -> None:
    """The clients' fields arrive at those who take them; those who do not are not sent them, and answer."""
    message = {"role": "user", "content": "hi", "name": "ada"}
    body = {"messages": [message], "user": "u-1", "stop": ["END"], "stream": stream}
    key = node.environment["GWCTL_INFERENCE_KEY"]
    seen: dict[str, Arrived] = {}
    for section in ("Mistral", "Groq", "xAI", "Together AI"):
        for words in lines(section):
            if words[1] == "provider":
                run(node, words)
        for verb, path in (("chat", "chat/completions"), ("embed", "embeddings")):
            for model in [words[2] for words in lines(section) if words[1] == verb]:
                vendors.arrived.clear()
                asked = body if verb == "chat" else {"input": "hi", "user": "u-1"}
                reply = httpx.post(
                    f"{node.url}/{path}",
                    json={"model": model, **asked},
                    headers={"authorization": f"Bearer {key}"},
                    timeout=30,
                )
                assert reply.status_code == 200, (model, reply.text)
                (seen[f"{section} {verb}"],) = vendors.arrived
    taken = {section: request.json for section, request in seen.items()}
    assert {"user", "stop"} <= taken["Together AI chat"].keys()
    assert taken["Together AI chat"]["messages"] == [message]
    assert ("stream_options" in taken["Together AI chat"]) is stream
    assert taken["Mistral chat"].keys().isdisjoint({"user", "stream_options"})
    assert "stop" in taken["Mistral chat"]
    assert "name" not in taken["Groq chat"]["messages"][0]
    assert "stop" not in taken["xAI chat"]
    assert "user" in taken["Together AI embed"]
    assert "user" not in taken["Mistral embed"]
