"""The life of a deposit: every state with every event, in the table and in the SQL statements."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from psycopg import AsyncRawCursor
from tests.deposits.conftest import COIN, FINAL_DEPTH, DepositScene, FakeChainReader, InScene, address
from tests.rows import each_row

from merchant_wallet.base.state_table import IllegalStep
from merchant_wallet.book import store
from merchant_wallet.deposits import deposit_store
from merchant_wallet.deposits.deposit_states import OPEN, SETTLED, STEPS, UNSETTLED, Event, State, step

BY_HAND = """
unknown   seen>seen final>pending final_small>dust mined_again>held
seen      seen>seen final>pending final_small>dust mined_again>held undone>undone
undone    seen>seen final>pending final_small>dust mined_again>held
pending   mined_again>held orphaned>held screened>held credited>credited
dust      mined_again>held orphaned>held added_up>pending
held      mined_again>held orphaned>held released>pending cleared>pending dropped>dropped
dropped
credited
"""
"""Every step, written out here and not taken from the table."""

HAND_STEPS = {
    (line.split()[0], event): to
    for line in BY_HAND.strip().splitlines()
    for event, to in (word.split(">") for word in line.split()[1:])
}
STATES = [None, *State]


@each_row("state", STATES, ids=str)
def test_each_event_leads_where_the_list_says_and_every_other_is_refused(state: State | None) -> None:
    for event in Event:
        wanted = HAND_STEPS.get((state or "unknown", event.name.lower()))
        if wanted is None:
            with pytest.raises(IllegalStep, match=event.name):
                step(state, event)
        else:
            assert step(state, event) == wanted


def test_only_a_final_and_pending_deposit_is_credited_and_that_once_for_good() -> None:
    arrows = {(before, event, after) for before, row in STEPS.items() for event, after in row.items()}
    assert {arrow[:2] for arrow in arrows if arrow[2] is State.CREDITED} == {(State.PENDING, Event.CREDITED)}
    assert {arrow for arrow in arrows if arrow[0] in (State.CREDITED, State.DROPPED)} == set()
    # A settled deposit is never seen or undone again.
    assert not [arrow for arrow in arrows if arrow[0] in SETTLED and arrow[2] in UNSETTLED]
    # Only a person's decision leads out of `held`.
    assert {event for before, event, after in arrows if before is State.HELD and after is not State.HELD} == {
        Event.RELEASED,
        Event.CLEARED,
        Event.DROPPED,
    }
    assert {State.PENDING, State.DUST, State.HELD} == OPEN


async def arrive(scene: DepositScene) -> dict[str, Any]:
    """The key of a deposit."""
    told = FakeChainReader("ERC20")
    (sent,) = told.mine((address("ulla"), COIN))
    told.mine(blocks=FINAL_DEPTH)
    await scene.catch_up(scene.watcher(told))
    assert await scene.status_of(sent) == "pending"
    return {"merchant_id": 1001, "chain": "ERC20", "tx_hash": sent, "log_index": 0}


async def put(scene: DepositScene, state: State) -> None:
    """Set the deposit's state, whatever it was before."""
    await scene.rows(
        "update deposit set status = %s, final_ms = case when %s then 1 end, cause = 'screening 7: a test',"
        " decided_by = case when %s then 'ann' end, decided_ms = case when %s then 1 end",
        *(state.value, state in SETTLED, state is State.DROPPED, state is State.DROPPED),
    )


async def run(scene: DepositScene, name: str, key: dict[str, Any], **values: object) -> None:
    """Run one of the watcher's statements."""
    own: dict[str, object] = {"first": 0, "last": 2**31, "cause": "a test", "actor": "ann", "now_ms": 2}
    own |= {"block": None, "amount": None}
    dust: dict[str, object] = {"addresses": [address("ulla")], "merchant_ids": [1001], "minimum_units": 1}
    text = deposit_store.QUERIES[name].text.encode()
    await scene.connection.execute(text, {**key, **own, **dust, **values})


async def write(scene: DepositScene, name: str, key: dict[str, Any], status: str) -> None:
    """Run the statement that stores transfers of blocks, as if the transfer were read again."""
    plurals = ("merchant_ids", "user_ids", "log_indexes", "block_log_indexes", "tx_hashes", "block_hashes")
    [row] = await scene.rows(
        "select merchant_id, user_id, log_index, block_log_index, tx_hash, block_hash, address, block_number,"
        " sender, amount from deposit"
    )
    names = (*plurals, "addresses", "block_numbers", "senders", "amounts")
    values: dict[str, object] = {many: [one] for many, one in zip(names, row, strict=True)}
    await run(scene, name, key, **values, statuses=[status], causes=[None])


async def credit(scene: DepositScene, key: dict[str, Any]) -> None:
    """Run the book's statement, in a group that claimed the book. It fails unless the deposit is pending."""
    text = store.QUERIES["update_deposits"].text.encode()
    ((version,),) = await scene.rows("select version from book where merchant_id = 1001")
    values = (version, [1001], ["ERC20"], [key["tx_hash"]], [0], "pending")
    try:
        async with scene.connection.transaction():
            await AsyncRawCursor(scene.connection).execute(text, values)
    except psycopg.errors.DivisionByZero:
        return


