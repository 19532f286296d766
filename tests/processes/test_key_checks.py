"""A keystore of another service: nothing of it is taken, and nothing is paid with it."""

from pathlib import Path

from tests.processes.test_payout_workers import PASSPHRASE, QUICK_COST, opened
from tests.waits import eventually
from tests.withdrawals.conftest import InShop, Shop
from tests.withdrawals.conftest import in_shop as in_shop

from merchant_wallet.audit.records import Author
from merchant_wallet.base.addresses import format_address
from merchant_wallet.base.chains import ERC20, TRC20
from merchant_wallet.base.config import load_settings
from merchant_wallet.chains.keys.keystore import SEED, Keystore, store_key
from merchant_wallet.chains.keys.local_signer import LocalSigner
from merchant_wallet.hot_wallet.store import NO_SEED, open_wallet
from merchant_wallet.merchants import own_addresses, xpub_pool
from merchant_wallet.processes.key_checks import (
    NOT_YET,
    OTHER_SEED,
    find_barred,
    find_key_faults,
    find_sweep_faults,
)
from merchant_wallet.processes.signers import find_keys_folder, make_rules
from merchant_wallet.withdrawals.payouts import list_blocked

OURS, THEIRS = bytes(range(64)), bytes(range(1, 65))
KEY, OTHER_KEY = b"\x01" * 32, b"\x02" * 32
NODE = {"WALLET_SANDBOX": "false", "WALLET_ERC20_RPC": "http://127.0.0.1:1"}


def wallet_of(secret: bytes) -> bytes:
    return Keystore(Path(), {ERC20: secret}).wallets()[ERC20]


async def derive(shop: Shop, seed: bytes) -> None:
    """What `keys derive` does."""
    await xpub_pool.add(shop.connection, Keystore(Path(), {}, seed).derive_accounts(0, 2))


ROWS = [
    (KEY, KEY, OURS, None, None),
    # The same seed: another hot wallet takes over, and sweeps wait for that.
    (KEY, OTHER_KEY, OURS, None, NOT_YET),
    (KEY, KEY, THEIRS, OTHER_SEED, OTHER_SEED),
    (KEY, OTHER_KEY, THEIRS, OTHER_SEED, OTHER_SEED),
    (None, KEY, THEIRS, OTHER_SEED, OTHER_SEED),
    (KEY, KEY, None, None, None),
    (None, KEY, OURS, None, None),
    (None, KEY, None, NO_SEED, NO_SEED),
    (KEY, OTHER_KEY, None, NO_SEED, NO_SEED),
]
"""The known hot wallet's key, key and seed of the keystore, and what is wrong to pay and to sweep with it."""


def test_keys_fit_the_database_or_a_sentence_says_why_not(in_shop: InShop, tmp_path: Path) -> None:
    async def scenario(shop: Shop) -> None:
        rules = make_rules(load_settings(NODE))
        stranger = LocalSigner(Keystore(tmp_path, {ERC20: KEY}, THEIRS), rules)
        # Before there are accounts, there is nothing to compare.
        assert await find_key_faults(shop.connection, stranger) == []
        await derive(shop, OURS)
        for known, key, seed, paying, sweeping in ROWS:
            signer = LocalSigner(Keystore(tmp_path, {ERC20: key}, seed), rules)
            await shop.rows("delete from hot_wallet")
            if known is not None:
                await open_wallet(shop.connection, ERC20, wallet_of(known), 1)
            faults = await find_key_faults(shop.connection, signer)
            checks = (
                (faults or await find_barred(shop.connection, signer, [ERC20]), paying),
                (await find_sweep_faults(shop.connection, signer, [ERC20]), sweeping),
            )
            # A wallet of another chain that waits for its takeover is in no sweep's way.
            assert NOT_YET not in " ".join(await find_sweep_faults(shop.connection, signer, [TRC20]))
            for found, said in checks:
                assert len(found) == (said is not None), (known, key, seed)
                assert all(one.endswith(said or "") for one in found)
                if said in (NO_SEED, NOT_YET):
                    secrets = (key,) if known is None else (known, key)
                    assert all(format_address(ERC20, wallet_of(secret)) in found[0] for secret in secrets)

        # A restored database has given up account 0. The seed is still compared.
        await shop.rows("delete from hot_wallet")
        await xpub_pool.drop_lowest(shop.connection, 1)
        assert await find_key_faults(shop.connection, stranger) == [OTHER_SEED]
        ours = LocalSigner(Keystore(tmp_path, {ERC20: KEY}, OURS), rules)
        assert await find_key_faults(shop.connection, ours) == []

    in_shop(scenario)


