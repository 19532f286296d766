"""Books against chain: every difference has its line, or is called unexplained."""

import asyncio

import pytest
from tests.reconciliation.conftest import (
    COIN,
    HOT,
    PAID_TO,
    SHOP,
    STRANGER,
    InVault,
    Vault,
    address,
)

from merchant_wallet.withdrawals.guards import read_stopped, resume
from merchant_wallet.withdrawals.stops import list_stops


def test_empty_books_and_empty_chains_agree(in_vault: InVault) -> None:
    async def scenario(vault: Vault) -> None:
        compared = await vault.compare()
        assert compared["sound"] is True
        assert (compared["books"], compared["chain"], compared["lines"]) == ("0", "0", [])

    in_vault(scenario)


def test_a_credited_deposit_is_on_both_sides_and_still_unswept(in_vault: InVault) -> None:
    async def scenario(vault: Vault) -> None:
        vault.chain.put((STRANGER, address("ulla"), 25 * COIN))
        vault.chain.put((STRANGER, address("shop"), 5 * COIN))
        await vault.watch()
        compared = await vault.compare()
        assert compared["sound"] is True
        assert (compared["books"], compared["unswept"], compared["lines"]) == ("30", "30", [])
        assert compared["depositAddresses"] == 2

    in_vault(scenario)


def test_what_is_swept_stays_in_custody(in_vault: InVault) -> None:
    async def scenario(vault: Vault) -> None:
        vault.chain.put((STRANGER, address("ulla"), 25 * COIN))
        await vault.watch()
        vault.chain.put((address("ulla"), HOT, 25 * COIN))
        compared = await vault.compare()
        assert compared["sound"] is True
        assert (compared["hotWallets"], compared["unswept"], compared["lines"]) == ("25", "0", [])

    in_vault(scenario)


