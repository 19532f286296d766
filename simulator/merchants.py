"""Merchants: what they ask, in which order, and what the model says to each answer.

Rules:
- A merchant does one thing at a time, so that the model knows the state that each answer is judged on.
  Beside it, other merchants, operators and faults do theirs.
- An order without an answer is repeated under its mcOrderId until there is one. If that is a refusal, the
  first request may still be on its way: the doubt stays.
- The merchant's own stream of random numbers makes all choices.
"""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import replace
from random import Random
from typing import Final

from merchant_wallet_client import Answer, DepositCallback, OrderCallback
from merchant_wallet_client.callbacks import AnyCallback
from simulator.book import CONFLICT, Book, Doubt, Key
from simulator.client import MOST_TRIES, Client, is_certain, pause
from simulator.deposits import HOLD_WEIGHTS, HOLDS, Deposits, Held, Told
from simulator.door import SUCCESS, WRONG_SIGN, Account, Lost
from simulator.failure import Contradiction
from simulator.orders import (
    CREDIT,
    DEBIT,
    EXCHANGE,
    UNITS,
    WITHDRAW,
    Effect,
    Order,
    find_withdraw_fee,
    parse,
    write,
)
from simulator.overlaps import Overlaps
from simulator.payouts import CANCELLED, PAID, RECIPIENTS, RETURNING, Payout

USERS: Final = ("alice", "bob", "carol")
USED_NONCE: Final = 40103
NOT_FOUND: Final = 40401
LIMIT: Final = 42202
MOST_DOUBTS: Final = 4
MOST_DEPOSITS: Final = 3
"""With so many doubts no more deposits are asked for: nothing that the merchant does ends them."""
LOWEST_LIMIT: Final = 500 * UNITS
"""No approval limit is lower: an order up to this much never waits for a person."""
STREAM_OF: Final = {DEBIT: "transfer", CREDIT: "transfer", EXCHANGE: "exchange", WITHDRAW: "withdrawal"}
WEIGHTS: Final = {
    "debit": 24,
    "credit": 24,
    "exchange": 10,
    "withdraw": 6,
    "read_balance": 8,
    "read_user": 7,
    "deposit": 3,
    "release": 2,
    "quote": 4,
    "query": 7,
    "repeat": 6,
    "conflict": 2,
    "replay": 2,
    "twin": 3,
    "sign_wrongly": 1,
}


