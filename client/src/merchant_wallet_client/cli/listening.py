"""`listen`: callbacks of the sandbox reach a laptop behind NAT, over a stream that the laptop opens.

Rules:
- Each callback is verified before it is shown or forwarded. One that is not genuine is never forwarded.
- It is forwarded unchanged, with its headers, so that the receiver checks it like any other.
- What the receiver accepts is reported to the service, which then stops sending it. What it does not accept
  comes again, as from a real notifyUrl. With `--no-accept` everything does.
- After a break the stream continues behind the last event that was seen.
"""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from merchant_wallet_client.callbacks import (
    AnyCallback,
    DepositCallback,
    OrderCallback,
    verify_callback,
)
from merchant_wallet_client.cli.profiles import Profile, find_profile
from merchant_wallet_client.cli.terminal import (
    Failure,
    JsonOption,
    ProfileOption,
    ending_well,
    note,
    paint,
    print_json,
    wants_json,
)
from merchant_wallet_client.errors import BadCallbackError, NoAnswerError, RefusedError, make_refusal
from merchant_wallet_client.results import TxnStatus
from merchant_wallet_client.wire import read_answer

if TYPE_CHECKING:
    import httpx

    from merchant_wallet_client.client import MerchantWallet

PATH: Final = "/sandbox/listenCallbacks"
ACCEPT_PATH: Final = "/sandbox/acceptCallback"
STREAM: Final = "application/x-ndjson"
SILENCE_S: Final = 20.0
"""A heartbeat comes every 5 s. After this silence the stream is opened anew."""
FORWARD_TIMEOUT_S: Final = 10.0
LONGEST_WAIT_S: Final = 30.0
MAX_LINE_BYTES: Final = 256 * 1024
UNKNOWN_EVENT: Final = 40401
SHOWN_ONLY: Final = (
    "Without --forward URL callbacks are only shown. One that its notifyUrl does not accept comes again, "
    "and the later callbacks of its order wait."
)
SENT_HEADERS: Final[tuple[str, ...]] = (
    "content-type",
    "user-agent",
    "webhook-id",
    "webhook-timestamp",
    "webhook-signature",
)


@dataclass(frozen=True)
class Came:
    """A line of the stream: one attempt at a callback."""

    event_id: str
    url: str
    headers: dict[str, str]
    body: str

    @classmethod
    def read(cls, line: str) -> "Came":
        """Parse a line. Raises Failure."""
        try:
            told = json.loads(line)
            headers = {str(name).lower(): str(value) for name, value in told["headers"].items()}
            return cls(str(told["eventId"]), str(told["url"]), headers, str(told["body"]))
        except (ValueError, KeyError, TypeError, AttributeError):
            raise Failure(f"This is no line of a stream of callbacks: {line[:200]!r}") from None


@dataclass
class Listener:
    """One run of the command."""

    wallet: "MerchantWallet"
    profile: Profile
    forward: str | None
    accepts: bool
    as_json: bool
    after: str = ""
    shown: int = 0
    accepted: set[str] = field(default_factory=set)


@ending_well
def listen(
    forward: Annotated[
        str | None,
        typer.Option(
            "--forward", metavar="URL", help="Send each callback on to this URL.", show_default=False
        ),
    ] = None,
    after: Annotated[
        str | None,
        typer.Option("--after", metavar="EVENT_ID", help="Begin behind this event.", show_default=False),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option("--limit", metavar="N", min=1, help="End after N callbacks.", show_default=False),
    ] = None,
    accept: Annotated[
        bool, typer.Option("--accept/--no-accept", help="Report what the receiver accepted to the service.")
    ] = True,
    profile: ProfileOption = None,
    as_json: JsonOption = None,
) -> None:
    """Receive the callbacks of a sandbox over a stream: verify them, show them, and send them on.

    \b
    Examples:
      merchant-wallet-client listen --forward http://localhost:3000/paid
      merchant-wallet-client listen --limit 1 --json
    """
    chosen = find_profile(profile)
    if chosen.is_live:
        raise Failure(f"{chosen.name} has a live key. Callbacks of a live service go to notifyUrl alone.")
    with chosen.open() as wallet:
        listener = Listener(wallet, chosen, forward, accept, wants_json(as_json), after or "")
        note(f"Listening at {chosen.base_url} as {chosen.app_key}. Ctrl-C ends it.")
        if forward is None:
            note(SHOWN_ONLY)
        for line in follow(listener):
            handle(listener, Came.read(line))
            if limit is not None and listener.shown >= limit:
                return


def follow(listener: Listener) -> Iterator[str]:
    """The lines of the stream. After a break it is opened again. Raises RefusedError, Failure."""
    import httpx

    wait_s = 1.0
    while True:
        try:
            for line in _open_stream(listener):
                wait_s = 1.0
                if line.strip():
                    yield line
        except (httpx.HTTPError, OSError, NoAnswerError) as error:
            note(f"The stream broke ({type(error).__name__}: {error}); again in {wait_s:g} s.", "yellow")
            time.sleep(wait_s)
            wait_s = min(wait_s * 2, LONGEST_WAIT_S)
        except RefusedError as refusal:
            wait_s = _wait_after(listener, refusal, wait_s)


def _wait_after(listener: Listener, refusal: RefusedError, wait_s: float) -> float:
    """Wait after a refusal that passes. Returns the next wait. Raises the refusal otherwise."""
    if refusal.code == UNKNOWN_EVENT and listener.after:
        note(f"{listener.after} is not known any more: listening from now on.", "yellow")
        listener.after = ""
        return wait_s
    if refusal.code not in (42900, 50000, 50300):
        raise refusal
    time.sleep(refusal.retry_after_s or wait_s)
    return min(wait_s * 2, LONGEST_WAIT_S)


