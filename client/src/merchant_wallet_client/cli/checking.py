"""`sign` and `verify`: what is signed, and whether a signature is right."""

import sys
import time
from typing import Annotated, Any, Final

import typer

from merchant_wallet_client.callbacks import (
    has_right_sign,
    has_right_webhook,
    read_fields,
    sign_webhook,
)
from merchant_wallet_client.calls import find_doubt, path_of
from merchant_wallet_client.cli.profiles import Profile, find_profile
from merchant_wallet_client.cli.terminal import (
    REFUSED,
    Failure,
    JsonOption,
    ProfileOption,
    ending_well,
    note,
    paint,
    print_fields,
    print_json,
    wants_json,
)
from merchant_wallet_client.codes import SUCCESS
from merchant_wallet_client.errors import BadCallbackError
from merchant_wallet_client.operations import sign_length_of
from merchant_wallet_client.signing import (
    CALLBACK_PATH,
    MD5,
    build_string_to_sign,
)
from merchant_wallet_client.signing import sign as make_sign
from merchant_wallet_client.wire import check_fields, has_only_texts, read_answer, read_object

PathOption = Annotated[str, typer.Option("--path", metavar="PATH", help="The operation, or its path.")]
FILE: Final = "standard input"


@ending_well
def sign(path: PathOption, profile: ProfileOption = None, as_json: JsonOption = None) -> None:
    """Print the string to sign and the signature of a request, whose JSON body is read from standard input.

    \b
    Examples:
      merchant-wallet-client sign --path /merchant/getMerchantBalance < body.json
      MERCHANT_WALLET_SECRET=... merchant-wallet-client sign --path exchange < body.json
    """
    chosen = find_profile(profile)
    chosen.require("secret")
    fields, method = check_fields(_read_body(), chosen.sign_method), chosen.sign_method
    whole = path_of(path)
    document = {
        "method": method,
        "path": whole,
        "stringToSign": build_string_to_sign(method, whole, fields),
        "sign": make_sign(method, chosen.secret, whole, fields),
    }
    if wants_json(as_json):
        print_json(document)
        return
    _print_signed(document["stringToSign"])
    typer.echo(f"\nsign: {paint(document['sign'], 'green', bold=True)}")
    if method == MD5:
        note("MD5 signs that text with &key= and the secret behind it.")


@ending_well
def verify(
    path: Annotated[
        str | None, typer.Option("--path", metavar="PATH", help="For an answer: the operation that it is of.")
    ] = None,
    nonce: Annotated[
        str | None, typer.Option("--nonce", metavar="TEXT", help="For an answer: the request's nonceStr.")
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option("--header", metavar="'NAME: VALUE'", help="For a callback: a header that came with it."),
    ] = None,
    profile: ProfileOption = None,
    as_json: JsonOption = None,
) -> None:
    """Say whether the signature of an answer or of a callback is right. The body is read from standard input.

    \b
    Examples:
      merchant-wallet-client verify --path exchange --nonce 9db2169d59766ab6 < answer.json
      merchant-wallet-client verify --header 'webhook-id: evt_7_2' --header '...' < callback.json
    """
    chosen = find_profile(profile)
    body = _read_text()
    if path is None:
        document = check_callback(chosen, body, _read_headers(header or []))
    elif nonce is None:
        raise Failure("--nonce: the signature of an answer covers the nonceStr of its request.")
    else:
        document = check_answer(chosen, body, path_of(path), nonce)
    if wants_json(as_json):
        print_json(document)
    else:
        _print_verdict(document)
    raise typer.Exit(0 if document["ok"] else REFUSED)


