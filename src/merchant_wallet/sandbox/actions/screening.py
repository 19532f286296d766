"""`release`, and what else a test decides about screenings: people decide so in the console.

Rules: a decision is the one that people make, so a worker carries it on.
"""

from typing import Final

import msgspec

from merchant_wallet.api.wire import NUMBER, TEXT, DataItem
from merchant_wallet.approvals.changes import ChangeRefused
from merchant_wallet.base.codes import ORDER_NOT_FOUND, refuse
from merchant_wallet.base.money import format_units
from merchant_wallet.sandbox.actions.deposits import read_hash
from merchant_wallet.sandbox.actions.waiting import looks
from merchant_wallet.sandbox.context import Call
from merchant_wallet.sandbox.control import Action
from merchant_wallet.screening import decisions, store
from merchant_wallet.screening.screening_states import Event, State
from merchant_wallet.screening.store import Screening

LOG_INDEX: Final = 0
"""A transaction of the sandbox has one transfer."""


class Sent(msgspec.Struct):
    """What a deposit's facts say of its recipient."""

    address: str


async def decide(call: Call, found: Screening, *, is_released: bool) -> None:
    """Release or refuse a screening. Does nothing if somebody has decided meanwhile."""
    event = Event.RELEASED if is_released else Event.REJECTED
    async with call.home.transaction():
        try:
            decided = await decisions.decide(call.home, found, event, call.actor, call.context.clock())
        except ChangeRefused:
            return
        told = {"state": decided.state.value}
        await call.record("sandbox.screening", decisions.format_subject(found.screening_no), after=told)


async def _release(call: Call, tx_hash: str) -> list[DataItem]:
    async for _ in looks(call.context):
        found = await _find(call, tx_hash)
        if found.is_cleared:
            break
        if found.state is not State.OPEN:
            await decide(call, found, is_released=True)
    address = msgspec.json.decode(found.facts, type=Sent).address
    return [
        ("txHash", tx_hash, TEXT),
        ("chainType", found.chain, TEXT),
        ("address", address, TEXT),
        ("amount", format_units(found.amount_units), NUMBER),
    ]


async def _find(call: Call, tx_hash: str) -> Screening:
    """The screening of a deposit of this merchant. Refused 40401."""
    for chain in call.context.operations.chains:
        found = await store.find_deposit(call.home, chain, tx_hash, LOG_INDEX)
        if found is not None and found.merchant_id == call.merchant_id:
            return found
    refuse(ORDER_NOT_FOUND, "txHash: screening holds none of your deposits with it")


RELEASE: Final = Action(
    "release",
    read_hash,
    _release,
    (("txHash", "of a deposit that screening holds or refuses"),),
    "screening lets the deposit pass, and it is credited. Operators do the same in the console",
)
