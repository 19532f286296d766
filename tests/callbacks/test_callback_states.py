"""The life of a callback: every state with every event, in the table and in the outbox's SQL statements."""

from collections.abc import Awaitable, Callable

from psycopg import AsyncConnection
from tests.callbacks.conftest import CallbackScene, InScene
from tests.rows import each_row

from merchant_wallet.callbacks import outbox
from merchant_wallet.callbacks.answers import Answer
from merchant_wallet.callbacks.callback_states import STEPS, UNDELIVERED, Event, State, read_attempt
from merchant_wallet.callbacks.outbox import Claim, Key
from merchant_wallet.callbacks.schedule import PAUSES_S

D, L, Q, P = State.DELIVERED, State.DEAD_LETTER, State.DUE, State.PAUSED
BY_HAND = {
    Event.SUCCEEDED: {Q: D, D: D, L: D, P: D},
    Event.FAILED: {Q: Q, D: D, L: L, P: P},
    Event.EXHAUSTED: {Q: L, D: D, L: L, P: P},
    Event.SENT_AGAIN: {Q: Q, D: Q, L: Q, P: Q},
    Event.PAUSED: {Q: P, D: D, L: L, P: P},
    Event.RESUMED: {Q: Q, D: D, L: L, P: Q},
}
"""The state after each event, by the state before it, written out here and not taken from the table."""

NOW_MS = 1_763_712_600_000


def test_each_event_leads_where_the_list_says() -> None:
    for event in Event:
        for state in State:
            assert STEPS[state].get(event, state) is BY_HAND[event][state], f"{event} in {state}"


def test_what_an_operator_can_do_leads_out_of_every_state_but_delivery_is_never_undone_by_a_failure() -> None:
    assert all(STEPS[state][Event.SENT_AGAIN] is State.DUE for state in State)
    assert not {Event.FAILED, Event.EXHAUSTED} & STEPS[State.DELIVERED].keys()
    assert UNDELIVERED == (State.DUE, State.DEAD_LETTER, State.PAUSED)


@each_row("retry_no", range(len(PAUSES_S) + 2))
def test_an_attempt_is_repeated_until_the_schedule_ends(retry_no: int) -> None:
    last = retry_no >= len(PAUSES_S)
    failed = read_attempt(is_success=False, has_url=True, retry_no=retry_no)
    assert failed is (Event.EXHAUSTED if last else Event.FAILED)
    assert read_attempt(is_success=True, has_url=True, retry_no=retry_no) is Event.SUCCEEDED
    assert read_attempt(is_success=False, has_url=False, retry_no=retry_no) is Event.EXHAUSTED


Happen = Callable[[AsyncConnection, Claim], Awaitable[object]]
ANSWER = Answer(1, http_status=200)

STATEMENTS: dict[str, tuple[Event, Happen]] = {
    "record_success": (
        Event.SUCCEEDED,
        lambda connection, claim: outbox.record_success(connection, claim, ANSWER, NOW_MS),
    ),
    "record_failure with a repeat": (
        Event.FAILED,
        lambda connection, claim: outbox.record_failure(connection, claim, ANSWER, NOW_MS),
    ),
    "record_failure without one": (
        Event.EXHAUSTED,
        lambda connection, claim: outbox.record_failure(connection, claim, ANSWER, None),
    ),
    "send_again": (
        Event.SENT_AGAIN,
        lambda connection, claim: outbox.send_again(connection, claim.key.merchant_id, claim.event_id),
    ),
    "pause": (
        Event.PAUSED,
        lambda connection, claim: outbox.pause(connection, claim.key.merchant_id, claim.event_id),
    ),
    "resume": (
        Event.RESUMED,
        lambda connection, claim: outbox.resume(connection, claim.key.merchant_id, claim.event_id),
    ),
}


async def claim_one(scene: CallbackScene) -> Claim:
    """A callback that is claimed for its first attempt."""
    await scene.cancelled(await scene.open_merchant())
    [row] = await scene.rows("select merchant_id, order_id, status from callback")
    [claim] = await outbox.claim(
        scene.connection, [Key(*row)], claimed_by="test", now_ms=scene.clock(), until_ms=scene.clock() + 1
    )
    return claim


async def state_after(scene: CallbackScene, claim: Claim, before: State, happen: Happen) -> State:
    """The state in which a statement leaves a callback."""
    await scene.rows("update callback set state = %s, delivered_ms = 1", before.value)
    await happen(scene.connection, claim)
    [(after,)] = await scene.rows("select state from callback")
    return State(after)


def test_the_outbox_does_what_the_table_says(in_scene: InScene) -> None:
    async def scenario(scene: CallbackScene) -> None:
        claim = await claim_one(scene)
        for name, (event, happen) in STATEMENTS.items():
            for before in State:
                wanted = STEPS[before].get(event, before)
                assert await state_after(scene, claim, before, happen) is wanted, f"{name} in {before}"
        for before in State:
            wanted = State.DUE if before is State.DEAD_LETTER else before
            found = await state_after(
                scene,
                claim,
                before,
                lambda connection, of: outbox.send_dead_letters_again(connection, of.key[0]),
            )
            assert found is wanted, before

    in_scene(scenario)


def test_a_failure_of_an_older_attempt_decides_nothing(in_scene: InScene) -> None:
    async def scenario(scene: CallbackScene) -> None:
        old = await claim_one(scene)
        scene.clock.advance_s(60)
        [newer] = await outbox.claim(
            scene.connection, [old.key], claimed_by="other", now_ms=scene.clock(), until_ms=scene.clock() + 1
        )
        assert newer.attempt_no == old.attempt_no + 1
        assert not await outbox.record_failure(scene.connection, old, ANSWER, None)
        assert await scene.rows("select state from callback") == [(State.DUE.value,)]

    in_scene(scenario)


def test_the_database_knows_the_states_of_the_table_and_no_other(in_scene: InScene) -> None:
    async def scenario(scene: CallbackScene) -> None:
        [(definition,)] = await scene.rows(
            "select pg_get_constraintdef(oid) from pg_constraint where conname = 'callback_state_check'"
        )
        assert set(definition.split("'")[1::2]) == set(State)

    in_scene(scenario)
