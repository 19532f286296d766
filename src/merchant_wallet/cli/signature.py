"""`sign`: what the service would sign for a request, for whoever writes a client."""

import difflib
import sys
from typing import Annotated, Final, Literal

import typer

from merchant_wallet.cli.failures import UNREACHABLE, Failure
from merchant_wallet.cli.options import JsonOption
from merchant_wallet.cli.terminal import note, print_document

app = typer.Typer()

SECRET_VARIABLE: Final = "MERCHANT_APP_SECRET"
PREFIX: Final = "/merchant/"


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
    method: Annotated[Literal["HMAC", "MD5"], typer.Option(help="The merchant's method.")] = "HMAC",
    as_json: JsonOption = False,
) -> None:
    """Print the string to sign and the signature of a request, whose JSON body is read from standard input.

    \b
    Example:
      MERCHANT_APP_SECRET=... merchant-wallet sign --path /merchant/getMerchantBalance < body.json
    """
    _check_path(path)
    if not secret:
        raise Failure(f"No secret: set {SECRET_VARIABLE} (or give --secret).", UNREACHABLE)
    if sys.stdin.isatty():
        note("Reading the JSON body; end it with Ctrl-D.")
    body = typer.get_binary_stream("stdin").read()
    from merchant_wallet import signing, wire

    fields = wire.signable(wire.parse_body("application/json", body))
    is_md5 = method == signing.MD5
    signed = signing.md5_string_to_sign(fields) if is_md5 else signing.string_to_sign(path, fields)
    signature = signing.sign(method, secret, path, fields)
    if as_json:
        print_document({"method": method, "path": path, "stringToSign": signed, "sign": signature})
        return
    typer.echo(f"{signed}\n")
    typer.echo(f"sign: {signature}")
    if is_md5:
        note("MD5 signs that text with &key= and the secret behind it.")


def _check_path(path: str) -> None:
    """Refuse a path that no operation has: its signature would never be right. Raises Failure."""
    from merchant_wallet.merchants.records import OPERATIONS

    paths = [PREFIX + operation for operation in OPERATIONS]
    if path not in paths:
        near = difflib.get_close_matches(path, paths, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(paths)}."
        raise Failure(f"--path: no operation has the path {path!r}; {hint}", UNREACHABLE)
