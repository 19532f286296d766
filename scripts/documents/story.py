"""A day of one merchant: the run of the real service that all printed examples come from.

Rules: the application, the book, the database and the payer are the real ones. Only what would differ between
runs is fixed: the clock, the master key, the merchant's appKey and secret, and the nonces. So the same code
gives the same bytes.
"""

import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import httpx
from msgspec import structs
from scripts.documents.control_story import play_controls
from scripts.documents.deposit_story import deposit
from scripts.documents.story_payer import CONFIRM_MS, open_payer

from merchant_wallet.api.reference.operations import MERCHANT
from merchant_wallet.base import db
from merchant_wallet.base.settings import Settings
from merchant_wallet.base.signing import HMAC, build_string_to_sign, sign
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book.commands import Adjust, Submission
from merchant_wallet.book.nonce_partitions import ensure_nonce_partitions
from merchant_wallet.callbacks.answers import Answer
from merchant_wallet.callbacks.payloads import Payload, Value, build_payload
from merchant_wallet.callbacks.sender import CallbackSender
from merchant_wallet.callbacks.test_events import EVENT_TYPE, format_event_id
from merchant_wallet.exchange import rates
from merchant_wallet.merchants import store
from merchant_wallet.merchants.keys import APP, CALLBACK
from merchant_wallet.merchants.records import Merchant
from merchant_wallet.merchants.settings import show_settings
from merchant_wallet.processes.app import Web, open_web
from merchant_wallet.processes.base import Base, make_base, make_writer
from merchant_wallet.sub_users.links import LINK_KEY, make_link_token

START_MS: Final = 1_763_712_000_000
"""2025-11-21 08:00:00 UTC: the time of the withdrawal in the signature's test vector."""
APP_KEY: Final = "demo"
SECRET: Final = "0123456789abcdef0123456789abcdef"
CALLBACK_SECRET: Final = "ABCDEFGHIJKLMNOPabcdefghijklmnop"
MASTER_KEY: Final = bytes(range(32))
PUBLIC_URL: Final = "https://wallet.example"
COIN: Final = 1_000_000
VECTOR_OPERATION: Final = "createMerchantWithdrawOrder"
VECTOR: Final[dict[str, Any]] = {
    "appKey": APP_KEY,
    "timestamp": START_MS,
    "nonceStr": "a1B2c3D4e5F6g7H8",
    "amount": "12.50",
    "chainType": "TRC20",
    "currency": "USDT",
    "mcOrderId": "10001",
    "address": "TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC",
    "notifyUrl": "https://example.com/n?a=1&b=2",
}


class Example(NamedTuple):
    """A request and its answer as they were on the wire."""

    operation: str
    body: str
    string_to_sign: str
    nonce: str
    answer: str

    @property
    def data(self) -> dict[str, Any]:
        """The answer's `data`, parsed with the usual JSON types."""
        data: dict[str, Any] = json.loads(self.answer)["data"]
        return data


@dataclass
class Story:
    """The eight operations, the sandbox's control actions, some refusals, a new merchant's settings, and all
    kinds of callbacks.
    """

    operations: dict[str, Example]
    controls: dict[str, Example]
    refusals: list[Example]
    fresh_settings: dict[str, str]
    callback: Payload
    deposit_callback: Payload
    test_callback: Payload


@dataclass
class Clock:
    """The story's clock. Only the story moves it."""

    now_ms: int

    def __call__(self) -> int:
        """The present time in milliseconds."""
        return self.now_ms


