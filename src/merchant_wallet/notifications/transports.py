"""How a message leaves: by mail, or by webhook through the client of callbacks.

Rules:
- A webhook goes where callbacks may go, and nowhere else: the target policy is the same.
- Any answer of 200 to 299 accepts a webhook, as Standard Webhooks says.
- An address that is not confirmed gets only the mail with its code.
"""

from collections.abc import Awaitable, Callable
from email.message import EmailMessage
from typing import Final, Protocol

from merchant_wallet.callbacks.answers import Answer
from merchant_wallet.callbacks.payloads import Payload
from merchant_wallet.merchants.keys import Keyring
from merchant_wallet.notifications import mail
from merchant_wallet.notifications.contacts import make_code, open_secret
from merchant_wallet.notifications.mail import MailFailed, MailServer
from merchant_wallet.notifications.messages import Site, build_mail, build_webhook
from merchant_wallet.notifications.outbox import Message, Recipient
from merchant_wallet.notifications.worker import Result
from merchant_wallet.web.languages import Language, find_language

UNCONFIRMED: Final = "not sent: the address is not confirmed"
SendMail = Callable[[MailServer, EmailMessage, str], Awaitable[str]]


class WebhookClient(Protocol):
    """Sends a payload. `callbacks.client.CallbackClient` in production."""

    async def send(self, url: str, payload: Payload) -> Answer:
        """Send a payload to a URL."""


class MailTransport:
    """Sends mails."""

    def __init__(self, server: MailServer, keyring: Keyring, site: Site) -> None:
        self._server = server
        self._keyring = keyring
        self._site = site

    async def send(self, message: Message, recipient: Recipient, at_ms: int) -> Result:
        """Make one attempt."""
        code = None
        if recipient.email_confirmed_ms is None:
            if not message.is_test or recipient.email_asked_ms is None:
                return Result(False, UNCONFIRMED, is_final=True)
            code = make_code(self._keyring, message.operator_id, message.target, recipient.email_asked_ms)
        made = build_mail(
            message, self._site, self._server.sender, _language_of(recipient), recipient.time_zone, code
        )
        try:
            return Result(True, await mail.send(self._server, made, message.target))
        except MailFailed as failed:
            return Result(False, str(failed), failed.is_final)


class WebhookTransport:
    """Sends webhooks."""

    def __init__(self, client: WebhookClient, keyring: Keyring, site: Site) -> None:
        self._client = client
        self._keyring = keyring
        self._site = site

    async def send(self, message: Message, recipient: Recipient, at_ms: int) -> Result:
        """Make one attempt."""
        assert recipient.webhook_sealed is not None, "a URL has a secret"
        secret = open_secret(self._keyring, message.operator_id, recipient.webhook_sealed)
        payload = build_webhook(message, self._site, _language_of(recipient), secret, at_ms)
        answer = await self._client.send(message.target, payload)
        status = answer.http_status
        if answer.error is None and status is not None and 200 <= status < 300:
            return Result(True, f"HTTP status {status}")
        return Result(False, answer.error or f"HTTP status {status}")


def _language_of(recipient: Recipient) -> Language:
    return find_language(recipient.language) or Language.EN
