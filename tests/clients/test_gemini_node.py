"""Google's clients that run in Node, the Gemini command line and @google/genai, at a running gateway.

`make nodejs` fetches them and runs this; without them it is skipped.
"""

import asyncio
import os
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from gwd.demo import Behaviour, PlannedCall
from tests.clients.test_google_genai import GEMINI, MODELS, with_gemini
from tests.support.node import PRICES, Gateway, open_gateway

MODULES = Path(os.environ.get("GWD_NODE_MODULES", "/nowhere"))
NODE = shutil.which("node") or "node"
QUIET = "demo/quiet"  # a responses model that refuses a temperature, as those do that reason
pytestmark = pytest.mark.skipif(
    not (MODULES / "@google" / "genai").exists(), reason="run `make nodejs`"
)
READ = PlannedCall(name="read_file", arguments='{"file_path":"a.txt"}')
TOOL_TURN = Behaviour(reasoning="I should read it.", calls=(READ,))
ANSWER = Behaviour(text="The word is walnut.")
SDK = """
import { GoogleGenAI } from '@google/genai';
const ai = new GoogleGenAI({ apiKey: process.env.KEY, httpOptions: { baseUrl: process.env.BASE } });
const tools = [{ functionDeclarations: [{ name: 'read_file', parametersJsonSchema:
  { type: 'object', properties: { file_path: { type: 'string' } } } }] }];
const config = { tools, thinkingConfig: { includeThoughts: true, thinkingBudget: 2048 }, maxOutputTokens: 8000 };
const said = { thought: '', calls: [], text: '' };
const contents = [{ role: 'user', parts: [{ text: 'What is the word in a.txt?' }] }];
async function turn() {
  const ask = { model: process.env.MODEL, contents, config };
  const chunks = process.env.STREAM
    ? await ai.models.generateContentStream(ask) : [await ai.models.generateContent(ask)];
  let found = [];
  for await (const chunk of chunks) {
    const content = chunk.candidates[0].content;
    contents.push(content);
    for (const part of content.parts) {
      if (part.functionCall) found.push(part.functionCall);
      else if (part.thought) said.thought += part.text;
      else said.text += part.text;
    }
  }
  return found;
}
for (const call of await turn()) {
  said.calls.push([call.name, call.args]);
  contents.push({ role: 'user', parts: [{ functionResponse:
    { id: call.id, name: call.name, response: { output: 'the word is walnut' } } }] });
}
await turn();
try { await ai.models.generateContent({ model: 'demo/none', contents: 'x' }); }
catch (error) { said.status = error.status; }
console.log(JSON.stringify(said));
"""


@pytest_asyncio.fixture
async def gateway(tmp_path: Path) -> Any:
    async with open_gateway(tmp_path, begin=with_gemini) as made:
        await made.add_model(QUIET, pricing=PRICES)
        flags = {"developer_role": True, "rejects_sampling": True}
        await made.add_endpoint(QUIET, "openai-responses", "o-demo", flags=flags)
        yield made


async def run(folder: Path, *words: str, **environment: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *words,
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()[-2_000:]
    return out.decode()


@pytest.mark.parametrize("model", [*(m for m in MODELS if m != "demo/responses"), QUIET])
async def test_the_command_line_reads_a_file_and_answers(
    gateway: Gateway, tmp_path: Path, model: str
):
    (tmp_path / "a.txt").write_text("the word is walnut\n")
    (tmp_path / ".gemini").mkdir()
    kind = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    (tmp_path / ".gemini" / "settings.json").write_bytes(msgspec.json.encode(kind))
    gateway.vendor.script.next(TOOL_TURN, ANSWER)
    said = await run(
        tmp_path,
        str(MODULES / ".bin" / "gemini"),
        *("-m", model, "--yolo", "-p", "What is the word in a.txt?"),
        GEMINI_CLI_TRUST_WORKSPACE="true",
        GEMINI_API_KEY=gateway.key,
        GOOGLE_GEMINI_BASE_URL=gateway.base_url.removesuffix("/v1"),
    )
    assert said.strip().endswith("The word is walnut.")
    assert "walnut" in str(gateway.vendor.calls[-1].body)


@pytest.mark.parametrize("stream", ["", "1"], ids=["whole", "streamed"])
@pytest.mark.parametrize("model", MODELS)
async def test_the_sdk_goes_through_a_tool_loop(
    gateway: Gateway, tmp_path: Path, model: str, stream: str
):
    (tmp_path / "node_modules").symlink_to(MODULES)
    (tmp_path / "loop.mjs").write_text(SDK)
    gateway.vendor.script.next(TOOL_TURN, ANSWER)
    said = await run(
        tmp_path,
        *(NODE, "loop.mjs"),
        KEY=gateway.key,
        BASE=gateway.base_url.removesuffix("/v1"),
        MODEL=model,
        STREAM=stream,
    )
    told = msgspec.json.decode(said)
    assert told.pop("thought").startswith("I should read it.")
    assert told == {
        "calls": [["read_file", {"file_path": "a.txt"}]],
        "text": "The word is walnut.",
        "status": 404,
    }
    if model == GEMINI:
        body = gateway.vendor.calls[-1].body or {}
        assert any(part.get("thoughtSignature") for part in body["contents"][1]["parts"])
