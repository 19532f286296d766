"""The real signer and the real chains together: each accepts what the other makes, and the chain counts
it.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from devnet.evm_node import CHAIN_ID
from tests.chains.evm_scene import KEY, USDT, WALLET, EvmScene, payout
from tests.chains.signing import PLACE, SEED, Clock
from tests.chains.tron_scene import TronScene, key_of, open_tron, payout_of

from merchant_wallet.base.addresses import derive_account
from merchant_wallet.base.chains import ERC20, TRC20
from merchant_wallet.chains.evm.chain import EvmChain
from merchant_wallet.chains.evm.transactions import (
    EvmTransaction,
    encode_transfer_call,
    encode_unsigned,
    join,
)
from merchant_wallet.chains.keys.keystore import Keystore
from merchant_wallet.chains.keys.local_signer import LocalSigner
from merchant_wallet.chains.keys.signer_socket import RemoteSigner, SignerServer
from merchant_wallet.chains.keys.signing_rules import ChainLimits, SigningRules
from merchant_wallet.chains.protocol import Blocked, Expired, FinalRecord, Transfer
from merchant_wallet.chains.signer import Purpose, SigningRefused, SigningRequest
from merchant_wallet.chains.transport import Endpoints
from merchant_wallet.chains.tron.chain import TronChain

FEE_CAP = 10**17
GWEI = 10**9
DEPOSIT = derive_account(SEED, 60, PLACE.account).child(0).child(PLACE.index).public().address()


@asynccontextmanager
async def remote_signer(evm: EvmScene, folder: Path) -> AsyncIterator[RemoteSigner]:
    """A signer behind a socket, with the scene's hot wallet and the seed."""
    limits = ChainLimits(evm.token.address, FEE_CAP, CHAIN_ID)
    rules = SigningRules({ERC20: limits}, 100 * USDT, 200 * USDT)
    server = SignerServer(LocalSigner(Keystore(folder, {ERC20: KEY.secret}, SEED), rules), folder / "s")
    await server.open()
    try:
        yield RemoteSigner(folder / "s")
    finally:
        await server.close()


@asynccontextmanager
async def paying(evm: EvmScene, signer: RemoteSigner) -> AsyncIterator[EvmChain]:
    """The product's chain with that signer."""
    wallet = (await signer.wallets())[ERC20]
    assert wallet == WALLET
    chain = EvmChain(evm.rules, Endpoints((evm.node.url,)), wallet=wallet, signer=signer)
    try:
        yield chain
    finally:
        await chain.close()


def test_a_payout_its_replacement_and_a_cancel_transaction_are_signed_and_counted(
    evm: EvmScene, tmp_path: Path
) -> None:
    async def story() -> None:
        async with remote_signer(evm, tmp_path) as signer, paying(evm, signer) as chain:
            cancel = await chain.build_cancel(0, [])
            ordered = payout(nonce=1)
            first = await chain.build(ordered, [])
            second = await chain.build(ordered, [first])
            for signed in (cancel, first, second):
                await chain.broadcast(signed.raw)
            evm.node.mine()
            evm.settle()
            assert await chain.judge(ordered, [first, second]) == FinalRecord(
                ordered.transfer, second.tx_hash
            )
            assert await chain.next_nonce(None, is_first=True) == 2

    asyncio.run(story())


def test_a_second_nonce_for_one_order_is_an_obstacle_not_a_payment(evm: EvmScene, tmp_path: Path) -> None:
    async def story() -> None:
        async with remote_signer(evm, tmp_path) as signer, paying(evm, signer) as chain:
            await chain.build(payout(nonce=0), [])
            for ordered in (payout(nonce=1), payout(101 * USDT, nonce=1, payout_id=2)):
                with pytest.raises(Blocked) as blocked:
                    await chain.build(ordered, [])
                assert blocked.value.obstacle.kind == "limit"

    asyncio.run(story())


def test_a_deposit_address_is_topped_up_and_swept(evm: EvmScene, tmp_path: Path) -> None:
    evm.token.give(DEPOSIT, 70 * USDT)
    evm.settle()
    gas = 100_000
    call = encode_transfer_call(WALLET, 70 * USDT)
    top_up = EvmTransaction(CHAIN_ID, 0, GWEI, 10 * GWEI, 21_000, DEPOSIT, gas * 10 * GWEI)
    sweep = EvmTransaction(CHAIN_ID, 0, GWEI, 10 * GWEI, gas, evm.token.address, 0, call)

    async def story() -> None:
        async with remote_signer(evm, tmp_path) as signer, paying(evm, signer) as chain:
            moves: list[tuple[Purpose, EvmTransaction, Transfer]] = [
                ("top_up", top_up, Transfer(ERC20, "ETH", DEPOSIT, top_up.value)),
                ("sweep", sweep, Transfer(ERC20, "USDT", WALLET, 70 * USDT)),
            ]
            for purpose, transaction, transfer in moves:
                unsigned = encode_unsigned(transaction)
                request = SigningRequest(ERC20, purpose, unsigned, 0, transfer, PLACE)
                held = await chain.balance(WALLET)
                await chain.broadcast(join(unsigned, await signer.sign(request)))
                evm.node.mine()
                evm.settle()
            assert await chain.balance(DEPOSIT) == 0
            assert await chain.balance(WALLET) == held + 70 * USDT

    asyncio.run(story())


@pytest.fixture
def tron() -> Iterator[TronScene]:
    """Two honest TRON nodes."""
    with open_tron() as scene:
        yield scene


def test_a_tron_payout_is_signed_again_after_the_first_has_expired(tron: TronScene, tmp_path: Path) -> None:
    clock = Clock()
    rules = SigningRules({TRC20: ChainLimits(tron.rules.token, FEE_CAP)}, 100 * USDT, 200 * USDT)
    signer = LocalSigner(Keystore(tmp_path, {TRC20: key_of("hot wallet").secret}), rules, clock)

    async def story() -> None:
        wallet = (await signer.wallets())[TRC20]
        assert wallet == tron.wallet
        chain = TronChain(tron.rules, tron.chain.nodes, wallet=wallet, signer=signer)
        ordered = payout_of()
        clock.at_ms = (await chain.head()).time_ms
        first = await chain.build(ordered, [])
        tron.network.mine()
        # The first signature was not stored, as after a crash. The signer still remembers it.
        with pytest.raises((Blocked, SigningRefused), match="has not expired yet"):
            await chain.build(ordered, [])
        tron.let_expire()
        assert isinstance(await chain.judge(ordered, [first]), Expired)
        clock.at_ms = (await chain.head()).time_ms
        second = await chain.build(ordered, [first])
        await chain.broadcast(second.raw)
        tron.network.mine()
        tron.network.settle()
        assert await chain.judge(ordered, [first, second]) == FinalRecord(ordered.transfer, second.tx_hash)

    tron.play(story())
