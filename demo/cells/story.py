"""The story: from one cell to three, a cell that moves under load, a server that dies, and the books then.

Rules: what the story claims is checked. The first thing that is not so ends it with a Failure.
"""

import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from demo.account import Account
from demo.calls import MerchantCalls
from demo.cells.load import Load, Seen, Shop
from demo.cells.servers import Server, Servers
from demo.deployment import Deployment, Failure, format_command
from demo.story import run_and_show
from demo.transcript import Transcript

SHOPS: Final = {"main": "Lantern Tea", "east": "Paper Moon", "west": "Harbour Books"}
"""A shop in each cell."""
OPENING_KFB: Final = 1_000_000
OPENING_ENTRIES: Final = 2
"""The funds and the customer."""
ALICE: Final = "alice"
MAX_SWITCH_S: Final = 2.0
RECOVERY_TIMEOUT_S: Final = 60.0


class Lengths(NamedTuple):
    """How long each part is watched, in seconds, and the time between two transfers of a connection."""

    watch_s: float
    outage_s: float
    pace_s: float


USUAL: Final = Lengths(4.0, 5.0, 0.02)
SHORT: Final = Lengths(1.0, 2.0, 0.1)


class CellsStory:
    """Told from `run`."""

    def __init__(
        self, transcript: Transcript, deployment: Deployment, servers: Servers, lengths: Lengths
    ) -> None:
        self._transcript = transcript
        self._deployment = deployment
        self._servers = servers
        self._lengths = lengths
        self._base_url = ""
        self._shops: list[Shop] = []

    def run(self) -> None:
        """From one cell to three, and through a move and an outage."""
        first, second, third = self._start_servers()
        self._start_service(first)
        self._add_cells(second)
        self._open_shops()
        with Load(self._base_url, self._shops, self._lengths.pace_s) as load:
            self._show_load(load)
            self._move(load, third)
            self._kill_third(load, third)
            self._kill_home(load, first)
        self._verify()

    def _start_servers(self) -> list[Server]:
        tell = self._transcript
        tell.chapter("1. Three PostgreSQL servers")
        tell.say(
            "They stand for three machines. Each is an ordinary PostgreSQL with one setting that is not the "
            "default: wal_level = logical, so that cells can move away from it."
        )
        made = []
        for name in ("first", "second", "third"):
            server = self._servers.add(name)
            tell.passed(f"server {name}: {server.address}")
            made.append(server)
        return made

    def _start_service(self, first: Server) -> None:
        tell = self._transcript
        tell.chapter("2. The service, with its home on the first server")
        tell.say("It begins with one cell, `main`: the books are beside the platform's own tables.")
        self._deployment.set(
            {"WALLET_DATABASE_URL": first.url, "WALLET_SANDBOX": "true", "WALLET_RATE_LIMIT": "0"}
        )
        tell.command(f"WALLET_DATABASE_URL={first.address} merchant-wallet up", "")
        self._base_url = self._deployment.start(0, tell.note)
        tell.note(f"serving at {self._base_url}; it keeps running until the end")

    def _add_cells(self, second: Server) -> None:
        tell = self._transcript
        tell.chapter("3. From one cell to three")
        tell.say(
            "A cell is a schema with the books of many merchants. The second is in home's database, and the "
            "third is on the second server. Home keeps its address and never its password."
        )
        self._command("cell", "add", "east")
        self._command("cell", "add", "west", second.address)

    def _open_shops(self) -> None:
        tell = self._transcript
        tell.chapter("4. A shop in each cell")
        tell.say("Shops and their customers don't notice where their books are: the calls are the same.")
        for cell, name in SHOPS.items():
            created = self._deployment.run("merchant", "create", name, "--cell", cell, "--json")
            tell.command(format_command(("merchant", "create", name, "--cell", cell)), "")
            account = Account.read(created)
            reason = ("--reason", "opening funds")
            self._deployment.run("book", "credit", name, "KFB", str(OPENING_KFB), *reason)
            with account.open_client(self._base_url) as client:
                calls = MerchantCalls(tell, client)
                answer = calls.send(client.prepare("getMerchantCustomer", {"extUserId": ALICE}))
            # The load signs with this client, and sends on connections of its own.
            self._shops.append(Shop(name, cell, client, str(answer.data["address"])))
            tell.passed(f"{name} has {OPENING_KFB} KFB and a customer, in the cell {cell}")
        self._command("cell", "list")

    def _show_load(self, load: Load) -> None:
        tell = self._transcript
        tell.chapter("5. A steady load over HTTP", "transferFromMerchantToUser")
        tell.say(
            "Two connections for each shop, each with a transfer every "
            f"{1000 * self._lengths.pace_s:.0f} ms. A transfer that is refused with 50300 is sent again with "
            "the same mcOrderId until it is answered."
        )
        seen = load.watch(self._lengths.watch_s)
        self._tell(seen)
        self._require(not any(one.refusals for one in seen), "no transfer is refused")

    def _move(self, load: Load, third: Server) -> None:
        tell = self._transcript
        tell.chapter("6. The cell west moves to the third server, under this load")
        tell.say(
            "PostgreSQL copies the cell while it is in use. Each book of the copy is verified. Then the cell "
            "is closed for a moment, what is left is brought over, all books are compared, and the service "
            "goes on at the third server."
        )
        load.begin()
        moved = self._command("cell", "move", "west", third.address)
        seen = load.look()
        tell.blank_line()
        self._tell(seen)
        (west,), others = _split(seen, {"west"})
        self._require(
            not any(one.refusals for one in others), "the shops of the other cells were never refused"
        )
        self._require(west.answered > 0, "the shop of west goes on at the new place")
        tell.passed(f"the longest refusal at the switch: {west.longest_s:.2f} s")
        if west.longest_s >= MAX_SWITCH_S:
            tell.note(f"that is longer than {MAX_SWITCH_S:g} s: this machine is busy with something else")
        if "moved" not in moved:
            raise Failure(f"the cell was not moved: {moved}")
        self._command("cell", "move", "west", "--drop-old")

    def _kill_third(self, load: Load, third: Server) -> None:
        tell = self._transcript
        tell.chapter("7. The third server dies", "as at a power failure")
        tell.say("Only the shops whose books are there get 50300. All others go on at full speed.")
        self._kill(load, third, {"west"})

    def _kill_home(self, load: Load, first: Server) -> None:
        tell = self._transcript
        tell.chapter("8. The first server dies, with home")
        tell.say(
            "The cells main and east are there. Transfers in west go on: the service has its merchants in "
            "memory. What needs home waits: sign-in, new merchants and customers, payouts, deposits."
        )
        self._kill(load, first, {"main", "east"})

    def _kill(self, load: Load, server: Server, cells: set[str]) -> None:
        """Kill a server, look, and start it again. `cells` are those that it has."""
        tell, names = self._transcript, " and ".join(sorted(cells))
        before = load.watch(self._lengths.watch_s)
        server.kill()
        tell.command(f"kill -QUIT $(head -1 {server.name}/postgres/postmaster.pid)", "")
        hurt, _ = _split(before, cells)
        for one in hurt:
            load.wait_until_refused(one.shop, RECOVERY_TIMEOUT_S)
        during = load.watch(self._lengths.outage_s)
        self._tell(during, before)
        hurt, others = _split(during, cells)
        refused = all(one.answered == 0 and one.refusals > 0 for one in hurt)
        self._require(refused, f"the shops of {names} are refused with 50300")
        self._require(not any(one.refusals for one in others), "the others are not refused once")
        self._require(all(one.answered for one in others), "the others go on")
        if "main" not in cells:
            self._command("cell", "list")
        tell.blank_line()
        tell.say("The server comes back. Nothing else is to be done.")
        server.start()
        took_s = max(load.wait_until_answered(one.shop, RECOVERY_TIMEOUT_S) for one in hurt)
        tell.passed(f"{took_s:.1f} s after the server answers, {names} are served again")
        after = load.watch(self._lengths.watch_s)
        self._tell(after)
        self._require(not any(one.refusals for one in after), "no transfer is refused any more")

    def _verify(self) -> None:
        tell = self._transcript
        tell.chapter("9. The books")
        tell.say("Every journal is replayed. Each transfer that was answered must be there, once.")
        self._command("book", "verify")
        books = self._read_books()
        tell.blank_line()
        for shop in self._shops:
            book = books[shop.name]
            expected = OPENING_ENTRIES + len(shop.done)
            self._require(bool(book["ok"]), f"{shop.name}: the journal is whole")
            self._require(
                book["entries"] == expected, f"{shop.name}: {len(shop.done)} answered transfers, each once"
            )

    def _read_books(self) -> dict[str, Any]:
        found = json.loads(self._deployment.run("book", "verify", "--json"))["books"]
        listed = json.loads(self._deployment.run("merchant", "list", "--json"))["merchants"]
        names = {merchant["merchantId"]: merchant["name"] for merchant in listed}
        return {names[book["merchantId"]]: book for book in found}

    def _command(self, *arguments: str) -> str:
        return run_and_show(self._transcript, self._deployment, *arguments)

    def _require(self, holds: bool, text: str) -> None:
        if not holds:
            raise Failure(f"this is not so: {text}")
        self._transcript.passed(text)

    def _tell(self, seen: Sequence[Seen], before: Sequence[Seen] | None = None) -> None:
        """A line for each shop."""
        rows = []
        for number, one in enumerate(seen):
            was = f" (before: {before[number].per_s:.0f})" if before is not None else ""
            rows.append(
                f"{one.shop.name:<14} in {one.shop.cell:<5} {one.per_s:6.0f} transfers a second{was},"
                f" {one.refusals} refusals, longest wait {one.longest_s:.2f} s"
            )
        self._transcript.lines(rows)


def _split(seen: Sequence[Seen], cells: set[str]) -> tuple[list[Seen], list[Seen]]:
    """The shops of these cells, and the others."""
    return (
        [one for one in seen if one.shop.cell in cells],
        [one for one in seen if one.shop.cell not in cells],
    )
