"""What a request costs in one version of the program, and what in another: `python -m bench.versions BEFORE`.

Both versions run at the same time, each from its own clone with its own `.venv`. They are driven in turns, in
pairs of short windows of the same number of requests. Compared is the processor time of the web process
for a request. A busy machine changes that much less than requests a second, which `--rate` compares.

Rules:
- Each version makes its own merchants, because schemas differ.
- Which window of a pair comes first is random with a fixed seed.
- The interval is that of `pairs`.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Final, NamedTuple

import typer

from bench.pairs import Pair, draw_turns, judge_pairs
from bench.rows import LoadGenerator, Plan, Row
from bench.service import RunningService, open_service
from bench.signed_requests import RequestWriter, find_memory
from bench.wrk import find_wrk

HERE: Final = Path(__file__).parents[1]
SIGNERS: Final = 2
WINDOW_S: Final = 30
"""A window ends when its requests are used up, at the latest after this time."""
WARM_UP: Final = 5_000
PREPARE: Final = """
import asyncio, sys
from pathlib import Path
from bench.merchants import prepare_merchants, write_merchants
from merchant_wallet.base.config import load_or_create_master_key
from merchant_wallet.merchants.keys import Keyring
url, data, target, population = sys.argv[1:]
keyring = Keyring(load_or_create_master_key(Path(data)))
made = asyncio.run(prepare_merchants(url, keyring, [population], lambda *_: None))
write_merchants(made, Path(target))
"""


class Side(NamedTuple):
    """One version under load."""

    name: str
    service: RunningService
    load_generator: LoadGenerator

    def measure(self, plan: Plan, requests: int, *, is_rate: bool) -> float:
        """Requests a second of one window, or the web process's processor time for one, in microseconds."""
        row = self.load_generator.measure(self.service, plan, requests)
        if row.failures:
            raise SystemExit(f"{self.name}: not every answer was a success: {row.refusals} {row.errors}")
        return row.rate if is_rate else row.cost.web_cpu / 100 / row.rate * 1e6


@contextmanager
def _open_side(name: str, clone: Path, folder: Path, settings: dict[str, str], plan: Plan) -> Iterator[Side]:
    folder.mkdir()
    merchants, python = folder / "merchants.json", clone / ".venv/bin/python"
    with ExitStack() as stack:
        program = clone / ".venv/bin/merchant-wallet"
        opened = open_service(program, folder / "data", folder / "service.log", settings)
        service = stack.enter_context(opened)
        words = [str(service.database_url), str(folder / "data"), str(merchants), plan.population]
        subprocess.run([python, "-c", PREPARE, *words], cwd=clone, check=True)
        slices = Path(stack.enter_context(TemporaryDirectory(dir=find_memory())))
        request_writer = RequestWriter(merchants, slices, SIGNERS)
        stack.callback(request_writer.close)
        side = Side(name, service, LoadGenerator(find_wrk(print), request_writer, _say_nothing))
        side.load_generator.warm_up(service, plan.population, plan.operation, WARM_UP)
        yield side


def _say_nothing(row: Row) -> None:
    """Rows are not shown: the pairs are."""


def main(
    before: Annotated[Path, typer.Argument(help="The clone of the version to compare with.")],
    pairs: Annotated[int, typer.Option(help="Pairs of windows.")] = 30,
    requests: Annotated[int, typer.Option(help="Requests in each window.")] = 10_000,
    operation: Annotated[str, typer.Option(help="The operation.")] = "transferFromUserToMerchant",
    population: Annotated[str, typer.Option(help="`hot` or `thousand`.")] = "hot",
    connections: Annotated[int, typer.Option(help="Connections.")] = 256,
    setting: Annotated[list[str] | None, typer.Option(help="NAME=VALUE for this version.")] = None,
    rate: Annotated[
        bool, typer.Option("--rate", help="Compare requests a second; others must not run.")
    ] = False,
) -> None:
    """Compare this version with another."""
    chosen = dict(each.split("=", 1) for each in setting or [])
    what, unit = ("requests a second", "a second") if rate else ("a request's processor time", "us")
    plan = Plan("versions", population, operation, connections, WINDOW_S)
    with TemporaryDirectory(prefix="merchant-wallet-bench-") as name, ExitStack() as stack:
        folder = Path(name)
        sides = {
            False: stack.enter_context(_open_side("before", before.resolve(), folder / "before", {}, plan)),
            True: stack.enter_context(_open_side("after", HERE, folder / "after", chosen, plan)),
        }
        measured = []
        for turns, _ in zip(draw_turns(), range(pairs), strict=False):
            found = {turn: sides[turn].measure(plan, requests, is_rate=rate) for turn in turns}
            measured.append(Pair(found[False], found[True]))
            print(f"{found[False]:.1f} {unit} before, {found[True]:.1f} after", file=sys.stderr)
    share = judge_pairs(measured)
    print(f"{what} after, as a share of that before: {share.describe()}")


if __name__ == "__main__":
    typer.run(main)