class Shop:
    """The merchant's client: signs requests and sends them."""

    def __init__(self, web: Web, clock: Clock) -> None:
        self._clock = clock
        self._http = httpx.AsyncClient(transport=httpx.ASGITransport(web.application), base_url=PUBLIC_URL)

    async def call(
        self,
        operation: str,
        /,
        *,
        start: str = MERCHANT,
        spoil: str = "",
        skew_ms: int = 0,
        at_ms: int | None = None,
        **own: Any,
    ) -> Example:
        """One request to `start` and the operation. `spoil` replaces the last characters of the signature,
        `skew_ms` moves the timestamp.
        """
        self._clock.now_ms = self._clock.now_ms + 1000 if at_ms is None else at_ms
        common = {
            "appKey": APP_KEY,
            "timestamp": self._clock.now_ms + skew_ms,
            "nonceStr": _draw_nonce(f"{operation} {self._clock.now_ms}"),
        }
        fields = {**common, **own}
        path = f"{start}{operation}"
        texts = {name: str(value) for name, value in fields.items()}
        signature = sign(HMAC, SECRET, path, texts)
        fields["sign"] = signature[: len(signature) - len(spoil)] + spoil
        body = json.dumps(fields, indent=2, ensure_ascii=False)
        headers = {"Content-Type": "application/json"}
        answered = await self._http.post(path, content=body.encode(), headers=headers)
        return Example(operation, body, build_string_to_sign(path, texts), texts["nonceStr"], answered.text)


class Mailbox:
    """The merchant's endpoint: stores every callback and accepts it."""

    def __init__(self) -> None:
        self.letters: list[Payload] = []

    async def send(self, url: str, payload: Payload) -> Answer:
        """Accept a callback at once."""
        self.letters.append(payload)
        return Answer(1, "203.0.113.7", 200, b"success")


async def run_story(url: str, folder: Path) -> Story:
    """Run the day on a fresh, migrated database."""
    clock = Clock(START_MS - 10_000)
    settings = Settings(master_key=MASTER_KEY, data=folder, connections=2, log_level="warning")
    base = make_base(settings, url)
    merchant, fresh_settings = await _open_shop(base, clock)
    await _fund(base, merchant, clock)
    async with _open(base, clock) as web:
        shop = Shop(web, clock)
        mailbox = Mailbox()
        examples = await _do_business(base, shop, clock, mailbox)
        operations = {example.operation: example for example in examples}
        refusals = await _go_wrong(shop)
        await _receive(base, merchant, operations["getMerchantCustomer"], clock, mailbox)
        payload, deposit_payload = mailbox.letters
        test = _make_test_event(merchant, clock())
        played = await play_controls(base, shop.call, clock, json.loads(payload.body)["eventId"])
        controls = {example.operation: example for example in played}
        return Story(operations, controls, refusals, fresh_settings, payload, deposit_payload, test)


async def _do_business(base: Base, shop: Shop, clock: Clock, mailbox: Mailbox) -> list[Example]:
    customer = await shop.call("getMerchantCustomer", extUserId="alice")
    address = customer.data["address"]
    examples = [
        customer,
        await shop.call(
            "transferFromMerchantToUser", currency="KFB", amount="100", mcOrderId="topup-1", address=address
        ),
        await shop.call(
            "transferFromUserToMerchant", extUserId="alice", currency="KFB", amount="40.5", mcOrderId="cart-7"
        ),
        await shop.call(
            "exchange", amount="71.00", sendCurrency="KFB", receiveCurrency="USDT", mcOrderId="fx-1"
        ),
        await shop.call("getWithdrawFee", amount="12.50", currency="USDT"),
    ]
    created = await shop.call(VECTOR_OPERATION, at_ms=START_MS, **VECTOR)
    await _pay(base, clock)
    await _deliver_callbacks(base, clock, mailbox)
    examples += [
        created,
        await shop.call("queryOrder", orderId=created.data["orderId"], mcOrderId="10001"),
        await shop.call("getMerchantBalance"),
    ]
    return examples


async def _receive(base: Base, merchant: Merchant, customer: Example, clock: Clock, mailbox: Mailbox) -> None:
    """A customer's deposit, and its callback."""

    def wait() -> None:
        clock.now_ms += CONFIRM_MS

    await deposit(base, merchant.merchant_id, customer.data["address"], clock, wait)
    await _deliver_callbacks(base, clock, mailbox)


