"""The HTTP client: one request in, parsed JSON or a CommandError out; streams for chat."""

import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import monotonic
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from gwctl import connection_trouble, jsontext
from gwctl.errors import (
    NOT_ALLOWED,
    UNREACHABLE,
    CommandError,
    from_reply,
    outcome_unknown,
    usage,
)
from gwctl.spinner import waiting
from gwctl.text import mask, mask_keys

if TYPE_CHECKING:
    import httpx

_SECRET_FIELDS = {"key", "secret", "signing_secret", "management_key", "token", "accept_url"}
_SECRET_HEADERS = {"authorization", "x-api-key", "cookie", "proxy-authorization"}


def own_version() -> str:
    try:
        return version("gwd")
    except PackageNotFoundError:
        return _checkout_version()


def _checkout_version() -> str:
    """The version of a checkout that is run without being installed."""
    import tomllib

    project = Path(__file__).resolve().parent.parent / "pyproject.toml"
    try:
        return str(tomllib.loads(project.read_text(encoding="utf-8"))["project"]["version"])
    except (OSError, KeyError, ValueError):
        return "unknown"


class Look(NamedTuple):
    """Moments of the monotonic clock at which the pieces of a body came; until when the certificate is good."""

    pieces_s: list[float]
    ends: datetime | None


