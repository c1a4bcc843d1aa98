"""Builds the node and closes it in reverse: the only place that knows every room.

`Node` order at start: lock, key ring, schema, recovery, a look at the books, then the socket. At the end:
no new requests, running ones may finish, the rest end in-band, every settlement is waited for, then the store closes.
"""

import asyncio
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gwd import __version__, ledger
from gwd.activity import service as activity
from gwd.alerts import node_alerts
from gwd.api import app as api
from gwd.api.auth import Authenticator
from gwd.api.http_guard import NO_PROXIES, Front
from gwd.api.listener import Listener, tls_context
from gwd.api.load import Load
from gwd.api.node import Node, NodeStatus
from gwd.api.outbound_rules import outbound_rules
from gwd.api.proxies import Proxies
from gwd.backups import Standing, directory, rhythm
from gwd.channels import ChannelSender, Mailer, MailServer
from gwd.core.clock import US_PER_S, Clock, SystemClock
from gwd.core.counters import Counters
from gwd.core.errors import Draining
from gwd.core.ids import mint
from gwd.core.node_clock import NodeClock
from gwd.core.trace_context import Tracing
from gwd.core.vitals import Vitals
from gwd.credentials import keyring
from gwd.credentials.ring_file import RingFile
from gwd.credentials.vault import Vault
from gwd.dialects.table import DIALECTS
from gwd.health import kept
from gwd.health.health import Health
from gwd.jobs import retention, service_manager
from gwd.jobs.backups import BACKUPS_S, BackupJob
from gwd.jobs.catalog_watch import CATALOG_WATCH_S, CatalogWatch
from gwd.jobs.clock import CLOCK_WATCH_S, ClockWatch
from gwd.jobs.content_log import CONTENT_LOG_S, ContentLogJob
from gwd.jobs.deliveries import DELIVERIES_S, DeliveryJob
from gwd.jobs.disk import WATCH_S, DiskWatch
from gwd.jobs.health import LOOK_S, HealthKeeper
from gwd.jobs.heartbeat import BEAT_S, Heartbeat
from gwd.jobs.lag import measure_lag
from gwd.jobs.loop import every
from gwd.jobs.memory import MEMORY_WATCH_S, MemoryWatch, allowed_bytes
from gwd.jobs.nightly import NightlyCheck
from gwd.jobs.node_watch import NODE_WATCH_S, NodeWatch
from gwd.jobs.raises import RAISES_S, RaiseWatch
from gwd.jobs.secrets import SECRETS_S, SealAnew
from gwd.jobs.sweep import Sweep
from gwd.jobs.topup import TopUpJob
from gwd.keys.rate_limit import RateLimiter
from gwd.keys.service import Issuing
from gwd.ledger import quarantine
from gwd.management import revocations, setup, time_repair
from gwd.outbound import OutboundClient
from gwd.page import mount as page
from gwd.pipeline.admit.refusals import RefusalCounter
from gwd.pipeline.dispatch.dispatch import Dispatcher
from gwd.pipeline.dispatch.offload import Offload
from gwd.pipeline.inference import Line
from gwd.pipeline.plan.state import PlanningState
from gwd.pipeline.settle import recovery, request_log
from gwd.pipeline.settle.content_log import ContentLogger
from gwd.pipeline.settle.observer import Observer, all_of
from gwd.proof import Prover
from gwd.replay.items import InMemoryItems
from gwd.settings import Settings, SettingsError, otel_headers, smtp_password
from gwd.store import Store
from gwd.store.ballast import Ballast
from gwd.store.connection import require
from gwd.store.lock import InstanceLock
from gwd.store.migrations import migrate
from gwd.store.revocation_log import RevocationLog
from gwd.upstream.base import Timeouts, Upstream
from gwd.upstream.http_client import HttpClient
from gwd.vendors.formats import ADAPTERS

if TYPE_CHECKING:
    from gwd.telemetry.telemetry import Telemetry

