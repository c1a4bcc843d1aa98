"""`gwctl provider models --add`: models and endpoints for what a server lists and the catalog lacks."""

import json
from typing import Any

import pytest

from gwctl.listed_models import model_id
from tests.cli.conftest import Run
from tests.cli.gateway import FakeGateway
from tests.cli.test_terminal import Terminal, terminal

__all__ = ["terminal"]

PATH = "/catalog/providers/ollama/models"
ADD = "provider models ollama --add"


def listed(name: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "name": name, **more}


@pytest.fixture
def node(gateway: FakeGateway) -> FakeGateway:
    """A provider whose server lists two models; the catalog is empty."""
    gateway.collection(
        "/catalog/providers",
        {"slug": "ollama", "name": "Ollama", "adapter": "openai_chat", "auth": "none"},
    )
    gateway.collection("/catalog/models")
    gateway.collection("/catalog/endpoints", prefix="ep_")
    lists(gateway, listed("llama3.2:3b"), listed("hf.co/Qwen/Qwen3-8B", context_length=40960))
    return gateway


def lists(gateway: FakeGateway, *rows: dict[str, Any]) -> None:
    gateway.on("GET", PATH, {"data": list(rows)})


def models(gateway: FakeGateway) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in gateway.collections["/catalog/models"].rows}


def endpoints(gateway: FakeGateway) -> dict[str, str]:
    rows = gateway.collections["/catalog/endpoints"].rows
    return {row["model"]: row["upstream_model"] for row in rows}


def test_all_that_is_lacking_is_added_once(run: Run, node: FakeGateway) -> None:
    code, out, err = run(*ADD.split(), "--free")
    assert code == 0, err
    assert "ollama: 2 models, 2 endpoints added" in out
    assert "try it: gwctl chat ollama/llama3.2-3b hello" in err
    assert endpoints(node) == {
        "ollama/llama3.2-3b": "llama3.2:3b",
        "ollama/Qwen3-8B": "hf.co/Qwen/Qwen3-8B",
    }
    made = models(node)["ollama/Qwen3-8B"]
    assert (made["context_length"], made["max_completion_tokens"]) == (40960, 8192)
    assert made["pricing"] == {"prompt": "0", "completion": "0"}
    assert "tools" in made["supported_parameters"]
    before = len(node.writes())
    code, out, err = run(*ADD.split(), "--free")
    assert (code, out, len(node.writes())) == (0, "", before)
    assert "nothing was added" in err


def test_what_the_list_does_not_say_is_said_or_a_stated_default(
    run: Run, node: FakeGateway
) -> None:
    said = run(*ADD.split(), "--free")
    assert "no context length of 1 model: 4,096 tokens are taken; --context N" in said.err
    made = models(node)["ollama/llama3.2-3b"]
    assert (made["context_length"], made["max_completion_tokens"]) == (4096, 4096)
    lists(node, listed("b"), listed("c", context_length=9, max_completion_tokens=5))
    words = "--free --context 64000 --max-output 32000 --parameter max_tokens --input text --input image"
    said = run(*ADD.split(), *words.split())
    assert "no context length" not in said.err
    for name in ("ollama/b", "ollama/c"):
        made = models(node)[name]
        assert (made["context_length"], made["max_completion_tokens"]) == (64000, 32000)
        assert made["supported_parameters"] == ["max_tokens"]
        assert made["input_modalities"] == ["text", "image"]
    lists(node, listed("d", context_length=9000, max_completion_tokens=5))
    run(*ADD.split(), "--prompt", "1", "--completion", "2")
    made = models(node)["ollama/d"]
    assert (made["context_length"], made["max_completion_tokens"]) == (9000, 5)
    assert made["pricing"] == {"prompt": "0.000001", "completion": "0.000002"}


def test_a_price_has_to_be_said(run: Run, node: FakeGateway) -> None:
    wrong = []
    for words, said in {
        "": "--prompt USD --completion USD, or --free",
        "--yes": "--prompt USD --completion USD, or --free",
        "--prompt 1": "--completion is missing",
        "--completion 1": "--prompt is missing",
        "--free --prompt 1": "--free and a price exclude each other",
        "--free --dry-run --completion 0": "--free and a price exclude each other",
        "--prompt much": "--prompt",
    }.items():
        code, out, err = run(*ADD.split(), *words.split())
        if (code, out) != (2, "") or said not in err:
            wrong.append((words, code, out, err))
    assert wrong == []
    assert node.writes() == []


