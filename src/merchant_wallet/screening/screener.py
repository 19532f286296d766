"""Screens orders before their payout, and deposits before their credit.

Rules:
- The list comes first: it costs nothing. What it refuses is asked nowhere.
- The URL is asked once in a round. Its answer is stored and used again until a person asks anew, or the facts
  change. If two workers ask at the same time, the answer that was stored first holds for both.
- Without an answer an order or deposit waits, or passes if the setting says so. An answer that can't be used
  never lets anything pass, and neither does silence after the URL held or refused the same.
- The rules of the merchant come last. An order is judged and cleared in one transaction, under a lock of the
  merchant's in home. So a limit holds for any number of orders at the same time.
- What has passed is compared with the list and with the payout hours again at each attempt, until it is
  signed. If it could not be signed for a day, or for the window of the merchant's limits, it is screened
  anew. Who released it is not overruled, unless the list says something that they could not know.
- Without a list, a URL and rules nothing is stored.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

import structlog

from merchant_wallet.base.addresses import format_address
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.screening import asking, payout_rules, store
from merchant_wallet.screening.address_list import ListFile, ListUnreadable
from merchant_wallet.screening.facts import DepositFacts, Facts, PayoutFacts
from merchant_wallet.screening.hook import HookAway, HookUnusable, ScreeningHook
from merchant_wallet.screening.payout_rules import PayoutRules
from merchant_wallet.screening.screening_states import Event, State
from merchant_wallet.screening.store import Connection, Screening
from merchant_wallet.screening.verdicts import RULES, Reason, Source, Verdict, describe, worst

_EVENTS: Final[Mapping[Verdict, Event]] = {
    Verdict.PASS: Event.PASSED,
    Verdict.HOLD: Event.HELD,
    Verdict.REFUSE: Event.REFUSED,
}

PASS_LASTS_MS: Final = DAY_MS
"""What passed so long ago, and could not be signed or credited since, is asked again."""

log = structlog.get_logger(__name__)


class Cleared(NamedTuple):
    """It may be paid or credited."""


class Held(NamedTuple):
    """A person must decide. `by_rules`: only the merchant's own rules say so."""

    cause: str
    by_rules: bool = False


class Refused(NamedTuple):
    """It must not be paid or credited."""

    cause: str


class Waits(NamedTuple):
    """Nothing is decided yet. `is_closed`: it is outside the payout hours, else an answer is missing."""

    cause: str
    is_closed: bool = False


Decision = Cleared | Held | Refused | Waits


class _NoAnswer(Exception):
    """The sources could not all be asked. The text says why."""