def test_a_deposit_is_explained_from_the_chain_to_the_book(in_vault: InVault) -> None:
    async def scenario(vault: Vault) -> None:
        await vault.town.set_rate(None)
        vault.chain.put((STRANGER, address("anna"), 8 * COIN), (STRANGER, address("ulla"), COIN // 2))
        assert await vault.lines() == {"deposit unread": "8.5"}
        await vault.watch()
        assert await vault.lines() == {"deposit pending": "8", "deposit dust": "0.5"}
        await vault.town.set_rate(7 * 10**8)
        vault.town.clock.advance(120_000)
        await vault.watch()
        assert await vault.lines() == {"deposit dust": "0.5"}

    in_vault(scenario)


def test_a_deposit_that_the_watcher_has_read_past_calls_for_an_operator(in_vault: InVault) -> None:
    async def scenario(vault: Vault) -> None:
        vault.chain.put((STRANGER, address("ulla"), 8 * COIN))
        await vault.town.rows("update chain_cursor set final_number = 1, head_number = 1")
        compared = await vault.compare()
        assert compared["sound"] is False
        (line,) = compared["lines"]
        assert (line["kind"], line["effect"], line["alarming"]) == ("deposit missed", "8", True)

    in_vault(scenario)


def test_a_payout_is_explained_until_its_book_has_settled_it(in_vault: InVault) -> None:
    async def scenario(vault: Vault) -> None:
        await vault.fund(100 * COIN)
        order_id, tx_hash = await vault.sign(40 * COIN)
        compared = await vault.compare()
        assert (compared["sound"], compared["lines"]) == (True, [])
        assert compared["underWay"] == {"count": 1, "amount": "40"}
        vault.chain.put((HOT, PAID_TO, 40 * COIN), tx_hash=tx_hash)
        assert await vault.lines() == {"payout unsettled": "-40"}
        # Still so when nothing new is on the chain.
        assert await vault.lines() == {"payout unsettled": "-40"}
        await vault.settle(order_id, tx_hash)
        assert await vault.lines() == {}
        (explained,) = await vault.town.rows("select explained_ms is not null from custody_movement")
        assert explained == (True,)

    in_vault(scenario)


def test_a_payout_of_another_amount_calls_for_an_operator_even_once_settled(in_vault: InVault) -> None:
    async def scenario(vault: Vault) -> None:
        await vault.fund(100 * COIN)
        order_id, tx_hash = await vault.sign(40 * COIN)
        vault.chain.put((HOT, PAID_TO, 41 * COIN), tx_hash=tx_hash)
        await vault.settle(order_id, tx_hash)
        compared = await vault.compare()
        assert compared["sound"] is False
        assert [line["kind"] for line in compared["lines"] if line["alarming"]] == ["payout wrong"]

    in_vault(scenario)


def test_a_settled_payout_that_is_not_on_the_chain_is_unexplained(in_vault: InVault) -> None:
    async def scenario(vault: Vault) -> None:
        await vault.fund(100 * COIN)
        order_id, tx_hash = await vault.sign(40 * COIN)
        await vault.settle(order_id, tx_hash)
        compared = await vault.compare()
        assert (compared["sound"], compared["unexplained"]) == (False, "40")

    in_vault(scenario)


def test_what_leaves_without_an_order_calls_for_an_operator_until_it_is_recorded(in_vault: InVault) -> None:
    async def scenario(vault: Vault) -> None:
        await vault.fund(100 * COIN)
        tx_hash = vault.chain.put((HOT, STRANGER, 3 * COIN))
        compared = await vault.compare()
        (line,) = compared["lines"]
        assert (line["kind"], line["effect"], compared["unexplained"]) == ("unknown out", "-3", "0")
        assert line["movements"][0]["txHash"] == tx_hash
        assert compared["sound"] is False
        await vault.record("OUT", 3 * COIN, tx_hash)
        compared = await vault.compare()
        assert (compared["sound"], compared["lines"], compared["treasury"]) == (True, [], "97")

    in_vault(scenario)


def test_what_a_stranger_sends_to_the_hot_wallet_is_listed_and_alarms_nobody(in_vault: InVault) -> None:
    async def scenario(vault: Vault) -> None:
        tx_hash = vault.chain.put((STRANGER, HOT, 1))
        compared = await vault.compare()
        assert compared["sound"] is True
        assert [line["kind"] for line in compared["lines"]] == ["unknown in"]
        await vault.record("IN", 1, tx_hash)
        assert await vault.lines() == {}

    in_vault(scenario)


def test_a_treasury_movement_recorded_with_a_wrong_amount_is_unexplained(in_vault: InVault) -> None:
    async def scenario(vault: Vault) -> None:
        tx_hash = vault.chain.put((STRANGER, HOT, 100 * COIN))
        await vault.record("IN", 90 * COIN, tx_hash)
        assert (await vault.compare())["unexplained"] == "10"
        # The mistake is taken back, and what was meant recorded.
        await vault.record("OUT", 90 * COIN, tx_hash)
        await vault.record("IN", 100 * COIN, tx_hash)
        assert (await vault.compare())["sound"] is True

    in_vault(scenario)


def test_transfers_of_nothing_made_in_our_name_say_nothing(in_vault: InVault) -> None:
    async def scenario(vault: Vault) -> None:
        vault.chain.put((HOT, STRANGER, 0), (STRANGER, HOT, 0))
        assert await vault.lines() == {}

    in_vault(scenario)


def test_a_withdrawal_to_a_deposit_address_of_ours_counts_at_both_ends(in_vault: InVault) -> None:
    async def scenario(vault: Vault) -> None:
        await vault.fund(100 * COIN)
        order_id, tx_hash = await vault.sign(40 * COIN)
        vault.chain.put((HOT, address("ulla"), 40 * COIN), tx_hash=tx_hash)
        assert await vault.lines() == {"deposit unread": "40", "payout unsettled": "-40"}
        await vault.settle(order_id, tx_hash)
        assert await vault.lines() == {"deposit unread": "40"}
        await vault.watch()
        assert await vault.lines() == {}

    in_vault(scenario)


def test_money_from_before_the_first_look_is_unexplained_until_it_is_recorded(in_vault: InVault) -> None:
    async def scenario(vault: Vault) -> None:
        await vault.town.rows("delete from custody_cursor")
        vault.chain.put((STRANGER, HOT, 9 * COIN))
        await vault.town.rows("update chain_cursor set final_number = 1, head_number = 1")
        assert (await vault.compare())["unexplained"] == "9"
        await vault.record("IN", 9 * COIN, "0xbefore")
        assert (await vault.compare())["sound"] is True

    in_vault(scenario)


def test_a_payout_from_before_the_first_look_is_found(in_vault: InVault) -> None:
    async def scenario(vault: Vault) -> None:
        await vault.fund(100 * COIN)
        _, tx_hash = await vault.sign(40 * COIN)
        vault.chain.put((HOT, PAID_TO, 40 * COIN), tx_hash=tx_hash)
        await vault.watch()
        await vault.town.rows("delete from custody_cursor")
        await vault.town.rows("delete from custody_movement")
        assert await vault.lines() == {"payout unsettled": "-40"}

    in_vault(scenario)


def test_a_deposit_found_by_reading_old_blocks_again_has_its_address_counted(in_vault: InVault) -> None:
    async def scenario(vault: Vault) -> None:
        vault.chain.put((STRANGER, address("ulla"), 8 * COIN))
        await vault.watch()
        await vault.reconcile()
        await vault.town.rows("delete from custody_address where purpose = 'deposit'")
        assert await vault.lines() == {}

    in_vault(scenario)


def test_a_changed_balance_shows_as_books_that_do_not_add_up(in_vault: InVault) -> None:
    async def scenario(vault: Vault) -> None:
        await vault.town.rows(
            "update account set balance = 5 where merchant_id = %s and account_id = 2", SHOP
        )
        document = await vault.reconcile()
        assert (document["sound"], document["imbalance"]) == (False, {"KFB": "0.000005"})

    in_vault(scenario)


def test_when_less_is_held_than_is_owed_payouts_stop_on_every_chain(in_vault: InVault) -> None:
    async def scenario(vault: Vault) -> None:
        await vault.fund(100 * COIN)
        await vault.credit(30 * COIN)
        document = await vault.reconcile()
        assert document["sound"] is False
        assert document["custody"]["shortage"] == "30"
        stops = await list_stops(vault.town.connection)
        assert {(stop.chain, stop.actor) for stop in stops} == {
            ("ERC20", "reconciliation"),
            ("TRC20", "reconciliation"),
        }
        tx_hash = vault.chain.put((STRANGER, HOT, 30 * COIN))
        await vault.record("IN", 30 * COIN, tx_hash)
        assert (await vault.reconcile())["sound"] is True
        # Only an operator lifts it.
        assert len(await list_stops(vault.town.connection)) == 2
        for chain in vault.chains:
            stopped = await read_stopped(vault.town.connection, chain)
            await resume(vault.town.connection, chain, stopped)
        await vault.reconcile()
        assert await list_stops(vault.town.connection) == []

    in_vault(scenario)


def test_nothing_is_said_of_all_custody_while_a_wallet_that_pays_is_unknown(in_vault: InVault) -> None:
    async def scenario(vault: Vault) -> None:
        await vault.town.rows("delete from custody_address")
        await vault.town.rows("delete from hot_wallet where chain = 'TRC20'")
        await vault.credit(30 * COIN)
        assert (await vault.reconcile())["custody"]["owed"] is None
        assert await list_stops(vault.town.connection) == []

    in_vault(scenario)


def test_payouts_under_way_and_deposits_to_come_are_no_shortage(in_vault: InVault) -> None:
    async def scenario(vault: Vault) -> None:
        await vault.fund(100 * COIN)
        _, tx_hash = await vault.sign(40 * COIN)
        vault.chain.put((HOT, PAID_TO, 40 * COIN), tx_hash=tx_hash)
        vault.chain.put((STRANGER, address("ulla"), 7 * COIN))
        custody = (await vault.reconcile())["custody"]
        assert (custody["held"], custody["owed"], custody["shortage"]) == ("67", "67", "0")

    in_vault(scenario)


def test_kfb_is_owed_by_the_desk_and_not_by_custody(in_vault: InVault) -> None:
    async def scenario(vault: Vault) -> None:
        vault.chain.put((STRANGER, address("anna"), 10 * COIN))
        await vault.watch()
        custody = (await vault.reconcile())["custody"]
        assert (custody["held"], custody["owed"]) == ("10", "0")
        assert custody["inBooks"]["KFB"]["owed"] == "70"
        assert custody["inBooks"]["USDT"]["desk"] == "10"

    in_vault(scenario)


def test_a_chain_that_is_away_is_told_and_the_other_is_compared(in_vault: InVault) -> None:
    async def scenario(vault: Vault) -> None:
        await vault.credit(30 * COIN)
        vault.chain.is_away = True
        document = await vault.reconcile()
        found = {each["chainType"]: each for each in document["chains"]}
        assert found["ERC20"]["cause"] == "no node answers"
        assert (found["TRC20"]["sound"], document["sound"]) == (True, False)
        # Nothing is said of all custody by half of it, and nothing stops.
        assert document["custody"]["shortage"] is None
        assert await list_stops(vault.town.connection) == []
        rows = await vault.town.rows(
            "select is_sound, cause from reconciliation where chain = 'ERC20'"
            " order by reconciliation_no desc limit 1"
        )
        assert rows == [(False, "no node answers")]

    in_vault(scenario)


def test_one_chain_alone_can_be_asked_for(in_vault: InVault) -> None:
    async def scenario(vault: Vault) -> None:
        await vault.credit(30 * COIN)
        document = await vault.reconcile("TRC20")
        assert [each["chainType"] for each in document["chains"]] == ["TRC20"]
        assert document["custody"]["held"] is None
        with pytest.raises(LookupError):
            await vault.reconcile("BEP20")

    in_vault(scenario)


def test_a_node_that_is_behind_itself_is_looked_at_again(in_vault: InVault) -> None:
    async def scenario(vault: Vault) -> None:
        await vault.fund(100 * COIN)
        vault.chain.lag = 1
        assert (await vault.compare())["sound"] is True

    in_vault(scenario)


def test_a_chain_without_a_past_is_compared_while_it_moves_on(in_vault: InVault) -> None:
    async def scenario(vault: Vault) -> None:
        await vault.fund(100 * COIN)
        vault.chain.put((STRANGER, address("ulla"), 8 * COIN))
        await vault.watch()
        vault.chain.keeps_past = False
        # After the search and the comparison's own question: one more block while balances are read.
        vault.chain.grows = [
            (STRANGER, STRANGER, 1),
            (STRANGER, STRANGER, 1),
            (HOT, STRANGER, 2 * COIN),
            (address("ulla"), HOT, COIN),
        ]
        compared = await vault.compare()
        assert compared["unexplained"] == "0"

    in_vault(scenario)


def test_two_at_once_find_every_movement_once(in_vault: InVault) -> None:
    async def scenario(vault: Vault) -> None:
        vault.chain.put((HOT, STRANGER, 3 * COIN), (STRANGER, HOT, 5 * COIN))
        documents = await asyncio.gather(*(vault.reconcile() for _ in range(3)))
        assert {each["chains"][0]["unexplained"] for each in documents} == {"0"}
        rows = await vault.town.rows("select is_out, amount::bigint from custody_movement order by 1")
        assert rows == [(False, 5 * COIN), (True, 3 * COIN)]

    in_vault(scenario)


def test_long_stretches_are_cut_until_the_node_answers(in_vault: InVault) -> None:
    async def scenario(vault: Vault) -> None:
        for _ in range(40):
            vault.chain.put()
        tx_hash = vault.chain.put((STRANGER, HOT, 5))
        vault.chain.most_blocks = 3
        assert await vault.lines() == {"unknown in": "0.000005"}
        ((number,),) = await vault.town.rows("select block_number from custody_cursor where chain = 'ERC20'")
        assert number == len(vault.chain.blocks) - 1
        assert await vault.town.rows("select tx_hash from custody_movement") == [(tx_hash,)]

    in_vault(scenario)


def test_two_thousand_addresses_are_asked_for_a_few_dozen_at_a_time(in_vault: InVault) -> None:
    async def scenario(vault: Vault) -> None:
        await vault.town.rows(
            "insert into custody_address (chain, address, purpose, since_ms)"
            " select 'ERC20', substr(sha256(n::text::bytea), 1, 20), 'deposit', 0"
            " from generate_series(1, 2000) n"
        )
        vault.chain.asked.clear()
        compared = await vault.compare()
        assert compared["depositAddresses"] == 2000
        [(given,)] = await vault.town.rows("select count(*) from given_address")
        # The known ones, the hot wallet, and those that nothing is known to have reached.
        assert len(vault.chain.asked) == 2001 + given
        assert 1 < vault.chain.most_at_once <= 32

    in_vault(scenario)


def test_coin_spent_since_the_last_time_is_told(in_vault: InVault) -> None:
    async def scenario(vault: Vault) -> None:
        (coin,) = (await vault.compare())["coin"]
        assert (coin["held"], coin["spent"]) == (str(7 * 10**18), "0")

    in_vault(scenario)