class Gateway:
    """The gateway as gwctl sees it: a base address, a key and requests."""

    def __init__(
        self,
        url: str,
        *,
        key: str,
        timeout_s: float,
        debug: Callable[[str], None] | None = None,
        show_waiting: bool = True,
        ca_file: str = "",
    ) -> None:
        self.url = url
        self.key = key
        self.timeout_s = timeout_s
        self.debug = debug
        self.show_waiting = show_waiting
        self.ca_file = ca_file
        self.repeat_with: str | None = None
        """The idempotency key with which the running command can be repeated, where it is not that of one request."""
        self.compares = False
        """Whether the running command looks at what is there, so that it can simply be run again."""
        self.replayed = False
        """Whether the last answer was that of an earlier request with the same idempotency key."""
        self._client: httpx.Client | None = None

    def get(self, path: str, query: Mapping[str, Any] | None = None) -> Any:
        return self.request("GET", path, query=query)

    def probe(self, address: str) -> str:
        """What a health page says, whether JSON or plain words; an error status raises."""
        reply = self._send(self._build("GET", address, None, None, {}, None))
        said = reply.text.strip()
        if reply.status_code == 503 and said == "not ready":
            raise CommandError(
                "the gateway takes no requests now",
                code="not_ready",
                why=said,
                do="gwctl doctor tells why",
            )
        if reply.is_success and connection_trouble.is_a_web_page(reply.headers, reply.content):
            raise connection_trouble.a_web_page(self.url, reply.status_code, "GET", address)
        if not reply.is_success:
            self._parsed(reply, "GET", address)
        return said

    def post(
        self,
        path: str,
        body: object = None,
        *,
        idempotency_key: str | None = None,
        patience_s: float = 0,
    ) -> Any:
        """POST with an Idempotency-Key, so that sending it twice cannot make two."""
        headers = {"idempotency-key": idempotency_key or f"gwctl-{uuid.uuid4()}"}
        body = {} if body is None else body
        return self.request("POST", path, body=body, headers=headers, patience_s=patience_s)

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        key: str | None = None,
        patience_s: float = 0,
    ) -> Any:
        """The parsed body of a good reply; anything else is a CommandError.

        `patience_s` is how long this request may take where that is more than the usual timeout.
        """
        request = self._build(method, path, query, body, dict(headers or {}), key, patience_s)
        with waiting(f"{method} {path}", show=self.show_waiting):
            reply = self._send(request)
        return self._parsed(reply, method, path)

    @contextmanager
    def stream(
        self, path: str, body: object, *, key: str, headers: Mapping[str, str]
    ) -> Iterator[Iterator[bytes]]:
        """POST and hand over the reply's bytes as they arrive."""
        httpx = _httpx()
        request = self._build("POST", path, None, body, dict(headers), key)
        try:
            with waiting(f"POST {path}", show=self.show_waiting):
                reply = self._open().send(request, stream=True)
            try:
                if not reply.is_success:
                    reply.read()
                    self._show_reply(reply)
                    self._parsed(reply, "POST", path)
                self._show_reply(reply, body=False)
                yield reply.iter_bytes()
            finally:
                reply.close()
        except httpx.TransportError as error:
            raise self._unreachable(error) from None

    def look(self, address: str) -> Look:
        """GET a stream to its end without a key: when its pieces came, and until when the certificate is good."""
        httpx = _httpx()
        request = self._build("GET", address, None, None, {}, "")
        try:
            with waiting(f"GET {address}", show=self.show_waiting):
                reply = self._open().send(request, stream=True)
                try:
                    if not reply.is_success:
                        reply.read()
                        self._parsed(reply, "GET", address)
                    ends = _ends(reply.extensions.get("network_stream"))
                    return Look([monotonic() for piece in reply.iter_raw() if piece], ends)
                finally:
                    reply.close()
        except httpx.TransportError as error:
            raise self._unreachable(error) from None

    def _open(self) -> "httpx.Client":
        if self._client is None:
            httpx = _httpx()
            self._client = httpx.Client(
                timeout=self._timeout(self.timeout_s),
                headers={"user-agent": f"gwctl/{own_version()}", "accept": "application/json"},
                follow_redirects=False,
                **self._trust(),
            )
        return self._client

    def _trust(self) -> dict[str, Any]:
        """Whose certificates are taken; where nothing is said, what httpx takes."""
        if not self.ca_file or not self.url.startswith("https:"):
            return {}
        return {"verify": connection_trouble.trusting(_httpx().create_ssl_context(), self.ca_file)}

    def _timeout(self, seconds: float) -> Any:
        return _httpx().Timeout(seconds, connect=min(self.timeout_s, 10))

    def close(self) -> None:
        if self._client is not None:
            self._client.close()

    def _build(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None,
        body: object,
        headers: dict[str, str],
        key: str | None,
        patience_s: float = 0,
    ) -> "httpx.Request":
        credential = self.key if key is None else key
        if credential:
            if not credential.isascii() or not credential.isprintable():
                raise CommandError(
                    "the key holds characters that no key has",
                    exit_code=NOT_ALLOWED,
                    code="invalid_api_key",
                    do="gwctl config list --show-origin tells where it comes from",
                )
            headers["authorization"] = f"Bearer {credential}"
        content = None
        if body is not None:
            content = jsontext.dumps(body).encode()
            headers["content-type"] = "application/json"
        params = {k: _query_text(v) for k, v in (query or {}).items() if v is not None}
        url = f"{self.url}{path}" if path.startswith("/") else path
        timeout = self._timeout(max(self.timeout_s, patience_s))
        try:
            request = self._open().build_request(
                method, url, params=params, content=content, headers=headers, timeout=timeout
            )
        except (_httpx().InvalidURL, ValueError) as error:
            raise usage(
                f"{mask_keys(self.url)} is not an address: {mask_keys(str(error))}",
                do="gwctl config list --show-origin tells where it comes from",
            ) from None
        if self.debug is not None:
            self.debug(f"> {method} {mask_keys(str(request.url))}")
            for name, value in request.headers.items():
                self.debug(f"> {name}: {_masked_header(name, value)}")
            if content is not None:
                self.debug(f"> {masked_body(content)}")
        return request

    def _send(self, request: "httpx.Request") -> "httpx.Response":
        httpx = _httpx()
        try:
            reply = self._open().send(request)
        except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError) as error:
            # The connection broke and the answer is lost. Reading again is harmless, and so is
            # a POST that carries its Idempotency-Key.
            if request.method not in ("GET", "POST"):
                raise self._lost(request, error) from None
            try:
                reply = self._open().send(request)
            except httpx.TransportError as again:
                raise self._lost(request, again) from None
        except (httpx.ReadTimeout, httpx.WriteTimeout) as error:
            raise self._lost(request, error) from None
        except (httpx.TransportError, httpx.InvalidURL) as error:
            raise self._unreachable(error) from None
        self.replayed = reply.headers.get("idempotency-replayed") == "true"
        self._show_reply(reply)
        return reply

    def _lost(self, request: "httpx.Request", error: Exception) -> CommandError:
        """The request went out and no answer came back: a change may have been made all the same."""
        if not _changes(request):
            return self._unreachable(error)
        said = (
            mask_keys(str(error)) or f"no answer within {request.extensions['timeout']['read']:g} s"
        )
        return self._unknown(request, f"{type(error).__name__}: {said}")

    def _unknown(self, request: "httpx.Request", why: str, request_id: str = "") -> CommandError:
        own = request.headers.get("idempotency-key")
        return outcome_unknown(
            request.method,
            request.url.path,
            why,
            key=own and (self.repeat_with or own),
            compared=self.compares,
            request_id=request_id,
        )

    def _parsed(self, reply: "httpx.Response", method: str, path: str) -> Any:
        if connection_trouble.is_redirect(reply.status_code):
            location = reply.headers.get("location", "")
            asked = str(reply.request.url)
            raise connection_trouble.redirected(self.url, asked, reply.status_code, location, path)
        try:
            body = jsontext.loads(reply.content) if reply.content else None
        except ValueError:
            body = None if reply.is_success and not reply.content else _NOT_JSON
        if reply.status_code in _FROM_A_PROXY and not _is_ours(body) and _changes(reply.request):
            why = f"something in front of the gateway said {reply.status_code}"
            request_id = str(reply.headers.get("x-request-id", ""))
            raise self._unknown(reply.request, why, request_id)
        is_page = body is _NOT_JSON and connection_trouble.is_a_web_page(
            reply.headers, reply.content
        )
        if is_page and reply.status_code not in _FROM_A_PROXY:
            raise connection_trouble.a_web_page(self.url, reply.status_code, method, path)
        if not reply.is_success or body is _NOT_JSON:
            error = from_reply(reply.status_code, body, reply.headers, method=method, path=path)
            if error.code == "no_such_route" and path != _STATUS:
                connection_trouble.compare(error, own_version(), self._version())
            raise error
        return body

    def _version(self) -> str | None:
        """The gateway's version, where the key may see it."""
        try:
            found = self.get(_STATUS)
            return str(found["data"]["version"])
        except (CommandError, LookupError, TypeError):
            return None

    def _show_reply(self, reply: "httpx.Response", *, body: bool = True) -> None:
        if self.debug is None:
            return
        self.debug(f"< {reply.status_code} {reply.reason_phrase}")
        for name, value in reply.headers.items():
            self.debug(f"< {name}: {_masked_header(name, value)}")
        if body and reply.content:
            self.debug(f"< {masked_body(reply.content)}")

    def _unreachable(self, error: Exception) -> CommandError:
        if (found := connection_trouble.untrusted(self.url, error)) is not None:
            return found
        return CommandError(
            f"the gateway at {mask_keys(self.url)} cannot be reached",
            exit_code=UNREACHABLE,
            code="unreachable",
            why=f"{type(error).__name__}: {mask_keys(str(error)) or 'no details'}",
            do="is gwd running? gwctl config list --show-origin tells where the address comes from",
        )


