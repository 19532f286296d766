"""The development chains as `make devnet` runs them. They leave nothing behind."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from devnet.evm_node import EvmDevnet, NodeError
from devnet.programs import ANVIL
from tests.waits import wait_until

from merchant_wallet.base.addresses import parse_wallet_address, to_eip55
from merchant_wallet.base.chains import CHAINS, ERC20, TRC20
from merchant_wallet.base.config import load_settings
from merchant_wallet.chains.protocol import ChainReader, TokenTransfer
from merchant_wallet.processes.nodes import check_chains, open_chain_readers

ROOT = Path(__file__).parents[2]
STRANGER = bytes(range(20, 40))
CUSTOMERS = ("0x00000000000000000000000000000000000000aa", "TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC")


@contextmanager
def devnet(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """`python -m devnet`, stopped at the end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "devnet", "--block-time", "0.05", *arguments],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def order(process: subprocess.Popen[str], text: str) -> str:
    """Write a line to its standard input. Returns the line that it prints."""
    assert process.stdin is not None
    process.stdin.write(text + "\n")
    process.stdin.flush()
    return line_of(process)


def children_of(pid: int) -> list[int]:
    """The living child processes of a process."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = stat.read_text().rpartition(") ")
        except OSError:
            continue
        if int(rest.split()[1]) == pid and rest[0] != "Z":
            found.append(int(name.split()[0]))
    return found


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] == "Z"
    except OSError:
        return True


def wait_until_gone(pids: list[int]) -> None:
    wait_until(lambda: all(map(is_gone, pids)), f"all of {pids} are gone")


def test_the_settings_it_prints_are_those_of_two_chains_that_fit_together() -> None:
    async def story() -> None:
        with devnet("--json", "--fund", CUSTOMERS[0]) as process:
            told = json.loads(line_of(process))
            readers = open_chain_readers(load_settings(told["settings"]))
            assert await check_chains(readers) == []
            for chain, address in told["wallets"].items():
                assert parse_wallet_address(address)[0] is CHAINS[chain].family
                raw = parse_wallet_address(address)[1]
                assert await readers[chain].balance(raw) == 10**12
                assert await readers[chain].coin_balance(raw) > 0
                assert await readers[chain].balance(raw, await readers[chain].final()) == 10**12
            assert await readers[ERC20].balance(parse_wallet_address(CUSTOMERS[0])[1]) == 10**12
            for reader in readers.values():
                await reader.close()

    asyncio.run(story())


def test_it_pays_the_given_recipient_in_real_blocks() -> None:
    async def story() -> None:
        with devnet("--json") as process:
            readers = open_chain_readers(load_settings(json.loads(line_of(process))["settings"]))
            hashes = [order(process, f"send {customer} 12.5") for customer in CUSTOMERS]
            for tx_hash, chain, customer in zip(hashes, (ERC20, TRC20), CUSTOMERS, strict=True):
                recipient = parse_wallet_address(customer)[1]
                seen = [a for a in await all_transfers(readers[chain]) if a.recipient == recipient]
                while not seen:
                    await asyncio.sleep(0.05)
                    seen = [a for a in await all_transfers(readers[chain]) if a.recipient == recipient]
                assert [(a.tx_hash, a.amount_units) for a in seen] == [(tx_hash, 12_500_000)]
            assert process.stdin is not None
            process.stdin.write("send nowhere 1\n")
            process.stdin.flush()
            assert order(process, f"send {CUSTOMERS[0]} 1").startswith("0x")
            for reader in readers.values():
                await reader.close()

    asyncio.run(story())


async def all_transfers(reader: ChainReader) -> list[TokenTransfer]:
    return await reader.transfers(1, (await reader.head()).number)


def test_plain_settings_are_one_a_line() -> None:
    with devnet() as process:
        lines = dict(line_of(process).split("=", 1) for _ in range(6))
        settings = load_settings(lines)
        assert not settings.sandbox
        assert len(settings.chains[TRC20].rpc) == 2


def test_a_third_chain_runs_when_it_is_asked_for() -> None:
    with devnet("--also", "BEP20") as process:
        lines = dict(line_of(process).split("=", 1) for _ in range(10))
        settings = load_settings(lines)
        assert settings.open_chains == ("ERC20", "TRC20", "BEP20")
        ids = [settings.chains[code].chain_id for code in ("ERC20", "BEP20")]
        assert len(set(ids)) == 2
        assert settings.chains["BEP20"].finality == 3
        tx_hash = order(process, f"send {CUSTOMERS[0]} 5 BEP20")
        assert (tx_hash[:2], len(tx_hash)) == ("0x", 66)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_it_leaves_no_process_behind(number: signal.Signals) -> None:
    with devnet("--json") as process:
        line_of(process)
        nodes = children_of(process.pid)
        assert len(nodes) == 2
        process.send_signal(number)
        status = process.wait()
        assert status == (-signal.SIGKILL if number == signal.SIGKILL else 0)
        wait_until_gone(nodes)


def test_a_node_that_can_not_start_says_why() -> None:
    with pytest.raises(NodeError, match="did not start"), EvmDevnet(options=("--no-such-option",)):
        pass


def test_a_node_takes_a_port_that_is_asked_for_and_no_taken_one() -> None:
    with EvmDevnet() as node:
        port = int(node.url.rpartition(":")[2])
        with pytest.raises(NodeError, match="did not start"), EvmDevnet(port=port):
            pass
        assert node.height() == 0


def test_a_node_that_was_reset_is_as_a_new_one() -> None:
    long_ago = str(int(time.time()) - 1_000)
    with EvmDevnet() as new, EvmDevnet(options=("--timestamp", long_ago)) as node:
        token = node.deploy()
        token.give(STRANGER, 7)
        node.fund(STRANGER)
        node.set_base_fee(12_345)
        node.send_as(STRANGER, None, b"")
        node.reset()
        assert node.height() == 0
        for each in (new, node):
            each.mine()
        block, other = (each.ask("eth_getBlockByNumber", "latest", False) for each in (node, new))
        assert (block["transactions"], block["baseFeePerGas"]) == ([], other["baseFeePerGas"])
        assert abs(int(block["timestamp"], 16) - time.time()) < 100
        assert node.ask("eth_getCode", to_eip55(token.address), "latest") == "0x"
        assert int(node.ask("eth_getBalance", to_eip55(STRANGER), "latest"), 16) == 0


def test_the_program_is_the_pinned_package_and_no_script() -> None:
    lock = json.loads((ROOT / "devnet" / "package-lock.json").read_text())
    package = lock["packages"]["node_modules/@foundry-rs/anvil-linux-amd64"]
    assert package["version"] == "1.7.1"
    assert package["integrity"].startswith("sha512-")
    assert ANVIL.read_bytes()[:4] == b"\x7fELF"
    assert os.access(ANVIL, os.X_OK)
