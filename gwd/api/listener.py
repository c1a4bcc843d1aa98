"""One socket and the application behind it, with the guard in between; a Unix socket may lead there as well."""

import asyncio
import socket
import ssl
from functools import partial
from pathlib import Path
from typing import Any, Final

from sanic import Sanic

from gwd.api.http_guard import HEAD_S, Front, GuardedProtocol, IntroducedProtocol
from gwd.settings import SettingsError

BACKLOG: Final = 2_048
UNIX_MODE: Final = 0o660


class Listener:
    """`open` binds and serves; `close` ends the socket and every connection.

    A socket that the service manager handed over outlives the process: after `leave`, connections wait in it for the
    next one.
    """

    def __init__(self, app: Sanic[Any, Any], front: Front, *, introduced: bool = False) -> None:
        """`introduced` says that trusted proxies begin with a PROXY protocol header."""
        self.app = app
        self.front = front
        self.port = 0
        self._protocol = IntroducedProtocol if introduced else GuardedProtocol
        self._server: Any = None
        self._unix_server: asyncio.Server | None = None
        self._unix_path: Path | None = None
        app.ctx.front = front

    async def open(
        self,
        host: str,
        port: int,
        tls: ssl.SSLContext | None = None,
        handed: socket.socket | None = None,
    ) -> None:
        """Serve on an address, or on the socket that was handed over; port 0 takes a free one."""
        listener = handed or _bound(host, port)
        try:
            self.port = listener.getsockname()[1]
            self._server = await self.app.create_server(
                sock=listener,
                protocol=self._protocol,
                backlog=BACKLOG,
                access_log=False,
                return_asyncio_server=True,
                ssl=tls,
                asyncio_server_kwargs={"ssl_handshake_timeout": HEAD_S} if tls else None,
            )
        except BaseException:
            listener.close()
            raise
        await self._server.startup()
        await self._server.start_serving()

    async def open_unix(self, path: Path) -> None:
        """Serve on a Unix socket as well, for the owner of the file and its group."""
        listener = _bound_unix(path)
        loop = asyncio.get_running_loop()
        protocol = partial(
            self._protocol, loop=loop, app=self.app, connections=self._server.connections
        )
        self._unix_server = await loop.create_unix_server(protocol, sock=listener, backlog=BACKLOG)
        self._unix_path = path

    def leave(self) -> None:
        """Accept nothing more; what is open ends with its next answer."""
        self.front.is_leaving = True
        self._server.close()
        self._close_unix()

    def _close_unix(self) -> None:
        if self._unix_server is not None and self._unix_path is not None:
            self._unix_server.close()
            self._unix_path.unlink(missing_ok=True)
            self._unix_server = None

    def close_idle(self) -> None:
        """End the connections on which nothing is asked."""
        for connection in list(self._server.connections):
            connection.close_if_idle()

    def close(self) -> None:
        """No new connections; the open ones end."""
        if self._server is not None:
            self._server.close()
            self._close_unix()
            for connection in list(self._server.connections):
                connection.close()
        Sanic.unregister_app(self.app)


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except BaseException:
        listener.close()
        raise
    return listener


def _bound_unix(path: Path) -> socket.socket:
    if path.is_socket():
        path.unlink()  # of a process that was killed: one has the directory at a time
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(str(path))
        path.chmod(UNIX_MODE)
    except OSError as error:
        listener.close()
        what = error.strerror or error
        raise SettingsError(
            f"[server] unix_socket: {path}: {what}; name another file, in a directory of the service's own"
        ) from None
    return listener


def tls_context(certificate: str, key: str) -> ssl.SSLContext | None:
    """The rules of TLS towards clients; None without a certificate."""
    if not certificate:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate, key)
    return context