def _ends(connection: Any) -> datetime | None:
    """When the certificate ends that this connection was made with; None without TLS."""
    import ssl  # only where it is asked for

    tls = connection.get_extra_info("ssl_object") if connection is not None else None
    found = tls.getpeercert() if tls is not None else None
    if not found:
        return None
    return datetime.fromtimestamp(ssl.cert_time_to_seconds(found["notAfter"]), UTC)


_NOT_JSON = object()
_STATUS = "/operator/status"
_FROM_A_PROXY = (502, 503, 504)
_ONLY_READ = ("/ledger/verify", "/analytics/query", "/test")


def _is_ours(body: object) -> bool:
    return isinstance(body, dict) and isinstance(body.get("error"), dict)


def _changes(request: "httpx.Request") -> bool:
    """Whether the request asks for something that must not be done twice unseen."""
    if request.method == "POST":
        path = request.url.path
        return "idempotency-key" in request.headers and not path.endswith(_ONLY_READ)
    return request.method in ("PATCH", "PUT", "DELETE")


def _httpx() -> Any:
    """httpx, imported when the first request is made: help and completion stay fast.

    Its own command line, which we do not use, would bring rich, click and pygments: half of what it costs.
    """
    if "httpx" not in sys.modules:
        unused = ModuleType("httpx._main")
        unused.main = lambda: None  # type: ignore[attr-defined]
        sys.modules.setdefault("httpx._main", unused)
    import httpx

    return httpx


def _query_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _masked_header(name: str, value: str) -> str:
    if name.lower() not in _SECRET_HEADERS:
        return mask_keys(value)
    scheme, _, credential = value.rpartition(" ")
    return f"{scheme} {mask(credential)}".strip()


def masked_body(content: bytes) -> str:
    """A body for --debug: secret fields and every gateway key in it are masked."""
    try:
        value = jsontext.loads(content)
    except ValueError:
        return mask_keys(content[:2000].decode("utf-8", "replace"))
    return mask_keys(jsontext.dumps(masked(value)))


def masked(value: Any) -> Any:
    """The value with the texts of secret fields masked, however deep they are.

    The address of a chat workspace is a secret, too; a body of a change does not say whose address it holds.
    """
    if isinstance(value, dict):
        is_chat = value.get("type", "chat") == "chat"
        return {
            name: mask(item)
            if isinstance(item, str) and (name in _SECRET_FIELDS or (name == "url" and is_chat))
            else masked(item)
            for name, item in value.items()
        }
    return [masked(item) for item in value] if isinstance(value, list) else value


def quote(segment: str) -> str:
    """A name as one path segment; the slash of a model slug stays."""
    from urllib.parse import quote as percent_encode

    # Clients and servers walk `.` and `..` as folders, so the request would reach another record.
    if not segment or any(part in ("", ".", "..") for part in segment.split("/")):
        raise usage(f"{segment!r} is not a name", do="give the name or id that `list` shows")
    return percent_encode(segment, safe="/~:@")


def sse_data(chunks: Iterator[bytes]) -> Iterator[str]:
    """The data of each server-sent event; comments are skipped, lines end at \\n or \\r\\n only."""
    pending = b""
    data: list[str] = []
    for chunk in chunks:
        pending += chunk
        *lines, pending = pending.split(b"\n")
        for raw in lines:
            line = raw.rstrip(b"\r")
            if line.startswith(b"data:"):
                data.append(line[5:].removeprefix(b" ").decode("utf-8", "replace"))
            elif not line and data:
                yield "\n".join(data)
                data = []
    if pending.startswith(b"data:"):
        data.append(pending[5:].strip().decode("utf-8", "replace"))
    if data:
        yield "\n".join(data)
