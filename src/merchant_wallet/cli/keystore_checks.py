"""`doctor`: whether the signer's keys are this database's, and which hot wallets there are and were."""

from typing import TYPE_CHECKING, Any, Final

from merchant_wallet.base.counted import count_of
from merchant_wallet.cli.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merchant_wallet.base.settings import Settings
    from merchant_wallet.merchants.own_addresses import HotWallet

MIN_FREE_ACCOUNTS: Final = 20
ADVICE: Final = "start the workers and the signer with the keystore of this database"


async def check_keys(conn: Any, settings: "Settings") -> Finding:
    """The finding about the signer's keys and the accounts for new merchants."""
    from merchant_wallet.base.addresses import format_address
    from merchant_wallet.base.config import ConfigError
    from merchant_wallet.chains.signer import SignerAway
    from merchant_wallet.merchants import own_addresses, xpub_pool
    from merchant_wallet.processes.key_checks import find_barred, find_key_faults
    from merchant_wallet.processes.signers import open_signer

    if settings.sandbox:
        return Finding("keys", "the sandbox needs none")
    try:
        signer = open_signer(settings)
        wallets, faults = await signer.wallets(), await find_key_faults(conn, signer)
        barred = await find_barred(conn, signer, settings.open_chains)
    except (ConfigError, SignerAway) as error:
        return Finding("keys", str(error), "start the signer, or correct its settings")
    if faults:
        return Finding("keys", f"nothing is paid: {' '.join(faults)}", ADVICE)
    if barred:
        return Finding("keys", f"these chains pay nothing: {' '.join(barred)}", ADVICE)
    if strangers := await xpub_pool.find_merchants_without_account(conn):
        text = f"merchants were created in the sandbox and have sandbox addresses: {strangers}"
        return Finding("keys", text, "use a new database for real money, and create them again there")
    free = (await xpub_pool.read_size(conn)).free
    paying = ", ".join(format_address(chain, address) for chain, address in wallets.items())
    left = count_of(free, "account is", "accounts are")
    text = f"the hot wallets are {paying}; {left} free for future merchants"
    advice = None if free >= MIN_FREE_ACCOUNTS else "run `merchant-wallet keys derive`"
    return Finding("keys", text + _describe_former(await own_addresses.list_hot(conn), wallets), advice)


def _describe_former(known: "Sequence[HotWallet]", wallets: "Mapping[str, bytes]") -> str:
    """The hot wallets of before, which stay ours, and those that a worker with these keys will replace."""
    from merchant_wallet.base.addresses import format_address

    parts = []
    for text, is_current in (("; paying until workers with these keys start: ", True), ("; before: ", False)):
        named = [
            f"{one.chain} {format_address(one.chain, one.address)}"
            for one in known
            if one.is_current == is_current and wallets.get(one.chain, one.address) != one.address
        ]
        parts += [text + ", ".join(named)] if named else []
    return "".join(parts)
