"""Sends mail to one SMTP server, over TLS.

Rules:
- The connection is encrypted before anything is said, unless the settings switch TLS off. A server that does
  not offer it gets nothing.
- An attempt ends within `TIMEOUT_S`, whatever the server does.
- The password is never in an error.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email.message import EmailMessage
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from merchant_wallet.base.outbound import PLAIN, Outbound
from merchant_wallet.base.settings import Settings

if TYPE_CHECKING:
    from aiosmtplib import SMTP

TIMEOUT_S: Final = 30.0
TLS: Final = "tls"
STARTTLS: Final = "starttls"
NO_TLS: Final = "none"
PERMANENT: Final = 500


class MailServer(msgspec.Struct, frozen=True):
    """The server of the settings. `tls` is one of the constants above."""

    host: str
    port: int
    tls: str
    sender: str
    user: str | None = None
    password: str | None = None
    ca_file: Path | None = None
    outbound: Outbound = PLAIN

    def __repr__(self) -> str:
        return f"MailServer({self.host}:{self.port})"


class MailFailed(Exception):
    """A mail could not be sent. `is_final`: the server would refuse it again."""

    def __init__(self, text: str, *, is_final: bool = False) -> None:
        super().__init__(text)
        self.is_final = is_final


def find_server(settings: Settings) -> MailServer | None:
    """The server of the settings; None if they name none."""
    if settings.smtp_host is None or settings.smtp_from is None:
        return None
    return MailServer(
        settings.smtp_host,
        settings.smtp_port,
        settings.smtp_tls,
        settings.smtp_from,
        settings.smtp_user,
        settings.smtp_password,
        settings.smtp_ca_file,
        settings.outbound,
    )


async def send(server: MailServer, mail: EmailMessage, recipient: str) -> str:
    """Send a mail. Returns what the server said. Raises MailFailed."""
    async with _open(server) as client:
        _, said = await client.send_message(mail, sender=server.sender, recipients=[recipient])
    return said


async def check(server: MailServer) -> None:
    """Connect and sign in, and send nothing. Raises MailFailed."""
    async with _open(server) as client:
        await client.noop()


@asynccontextmanager
async def _open(server: MailServer) -> "AsyncIterator[SMTP]":
    """A connection to the server, signed in. Raises MailFailed, for what is done inside too."""
    # Only workers send mail, and not all of them.
    import aiosmtplib

    try:
        async with asyncio.timeout(TIMEOUT_S), _make_client(server) as client:
            yield client
    except aiosmtplib.SMTPRecipientsRefused as refused:
        first = refused.recipients[0]
        raise MailFailed(f"{first.code} {first.message}", is_final=first.code >= PERMANENT) from None
    except aiosmtplib.SMTPAuthenticationError as refused:
        # Somebody may set the right password meanwhile.
        raise MailFailed(f"the server refuses our name and password: {refused.code}") from None
    except aiosmtplib.SMTPResponseException as refused:
        is_final = refused.code >= PERMANENT
        raise MailFailed(f"{refused.code} {refused.message}", is_final=is_final) from None
    except TimeoutError:
        raise MailFailed(f"no answer within {TIMEOUT_S:g} s") from None
    except (aiosmtplib.SMTPException, OSError) as failure:
        raise MailFailed(str(failure) or type(failure).__name__) from None


def _make_client(server: MailServer) -> "SMTP":
    import aiosmtplib

    return aiosmtplib.SMTP(
        hostname=server.host,
        port=server.port,
        username=server.user,
        password=server.password,
        use_tls=server.tls == TLS,
        start_tls=server.tls == STARTTLS,
        tls_context=None if server.tls == NO_TLS else server.outbound.tls(only=server.ca_file),
        timeout=TIMEOUT_S,
    )
