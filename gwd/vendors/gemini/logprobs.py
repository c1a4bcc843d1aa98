"""Token probabilities from Gemini's form to the one that travels between formats, which is the chat format's."""

from typing import Any

Json = dict[str, Any]


def logprobs_of(result: object) -> Json | None:
    """`{"content": […]}` for a candidate's logprobsResult; None where it holds nothing."""
    chosen = _list(result, "chosenCandidates")
    tops = _list(result, "topCandidates")
    content = []
    for place, token in enumerate(chosen):
        one = _token(token)
        if one is None:
            continue
        around = _list(tops[place], "candidates") if place < len(tops) else []
        one["top_logprobs"] = [found for top in around if (found := _token(top)) is not None]
        content.append(one)
    return {"content": content} if content else None


def _token(token: object) -> Json | None:
    if not isinstance(token, dict) or not isinstance(token.get("token"), str):
        return None
    text = token["token"]
    # A probability of one is a logarithm of zero, and the vendor leaves zeros out.
    logprob = token.get("logProbability", 0.0)
    if logprob is not None and type(logprob) not in (int, float):
        return None
    return {"token": text, "logprob": logprob, "bytes": list(text.encode("utf-8", "replace"))}


def _list(value: object, name: str) -> list[Any]:
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, list) else []