def test_a_person_is_asked_before_something_costs_nothing(
    terminal: Terminal, node: FakeGateway
) -> None:
    question = "Shall 2 models cost nothing?"
    for words in (ADD.split(), [*ADD.split(), "--yes"]):
        code, seen = terminal(*words, typed=((question, "n"),))
        assert (code, node.writes()) == (2, []), seen
    code, seen = terminal(*ADD.split(), typed=((question, "y"),))
    assert code == 0, seen
    assert models(node)["ollama/llama3.2-3b"]["pricing"] == {"prompt": "0", "completion": "0"}


def test_a_price_that_looks_like_a_slip_needs_accept(run: Run, node: FakeGateway) -> None:
    words = [*ADD.split(), "--prompt", "2000", "--completion", "1"]
    code, _, err = run(*words)
    assert (code, node.writes()) == (1, [])
    assert "add --accept if that is meant" in err
    assert run(*words, "--accept").code == 0
    sent = [r.body for r in node.requests if (r.method, r.path) == ("POST", "/catalog/models")]
    assert all(each["accept"] for each in sent)
    assert len(sent) == 2


def test_patterns_choose_and_must_match(run: Run, node: FakeGateway) -> None:
    code, _, err = run(*ADD.split(), "--free", "--model", "llama*", "--model", "mistral*")
    assert (code, node.writes()) == (3, [])
    assert "mistral*" in err
    assert run(*ADD.split(), "--free", "--model", "hf.co/*").code == 0
    assert endpoints(node) == {"ollama/Qwen3-8B": "hf.co/Qwen/Qwen3-8B"}
    code, out, _ = run("provider", "models", "ollama", "--model", "llama*", "--json")
    assert [row["id"] for row in json.loads(out)] == ["llama3.2:3b"]


def test_two_names_that_would_be_one_are_both_named(run: Run, node: FakeGateway) -> None:
    lists(node, listed("a/x:1"), listed("b/x-1"))
    code, _, err = run(*ADD.split(), "--free")
    assert (code, node.writes()) == (2, [])
    assert "b/x-1 and a/x:1 would both be ollama/x-1" in err
    assert "--model" in err
    assert run(*ADD.split(), "--free", "--model", "a/*").code == 0
    before = len(node.writes())
    code, _, err = run(*ADD.split(), "--free")  # also of what is in the catalog
    assert (code, len(node.writes())) == (2, before)
    assert "b/x-1 and a/x:1 would both be ollama/x-1" in err


def test_a_dry_run_says_what_would_be_made(run: Run, node: FakeGateway) -> None:
    code, out, err = run(*ADD.split(), "--free", "--dry-run")
    assert (code, node.writes()) == (8, [])
    assert "+ ollama/llama3.2-3b   llama3.2:3b" in out
    assert "Nothing was done." in err
    code, out, _ = run(*ADD.split(), "--free", "--dry-run", "--json")
    assert code == 8
    assert {(row["action"], row["kind"]) for row in json.loads(out)} == {
        ("add", "model"),
        ("add", "endpoint"),
    }


def test_models_of_an_embeddings_server_make_embeddings(run: Run, node: FakeGateway) -> None:
    node.collections["/catalog/providers"].rows[0]["adapter"] = "openai_embeddings"
    lists(node, listed("nomic-embed-text:latest"))
    code, _, err = run(*ADD.split(), "--prompt", "0.02", "--context", "8192")
    assert code == 0, err
    (made,) = models(node).values()
    assert made["output_modalities"] == ["embeddings"]
    assert (made["max_completion_tokens"], made["supported_parameters"]) == (0, [])
    assert made["pricing"] == {"prompt": "0.00000002"}
    assert "gwctl embed" in err


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("llama3.2:3b", "s/llama3.2-3b"),
        ("accounts/fireworks/models/gpt-oss-20b", "s/gpt-oss-20b"),
        ("../models/Meta-Llama-3.1-8B-Q4_K_M.gguf", "s/Meta-Llama-3.1-8B-Q4_K_M.gguf"),
        ("models/gemini-2.5-flash", "s/gemini-2.5-flash"),
        ("deepseek/deepseek-r1:free", "s/deepseek-r1-free"),
        ("a b\u00e9 c", "s/a-b-c"),
        ("~x/", "s/x"),
    ],
)
def test_a_name_of_a_server_becomes_one_of_the_catalog(name: str, made: str) -> None:
    assert model_id("s", name) == made


def test_a_name_without_a_letter_is_refused(run: Run, node: FakeGateway) -> None:
    lists(node, listed("模型"))
    code, _, err = run(*ADD.split(), "--free")
    assert (code, node.writes()) == (2, [])
    assert "gives no name for a model" in err
