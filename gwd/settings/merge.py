"""Settings made whole: sources merged, paths absolute, addresses derived, the rules between settings checked."""

import codecs
import ipaddress
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from gwd.core.errors import InvalidValue
from gwd.core.text_file import NotUtf8Error, decode
from gwd.credentials import references
from gwd.settings.sections import (
    KEYRING_CREDENTIAL,
    SECTIONS,
    Otel,
    Server,
    Settings,
    Smtp,
    StoreFiles,
    Upstream,
    Webhooks,
)
from gwd.settings.source import RawValue, SettingsError, from_environment, from_file, section_of

API_PATH: Final = "/api/v1"
UNIX: Final = "unix"
PAGE_PATH: Final = "/app"
_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9-]{1,64}")
LOCK_NAME: Final = "gwd.lock"

_PREFIX: Final = re.compile(r"(?:/[A-Za-z0-9._~-]+)+")

S = TypeVar("S", bound=Struct)


class _Places(Struct, frozen=True):
    """Where each setting was given, so that a mistake is looked for there and not in the file."""

    config: Path
    given: Mapping[str, Mapping[str, RawValue]]

    def wrong(self, section: str, key: str, what: str) -> SettingsError:
        if key in self.given[section]:
            return SettingsError(f"{self.given[section][key].place}: {what}")
        return SettingsError(f"{self.config}: [{section}] {key}: {what}")


def load(
    config_path: Path, environ: Mapping[str, str], host: str | None = None, port: int | None = None
) -> Settings:
    """The node's settings; `host` and `port` are the command line's and beat all. Raises SettingsError."""
    named = config_path.is_file() or config_path.suffix == ".toml"
    config = (config_path if named else config_path / "gwd.toml").absolute()
    given = from_file(config)
    for (section, key), value in from_environment(environ).items():
        given[section][key] = value
    for key, argument in (("host", host), ("port", port)):
        if argument is not None:
            given["server"][key] = RawValue(f"--{key}", argument, text=False)
    made: dict[str, Any] = {name: section_of(name, given[name]) for name in SECTIONS}
    places = _Places(config, given)
    made["server"] = _complete_server(made["server"], places)
    _check_upstream(upstream := _absolute(made["upstream"], config, "ca_file"), places)
    made["upstream"] = upstream
    made["backup"] = _absolute(made["backup"], config, "directory")
    _check_webhooks(made["webhooks"], places)
    _check_smtp(made["smtp"], places)
    _check_otel(made["otel"], places)
    files: StoreFiles = made["store"]
    return Settings(
        config=config,
        directory=config.parent,
        database=config.parent / files.database,
        lock=config.parent / LOCK_NAME,
        revocations=(config.parent / files.database).with_suffix(".revocations"),
        keyring=_handed_over(environ) or config.parent / files.keyring,
        keyring_is_handed_over=_handed_over(environ) is not None,
        **made,
    )


def smtp_password(settings: Settings, environ: Mapping[str, str]) -> str | None:
    """The mail password, None without a login. Raises SettingsError if its reference leads nowhere or is empty."""
    if not settings.smtp.password_ref:
        return None
    try:
        return references.resolve(settings.smtp.password_ref, environ)
    except references.UnresolvedReferenceError as error:
        known = from_environment(environ).get(("smtp", "password_ref"))
        place = known.place if known else f"{settings.config}: [smtp] password_ref"
        raise SettingsError(f"{place}: {error}; set it or remove it") from None


def otel_headers(settings: Settings, environ: Mapping[str, str]) -> dict[str, str]:
    """The collector's headers with their values. Raises SettingsError if a reference leads nowhere or is empty."""
    found = {}
    for header in settings.otel.headers:
        name, _, reference = header.partition("=")
        try:
            found[name] = references.resolve(reference, environ)
        except references.UnresolvedReferenceError as error:
            known = from_environment(environ).get(("otel", "headers"))
            place = known.place if known else f"{settings.config}: [otel] headers"
            raise SettingsError(f"{place}: {error}; set it or remove it") from None
    return found


def _complete_server(server: Server, places: _Places) -> Server:
    server = _absolute(_absolute(server, places.config, "tls_cert"), places.config, "tls_key")
    server = _absolute(server, places.config, "unix_socket")
    if bool(server.tls_cert) != bool(server.tls_key):
        missing = "tls_key" if server.tls_cert else "tls_cert"
        raise places.wrong("server", missing, "TLS needs both tls_cert and tls_key; set it too")
    for key in ("tls_cert", "tls_key"):
        _check_file(places, "server", key, getattr(server, key))
    if not (server.tls_cert or _is_loopback(server.host) or server.allow_plain_http):
        raise places.wrong(
            "server",
            "host",
            f"{server.host} is not a loopback address and there is no TLS; set tls_cert and tls_key, or "
            "allow_plain_http = true if a proxy in front adds TLS",
        )
    if server.metrics_port == server.port and _overlap(server.host, server.metrics_host):
        raise places.wrong(
            "server",
            "metrics_port",
            f"{server.port} is the port of the API too; choose another, or 0 for no separate listener",
        )
    _check_proxies_in_front(server, places)
    base_url = server.base_url or _derived_url(server) + server.path_prefix + API_PATH
    _check_url(places, "server", "base_url", base_url)
    parts = urlsplit(base_url)
    beside = f"{parts.scheme}://{parts.netloc}{_beside(parts.path)}"
    app_url = server.app_url or beside + (PAGE_PATH if server.page else "")
    _check_url(places, "server", "app_url", app_url)
    return msgspec.structs.replace(
        server, base_url=base_url.rstrip("/"), app_url=app_url.rstrip("/")
    )


