"""`up`, `serve`, `work` and `migrate`: run the service and migrate its database."""

import dataclasses
from pathlib import Path
from typing import Annotated, Literal

import typer

from merchant_wallet.base.connection_limits import MAX_WORKERS, OWN_CONNECTIONS, WORK_CONNECTIONS
from merchant_wallet.base.settings import Settings
from merchant_wallet.cli.failures import REFUSED
from merchant_wallet.cli.options import DataOption, JsonOption
from merchant_wallet.cli.session import find_actor, find_database, read_running, read_settings
from merchant_wallet.cli.terminal import note, print_answer

app = typer.Typer()

ProcessesOption = Annotated[
    int | None,
    typer.Option(
        min=1, max=32, help="How many web processes answer on the port. Default: WALLET_PROCESSES, else 1."
    ),
]


@app.command()
def up(
    data: DataOption = None,
    host: Annotated[
        str | None, typer.Option(help="Address to listen on. Default: WALLET_HOST, else 127.0.0.1.")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Port; 0 takes a free one. Default: WALLET_PORT, else 8080."),
    ] = None,
    sandbox: Annotated[
        bool | None,
        typer.Option("--sandbox/--no-sandbox", help="Pay on a chain of its own that moves no real money."),
    ] = None,
    processes: ProcessesOption = None,
    database_only: Annotated[
        bool,
        typer.Option(
            "--database-only", help="Start nothing but the database, to verify a folder that was restored."
        ),
    ] = False,
) -> None:
    """Run everything: database, web side and workers, until Ctrl-C or SIGTERM.

    Without WALLET_DATABASE_URL it starts its own PostgreSQL in the data folder. The very first start creates
    the first operator, and prints its name, its password and the console's address once. It prints `ready:
    http://HOST:PORT` when requests are answered, and then the mode: sandbox or live.

    \b
    Examples:
      merchant-wallet up
      merchant-wallet up --data /srv/wallet --host 0.0.0.0 --port 8080 --processes 2
      merchant-wallet up --data /srv/restored --database-only
      WALLET_DATABASE_URL=postgresql://db/w?sslmode=verify-full merchant-wallet up --no-sandbox
    """
    settings = read_settings(data, host=host, port=port, sandbox=sandbox, processes=processes)
    from merchant_wallet.processes.own_postgres import run_database
    from merchant_wallet.processes.up import run_up

    if database_only:
        raise typer.Exit(run_database(settings, typer.echo, note))
    raise typer.Exit(run_up(settings, typer.echo, note))


@app.command()
def serve(data: DataOption = None, processes: ProcessesOption = None) -> None:
    """Run the web side alone, on an existing database.

    Host, port and everything else come from the WALLET_* settings. With several processes, SIGHUP replaces
    them one after the other, and no request fails. So a new version takes over.

    \b
    Examples:
      WALLET_DATABASE_URL=postgresql://db/w?sslmode=verify-full WALLET_SANDBOX=false merchant-wallet serve
      merchant-wallet serve --processes 4
    """
    settings = _find_running(data, "web")
    if processes is not None:
        settings = dataclasses.replace(settings, processes=processes)
    from merchant_wallet.processes.web import run_serve

    raise typer.Exit(run_serve(settings, lambda address: _say_ready(address, settings)))


@app.command(
    help=f"""Run the workers alone: payouts, expiry, maintenance, checkpoints. Any number may run.

    Each opens up to {WORK_CONNECTIONS} database connections under load, and closes what it does not use.
    The PostgreSQL that `up` brings along takes {OWN_CONNECTIONS}: enough for {MAX_WORKERS} `work`,
    the one of `up` among them. It works for every cell. With --cell it works for one alone, beside the cell's
    server for example; another `work` without --cell must run for everything else.

    \b
    Examples:
      WALLET_DATABASE_URL=postgresql://db/w?sslmode=verify-full WALLET_SANDBOX=false merchant-wallet work
      merchant-wallet work --cell east
    """
)
def work(
    cell: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Work for this apart cell alone, beside a `work` without --cell."),
    ] = None,
    data: DataOption = None,
) -> None:
    """Run the workers alone.

    \b
    Example:
      WALLET_DATABASE_URL=postgresql://db/w?sslmode=verify-full WALLET_SANDBOX=false merchant-wallet work
    """
    settings = _find_running(data, "worker")
    from merchant_wallet.processes.worker import run_work

    raise typer.Exit(run_work(settings, lambda: _say_ready("working", settings), only=cell))


@app.command()
def migrate(
    web_role: Annotated[
        str | None, typer.Option(metavar="ROLE", help="The database role that `serve` connects as.")
    ] = None,
    worker_role: Annotated[
        str | None, typer.Option(metavar="ROLE", help="The database role that `work` connects as.")
    ] = None,
    expand_only: Annotated[
        bool,
        typer.Option(
            "--expand-only", help="Leave contractions for later, so that the program before can come back."
        ),
    ] = False,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Migrate the database, and then each cell, to the schema of this version. `up` does this by itself.

    The service may go on meanwhile. First the schema is expanded: this version and the one before work on
    it. What only older versions need is removed when none of them runs any more; the command says so, and
    the same command does it later.

    Exit status 1 if a cell is away; the others are migrated, and the same command does the rest later.
    Run it as the owner of the tables. With roles, it also grants each role exactly what its side needs. Later
    runs grant the same roles what new tables need.

    \b
    Examples:
      WALLET_DATABASE_URL=postgresql://db/w?sslmode=verify-full WALLET_SANDBOX=false merchant-wallet migrate
      merchant-wallet migrate --web-role wallet_web --worker-role wallet_worker
    """
    settings = _find_running(data)
    from merchant_wallet.postgres.grants import Side, grant
    from merchant_wallet.postgres.migrate import list_pending
    from merchant_wallet.processes.instances import find_contract_limit
    from merchant_wallet.processes.migrations import migrate_cells, migrate_home

    url = settings.database_url or ""
    named = {Side.WEB: web_role, Side.WORKER: worker_role}
    limit = find_contract_limit(url)
    contract_to = 0 if expand_only else limit.version
    applied = migrate_home(url, find_actor(), note, contract_to=contract_to)
    granted = grant(url, {side: role for side, role in named.items() if role is not None})
    cells = migrate_cells(url, dict(settings.cell_urls), granted, find_actor(), note, contract_to=contract_to)
    document = {"applied": applied, "roles": {side.value: role for side, role in granted.items()}}
    if left := list_pending(url):
        document["left"] = left
        cause = "--expand-only" if expand_only else f"older programs run: {', '.join(limit.holders)}"
        note(f"Left for later, {cause}. Run `merchant-wallet migrate` again when all are replaced.")
    if cells.applied or cells.left_out:
        document["cells"] = {**cells.applied, **dict.fromkeys(cells.left_out)}
    print_answer(document, as_json)
    for name, cause in cells.left_out.items():
        note(f"Cell {name} was not migrated: {cause}. Run the same command again when it answers.")
    if cells.left_out:
        raise typer.Exit(REFUSED)


def _say_ready(what: str, settings: Settings) -> None:
    typer.echo(f"ready: {what}")
    typer.echo(settings.mode_line)


def _find_running(data: Path | None, side: Literal["owner", "web", "worker"] = "owner") -> Settings:
    settings = read_running(data)
    return dataclasses.replace(settings, database_url=find_database(settings, side))
