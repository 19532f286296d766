"""`sign`: print what the service would sign for a request, to help with writing a client."""

import difflib
import os
import sys
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple

import typer

from merchant_wallet.cli.failures import CANNOT_RUN, Failure
from merchant_wallet.cli.options import DataOption, JsonOption
from merchant_wallet.cli.session import Session, run
from merchant_wallet.cli.terminal import note, print_document

app = typer.Typer()

SECRET_VARIABLE: Final = "MERCHANT_APP_SECRET"
CLIENTS_VARIABLE: Final = "MERCHANT_WALLET_SECRET"
"""What integrators have in their environment. With `--data` the merchant's own secret is meant instead."""
PREFIX: Final = "/merchant/"
Method = Literal["HMAC", "MD5"]


@app.command()
def sign(
    path: Annotated[
        str, typer.Option(metavar="PATH", help="The operation's path, such as /merchant/exchange.")
    ],
    secret: Annotated[
        str | None,
        typer.Option(
            metavar="SECRET",
            envvar=SECRET_VARIABLE,
            show_default=False,
            help="The appSecret. Better by the variable: other users of the machine can see arguments.",
        ),
    ] = None,
    method: Annotated[
        Method | None,
        typer.Option(help="Default: the merchant's; HMAC where the secret is given.", show_default=False),
    ] = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the string to sign and the signature of a request, whose JSON body is read from standard input.

    The secret is MERCHANT_APP_SECRET, or without --data MERCHANT_WALLET_SECRET. Otherwise those of the
    merchant that the body's appKey names are used: its newest, and its method.

    \b
    Examples:
      merchant-wallet sign --path /merchant/getMerchantBalance --data ./wallet-data < body.json
      MERCHANT_APP_SECRET=... merchant-wallet sign --path /merchant/getMerchantBalance < body.json
    """
    _check_path(path)
    if sys.stdin.isatty():
        note("Reading the JSON body; end it with Ctrl-D.")
    body = typer.get_binary_stream("stdin").read()
    from merchant_wallet.api import gate, wire
    from merchant_wallet.base import signing
    from merchant_wallet.base.invisible_text import trim

    fields = wire.read_signed_texts(wire.parse_body("application/json", body))
    gate.refuse_callback({**fields})
    secret = secret or (os.environ.get(CLIENTS_VARIABLE) if data is None else None)
    known = Signer(trim(secret), signing.HMAC) if secret else _find_signer(data, fields.get("appKey"))
    chosen = method or known.method
    is_md5 = chosen == signing.MD5
    if is_md5:
        gate.refuse_hidden_field(fields)
    signed = (
        signing.build_md5_string_to_sign(fields) if is_md5 else signing.build_string_to_sign(path, fields)
    )
    signature = signing.sign(chosen, known.secret, path, fields)
    if as_json:
        print_document({"method": chosen, "path": path, "stringToSign": signed, "sign": signature})
        return
    typer.echo(f"{signed}\n")
    typer.echo(f"sign: {signature}")
    if is_md5:
        note("MD5 signs that text with &key= and the secret behind it.")


class Signer(NamedTuple):
    """A secret, and the method if none was typed."""

    secret: str
    method: Method

    def __repr__(self) -> str:
        return f"Signer({self.method})"


def _find_signer(data: Path | None, app_key: str | None) -> Signer:
    """The newest secret and the method of the merchant with this key. Raises Failure."""
    if not app_key:
        raise Failure(f"No secret: the body has no appKey to find it by; set {CLIENTS_VARIABLE}.")

    async def act(session: Session) -> Signer:
        from merchant_wallet.merchants import store

        keyring = (await session.open_base()).keyring
        merchant = await store.load_by_app_key(session.conn, keyring, app_key)
        if merchant is None:
            raise Failure(
                f"No merchant has the appKey {app_key!r}. To sign with a secret, set {CLIENTS_VARIABLE}."
            )
        return Signer(merchant.secrets[0], merchant.sign_method)

    try:
        return run(data, act)
    except Failure as failure:
        if failure.status != CANNOT_RUN:
            raise
        raise Failure(f"No secret: {SECRET_VARIABLE} is not set. {failure.text}", CANNOT_RUN) from failure


def _check_path(path: str) -> None:
    """Refuse an unknown path: its signature would never be right. Raises Failure."""
    from merchant_wallet.merchants.records import OPERATIONS

    paths = [PREFIX + operation for operation in OPERATIONS]
    if path not in paths:
        near = difflib.get_close_matches(path, paths, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(paths)}."
        raise Failure(f"--path: no operation has the path {path!r}; {hint}", CANNOT_RUN)