STATEMENTS: list[tuple[Event, Callable[[DepositScene, dict[str, Any]], Any]]] = [
    (Event.SEEN, lambda scene, key: write(scene, "write_seen", key, "seen")),
    (Event.FINAL, lambda scene, key: write(scene, "write_final", key, "pending")),
    (Event.FINAL_SMALL, lambda scene, key: write(scene, "write_final", key, "dust")),
    (Event.MINED_AGAIN, lambda scene, key: write(scene, "write_final", key, "held")),
    (Event.UNDONE, lambda scene, key: run(scene, "undo_seen", key)),
    (Event.ORPHANED, lambda scene, key: run(scene, "hold_settled", key)),
    (Event.ADDED_UP, lambda scene, key: run(scene, "raise_dust", key)),
    (Event.ADDED_UP, lambda scene, key: run(scene, "raise_all_dust", key)),
    (Event.RELEASED, lambda scene, key: run(scene, "release_held", key)),
    (Event.SCREENED, lambda scene, key: run(scene, "hold_screened", key)),
    (Event.CLEARED, lambda scene, key: run(scene, "clear_screened", key)),
    (Event.DROPPED, lambda scene, key: run(scene, "drop_held", key)),
    (Event.CREDITED, credit),
]


def test_the_statements_take_the_steps_of_the_table_and_no_other(in_scene: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        key = await arrive(scene)
        assert {event for event, _ in STATEMENTS} == set(Event)
        wanted: dict[str, str] = {}
        found: dict[str, str] = {}
        for number, (event, happen) in enumerate(STATEMENTS):
            for before in State:
                case = f"statement {number}, {event.name}, {before}"
                await put(scene, before)
                await happen(scene, key)
                wanted[case] = STEPS[before].get(event, before)
                found[case] = await scene.status_of(key["tx_hash"])
        assert found == wanted

    in_scene(scenario)


def test_only_what_is_pending_and_not_released_is_held_for_its_credit_elsewhere(in_scene: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        key = await arrive(scene)
        for before in State:
            await put(scene, before)
            await run(scene, "hold_elsewhere", key)
            expected = STEPS[before][Event.MINED_AGAIN] if before is State.PENDING else before
            assert await scene.status_of(key["tx_hash"]) == expected
        await put(scene, State.HELD)
        await run(scene, "release_held", key)
        await run(scene, "hold_elsewhere", key)
        assert await scene.status_of(key["tx_hash"]) == State.PENDING

    in_scene(scenario)


def test_a_reading_that_is_noted_or_moved_changes_no_state(in_scene: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        key = await arrive(scene)
        place = {"block_number": 9, "block_hash": "another", "block_log_index": 0, "next_ms": 5}
        found: dict[tuple[str, str], str] = {}
        for name in ("move_settled", "note_settled", "postpone"):
            for before in State:
                await put(scene, before)
                await run(scene, name, key, **place)
                found[name, before] = await scene.status_of(key["tx_hash"])
        assert found == {(name, before): before for name, before in found}

    in_scene(scenario)


def test_a_decision_about_a_deposit_that_has_changed_since_is_void(in_scene: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        key = await arrive(scene)
        shown = await scene.deposit(key["tx_hash"])
        seen = {"block": shown.block_number, "amount": shown.amount_units, "cause": "screening 7: a test"}
        changes: list[dict[str, object]] = [
            {"block": shown.block_number + 1},
            {"amount": shown.amount_units + 1},
            {"cause": "its block 1 has left the chain"},
            {"cause": None},
        ]
        for name in ("release_held", "drop_held"):
            for change in changes:
                await put(scene, State.HELD)
                await run(scene, name, key, **{**seen, **change})
                assert await scene.status_of(key["tx_hash"]) == State.HELD, change
            await run(scene, name, key, **seen)
            assert await scene.status_of(key["tx_hash"]) != State.HELD

    in_scene(scenario)


async def flip_final(scene: DepositScene, key: dict[str, Any], state: State) -> str | None:
    """Give a deposit in this state a final time, or take it away. Return the constraint that refuses it."""
    await put(scene, state)
    try:
        await scene.rows(
            "update deposit set final_ms = case when final_ms is null then 1 end where tx_hash = %s",
            key["tx_hash"],
        )
    except psycopg.errors.CheckViolation as violation:
        return violation.diag.constraint_name
    return None


def test_the_database_knows_the_states_of_the_table_and_which_are_final(in_scene: InScene) -> None:
    async def scenario(scene: DepositScene) -> None:
        key = await arrive(scene)
        [(definition,)] = await scene.rows(
            "select pg_get_constraintdef(oid) from pg_constraint where conname = 'deposit_status_check'"
        )
        assert set(definition.split("'")[1::2]) == set(State)
        refused_by = {state: await flip_final(scene, key, state) for state in State}
        assert refused_by == dict.fromkeys(State, "deposit_final")

    in_scene(scenario)
