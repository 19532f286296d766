"""The development chains as `make devnet` runs them. They leave nothing behind."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from devnet.evm_node import EvmDevnet, NodeError
from devnet.programs import ANVIL
from tests.waits import eventually, wait_until

from merchant_wallet.base.addresses import parse_wallet_address, to_eip55
from merchant_wallet.base.chains import CHAINS, ERC20, TRC20
from merchant_wallet.base.config import load_settings
from merchant_wallet.chains.protocol import ChainReader
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


def insist_it_ends(process: subprocess.Popen[str], number: signal.Signals, nodes: int) -> None:
    """A signal ends it, and the programs of its chains end with it."""
    found = children_of(process.pid)
    assert len(found) == nodes
    process.send_signal(number)
    assert process.wait() == (-signal.SIGKILL if number == signal.SIGKILL else 0)
    wait_until_gone(found)


def test_it_prints_settings_of_two_chains_that_fit_together_pays_in_real_blocks_and_leaves_nothing() -> None:
    async def story() -> None:
        with devnet("--json", "--fund", CUSTOMERS[0]) as process:
            told = json.loads(line_of(process))
            readers = open_chain_readers(load_settings(told["settings"]))
            assert await check_chains(readers) == []
            await are_funded(readers, told["wallets"])
            await pays(process, readers)
            for reader in readers.values():
                await reader.close()
            insist_it_ends(process, signal.SIGINT, nodes=2)

    asyncio.run(story())


async def are_funded(readers: Mapping[str, ChainReader], wallets: Mapping[str, str]) -> None:
    """The wallets and a customer who was named."""
    for chain, address in wallets.items():
        assert parse_wallet_address(address)[0] is CHAINS[chain].family
        raw = parse_wallet_address(address)[1]
        assert await readers[chain].balance(raw) == 10**12
        assert await readers[chain].coin_balance(raw) > 0
        assert await readers[chain].balance(raw, await readers[chain].final()) == 10**12
    assert await readers[ERC20].balance(parse_wallet_address(CUSTOMERS[0])[1]) == 10**12


async def pays(process: subprocess.Popen[str], readers: Mapping[str, ChainReader]) -> None:
    """It pays the recipient of a line, on the chain of the address. Another line changes nothing."""
    hashes = [order(process, f"send {customer} 12.5") for customer in CUSTOMERS]
    for tx_hash, chain, customer in zip(hashes, (ERC20, TRC20), CUSTOMERS, strict=True):
        recipient = parse_wallet_address(customer)[1]
        # CUSTOMERS[0] was funded, too.
        find = partial(find_transfers, readers[chain], recipient, 12_500_000)
        assert await eventually(find) == [tx_hash]
    assert process.stdin is not None
    process.stdin.write("send nowhere 1\n")
    process.stdin.flush()
    assert order(process, f"send {CUSTOMERS[0]} 1").startswith("0x")


async def find_transfers(reader: ChainReader, recipient: bytes, amount_units: int) -> list[str]:
    """The hashes of the transfers of this amount to a recipient."""
    found = await reader.transfers(1, (await reader.head()).number)
    return [
        each.tx_hash for each in found if (each.recipient, each.amount_units) == (recipient, amount_units)
    ]


def test_plain_settings_are_one_a_line_and_a_third_chain_runs_when_it_is_asked_for() -> None:
    with devnet("--also", "BEP20") as process:
        lines = dict(line_of(process).split("=", 1) for _ in range(10))
        settings = load_settings(lines)
        assert not settings.sandbox
        assert len(settings.chains[TRC20].rpc) == 2
        assert settings.open_chains == ("ERC20", "TRC20", "BEP20")
        ids = [settings.chains[code].chain_id for code in ("ERC20", "BEP20")]
        assert len(set(ids)) == 2
        assert settings.chains["BEP20"].finality == 3
        tx_hash = order(process, f"send {CUSTOMERS[0]} 5 BEP20")
        assert (tx_hash[:2], len(tx_hash)) == ("0x", 66)
        insist_it_ends(process, signal.SIGKILL, nodes=3)


def test_asked_to_stop_it_leaves_no_process_behind() -> None:
    with devnet("--json") as process:
        line_of(process)
        insist_it_ends(process, signal.SIGTERM, nodes=2)


def test_a_node_that_can_not_start_says_why() -> None:
    with pytest.raises(NodeError, match="did not start"), EvmDevnet(options=("--no-such-option",)):
        pass


def test_a_node_takes_a_port_that_is_asked_for_and_no_taken_one() -> None:
    with EvmDevnet() as node:
        port = int(node.url.rpartition(":")[2])
        with pytest.raises(NodeError, match="did not start"), EvmDevnet(port=port):
            pass
        assert node.height() == 0


def test_a_node_leaves_nothing_in_the_home_of_its_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, temporary = tmp_path / "home", tmp_path / "temporary"
    for folder in (home, temporary):
        folder.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    with EvmDevnet() as node:
        # The states of the first blocks are on the disk then.
        node.mine(1_000)
        assert list(temporary.rglob("*.json"))
    assert [*home.iterdir(), *temporary.iterdir()] == []


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
