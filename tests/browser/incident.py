"""A live service for the walk through an incident: `up` on development chains, behind a node that can lie.

Rules: everything is the real program. The service is started, and commands are forked. The lie is the node's:
asked for a token balance, it says that nothing is there.
"""

import asyncio
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from demo.deployment import Deployment, find_installed_program
from demo.devnet import Devnet
from playwright.sync_api import Page, expect
from tests.chains.node_proxy import NodeProxy
from tests.forked_commands import ForkedCommand

from merchant_wallet.base.clock import now_ms
from merchant_wallet.operators import totp
from merchant_wallet_client import MerchantWallet

SHOP: Final = "Harbour Tea"
FLOAT: Final = "1000000"
OWED: Final = "1500000"
"""More than one of the two hot wallets holds."""
OWN_PASSWORD: Final = "a long and quiet evening"
NOTHING: Final = "0x" + "0" * 64
SETTINGS: Final = {"WALLET_OPERATOR_WAIT_S": "0", "WALLET_RECONCILE_INTERVAL_S": "2"}


class ForkingDeployment(Deployment):
    """A deployment whose commands don't have to be started."""

    def run(self, *arguments: str) -> str:
        with ForkedCommand(*arguments, environment=self._environment()) as command:
            status, output, errors = command.finish()
        assert status == 0, f"{arguments} ended with status {status}: {output}{errors}"
        return output.rstrip()


@dataclass
class Incident:
    """The service, the chains, ERC20's node as the service sees it, its hot wallet, and the merchant."""

    deployment: Deployment
    devnet: Devnet
    node: NodeProxy
    hot: str
    url: str
    client: MerchantWallet

    def lie(self) -> None:
        """From now on the node answers every question about a contract with nothing."""
        self.node.always("eth_call", NOTHING)

    def order(self, mc_order_id: str, amount: str) -> int:
        """The merchant orders a withdrawal on ERC20. Returns its id."""
        made = self.client.create_merchant_withdraw_order(
            amount=amount,
            chain_type="ERC20",
            currency="USDT",
            mc_order_id=mc_order_id,
            address="0x52908400098527886E0F7030069857D2E4169EE7",
            notify_url="https://harbour-tea.example/paid",
        )
        return int(made.order_id)

    def add_operator(self, name: str) -> "Person":
        """A new operator with the password that the command prints."""
        told = self.run("operator", "create", name, "--role", "operator", "--reason", "on call this week")
        return Person(name, told["password"])

    def run(self, *words: str) -> Any:
        """A command's JSON."""
        return json.loads(self.deployment.run(*words, "--json"))


@dataclass
class Person:
    """An operator who signs in by typing."""

    name: str
    password: str

    def sign_in(self, page: Page, url: str) -> None:
        """The first sign-in: the password, and a second factor that is set up."""
        page.goto(f"{url}/console")
        page.get_by_label("Name").fill(self.name)
        page.get_by_label("Password", exact=True).fill(self.password)
        page.get_by_role("button", name="Continue").click()
        page.get_by_text("Can't scan it?").click()
        secret = page.locator("[data-secret]").inner_text()
        code = totp.make_code(secret, now_ms() // totp.STEP_MS)
        page.get_by_label("The six digits it shows now").fill(code)
        page.get_by_role("button", name="Confirm").click()
        page.get_by_role("link", name="I have kept them").click()
        page.get_by_label("The password you were given").fill(self.password)
        page.get_by_label("New password", exact=True).fill(OWN_PASSWORD)
        page.get_by_label("New password once more").fill(OWN_PASSWORD)
        page.get_by_role("button", name="Change the password").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Overview")


@contextmanager
def open_incident(settings: Mapping[str, str] = MappingProxyType({})) -> Iterator[Incident]:
    """The service with a merchant and funded wallets. All is well at first. `settings` are added."""
    deployment = ForkingDeployment(find_installed_program())
    devnet = Devnet(deployment.data / "devnet.log")
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="node")
    thread.start()
    try:
        devnet.start()
        node = NodeProxy(devnet.settings["WALLET_ERC20_RPC"])
        asyncio.run_coroutine_threadsafe(node.__aenter__(), loop).result()
        try:
            incident = _prepare(deployment, devnet, node, settings)
            with incident.client:
                yield incident
        finally:
            deployment.stop()
            asyncio.run_coroutine_threadsafe(node.__aexit__(None, None, None), loop).result()
    finally:
        devnet.stop()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def _prepare(
    deployment: Deployment, devnet: Devnet, node: NodeProxy, settings: Mapping[str, str]
) -> Incident:
    passphrase = deployment.data / "passphrase"
    passphrase.touch(0o600)
    passphrase.write_text("the passphrase of a walk")
    files = {"WALLET_KEYSTORE_PASSPHRASE_FILE": str(passphrase)}
    deployment.set({**devnet.settings, "WALLET_ERC20_RPC": node.url, **SETTINGS, **files, **settings})
    wallets = json.loads(deployment.run("keys", "create", "--json"))
    filled = {chain: devnet.fund(str(wallets[chain])) for chain in ("ERC20", "TRC20")}
    url = deployment.start(0, lambda _: None)
    deployment.run("keys", "derive", "--count", "2")
    for chain, tx_hash in filled.items():
        deployment.run("reconcile", "record", "IN", chain, FLOAT, "--tx", tx_hash, "--reason", "the float")
    made = json.loads(deployment.run("merchant", "create", SHOP, "--json"))
    deployment.run("book", "credit", SHOP, "USDT", OWED, "--reason", "brought over from the old system")
    client = MerchantWallet(url, made["appKey"], made["appSecret"])
    return Incident(deployment, devnet, node, str(wallets["ERC20"]), url, client)
