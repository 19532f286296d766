"""Operators: what people change and decide on the command line while merchants ask.

Rules:
- A change is told to the model before its command starts, and again when the command has succeeded and no
  older answer is under way.
- A command that failed is given again, as a person does whose database was away. What it did then counts
  once.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Final

from simulator.book import Doubt
from simulator.deployment import Deployment, Ran
from simulator.door import LentKey
from simulator.failure import Contradiction
from simulator.merchants import LOWEST_LIMIT, Merchant
from simulator.orders import E8, UNITS, Effect, Tariff, write, write_rate

MOST_TRIES: Final = 60
PAUSE_S: Final = 0.5
LONGEST_SUSPENSION_S: Final = 1.5
LONGEST_LOAN_S: Final = 2.0
BOUGHT: Final = ("USDT", "KFB")
"""The direction in which a deposit of a sub-user is exchanged."""
FIRST_TARIFF: Final = Tariff(rates_e8={("USDT", "KFB"): 712_345_678, ("KFB", "USDT"): 12_345_678})
ACTIONS: Final = {
    "set_merchant": "merchant.set",
    "set_rate": "rate.set",
    "pause_rate": "rate.pause",
    "credit": "book.credit",
    "approve": "withdrawal.approve",
    "cancel": "withdrawal.cancel",
    "suspend": "merchant.suspend",
    "resume": "merchant.resume",
    "add_key": "merchant.add_key",
    "revoke_key": "merchant.revoke_key",
}
"""What the audit log calls each act."""


class Operators:
    """The people of the platform, one act after the other."""

    def __init__(self, deployment: Deployment, merchants: Sequence[Merchant], random: Random) -> None:
        self.acknowledged: Counter[str] = Counter()
        self.tried: Counter[str] = Counter()
        self._deployment = deployment
        self._merchants = merchants
        self._random = random
        self._numbers = 0

    async def set_first_rates(self) -> None:
        """The platform's own rates, before anybody exchanges. Raises Contradiction."""
        for pair, rate_e8 in FIRST_TARIFF.rates_e8.items():
            await self._insist("set_rate", "rates", "set", ":".join(pair), write_rate(rate_e8))

    async def tell_deposits_to(self, merchant_id: str, url: str) -> None:
        """Where a merchant is told of deposits. Raises Contradiction."""
        await self._insist("set_merchant", "merchant", "set", merchant_id, "--deposit-notify-url", url)

    async def live(self, ends: asyncio.Event) -> None:
        """Act until `ends` is set. Raises Contradiction."""
        while not ends.is_set():
            merchant = self._random.choice(self._merchants)
            act = self._random.choice(
                (
                    self._set_terms,
                    self._set_rate,
                    self._pause_rate,
                    self._credit,
                    self._decide,
                    self._suspend,
                    self._lend_key,
                )
            )
            await act(merchant)
            await asyncio.sleep(PAUSE_S)

    async def _set_terms(self, merchant: Merchant) -> None:
        tariff = replace(
            merchant.book.newest_tariff,
            transfer_fee_e8=self._random.randint(0, 500) * 10_000,
            withdraw_fee_e8=self._random.randint(0, 500) * 10_000,
            withdraw_minimum=self._random.randint(0, 20) * 100_000,
            approval_limit=self._random.randint(1, 3) * LOWEST_LIMIT,
        )
        merchant.book.begin_change(tariff)
        fees = (
            ("--transfer-fee-rate", f"{write(tariff.transfer_fee_e8)}%"),
            ("--withdraw-fee-rate", f"{write(tariff.withdraw_fee_e8)}%"),
            ("--withdraw-fee-min", write(tariff.withdraw_minimum)),
            ("--approval-limit", write(tariff.approval_limit)),
        )
        options = [part for fee in fees for part in fee]
        ran = await self._insist("set_merchant", "merchant", "set", merchant.account.merchant_id, *options)
        await _end_change(merchant, ran)

    async def finish(self) -> None:
        """End the pauses that deposits of sub-users wait for. Raises Contradiction."""
        for merchant in self._merchants:
            if BOUGHT not in merchant.book.newest_tariff.rates_e8:
                await self._set_rate_of(merchant, BOUGHT)

    async def _set_rate(self, merchant: Merchant) -> None:
        await self._set_rate_of(merchant, self._random.choice((BOUGHT, ("KFB", "USDT"))))

    async def _set_rate_of(self, merchant: Merchant, pair: tuple[str, str]) -> None:
        # The product of both directions stays below 1: a loop of exchanges would make money.
        low, high = (6.5, 7.4) if pair == BOUGHT else (0.11, 0.13)
        rate_e8 = self._random.randint(int(low * E8), int(high * E8))
        rates = {**merchant.book.newest_tariff.rates_e8, pair: rate_e8}
        merchant.book.begin_change(replace(merchant.book.newest_tariff, rates_e8=rates))
        named = ("--merchant", merchant.account.merchant_id)
        ran = await self._insist("set_rate", "rates", "set", ":".join(pair), write_rate(rate_e8), *named)
        await _end_change(merchant, ran)

    async def _pause_rate(self, merchant: Merchant) -> None:
        """A pause of one direction. The next `_set_rate` of that direction ends it."""
        pair = self._random.choice([*merchant.book.newest_tariff.rates_e8] or [None])
        if pair is None:
            return
        rates = {each: rate for each, rate in merchant.book.newest_tariff.rates_e8.items() if each != pair}
        merchant.book.begin_change(replace(merchant.book.newest_tariff, rates_e8=rates))
        named = ("--merchant", merchant.account.merchant_id)
        ran = await self._insist("pause_rate", "rates", "pause", ":".join(pair), *named)
        await _end_change(merchant, ran)

    async def _credit(self, merchant: Merchant) -> None:
        self._numbers += 1
        currency, units = self._random.choice(("USDT", "KFB")), self._random.randint(1, 900 * UNITS)
        key = ("adjustment", f"bank-{self._numbers}")
        merchant.book.expect(Doubt(key, effect=Effect(((currency, units),), units)))
        about = ("--reason", "the simulator's bank", "--ref", key[1])
        await self._insist(
            "credit", "book", "credit", merchant.account.merchant_id, currency, write(units), *about
        )
        async with merchant.lock:
            merchant.book.see(key, True)

    async def _suspend(self, merchant: Merchant) -> None:
        """Suspend a merchant for a moment."""
        account = merchant.account
        account.may_be_suspended = True
        ran = await self._insist("suspend", "merchant", "suspend", account.merchant_id)
        # As with a change, it says on standard error if the merchant's cell does not know yet.
        account.is_suspended = not ran.errors
        await asyncio.sleep(self._random.uniform(0.0, LONGEST_SUSPENSION_S))
        account.is_suspended = False
        ran = await self._insist("resume", "merchant", "resume", account.merchant_id)
        if not ran.errors:
            await merchant.end_suspension()

    async def _lend_key(self, merchant: Merchant) -> None:
        """A second key for a moment. If the answer of its creation is lost, nobody has its secret."""
        account = merchant.account
        ran = await self._run("add_key", "merchant", "add-key", account.merchant_id, "--name", "till")
        if not ran.ok:
            return
        made = ran.read()
        key = LentKey(made["appKey"], made["appSecret"])
        account.lent.append(key)
        account.uses_lent = True
        await asyncio.sleep(self._random.uniform(0.0, LONGEST_LOAN_S))
        key.may_be_revoked = True
        key.is_revoked = await self._revoke(account.merchant_id, made["keyNo"])
        await asyncio.sleep(PAUSE_S)
        account.uses_lent = False

    async def _revoke(self, merchant_id: str, key_no: int) -> bool:
        """Revoke a key. Returns whether the merchant's cell knows for certain. Raises Contradiction."""
        for _ in range(MOST_TRIES):
            ran = await self._run("revoke_key", "merchant", "revoke-key", merchant_id, str(key_no))
            if ran.ok:
                return not ran.errors
            # A revoked key can't be revoked again: a command that was lost may have done it.
            listed = await self._deployment.command("merchant", "keys", merchant_id, "--json")
            if listed.ok and any(
                key["keyNo"] == key_no and key["revokedMs"] is not None for key in listed.read()["keys"]
            ):
                return False
            await asyncio.sleep(PAUSE_S)
        raise Contradiction(f"'{ran.line}' failed {MOST_TRIES} times: {ran.output}{ran.errors}")

    async def _decide(self, merchant: Merchant) -> None:
        waiting = merchant.list_waiting()
        if not waiting:
            return
        payout = self._random.choice(waiting)
        act = self._random.choice(("approve", "cancel"))
        if act == "cancel":
            merchant.begin_cancel(payout)
        else:
            payout.may_be_approved = True
        ran = await self._run(act, "withdrawals", act, payout.order_id)
        if ran.ok:
            async with merchant.lock:
                if act == "cancel":
                    merchant.end_cancel(payout)
                else:
                    payout.is_approved = True
        # A decision whose command failed may still have been made. The order's own status then tells.

    async def _insist(self, act: str, *arguments: str) -> Ran:
        """Give a command until it succeeds. Raises Contradiction."""
        for _ in range(MOST_TRIES):
            ran = await self._run(act, *arguments)
            if ran.ok:
                return ran
            await asyncio.sleep(PAUSE_S)
        raise Contradiction(f"'{ran.line}' failed {MOST_TRIES} times: {ran.output}{ran.errors}")

    async def _run(self, act: str, *arguments: str) -> Ran:
        self.tried[act] += 1
        ran = await self._deployment.command(*arguments, "--json")
        self.acknowledged[act] += ran.ok
        return ran


async def _end_change(merchant: Merchant, ran: Ran) -> None:
    """A change was acknowledged. It says on standard error if a cell does not know yet."""
    await merchant.end_change(has_reached_cell=not ran.errors)