def check_answer(profile: Profile, body: str, path: str, nonce: str) -> dict[str, Any]:
    """Whether the client would take an answer, and the text that its signature covers. Raises Failure."""
    profile.require("secret")
    try:
        answer = read_answer(200, {}, body.encode())
    except ValueError as error:
        raise Failure(f"What came on {FILE} is no answer of the interface: {error}") from None
    data, method = answer.data, profile.sign_method
    if not data or not has_only_texts(data):
        raise Failure("The answer has no data that could be signed. Refusals are not signed.")
    doubt = find_doubt(method, profile.secret, path, nonce, answer)
    if doubt is None and answer.code != SUCCESS:
        doubt = "it is a refusal"
    bound = data if method == MD5 else {**data, "code": answer.code, "nonceStr": nonce}
    return {
        "ok": doubt is None,
        "kind": "answer",
        "why": doubt,
        "given": data.get("sign"),
        "expected": make_sign(method, profile.secret, path, bound)[: sign_length_of(path)],
        "stringToSign": build_string_to_sign(method, path, bound),
    }


def check_callback(profile: Profile, body: str, headers: dict[str, str]) -> dict[str, Any]:
    """Which of a callback's signatures the client would take. None: it can't be checked."""
    fields, doubt = _parse(body), None
    try:
        read_fields(body)
    except BadCallbackError as error:
        doubt = str(error)
    by_sign = by_webhook = None
    if profile.secret:
        by_sign = doubt is None and has_right_sign(profile.secret, fields, profile.sign_method)
    if profile.callback_secret and "webhook-signature" in headers:
        by_webhook = doubt is None and _is_webhook(profile.callback_secret, body, headers, fields)
    if by_sign is None and by_webhook is None:
        raise Failure(f"{profile.name} has no secret, and no callback_secret with the webhook-… headers.")
    if not isinstance(fields.get("eventId"), str) or not fields["eventId"]:
        doubt = doubt or "the body has no eventId, so it is no callback"
    timestamp = str(fields.get("timestamp", ""))
    return {
        "ok": by_sign is not False and by_webhook is not False and doubt is None,
        "kind": "callback",
        "why": doubt,
        "eventId": fields.get("eventId"),
        "sign": by_sign,
        "webhookSignature": by_webhook,
        "ageS": round(time.time() - int(timestamp) / 1000) if timestamp.isdigit() else None,
        "stringToSign": build_string_to_sign(profile.sign_method, CALLBACK_PATH, fields),
    }


def _is_webhook(secret: str, body: str, headers: dict[str, str], fields: dict[str, Any]) -> bool:
    try:
        sign_webhook(secret, "", "", "")
    except ValueError:
        raise Failure("callback_secret is no Base64 of a key: copy it as it was shown.") from None
    # A file made by an editor or `echo` ends with a line feed that was not sent.
    texts, event_id = (body, body.removesuffix("\n")), str(fields.get("eventId", ""))
    return any(has_right_webhook(secret, text, headers, event_id) for text in texts)


def _print_verdict(document: dict[str, Any]) -> None:
    verdict = paint("right", "green", bold=True) if document["ok"] else paint("WRONG", "red", bold=True)
    typer.echo(f"The signature of this {document['kind']} is {verdict}.")
    hidden = ("ok", "kind", "stringToSign", *(() if document["why"] else ("why",)))
    print_fields({name: value for name, value in document.items() if name not in hidden})
    typer.echo("The text that is signed:")
    _print_signed(document["stringToSign"])


def _print_signed(text: str) -> None:
    for line in text.split("\n"):
        typer.echo(f"  {paint(line, 'yellow')}")


def _read_headers(typed: list[str]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for word in typed:
        name, colon, value = word.partition(":")
        if not colon:
            raise Failure(f"--header: {word!r} is not NAME: VALUE.")
        headers[name.strip().lower()] = value.strip()
    return headers


def _read_text() -> str:
    if sys.stdin.isatty():
        note("Reading the JSON body; end it with Ctrl-D.")
    try:
        return typer.get_binary_stream("stdin").read().decode()
    except UnicodeDecodeError:
        raise Failure(f"What came on {FILE} is not valid UTF-8.") from None


def _read_body() -> dict[str, Any]:
    return _parse(_read_text())


def _parse(text: str) -> dict[str, Any]:
    try:
        return read_object(text)
    except ValueError as error:
        raise Failure(f"What came on {FILE} is no JSON object: {error}") from None
