"""The life of a screening: every state with every event, in the tables and in the statements."""

import asyncio
from typing import Any

import psycopg
import pytest
from tests.rows import each_row
from tests.screening.conftest import InScreened, Screened

from merchant_wallet.base.state_table import IllegalStep
from merchant_wallet.screening import asking, store
from merchant_wallet.screening.facts import DepositFacts, Facts, PayoutFacts
from merchant_wallet.screening.screening_states import CLEARED, Event, State, step
from merchant_wallet.screening.store import Overtaken, Screening

BY_HAND = """
open      passed>passed held>held refused>refused released>released rejected>refused asked_again>open
passed    held>held refused>refused
held      released>released rejected>refused asked_again>open
refused
released
"""
OF_DEPOSITS = BY_HAND.replace("\nrefused\n", "\nrefused   released>released asked_again>open\n")
"""Every step, written out here and not taken from the tables."""

PAYOUT = PayoutFacts(1001, 7, "a", "ERC20", b"p" * 20, 5, 4, 1)
DEPOSIT = DepositFacts(1001, "ERC20", "0xt", 0, b"s" * 20, b"r" * 20, 5)


def read_steps(text: str) -> dict[tuple[str, str], str]:
    return {
        (line.split()[0], event): to
        for line in text.strip().splitlines()
        for event, to in (word.split(">") for word in line.split()[1:])
    }


@each_row(("text", "is_order"), [(BY_HAND, True), (OF_DEPOSITS, False)])
@each_row("state", State)
def test_each_event_leads_where_the_list_says_and_every_other_is_refused(
    text: str, is_order: bool, state: State
) -> None:
    for event in Event:
        wanted = read_steps(text).get((state, event.name.lower()))
        if wanted is None:
            with pytest.raises(IllegalStep, match=event.name):
                step(state, event, is_order=is_order)
        else:
            assert step(state, event, is_order=is_order) == wanted


async def put(scene: Screened, state: State) -> None:
    """Set the only screening's state, whatever it was before."""
    person = state is State.RELEASED
    await scene.shop.rows(
        "update screening set state = %s, cleared_ms = case when %s then 1 end,"
        " decided_by = case when %s then 'ann' end, decided_ms = case when %s then 1 end, proposal_no = null,"
        " applied_ms = null",
        *(state.value, state in CLEARED, person, person),
    )


async def happen(scene: Screened, known: Screening, event: Event) -> Screening:
    if event is Event.ASKED_AGAIN:
        return await store.ask_again(scene.shop.connection, known, 2)
    by = "ann" if event in (Event.RELEASED, Event.REJECTED) else None
    return await store.move(scene.shop.connection, known, event, (), 2, decided_by=by)


@pytest.mark.parametrize("facts", [PAYOUT, DEPOSIT], ids=["order", "deposit"])
def test_the_statements_take_the_steps_of_the_table_and_no_other(screened: InScreened, facts: Facts) -> None:
    async def scenario(scene: Screened) -> None:
        await asking.begin(scene.shop.connection, facts, 1)
        for state in State:
            for event in Event:
                await put(scene, state)
                known = await store.find(scene.shop.connection, facts)
                assert known is not None
                if not known.allows(event):
                    with pytest.raises(IllegalStep):
                        await happen(scene, known, event)
                    continue
                moved = await happen(scene, known, event)
                assert moved.state == step(state, event, is_order=known.is_order)
                # Who read the screening before that changes nothing any more.
                if (moved.state, moved.round_no) != (known.state, known.round_no):
                    with pytest.raises(Overtaken):
                        await happen(scene, known, event)

    screened(scenario)


def test_the_database_knows_the_states_and_which_of_them_are_cleared(screened: InScreened) -> None:
    async def scenario(scene: Screened) -> None:
        shop = scene.shop
        [(definition,)] = await shop.rows(
            "select pg_get_constraintdef(oid) from pg_constraint where conname = 'screening_state'"
        )
        assert set(definition.split("'")[1::2]) == set(State)
        await asking.begin(shop.connection, PAYOUT, 1)
        for state in State:
            await put(scene, state)
            with pytest.raises(psycopg.errors.CheckViolation, match="screening_cleared"):
                await shop.rows("update screening set cleared_ms = case when cleared_ms is null then 1 end")
        await put(scene, State.HELD)
        with pytest.raises(psycopg.errors.CheckViolation, match="screening_decided"):
            await shop.rows("update screening set state = 'released', cleared_ms = 1")

    screened(scenario)


def test_other_facts_about_the_same_deposit_begin_another_round(screened: InScreened) -> None:
    async def scenario(scene: Screened) -> None:
        home: Any = scene.shop.connection
        first = await asking.begin(home, DEPOSIT, 1)
        released = await store.move(home, first, Event.RELEASED, (), 2, decided_by="ann")
        assert await asking.begin(home, DEPOSIT, 3) == released
        other = DepositFacts(1001, "ERC20", "0xt", 0, b"s" * 20, b"r" * 20, 6)
        again = await asking.begin(home, other, 4)
        assert (again.state, again.round_no, again.decided_by) == (State.OPEN, 2, None)
        assert (again.facts, again.amount_units) == (other.text(), 6)

    screened(scenario)


def test_two_that_begin_at_once_have_one_screening(screened: InScreened) -> None:
    async def scenario(scene: Screened) -> None:
        one, other = await scene.shop.connect(), await scene.shop.connect()
        try:
            begun = await asyncio.gather(
                asking.begin(one, PAYOUT, 1), asking.begin(other, PAYOUT, 1), return_exceptions=True
            )
        finally:
            await one.close()
            await other.close()
        numbers = {found.screening_no for found in begun if isinstance(found, Screening)}
        assert len(numbers) == 1
        assert all(isinstance(found, Screening | Overtaken) for found in begun)

    screened(scenario)
