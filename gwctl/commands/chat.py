"""`gwctl chat` and `gwctl embed`: try a model."""

import sys
from typing import Annotated, Any

from gwctl.errors import usage
from gwctl.files import read_standard_input
from gwctl.inference import call, receipt_lines, stream_chat
from gwctl.session import Session
from gwctl.streams import is_text
from gwctl.tables import exact
from gwctl.tree import Noun
from gwctl.values import arg, body, flag, number, opt, whole

top = Noun("", "Try a model.")
NOUNS = [top]

_MODEL = arg("MODEL", "Model id or alias; :floor and :nitro choose by price or speed.")
_RECEIPT = flag("--receipt", "Show the route receipt: who served it, how long, what it cost.")


@top.verb(
    "chat",
    "gwctl chat anthropic/claude-sonnet-4 'hello' --receipt",
    "git diff | gwctl chat openai/gpt-5 --system 'Review this change.' --yes",
)
def chat(
    session: Session,
    model: Annotated[str, _MODEL],
    prompt: Annotated[str | None, arg("PROMPT", "What to say; standard input otherwise.")] = None,
    system: Annotated[str | None, opt("--system", "TEXT", "System message.")] = None,
    max_tokens: Annotated[int | None, whole("--max-tokens", "N", "Most output tokens.")] = None,
    temperature: Annotated[str | None, opt("--temperature", "N", "Sampling temperature.")] = None,
    fallback: Annotated[
        list[str] | None, opt("--fallback", "MODEL", "Model to try next; repeatable.")
    ] = None,
    receipt: Annotated[bool, _RECEIPT] = False,
) -> None:
    """Send a prompt and stream the answer to stdout; the receipt goes to stderr.

    Uses GWCTL_INFERENCE_KEY or the profile's inference_key. Without one it offers to make a key for
    an hour with a limit of 1 USD (--yes agrees, for scripts).
    """
    messages = [{"role": "system", "content": system}] if system else []
    messages.append({"role": "user", "content": _given(session, prompt, "message: ")})
    wanted = body(
        {
            "model": model,
            "messages": messages,
            "max_tokens": max_tokens,
            "temperature": number("--temperature", temperature, "0.2"),
            "models": fallback or None,
            "usage": {"include": True},
        }
    )
    if session.out.shape.machine:
        session.out.data(call(session, "/chat/completions", wanted, receipt=receipt))
        return
    for kind, piece in stream_chat(session, wanted, receipt=receipt):
        if kind == "text":
            session.out.stream(piece)
        elif kind == "end":
            session.out.stream("\n")
            _show_receipt(session, piece, receipt)


def _show_receipt(session: Session, last: Any, wanted: bool) -> None:
    if not wanted:
        return
    found = last.get("gateway_metadata")
    if not found:
        session.out.note("note: this gateway sent no receipt")
        return
    for line in ["", *receipt_lines(found)]:
        session.out.note(line)


@top.verb(
    "embed",
    "gwctl embed openai/text-embedding-3-small 'a text' --json",
    "gwctl embed openai/text-embedding-3-small --dimensions 256 < text.txt",
)
def embed(
    session: Session,
    model: Annotated[str, _MODEL],
    text: Annotated[str | None, arg("TEXT", "What to embed; standard input otherwise.")] = None,
    dimensions: Annotated[int | None, whole("--dimensions", "N", "Length of the vector.")] = None,
) -> None:
    """Embed a text: one number a line, or the whole answer with --json."""
    wanted = {
        "model": model,
        "input": _given(session, text, "text: "),
        "dimensions": dimensions,
        "encoding_format": "float",
        "usage": {"include": True},
    }
    reply = call(session, "/embeddings", body(wanted))
    if session.out.shape.machine:
        session.out.data(reply)
        return
    vector = reply["data"][0]["embedding"]
    session.out.block("".join(f"{exact(number, 'text')}\n" for number in vector))
    usage_seen = reply.get("usage") or {}
    session.out.note(f"{len(vector)} dimensions, {usage_seen.get('prompt_tokens')} tokens")


def _given(session: Session, given: str | None, question: str) -> str:
    """The text of the argument, of the pipe, or typed after a question."""
    if given is None and not sys.stdin.isatty():
        given = read_standard_input("input")
    elif given is None:
        given = session.out.ask(question)
    if not given.strip():
        raise usage("there is no text to send", do="give it as an argument or on standard input")
    if not is_text(given):
        raise usage("the text is not valid UTF-8", do="check what is piped in")
    return given