def _open_stream(listener: Listener) -> Iterator[str]:
    """The lines until the stream ends, blank ones included. Raises RefusedError, httpx.HTTPError."""
    import httpx

    request = listener.wallet.prepare(PATH, {"after": listener.after} if listener.after else {})
    timeout = httpx.Timeout(SILENCE_S, connect=5)
    with (
        httpx.Client(timeout=timeout) as http,
        http.stream(
            "POST",
            listener.wallet.base_url + PATH,
            content=request.body.encode(),
            headers={"Content-Type": "application/json", "Accept-Encoding": "identity"},
        ) as response,
    ):
        if not response.headers.get("content-type", "").startswith(STREAM):
            _raise_refusal(response)
        yield from _split_lines(response)


def _split_lines(response: "httpx.Response") -> Iterator[str]:
    """The lines of a stream, as soon as each is complete. Only a line feed ends one."""
    rest = b""
    for part in response.iter_bytes():
        *lines, rest = (rest + part).split(b"\n")
        if len(rest) > MAX_LINE_BYTES:
            raise Failure(f"A line of the stream is longer than {MAX_LINE_BYTES} bytes.")
        for line in lines:
            yield line.decode("utf-8", "replace")


def _raise_refusal(response: "httpx.Response") -> None:
    response.read()
    headers = {name.lower(): value for name, value in response.headers.items()}
    try:
        answer = read_answer(response.status_code, headers, response.content)
    except ValueError:
        raise NoAnswerError(f"HTTP {response.status_code} and no answer of the interface") from None
    if answer.code == 404:
        raise Failure("This service has no stream of callbacks: it is live, or older than the client.")
    raise make_refusal(answer.code, answer.msg, answer.data, answer.request_id, answer.retry_after_s)


def handle(listener: Listener, came: Came) -> None:
    """Verify one callback, forward it, show it."""
    listener.after = came.event_id
    if came.event_id in listener.accepted:
        return
    try:
        callback = verify_callback(
            came.body,
            came.headers,
            listener.profile.callback_secrets,
            sign_method=listener.profile.sign_method,
            tolerance_s=float("inf"),
        )
    except BadCallbackError as error:
        _show(listener, came, {"verified": False, "reason": str(error)})
        return
    told: dict[str, Any] = {"verified": True, "what": describe(callback), "accepted": False}
    if listener.forward:
        told |= _forward(listener, came)
    _show(listener, came, told)


def _forward(listener: Listener, came: Came) -> dict[str, Any]:
    """Send a callback on, and report that it was accepted."""
    import httpx

    assert listener.forward is not None
    headers = {name: came.headers[name] for name in SENT_HEADERS if name in came.headers}
    began_s = time.monotonic()
    try:
        answer = httpx.post(
            listener.forward, content=came.body.encode(), headers=headers, timeout=FORWARD_TIMEOUT_S
        )
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return {"forwarded": False, "reason": f"{type(error).__name__}: {error}", "accepted": False}
    took_ms = round((time.monotonic() - began_s) * 1000)
    accepted = answer.status_code == 200 and answer.text.strip().lower() == "success"
    if accepted and listener.accepts:
        listener.accepted.add(came.event_id)
        _report(listener, came.event_id)
    return {
        "forwarded": True,
        "httpStatus": answer.status_code,
        "tookMs": took_ms,
        "accepted": accepted,
    }


def _report(listener: Listener, event_id: str) -> None:
    try:
        listener.wallet.call(ACCEPT_PATH, {"event": event_id})
    except (RefusedError, NoAnswerError) as error:
        note(f"The service does not know that {event_id} was accepted, and sends it again: {error}", "yellow")


def describe(callback: AnyCallback) -> str:
    """A callback in a few words."""
    if isinstance(callback, OrderCallback):
        status = callback.txn_status
        word = status.name.lower() if status in list(TxnStatus) else "unknown"
        amount = f"{callback.amount} {callback.currency}"
        return f"order {callback.mc_order_id} has status {status} ({word}), {amount}"
    if isinstance(callback, DepositCallback):
        whose = callback.ext_user_id or "the merchant"
        return f"deposit of {callback.amount} {callback.send_currency} on {callback.chain_type} to {whose}"
    return f"event of the kind {callback.event_type}"


def _show(listener: Listener, came: Came, told: dict[str, Any]) -> None:
    listener.shown += 1
    if listener.as_json:
        document = {"eventId": came.event_id, "url": came.url, **told}
        print_json({**document, "headers": came.headers, "body": came.body})
        return
    clock = time.strftime("%H:%M:%S")
    head = f"{paint(clock, 'bright_black')}  {paint(came.event_id, bold=True)}"
    if not told["verified"]:
        typer.echo(f"{head}  {paint('NOT GENUINE', 'red', bold=True)}  {paint(told['reason'])}")
        return
    is_forwarded = "forwarded" in told
    mark = "" if is_forwarded else f"  {paint('(only shown)', 'yellow')}"
    typer.echo(f"{head}  {paint('genuine', 'green')}  {paint(told['what'])}{mark}")
    if is_forwarded:
        _show_forwarded(listener, told)


def _show_forwarded(listener: Listener, told: dict[str, Any]) -> None:
    if not told["forwarded"]:
        typer.echo(f"          → {listener.forward}  {paint(told['reason'], 'red')}")
        return
    verdict = paint("accepted", "green") if told["accepted"] else paint("not accepted: it comes again", "red")
    typer.echo(f"          → {listener.forward}  {told['httpStatus']} in {told['tookMs']} ms, {verdict}")
