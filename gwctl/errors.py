"""Failures a person can act on: what happened, why, what to do, and the exit code a script sees."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

DONE = 0
FAILED = 1
USAGE = 2
NOT_FOUND = 3
NOT_ALLOWED = 4
REFUSED_FOR_MONEY = 5
RATE_LIMITED = 6
UNREACHABLE = 7
CHANGES = 8
OUTCOME_UNKNOWN = 9
INTERRUPTED = 130

EXIT_CODES: tuple[tuple[int, str, str], ...] = (
    (DONE, "done", "the command did what was asked"),
    (FAILED, "failed", "the gateway or gwctl could not do it"),
    (USAGE, "wrong usage", "an argument is wrong, or a confirmation is missing; nothing was done"),
    (NOT_FOUND, "not found", "no such record (404)"),
    (
        NOT_ALLOWED,
        "not logged in or not allowed",
        "no key, a wrong key or too small a role (401, 403)",
    ),
    (REFUSED_FOR_MONEY, "refused for money", "balance, key limit or budget (402)"),
    (RATE_LIMITED, "rate limited", "try again after the time named in the message (429)"),
    (UNREACHABLE, "gateway not reachable", "no connection, or a proxy answered in its place"),
    (CHANGES, "changes found", "`diff` or `--dry-run` found something to change"),
    (
        OUTCOME_UNKNOWN,
        "outcome unknown",
        "a change was sent and its answer was lost: do not repeat it blindly, but as the message says",
    ),
    (INTERRUPTED, "interrupted", "Ctrl-C"),
)

_BY_STATUS = {
    401: NOT_ALLOWED,
    402: REFUSED_FOR_MONEY,
    403: NOT_ALLOWED,
    404: NOT_FOUND,
    429: RATE_LIMITED,
}


def exit_code_of(status: int) -> int:
    """How a command ends whose request was answered with this status."""
    return _BY_STATUS.get(status, FAILED)


# A code may arrive inside a stream, where no status line is left to tell the kind of failure.
_STATUS_BY_CODE = {
    "insufficient_credits": 402,
    "key_limit_exceeded": 402,
    "budget_exceeded": 402,
    "rate_limit_exceeded": 429,
    "endpoints_throttled": 429,
    "too_many_in_flight": 429,
    "model_not_found": 404,
    "model_retired": 404,
    "no_eligible_endpoints": 404,
}

REMEDIES = {
    "missing_api_key": "gwctl login, or set GWCTL_KEY",
    "invalid_api_key": "gwctl login; gwctl config list --show-origin tells which key is used",
    "key_disabled": "gwctl key enable NAME, with another management key",
    "key_expired": "gwctl login with a key that is still valid",
    "wrong_key_type": "gwm_… keys manage, gwi_… keys are for chat and embed: gwctl whoami",
    "insufficient_role": "ask an owner or admin, or use a key with a higher role: gwctl whoami",
    "insufficient_credits": "gwctl credit purchase AMOUNT, or ask for less with --max-tokens",
    "key_limit_exceeded": "gwctl key update NAME --limit AMOUNT",
    "rate_limit_exceeded": "wait, then try again; gwctl key update NAME --rpm N changes the limit",
    "endpoints_throttled": "wait, then try again; gwctl route explain MODEL shows who throttles and until when",
    "model_not_found": "gwctl model list",
    "model_retired": "use the successor, or turn forwarding on: "
    "gwctl org settings forward_retired_models=true",
    "model_not_allowed": "gwctl key update NAME --model SLUG",
    "no_eligible_endpoints": "gwctl route explain MODEL tells why each endpoint was left out",
    "price_not_accepted": "add --accept if that is meant",
    "already_rotated": "gwctl key list shows the newer key; rotate that one",
    "idempotency_conflict": "use a new --idempotency-key for a different request",
    "ledger_quarantined": "gwctl ledger verify lists the differences",
    "draining": "the gateway is shutting down; try again in a moment",
    "internal_error": "the gateway's log names this request id",
    "conflict": "look at the record as it is now with `show`, then try again",
    "upstream_error": "gwctl endpoint health and gwctl provider test SLUG show who fails and why",
    "upstream_unavailable": "gwctl endpoint health and gwctl provider test SLUG show who fails",
    "no_available_endpoint": "gwctl route explain MODEL shows who rests and until when; --fallback MODEL helps",
    "overloaded": "wait, then try again",
    "too_many_in_flight": "wait for the others, or gwctl key update NAME --in-flight N",
    "storage_unavailable": "gwctl doctor, then the node's disk and its log",
    "organization_suspended": "ask the operator of the gateway",
}

# What takes the place of a second record of that kind.
_INSTEAD = {
    "/workspaces": "gwctl workspace update changes it; workspace create --if-absent accepts it",
    "/catalog/models": "gwctl model update changes it; model add --if-absent accepts it",
    "/catalog/providers": "gwctl provider list shows it",
    "/catalog/endpoints": "gwctl endpoint list shows it; another one needs another --tag",
    "/organization/invitations": "gwctl member list and gwctl member invitations show who is in; "
    "gwctl member revoke EMAIL ends an open invitation",
    "/budgets": "gwctl budget set changes it",
    "/organizations": "gwctl org list shows it",
}


@dataclass(eq=False)
class CommandError(Exception):
    """One refusal or error, ready for a terminal or as JSON."""

    what: str
    exit_code: int = FAILED
    code: str = "failed"
    why: str = ""
    do: str = ""
    request_id: str = ""

    def __str__(self) -> str:
        return self.what


def usage(what: str, *, do: str = "", code: str = "usage") -> CommandError:
    return CommandError(what, exit_code=USAGE, code=code, do=do)


def not_found(noun: str, reference: str, *, do: str = "") -> CommandError:
    return CommandError(
        f"no {noun} is called {reference}",
        exit_code=NOT_FOUND,
        code="not_found",
        do=do or f"gwctl {noun} list",
    )


def outcome_unknown(
    method: str, path: str, why: str, *, key: str | None, compared: bool, request_id: str = ""
) -> CommandError:
    """A change whose answer was lost: it may have been made, so a script must not just make it again."""
    if compared:
        do = "run the same command again: it looks at what is there and makes only what is missing"
    elif key is not None:
        do = f"repeat the command with --idempotency-key {key}: it then counts once"
    else:
        do = "look at the record with `show` first"
    return CommandError(
        f"it is not known whether {method} {path} was done",
        exit_code=OUTCOME_UNKNOWN,
        code="outcome_unknown",
        why=why,
        do=do,
        request_id=request_id,
    )


def from_reply(
    status: int, body: object, headers: Mapping[str, str], *, method: str, path: str
) -> CommandError:
    """The failure that an error reply of the API describes."""
    request_id = str(headers.get("x-request-id", ""))
    error = body.get("error") if isinstance(body, dict) else None
    if not isinstance(error, dict):
        if status in (502, 503, 504):
            return CommandError(
                f"the gateway did not answer; something in front of it said {status}",
                exit_code=UNREACHABLE,
                code="unreachable",
                why=f"{method} {path} answered {status} without the gateway's error body",
                do="check --url and the proxy; `gwctl config list --show-origin`",
                request_id=request_id,
            )
        return CommandError(
            f"{method} {path} answered {status}",
            exit_code=exit_code_of(status),
            code=f"http_{status}",
            why="the reply is not the gateway's error body",
            do="check that the URL ends in /api/v1: gwctl config get url",
            request_id=request_id,
        )
    return from_error(
        error, status=status, headers=headers, request_id=request_id, method=method, path=path
    )


def from_error(
    error: Mapping[str, Any],
    *,
    status: int | None = None,
    headers: Mapping[str, str] | None = None,
    request_id: str = "",
    method: str = "",
    path: str = "",
) -> CommandError:
    """The failure that one `error` object describes, from a reply or from inside a stream."""
    code = str(error.get("code") or error.get("type") or "failed")
    if code == "not_found" and "base path" in str(error.get("message")):
        code = "no_such_route"
    metadata = error.get("metadata") if isinstance(error.get("metadata"), dict) else {}
    assert isinstance(metadata, dict)
    status = status or _STATUS_BY_CODE.get(code, 500)
    message = str(error.get("message") or f"{method} {path} failed").rstrip(".")
    if code == "no_such_route":
        message = f"the gateway has no route {method} {path}"
    prefix = "refused, " if status == 402 and not message.lower().startswith("refused") else ""
    message = message[:1].lower() + message[1:] if prefix else message
    return CommandError(
        prefix + message,
        exit_code=exit_code_of(status),
        code=code,
        why=_reason(code, error, metadata, headers or {}),
        do=_remedy(code, message, metadata, method, path),
        request_id=request_id,
    )


def _reason(
    code: str, error: Mapping[str, Any], metadata: Mapping[str, Any], headers: Mapping[str, str]
) -> str:
    parts = [code]
    if error.get("param"):
        parts.append(f"field {error['param']}")
    resets = metadata.get("budget_resets_at") or metadata.get("limit_resets_at")
    if resets:
        parts.append(f"resets {str(resets).replace('T', ' ')[:16]} UTC")
    retry = headers.get("retry-after") or metadata.get("retry_after")
    if retry:
        parts.append(f"retry after {retry} s")
    if metadata.get("available") is not None and metadata.get("required") is not None:
        parts.append(f"needs ${metadata['required']}, has ${metadata['available']}")
    if metadata.get("suggestions"):
        parts.append("nearest: " + ", ".join(str(name) for name in metadata["suggestions"]))
    if metadata.get("excluded_by"):
        parts.append("excluded by " + ", ".join(str(name) for name in metadata["excluded_by"]))
    if metadata.get("successor"):
        parts.append(f"successor {metadata['successor']}")
    return ", ".join(parts)


def _remedy(code: str, message: str, metadata: Mapping[str, Any], method: str, path: str) -> str:
    if code == "budget_exceeded":
        scope = metadata.get("budget_scope", "organization")
        interval = metadata.get("budget_interval", "monthly")
        target = metadata.get(
            "budget_subject", scope if scope == "organization" else f"{scope}:NAME"
        )
        return f"gwctl budget set {target} --{interval} AMOUNT; gwctl budget list shows them all"
    if metadata.get("reason") == "no_credential":
        slug = metadata.get("provider", "PROVIDER")
        return f"mend what it names, or give it another key: gwctl provider secret {slug}"
    if metadata.get("reason") == "no_endpoint":
        return "gwctl endpoint list shows what there is; gwctl endpoint add makes one"
    if code == "no_available_endpoint" and "no_credential" in metadata.get("excluded_by", ()):
        return "gwctl doctor shows which key and why; gwctl provider secret PROVIDER sets it"
    if code in REMEDIES:
        return REMEDIES[code]
    if code == "already_exists":
        taken = "that one is taken; choose another"
        return _INSTEAD.get(path, taken) if method == "POST" else taken
    if code == "no_such_route":
        return "check the URL: gwctl config get url"
    return ""
