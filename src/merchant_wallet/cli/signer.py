"""`signer`: the process that holds the keys, so that no worker has to."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from merchant_wallet.cli.failures import REFUSED, Failure
from merchant_wallet.cli.keys import ask_passphrase
from merchant_wallet.cli.options import DataOption
from merchant_wallet.cli.session import read_settings

if TYPE_CHECKING:
    from merchant_wallet.chains.signer import Signer

app = typer.Typer()


@app.command()
def signer(
    socket: Annotated[
        Path,
        typer.Option(
            "--socket",
            metavar="PATH",
            help="Where to listen; the same user's workers may ask, and root's worker side.",
        ),
    ],
    data: DataOption = None,
) -> None:
    """Hold the keys and sign for workers that have WALLET_SIGNER_SOCKET set, until Ctrl-C or SIGTERM.

    It needs no database and no network. It has its own settings for limits, token contracts and fee caps. It
    prints `ready: PATH` when it listens.

    \b
    Example:
      merchant-wallet signer --socket /run/wallet/signer.sock --data /srv/wallet
    """
    settings = read_settings(data)
    import asyncio

    from merchant_wallet.observability import logs
    from merchant_wallet.processes.side_users import choose_users
    from merchant_wallet.processes.signers import open_local_signer

    logs.set_up(settings.log_level, settings.log_format)
    users = choose_users(settings)
    client_uid = None if users is None else users.worker.account.uid
    asyncio.run(_serve(open_local_signer(settings, ask_passphrase(settings)), socket, client_uid))


async def _serve(holder: "Signer", path: Path, client_uid: int | None) -> None:
    from merchant_wallet.chains.keys.signer_socket import SignerServer, SocketTaken
    from merchant_wallet.processes.stop_signals import make_stop_event

    stop = make_stop_event()
    server = SignerServer(holder, path, client_uid)
    try:
        await server.open()
    except SocketTaken as error:
        raise Failure(str(error), REFUSED) from error
    typer.echo(f"ready: {path}")
    await stop.wait()
    await server.close()