def test_a_key_without_a_seed_that_is_not_known_stops_its_chain_alone_until_a_person_takes_it(
    in_shop: InShop,
) -> None:
    async def scenario(shop: Shop) -> None:
        chains = shop.chains()
        await open_wallet(shop.connection, TRC20, chains[TRC20].wallet, 1)
        waiting, paid = await shop.order(), await shop.order(address="TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC")
        payer = shop.payer(chains=chains, may_take_wallets=False)
        assert await shop.pay(payer, paid) == 2
        [blocked] = await list_blocked(shop.connection)
        here = format_address(ERC20, chains[ERC20].wallet)
        assert (blocked.chain, blocked.kind) == (ERC20, "key")
        assert blocked.cause == (
            f"The hot wallet of ERC20 is not known, and the key here is that of {here}. {NO_SEED}"
        )
        assert [one.chain for one in await own_addresses.list_hot(shop.connection)] == [TRC20]
        ann = Author("cli:ann", "terminal", 1, {"reason": "from the safe"})
        await open_wallet(shop.connection, ERC20, chains[ERC20].wallet, 1, author=ann)
        shop.clock.advance(60_000)
        assert await shop.pay(payer, waiting) == 2
        taken = "select actor, after ->> 'reason' from audit_entry where action = 'wallet.take'"
        assert await shop.rows(f"{taken} order by audit_no desc limit 1") == [("cli:ann", "from the safe")]

    in_shop(scenario)


def test_a_short_start_with_another_keystore_takes_nothing(in_shop: InShop, tmp_path: Path) -> None:
    async def start(shop: Shop, name: str, key: bytes, seed: bytes | None) -> list[str]:
        """Start the workers with a keystore until they pay, or say what is wrong."""
        environment = NODE | {
            "WALLET_DATA": str(tmp_path / name),
            "WALLET_MASTER_KEY": "11" * 32,
            "WALLET_KEYSTORE_PASSPHRASE": PASSPHRASE,
        }
        folder = find_keys_folder(load_settings(environment))
        for what, secret in ((ERC20, key), (SEED, seed)):
            if secret is not None:
                store_key(folder, what, secret, PASSPHRASE, cost=QUICK_COST)
        async with opened(shop.url, environment) as workers:

            async def is_decided() -> bool:
                return bool(workers.wrong) or workers.checked.is_set()

            await eventually(is_decided)
            return [] if workers.checked.is_set() else workers.wrong

    async def scenario(shop: Shop) -> None:
        await derive(shop, OURS)
        # Payouts on other chains could begin with it, so nothing is wrong. But its wallet is not taken.
        assert await start(shop, "seedless", OTHER_KEY, None) == []
        assert await own_addresses.list_hot(shop.connection) == []
        assert await start(shop, "ours", KEY, OURS) == []
        assert await start(shop, "theirs", OTHER_KEY, THEIRS) == [OTHER_SEED]
        known = await own_addresses.list_hot(shop.connection)
        assert known == [(ERC20, wallet_of(KEY), True)]
        assert await own_addresses.find(shop.connection, wallet_of(OTHER_KEY)) is None
        # Our own new key takes over, the old wallet stays ours, and the audit log says so.
        assert await start(shop, "renewed", OTHER_KEY, OURS) == []
        known = await own_addresses.list_hot(shop.connection)
        assert known == [(ERC20, wallet_of(OTHER_KEY), True), (ERC20, wallet_of(KEY), False)]
        taken = "select after ->> 'address' from audit_entry where action = 'wallet.take' order by audit_no"
        names = [format_address(ERC20, wallet_of(key)) for key in (KEY, OTHER_KEY)]
        assert [address for (address,) in await shop.rows(taken)] == names

    in_shop(scenario)
