"""The chains that the settings name."""

import asyncio
from collections.abc import Mapping

import pytest
from tests.rows import each_row

from merchant_wallet.base.chains import ERC20, TRC20
from merchant_wallet.base.config import ConfigError, describe_settings, load_settings
from merchant_wallet.chains.evm.chain import EvmChain
from merchant_wallet.chains.evm.rules import EvmRules
from merchant_wallet.chains.protocol import Chain, ChainReader
from merchant_wallet.chains.signer import SigningRefused, SigningRequest
from merchant_wallet.processes.nodes import check_chains, list_deep_finality, open_chain_readers, open_chains

WALLET = b"\x0a" * 20
BOTH = {"WALLET_ERC20_RPC": "http://127.0.0.1:1/key", "WALLET_TRC20_RPC": "http://127.0.0.1:1/key"}


class Keys:
    """A signer with keys for some chains. It signs nothing."""

    def __init__(self, *chains: str) -> None:
        self._wallets = dict.fromkeys(chains, WALLET)

    async def wallets(self) -> Mapping[str, bytes]:
        return self._wallets

    async def sign(self, request: SigningRequest) -> bytes:
        raise SigningRefused("not here")


def test_only_chains_with_a_node_are_opened() -> None:
    assert open_chain_readers(load_settings({})) == {}
    assert set(open_chain_readers(load_settings(BOTH))) == {ERC20, TRC20}
    one = load_settings({"WALLET_TRC20_RPC": "http://127.0.0.1:1"})
    assert set(asyncio.run(open_chains(one, Keys(ERC20, TRC20)))) == {TRC20}


def test_a_chain_pays_from_the_signers_wallet_and_can_be_read() -> None:
    chains: Mapping[str, Chain] = asyncio.run(open_chains(load_settings(BOTH), Keys(ERC20, TRC20)))
    assert {name: chain.wallet for name, chain in chains.items()} == {ERC20: WALLET, TRC20: WALLET}
    assert {name: chain.has_nonces for name, chain in chains.items()} == {ERC20: True, TRC20: False}
    readers: Mapping[str, ChainReader] = open_chain_readers(load_settings(BOTH))
    assert set(readers) == set(chains)


def test_a_chain_that_the_signer_has_no_key_for_is_refused() -> None:
    with pytest.raises(ConfigError, match="no key for TRC20"):
        asyncio.run(open_chains(load_settings(BOTH), Keys(ERC20)))


def test_a_final_block_without_state_is_said_at_the_start() -> None:
    for finality, is_said in (("128", False), ("129", True), ("finalized", False)):
        said = list_deep_finality(load_settings(BOTH | {"WALLET_ERC20_FINALITY": finality}))
        assert [f"WALLET_ERC20_FINALITY is {finality}" in one for one in said] == [True] * is_said


def test_the_settings_become_the_chains_rules() -> None:
    settings = load_settings(
        {
            "WALLET_ERC20_RPC": "http://a.example/v2/k, https://b.example/",
            "WALLET_ERC20_TOKEN": "0x00000000000000000000000000000000000000aa",
            "WALLET_ERC20_CHAIN_ID": "31337",
            "WALLET_ERC20_FINALITY": "12",
            "WALLET_ERC20_FEE_CAP": "0.5",
            "WALLET_ERC20_STUCK_BLOCKS": "7",
        }
    )
    chain = open_chain_readers(settings)[ERC20]
    assert isinstance(chain, EvmChain)
    assert chain.rules == EvmRules(
        chain_id=31337,
        token=bytes(19) + b"\xaa",
        finality=12,
        fee_cap_wei=5 * 10**17,
        stuck_blocks=7,
    )
    assert settings.chains[ERC20].rpc == ("http://a.example/v2/k", "https://b.example")
    usual = open_chain_readers(load_settings({"WALLET_ERC20_RPC": "http://a"}))[ERC20].rules
    assert usual == EvmRules()
    # Mainnet, at most 0.02 ETH for a payout, gas of a token transfer.
    assert (usual.chain_id, usual.fee_cap_wei, usual.stuck_blocks) == (1, 2 * 10**16, 20)
    assert (usual.min_gas, usual.max_gas, usual.finality) == (100_000, 300_000, "finalized")


def test_an_endpoints_key_is_in_no_text() -> None:
    settings = load_settings({"WALLET_ERC20_RPC": "http://127.0.0.1:1/secret-key"})
    said = asyncio.run(check_chains(open_chain_readers(settings)))
    assert "127.0.0.1:1: eth_chainId: connection refused" in said[0]
    assert "secret-key" not in repr(settings) + repr(said)
    with pytest.raises(ConfigError) as refused:
        load_settings({"WALLET_ERC20_RPC": "ftp://secret-key"})
    assert "secret-key" not in str(refused.value)


@each_row(
    ("name", "value"),
    [
        ("ERC20_RPC", "http://a?key=1"),
        ("ERC20_TOKEN", "TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC"),
        ("TRC20_TOKEN", "0x00000000000000000000000000000000000000aa"),
        ("ERC20_CHAIN_ID", "0"),
        ("ERC20_FINALITY", "latest"),
        ("ERC20_FINALITY", "10001"),
        ("ERC20_FEE_CAP", "0.0000000000000000001"),
        ("ERC20_FEE_CAP", "-1"),
        ("ERC20_FEE_CAP", "1e3"),
        ("TRC20_FEE_CAP", "1."),
        ("ERC20_STUCK_BLOCKS", "0"),
    ],
)
def test_a_setting_that_breaks_its_rule_is_refused(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"WALLET_{name} must be"):
        load_settings({f"WALLET_{name}": value})


def test_what_the_documentation_shows_as_a_default_is_one() -> None:
    shown = {name: default for name, default, _ in describe_settings() if "RC20_" in name}
    given = {name: value for name, value in shown.items() if value != "none"}
    assert shown["WALLET_ERC20_FEE_CAP"] == "0.02"
    assert shown["WALLET_TRC20_FEE_CAP"] == "60"
    assert load_settings(given) == load_settings({})
