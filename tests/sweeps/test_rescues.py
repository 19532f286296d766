"""Rescues on real chains: another token, or coin, goes from a deposit address to the owner."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from devnet.evm_node import COIN, ISSUER, Token
from tests.chains.evm_scene import WALLET, EvmScene
from tests.chains.tron_scene import WALLET_UNITS, TronScene
from tests.sweeps.evm_steps import coin, finish, open_it, pay_in
from tests.sweeps.rescue_steps import ANN, HELD, decide, show
from tests.sweeps.sweep_scene import NOW_MS, SAFE, USDT, SweepScene, address_of, end, open_tron

from merchant_wallet.base.chains import ERC20, TRC20
from merchant_wallet.chains.evm.transactions import encode_transfer_call
from merchant_wallet.chains.tron.chain import TronRules
from merchant_wallet.custody.rescues import acts, store
from merchant_wallet.custody.rescues.store import RescueShown
from merchant_wallet.custody.sweeps import store as sweeps
from merchant_wallet.custody.sweeps.stalls import STALLED_MS
from merchant_wallet.custody.sweeps.worker import SweepsFailed, SweepWorker
from merchant_wallet.hot_wallet.store import open_wallet

if TYPE_CHECKING:
    from tests.sweeps.conftest import InScene

THIEF = b"t" * 20
# A balance of 32 units, and a transfer that answers false: 68 minus the size of what is asked.
ANSWERS_FALSE = "36604403" + "60005260206000f3"
# It answers 7 to everything, so a transfer seems to succeed, and moves and logs nothing.
MOVES_NOTHING = "6007" + "60005260206000f3"
# An opcode that never exists: a failure, and no revert.
INVALID = "fe"
# It seems to move 32 units while its holder has no coin, and then fails without a revert.
FAILS_LATER = "36604414333102601457" + "602060005260206000f3" + "5bfe"


async def make_worker(scene: SweepScene, evm: EvmScene, folder: Path) -> SweepWorker:
    await open_wallet(scene.connection, ERC20, WALLET, NOW_MS)
    return scene.worker({ERC20: open_it(evm, folder)})


async def begin(scene: SweepScene, evm: EvmScene, folder: Path) -> tuple[SweepWorker, bytes]:
    """A worker, and a deposit address with 70 USDT."""
    return await make_worker(scene, evm, folder), await pay_in(scene, evm, 0, 70 * USDT)


async def make_tron_worker(
    scene: SweepScene, tron: TronScene, folder: Path, rules: TronRules | None = None
) -> SweepWorker:
    await open_wallet(scene.connection, TRC20, tron.wallet, NOW_MS)
    return scene.worker({TRC20: open_tron(folder, tron.network.urls, rules or tron.rules)})


async def begin_on_tron(scene: SweepScene, tron: TronScene, folder: Path) -> tuple[SweepWorker, bytes, bytes]:
    """A worker, a deposit address with 70 USDT, and another token that the address holds, too."""
    worker, network = await make_tron_worker(scene, tron, folder), tron.network
    address, other = await scene.deposit(0, 70 * USDT, TRC20), network.deploy()
    network.fund(address, units=70 * USDT)
    network.fake.operate(network.owner, other, encode_transfer_call(address, HELD))
    network.settle()
    return worker, address, other


async def follow(scene: SweepScene, evm: EvmScene, worker: SweepWorker) -> RescueShown:
    """Run the worker and mine blocks until no rescue is open."""
    for _ in range(8):
        await worker.follow()
        evm.settle()
        shown = await show(scene)
        if shown.ended_ms is not None:
            break
    return shown


def deploy(evm: EvmScene, code: str) -> bytes:
    """The address of a contract with this code."""
    raw = bytes.fromhex(code)
    begin = bytes((0x60, len(raw), 0x60, 12, 0x60, 0, 0x39, 0x60, len(raw), 0x60, 0, 0xF3))
    return bytes.fromhex(evm.node.run(ISSUER, None, begin + raw)["contractAddress"][2:])


def give_other(evm: EvmScene, address: bytes) -> Token:
    """Another token, like old USDT: its transfer returns nothing."""
    other = evm.node.deploy()
    other.give(address, HELD)
    evm.settle()
    return other


def test_another_token_and_coin_are_moved_to_the_owner_and_no_usdt(
    in_scene: "InScene", evm: EvmScene, tmp_path: Path
) -> None:
    async def scenario(scene: SweepScene) -> None:
        worker, address = await begin(scene, evm, tmp_path)
        other = give_other(evm, address)
        await decide(scene, ERC20, address, other.address)
        moved = await follow(scene, evm, worker)
        assert (moved.step, moved.rescued, moved.arrived) == ("done", HELD, HELD)
        assert (other.balance(SAFE), other.balance(address)) == (HELD, 0)
        assert evm.token.balance(address) == 70 * USDT
        [sweep] = await sweeps.list_sweeps(scene.connection, sweep_id=moved.sweep_id)
        assert moved.fee == (sweep.top_up_fee or 0) + (sweep.token_fee or 0) > 0
        assert await sweeps.list_sweeps(scene.connection) == []
        # Coin: everything but the fee, without a top-up.
        evm.node.fund(address, COIN // 5)
        evm.settle()
        await decide(scene, ERC20, address, None)
        coins = await follow(scene, evm, worker)
        assert (coins.step, coins.arrived) == ("done", coins.rescued)
        assert coin(evm, SAFE) == coins.arrived
        assert coin(evm, address) + (coins.fee or 0) == COIN // 5 - (coins.arrived or 0) < COIN // 1000
        # What USDT came here is still swept, and only that counts as swept.
        await scene.begin(worker)
        assert await finish(scene, evm, worker) == ["done"]
        totals = await sweeps.sum_sweeps(scene.connection, ERC20)
        assert (totals.moved_units, totals.open_units) == (70 * USDT, 0)
        signed = dict(await scene.rows("select kind, count(*) from sweep_signed group by kind"))
        assert (signed["rescue"], signed["token"]) == (2, 1)

    in_scene(scenario)


def test_a_token_that_keeps_a_fee_is_moved_and_the_record_says_how_much_arrived(
    in_scene: "InScene", evm: EvmScene, tmp_path: Path
) -> None:
    async def scenario(scene: SweepScene) -> None:
        worker, address = await begin(scene, evm, tmp_path)
        other = give_other(evm, address)
        other.do("setParams(uint256,uint256)", 10, 40)
        await decide(scene, ERC20, address, other.address, 10_000_000)
        moved = await follow(scene, evm, worker)
        assert (moved.step, moved.rescued, moved.arrived) == ("done", 10_000_000, 9_990_000)
        assert other.balance(SAFE) == 9_990_000

    in_scene(scenario)


@pytest.mark.parametrize(
    ("code", "is_sent", "cause"),
    [
        (ANSWERS_FALSE, False, "it could not begin for 10 minutes: the token answers false"),
        (MOVES_NOTHING, True, "succeeded, and the token shows no such transfer"),
    ],
)
def test_a_token_that_lies_is_never_called_moved(
    in_scene: "InScene", evm: EvmScene, tmp_path: Path, code: str, is_sent: bool, cause: str
) -> None:
    async def scenario(scene: SweepScene) -> None:
        worker, address = await begin(scene, evm, tmp_path)
        evm.node.fund(address, COIN // 5)
        await decide(scene, ERC20, address, deploy(evm, code))
        await worker.follow()
        scene.clock.now_ms += STALLED_MS
        ended = await follow(scene, evm, worker)
        assert (ended.step, ended.arrived) == ("failed", None)
        assert cause in (ended.cause or "")
        assert await scene.rows("select count(*) from sweep_signed") == [(int(is_sent),)]
        # It waits for a person, until one has looked at it.
        [standing] = await store.list_standing(scene.connection, 0)
        assert standing.rescue_no == ended.rescue_no
        if ended.sweep_id is None:
            assert await acts.end(scene.connection, ANN, ended, "looked at")
        else:
            await end(scene.connection, worker.sweepers, ended.sweep_id)
        assert await store.list_standing(scene.connection, 0) == []
        settled = await show(scene)
        assert (settled.cause, settled.ended_ms) == (ended.cause, ended.ended_ms), "what it was stays"
        assert settled.ended_by is not None
        assert not await acts.end(scene.connection, ANN, settled, "again")

    in_scene(scenario)


def test_whoever_changes_the_database_names_neither_a_destination_nor_the_token_of_the_settings(
    in_scene: "InScene", evm: EvmScene, tmp_path: Path
) -> None:
    async def scenario(scene: SweepScene) -> None:
        worker, address = await begin(scene, evm, tmp_path)
        other = give_other(evm, address)
        evm.node.fund(address, COIN // 5)
        await decide(scene, ERC20, address, other.address)
        await scene.rows("update rescue set recipient = %s", THIEF)
        await worker.follow()
        assert "no rescue address of this signer" in ((await show(scene)).obstacle or "")
        scene.clock.now_ms += STALLED_MS
        assert (await follow(scene, evm, worker)).step == "failed"
        for contract, recipient in ((evm.token.address, SAFE), (None, THIEF)):
            await decide(scene, ERC20, address, contract, recipient=recipient)
            await worker.follow()
            assert "the signer refuses" in ((await show(scene)).obstacle or "")
            scene.clock.now_ms += 2 * STALLED_MS
            assert (await follow(scene, evm, worker)).step == "failed"
        assert await scene.rows("select count(*) from sweep_signed") == [(0,)]
        assert (other.balance(THIEF), evm.token.balance(SAFE), coin(evm, THIEF)) == (0, 0, 0)

    in_scene(scenario)


def test_a_rescue_waits_for_an_open_sweep_of_its_address(
    in_scene: "InScene", evm: EvmScene, tmp_path: Path
) -> None:
    async def scenario(scene: SweepScene) -> None:
        worker, address = await begin(scene, evm, tmp_path)
        other = give_other(evm, address)
        await scene.begin(worker)
        await worker.follow(with_unsigned=True)
        # The coin that the sweep got for its fee is not rescued from under it.
        await decide(scene, ERC20, address, other.address)
        await worker.follow()
        assert (await show(scene)).obstacle == "a sweep of the address is under way"
        moved = await follow(scene, evm, worker)
        assert (moved.step, await scene.steps()) == ("done", ["done"])
        assert other.balance(SAFE) == HELD

    in_scene(scenario)


def test_on_tron_another_token_and_trx_are_moved_to_the_owner(
    in_scene: "InScene", tron: TronScene, tmp_path: Path
) -> None:
    async def scenario(scene: SweepScene) -> None:
        worker, address, other = await begin_on_tron(scene, tron, tmp_path)
        network = tron.network
        for contract in (other, None):
            if contract is None:
                network.fund(address, sun=50_000_000)
            await decide(scene, TRC20, address, contract)
            for _ in range(8):
                await worker.follow()
                network.settle()
                moved = await show(scene)
                if moved.ended_ms is not None:
                    break
            assert (moved.step, moved.arrived) == ("done", moved.rescued)
        assert moved.rescued == network.coins(SAFE) > 48_000_000
        assert (network.balance(address), network.balance(tron.wallet)) == (70 * USDT, WALLET_UNITS)
        [(token_moved,)] = await scene.rows("select arrived::bigint from rescue where contract = %s", other)
        assert token_moved == HELD
        assert address == address_of(0, TRC20)

    in_scene(scenario)


@pytest.mark.parametrize("is_former", [True, False], ids=["former", "successor"])
def test_a_contract_that_replaces_the_token_of_the_settings_or_is_replaced_by_it_is_not_rescued(
    in_scene: "InScene", evm: EvmScene, tmp_path: Path, is_former: bool
) -> None:
    async def scenario(scene: SweepScene) -> None:
        address = await pay_in(scene, evm, 0, 70 * USDT)
        evm.node.fund(address, COIN // 5)
        former, successor = evm.token, evm.token.replace(address)
        evm.settle()
        # Both names move the same balance: the customers'.
        settings, other = (successor, former) if is_former else (former, successor)
        worker = await make_worker(scene, EvmScene(evm.node, settings), tmp_path)
        await decide(scene, ERC20, address, other.address)
        await worker.follow()
        assert "the same USDT" in ((await show(scene)).obstacle or "")
        scene.clock.now_ms += STALLED_MS
        assert (await follow(scene, evm, worker)).step == "failed"
        assert (successor.balance(address), successor.balance(SAFE)) == (70 * USDT, 0)

    in_scene(scenario)


def test_a_rescue_that_no_node_can_simulate_ends_in_time(
    in_scene: "InScene", evm: EvmScene, tmp_path: Path
) -> None:
    async def scenario(scene: SweepScene) -> None:
        worker, address = await begin(scene, evm, tmp_path)
        await decide(scene, ERC20, address, deploy(evm, INVALID))
        with pytest.raises(SweepsFailed):
            await worker.follow()
        scene.clock.now_ms += STALLED_MS
        await worker.follow()
        ended = await show(scene)
        assert (ended.step, ended.sweep_id) == ("failed", None)
        assert "it could not begin for 10 minutes" in (ended.cause or "")

    in_scene(scenario)


def test_on_tron_a_contract_of_the_same_usdt_is_not_rescued(
    in_scene: "InScene", tron: TronScene, tmp_path: Path
) -> None:
    async def scenario(scene: SweepScene) -> None:
        network = tron.network
        address = await scene.deposit(0, 70 * USDT, TRC20)
        network.fund(address, units=70 * USDT, sun=50_000_000)
        network.settle()
        former, successor = network.token, network.replace(address)
        network.settle()
        rules = msgspec.structs.replace(tron.rules, token=successor)
        worker = await make_tron_worker(scene, tron, tmp_path, rules)
        await decide(scene, TRC20, address, former)
        await worker.follow()
        shown = await show(scene)
        assert (shown.step, network.balance(address)) == ("waiting", 70 * USDT)
        assert "the same USDT" in (shown.obstacle or "")

    in_scene(scenario)


def test_a_rescue_that_no_node_can_simulate_any_more_ends_in_time_and_frees_its_address(
    in_scene: "InScene", evm: EvmScene, tmp_path: Path
) -> None:
    async def scenario(scene: SweepScene) -> None:
        worker, address = await begin(scene, evm, tmp_path)
        await decide(scene, ERC20, address, deploy(evm, FAILS_LATER))
        for _ in range(3):
            await worker.follow()
            evm.settle()
        assert (await show(scene)).step == "rescue", "its top-up is final"
        scene.clock.now_ms += STALLED_MS
        await worker.follow()
        ended = await show(scene)
        assert (ended.step, ended.arrived) == ("failed", None)
        assert "no node simulates the transfer" in (ended.cause or "")
        await scene.begin(worker)
        assert await finish(scene, evm, worker) == ["done"]

    in_scene(scenario)


def test_on_tron_a_rescue_that_no_node_can_simulate_any_more_ends_in_time(
    in_scene: "InScene", tron: TronScene, tmp_path: Path
) -> None:
    def refuse(path: str, question: dict[str, Any], answer: Any) -> Any:
        if question.get("function_selector") != "transfer(address,uint256)":
            return answer
        told = b"class org.tron.core.vm.program.Program$IllegalOperationException : Invalid operation code"
        return {"result": {"code": "OTHER_ERROR", "message": told.hex()}}

    async def scenario(scene: SweepScene) -> None:
        worker, address, other = await begin_on_tron(scene, tron, tmp_path)
        network = tron.network
        await decide(scene, TRC20, address, other)
        await worker.follow()
        for server in network.servers:
            server.switches.edit = refuse
        network.settle()
        for _ in range(2):
            await worker.follow()
            scene.clock.now_ms += STALLED_MS
        await worker.follow()
        ended = await show(scene)
        assert (ended.step, ended.arrived) == ("failed", None)
        assert "no node simulates the transfer" in (ended.cause or "")

    in_scene(scenario)
