"""`merchant keys` and others: the keys of a merchant, what each may use, rolling and revoking.

Rules:
- A secret is printed once, by the command that creates it.
- A change and its record in the audit log are one transaction. It holds from the next request on.
- What allows a key more than before needs two people, as in the console.
"""

import re
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from merchant_wallet.base.units import DAY_MS, HOUR_MS, MINUTE_MS
from merchant_wallet.cli import terminal
from merchant_wallet.cli.failures import CANNOT_RUN, REFUSED, Failure
from merchant_wallet.cli.merchant_access import KEPT_ONCE, open_keyring, roll_secret
from merchant_wallet.cli.options import DataOption, JsonOption, MerchantArgument, ProposalReasonOption
from merchant_wallet.cli.second_person import (
    describe_lone_change,
    describe_reason,
    print_changed,
    print_proposed,
    propose,
)
from merchant_wallet.cli.session import Session, run

if TYPE_CHECKING:
    from merchant_wallet.approvals.changes import ProposedChange
    from merchant_wallet.merchants.app_keys import AppKey, NewSecret
    from merchant_wallet.merchants.key_limits import KeyLimits

app = typer.Typer()

LIST_COLUMNS: Final = terminal.Table(
    "keyNo",
    "name",
    "appKey",
    "operations",
    "networks",
    "usedMs",
    "revokedMs",
    spare=("networks", "operations"),
)
_UNITS_MS: Final = {"m": MINUTE_MS, "h": HOUR_MS, "d": DAY_MS}
KeyArgument = Annotated[int, typer.Argument(metavar="KEY", min=1, help="Number of the key, as in `keys`.")]
NameOption = Annotated[
    str | None, typer.Option("--name", metavar="NAME", help="Where it is used.", show_default=False)
]
OperationsOption = Annotated[
    str | None,
    typer.Option(metavar="LIST", help="Operations that it may use, with commas, or any.", show_default=False),
]
NetworksOption = Annotated[
    str | None,
    typer.Option(metavar="LIST", help="Source networks, with commas, or any.", show_default=False),
]


@app.command("keys")
def list_keys(merchant: MerchantArgument, data: DataOption = None, as_json: JsonOption = False) -> None:
    """List the keys of a merchant with what each may use.

    \b
    Example:
      merchant-wallet merchant keys Shop
    """

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.base.clock import now_ms
        from merchant_wallet.merchants import app_keys

        merchant_id = (await session.find(merchant)).merchant_id
        keys = await app_keys.list_keys(session.conn, merchant_id, now_ms())
        return {"merchantId": merchant_id, "keys": [_for_reader(describe(key), as_json) for key in keys]}

    terminal.print_list(run(data, act), "keys", LIST_COLUMNS, as_json)


@app.command("add-key")
def add_key(
    merchant: MerchantArgument,
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="Where it is used.")],
    operations: OperationsOption = None,
    networks: NetworksOption = None,
    reason: ProposalReasonOption = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add a key and print its secret once.

    Outside the sandbox the key is only proposed: give a --reason. Who accepts it sees the secret.

    \b
    Examples:
      merchant-wallet merchant add-key Shop --name till --operations getMerchantBalance,queryOrder
      merchant-wallet merchant add-key Shop --name payroll --networks 192.0.2.0/24
    """

    async def act(session: Session) -> "NewSecret | ProposedChange":
        from merchant_wallet.merchants.key_limits import (
            KeyLimits,
            parse_name,
            parse_networks,
            parse_operations,
        )

        limits = KeyLimits(parse_operations(operations or ""), parse_networks(networks or ""))
        return await _add(session, merchant, parse_name(name), limits, reason)

    _print_made(run(data, act), as_json)


@app.command("set-key")
def set_key(
    merchant: MerchantArgument,
    key: KeyArgument,
    name: NameOption = None,
    operations: OperationsOption = None,
    networks: NetworksOption = None,
    reason: ProposalReasonOption = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Give a key another name, other operations or other networks.

    \b
    Examples:
      merchant-wallet merchant set-key Shop 1 --networks 192.0.2.0/24
      merchant-wallet merchant set-key Shop 2 --operations any --reason "the till pays out now"
    """
    texts = {"operations": operations, "networks": networks}
    typed = {limit: text for limit, text in texts.items() if text is not None}
    if name is None and not typed:
        raise Failure("Nothing to change: name at least one of --name, --operations, --networks.", CANNOT_RUN)

    async def act(session: Session) -> "tuple[AppKey, ProposedChange | None]":
        return await _change(session, merchant, key, name, typed, reason)

    changed, proposed = run(data, act)
    print_changed(_for_reader(describe(changed), as_json) if proposed is None else proposed, as_json)


