"""`resendCallback` and `acceptCallback`: an event is sent again, or is accepted without its notifyUrl."""

from typing import Final

from merchant_wallet.api.operation import OperationContext
from merchant_wallet.api.wire import TEXT, DataItem, Fields, require
from merchant_wallet.base.codes import ORDER_NOT_FOUND, refuse
from merchant_wallet.callbacks import outbox
from merchant_wallet.sandbox import store
from merchant_wallet.sandbox.context import Call
from merchant_wallet.sandbox.control import Action

EVENT_ID_LENGTH: Final = 64
FIELD: Final = "event"
"""Not `eventId`: a signed request that has it could pass for a callback, so the gate refuses it."""


def name_acceptance(event_id: str) -> str:
    """The mark that an event was accepted by a listener."""
    return f"accepted {event_id}"


def _read(fields: Fields, context: OperationContext) -> str:
    return require(fields, FIELD, EVENT_ID_LENGTH)


async def _resend(call: Call, event_id: str) -> list[DataItem]:
    await store.take_mark(call.home, call.merchant_id, name_acceptance(event_id))
    return await _send_again(call, event_id, "sandbox.resend_callback")


async def _accept(call: Call, event_id: str) -> list[DataItem]:
    async with call.home.transaction():
        await store.set_mark(call.home, call.merchant_id, name_acceptance(event_id))
    try:
        return await _send_again(call, event_id, "sandbox.accept_callback")
    except BaseException:
        await store.take_mark(call.home, call.merchant_id, name_acceptance(event_id))
        raise


async def _send_again(call: Call, event_id: str, action: str) -> list[DataItem]:
    async with call.change_cell(action, f"event {event_id}") as told:
        if not await outbox.send_again(call.cell, call.merchant_id, event_id):
            refuse(ORDER_NOT_FOUND, f"{FIELD}: you have no such event")
        told.is_done = True
    return [(FIELD, event_id, TEXT)]


_FIELDS: Final = ((FIELD, "the `eventId` of a callback"),)
RESEND: Final = Action(
    "resendCallback", _read, _resend, _FIELDS, "the callback is sent now, whatever its state"
)
ACCEPT: Final = Action(
    "acceptCallback",
    _read,
    _accept,
    _FIELDS,
    "the callback counts as accepted, as if `notifyUrl` had answered `success`. For a listener, after its"
    " own receiver has accepted it",
)
