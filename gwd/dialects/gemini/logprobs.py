"""Token probabilities from the form that travels between formats to `logprobsResult`."""

from collections.abc import Iterable
from typing import Any

Json = dict[str, Any]


def logprobs_result(extras: Iterable[Json]) -> Json | None:
    """The tokens of these pieces with their alternatives; None where there are none."""
    tokens = [
        token
        for extra in extras
        for token in (extra.get("logprobs") or {}).get("content") or ()
        if isinstance(token, dict)
    ]
    if not tokens:
        return None
    return {
        "chosenCandidates": [_candidate(token) for token in tokens],
        "topCandidates": [
            {"candidates": [_candidate(top) for top in token.get("top_logprobs") or ()]}
            for token in tokens
        ],
    }


def _candidate(token: Json) -> Json:
    return {"token": token.get("token"), "logProbability": token.get("logprob")}