@app.command("roll-key")
def roll_key(
    merchant: MerchantArgument,
    key: KeyArgument,
    overlap: Annotated[
        str,
        typer.Option(metavar="TIME", help="How long the old secret works on, such as 24h; 0 ends it now."),
    ] = "24h",
    reason: ProposalReasonOption = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Create a new secret for a key and print it once. The old one works for the chosen time.

    Outside the sandbox it is only proposed: give a --reason. Who accepts it sees the secret.

    \b
    Examples:
      merchant-wallet merchant roll-key Shop 2
      merchant-wallet merchant roll-key Shop 1 --overlap 0
    """
    overlap_ms = _read_overlap(overlap)

    async def act(session: Session) -> "NewSecret | ProposedChange":
        merchant_id = (await session.find(merchant)).merchant_id
        return await roll_secret(session, merchant_id, key, overlap_ms, reason)

    _print_made(run(data, act), as_json)


@app.command("revoke-key")
def revoke_key(
    merchant: MerchantArgument, key: KeyArgument, data: DataOption = None, as_json: JsonOption = False
) -> None:
    """Revoke a key for ever. Its requests are refused from the next one on.

    A repeated command changes nothing, and says since when the key is revoked.

    \b
    Example:
      merchant-wallet merchant revoke-key Shop 2
    """

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.merchants import key_acts

        merchant_id = (await session.find(merchant)).merchant_id
        before, after = await key_acts.revoke_key(session.conn, session.author(), merchant_id, key)
        await session.carry(merchant_id)
        return {
            "merchantId": merchant_id,
            "keyNo": key,
            "appKey": after.app_key,
            "revoked": True,
            "revokedMs": after.revoked_ms,
            "repeated": before.revoked_ms is not None,
        }

    document = run(data, act)
    if not as_json:
        # People read the moment under the same name.
        del document["revoked"]
    terminal.print_answer(document, as_json)
    terminal.note_repeated(document, f"Key {key} was revoked")


def describe(key: "AppKey") -> dict[str, Any]:
    """A key as a document. An empty list of operations or networks means: all."""
    return {
        "keyNo": key.key_no,
        "appKey": key.app_key,
        "name": key.name,
        "operations": key.operations,
        "networks": key.networks,
        "liveSecrets": key.live_secrets,
        "overlapEndsMs": key.overlap_ends_ms,
        "usedMs": key.used_ms,
        "createdMs": key.created_ms,
        "createdBy": key.created_by,
        "revokedMs": key.revoked_ms,
    }


def _for_reader(document: dict[str, Any], as_json: bool) -> dict[str, Any]:
    """A key's document; for people an empty list of limits is "any"."""
    return (
        document if as_json else {name: "any" if value == [] else value for name, value in document.items()}
    )


async def _add(
    session: Session, merchant: str, name: str, limits: "KeyLimits", reason: str | None
) -> "NewSecret | ProposedChange":
    from merchant_wallet.merchants import acts, key_acts, key_changes

    merchant_id = (await session.find(merchant)).merchant_id
    keyring = await open_keyring(session, merchant_id)
    settings, needs_two = session.settings, session.settings.needs_two_people
    async with session.conn.transaction():
        if needs_two:
            await key_changes.check_addition(session.conn, merchant_id, limits, session.author().at_ms)
        facts, subject = key_changes.describe_new(name, limits), acts.format_subject(merchant_id)
        proposed = await propose(session, key_acts.ADD, subject, facts, reason, merchant_id=merchant_id)
        if proposed is not None:
            return proposed
        made = await key_acts.add_key(
            session.conn,
            keyring,
            session.author(describe_lone_change(session, reason)),
            merchant_id,
            name,
            limits,
            sandbox=settings.sandbox,
            needs_two=needs_two,
            secret_wait_ms=settings.secret_wait_ms,
        )
    await session.carry(merchant_id)
    return made


async def _change(
    session: Session, merchant: str, key_no: int, name: str | None, typed: dict[str, str], reason: str | None
) -> "tuple[AppKey, ProposedChange | None]":
    from merchant_wallet.merchants import app_keys, key_acts, key_changes
    from merchant_wallet.merchants.key_limits import parse_name

    merchant_id, author = (await session.find(merchant)).merchant_id, session.author(describe_reason(reason))
    async with session.conn.transaction():
        before = await app_keys.lock_key(session.conn, merchant_id, key_no, author.at_ms)
        limits = key_changes.with_limits(before.limits, typed)
        narrower, wider = key_changes.split_change(before.limits, limits)
        proposed = None
        if wider and session.settings.needs_two_people:
            facts = key_changes.describe(before.limits, wider), key_changes.describe(limits, wider)
            subject = key_acts.format_subject(merchant_id, key_no)
            proposed = await propose(session, key_acts.SET, subject, facts, reason, merchant_id=merchant_id)
        if wider and proposed is None:
            author = session.author(describe_lone_change(session, reason))
        limits = limits if proposed is None else narrower
        shown = before.name if name is None else parse_name(name)
        after = await key_acts.change_key(session.conn, author, merchant_id, key_no, shown, limits)
    await session.carry(merchant_id)
    return after, proposed


def _read_overlap(text: str) -> int:
    found = re.fullmatch(r"([0-9]{1,5})([mhd]?)", text)
    if found is None or (not found[2] and found[1] != "0"):
        raise Failure(f"--overlap must be such as 30m, 24h or 7d, or 0: {text!r} is not.", REFUSED)
    return int(found[1]) * _UNITS_MS.get(found[2], 0)


def _print_made(made: "NewSecret | ProposedChange", as_json: bool) -> None:
    from merchant_wallet.merchants.app_keys import NewSecret

    if isinstance(made, NewSecret):
        _print_secret(made, as_json)
    else:
        print_proposed(made, as_json)


def _print_secret(made: "NewSecret", as_json: bool) -> None:
    document = {**describe(made.key), "appSecret": made.secret}
    terminal.print_answer(_for_reader(document, as_json), as_json)
    terminal.note(KEPT_ONCE)
