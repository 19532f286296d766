"""Attempts at one order, one after another, where anything may fail: the order is paid at most once.

The world knows what the payer can't see: what the signer signed although its answer was lost, what was
committed although the commit's answer was lost, and what the chain makes of it all. Any attempt may be killed
before or after the effect of any action; the next one begins with what is committed.
"""

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rows import each_row

from merchant_wallet.withdrawals.payment_states import ACTIONS, Action, Event, State, begin, step

ATTEMPTS = 8
KILLS = st.sampled_from(["lives"] * 18 + ["killed before", "killed after"])
FAILS = {State.UNPAYABLE, State.PROVEN_UNPAID}


@dataclass(eq=False)
class Signature:
    """A signed transfer. Void ones can never count. `nonce` numbers the reservations where no nonces are."""

    nonce: int
    is_sent: bool = False
    is_void: bool = False


@dataclass
class World:
    """One order, its hot wallet and its chain."""

    draw: st.DrawFn
    has_nonces: bool
    reserved: int | None = None
    is_moved: bool = False
    next_nonce: int = 0
    stored: list[Signature] = field(default_factory=list)
    in_hand: Signature | None = None
    lost: list[Signature] = field(default_factory=list)
    counted: Signature | None = None

    def happens(self) -> bool:
        """Whether something happens. A failed action may still have had its effect."""
        return self.draw(st.booleans())

    def live(self) -> list[Signature]:
        """Signatures that could be on the chain one day if somebody sent them."""
        hand = [self.in_hand] if self.in_hand else []
        return [one for one in (*self.stored, *self.lost, *hand) if not one.is_void]

    def perform(self, state: State) -> Event:
        """Do the state's action. Returns an answer that its true effect allows."""
        event: Event = getattr(self, ACTIONS[state].name.lower())()
        return event

    def choose(self, usual: Event, *others: Event) -> Event:
        """One of the answers. Half the time it is the usual one, so that walks get far."""
        return self.draw(st.sampled_from([usual] * len(others) + list(others)))

    def check_payable(self) -> Event:
        return self.choose(Event.PAYABLE, Event.UNPAYABLE, Event.BLOCKED, Event.FAILED)

    def check_stops(self) -> Event:
        return self.choose(Event.ALLOWED, Event.BLOCKED, Event.FAILED)

    check_rebuild = check_stops

    def reserve(self) -> Event:
        assert self.reserved is None, "reserved twice"
        event = self.choose(Event.RESERVED, Event.BLOCKED, Event.FAILED)
        if event is Event.RESERVED or (event is Event.FAILED and self.happens()):
            self.reserved, self.next_nonce = self.next_nonce, self.next_nonce + 1
        return event

    def release(self) -> Event:
        assert self.reserved is not None
        # The database refuses this one; the payer must not even ask.
        assert not self.stored
        assert self.in_hand is None
        assert self.is_moved or all(one.nonce != self.reserved for one in self.lost), "may be signed"
        event = self.choose(Event.RELEASED, Event.BLOCKED, Event.FAILED)
        if event is Event.RELEASED or (event is Event.FAILED and self.happens()):
            self.reserved, self.is_moved = None, False
        return event

    def sign(self) -> Event:
        assert self.reserved is not None
        assert not self.is_moved
        nonce = self.reserved
        others = [one for one in self.live() if not self.has_nonces or one.nonce != nonce]
        assert not [one for one in others if one in self.stored], "a second signature beside a live one"
        if others:
            # The signer remembers what it signed and lost: it signs no other nonce, and nothing unexpired.
            return self.choose(Event.BLOCKED, Event.FAILED)
        event = self.choose(Event.SIGNED, Event.UNPAYABLE, Event.BLOCKED, Event.FAILED, Event.UNANSWERED)
        if event is Event.SIGNED:
            self.in_hand = Signature(nonce)
        elif event is Event.UNANSWERED and self.happens():
            self.lost.append(Signature(nonce))
        return event

    def store(self) -> Event:
        assert self.in_hand is not None, "nothing to store"
        event, signed = self.choose(Event.STORED, Event.BLOCKED, Event.FAILED), self.in_hand
        is_stored = event is Event.STORED or (event is Event.FAILED and self.happens())
        (self.stored if is_stored else self.lost).append(signed)
        self.in_hand = None
        return event

    def send(self) -> Event:
        assert self.stored, "nothing is sent that is not stored"
        refused = Event.REFUSED if self.has_nonces else Event.FAILED
        event, newest = self.choose(Event.SENT, refused, Event.BLOCKED, Event.FAILED), self.stored[-1]
        was_sent, is_unsure = newest.is_sent, event in (Event.BLOCKED, Event.FAILED)
        newest.is_sent |= event is Event.SENT or (is_unsure and self.happens())
        return Event.SENT_AGAIN if event is Event.SENT and was_sent else event

    def judge(self) -> Event:
        assert self.stored
        rare = (Event.PROVEN_UNPAID, Event.FINAL, Event.BLOCKED, Event.FAILED)
        event = self.draw(st.sampled_from([Event.PENDING, Event.STUCK, Event.EXPIRED] * 2 + list(rare)))
        sent = [one for one in self.stored if one.is_sent and not one.is_void]
        if event in (Event.EXPIRED, Event.PROVEN_UNPAID) and self.counted is None:
            for one in self.stored:
                one.is_void = True
        elif event is Event.FINAL and sent and self.counted is None:
            self.count(self.draw(st.sampled_from(sent)))
        elif event in (Event.EXPIRED, Event.PROVEN_UNPAID, Event.FINAL) or (
            event is Event.STUCK and not self.has_nonces
        ):
            event = Event.PENDING
        no_verdict = event in (Event.BLOCKED, Event.FAILED)
        return event if self.counted is None or no_verdict else Event.FINAL

    def count(self, one: Signature) -> None:
        """A block contains it: other transactions with the same nonce are void."""
        self.counted = one
        for other in (*self.stored, *self.lost):
            if self.has_nonces and other is not one and other.nonce == one.nonce:
                other.is_void = True

    def go_on(self) -> None:
        """Time passes between two attempts."""
        if self.in_hand is not None:
            self.lost.append(self.in_hand)
            self.in_hand = None
        if not self.has_nonces and self.happens():
            # Without nonces a transfer expires.
            for one in self.lost:
                one.is_void = True
        if self.reserved is not None and not self.stored:
            change = self.draw(st.sampled_from(["none"] * 4 + ["idle nonce taken back", "another wallet"]))
            self.is_moved |= change == "another wallet"
            if change == "idle nonce taken back":
                self.reserved, self.is_moved = None, False


