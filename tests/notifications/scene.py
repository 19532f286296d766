"""Operators who want to be told, things that wait for them, and the worker that tells them: all real, but for
the clock.
"""

import base64
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from psycopg import AsyncConnection
from tests.callbacks.conftest import CallbackScene, make_client
from tests.callbacks.receiver import Received

from merchant_wallet.base.chains import CODES
from merchant_wallet.hot_wallet.stops import stop_payouts
from merchant_wallet.notifications import contacts, escalation, outbox
from merchant_wallet.notifications.contacts import EMAIL, WEBHOOK, Choice, Contact
from merchant_wallet.notifications.mail import MailServer
from merchant_wallet.notifications.messages import Site
from merchant_wallet.notifications.outbox import SentLine
from merchant_wallet.notifications.transports import MailTransport, WebhookTransport
from merchant_wallet.notifications.worker import Notifier, Transport
from merchant_wallet.operators import records
from merchant_wallet.operators.roles import Operator
from merchant_wallet.processes.notifications import MAX_TOLD
from merchant_wallet.reporting.cells import reach_one
from merchant_wallet.reporting.inbox import Asked, Inbox, read_inbox
from merchant_wallet.web.inbox_sources import SOURCES

SITE = Site("https://wallet.example.com")
SECRET = contacts.make_secret()
PASSWORD = "seven grey herons wade"


@dataclass
class NotifierScene:
    """Books and a webhook receiver from the scene of callbacks, with operators and notifiers."""

    callbacks: CallbackScene
    mail: MailServer | None = None

    async def operator(
        self,
        name: str,
        *kinds: str,
        role: str = "operator",
        merchant_id: int | None = None,
        by: tuple[str, ...] = (WEBHOOK,),
        wakes: bool = False,
        **contact: Any,
    ) -> Operator:
        """An operator with a second factor, who wants to be told of these kinds by these channels."""
        conn, now_ms = self.callbacks.connection, self.callbacks.clock()
        made = await records.create(conn, name, role, password=PASSWORD, merchant_id=merchant_id, at_ms=0)
        number = made.operator.operator_id
        await self.callbacks.rows(
            "update operator set totp_sealed = '\\x01', totp_confirmed_ms = 1, totp_last_step = 1"
            " where operator_id = %s",
            number,
        )
        reached: dict[str, Any] = {
            "webhook_url": self.callbacks.receiver.url(f"{name}.test"),
            "webhook_sealed": contacts.seal_secret(self.callbacks.keyring, number, SECRET),
            "email": f"{name}@example.com",
            "email_asked_ms": now_ms,
            "email_confirmed_ms": now_ms,
        }
        await contacts.write_contact(conn, number, Contact(**(reached | contact)))
        async with conn.transaction():
            chosen = [Choice(kind, EMAIL in by, WEBHOOK in by, wakes) for kind in kinds]
            await contacts.write_choices(conn, number, chosen)
        return (await records.find(conn, name)) or made.operator

    async def escalate(self, times_s: Mapping[str, int], *people: Operator) -> None:
        """Set the order of people, and after how long the next one is told."""
        conn = self.callbacks.connection
        async with conn.transaction():
            await escalation.write(conn, [one.operator_id for one in people], times_s)

    async def stop(self, chain: str = "TRC20", actor: str = "cli:zoe") -> None:
        """Stop a chain's payouts, which waits for a person."""
        await stop_payouts(self.callbacks.connection, chain, actor, "the node lies", self.callbacks.clock())

    async def resume(self) -> None:
        await self.callbacks.rows("delete from payout_stop")

    def notifier(self, **transports: Transport) -> Notifier:
        """A worker as the service has it, with the worker side's database role."""
        callbacks = self.callbacks
        found: dict[str, Transport] = {
            WEBHOOK: WebhookTransport(make_client(30.0), callbacks.keyring, SITE),
        }
        if self.mail is not None:
            found[EMAIL] = MailTransport(self.mail, callbacks.keyring, SITE)
        made = Notifier(
            callbacks.connect, partial(read, callbacks), found | transports, clock=callbacks.clock
        )
        callbacks.closing.push_async_callback(made.close)
        return made

    async def turn(self, notifier: Notifier) -> int:
        """One turn of deciding, and attempts until nothing is due. Returns how many attempts."""
        await notifier.plan_once()
        attempts = 0
        while made := await notifier.send_once():
            attempts += made
        return attempts

    async def sent_to(self, operator: Operator) -> list[SentLine]:
        """An operator's messages, the oldest first."""
        found = await outbox.list_recent(self.callbacks.connection, operator.operator_id, 50)
        return found[::-1]

    def told(self, name: str) -> list[dict[str, Any]]:
        """What a person's webhook was sent. Each signature must be right."""
        found = [one for one in self.callbacks.receiver.received if one.host == f"{name}.test"]
        assert all(verify(one, SECRET) for one in found)
        return [one.fields for one in found]

    def texts(self, name: str) -> list[list[str]]:
        """The sentences of each webhook."""
        return [[item["text"] for item in told["data"]["items"]] for told in self.told(name)]


async def read(callbacks: CallbackScene, conn: AsyncConnection[Any], merchant_id: int | None) -> Inbox:
    """The inbox, from one database."""
    asked = Asked(conn, reach_one(conn), merchant_id, callbacks.clock(), CODES, MAX_TOLD)
    return await read_inbox(asked, SOURCES)


def verify(request: Received, secret: str) -> bool:
    """Check a signature as a receiver does, from the text of Standard Webhooks alone."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    headers = request.headers
    signed = b"%s.%s." % (headers["webhook-id"].encode(), headers["webhook-timestamp"].encode())
    digest = hmac.new(key, signed + request.body, "sha256").digest()
    return headers["webhook-signature"] == "v1," + base64.b64encode(digest).decode()
