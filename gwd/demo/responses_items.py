"""The output items of a response: how each looks when it starts and when it is done, and the events in between."""

import msgspec

from gwd.demo.answer import Call
from gwd.demo.formats import Reply
from gwd.demo.signatures import encrypt
from gwd.demo.wire import Json, as_list, as_object, mint

_ENCRYPTED = "reasoning.encrypted_content"
_LOGPROBS = "message.output_text.logprobs"


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One event; the fields that every event of its item has are added by the stream."""

    kind: str
    fields: Json
    tokens: int = 0
    padded: bool = False


class Item(msgspec.Struct, frozen=True, kw_only=True):
    whole: Json
    start: Json
    steps: list[Step]


def items_of(reply: Reply) -> list[Item]:
    answer = reply.answer
    items = []
    if answer.reasoning:
        items.append(_reasoning(reply))
    if answer.text:
        items.append(_message(reply))
    if answer.refusal:
        items.append(_refusal(reply, answer.refusal))
    items += [_call(reply, index, call) for index, call in enumerate(answer.calls)]
    return items


def _message(reply: Reply) -> Item:
    text = "".join(reply.answer.text)
    wanted = _LOGPROBS in as_list(reply.body.get("include"))
    part: Json = {"type": "output_text", "annotations": [], "logprobs": [], "text": ""}
    at: Json = {"content_index": 0}
    steps = [Step(kind="response.content_part.added", fields={**at, "part": part})]
    steps += [
        Step(
            kind="response.output_text.delta",
            fields={**at, "delta": piece, "logprobs": [_logprob(piece)] if wanted else []},
            tokens=1,
            padded=True,
        )
        for piece in reply.answer.text
    ]
    logprobs = [_logprob(piece) for piece in reply.answer.text] if wanted else []
    full = {**part, "text": text, "logprobs": logprobs}
    done = {**at, "text": text, "logprobs": logprobs}
    steps.append(Step(kind="response.output_text.done", fields=done))
    steps.append(Step(kind="response.content_part.done", fields={**at, "part": full}))
    head = _head(reply)
    return Item(
        whole={**head, "status": _done(reply), "content": [full]},
        start={**head, "status": "in_progress", "content": []},
        steps=steps,
    )


def _logprob(piece: str) -> Json:
    return {"token": piece, "logprob": -0.25, "bytes": list(piece.encode()), "top_logprobs": []}


def _refusal(reply: Reply, refusal: str) -> Item:
    part = {"type": "refusal", "refusal": ""}
    full = {"type": "refusal", "refusal": refusal}
    at: Json = {"content_index": 0}
    head = _head(reply)
    return Item(
        whole={**head, "status": "completed", "content": [full]},
        start={**head, "status": "in_progress", "content": []},
        steps=[
            Step(kind="response.content_part.added", fields={**at, "part": part}),
            Step(
                kind="response.refusal.delta",
                fields={**at, "delta": refusal},
                tokens=1,
                padded=True,
            ),
            Step(kind="response.refusal.done", fields={**at, "refusal": refusal}),
            Step(kind="response.content_part.done", fields={**at, "part": full}),
        ],
    )


def _reasoning(reply: Reply) -> Item:
    text = "".join(reply.answer.reasoning)
    head: Json = {"id": mint("rs_", seed=reply.call_seed, length=48), "type": "reasoning"}
    if _ENCRYPTED in as_list(reply.body.get("include")):
        head["encrypted_content"] = encrypt(text)
    start = {**head, "summary": []}
    if not as_object(reply.body.get("reasoning")).get("summary"):
        return Item(whole=start, start=start, steps=[])
    at: Json = {"summary_index": 0}
    part = {"type": "summary_text", "text": ""}
    full = {"type": "summary_text", "text": text}
    steps = [Step(kind="response.reasoning_summary_part.added", fields={**at, "part": part})]
    steps += [
        Step(
            kind="response.reasoning_summary_text.delta",
            fields={**at, "delta": piece},
            tokens=1,
            padded=True,
        )
        for piece in reply.answer.reasoning
    ]
    steps.append(Step(kind="response.reasoning_summary_text.done", fields={**at, "text": text}))
    steps.append(Step(kind="response.reasoning_summary_part.done", fields={**at, "part": full}))
    return Item(whole={**head, "summary": [full]}, start=start, steps=steps)


def _call(reply: Reply, index: int, call: Call) -> Item:
    seed = reply.call_seed + bytes([index % 256])
    kind, prefix, said = ("function_call", "fc_", "arguments")
    events = "response.function_call_arguments"
    if call.free_text:
        kind, prefix, said = ("custom_tool_call", "ctc_", "input")
        events = "response.custom_tool_call_input"
    text = "".join(call.arguments)
    head: Json = {
        "id": mint(prefix, seed=seed, length=48),
        "type": kind,
        "call_id": mint("call_", seed=seed),
        "name": call.name,
    }
    steps = [
        Step(kind=f"{events}.delta", fields={"delta": piece}, tokens=1, padded=True)
        for piece in call.arguments
    ]
    steps.append(Step(kind=f"{events}.done", fields={said: text}))
    return Item(
        whole={**head, "status": _done(reply), said: text},
        start={**head, "status": "in_progress", said: ""},
        steps=steps,
    )


def _head(reply: Reply) -> Json:
    return {
        "id": mint("msg_", seed=reply.call_seed, length=48),
        "type": "message",
        "role": "assistant",
    }


def _done(reply: Reply) -> str:
    return "incomplete" if reply.answer.finish in ("length", "content_filter") else "completed"
