"""The tables of an attempt: every state with every event, and what no path through them may do."""

from itertools import pairwise

import pytest
from tests.rows import each_row

from merchant_wallet.base.state_table import IllegalStep
from merchant_wallet.chains.protocol import (
    Blocked,
    ChainAway,
    Expired,
    FinalRecord,
    Obstacle,
    Pending,
    ProvenUnpaid,
    Transfer,
    Unpayable,
    Verdict,
)
from merchant_wallet.chains.signer import SignerAway
from merchant_wallet.chains.transport import NodeRefused
from merchant_wallet.withdrawals.payment_states import (
    ACTIONS,
    STEPS,
    Action,
    Event,
    State,
    begin,
    read_error,
    read_verdict,
    step,
)

BY_HAND = """
checking           check_payable  payable>reserving unpayable>unpayable blocked>blocked failed>failed
checking_reserved  check_payable  payable>signing_reserved unpayable>unpayable blocked>blocked failed>failed
checking_moved     check_payable  payable>releasing_moved unpayable>unpayable blocked>blocked failed>failed
releasing_moved    release        released>reserving blocked>blocked failed>failed
reserving          reserve        reserved>signing unpayable>unpayable blocked>blocked failed>failed
signing            sign           signed>storing unpayable>unpayable blocked>releasing_blocked
                                  failed>releasing_failed unanswered>failed
signing_reserved   sign           signed>storing unpayable>unpayable blocked>blocked failed>failed
                                  unanswered>failed
storing            store          stored>sending blocked>blocked failed>failed
releasing_blocked  release        released>blocked blocked>blocked failed>failed
releasing_failed   release        released>failed blocked>blocked failed>failed
judging            judge          pending>sending mined>waiting stuck>sending_stuck
                                  expired>checking_rebuild proven_unpaid>proven_unpaid final>paid
                                  different>suspect blocked>blocked failed>failed
sending            send           sent>judging_sent sent_again>waiting refused>checking_refused
                                  blocked>blocked failed>failed
sending_stuck      send           sent>judging_sent sent_again>checking_stops refused>checking_stops
                                  blocked>blocked failed>failed
judging_sent       judge          pending>waiting mined>waiting stuck>checking_stops
                                  expired>checking_rebuild proven_unpaid>proven_unpaid final>paid
                                  different>suspect blocked>blocked failed>failed
checking_stops     check_stops    allowed>replacing blocked>blocked failed>failed
checking_refused   check_rebuild  allowed>replacing blocked>blocked failed>failed
replacing          sign           signed>storing_again unpayable>irreplaceable blocked>blocked failed>failed
                                  unanswered>failed
checking_rebuild   check_rebuild  allowed>checking_expired blocked>blocked failed>failed
checking_expired   check_payable  payable>rebuilding unpayable>unpayable blocked>blocked failed>failed
rebuilding         sign           signed>storing_again unpayable>unpayable blocked>blocked failed>failed
                                  unanswered>failed
storing_again      store          stored>sending_again blocked>blocked failed>failed
sending_again      send           sent>judging_again refused>failed blocked>blocked failed>failed
judging_again      judge          pending>waiting mined>waiting stuck>waiting expired>retrying
                                  proven_unpaid>proven_unpaid final>paid different>suspect blocked>blocked
                                  failed>failed
waiting retrying blocked irreplaceable unpayable proven_unpaid paid suspect failed
"""
"""State, action and steps, written out here and not taken from the tables. The last line has the ends."""

STARTS = [State.CHECKING, State.CHECKING_RESERVED, State.CHECKING_MOVED, State.JUDGING]
UNSIGNED = {
    *(State.CHECKING, State.CHECKING_RESERVED, State.CHECKING_MOVED, State.CHECKING_EXPIRED),
    *(State.RESERVING, State.SIGNING, State.SIGNING_RESERVED),
}
"""Where a transfer is judged or signed although no earlier one can count."""
MAX_ACTIONS = 13
"""Actions of the longest attempt: reserve, sign, store, send, judge, and all of it a second time."""


def read_by_hand() -> tuple[dict[str, str], dict[tuple[str, str], str], set[str]]:
    """Actions by state, states by state and event, and the ends."""
    *lines, last = BY_HAND.strip().splitlines()
    actions: dict[str, str] = {}
    steps: dict[tuple[str, str], str] = {}
    state = ""
    for line in lines:
        words = line.split()
        if ">" not in words[0]:
            state, actions[words[0]], *words = words
        steps |= {(state, event): to for event, to in (word.split(">") for word in words)}
    return actions, steps, set(last.split())