def _make_test_event(merchant: Merchant, at_ms: int) -> Payload:
    """The callback of a test event, as its worker makes it."""
    known = structs.replace(merchant, app_key=APP_KEY, secrets=(SECRET,), callback_secret=CALLBACK_SECRET)
    fields: dict[str, Value] = {"eventType": EVENT_TYPE, "createTime": at_ms}
    return build_payload(known, format_event_id(1), fields, _draw_nonce("test event"), at_ms + 500)


async def _go_wrong(shop: Shop) -> list[Example]:
    return [
        await shop.call("getWithdrawFee", amount="12.505", currency="USDT"),
        await shop.call(
            "transferFromUserToMerchant", extUserId="alice", currency="KFB", amount="500", mcOrderId="cart-8"
        ),
        await shop.call("getMerchantBalance", skew_ms=-600_000),
        await shop.call("getMerchantBalance", spoil="0000"),
    ]


@asynccontextmanager
async def _open(base: Base, clock: Clock) -> AsyncIterator[Web]:
    """The web side, with links dated by the story's clock."""
    link_key = base.keyring.derive(LINK_KEY)

    def make_link(merchant_id: int, user_id: int) -> str:
        return f"{PUBLIC_URL}/w/{make_link_token(link_key, merchant_id, user_id, clock())}"

    async with open_web(base, PUBLIC_URL, clock) as web:
        web.dependencies.operation_context = web.dependencies.operation_context._replace(make_link=make_link)
        yield web


async def _open_shop(base: Base, clock: Clock) -> tuple[Merchant, dict[str, str]]:
    """A new merchant with the appKey and the secret of the test vector, and its settings when it was new."""
    async with await db.connect(base.url) as connection:
        await ensure_nonce_partitions(connection, clock() // DAY_MS)
        made = await store.create(
            connection, base.keyring, "Shop", seed=base.keyring.sandbox_seed(), at_ms=clock()
        )
        merchant_id = made.merchant.merchant_id
        sealed = base.keyring.seal(SECRET, merchant_id, APP, 1)
        await connection.execute("update merchant set app_key = %s", (APP_KEY,))
        await connection.execute("update merchant_secret set sealed = %s where purpose = 'app'", (sealed,))
        sealed = base.keyring.seal(CALLBACK_SECRET, merchant_id, CALLBACK, 1)
        await connection.execute(
            "update merchant_secret set sealed = %s where purpose = 'callback'", (sealed,)
        )
        fees = {"transfer-fee-rate": "0.005", "withdraw-fee-rate": "0.001", "withdraw-fee-min": "1"}
        await store.change_settings(connection, base.keyring, merchant_id, fees)
        for direction, rate_e8 in ((rates.USDT_TO_KFB, 710_000_000), (rates.KFB_TO_USDT, 14_000_000)):
            await rates.set_rate(connection, direction, rate_e8, at_ms=clock())
    return made.merchant, show_settings(made.merchant)


async def _fund(base: Base, merchant: Merchant, clock: Clock) -> None:
    writer = make_writer(base, connections=1, clock=clock)
    for currency in ("USDT", "KFB"):
        credit = Adjust(currency, 1000 * COIN, "opening balance", "cli:operator", None)
        await writer.submit(merchant.merchant_id, Submission(credit))
    await writer.close()


async def _pay(base: Base, clock: Clock) -> None:
    """Run the payer twice: once to send, and once after the sandbox has confirmed."""
    async with open_payer(base, clock) as payer:
        for _ in range(2):
            await payer.start_due()
            await payer.finish()
            clock.now_ms += CONFIRM_MS


async def _deliver_callbacks(base: Base, clock: Clock, mailbox: Mailbox) -> None:
    """Deliver the callbacks that are due."""
    connect = partial(db.connect, base.url)
    nonce = partial(_draw_nonce, "callback")
    sender = CallbackSender(connect, base.keyring, mailbox, clock=clock, make_nonce=nonce)
    await sender.start_due()
    await sender.close()


def _draw_nonce(what: str) -> str:
    return hashlib.sha256(what.encode()).hexdigest()[:16]
