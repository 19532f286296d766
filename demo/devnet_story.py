"""The story on chains with real blocks: keys, deposits, withdrawals, and their transactions on the nodes.

Rules:
- The service's answers about the chains are compared with the answers of their nodes.
- Amounts are few and round, so that a reader can add them up.
- Money comes only from transactions on the development chains.
"""

import json
import secrets
from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from demo.account import Account
from demo.calls import MerchantCalls, read_amount
from demo.chain_node import read_digits, read_transfer
from demo.deployment import Deployment, Failure, format_command
from demo.devnet import Devnet
from demo.story import ALICE, SHOP, run_and_show
from demo.transcript import Transcript
from merchant_wallet_client import Answer, MerchantWallet

CHAINS: Final = ("ERC20", "TRC20")
FLOAT: Final = "1000000"
ACCOUNTS: Final = "25"
NOTIFY_URL: Final = "https://lantern-tea.example/paid"
SHOPS_DEPOSITS: Final = {"ERC20": "600", "TRC20": "400"}
ALICES_DEPOSITS: Final = {"ERC20": "20", "TRC20": "10"}
ALICES_KFB: Final = Decimal(213)
"""30 USDT at a rate of 7.1."""
WITHDRAWALS: Final = {
    "ERC20": ("250", "0x52908400098527886E0F7030069857D2E4169EE7"),
    "TRC20": ("150", "TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC"),
}
"""The amounts and chains. No fees are set, so everything arrives."""


def make_keys(transcript: Transcript, deployment: Deployment, devnet: Devnet) -> dict[str, str]:
    """Create the keys and fund their wallets. Returns each wallet's funding transaction."""
    transcript.chapter("Two chains, and keys to pay on them")
    transcript.say(
        "For ERC20 this is an Ethereum development node with a token that behaves like USDT. "
        "For TRC20 it is a simulated TRON node. It checks bytes, ids, signatures and expiry as a real node "
        "does, and runs the contract, but it has no other nodes to agree with. These settings tell the "
        "service about both:"
    )
    transcript.lines(f"{name}={value}" for name, value in devnet.settings.items())
    passphrase = deployment.data / "passphrase"
    passphrase.touch(0o600)
    passphrase.write_text(secrets.token_urlsafe(24))
    named = {"WALLET_KEYSTORE_PASSPHRASE_FILE": str(passphrase)}
    transcript.lines(f"{name}={value}" for name, value in named.items())
    deployment.set({**devnet.settings, **named})
    transcript.blank_line()
    transcript.say(
        "Two hot wallets pay. A seed gives the addresses for deposits. All three keys are encrypted with the "
        "passphrase, which the web side never has."
    )
    wallets = _read_object(run_and_show(transcript, deployment, "keys", "create", "--json"))
    transcript.blank_line()
    transcript.say("The operator's own USDT, and coins for the fees, are sent to both wallets:")
    funding = {chain: devnet.fund(str(wallets[chain])) for chain in CHAINS}
    transcript.lines(f"{FLOAT} USDT to {wallets[chain]}, by {tx_hash}" for chain, tx_hash in funding.items())
    return funding


def open_account(transcript: Transcript, deployment: Deployment, funding: Mapping[str, str]) -> Account:
    """The operator's part while the service runs: accounts, treasury, the shop. Raises Failure."""

    def run(*arguments: str) -> str:
        return run_and_show(transcript, deployment, *arguments)

    transcript.chapter("The operator opens an account")
    transcript.say(
        "Each merchant gets one account of the seed, from a pool that is derived in advance. The operator "
        "records the money that was sent to the hot wallets, because no merchant's book has it."
    )
    run("keys", "derive", "--count", ACCOUNTS)
    for chain, tx_hash in funding.items():
        run("reconcile", "record", "IN", chain, FLOAT, "--tx", tx_hash, "--reason", "the float")
    created = run("merchant", "create", SHOP, "--json")
    run("rates", "set", "USDT:KFB", "7.10", "--reason", "the first rate")
    return Account.read(created)