def attempt(world: World) -> State | None:
    """One attempt to its end. None if it was killed."""
    state = begin(
        is_signed=bool(world.stored), is_reserved=world.reserved is not None, is_moved=world.is_moved
    )
    while state in ACTIONS:
        finished = world.draw(KILLS)
        if finished == "killed before":
            return None
        event = world.perform(state)
        if finished == "killed after":
            return None
        state = step(state, event)
        if world.has_nonces:
            assert len({one.nonce for one in world.stored}) <= 1, "two nonces for one order"
        assert len([one for one in world.stored if not one.is_void]) <= 1 or world.has_nonces
    return state


@pytest.mark.parametrize("has_nonces", [True, False])
@settings(max_examples=150, deadline=None, derandomize=True)
@given(data=st.data())
def test_whatever_fails_an_order_is_paid_once_or_failed_and_never_both(
    data: st.DataObject, has_nonces: bool
) -> None:
    world = World(data.draw, has_nonces)  # type: ignore[arg-type]  # `data.draw` has the label as well
    if world.happens():
        world.reserved, world.next_nonce = 0, 1
        world.stored.append(Signature(0, is_sent=True))
    for _ in range(ATTEMPTS):
        end = attempt(world)
        if end is State.PAID:
            assert world.counted in world.stored
            return
        if end in FAILS:
            assert world.counted is None
            # What the payer sent or may send is void. Nobody has the bytes that were lost.
            assert all(one.is_void for one in world.stored)
            return
        world.go_on()


@each_row("action", Action)
def test_the_world_answers_every_action(action: Action) -> None:
    assert hasattr(World, action.name.lower())
