"""A real mail server (aiosmtpd) on loopback, with TLS and a password, which keeps what it gets."""

import asyncio
import socket
import ssl
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
READY_S = 60.0
"""A machine that many tests share may be slow to start a thread. The server's own limit is 5 s."""
END_S = 30.0
LOOK_S = 0.01


@dataclass
class Mailbox:
    """What the server got. `answers` are given to recipients instead of 250, by address."""

    mails: list[EmailMessage] = field(default_factory=list)
    encrypted: list[bool] = field(default_factory=list)
    answers: dict[str, str] = field(default_factory=dict)
    transports: list[asyncio.Transport] = field(default_factory=list)
    sockets: list[socket.socket] = field(default_factory=list)

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


class MailSession(SMTP):
    """One connection, whose transports and sockets the mailbox knows."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.event_handler.transports.append(transport)
        self.event_handler.sockets.append(transport.get_extra_info("socket"))


class MailController(Controller):
    """The server's thread. It closes its connections before it ends, so that no open socket is left to the
    garbage collector, which would warn in whichever test runs then.
    """

    def factory(self) -> SMTP:
        return MailSession(self.handler, **self.SMTP_kwargs)

    def stop(self, no_assert: bool = False) -> None:
        asyncio.run_coroutine_threadsafe(self._close_connections(), self.loop).result(END_S)
        super().stop(no_assert)

    async def _close_connections(self) -> None:
        for transport in self.handler.transports:
            # A closed transport of TLS can't be aborted.
            if not transport.is_closing():
                transport.abort()
        # A socket is closed some turns of the loop later, and below TLS once the client has closed its own.
        async with asyncio.timeout(END_S):
            while any(one.fileno() != -1 for one in self.handler.sockets):  # noqa: ASYNC110
                await asyncio.sleep(LOOK_S)


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
    controller = MailController(
        mailbox,
        hostname="127.0.0.1",
        port=find_port(),
        ready_timeout=READY_S,
        auth_required=True,
        authenticator=_judge,
        **choices[tls],
    )
    controller.start()
    try:
        yield mailbox, MailServer("127.0.0.1", controller.port, tls, SENDER, USER, password, certificate)
    finally:
        controller.stop()
