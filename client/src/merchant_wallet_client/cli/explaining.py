"""`explain`: what a code means, and what to do."""

import difflib
from typing import Annotated

import typer

from merchant_wallet_client.cli.terminal import (
    Failure,
    JsonOption,
    ending_well,
    print_fields,
    print_json,
    wants_json,
)
from merchant_wallet_client.codes import CODES, Code


@ending_well
def explain(
    code: Annotated[str, typer.Argument(metavar="CODE", help="A code such as 40101, or its name.")],
    as_json: JsonOption = None,
) -> None:
    """Say what a code means, when to ask again, and what to do.

    \b
    Examples:
      merchant-wallet-client explain 40101
      merchant-wallet-client explain BALANCE_INSUFFICIENT
    """
    row = find_code(code)
    document = {
        "code": row.code,
        "name": row.name,
        "meaning": row.meaning,
        "retry": row.retry.value,
        "httpStatus": row.http_status,
        "advice": row.advice,
    }
    if wants_json(as_json):
        print_json(document)
    else:
        print_fields(document)


def find_code(typed: str) -> Code:
    """The row of a code or a name. Raises Failure."""
    names = {row.name: row for row in CODES.values()} | {str(row.code): row for row in CODES.values()}
    found = names.get(typed.upper())
    if found is None:
        near = ", ".join(difflib.get_close_matches(typed.upper(), names, n=3, cutoff=0.4))
        raise Failure(f"There is no code {typed}." + (f" Near it: {near}." if near else ""))
    return found