HAND_ACTIONS, HAND_STEPS, HAND_ENDS = read_by_hand()


@each_row("state", State)
def test_each_event_leads_where_the_list_says_and_every_other_is_refused(state: State) -> None:
    for event in Event:
        wanted = HAND_STEPS.get((state.name.lower(), event.name.lower()))
        if wanted is None:
            with pytest.raises(IllegalStep, match=f"{event.name} in {state.name}"):
                step(state, event)
        else:
            assert step(state, event).name.lower() == wanted


def test_each_state_acts_or_is_an_end() -> None:
    assert {state.name.lower(): action.name.lower() for state, action in ACTIONS.items()} == HAND_ACTIONS
    assert {state.name.lower() for state in State if state not in ACTIONS} == HAND_ENDS
    assert STEPS.keys() == ACTIONS.keys()


def paths() -> list[list[tuple[State, Event | None]]]:
    """Every path from a start to an end, as states with the events that left them."""
    found: list[list[tuple[State, Event | None]]] = []

    def follow(state: State, before: list[tuple[State, Event | None]]) -> None:
        assert len(before) <= MAX_ACTIONS, "an attempt must end"
        if state not in ACTIONS:
            found.append([*before, (state, None)])
        for event, after in STEPS.get(state, {}).items():
            follow(after, [*before, (state, event)])

    for start in STARTS:
        follow(start, [])
    return found


PATHS = paths()


def test_every_state_is_on_a_path() -> None:
    assert {state for path in PATHS for state, _ in path} == set(State)


def done(path: list[tuple[State, Event | None]]) -> list[tuple[Action, Event | None]]:
    return [(ACTIONS[state], event) for state, event in path if state in ACTIONS]


def test_bytes_are_sent_only_when_they_are_stored_and_stored_only_when_signed() -> None:
    for path in PATHS:
        actions = done(path)
        stored = path[0][0] is State.JUDGING
        for (before, event), (action, _) in pairwise(actions):
            assert (action is Action.STORE) == ((before, event) == (Action.SIGN, Event.SIGNED)), path
            stored |= (before, event) == (Action.STORE, Event.STORED)
            assert stored or action not in (Action.SEND, Action.JUDGE), path


def test_a_second_transfer_is_signed_only_after_a_stuck_refused_or_void_one_and_once_in_an_attempt() -> None:
    verdicts = {Event.PENDING, Event.MINED, Event.STUCK, Event.EXPIRED, Event.PROVEN_UNPAID}
    verdicts |= {Event.FINAL, Event.DIFFERENT}
    reasons_said = verdicts | {Event.REFUSED}
    # Only a replacement has the nonce of what may still count.
    reasons = {State.REPLACING: {Event.STUCK, Event.REFUSED}, State.REBUILDING: {Event.EXPIRED}}
    for path in PATHS:
        stored, again = path[0][0] is State.JUDGING, 0
        for number, (state, event) in enumerate(path):
            if stored and ACTIONS.get(state) is Action.SIGN:
                again += 1
                assert [event for _, event in path[:number] if event in reasons_said][-1] in reasons[state], (
                    path
                )
            stored |= event is Event.STORED
        assert again <= 1, path


def test_a_nonce_is_released_only_when_nobody_can_have_signed_for_it() -> None:
    for path in PATHS:
        for number, (state, _) in enumerate(path):
            if ACTIONS.get(state) is not Action.RELEASE:
                continue
            before = path[number - 1]
            # Its wallet's key is gone, or this attempt reserved it and the signer was not asked or said no.
            if state is State.RELEASING_MOVED:
                assert before == (State.CHECKING_MOVED, Event.PAYABLE)
            else:
                assert before in [(State.SIGNING, Event.BLOCKED), (State.SIGNING, Event.FAILED)]
                assert path[number - 2] == (State.RESERVING, Event.RESERVED)


def test_an_order_fails_only_on_proof_that_nothing_signed_for_it_counts() -> None:
    proofs = {
        State.UNPAYABLE: {(state, Event.UNPAYABLE) for state in UNSIGNED | {State.REBUILDING}},
        State.PROVEN_UNPAID: {
            (state, Event.PROVEN_UNPAID) for state in State if state.name.startswith("JUDGING")
        },
    }
    for path in PATHS:
        (before, last) = path[-2:]
        if last[0] in proofs:
            assert before in proofs[last[0]], path
        if last[0] is State.UNPAYABLE and Event.STORED in [event for _, event in path]:
            assert (State.CHECKING_REBUILD, Event.ALLOWED) in path, path


