"""Mail to a real server: encrypted, signed in, and told truly what became of it."""

import asyncio
import selectors
from collections.abc import Coroutine
from email.message import EmailMessage
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest
from tests.callbacks.test_client import make_certificate
from tests.notifications.mail_server import LOOK_S, SENDER, open_server

from merchant_wallet.notifications import mail
from merchant_wallet.notifications.mail import NO_TLS, STARTTLS, TLS, MailFailed, MailServer

# The server warns that it asks for a password where it offers no TLS, which a test is about.
pytestmark = pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS")

ANN = "ann@example.com"
T = TypeVar("T")


def write(text: str = "Something waits.") -> EmailMessage:
    made = EmailMessage()
    made["From"], made["To"], made["Subject"] = SENDER, ANN, "待办"
    made.set_content(text)
    return made


def send(server: MailServer) -> str:
    return run(mail.send(server, write(), ANN))


def run(work: Coroutine[Any, Any, T]) -> T:
    """As `asyncio.run`, until the loop has no socket but its own: TLS ends after the answer."""
    selector = selectors.DefaultSelector()
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selector)) as runner:
        try:
            return runner.run(work)
        finally:
            while len(selector.get_map()) > 1:
                runner.run(asyncio.sleep(LOOK_S))
            # The last socket left the selector, and is closed in a later turn.
            runner.run(asyncio.sleep(LOOK_S))


@pytest.mark.parametrize("tls", [STARTTLS, TLS])
def test_a_mail_arrives_encrypted_and_signed_in(tmp_path: Path, tls: str) -> None:
    with open_server(tmp_path, tls) as (mailbox, server):
        assert send(server) == "kept"
        run(mail.check(server))
    assert mailbox.encrypted == [True]
    assert mailbox.mails[0]["Subject"] == "待办"
    assert mailbox.texts == ["Something waits.\n"]


def test_a_server_that_offers_no_encryption_gets_nothing(tmp_path: Path) -> None:
    with open_server(tmp_path, NO_TLS) as (mailbox, server):
        with pytest.raises(MailFailed, match="STARTTLS"):
            send(msgspec.structs.replace(server, tls=STARTTLS))
        assert mailbox.mails == []
        assert send(server) == "kept", "unless the settings say so"


def test_a_server_with_a_strangers_certificate_gets_nothing(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    with open_server(tmp_path) as (mailbox, server), pytest.raises(MailFailed, match="certificate"):
        send(msgspec.structs.replace(server, ca_file=make_certificate(other)))
    assert mailbox.mails == []


def test_a_wrong_password_is_said_without_the_password(tmp_path: Path) -> None:
    with open_server(tmp_path, password="wrong horse") as (mailbox, server):
        for attempt in (send, lambda one: run(mail.check(one))):
            with pytest.raises(MailFailed, match="refuses our name and password: 535") as failed:
                attempt(server)
            assert not failed.value.is_final
            assert "horse" not in str(failed.value)
    assert mailbox.mails == []
    assert "horse" not in repr(server)


def test_a_recipient_that_the_server_refuses_for_ever_is_final_and_a_busy_one_is_not(tmp_path: Path) -> None:
    with open_server(tmp_path) as (mailbox, server):
        for answer, is_final in (("550 no such user", True), ("450 busy", False)):
            mailbox.answers[ANN] = answer
            with pytest.raises(MailFailed, match=answer) as failed:
                send(server)
            assert failed.value.is_final is is_final


def test_a_server_that_is_away_is_said_to_be(tmp_path: Path) -> None:
    with open_server(tmp_path) as (_, server):
        pass
    with pytest.raises(MailFailed):
        send(server)


def test_a_server_that_says_nothing_holds_nobody_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mail, "TIMEOUT_S", 0.2)

    async def stay_silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.read()
        finally:
            writer.transport.abort()

    async def scenario() -> None:
        silent = await asyncio.start_server(stay_silent, "127.0.0.1", 0)
        async with silent:
            port = silent.sockets[0].getsockname()[1]
            with pytest.raises(MailFailed, match=r"no answer within 0\.2 s"):
                await mail.send(MailServer("127.0.0.1", port, STARTTLS, SENDER), write(), ANN)

    run(scenario())
