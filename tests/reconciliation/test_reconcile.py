"""Books compared with the chain: every difference has its line, or is reported as unexplained."""

from tests.reconciliation.conftest import (
    COIN,
    HOT,
    PAID_TO,
    SHOP,
    STRANGER,
    InReconciliation,
    ReconciliationScene,
    address,
)

from merchant_wallet.hot_wallet.stops import list_stops, read_stopped, resume_payouts


def test_empty_books_and_empty_chains_agree(in_reconciliation: InReconciliation) -> None:
    async def scenario(scene: ReconciliationScene) -> None:
        compared = await scene.compare()
        assert compared["sound"] is True
        assert (compared["books"], compared["chain"], compared["lines"]) == ("0", "0", [])

    in_reconciliation(scenario)


def test_a_credited_deposit_is_on_both_sides_and_still_unswept(in_reconciliation: InReconciliation) -> None:
    async def scenario(scene: ReconciliationScene) -> None:
        scene.chain.put((STRANGER, address("ulla"), 25 * COIN))
        scene.chain.put((STRANGER, address("shop"), 5 * COIN))
        await scene.watch()
        compared = await scene.compare()
        assert compared["sound"] is True
        assert (compared["books"], compared["unswept"], compared["lines"]) == ("30", "30", [])
        assert compared["depositAddresses"] == 2

    in_reconciliation(scenario)


def test_what_is_swept_stays_in_custody(in_reconciliation: InReconciliation) -> None:
    async def scenario(scene: ReconciliationScene) -> None:
        scene.chain.put((STRANGER, address("ulla"), 25 * COIN))
        await scene.watch()
        scene.chain.put((address("ulla"), HOT, 25 * COIN))
        compared = await scene.compare()
        assert compared["sound"] is True
        assert (compared["hotWallets"], compared["unswept"], compared["lines"]) == ("25", "0", [])

    in_reconciliation(scenario)


