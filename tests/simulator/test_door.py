"""The simulator's door: what it takes for a fault, and what for no answer, before the model sees it."""

import asyncio
from collections.abc import Callable
from random import Random

import pytest
from simulator.door import SUSPENDED, UNKNOWN_KEY, WRONG_SIGN, Account, Door, LentKey, Lost
from simulator.failure import Contradiction

from merchant_wallet_client import Answer


def make_account(*, may_be_suspended: bool = False, is_suspended: bool = False) -> Account:
    secrets = ("secret", "callback secret")
    return Account("1001", "shop0", "mk_test_1", *secrets, may_be_suspended, is_suspended)


def lend(*, may_be_revoked: bool = False, is_revoked: bool = False) -> Account:
    """An account whose second key signs every third request."""
    account = make_account()
    account.lent.append(LentKey("mk_test_2", "other secret", may_be_revoked, is_revoked))
    account.uses_lent = True
    return account


def ask(account: Account, code: int, meanwhile: Callable[[Account], object] = lambda account: None) -> object:
    """What comes of a request that gets this code. `meanwhile` happens while it is under way."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        meanwhile(account)
        body = b'{"code":%d,"msg":"a text","data":{}}' % code
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        writer.close()

    async def run() -> object:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        async with server:
            door = Door(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", Random(1))
            # A nonce that three divides: the second key signs, if there is one.
            request = account.sign("getMerchantBalance", {}, f"{3:024x}")
            try:
                return await door.send(account, request)
            finally:
                door.close()

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("account", "code", "text"),
    [
        (make_account(), SUSPENDED, "is not suspended"),
        (make_account(may_be_suspended=True, is_suspended=True), 200, "is stopped"),
        (make_account(), UNKNOWN_KEY, "is not revoked"),
        (lend(), UNKNOWN_KEY, "is not revoked"),
        (lend(may_be_revoked=True, is_revoked=True), 200, "is stopped"),
        (make_account(), 200, "is not the service's"),
        (lend(), 200, "is not the service's"),
    ],
    ids=["not suspended", "suspended", "unknown", "not revoked", "revoked", "not signed", "not signed too"],
)
def test_an_answer_that_must_not_come_now_is_a_fault(account: Account, code: int, text: str) -> None:
    with pytest.raises(Contradiction, match=text):
        ask(account, code)


@pytest.mark.parametrize(
    ("account", "code"),
    [(make_account(may_be_suspended=True), SUSPENDED), (lend(may_be_revoked=True), UNKNOWN_KEY)],
    ids=["suspended", "revoked"],
)
def test_a_refusal_of_a_stopped_merchant_or_key_says_nothing_of_what_was_asked(
    account: Account, code: int
) -> None:
    assert isinstance(ask(account, code), Lost)


def test_a_request_that_was_late_for_its_secret_is_asked_again() -> None:
    def retire(account: Account) -> None:
        account.secret = "the next secret"

    assert isinstance(ask(make_account(), WRONG_SIGN, retire), Lost)
    assert isinstance(ask(make_account(), WRONG_SIGN), Answer)
