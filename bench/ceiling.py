"""The ceiling: the service's HTTP path with signatures and rules, but with memory instead of a database.

The database can't make the service faster than this. `python -m bench.ceiling FILE` serves until SIGTERM.
Rules: routes, gate, endpoints and rules are the service's own; only storage is replaced. An answer is sent at
once, from a book that forgets orders and nonces so that it does not grow.
"""

import asyncio
import sys
import time
from pathlib import Path
from typing import Final, cast

import uvloop

from bench.merchants import (
    KFB_USDT_E8,
    MERCHANT_UNITS,
    NOTIFY_URL,
    ORDER_UNITS,
    PAYOUT_ADDRESS,
    SUB_USER_UNITS,
    USDT_KFB_E8,
    BenchMerchant,
    read_merchants,
)
from merchant_wallet.api.dependencies import Dependencies
from merchant_wallet.api.gate import Gate
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.config import load_settings
from merchant_wallet.base.currencies import KFB, USDT
from merchant_wallet.base.signing import HMAC
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book.chart import FIXED, MERCHANT_ID_OF
from merchant_wallet.book.commands import Submission
from merchant_wallet.book.journal import FIRST_HASH
from merchant_wallet.book.outcomes import Outcome, Withdrawal
from merchant_wallet.book.rules import apply_one
from merchant_wallet.book.state import Changes, Draft, Rate
from merchant_wallet.book.sub_user import SubUser
from merchant_wallet.book.writer import Writer
from merchant_wallet.merchants.cache import MerchantCache
from merchant_wallet.merchants.keys import Keyring
from merchant_wallet.merchants.records import ACTIVE, Merchant
from merchant_wallet.observability import logs
from merchant_wallet.observability.logs import AccessLog
from merchant_wallet.processes import stop_signals
from merchant_wallet.processes.app import Web, make_operation_context
from merchant_wallet.processes.base import Base
from merchant_wallet.processes.compared_clock import ComparedClock
from merchant_wallet.processes.listener import Listener
from merchant_wallet.processes.listening_socket import bind, url_of
from merchant_wallet.processes.routes import Dispatch, build_endpoints, build_rest
from merchant_wallet.processes.web import serve_web

HOST: Final = "127.0.0.1"
VERSION: Final = 1


class InMemoryMerchants:
    """Replaces the merchant cache: every merchant is known from the start and never changes."""

    def __init__(self, merchants: list[Merchant]) -> None:
        self._merchants = {merchant.app_key: merchant for merchant in merchants}

    def get(self, app_key: str) -> Merchant | None:
        """The merchant of a key."""
        return self._merchants.get(app_key)

    async def load(self, app_key: str) -> Merchant | None:
        """The same."""
        return self._merchants.get(app_key)

    async def refresh(self, merchant: Merchant) -> Merchant | None:
        """The same merchant."""
        return merchant


class MemoryWriter:
    """Replaces the writer: judges each command at once on a draft that stays."""

    def __init__(self, merchants: list[BenchMerchant]) -> None:
        self._drafts = {merchant.merchant_id: make_draft(merchant) for merchant in merchants}

    def submit(self, merchant_id: int, submission: Submission) -> asyncio.Future[Outcome]:
        """The outcome, already set."""
        draft = self._drafts[merchant_id]
        draft.now_ms = now_ms()
        answer: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        answer.set_result(apply_one(draft, submission))
        _forget(draft)
        return answer


def _forget(draft: Draft) -> None:
    for order_id in draft.changes.created:
        del draft.order_id_by_mc[draft.withdrawals.pop(order_id).mc_order_id]
    draft.changes = Changes()
    draft.earlier_transfers.clear()
    draft.earlier_exchanges.clear()
    draft.used_nonces.clear()