class Screener:
    """Screens with the sources that are set. Any number of them may run.

    `played` are addresses of the sandbox and what its list says of them.
    """

    def __init__(
        self,
        address_list: ListFile | None = None,
        hook: ScreeningHook | None = None,
        *,
        fails_open: bool = False,
        played: Mapping[bytes, Reason] = MappingProxyType({}),
        clock: Callable[[], int] = now_ms,
    ) -> None:
        self._list = address_list
        self._hook = hook
        self._fails_open = fails_open
        self._played = played
        self._clock = clock

    @property
    def has_sources(self) -> bool:
        """Whether there is a list or a URL."""
        return self._list is not None or self._hook is not None

    def _is_answered(self, facts: Facts) -> bool:
        """Whether a source gives an answer, or the sandbox plays one."""
        return self.has_sources or facts.address in self._played

    async def close(self) -> None:
        """Close the connections."""
        if self._hook is not None:
            await self._hook.close()

    async def screen_order(self, home: Connection, cell: Connection, facts: PayoutFacts) -> Decision:
        """Whether an order may be paid. Raises Overtaken, psycopg.Error."""
        rules, known = await asking.read_order(home, facts.merchant_id, facts.order_id)
        if known is None and rules.is_empty and not self._is_answered(facts):
            return Cleared()
        known = await asking.begin(home, facts, self._clock())
        try:
            known = await self._renew(home, known, facts, rules)
            if known.state is State.OPEN:
                reasons = await self._ask_sources(home, known, facts)
                if worst(reasons) is not Verdict.REFUSE:
                    return await self._judge(home, cell, known, rules, reasons)
                known = await store.move(home, known, Event.REFUSED, reasons, self._clock())
            elif known.state is State.PASSED:
                known = await self._look_again(home, known, facts)
        except _NoAnswer as missing:
            return Waits(str(missing))
        if known.state is State.PASSED and not rules.is_open(self._clock()):
            return _wait_for_hours(rules)
        return _read_decision(known)

    async def screen_deposit(self, home: Connection, facts: DepositFacts) -> Decision:
        """Whether a deposit may be credited. It begins no transaction, so several may share a connection.

        Raises Overtaken, psycopg.Error.
        """
        known = await store.find(home, facts)
        if known is None and not self._is_answered(facts):
            return Cleared()
        known = await asking.begin(home, facts, self._clock())
        try:
            known = await self._renew(home, known, facts, PayoutRules())
            if known.state is State.OPEN:
                reasons = await self._ask_sources(home, known, facts)
                event = _EVENTS[worst(reasons)]
                known = await store.move(home, known, event, reasons, self._clock())
            elif known.state is State.PASSED:
                known = await self._look_again(home, known, facts)
        except _NoAnswer as missing:
            return Waits(str(missing))
        return _read_decision(known)

    async def _judge(
        self,
        home: Connection,
        cell: Connection,
        known: Screening,
        rules: PayoutRules,
        reasons: Sequence[Reason],
    ) -> Decision:
        """Judge the rules of the merchant and take the step, in one transaction."""
        was_paid = rules.first_limit_units is None or await asking.was_paid(
            cell, known.merchant_id, format_address(known.chain, known.address)
        )
        async with home.transaction():
            now, cleared = self._clock(), payout_rules.Cleared()
            if rules.has_limits:
                cleared = await asking.sum_cleared(home, known, rules.begin_window(now))
            found = [*reasons, *payout_rules.judge(rules, known.amount_units, cleared, was_paid=was_paid)]
            verdict = worst(found)
            if verdict is Verdict.PASS and not rules.is_open(now):
                await asking.note_reasons(home, known, found, now)
                return _wait_for_hours(rules)
            known = await store.move(home, known, _EVENTS[verdict], found, now)
        return _read_decision(known)

    async def _renew(self, home: Connection, known: Screening, facts: Facts, rules: PayoutRules) -> Screening:
        """Begin another round of what passed too long ago, or was released before the list had it.

        Raises _NoAnswer.
        """
        now, lasts_ms = self._clock(), PASS_LASTS_MS
        if known.state is State.RELEASED:
            listed = await self._find_listed(facts)
            is_new = listed is not None and not _is_told(listed, known.reasons)
            return await asking.begin_round(home, known, facts, now) if is_new else known
        if rules.has_limits:
            lasts_ms = min(lasts_ms, now - rules.begin_window(now))
        is_asked = self._hook is not None or rules.has_limits
        if known.state is not State.PASSED or not is_asked or now - known.changed_ms <= lasts_ms:
            return known
        return await asking.begin_round(home, known, facts, now)

    async def _look_again(self, home: Connection, known: Screening, facts: Facts) -> Screening:
        """Compare what has passed with the list as it is now. Raises _NoAnswer."""
        listed = await self._find_listed(facts)
        if listed is None:
            return known
        return await store.move(home, known, _EVENTS[listed.verdict], [listed], self._clock())

    async def _ask_sources(self, home: Connection, known: Screening, facts: Facts) -> list[Reason]:
        """What the list and the URL say. Raises _NoAnswer."""
        listed = await self._find_listed(facts)
        reasons = [] if listed is None else [listed]
        if worst(reasons) is not Verdict.REFUSE and self._hook is not None:
            reasons.append(await self._ask_hook(home, known, self._hook))
        return reasons

    async def _find_listed(self, facts: Facts) -> Reason | None:
        if facts.address in self._played:
            return self._played[facts.address]
        if self._list is None:
            return None
        try:
            return (await self._list.get()).find(facts.address)
        except ListUnreadable as unreadable:
            raise _NoAnswer(f"the list can't be read: {unreadable}") from None

    async def _ask_hook(self, home: Connection, known: Screening, hook: ScreeningHook) -> Reason:
        question = await asking.begin_question(home, known, self._clock())
        if question is None:
            return await _read_answer(home, known)
        try:
            answer = await hook.ask(question.request_id, question.body.encode())
        except HookAway as away:
            if not await asking.fail_question(home, known, str(away)):
                return await _read_answer(home, known)
            if not self._fails_open or await _was_strict(home, known):
                raise _NoAnswer(f"the screening URL gives no answer: {away}") from None
            log.warning(
                "screening passed without an answer", screening_no=known.screening_no, reason=str(away)
            )
            return Reason(Source.AWAY, Verdict.PASS, str(away))
        except HookUnusable as unusable:
            await asking.fail_question(home, known, str(unusable))
            log.error("screening answer is unusable", screening_no=known.screening_no, reason=str(unusable))
            raise _NoAnswer(f"the screening URL's answer can't be used: {unusable}") from None
        if not await asking.answer_question(home, known, answer, self._clock()):
            return await _read_answer(home, known)
        return Reason(Source.HOOK, answer.verdict, answer.reason)


async def _read_answer(home: Connection, known: Screening) -> Reason:
    """The answer that is stored of this round."""
    questions = await store.list_questions(home, known.screening_no)
    answered = next(one for one in questions if one.round_no == known.round_no)
    assert answered.verdict is not None, "a question is answered, or asked again"
    return Reason(Source.HOOK, answered.verdict, answered.reason or "")


async def _was_strict(home: Connection, known: Screening) -> bool:
    """Whether the URL's last answer, in an earlier round, held or refused."""
    questions = await store.list_questions(home, known.screening_no)
    last = next((one.verdict for one in questions if one.verdict is not None), Verdict.PASS)
    return last is not Verdict.PASS


def _is_told(listed: Reason, reasons: Sequence[Reason]) -> bool:
    """Whether people who read these reasons knew of the list's verdict."""
    told = {one.verdict for one in reasons if one.source is listed.source}
    return listed.verdict in told or Verdict.REFUSE in told


def _wait_for_hours(rules: PayoutRules) -> Waits:
    return Waits(f"it is outside the payout hours, {rules.hours}", is_closed=True)


def _read_decision(known: Screening) -> Decision:
    """What follows from a screening on which a decision was made."""
    if known.is_cleared:
        return Cleared()
    cause = f"screening {known.screening_no}: {describe(known.reasons)}"
    if known.state is State.REFUSED:
        return Refused(cause)
    strict = {one.source for one in known.reasons if one.verdict is not Verdict.PASS}
    return Held(cause, by_rules=bool(strict) and strict <= RULES)
