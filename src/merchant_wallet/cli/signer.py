"""`signer`: the process that holds the keys, so that no worker has to."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from merchant_wallet.cli.failures import REFUSED, Failure
from merchant_wallet.cli.keys import ask_passphrase
from merchant_wallet.cli.options import DataOption
from merchant_wallet.cli.session import read_settings

if TYPE_CHECKING:
    from merchant_wallet.chains.signer import SeededSigner

app = typer.Typer()


@app.command()
def signer(
    socket: Annotated[
        Path,
        typer.Option(
            "--socket",
            metavar="PATH",
            help="Where to listen; the same user's workers may ask, root's worker side, and --client.",
        ),
    ],
    client: Annotated[
        str | None,
        typer.Option(
            "--client",
            metavar="USER",
            help="The workers' user, if it is another one: a name or a number, in this process's group.",
        ),
    ] = None,
    data: DataOption = None,
) -> None:
    """Hold the keys and sign for workers that have WALLET_SIGNER_SOCKET set, until Ctrl-C or SIGTERM.

    It needs no database and no network. It has its own settings for limits, token contracts and fee caps. It
    prints `ready: PATH` when it listens.

    \b
    Examples:
      merchant-wallet signer --socket /run/wallet/signer.sock --data /srv/wallet
      merchant-wallet signer --socket /run/wallet/signer.sock --client wallet-worker
    """
    settings = read_settings(data)
    import asyncio

    from merchant_wallet.observability import logs
    from merchant_wallet.processes.side_users import choose_users, find_account
    from merchant_wallet.processes.signers import open_local_signer

    logs.set_up(settings.log_level, settings.log_format)
    users = choose_users(settings) if client is None else None
    worker = users.worker.account if users else None
    account = worker if client is None else find_account(client)
    client_uid = account.uid if account else None
    asyncio.run(_serve(open_local_signer(settings, ask_passphrase(settings)), socket, client_uid))


async def _serve(holder: "SeededSigner", path: Path, client_uid: int | None) -> None:
    from merchant_wallet.chains.keys.signer_socket import SignerServer, SocketTaken
    from merchant_wallet.processes.stop_signals import make_stop_event
    from merchant_wallet.processes.systemd import notify_ready

    stop = make_stop_event()
    server = SignerServer(holder, path, client_uid)
    try:
        await server.open()
    except SocketTaken as error:
        raise Failure(str(error), REFUSED) from error
    typer.echo(f"ready: {path}")
    notify_ready()
    await stop.wait()
    await server.close()