CHECKPOINT_S: Final = 1.0
SWEEP_S: Final = 15.0
BODIES_SWEEP_S: Final = 1.0
TOPUP_S: Final = 5.0
FORGET_S: Final = 600.0
NIGHT_WATCH_S: Final = 60.0
RATE_WINDOW_US: Final = 61 * US_PER_S
LAST_SETTLEMENTS_S: Final = 20.0
LAST_WORDS_S: Final = 0.5
POLL_S: Final = 0.05

log = logging.getLogger("gwd")


class RunningNode:
    """A node that serves. `async with RunningNode(settings, environment) as node:` starts and stops it."""

    def __init__(
        self,
        settings: Settings,
        environment: Mapping[str, str],
        *,
        clock: Clock | None = None,
        name: str = "gwd",
        alone: bool = False,
    ) -> None:
        self.settings = settings
        self.node: Node
        self.store: Store
        self._environment = environment
        self._machine_clock = clock or SystemClock()
        self._clock: NodeClock
        self._clean_before: dict[str, int] = {}
        self._name = name
        self._alone = alone
        self._tasks: set[asyncio.Task[Any]] = set()
        self._ending = asyncio.Event()
        self._lock: InstanceLock | None = None
        self._upstream: Upstream | None = None
        self._telemetry: Telemetry | None = None
        self._offload = Offload()
        self._tls: ssl.SSLContext | None = None
        self._ballast = Ballast(settings.database.with_suffix(".ballast"))
        self._revoked = RevocationLog(settings.revocations)
        self._status = NodeStatus(started_us=self._machine_clock.now_us())
        self._disk: DiskWatch
        self._heartbeat: Heartbeat
        self._listeners: list[Listener] = []
        self._is_handed = False
        self.failure: BaseException | None = None

    async def __aenter__(self) -> "RunningNode":
        try:
            await self._start()
        except BaseException:
            await self._close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._drain()
        await self._close()

    async def ended(self) -> None:
        """Wait until somebody asks the node to stop."""
        await self._ending.wait()

    def end(self) -> None:
        """Ask the node to stop."""
        self._ending.set()

    def reload(self) -> None:
        """Look again at vendor keys, the files they are in, and the certificate; settings wait for a restart."""
        if self._listeners:
            self._spawn(self._reload())

    async def _reload(self) -> None:
        await self.node.state.reload()
        self._take_certificate()
        log.info("reloaded")

    def _take_certificate(self) -> str | None:
        """Read the certificate's files again for new connections; gives back what is wrong with them."""
        if self._tls is None:
            return None
        server = self.settings.server
        try:
            self._tls.load_cert_chain(server.tls_cert, server.tls_key)
        except OSError as error:
            log.error("the new certificate cannot be used, the old one stays: %s", error)
            return f"the new certificate cannot be used, the old one stays: {error}"
        return None

    async def _start(self) -> None:
        settings = self.settings
        require(settings.database)
        self._lock = InstanceLock(settings.directory / "gwd.lock")
        ring = keyring.read(settings.keyring)
        migrate(str(settings.database), self._machine_clock)
        self.store = Store(
            str(settings.database),
            on_failure=self._storage_failed,
            on_broken=self._invariant_broken,
            ballast=self._ballast,
            journal=revocations.Journal(self._revoked, self._machine_clock),
        )
        await self.store.read(setup.check_ring, ring)
        last_us = await self.store.read(time_repair.last_known_us)
        self._clock = clock = NodeClock(self._machine_clock, last_us)
        await self._revoke_again()
        self._status.started_us = clock.now_us()
        self._status.take_certificate = self._take_certificate
        boot_id = mint("boot_")
        problem = await recovery.begin(
            self.store, clock, boot_id=boot_id, app_url=settings.server.app_url
        )
        if problem is not None:
            self._quarantine(problem)
        self.node = self._assemble(ring, boot_id)
        if self._alone and self._disk.is_ample:
            await self.store.reserve_log()
        self._clock_watch = ClockWatch(self.store, clock)
        await self._clock_watch.look()
        await self._seed_rate_windows()
        await self.node.state.load()
        self._health_keeper = HealthKeeper(self.store, self.node.state.health, clock)
        await self._health_keeper.load()
        self._start_jobs()
        await self._listen()

    async def _revoke_again(self) -> None:
        """A database that was put back learns what was taken away since, before anybody is served."""
        node = await self.store.read(revocations.node_of)
        known, now_us = await self.store.read(revocations.known_seq), self._clock.now_us()
        lines = self._revoked.open(node)
        if unknown := [line for line in lines if line.seq > known]:
            await self.store.write(revocations.revoke_again, unknown, now_us=now_us)
        self._revoked.last_seq = max(self._revoked.last_seq, known)
        place = self.settings.backup.directory
        copies = directory.copies(Path(place), node) if place else []
        oldest_us = min((copy.made_us for copy in copies), default=None)
        needed = revocations.needed(lines, oldest_copy_us=oldest_us, now_us=now_us)
        if len(needed) < len(lines):
            self._revoked.keep(node, needed)

    def _assemble(self, ring: keyring.KeyRing, boot_id: str) -> Node:
        settings, clock, store, status = self.settings, self._clock, self.store, self._status
        counters = Counters()
        vault, health = Vault(ring), Health(counters=counters, clock=clock)
        vitals = Vitals(
            writer_seen_s=clock.monotonic_s(),
            lag_s=settings.limits.loop_lag_s,
            memory_max_bytes=settings.limits.memory_max_bytes or allowed_bytes(),
        )
        self._disk = DiskWatch(settings.database.parent, vitals, self._ballast)
        self._disk.look()
        self._heartbeat = Heartbeat(store, clock, vitals)
        timeouts = Timeouts(
            connect_s=settings.timeouts.connect_s,
            first_event_s=settings.timeouts.first_event_s,
            idle_s=settings.timeouts.idle_s,
            total_s=settings.timeouts.total_s,
            drain_s=settings.timeouts.drain_s,
        )
        adapters = {adapter.format.name: adapter for adapter in ADAPTERS}
        formats = {name: adapter.format for name, adapter in adapters.items()}
        upstream = settings.upstream
        self._upstream = HttpClient(
            timeouts,
            proxy=upstream.proxy,
            ca_file=upstream.ca_file,
            max_per_origin=upstream.max_in_flight_per_origin,
        )
        state = PlanningState(
            store=store,
            vault=vault,
            environment=self._environment,
            health=health,
            clock=clock,
            default_output_bound=settings.limits.default_output_bound,
            formats=formats,
            app_url=settings.server.app_url,
        )
        ceiling, rules = settings.limits.default_rate_limit_per_minute, outbound_rules(settings)
        line = Line(
            store=store,
            state=state,
            dispatcher=Dispatcher(
                adapters=adapters,
                upstream=self._upstream,
                health=health,
                timeouts=timeouts,
                clock=clock,
                offload=self._offload,
            ),
            vault=vault,
            clock=clock,
            boot_id=boot_id,
            in_flight_cap=settings.limits.in_flight_per_key,
            app_url=settings.server.app_url,
            spawn=self._spawn,
            counters=counters,
            offload=self._offload,
            live={},
            content_logger=ContentLogger(
                store,
                vault,
                clock,
                offload=self._offload,
                counters=counters,
                vitals=vitals,
            ),
            in_quarantine=lambda: status.quarantine is not None,
            observer=self._observer(counters),
            tracing=Tracing(
                sample_ratio=settings.otel.sample_ratio, is_sent=settings.otel.propagate
            )
            if settings.otel.endpoint
            else None,
        )
        return Node(
            settings=settings,
            store=store,
            clock=clock,
            vault=vault,
            ring_file=RingFile(
                settings.keyring, vault, handed_over=settings.keyring_is_handed_over
            ),
            issuing=Issuing(pepper=ring.pepper, rate_limit_ceiling=ceiling),
            authenticator=Authenticator(
                store=store, clock=clock, pepper=ring.pepper, rate_limit_ceiling=ceiling
            ),
            line=line,
            state=state,
            formats=formats,
            limiter=RateLimiter(),
            refusals=RefusalCounter(store),
            items=InMemoryItems(clock),
            prover=Prover(store.path),
            status=status,
            counters=counters,
            vitals=vitals,
            backups=self._standing(),
            load=Load(settings.limits, vitals, counters),
            outbound=rules,
            channels=ChannelSender(
                store,
                OutboundClient(rules, user_agent=f"gwd-webhooks/{__version__}"),
                vault,
                self._mailer(),
                clock,
                app_url=settings.server.app_url,
            ),
        )

    def _observer(self, counters: Counters) -> Observer | None:
        """Who is told of each generation that has ended."""
        observers: list[Observer] = []
        if self.settings.logging.requests:
            observers.append(request_log.write)
        otel = self.settings.otel
        if otel.endpoint:
            try:
                from gwd.telemetry.telemetry import Telemetry  # what is off is not even imported
            except ImportError as error:
                raise SettingsError(
                    f"[otel] endpoint needs what is not installed ({error.name}): pip install 'gwd[otel]'"
                ) from None
            self._telemetry = Telemetry(
                otel.endpoint,
                headers=otel_headers(self.settings, self._environment),
                metrics=otel.metrics,
                counters=counters,
            )
            observers.append(self._telemetry.observe)
        return all_of(observers)

    def _mailer(self) -> Mailer | None:
        """What sends mail, where a mail server is named."""
        smtp = self.settings.smtp
        if not smtp.host:
            return None
        server = MailServer(
            host=smtp.host,
            port=smtp.port,
            tls=smtp.tls,
            sender=smtp.from_,
            username=smtp.username or None,
            password=smtp_password(self.settings, self._environment),
        )
        return Mailer(server)

    async def _seed_rate_windows(self) -> None:
        """What the last minute admitted still counts after a restart."""
        now_us = self._clock.now_us()
        admitted = await self.store.read(activity.admitted_since, now_us - RATE_WINDOW_US)
        self.node.limiter.seed(
            ((family, max(0, now_us - at_us) // US_PER_S, 1) for family, at_us in admitted),
            self._clock.monotonic_s(),
        )

    def _start_jobs(self) -> None:
        self._repeat(CHECKPOINT_S, self._checkpoint, "checkpoint")
        self._repeat(LOOK_S, self._health_keeper.look, "health")
        self._repeat(BEAT_S, self._heartbeat.beat, "heartbeat")
        self._repeat(WATCH_S, self._disk.watch, "disk")
        self._repeat(CLOCK_WATCH_S, self._clock_watch.look, "clock")
        self._spawn(measure_lag(self.node.vitals))
        memory = MemoryWatch(self.node.vitals, self._close_idle)
        self._repeat(MEMORY_WATCH_S, memory.watch, "memory")
        sweep = self._sweep()
        nightly = NightlyCheck(self.store, self.node.prover, self._clock, self._quarantine)
        self._repeat(SWEEP_S, sweep.resolve, "sweep")
        self._repeat(SWEEP_S, sweep.expire, "expiry")
        self._repeat(NIGHT_WATCH_S, nightly.run, "nightly check")
        self._repeat(FORGET_S, self._forget, "forget")
        self._repeat(CONTENT_LOG_S, self._content_log().run, "content log")
        self._repeat(TOPUP_S, self._topup().run, "top-up")
        self._repeat(RAISES_S, self._raise_watch().run, "raises of budgets")
        self._repeat(CATALOG_WATCH_S, self._catalog_watch().run, "catalog watch")
        self._repeat(NODE_WATCH_S, self._node_watch().run, "node watch")
        if self.node.backups is not None:
            copies = self._backups(self.node.backups)
            self._repeat(BACKUPS_S, copies.make, "backup")
            self._repeat(BACKUPS_S, copies.watch, "backup watch")
        self._repeat(DELIVERIES_S, self._deliveries().run, "deliveries")
        anew = SealAnew(self.store, self.node.vault, self._clock)
        self._repeat(SECRETS_S, anew.run, "secrets")
        gap_s = service_manager.watchdog_gap_s(self._environment)
        if gap_s is not None:
            self._repeat(gap_s, self._say_alive, "watchdog")

    def _repeat(self, gap_s: float, job: Callable[[], Awaitable[None]], name: str) -> None:
        """A job by the clock; how long ago it last went well is a vital sign."""
        self._ran(name)
        self._spawn(every(gap_s, job, name=name, ran=self._ran))

    def _ran(self, name: str) -> None:
        self.node.vitals.jobs_ran_s[name] = self._clock.monotonic_s()

    async def _forget(self) -> None:
        await retention.forget(self.store, self._clock, self._clean_before)

    def _content_log(self) -> ContentLogJob:
        max_bytes = self.settings.limits.content_log_max_bytes
        return ContentLogJob(self.store, self._clock, max_bytes=max_bytes)

    def _topup(self) -> TopUpJob:
        """Automatic top-up calls its hooks through the guarded client."""
        return TopUpJob(
            self.store,
            OutboundClient(self.node.outbound, user_agent="gwd-hooks/1"),
            self.node.vault,
            self._clock,
            app_url=self.settings.server.app_url,
        )

    def _raise_watch(self) -> RaiseWatch:
        return RaiseWatch(self.store, self._clock, app_url=self.settings.server.app_url)

    def _catalog_watch(self) -> CatalogWatch:
        return CatalogWatch(
            self.store, self.node.state, self._clock, app_url=self.settings.server.app_url
        )

    def _node_watch(self) -> NodeWatch:
        server = self.settings.server
        return NodeWatch(
            self.store, self._clock, certificate=server.tls_cert, app_url=server.app_url
        )

    def _standing(self) -> Standing | None:
        """How the copies by the clock stand, where some are made."""
        backup = self.settings.backup
        if not backup.directory:
            return None
        return Standing(
            directory=backup.directory,
            every_us=rhythm.read_every(backup.every),
            began_us=self._clock.now_us(),
        )

    def _backups(self, standing: Standing) -> BackupJob:
        return BackupJob(
            self.store,
            self._clock,
            standing,
            ring=self.settings.keyring,
            keep=rhythm.read_keep(self.settings.backup.keep),
            app_url=self.settings.server.app_url,
        )

    def _deliveries(self) -> DeliveryJob:
        return DeliveryJob(
            self.store,
            self.node.channels,
            self._clock,
            app_url=self.settings.server.app_url,
            spawn=self._spawn,
        )

    async def _say_alive(self) -> None:
        """A node whose writer is stuck keeps silent and is started anew."""
        if self._heartbeat.is_fresh:
            service_manager.notify(self._environment, "WATCHDOG=1")

    async def _checkpoint(self) -> None:
        """Once a second: how far every running stream has come, what was refused, and what vendors say of keys."""
        self.node.refusals.flush()
        self.node.state.write_trouble()
        progress = [
            (generation_id, data)
            for generation_id, generation in list(self.node.line.live.items())
            if (data := generation.checkpoint()) is not None
        ]
        if progress:
            await self.store.write(ledger.checkpoint, progress)

    def _sweep(self) -> Sweep:
        return Sweep(
            self.store,
            self._clock,
            self.node.line.live,
            total_s=self.settings.timeouts.total_s,
            app_url=self.settings.server.app_url,
        )

    async def _listen(self) -> None:
        server = self.settings.server
        dialects = {dialect.path: dialect for dialect in DIALECTS}
        main = api.build(self.node, dialects, name=self._name, alone=self._alone)
        if server.page:
            page.mount(main, self.node)
        self._tls = tls_context(server.tls_cert, server.tls_key)
        handed = service_manager.handed_socket(self._environment)
        if handed is not None:
            self._check_handed(handed)
            self._is_handed = True
        listener = self._listener(
            main,
            proxies=Proxies(server.trusted_proxies, server.client_address_header),
            prefix=server.path_prefix,
            introduced=server.proxy_protocol,
        )
        await listener.open(server.host, server.port, self._tls, handed)
        self.port = listener.port
        if server.unix_socket:
            await listener.open_unix(Path(server.unix_socket))
        if server.metrics_port:
            vitals = api.build_vitals(self.node, name=f"{self._name}-vitals")
            await self._listener(vitals).open(server.metrics_host, server.metrics_port)
        service_manager.notify(self._environment, "READY=1")

    def _listener(
        self,
        app: Any,
        *,
        proxies: Proxies = NO_PROXIES,
        prefix: str = "",
        introduced: bool = False,
    ) -> Listener:
        """A listener of its own for each application; a flood on one leaves the other its connections."""
        limits = self.settings.limits
        front = Front(
            self.node.counters,
            cap=limits.connections,
            cap_per_address=limits.connections_per_address,
            proxies=proxies,
            prefix=prefix,
        )
        listener = Listener(app, front, introduced=introduced)
        self._listeners.append(listener)
        self._spawn(every(BODIES_SWEEP_S, front.body_intake.sweep, name="slow bodies"))
        self._spawn(every(BODIES_SWEEP_S, front.readers.sweep, name="slow readers"))
        return listener

    def _close_idle(self) -> None:
        for listener in self._listeners:
            listener.close_idle()

    def _check_handed(self, handed: socket.socket) -> None:
        """The settings about the address hold for a socket that somebody else bound."""
        host, port = handed.getsockname()[:2]
        server = self.settings.server
        if (host, port) != (server.host, server.port):
            handed.close()
            raise SettingsError(
                f"gwd.socket listens on {host}:{port}, [server] host and port say {server.host}:{server.port};"
                " give both the same address"
            )

    async def _drain(self) -> None:
        """Let running requests finish, end the rest with an error of their own, wait for every settlement.

        Where the socket was handed over, the next process takes the next connections, and those that are open are
        served until the end.
        """
        status = self.node.status
        status.draining, status.is_followed = True, self._is_handed
        if self._is_handed:
            self._listeners[0].leave()
        service_manager.notify(self._environment, "STOPPING=1")
        live = self.node.line.live
        if self.failure is None:
            await _until(lambda: not live, self.settings.timeouts.drain_s)
        status.is_followed = False
        last = list(live.values())
        for generation in last:
            generation.stop(Draining("the gateway is stopping; try again", retry_after_s=5))
        # Nothing can be settled on a failed disk: stop at once, the next start's recovery settles.
        limit_s = LAST_SETTLEMENTS_S if self.failure is None else LAST_WORDS_S
        await _until(lambda: not live, limit_s)
        await _until(lambda: all(generation.frame_queue.empty for generation in last), LAST_WORDS_S)
        await asyncio.sleep(POLL_S)  # the frames just taken are being written to the sockets

    async def _close(self) -> None:
        for listener in self._listeners:
            listener.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if hasattr(self, "node"):
            self.node.refusals.flush()
            self.node.state.write_trouble(last=True)
            self._keep_health()
        if self._upstream is not None:
            await self._upstream.close()
        self._offload.close()
        if self._telemetry is not None:
            await asyncio.to_thread(self._telemetry.close)
        if hasattr(self, "store"):
            await self.store.close()
        self._ballast.close()
        self._revoked.close()
        if self._lock is not None:
            self._lock.close()

    def _keep_health(self) -> None:
        """At a clean stop; the store writes what is queued before it closes."""
        news = self.node.state.health.news(self._clock.now_us(), self._clock.monotonic_s())
        if news is not None:
            self.store.submit(kept.keep, news)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """A supervised task: it is known, its failure is logged, shutdown waits for it."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a task failed", exc_info=error)

    def _invariant_broken(self, error: AssertionError) -> None:
        if isinstance(error, ledger.LedgerBroken):
            self._quarantine(f"the ledger does not add up: {error}")

    def _quarantine(self, reason: str) -> None:
        """Nothing more is served, after a restart neither, until a start has found the ledger in order."""
        log.critical("quarantine: %s", reason)
        if self._status.quarantine is None:
            self._status.quarantine = reason
            self.store.submit(quarantine.note, reason)
            self.store.submit(
                node_alerts.quarantined,
                reason,
                app_url=self.settings.server.app_url,
                now_us=self._clock.now_us(),
            )

    def _storage_failed(self, cause: BaseException) -> None:
        log.critical("the disk failed under the store: %s; stopping", cause)
        self.failure = cause
        self.end()


async def _until(reached: Callable[[], bool], limit_s: float) -> None:
    waited_s = 0.0
    while not reached() and waited_s < limit_s:
        await asyncio.sleep(POLL_S)
        waited_s += POLL_S