class DevnetStory(MerchantCalls):
    """The shop's part: USDT comes in on both chains, and goes out on both."""

    def __init__(
        self, transcript: Transcript, client: MerchantWallet, deployment: Deployment, devnet: Devnet
    ) -> None:
        super().__init__(transcript, client)
        self._deployment = deployment
        self._devnet = devnet

    def run(self) -> None:
        """From the first deposit to the last withdrawal. Raises Failure."""
        self._deposit()
        self._deposit_to_alice()
        for chain in CHAINS:
            self._withdraw(chain)

    def _deposit(self) -> None:
        self.open("getMerchantBalance", "USDT for the shop", "A merchant has its own address on each chain.")
        shown = _read_object(
            run_and_show(self.transcript, self._deployment, "merchant", "show", SHOP, "--json")
        )
        addresses = {"ERC20": str(shown["depositAddress"]), "TRC20": str(shown["depositTronAddress"])}
        self._send(addresses, SHOPS_DEPOSITS)
        total = sum(map(Decimal, SHOPS_DEPOSITS.values()))
        request, answer = self.wait_until(
            "the credit of the deposits",
            lambda answer: read_amount(answer, "usdtBalance") == total,
            "getMerchantBalance",
        )
        self.transcript.request(request, self.client.base_url)
        self.transcript.answer(answer)
        self.transcript.passed(f"{total} USDT, credited once the blocks were final")
        run_and_show(self.transcript, self._deployment, "deposits", "list", "--merchant", SHOP, "--json")

    def _deposit_to_alice(self) -> None:
        alice = self.call("getMerchantCustomer", "KFB for Alice", "She has addresses too.", extUserId=ALICE)
        addresses = {"ERC20": str(alice.data["address"]), "TRC20": str(alice.data["tronAddress"])}
        self._send(addresses, ALICES_DEPOSITS)
        _, answer = self.wait_until(
            "the credit of Alice's deposits",
            lambda answer: read_amount(answer, "balance") == ALICES_KFB,
            "getMerchantCustomer",
            extUserId=ALICE,
        )
        self.transcript.answer(answer)
        self.transcript.passed(f"{ALICES_KFB} KFB: 30 USDT at 7.1, the rate when they were credited")

    def _send(self, addresses: Mapping[str, str], amounts: Mapping[str, str]) -> None:
        """Pay USDT from outside, by real transactions."""
        for chain, amount in amounts.items():
            tx_hash = self._devnet.send(addresses[chain], amount)
            self.transcript.note(f"{amount} USDT to {addresses[chain]}")
            self.transcript.lines([f"  by {tx_hash}"])

    def _withdraw(self, chain: str) -> None:
        amount, address = WITHDRAWALS[chain]
        mc_order_id = f"to-{chain.lower()}"
        created = self.call(
            "createMerchantWithdrawOrder",
            f"The shop withdraws on {chain}",
            "The hot wallet pays. (Nothing listens at this notifyUrl; `make demo` shows callbacks.)",
            amount=amount,
            chainType=chain,
            currency="USDT",
            mcOrderId=mc_order_id,
            address=address,
            notifyUrl=NOTIFY_URL,
        )
        self.open("queryOrder", "Is it in a block?", "Status 2 comes when its block is final.")
        self.follow_order(created, mc_order_id)
        self._check_on_chain(chain, created, Decimal(amount), address)

    def _check_on_chain(self, chain: str, created: Answer, amount: Decimal, address: str) -> None:
        """Compare the order's transaction with the chain's node. Raises Failure."""
        show = ("withdrawals", "show", str(created.data["orderId"]), "--json")
        order = _read_object(self._deployment.run(*show))
        self.transcript.blank_line()
        self.transcript.say(
            f"`{format_command(show)}` names the transaction. The node shows its Transfer event:"
        )
        node = self._devnet.settings[f"WALLET_{chain}_RPC"].partition(",")[0]
        transfer = read_transfer(chain, node, str(order["txHash"]))
        self.transcript.lines([f"txHash  {order['txHash']}", f"block   {transfer.block}"])
        self.transcript.document(transfer.said)
        token = read_digits(self._devnet.settings[f"WALLET_{chain}_TOKEN"])
        if (transfer.token, transfer.recipient, transfer.amount) != (token, read_digits(address), amount):
            raise Failure(f"the transfer on {chain} is not the one that was ordered: {transfer}")
        self.transcript.passed(f"{amount} USDT arrived at {address}")


def reconcile(transcript: Transcript, deployment: Deployment) -> None:
    """Reconcile the books with both chains. Raises Failure, also if anything is unexplained."""
    transcript.chapter("The operator reconciles the books with the chains")
    transcript.say(
        "The books say what should be in custody, the chains say what is there. They agree exactly."
    )
    run_and_show(transcript, deployment, "reconcile")
    transcript.passed("nothing is unexplained on any chain")


def _read_object(said: str) -> dict[str, object]:
    try:
        found: dict[str, object] = json.loads(said)
    except ValueError as error:
        raise Failure(f"this should have been JSON: {said}") from error
    return found
