"""What workers do when people ask for it: reconcile, read blocks again, decide about deposits and sub-users,
sweep, look at foreign money.

Rules:
- Each act opens what it needs, and closes it at its end. So a node that is away hurts nothing else.
- Each may be begun again after its worker died: nothing is credited, moved or recorded twice.
- A result has what the page shows, at most `MAX_ROWS` rows of a list.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial

import psycopg
from psycopg import AsyncConnection

from merchant_wallet.approvals import changes
from merchant_wallet.approvals.acts import kinds
from merchant_wallet.approvals.acts.asked import PROPOSAL_NO, AskedAct
from merchant_wallet.approvals.acts.causes import (
    CELL_AWAY,
    DECIDED,
    NO_BLOCK,
    NOT_ALLOWED,
    NOT_READ_SO_FAR,
    NOT_READ_YET,
    SCREENED,
    SUB_USER_CHANGED,
)
from merchant_wallet.approvals.acts.worker import ActFailed, Outcome, Performer, Running
from merchant_wallet.approvals.standing import may_still_ask
from merchant_wallet.base.cells import CellClosed
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.workers import Connect, WorkerConnection
from merchant_wallet.chains.evm.chain import EvmChain
from merchant_wallet.chains.protocol import ChainAway, ChainDisagrees
from merchant_wallet.chains.sandbox.reader import SandboxReader
from merchant_wallet.chains.transport import NodeFailed, NodeRefused
from merchant_wallet.chains.tron.chain import TronReader
from merchant_wallet.custody.rescues import store as rescues
from merchant_wallet.custody.rescues.sightings import NotAsked, Sightings
from merchant_wallet.custody.rescues.store import KeyOwner
from merchant_wallet.custody.rescues.two_person_changes import RescueRefusal
from merchant_wallet.deposits import acts as deposit_acts
from merchant_wallet.deposits import deposit_store, rescan
from merchant_wallet.deposits.acts import describe_decision
from merchant_wallet.deposits.final_ranges import BlocksMissing, FinalityBroken
from merchant_wallet.deposits.rescan import NotReadYet
from merchant_wallet.deposits.two_person_changes import read_seen
from merchant_wallet.operators.roles import list_roles
from merchant_wallet.processes.base import Base
from merchant_wallet.processes.custody_readers import CustodyReaders
from merchant_wallet.processes.nodes import open_chain_readers
from merchant_wallet.processes.reconciliation import Reconciler
from merchant_wallet.processes.sweep_acts import SweepActs
from merchant_wallet.screening import store as screening
from merchant_wallet.sub_users import two_person_changes as sub_user_changes
from merchant_wallet.sub_users.controls import SubUserUnknown
from merchant_wallet.web.act_rights import ACT_RIGHTS

Reader = EvmChain | TronReader | SandboxReader
OpenReaders = Callable[[Base, WorkerConnection], Mapping[str, Reader]]
"""Opens the chains that deposits are read from."""


def make_performers(base: Base, connect: Connect, open_readers: OpenReaders) -> Mapping[str, Performer]:
    """Every kind of act that the workers of home carry out."""
    sweeps = SweepActs(base, connect)
    performs: Mapping[str, Callable[[Running], Awaitable[Outcome | None]]] = {
        kinds.RECONCILE: partial(_reconcile, base, connect),
        kinds.RESCAN: partial(_rescan, base, connect, open_readers),
        kinds.RELEASE_DEPOSIT: partial(_decide_deposit, base, is_released=True),
        kinds.DROP_DEPOSIT: partial(_decide_deposit, base, is_released=False),
        kinds.SET_SUB_USER: partial(_loosen_sub_user, base),
        kinds.PLAN_SWEEPS: sweeps.plan,
        kinds.RUN_SWEEPS: sweeps.run,
        kinds.END_SWEEP: sweeps.end,
        kinds.LOOK: partial(_look, base),
    }
    return {
        kind: Performer(perform, roles=list_roles(ACT_RIGHTS[kind])) for kind, perform in performs.items()
    }


async def _reconcile(base: Base, connect: Connect, running: Running) -> Outcome:
    """Compare the books with one chain, or with all."""
    running.report("comparing")
    readers = CustodyReaders(base, connect)
    reconciler = Reconciler(connect, readers.open, cells=base.cells)
    arguments = running.act.arguments
    try:
        document = await reconciler.reconcile(
            arguments["chain"], surveys_all=bool(arguments.get("everyAddress"))
        )
    except LookupError as error:
        raise ActFailed(str(error)) from error
    finally:
        await reconciler.close()
        await readers.close()
    chains = [
        {name: each.get(name) for name in ("chainType", "sound", "unexplained", "cause")}
        for each in document["chains"]
    ]
    result = {"sound": document["sound"], "chains": chains, "custody": document["custody"]}
    return Outcome(result, {"sound": document["sound"], "chains": chains})


async def _rescan(base: Base, connect: Connect, open_readers: OpenReaders, running: Running) -> None:
    """Read a range of blocks again, or have the watchers read again from a block on."""
    arguments = running.act.arguments
    chain, first, last = str(arguments["chain"]), int(arguments["firstBlock"]), arguments.get("lastBlock")
    connection = WorkerConnection(connect)
    readers = open_readers(base, connection)
    try:
        before = await readers[chain].block(first - 1) if chain in readers else None
        if before is None:
            raise ActFailed(NO_BLOCK)
        home = await connection.get()
        if last is None:
            async with home.transaction():
                await running.end(home, await deposit_acts.rewind(home, running.author, chain, before))
            return
        report = partial(running.report, "reading")
        read = await rescan.read_blocks(home, readers[chain], chain, before, int(last), report)
        async with home.transaction():
            await running.end(home, await deposit_acts.correct_blocks(home, running.author, chain, read))
    except NotReadYet:
        raise ActFailed(NOT_READ_YET if last is None else NOT_READ_SO_FAR) from None
    except (BlocksMissing, ChainAway, ChainDisagrees, FinalityBroken, NodeFailed, NodeRefused) as error:
        raise ActFailed(str(error)) from error
    finally:
        for reader in readers.values():
            await reader.close()
        await connection.close()


async def _look(base: Base, running: Running) -> Outcome:
    """Say what a transaction moved, or what an address holds."""
    text = str(running.act.arguments["text"])
    if base.settings.sandbox:
        raise ActFailed(str(RescueRefusal.SANDBOX.value))
    readers = open_chain_readers(base.settings)
    tokens = {code: chain.token for code, chain in base.settings.chains.items()}

    async def find_owner(merchant_id: int, address: bytes) -> KeyOwner | None:
        async with await _connect_to_book(base, merchant_id) as cell:
            return await rescues.find_owner(cell, merchant_id, address)

    try:
        async with await base.cells.connect_home() as home:
            seen = await Sightings(home, readers, tokens, find_owner).look(text)
    except NotAsked as refused:
        raise ActFailed(str(refused)) from None
    finally:
        for reader in readers.values():
            await reader.close()
    return Outcome(seen, {"text": text, "found": seen["found"]})


async def _decide_deposit(base: Base, running: Running, *, is_released: bool) -> Outcome:
    """Credit a held deposit, or never credit it. Asking and outcome are in the audit log already."""
    act, arguments = running.act, running.act.arguments
    place = (arguments["chain"], arguments["txHash"], int(arguments["logIndex"]))
    seen = read_seen(arguments)
    async with _open_decided(base, act) as (home, cell):
        hold = await screening.find_hold(home, *place)
        if hold is not None and (is_released or hold.waits_for_person):
            raise ActFailed(SCREENED)
        decided = await deposit_store.decide(
            cell,
            place[0],
            place[1:],
            is_released=is_released,
            actor=act.asked_by,
            now_ms=now_ms(),
            seen=seen,
        )
        # A worker that died may have decided already, and could not say so.
        if decided is None and not await deposit_store.was_decided(
            cell,
            place[0],
            place[1:],
            is_released=is_released,
            actor=act.asked_by,
            since_ms=act.begun_ms or act.asked_ms,
        ):
            raise ActFailed(DECIDED)
    before, told = describe_decision(seen, is_released=is_released)
    return Outcome(dict(told), told, before)


async def _loosen_sub_user(base: Base, running: Running) -> Outcome:
    """Change a sub-user's pause or limits as two people decided."""
    act = running.act
    assert act.merchant_id is not None, "a sub-user has a merchant"
    async with _open_decided(base, act) as (_, cell):
        try:
            done = await sub_user_changes.carry_out(cell, act.merchant_id, act.arguments)
        except SubUserUnknown as unknown:
            raise ActFailed(str(unknown)) from None
    if not done:
        raise ActFailed(SUB_USER_CHANGED)
    before, after = act.arguments["before"], act.arguments["after"]
    return Outcome(after, after, before)