def test_a_deposit_is_explained_from_the_chain_to_the_book(in_reconciliation: InReconciliation) -> None:
    async def scenario(scene: ReconciliationScene) -> None:
        await scene.deposits.set_rate(None)
        scene.chain.put((STRANGER, address("anna"), 8 * COIN), (STRANGER, address("ulla"), COIN // 2))
        assert await scene.lines() == {"deposit unread": "8.5"}
        await scene.watch()
        assert await scene.lines() == {"deposit pending": "8", "deposit dust": "0.5"}
        await scene.deposits.set_rate(7 * 10**8)
        scene.deposits.clock.advance(120_000)
        await scene.watch()
        assert await scene.lines() == {"deposit dust": "0.5"}

    in_reconciliation(scenario)


def test_a_deposit_that_the_watcher_has_read_past_calls_for_an_operator(
    in_reconciliation: InReconciliation,
) -> None:
    async def scenario(scene: ReconciliationScene) -> None:
        scene.chain.put((STRANGER, address("ulla"), 8 * COIN))
        await scene.deposits.rows("update chain_cursor set final_number = 1, head_number = 1")
        await scene.deposits.rows("insert into chain_position values ('ERC20', 1, 0)")
        compared = await scene.compare()
        assert compared["sound"] is False
        (line,) = compared["lines"]
        assert (line["kind"], line["effect"], line["alarming"]) == ("deposit missed", "8", True)

    in_reconciliation(scenario)


def test_a_payout_is_explained_until_its_book_has_settled_it(in_reconciliation: InReconciliation) -> None:
    async def scenario(scene: ReconciliationScene) -> None:
        await scene.fund(100 * COIN)
        order_id, tx_hash = await scene.sign(40 * COIN)
        compared = await scene.compare()
        assert (compared["sound"], compared["lines"]) == (True, [])
        assert compared["underWay"] == {"count": 1, "amount": "40"}
        scene.chain.put((HOT, PAID_TO, 40 * COIN), tx_hash=tx_hash)
        assert await scene.lines() == {"payout unsettled": "-40"}
        # The same when the chain has nothing new.
        assert await scene.lines() == {"payout unsettled": "-40"}
        await scene.settle(order_id, tx_hash)
        assert await scene.lines() == {}
        statement = "select explained_ms is not null from custody_movement where tx_hash = %s"
        assert await scene.deposits.rows(statement, tx_hash) == [(True,)]

    in_reconciliation(scenario)


def test_a_payout_of_another_amount_calls_for_an_operator_even_once_settled(
    in_reconciliation: InReconciliation,
) -> None:
    async def scenario(scene: ReconciliationScene) -> None:
        await scene.fund(100 * COIN)
        order_id, tx_hash = await scene.sign(40 * COIN)
        scene.chain.put((HOT, PAID_TO, 41 * COIN), tx_hash=tx_hash)
        await scene.settle(order_id, tx_hash)
        compared = await scene.compare()
        assert compared["sound"] is False
        assert [line["kind"] for line in compared["lines"] if line["alarming"]] == ["payout wrong"]

    in_reconciliation(scenario)


def test_a_settled_payout_that_is_not_on_the_chain_is_unexplained(
    in_reconciliation: InReconciliation,
) -> None:
    async def scenario(scene: ReconciliationScene) -> None:
        await scene.fund(100 * COIN)
        order_id, tx_hash = await scene.sign(40 * COIN)
        await scene.settle(order_id, tx_hash)
        compared = await scene.compare()
        assert (compared["sound"], compared["unexplained"]) == (False, "40")

    in_reconciliation(scenario)


def test_what_leaves_without_an_order_calls_for_an_operator_until_it_is_recorded(
    in_reconciliation: InReconciliation,
) -> None:
    async def scenario(scene: ReconciliationScene) -> None:
        await scene.fund(100 * COIN)
        tx_hash = scene.chain.put((HOT, STRANGER, 3 * COIN))
        compared = await scene.compare()
        (line,) = compared["lines"]
        assert (line["kind"], line["effect"], compared["unexplained"]) == ("unknown out", "-3", "0")
        assert line["movements"][0]["txHash"] == tx_hash
        assert compared["sound"] is False
        # What is recorded in the other direction does not explain it.
        wrong = await scene.record("IN", 3 * COIN, tx_hash)
        assert [line["kind"] for line in (await scene.compare())["lines"]] == ["unknown out"]
        await scene.record("OUT", 3 * COIN, tx_hash, corrects=wrong)
        assert [line["kind"] for line in (await scene.compare())["lines"]] == ["unknown out"]
        await scene.record("OUT", 3 * COIN, tx_hash)
        compared = await scene.compare()
        assert (compared["sound"], compared["lines"], compared["treasury"]) == (True, [], "97")

    in_reconciliation(scenario)


def test_what_a_stranger_sends_to_the_hot_wallet_is_listed_and_alarms_nobody(
    in_reconciliation: InReconciliation,
) -> None:
    async def scenario(scene: ReconciliationScene) -> None:
        tx_hash = scene.chain.put((STRANGER, HOT, 1))
        compared = await scene.compare()
        assert compared["sound"] is True
        assert [line["kind"] for line in compared["lines"]] == ["unknown in"]
        await scene.record("IN", 1, tx_hash)
        assert await scene.lines() == {}

    in_reconciliation(scenario)


def test_a_treasury_movement_recorded_with_a_wrong_amount_is_unexplained(
    in_reconciliation: InReconciliation,
) -> None:
    async def scenario(scene: ReconciliationScene) -> None:
        tx_hash = scene.chain.put((STRANGER, HOT, 100 * COIN))
        wrong = await scene.record("IN", 90 * COIN, tx_hash)
        assert (await scene.compare())["unexplained"] == "10"
        await scene.record("OUT", 90 * COIN, tx_hash, corrects=wrong)
        await scene.record("IN", 100 * COIN, tx_hash)
        assert (await scene.compare())["sound"] is True

    in_reconciliation(scenario)


def test_transfers_of_nothing_made_in_our_name_say_nothing(in_reconciliation: InReconciliation) -> None:
    async def scenario(scene: ReconciliationScene) -> None:
        scene.chain.put((HOT, STRANGER, 0), (STRANGER, HOT, 0))
        assert await scene.lines() == {}

    in_reconciliation(scenario)


def test_a_withdrawal_to_a_deposit_address_of_ours_counts_at_both_ends(
    in_reconciliation: InReconciliation,
) -> None:
    async def scenario(scene: ReconciliationScene) -> None:
        await scene.fund(100 * COIN)
        order_id, tx_hash = await scene.sign(40 * COIN)
        scene.chain.put((HOT, address("ulla"), 40 * COIN), tx_hash=tx_hash)
        assert await scene.lines() == {"deposit unread": "40", "payout unsettled": "-40"}
        await scene.settle(order_id, tx_hash)
        assert await scene.lines() == {"deposit unread": "40"}
        await scene.watch()
        assert await scene.lines() == {}

    in_reconciliation(scenario)


def test_money_from_before_the_first_look_is_unexplained_until_it_is_recorded(
    in_reconciliation: InReconciliation,
) -> None:
    async def scenario(scene: ReconciliationScene) -> None:
        await scene.deposits.rows("delete from custody_cursor")
        scene.chain.put((STRANGER, HOT, 9 * COIN))
        await scene.deposits.rows("update chain_cursor set final_number = 1, head_number = 1")
        assert (await scene.compare())["unexplained"] == "9"
        await scene.record("IN", 9 * COIN, "0xbefore")
        assert (await scene.compare())["sound"] is True

    in_reconciliation(scenario)


def test_a_payout_from_before_the_first_look_is_found(in_reconciliation: InReconciliation) -> None:
    async def scenario(scene: ReconciliationScene) -> None:
        await scene.fund(100 * COIN)
        _, tx_hash = await scene.sign(40 * COIN)
        scene.chain.put((HOT, PAID_TO, 40 * COIN), tx_hash=tx_hash)
        await scene.watch()
        await scene.deposits.rows("delete from custody_cursor")
        await scene.deposits.rows("delete from custody_movement")
        assert await scene.lines() == {"payout unsettled": "-40"}

    in_reconciliation(scenario)


def test_a_deposit_found_by_reading_old_blocks_again_has_its_address_counted(
    in_reconciliation: InReconciliation,
) -> None:
    async def scenario(scene: ReconciliationScene) -> None:
        scene.chain.put((STRANGER, address("ulla"), 8 * COIN))
        await scene.watch()
        await scene.reconcile()
        await scene.deposits.rows("delete from custody_address where purpose = 'deposit'")
        assert await scene.lines() == {}

    in_reconciliation(scenario)


def test_a_changed_balance_shows_as_books_that_do_not_add_up(in_reconciliation: InReconciliation) -> None:
    async def scenario(scene: ReconciliationScene) -> None:
        await scene.deposits.rows(
            "update account set balance = 5 where merchant_id = %s and account_id = 2", SHOP
        )
        document = await scene.reconcile()
        assert (document["sound"], document["imbalance"]) == (False, {"KFB": "0.000005"})

    in_reconciliation(scenario)


def test_when_less_is_held_than_is_owed_payouts_stop_on_every_chain(
    in_reconciliation: InReconciliation,
) -> None:
    async def scenario(scene: ReconciliationScene) -> None:
        await scene.fund(100 * COIN)
        await scene.credit(30 * COIN)
        document = await scene.reconcile()
        assert document["sound"] is False
        assert document["custody"]["shortage"] == "30"
        stops = await list_stops(scene.deposits.connection)
        assert {(stop.chain, stop.actor) for stop in stops} == {
            ("ERC20", "reconciliation"),
            ("TRC20", "reconciliation"),
        }
        tx_hash = scene.chain.put((STRANGER, HOT, 30 * COIN))
        await scene.record("IN", 30 * COIN, tx_hash)
        assert (await scene.reconcile())["sound"] is True
        # Only an operator lifts the stop.
        assert len(await list_stops(scene.deposits.connection)) == 2
        for chain in scene.chains:
            stopped = await read_stopped(scene.deposits.connection, chain)
            await resume_payouts(scene.deposits.connection, chain, stopped)
        await scene.reconcile()
        assert await list_stops(scene.deposits.connection) == []

    in_reconciliation(scenario)


def test_nothing_is_said_of_all_custody_while_a_wallet_that_pays_is_unknown(
    in_reconciliation: InReconciliation,
) -> None:
    async def scenario(scene: ReconciliationScene) -> None:
        await scene.deposits.rows("delete from custody_address")
        await scene.deposits.rows("delete from hot_wallet where chain = 'TRC20'")
        await scene.credit(30 * COIN)
        assert (await scene.reconcile())["custody"]["owed"] is None
        assert await list_stops(scene.deposits.connection) == []

    in_reconciliation(scenario)


def test_payouts_under_way_and_deposits_to_come_are_no_shortage(in_reconciliation: InReconciliation) -> None:
    async def scenario(scene: ReconciliationScene) -> None:
        await scene.fund(100 * COIN)
        _, tx_hash = await scene.sign(40 * COIN)
        scene.chain.put((HOT, PAID_TO, 40 * COIN), tx_hash=tx_hash)
        scene.chain.put((STRANGER, address("ulla"), 7 * COIN))
        custody = (await scene.reconcile())["custody"]
        assert (custody["held"], custody["owed"], custody["shortage"]) == ("67", "67", "0")

    in_reconciliation(scenario)


def test_kfb_is_owed_by_the_exchange_account_and_not_by_custody(in_reconciliation: InReconciliation) -> None:
    async def scenario(scene: ReconciliationScene) -> None:
        scene.chain.put((STRANGER, address("anna"), 10 * COIN))
        await scene.watch()
        custody = (await scene.reconcile())["custody"]
        assert (custody["held"], custody["owed"]) == ("10", "0")
        assert custody["inBooks"]["KFB"]["owed"] == "70"
        assert custody["inBooks"]["USDT"]["desk"] == "10"

    in_reconciliation(scenario)


def test_coin_spent_since_the_last_reconciliation_is_reported(in_reconciliation: InReconciliation) -> None:
    async def scenario(scene: ReconciliationScene) -> None:
        (coin,) = (await scene.compare())["coin"]
        assert (coin["held"], coin["spent"]) == (str(7 * 10**18), "0")

    in_reconciliation(scenario)
