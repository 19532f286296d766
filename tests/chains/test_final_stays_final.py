"""Facts that two nodes called final are never overruled by one node: a liar could get a false credit."""

from typing import Any

import pytest
from devnet.tron_network import address_of
from tests.chains.evm_liars import play
from tests.chains.evm_scene import EvmScene
from tests.chains.node_proxy import Forward, NodeProxy, Raw
from tests.chains.tron_faults import both
from tests.chains.tron_scene import RECIPIENT, WALLET_SUN, WALLET_UNITS, TronScene, key_of

from merchant_wallet.chains.evm.chain import EvmChain
from merchant_wallet.chains.protocol import ChainAway

RECEIPTS = "eth_getBlockReceipts"
BLOCK = "eth_getBlockByNumber"
INVENTED = 999_000_000


def test_a_tron_node_that_takes_its_word_back_invents_no_deposit(tron: TronScene) -> None:
    payer, network = key_of("payer"), tron.network
    network.fund(address_of(payer), units=WALLET_UNITS, sun=WALLET_SUN)
    tx_hash = network.pay(payer, RECIPIENT, 5)
    network.settle()
    held = next(
        block.number for block in network.fake.blocks if tx_hash in {one.txid for one in block.transactions}
    )

    def lie(path: str, question: dict[str, Any], answer: Any) -> Any:
        if path == "/walletsolidity/getblock" and "id_or_num" not in question:
            return network.servers[1].api.answer(path, {**question, "id_or_num": str(held - 1)})
        if path == "/wallet/gettransactioninfobyblocknum" and question["num"] == held:
            log = {**answer[0]["log"][0], "data": hex(INVENTED)[2:].rjust(64, "0")}
            return [{**answer[0], "log": [log]}]
        return answer

    async def story() -> None:
        assert (await tron.chain.final()).number >= held
        both(tron)[0].switches.edit = lie
        assert [one.amount_units for one in await tron.chain.transfers(held, held)] == [5]

    tron.play(story())


def test_an_evm_node_that_takes_its_word_back_invents_no_deposit(evm: EvmScene) -> None:
    evm.token.give(RECIPIENT, 5)
    evm.settle()

    async def story(chain: EvmChain, proxies: list[NodeProxy]) -> None:
        liar, honest = proxies
        number = (await chain.final()).number
        truth = await chain.transfers(0, number)

        async def block(forward: Forward, params: list[Any]) -> Any:
            return await forward(BLOCK, hex(number - 1) if params[0] == "finalized" else params[0], params[1])

        async def receipts(forward: Forward, params: list[Any]) -> Any:
            found = await forward(RECEIPTS, *params)
            data = "0x" + hex(INVENTED)[2:].rjust(64, "0")
            return [{**each, "logs": [{**log, "data": data} for log in each["logs"]]} for each in found]

        liar.behaviours |= {BLOCK: block, RECEIPTS: receipts}
        honest.fail(Raw(b"busy", 503), RECEIPTS)
        with pytest.raises(ChainAway):
            await chain.transfers(0, number)
        liar.mend()
        honest.mend()
        assert await chain.transfers(0, number) == truth

    play(evm, 2, story)
