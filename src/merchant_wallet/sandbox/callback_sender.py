"""The sender of callbacks in the sandbox: it keeps each attempt for listeners, and plays test values.

Rules:
- An attempt is kept before anything is sent.
- A test value acts on the first attempt at an event. Everything after it is the service's own way, but a
  callback that a test value has stopped comes again after two seconds.
- An event that a listener has accepted counts as delivered. Nothing is sent to its notifyUrl.
"""

import asyncio
from typing import Any, Final

from merchant_wallet.book.rules.withdrawals import FAILED, REFUNDED
from merchant_wallet.callbacks import outbox
from merchant_wallet.callbacks.answers import SUCCESS, SUCCESS_STATUS, Answer
from merchant_wallet.callbacks.outbox import Claim
from merchant_wallet.callbacks.payloads import (
    DEPOSIT,
    CallbackEvent,
    DepositEvent,
    Payload,
)
from merchant_wallet.callbacks.sender import CallbackSender
from merchant_wallet.sandbox import store
from merchant_wallet.sandbox.actions.callbacks import name_acceptance
from merchant_wallet.sandbox.test_values import CallbackPlay, find_callback_play

LISTENER: Final = "a listener"
LATE_S: Final = 5.0
AGAIN_MS: Final = 2_000


class SandboxCallbackSender(CallbackSender):
    """See the module."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._plays: dict[str, CallbackPlay] = {}

    async def _attempt(self, claim: Claim, event: CallbackEvent | None, url: str) -> Answer:
        if await self._take_acceptance(claim):
            return Answer(0, LISTENER, SUCCESS_STATUS, SUCCESS)
        play = None if event is None else find_callback_play(_test_value_of(event))
        if play is None:
            return await super()._attempt(claim, event, url)
        self._plays[claim.event_id] = play
        return await self._play(play, claim, event, url)

    async def _play(self, play: CallbackPlay, claim: Claim, event: CallbackEvent | None, url: str) -> Answer:
        is_first = claim.attempt_no == 1
        if is_first and play is CallbackPlay.LOST:
            return Answer(0, error="not sent: a test value says that this attempt is lost")
        if is_first and play is CallbackPlay.REFUSED:
            return Answer(0, error="not sent: a test value says that the host has no public address")
        if is_first and play is CallbackPlay.OUT_OF_ORDER and _is_failure(claim):
            return Answer(0, error="parked: a test value lets the next event overtake this one")
        if is_first and play is CallbackPlay.LATE:
            await asyncio.sleep(LATE_S)
        answer = await super()._attempt(claim, event, url)
        if is_first and play is CallbackPlay.TWICE and answer.error is None:
            return Answer(answer.latency_ms, error="a test value says that the answer was lost")
        return answer

    def _find_next_ms(self, claim: Claim) -> int | None:
        play = self._plays.get(claim.event_id)
        if play is None or claim.attempt_no > 1 or play is CallbackPlay.LATE:
            return super()._find_next_ms(claim)
        if play is CallbackPlay.OUT_OF_ORDER:
            return None if _is_failure(claim) else super()._find_next_ms(claim)
        return self._clock() + AGAIN_MS

    async def _record_result(self, claim: Claim, answer: Answer, *, has_url: bool) -> None:
        try:
            await super()._record_result(claim, answer, has_url=has_url)
            if self._plays.get(claim.event_id) is CallbackPlay.OUT_OF_ORDER and claim.key.status == REFUNDED:
                await self._send_overtaken(claim)
        finally:
            self._plays.pop(claim.event_id, None)

    async def _send_overtaken(self, claim: Claim) -> None:
        """After an attempt at the later event, the earlier one is sent, as an operator would."""
        earlier = claim.event_id.removesuffix(str(REFUNDED)) + str(FAILED)
        async with self._writers.acquire() as cell:
            await outbox.send_again(cell, claim.key.merchant_id, earlier)

    async def _take_acceptance(self, claim: Claim) -> bool:
        async with (self._home or self._writers).acquire() as home:
            return await store.take_mark(home, claim.key.merchant_id, name_acceptance(claim.event_id))

    async def _send(self, claim: Claim, url: str, payload: Payload) -> Answer:
        async with (self._home or self._writers).acquire() as home:
            merchant_id = claim.key.merchant_id
            await store.record_callback(home, merchant_id, claim.event_id, url, payload, self._clock())
        return await super()._send(claim, url, payload)


def _test_value_of(event: CallbackEvent) -> str:
    """The text of an event that may be a test value: the order's id, or the sub-user's."""
    return (event.ext_user_id or "") if isinstance(event, DepositEvent) else event.mc_order_id


def _is_failure(claim: Claim) -> bool:
    return claim.event_type != DEPOSIT and claim.key.status == FAILED
