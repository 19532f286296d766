"""A real mail server (aiosmtpd) on loopback, with TLS and a password, which keeps what it gets."""

import gc
import ssl
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session
from cryptography import x509
from tests.callbacks.test_client import make_certificate
from tests.ports import find_port

from merchant_wallet.notifications.mail import NO_TLS, STARTTLS, TLS, MailServer

USER = "wallet"
PASSWORD = "a long password of the mail server"
SENDER = "wallet@example.com"


@dataclass
class Mailbox:
    """What the server got. `answers` are given to recipients instead of 250, by address."""

    mails: list[EmailMessage] = field(default_factory=list)
    encrypted: list[bool] = field(default_factory=list)
    answers: dict[str, str] = field(default_factory=dict)

    async def handle_RCPT(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if address in self.answers:
            return self.answers[address]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        content = envelope.content
        assert isinstance(content, bytes)
        self.mails.append(message_from_bytes(content, policy=policy.default))
        transport = server.transport
        self.encrypted.append(transport is not None and transport.get_extra_info("ssl_object") is not None)
        return "250 kept"

    @property
    def texts(self) -> list[str]:
        """The texts of all mails."""
        return [str(mail.get_content()).replace("\r\n", "\n") for mail in self.mails]


def _judge(server: SMTP, session: Session, envelope: Envelope, mechanism: str, data: object) -> AuthResult:
    right = isinstance(data, LoginPassword) and (data.login, data.password) == (
        USER.encode(),
        PASSWORD.encode(),
    )
    return AuthResult(success=right, handled=False)


@contextmanager
def open_server(
    folder: Path, tls: str = STARTTLS, *, password: str = PASSWORD
) -> Iterator[tuple[Mailbox, MailServer]]:
    """A mail server, and the settings that reach it with this password."""
    certificate = make_certificate(folder, x509.IPAddress(ip_address("127.0.0.1")))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    mailbox = Mailbox()
    choices: dict[str, dict[str, Any]] = {
        STARTTLS: {"tls_context": context, "require_starttls": True},
        TLS: {"ssl_context": context, "auth_require_tls": False},
        NO_TLS: {"auth_require_tls": False},
    }
    controller = Controller(
        mailbox,
        hostname="127.0.0.1",
        port=find_port(),
        auth_required=True,
        authenticator=_judge,
        **choices[tls],
    )
    controller.start()
    try:
        yield mailbox, MailServer("127.0.0.1", controller.port, tls, SENDER, USER, password, str(certificate))
    finally:
        controller.stop()
        del controller
        with warnings.catch_warnings():
            # aiosmtpd ends its loop without closing connections whose clients have just left.
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()
