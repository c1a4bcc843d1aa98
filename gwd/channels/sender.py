"""One attempt to send one message, over the channel of its addressee."""

import logging
from typing import Final

from gwd.alerts.destinations import address_binding, secret_binding
from gwd.alerts.queue import Message, Outcome
from gwd.channels import chat, mail, webhook
from gwd.channels.smtp import Mailer
from gwd.core.clock import US_PER_S, Clock
from gwd.credentials.vault import CannotOpenError, Vault
from gwd.orgs import organizations
from gwd.outbound import OutboundClient
from gwd.store import Store

NO_MAIL_SERVER: Final = "no mail can be sent: name the mail server as [smtp] host in gwd.toml"

log = logging.getLogger(__name__)


class ChannelSender:
    """One for the node. `mailer` None: there is no mail server."""

    def __init__(
        self,
        store: Store,
        client: OutboundClient,
        vault: Vault,
        mailer: Mailer | None,
        clock: Clock,
        *,
        app_url: str,
    ) -> None:
        self._store = store
        self._client = client
        self._vault = vault
        self._mailer = mailer
        self._clock = clock
        self._app_url = app_url

    @property
    def sends_mail(self) -> bool:
        """Whether there is a mail server."""
        return self._mailer is not None

    async def send(self, message: Message) -> Outcome:
        """How the attempt ended; never raises, whatever the receiver does or the message holds."""
        try:
            if message.addressee.kind == "email":
                return await self._send_mail(message)
            return await self._call(message)
        except CannotOpenError:
            return Outcome(
                error="its address or secret does not open with this node's key ring; make the destination anew"
            )
        except Exception:
            # What cannot be sent must not be tried every second, and must not hold up what waits behind it.
            log.exception("a message could not be made: %s", message.delivery_ids[0])
            return Outcome(error="the message could not be made; the gateway's log says why")

    async def _call(self, message: Message) -> Outcome:
        to, now_us = message.addressee, self._clock.now_us()
        assert to.destination_id is not None
        if to.kind == "chat":
            assert to.sealed_address is not None
            url = self._vault.open(
                to.sealed_address, address_binding(to.organization_id, to.destination_id)
            )
            return await chat.send(self._client, url, message)
        binding = secret_binding(to.organization_id, to.destination_id, to.address)
        assert to.sealed_secret is not None
        secret, before = self._vault.open(to.sealed_secret, binding), ""
        if to.sealed_old_secret is not None and (to.old_secret_until_us or 0) > now_us:
            before = self._vault.open(to.sealed_old_secret, binding)
        return await webhook.send(
            self._client, to.address, message, secret, before, now_s=now_us // US_PER_S
        )

    async def _send_mail(self, message: Message) -> Outcome:
        to = message.addressee
        if self._mailer is None:
            # People's mails are not kept until there is a server; a destination is told of like any that fails.
            return Outcome(error=NO_MAIL_SERVER, is_final=to.destination_id is None)
        organization = await self._store.read(organizations.get, to.organization_id)
        composed = mail.compose(
            message,
            sender=self._mailer.sender,
            organization=organization.name,
            app_url=self._app_url,
            now_us=self._clock.now_us(),
        )
        return await self._mailer.send(composed, to.address)