class Merchant:
    """A merchant, its model, and its history."""

    def __init__(
        self, account: Account, book: Book, url: str, notify_url: str, overlaps: Overlaps, random: Random
    ) -> None:
        self.account = account
        self.book = book
        self.payouts: dict[str, Payout] = {}
        self.deposits = Deposits(book)
        self.held: list[Held] = []
        self.client = Client(account, url, random)
        self.lock = asyncio.Lock()
        """Held while an answer is under way. Who tells the model of something newer waits for it."""
        self._random = random
        self._notify_url = notify_url
        self._overlaps = overlaps
        self._addresses: dict[str, str] = {}
        self._numbers = 0
        self._heard: list[AnyCallback] = []
        self._early: list[OrderCallback] = []
        """Callbacks that came before the answer that names their order."""

    @property
    def acknowledged(self) -> int:
        """How many requests were answered for good."""
        return self.client.answered.total()

    async def open_wallets(self) -> None:
        """Look up the sub-users, which creates them. Raises Contradiction."""
        for name in USERS:
            answer = await self.client.insist("getMerchantCustomer", {"extUserId": name})
            self._require(answer, SUCCESS)
            self._addresses[name] = str(answer.data["address"])

    async def take_from_tap(self, currency: str, units: int) -> None:
        """Money of the sandbox, which the model has from the beginning. Raises Contradiction."""
        fields = {"currency": currency, "amount": write(units), "mcOrderId": f"first-{currency}"}
        self._require(await self.client.insist("/sandbox/fund", fields), SUCCESS)

    async def live(self, ends: asyncio.Event) -> None:
        """Ask, until `ends` is set. Raises Contradiction."""
        names, weights = [*WEIGHTS], [*WEIGHTS.values()]
        while not ends.is_set():
            async with self.lock:
                self._begin_act()
                if len(self.book.doubts) > MOST_DOUBTS:
                    await self.settle_doubts()
                (name,) = self._random.choices(names, weights)
                await getattr(self, f"_{name}")()
            await asyncio.sleep(0)

    async def settle_doubts(self) -> None:
        """Look at every order that may have moved, and repeat each that is in doubt. Raises Contradiction."""
        self._begin_act()
        for doubt in self.book.doubts:
            if doubt.is_request and doubt.order is not None:
                await self._order(doubt.order)
        await self._read_balance()
        for payout in list(self.payouts.values()):
            if not payout.is_final:
                await self._look_at(payout)

    async def see_everything(self) -> None:
        """Read all balances. Raises Contradiction."""
        await self._read_balance()
        for name in USERS:
            await self._read_user_named(name)

    def hear(self, callback: AnyCallback) -> None:
        """A callback came. The model is told when no answer is under way that may be older."""
        self._heard.append(callback)

    async def end_change(self, *, has_reached_cell: bool) -> None:
        """The change of fees or a rate was acknowledged."""
        at_s = asyncio.get_running_loop().time()
        async with self.lock:
            self.book.end_change(at_s, has_reached_cell=has_reached_cell)

    async def end_move(self, *, is_apart: bool) -> None:
        """The move of the book was acknowledged."""
        async with self.lock:
            self.book.end_move(is_apart=is_apart)

    async def end_suspension(self) -> None:
        """The merchant is active again: no answer that is under way may say otherwise."""
        async with self.lock:
            self.account.may_be_suspended = False

    def _begin_act(self) -> None:
        """What is sent from now on is judged as of this moment. Raises Contradiction."""
        self.book.at_s = asyncio.get_running_loop().time()
        self._take_callbacks()

    def _take_callbacks(self) -> None:
        """Tell the model of the callbacks that came. Raises Contradiction."""
        heard, self._heard = self._heard, []
        for callback in heard:
            self._take(callback)

    def _take(self, callback: AnyCallback) -> None:
        self._overlaps.count_money("callback")
        if isinstance(callback, DepositCallback):
            self.client.note(f"callback of a deposit {callback.tx_hash} {callback.amount}")
            units, arrival = (parse(format(each, "f")) for each in (callback.amount, callback.amount_arrival))
            account = "USDT" if callback.ext_user_id is None else f"user:{callback.ext_user_id}"
            told = Told(callback.tx_hash, account, units, arrival)
            self._count_deposits(self.deposits.hear(told))
            return
        if not isinstance(callback, OrderCallback):
            raise Contradiction(f"a callback that nobody has asked for: {callback}")
        status = callback.txn_status.value
        self.client.note(f"callback {callback.order_id} {callback.mc_order_id} status {status}")
        payout = self.payouts.get(callback.mc_order_id)
        if payout is None:
            self._early.append(callback)
        else:
            self._tell(payout, callback)

    def list_waiting(self) -> list[Payout]:
        """Orders that wait for a person."""
        return [
            payout
            for payout in self.payouts.values()
            if payout.may_wait and payout.status == "0" and not payout.is_approved
        ]

    def begin_cancel(self, payout: Payout) -> None:
        """A person begins to cancel an order: from now on its amount may come back."""
        effect = Effect((("USDT", payout.amount),), payout.amount)
        self.book.expect(Doubt(_return_key(payout.mc_order_id), effect=effect))

    def end_cancel(self, payout: Payout) -> None:
        """The cancellation was acknowledged. Raises Contradiction."""
        payout.see("4")
        self._see_return(payout)

    def require_no_strangers(self) -> None:
        """Every callback was of an order or a deposit. Raises Contradiction."""
        if self._early or self.deposits.early:
            raise Contradiction(f"callbacks of what was never done: {self._early} {self.deposits.early}")

    def close(self) -> None:
        """Close the connections: nothing more is sent or received on them."""
        self.client.close()

    def _tell(self, payout: Payout, callback: OrderCallback) -> None:
        if str(callback.order_id) != payout.order_id:
            raise Contradiction(f"a callback of {payout.mc_order_id} names the order {callback.order_id}")
        amount, arrival = (parse(format(each, "f")) for each in (callback.amount, callback.amount_arrival))
        payout.hear(callback.txn_status.value, amount, arrival)
        self._see_return(payout)

    # What merchants do. `live` chooses by name.

    async def _debit(self) -> None:
        await self._order(self._make_transfer(DEBIT))

    async def _credit(self) -> None:
        await self._order(self._make_transfer(CREDIT))

    async def _exchange(self) -> None:
        await self._order(self._make_exchange())

    async def _withdraw(self) -> None:
        large = self._random.random() < 0.1
        most = LOWEST_LIMIT // 10_000
        cents = self._random.randint(most + 1, 4 * most) if large else self._random.randint(1, 20_000)
        paid = [address for address, (_, path) in RECIPIENTS.items() if path == PAID]
        is_certain = large or len(self.book.doubts) > MOST_DOUBTS
        address = self._random.choice(paid if is_certain else [*RECIPIENTS])
        await self._order(Order(WITHDRAW, self._make_id(), cents * 10_000, address=address))

    async def _deposit(self) -> None:
        """USDT arrives at an own address or a sub-user's. The order is given once: it has no id."""
        if len(self.book.doubts) >= MOST_DEPOSITS:
            return
        self._numbers += 1
        # No two deposits have the same amount, so that the callback of an unanswered one is recognised.
        units = self._random.randint(1, 200) * UNITS + self._numbers
        user = self._random.choice((None, *USERS))
        asked, actions = HOLDS[self._random.choices([*HOLDS], HOLD_WEIGHTS)[0]]
        fields = {"chainType": self._random.choice(("ERC20", "TRC20")), "amount": write(units), **asked}
        answer = await self.client.ask(
            "/sandbox/deposit", fields if user is None else {**fields, "extUserId": user}
        )
        if is_certain(answer) and "finality" in asked and answer.code == LIMIT:
            return
        account, tx_hash = "USDT" if user is None else f"user:{user}", None
        if is_certain(answer):
            self._require(answer, SUCCESS)
            tx_hash = str(answer.data["txHash"])
        if not actions:
            self._count_deposits(self.deposits.expect(account, units, tx_hash))
        elif tx_hash is not None:
            self.held.append(Held(account, units, tx_hash, actions))

    async def _release(self) -> None:
        if self.held and len(self.book.doubts) < MOST_DEPOSITS:
            await self._end_hold(self._random.choice(self.held))

    async def release_deposits(self) -> None:
        """Confirm and release every deposit that waits for it. Raises Contradiction."""
        for held in list(self.held):
            await self._end_hold(held)

    async def _end_hold(self, held: Held) -> None:
        for action in held.actions:
            if action != "reorganise":
                self._count_deposits(self.deposits.expect(held.account, held.units, held.tx_hash))
            answer = await self.client.insist(f"/sandbox/{action}", {"txHash": held.tx_hash})
            if action == "release" and answer.code == NOT_FOUND:
                # Screening has not seen it yet.
                return
            self._require(answer, SUCCESS)
        self.held.remove(held)

    def _count_deposits(self, credited: int) -> None:
        for _ in range(credited):
            self._overlaps.count_money("deposit")

    async def _read_balance(self) -> None:
        answer = await self.client.insist("getMerchantBalance", {})
        self._require(answer, SUCCESS)
        seen = {name: parse(answer.data[f"{name.lower()}Balance"]) for name in ("USDT", "KFB")}
        self.book.see_balances(seen)

    async def _read_user(self) -> None:
        await self._read_user_named(self._random.choice(USERS))

    async def _read_user_named(self, name: str) -> None:
        answer = await self.client.insist("getMerchantCustomer", {"extUserId": name})
        self._require(answer, SUCCESS)
        if answer.data["address"] != self._addresses[name]:
            raise Contradiction(f"{name} has another address now: {answer.body}")
        self.book.see_balances({f"user:{name}": parse(answer.data["balance"])})

    async def _quote(self) -> None:
        amount = self._random.randint(1, 100_000) * 10_000
        answer = await self.client.insist("getWithdrawFee", {"amount": write(amount), "currency": "USDT"})
        tariffs = self.book.list_tariffs(Order(WITHDRAW, "", amount))
        fees = {find_withdraw_fee(amount, tariff) for tariff in tariffs}
        if answer.code == SUCCESS and parse(answer.data["fee"]) not in fees:
            raise Contradiction(f"the fee of {write(amount)} is {answer.data['fee']}; possible is {fees}")
        if answer.code != SUCCESS and not any(amount <= fee for fee in fees):
            raise Contradiction(f"the quotation of {write(amount)} was refused: {answer.body}")

    async def _query(self) -> None:
        if self.payouts:
            await self._look_at(self._random.choice([*self.payouts.values()]))

    async def _repeat(self) -> None:
        if self.book.known:
            await self._order(self._random.choice([*self.book.known.values()]).order)

    async def _conflict(self) -> None:
        """The id of an accepted order with another amount."""
        if not self.book.known:
            return
        order = self._random.choice([*self.book.known.values()]).order
        answer = await self.client.insist(
            order.operation, self._write_fields(order._replace(amount=order.amount + 10_000))
        )
        self._require(answer, CONFLICT)

    async def _replay(self) -> None:
        """The same bytes twice: the second time the nonce is used."""
        door = self.client.door
        request = self.account.sign("getMerchantBalance", {}, door.make_nonce())
        for code in (SUCCESS, USED_NONCE):
            answer = await door.send(self.account, request)
            if not is_certain(answer):
                return
            self._require(answer, code)

    async def _twin(self) -> None:
        """The same order on two connections at once: both answers are the same."""
        order = self._make_transfer(self._random.choice([DEBIT, CREDIT]))
        answers = await self.client.ask_twice(order.operation, self._write_fields(order))
        # Two refusals may both be right, so those are judged first.
        for answer in sorted(answers, key=lambda each: isinstance(each, Answer) and each.code == SUCCESS):
            self._judge(order, answer)
        await self._order(order)

    async def _sign_wrongly(self) -> None:
        """A field that was not signed."""
        door = self.client.door
        request = self.account.sign("getMerchantBalance", {}, door.make_nonce())
        answer = await door.send(self.account, replace(request, fields={**request.fields, "extra": "1"}))
        if is_certain(answer):
            self._require(answer, WRONG_SIGN)

    # How an order is sent until it is answered, and judged.

    def _make_id(self) -> str:
        self._numbers += 1
        return f"{self.account.name}-{self._numbers}"

    def _make_transfer(self, operation: str) -> Order:
        user = self._random.choice(USERS)
        return Order(operation, self._make_id(), self._choose_units(), account=f"user:{user}")

    def _make_exchange(self) -> Order:
        send, receive = self._random.choice((("USDT", "KFB"), ("KFB", "USDT")))
        cents = self._random.randint(1, 30_000)
        return Order(EXCHANGE, self._make_id(), cents * 10_000, send=send, receive=receive)

    def _choose_units(self) -> int:
        """Millionths, small ones and more than there is."""
        return self._random.randint(1, 10 ** self._random.randint(1, 9))

    async def _order(self, order: Order) -> None:
        """Send an order until there is an answer for good. Raises Contradiction."""
        for number in range(MOST_TRIES):
            answer = await self.client.ask(order.operation, self._write_fields(order))
            if self._judge(order, answer):
                return
            await pause(number)
        raise Contradiction(f"{order} got no answer in {MOST_TRIES} tries")

    def _judge(self, order: Order, answer: Answer | Lost) -> bool:
        """Compare an answer with the model. Returns whether it is for good. Raises Contradiction."""
        if not is_certain(answer):
            self.book.lose(order)
            self._expect_return(order)
            return False
        if answer.code != SUCCESS:
            self.book.refuse(order, answer.code)
            return True
        self._overlaps.count_money(STREAM_OF[order.operation])
        data, limits = answer.data, self.book.list_limits(order)
        name = "orderId" if order.operation == WITHDRAW else "transactionId"
        effect = self.book.accept(order, str(data[name]), lambda effect: _is_told(order, effect, data))
        if order.operation == WITHDRAW:
            self._see_order(order, effect, limits, str(data["orderId"]), str(data["txnStatus"]))
        return True

    def _expect_return(self, order: Order) -> None:
        """The amount of some withdrawals comes back."""
        if order.operation != WITHDRAW or order.mc_order_id in self.payouts:
            return
        if RECIPIENTS[order.address][1] in RETURNING:
            effect = Effect((("USDT", order.amount),), order.amount)
            self.book.expect(Doubt(_return_key(order.mc_order_id), effect=effect, after=order.key))

    def _see_order(
        self, order: Order, effect: Effect, limits: Collection[int], order_id: str, status: str
    ) -> None:
        if order.mc_order_id not in self.payouts:
            self._expect_return(order)
            self.payouts[order.mc_order_id] = Payout(
                order_id,
                order.mc_order_id,
                order.amount,
                effect.arrival,
                _find_paths(order),
                may_wait=order.amount > min(limits),
                must_wait=order.amount > max(limits),
            )
        payout = self.payouts[order.mc_order_id]
        payout.see(status)
        self._see_return(payout)
        early = [each for each in self._early if each.mc_order_id == order.mc_order_id]
        self._early = [each for each in self._early if each not in early]
        for callback in early:
            self._tell(payout, callback)

    def _see_return(self, payout: Payout) -> None:
        if payout.is_back:
            self.book.see(_return_key(payout.mc_order_id), True)

    async def _look_at(self, payout: Payout) -> None:
        fields = {"orderId": payout.order_id, "mcOrderId": payout.mc_order_id}
        answer = await self.client.insist("queryOrder", fields)
        self._require(answer, SUCCESS)
        payout.see(str(answer.data["txnStatus"]))
        if payout.is_back:
            self._see_return(payout)
        elif payout.is_final:
            self.book.end_doubt(_return_key(payout.mc_order_id))
        else:
            self.book.see(_return_key(payout.mc_order_id), False)
        if (parse(answer.data["amount"]), parse(answer.data["amountArrival"])) != (
            payout.amount,
            payout.arrival,
        ):
            raise Contradiction(f"the order {payout.order_id} has other amounts now: {answer.body}")

    def _write_fields(self, order: Order) -> dict[str, object]:
        fields: dict[str, object] = {"amount": write(order.amount), "mcOrderId": order.mc_order_id}
        if order.operation == EXCHANGE:
            return {**fields, "sendCurrency": order.send, "receiveCurrency": order.receive}
        if order.operation == WITHDRAW:
            chain, _ = RECIPIENTS[order.address]
            more = {"currency": "USDT", "chainType": chain, "address": order.address}
            return {**fields, **more, "notifyUrl": self._notify_url}
        user = order.account.partition(":")[2]
        if order.operation == DEBIT:
            return {**fields, "currency": "KFB", "extUserId": user}
        return {**fields, "currency": "KFB", "address": self._addresses[user]}

    def _require(self, answer: Answer, code: int) -> None:
        if answer.code != code:
            raise Contradiction(f"{self.account.name} expected {code} and got {answer.body}")


def _find_paths(order: Order) -> tuple[tuple[str, ...], ...]:
    _, path = RECIPIENTS[order.address]
    # A person may cancel what waits for approval. The sandbox cancels by itself only what goes there.
    return (path, CANCELLED) if order.amount > LOWEST_LIMIT else (path,)


def _return_key(mc_order_id: str) -> Key:
    return "return", mc_order_id


def _is_told(order: Order, effect: Effect, data: Mapping[str, object]) -> bool:
    """Whether an answer tells of this effect."""
    told = {"amount": write(order.amount)}
    if order.operation != CREDIT:
        told["amountArrival"] = write(effect.arrival)
    if order.operation == DEBIT:
        told["fee"] = write(effect.fee)
    return all(str(data[name]) == text for name, text in told.items())