@asynccontextmanager
async def _open_decided(base: Base, act: AskedAct) -> AsyncIterator[tuple[AsyncConnection, AsyncConnection]]:
    """Home and the cell of the act's book. Those who decided are held until the cell has committed.

    Raises ActFailed if one of them may not any more, or if the cell is away.
    """
    assert act.merchant_id is not None, "what two people decided is about a merchant"
    async with (
        await base.cells.connect_home() as home,
        home.transaction(),
        await _connect_to_book(base, act.merchant_id) as cell,
    ):
        await _require_deciders(home, act)
        yield home, cell


async def _require_deciders(home: AsyncConnection, act: AskedAct) -> None:
    """Check that who asked, and who proposed if another person accepted, still may. Raises ActFailed."""
    deciders = [(act.asked_by, act.asked_ms)]
    proposal_no = act.arguments.get(PROPOSAL_NO)
    proposal = None if proposal_no is None else await changes.show(home, int(proposal_no))
    if proposal is not None:
        deciders.append((proposal.proposed_by, proposal.proposed_ms))
    roles = list_roles(ACT_RIGHTS[act.kind])
    for actor, at_ms in deciders:
        if not await may_still_ask(home, actor, at_ms, roles):
            raise ActFailed(NOT_ALLOWED)


async def _connect_to_book(base: Base, merchant_id: int) -> AsyncConnection:
    """A connection to the cell of a merchant's book. Raises ActFailed if it is away."""
    cell = await base.cells.find(merchant_id)
    try:
        return await base.cells.connect(cell)
    except (CellClosed, psycopg.OperationalError) as error:
        if cell.is_home:
            raise
        raise ActFailed(CELL_AWAY) from error