def _beside(api_path: str) -> str:
    """What a proxy puts before the node's own paths."""
    return api_path.rstrip("/").removesuffix("/v1").removesuffix("/api")


def _derived_url(server: Server) -> str:
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(server.host, server.host)  # noqa: S104
    shown = f"[{host}]" if ":" in host else host
    return f"{'https' if server.tls_cert else 'http'}://{shown}:{server.port}"


def _check_proxies_in_front(server: Server, places: _Places) -> None:
    for proxy in server.trusted_proxies:
        _check_trusted(proxy, places)
    if server.proxy_protocol and not server.trusted_proxies:
        raise places.wrong(
            "server",
            "proxy_protocol",
            "nobody's header would count; name the proxies in trusted_proxies",
        )
    if server.proxy_protocol and server.tls_cert:
        raise places.wrong(
            "server",
            "proxy_protocol",
            "its header would come before TLS; let the proxy end TLS, and remove tls_cert and tls_key",
        )
    if server.path_prefix and not _PREFIX.fullmatch(server.path_prefix):
        raise places.wrong(
            "server",
            "path_prefix",
            f"{server.path_prefix!r} is no path; write one as /gw, without a slash at its end",
        )


def _check_trusted(proxy: str, places: _Places) -> None:
    if proxy == UNIX:
        return
    try:
        network = ipaddress.ip_network(proxy)
    except ValueError as error:
        raise places.wrong(
            "server", "trusted_proxies", f"{error}; write 10.0.0.5, 10.0.0.0/8 or {UNIX}"
        ) from None
    if network.prefixlen == 0:
        raise places.wrong(
            "server", "trusted_proxies", f"{proxy} is everybody; name the proxies' own addresses"
        )


def _overlap(one: str, other: str) -> bool:
    """Whether two listeners on one port would get in each other's way."""
    return one == other or "localhost" in (one, other) or {"0.0.0.0", "::"} & {one, other} != set()  # noqa: S104


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _check_upstream(upstream: Upstream, places: _Places) -> None:
    if upstream.proxy:
        _check_proxy(places, upstream.proxy)
    _check_file(places, "upstream", "ca_file", upstream.ca_file)


def _check_webhooks(webhooks: Webhooks, places: _Places) -> None:
    for network in webhooks.allow_networks:
        try:
            ipaddress.ip_network(network)
        except ValueError as error:
            raise places.wrong("webhooks", "allow_networks", f"{error}; write 10.0.0.0/8") from None


def _check_smtp(smtp: Smtp, places: _Places) -> None:
    if smtp.password_ref:
        try:
            references.check(smtp.password_ref)
        except InvalidValue:
            raise places.wrong(
                "smtp", "password_ref", "write env:NAME or file:/absolute/path"
            ) from None
    if bool(smtp.username) != bool(smtp.password_ref):
        missing = "password_ref" if smtp.username else "username"
        raise places.wrong("smtp", missing, "a login needs username and password_ref; set it too")
    if smtp.host and "@" not in smtp.from_:
        raise places.wrong("smtp", "from", "mail needs a sender; write gateway@example.com")


def _check_otel(otel: Otel, places: _Places) -> None:
    if otel.endpoint:
        _check_url(places, "otel", "endpoint", otel.endpoint)
    for header in otel.headers:
        name, _, reference = header.partition("=")
        try:
            references.check(reference)
        except InvalidValue:
            name = ""
        if not _HEADER_NAME.fullmatch(name):
            raise places.wrong(
                "otel",
                "headers",
                "a header is not NAME=REFERENCE; write authorization=env:NAME or x-key=file:/absolute/path",
            )


def _check_url(places: _Places, section: str, key: str, url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise places.wrong(section, key, f"{url!r} is no address; write https://host[:port][/path]")


def _check_proxy(places: _Places, address: str) -> None:
    """An address that may hold a password is not repeated."""
    try:
        parts = urlsplit(address)
        is_place = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        is_address = is_place and not (parts.path.strip("/") or parts.query or parts.fragment)
    except ValueError:
        is_address = False
    if not is_address:
        raise places.wrong(
            "upstream",
            "proxy",
            f"{'it' if '@' in address else repr(address)} is no address of a proxy; write "
            "http://[user:password@]host:port, with user and password percent-encoded",
        )


def _check_file(places: _Places, section: str, key: str, path: str) -> None:
    if not path:
        return
    if not Path(path).is_file():
        raise places.wrong(section, key, f"{path} is not a file; write the path of a PEM file")
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise places.wrong(section, key, f"{path} cannot be read: {error.strerror}") from None
    try:
        is_pem = "-----BEGIN " in decode(content)
    except NotUtf8Error:
        is_pem = False
    if not is_pem:
        raise places.wrong(section, key, f"{path} is no PEM file in UTF-8; save it as one")
    if content.startswith(codecs.BOM_UTF8):
        # The library would pass over the line with the mark, and so over the first certificate.
        raise places.wrong(
            section, key, f"{path} begins with a byte order mark; save it as UTF-8 without one"
        )


def _absolute(section: S, config: Path, key: str) -> S:
    path = getattr(section, key)
    return msgspec.structs.replace(section, **{key: str(config.parent / path)}) if path else section


def _handed_over(environ: Mapping[str, str]) -> Path | None:
    """The key ring as a service manager hands it over, for one run of the service."""
    credentials = environ.get("CREDENTIALS_DIRECTORY")
    if credentials and (credential := Path(credentials) / KEYRING_CREDENTIAL).exists():
        return credential
    return None