def make_draft(merchant: BenchMerchant) -> Draft:
    """A book in memory: fixed accounts, sub-users, rates and orders of a merchant of the bench."""
    draft = Draft(merchant.merchant_id, now_ms(), 1, 0, None, 0, FIRST_HASH, VERSION, 0, 0)
    draft.balances.update((account.account_id, 0) for account in FIXED)
    draft.balances.update((MERCHANT_ID_OF[currency], MERCHANT_UNITS) for currency in (USDT, KFB))
    for known in merchant.sub_users:
        evm, tron = bytes.fromhex(known.evm_hex), bytes.fromhex(known.tron_hex)
        name = known.ext_user_id
        sub_user = SubUser(
            user_id=known.user_id,
            ext_user_id=name,
            username=name,
            currency=KFB,
            evm_address=evm,
            tron_address=tron,
        )
        draft.add_sub_user(sub_user, SUB_USER_UNITS)
    for order in merchant.orders:
        draft.put_withdrawal(_make_order(order.order_id, order.mc_order_id))
    draft.rates[USDT, KFB] = Rate(USDT_KFB_E8, False, now_ms(), None)
    draft.rates[KFB, USDT] = Rate(KFB_USDT_E8, False, now_ms(), None)
    return draft


def _make_order(order_id: int, mc_order_id: str) -> Withdrawal:
    at_ms = now_ms()
    return Withdrawal(
        order_id=order_id,
        mc_order_id=mc_order_id,
        amount_units=ORDER_UNITS,
        fee_units=0,
        rate_e8=0,
        chain="TRC20",
        address=PAYOUT_ADDRESS,
        notify_url=NOTIFY_URL,
        status=0,
        step_no=0,
        approved_ms=None,
        deadline_ms=at_ms + DAY_MS,
        created_ms=at_ms,
        finished_ms=None,
        notified_ms=None,
        tx_hash=None,
    )


def make_merchant(merchant: BenchMerchant) -> Merchant:
    """The merchant as the cache would load it."""
    return Merchant(
        merchant_id=merchant.merchant_id,
        name=f"bench {merchant.merchant_id}",
        app_key=merchant.app_key,
        status=ACTIVE,
        currency_mode=KFB,
        sign_method=HMAC,
        secrets=(merchant.secret,),
        callback_secret="",
        networks=(),
        disabled_operations=frozenset(),
        transfer_fee_rate_e8=0,
        withdraw_fee_rate_e8=0,
        withdraw_fee_min_units=0,
        approval_limit_units=0,
        daily_limit_units=None,
        allowed_addresses=frozenset(),
        auto_register=True,
        require_pin=False,
        rate_limit=0,
        account_xpubs=merchant.account_xpubs,
        settings_version=VERSION,
        created_ms=now_ms(),
    )


def make_dependencies(merchants: list[BenchMerchant], access_log: AccessLog, url: str) -> Dependencies:
    """The service's own dependencies, with memory instead of the database."""
    settings = load_settings({})
    base = Base(settings, "", Keyring(bytes(32)))
    gate = Gate(
        tolerance_s=settings.timestamp_tolerance_s,
        rate_limit=settings.rate_limit,
        failed_auth_limit=0,
        sandbox=True,
        monotonic=time.monotonic,
    )
    return Dependencies(
        gate=gate,
        merchant_cache=cast(
            MerchantCache, InMemoryMerchants([make_merchant(merchant) for merchant in merchants])
        ),
        writer=cast(Writer, MemoryWriter(merchants)),
        operation_context=make_operation_context(base, url, frozenset()),
        access_log=access_log,
    )


async def serve(merchants: list[BenchMerchant]) -> None:
    """Serve with the service's own server settings until SIGTERM or SIGINT."""
    stop = stop_signals.make_stop_event()
    listening = await bind(HOST, 0)
    address = url_of(HOST, listening)
    access_log = AccessLog(sys.stderr, enabled=True)
    access_log.start()
    dependencies = make_dependencies(merchants, access_log, address)
    endpoints = build_endpoints(dependencies)
    clock = ComparedClock(now_ms)
    rest = build_rest(dependencies, "sandbox", clock, tuple(endpoints))
    web = Web(endpoints, Dispatch(endpoints, (), rest), dependencies, clock)

    async def run(_: Listener) -> None:
        print(f"ready: {address}", flush=True)
        await stop.wait()

    await serve_web(web, listening, run)
    await access_log.stop()


if __name__ == "__main__":
    logs.set_up("info", "json")
    merchants = [
        merchant
        for merchants in read_merchants(Path(sys.argv[1])).populations.values()
        for merchant in merchants
    ]
    uvloop.run(serve(merchants))