def test_an_order_is_paid_only_by_a_final_transfer_that_is_the_order() -> None:
    for path in PATHS:
        (before, last) = path[-2:]
        assert (last[0] is State.PAID) == (before[1] is Event.FINAL), path
        assert (last[0] is State.SUSPECT) == (before[1] is Event.DIFFERENT), path


@each_row(
    ("is_signed", "is_reserved", "is_moved", "state"),
    [
        (False, False, False, State.CHECKING),
        (False, True, False, State.CHECKING_RESERVED),
        (False, True, True, State.CHECKING_MOVED),
        (True, True, False, State.JUDGING),
        (True, True, True, State.JUDGING),
    ],
)
def test_an_attempt_begins_with_what_the_earlier_ones_left(
    is_signed: bool, is_reserved: bool, is_moved: bool, state: State
) -> None:
    assert begin(is_signed=is_signed, is_reserved=is_reserved, is_moved=is_moved) is state


FINAL = FinalRecord(Transfer("ERC20", "USDT", bytes(20), 1), "hash")


@each_row(
    ("verdict", "is_exact", "has_nonces", "event"),
    [
        (Pending(), False, True, Event.PENDING),
        (Pending(is_mined=True), False, True, Event.MINED),
        (Pending(stuck=True), False, True, Event.STUCK),
        (Pending(stuck=True), False, False, Event.PENDING),
        (Expired("expired"), False, False, Event.EXPIRED),
        (ProvenUnpaid("reverted"), False, True, Event.PROVEN_UNPAID),
        (FINAL, True, True, Event.FINAL),
        (FINAL, False, True, Event.DIFFERENT),
    ],
)
def test_a_verdict_is_one_event(verdict: Verdict, is_exact: bool, has_nonces: bool, event: Event) -> None:
    assert read_verdict(verdict, is_exact=is_exact, has_nonces=has_nonces) is event


ERRORS: dict[str, tuple[Exception, Event, dict[Action, Event]]] = {
    # Where a signed transfer may count, a recipient that can't be paid proves nothing.
    "unpayable": (
        Unpayable("blacklisted"),
        Event.FAILED,
        dict.fromkeys((Action.CHECK_PAYABLE, Action.RESERVE, Action.SIGN), Event.UNPAYABLE),
    ),
    "blocked": (Blocked(Obstacle("fee", "too high")), Event.BLOCKED, {}),
    "chain away": (ChainAway("no node"), Event.FAILED, {}),
    "fault": (ValueError("a fault"), Event.FAILED, {}),
    "node refused": (
        NodeRefused("a node", -32000, "underpriced"),
        Event.FAILED,
        {Action.SEND: Event.REFUSED},
    ),
    # A signer that gave no answer in time may have signed.
    "signer away": (SignerAway("no answer"), Event.FAILED, {Action.SIGN: Event.UNANSWERED}),
    "time-out": (TimeoutError(), Event.FAILED, {Action.SIGN: Event.UNANSWERED}),
}
"""An error, its event, and its event in some actions."""


def test_an_error_is_one_event() -> None:
    cases = [(name, action) for name in ERRORS for action in Action]
    found = {(name, action): read_error(action, ERRORS[name][0], has_nonces=True) for name, action in cases}
    assert found == {(name, action): ERRORS[name][2].get(action, ERRORS[name][1]) for name, action in cases}


@each_row("state", ACTIONS)
@each_row("error", [row[0] for row in ERRORS.values()], ids=list(ERRORS))
def test_every_error_of_an_action_is_a_step_of_its_state(state: State, error: Exception) -> None:
    for has_nonces in (True, False):
        step(state, read_error(ACTIONS[state], error, has_nonces=has_nonces))


def test_a_refused_transfer_of_a_chain_without_nonces_is_not_replaced() -> None:
    refused, _, _ = ERRORS["node refused"]
    assert read_error(Action.SEND, refused, has_nonces=False) is Event.FAILED


@each_row("state", ACTIONS)
def test_an_obstacle_ends_the_attempt_and_only_an_unasked_nonce_is_released_before(state: State) -> None:
    after = State.RELEASING_BLOCKED if state is State.SIGNING else State.BLOCKED
    assert step(state, Event.BLOCKED) is after
