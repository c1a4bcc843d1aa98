"""docs/errors.md: every code of an error with its status, cause, what became of money, remedy, and whether to retry."""

from collections.abc import Iterator

from gwctl.errors import REMEDIES, exit_code_of
from gwd.core.errors import Again, GatewayError, Money, UpstreamRefused
from tools.pages.markdown import page as whole
from tools.pages.markdown import table

_MONEY: dict[Money, str] = {
    "none": "no",
    "released": "no, the hold was given back",
    "received": "only for what was received",
}
_AGAIN: dict[Again, str] = {
    "never": "no, change the request",
    "cured": "after the remedy",
    "later": "yes, later",
}

_INTRODUCTION = """\
An error answers with its status and a body that names `code`, `message`, `param` (the field, where it is about one) and
`metadata`; the `x-request-id` header finds it in the log.

```json
{"error": {"type": "invalid_request_error", "code": "invalid_value", "message": "`temperature` must be …",
           "param": "temperature", "status": 400, "metadata": {}}}
```

`/messages` answers in its own shape, with the code at `error.details.error_code`. Inside a stream whose status line has
gone out the error is the last event, with the same code; a responses stream names it as its clients know it
(`insufficient_quota`, `server_is_overloaded`, `invalid_prompt`, `server_error`) and keeps ours beside it.

**Did money move?** "no" means that no credit was held. "only for what was received" means: the hold was given back in
full, unless an answer had begun; then exactly the part that reached the client is charged, and
`GET /generation?id=` shows it. A whole (not streamed) answer that ends in an error costs nothing.

**Try again?** "yes, later" carries `retry-after` where the time is known. A conflict says `x-should-retry: false`, so
that SDKs do not repeat it by themselves."""

_EPILOGUE = """\
## A vendor's own refusal

What a vendor refuses about the request itself is passed on with the vendor's status and message (anything that looks
like a credential removed) and `metadata.provider_code`: `context_length_exceeded` and `content_policy_violation` where
the vendor says so, `request_too_large` for its 413, `unprocessable` for its 422, else `invalid_request`. A 529 is
answered as 529 `overloaded` where the client allowed no fallbacks."""


def page() -> str:
    """The page."""
    rows = [
        (
            f"`{code}`",
            str(status),
            str(kind.__doc__).split("\n\n")[0],
            _MONEY[kind.money],
            _remedy(kind, code),
            _AGAIN[kind.again],
            str(exit_code_of(status)),
        )
        for code, status, kind in codes()
    ]
    titles = ("code", "status", "cause", "did money move?", "remedy", "try again?", "exit of gwctl")
    return whole("Errors", _INTRODUCTION, table(titles, rows), _EPILOGUE)


def codes() -> Iterator[tuple[str, int, type[GatewayError]]]:
    """Each code once, with its status and the class that says its remedy, in the order of the classes."""
    seen = set()
    for kind in classes():
        if "remedy" not in vars(kind):
            continue
        if kind is UpstreamRefused:
            known = [(code, status) for status, code in kind.codes.items()]
        else:
            known = [(kind.code, kind.status)]
        for code, status in known:
            if code not in seen:
                seen.add(code)
                yield code, status, kind


def classes(kind: type[GatewayError] = GatewayError) -> Iterator[type[GatewayError]]:
    """Those of the tree that stand in its own file; others only say more about one case."""
    for child in kind.__subclasses__():
        if child.__module__ == GatewayError.__module__:
            yield child
            yield from classes(child)


def _remedy(kind: type[GatewayError], code: str) -> str:
    command = REMEDIES.get(code)
    return f"{kind.remedy} <br>gwctl says: {command}" if command else kind.remedy
