"""`python -m devnet`: the chains with the token, one block per second, until Ctrl-C.

It prints settings of the service, one `WALLET_…=` per line, or everything as JSON with --json. Explanations
go to standard error. Lines on standard input are commands: `send ADDRESS AMOUNT` sends USDT from the issuer,
and `fund ADDRESS` gives a million USDT and coins for fees. Both print the transaction's hash. A chain's code
may follow. Without it the chain is the default one of the address's form.
"""

import argparse
import json
import signal
import sys
import threading
from collections.abc import Sequence

from devnet.chains import EVM_KINDS, HOT_KEY, TRON_NODES, Devnet, run_devnet
from devnet.evm_node import NodeError
from devnet.programs import ProgramMissing, install
from devnet.tron_network import address_of
from merchant_wallet.base.addresses import format_address, parse_wallet_address
from merchant_wallet.base.chains import TABLE
from merchant_wallet.base.money import parse_units

FAILED = 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until SIGINT or SIGTERM. Returns the exit status."""
    asked = _parser().parse_args(arguments)
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    try:
        if asked.install:
            install()
            return 0
        ports = [asked.trc20_port + place if asked.trc20_port else 0 for place in range(TRON_NODES)]
        evm_ports = {code: getattr(asked, f"{code.lower()}_port") for code in EVM_KINDS}
        with run_devnet(ports=evm_ports, tron_ports=ports, funded=asked.fund, also=asked.also) as devnet:
            _print_settings(devnet, as_json=asked.json)
            threading.Thread(target=_run_commands, args=(devnet,), daemon=True).start()
            devnet.serve(asked.block_time, stop)
    except (NodeError, ProgramMissing, OSError) as error:
        _say(str(error))
        return FAILED
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m devnet", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of settings")
    parser.add_argument("--block-time", type=float, default=1.0, metavar="S", help="seconds per block")
    parser.add_argument(
        "--also",
        choices=[chain.code for chain in TABLE if not chain.is_default],
        action="append",
        default=[],
        help="run this chain too; may be repeated",
    )
    for code in EVM_KINDS:
        parser.add_argument(f"--{code.lower()}-port", type=int, default=0, help=f"port of the node of {code}")
    parser.add_argument("--trc20-port", type=int, default=0, help="port of the first TRON node")
    parser.add_argument(
        "--fund",
        type=_read_address,
        action="append",
        default=[],
        metavar="ADDRESS",
        help="give this address money too (0x… or T…); may be repeated",
    )
    parser.add_argument("--install", action="store_true", help="install what it needs and end")
    return parser


def _read_address(text: str) -> tuple[str, bytes]:
    """The chain on which an address is funded, and its 20 bytes. Raises ValueError."""
    family, address = parse_wallet_address(text)
    return family.key_name, address


def _print_settings(devnet: Devnet, *, as_json: bool) -> None:
    wallet = address_of(HOT_KEY)
    wallets = {chain: format_address(chain, wallet) for chain in devnet.codes}
    if as_json:
        told = {"settings": devnet.settings, "wallets": wallets, "walletKey": HOT_KEY.secret.hex()}
        print(json.dumps(told), flush=True)
        return
    for name, value in devnet.settings.items():
        print(f"{name}={value}", flush=True)
    for chain, address in wallets.items():
        _say(f"{chain}: {address} holds a million USDT; its key: {HOT_KEY.secret.hex()}")
    _say("all chains run; Ctrl-C ends them")


def _run_commands(devnet: Devnet) -> None:
    """Execute the commands on standard input until it ends."""
    for line in sys.stdin:
        try:
            _do(devnet, line.split())
        except (ValueError, NodeError) as error:
            _say(f"{line.strip()}: {error}")


def _do(devnet: Devnet, words: list[str]) -> None:
    match words:
        case []:
            return
        case ["send", address, amount, *code]:
            chain, recipient = _read_address(address)
            print(devnet.send(_choose(devnet, chain, code), recipient, parse_units(amount)), flush=True)
        case ["fund", address, *code]:
            chain, recipient = _read_address(address)
            print(devnet.fund(_choose(devnet, chain, code), recipient), flush=True)
        case _:
            raise ValueError("say `send ADDRESS AMOUNT [CHAIN]` or `fund ADDRESS [CHAIN]`")


def _choose(devnet: Devnet, chain: str, code: list[str]) -> str:
    """The named chain, or the address's own. Raises ValueError."""
    named = code[0] if code else chain
    if len(code) > 1 or named not in devnet.codes:
        raise ValueError(f"the chains here are {', '.join(devnet.codes)}")
    return named


def _say(text: str) -> None:
    print(f"devnet: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
