"""A signer in its own process, reached over a Unix socket: server and client.

Rules:
- A frame is its length in 4 bytes, big-endian, and a JSON document of at most 64 KiB.
- Each request has one answer. A client may send any number of requests.
- Only the owner can open the socket (0600), or its group (0660) if another user may ask and the server is not
  root. The server also asks the kernel for the peer's user id, and that decides.
- Unreadable input closes the connection.
"""

import asyncio
import os
import socket
import struct
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec
import structlog

from merchant_wallet.chains.signer import SeededSigner, SignerAway, SigningRefused, SigningRequest

MAX_FRAME_BYTES: Final = 65_536
TIMEOUT_S: Final = 10.0
MAX_CLIENTS: Final = 64

_LENGTH: Final = struct.Struct(">I")
_PEER: Final = struct.Struct("iII")

log = structlog.get_logger("signer")


class WalletsRequest(msgspec.Struct, frozen=True, tag="wallets"):
    """A request for the hot wallets' addresses, and with a number for that account of the seed."""

    account_no: int | None = None


class SignRequest(msgspec.Struct, frozen=True, tag="sign"):
    """A request for a signature."""

    request: SigningRequest


class Wallets(msgspec.Struct, frozen=True, tag="wallets"):
    """The hot wallets' addresses by chain, and the account of the seed that was asked for."""

    wallets: dict[str, bytes]
    account: dict[str, str] = {}


class Signature(msgspec.Struct, frozen=True, tag="signature"):
    """A signature of 65 bytes."""

    signature: bytes


class Refusal(msgspec.Struct, frozen=True, tag="refused"):
    """The signer will not sign (`away` false) or could not (`away` true)."""

    cause: str
    away: bool


Request = WalletsRequest | SignRequest
Answer = Wallets | Signature | Refusal


class SocketTaken(Exception):
    """Another signer listens at this path."""


class SignerServer:
    """Serves a signer to processes of the same user, and of one other named user."""

    def __init__(self, signer: SeededSigner, path: Path, client_uid: int | None = None) -> None:
        self._signer = signer
        self._path = path
        self._client_uid = client_uid
        self._server: asyncio.Server | None = None
        self._clients: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Listen. Raises SocketTaken, OSError."""
        self._server = await asyncio.start_unix_server(self._serve, sock=_bind(self._path))
        if self._client_uid in (None, os.getuid()):
            return
        if os.geteuid() == 0:
            # The socket still belongs to one user. Root needs no permission.
            os.chown(self._path, self._client_uid, -1)
        else:
            # The group may open it. Who may ask is decided by the user id alone.
            self._path.chmod(0o660)

    async def close(self) -> None:
        """Stop listening. A request in progress gets no answer. The same request later gets the same
        signature.
        """
        if self._server is None:
            return
        self._server.close()
        for client in self._clients:
            client.cancel()
        await asyncio.gather(*self._clients, return_exceptions=True)
        self._path.unlink(missing_ok=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._clients.add(task)
        try:
            if self._admits(writer.get_extra_info("socket")):
                await self._answer_all(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            # The client has gone. It knows what it has received.
            pass
        finally:
            self._clients.discard(task)
            writer.close()

    def _admits(self, peer: socket.socket) -> bool:
        uid = uid_of_peer(peer)
        if uid not in (os.getuid(), self._client_uid):
            log.warning("another user asked for signatures and was refused", uid=uid)
            return False
        return len(self._clients) <= MAX_CLIENTS

    async def _answer_all(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            try:
                request = msgspec.json.decode(await _read_frame(reader), type=Request)
            except (msgspec.DecodeError, ValueError) as error:
                log.warning("a request that can't be read", cause=str(error))
                return
            await self._answer(request, writer)

    async def _answer(self, request: Request, writer: asyncio.StreamWriter) -> None:
        answer: Answer
        try:
            if isinstance(request, WalletsRequest):
                number = request.account_no
                account = {} if number is None else dict(await self._signer.account(number))
                answer = Wallets(dict(await self._signer.wallets()), account)
            else:
                answer = Signature(await self._signer.sign(request.request))
        except (SigningRefused, SignerAway) as error:
            answer = Refusal(str(error), isinstance(error, SignerAway))
        except Exception:
            log.exception("a signature failed")
            answer = Refusal("the signer failed; its log says more", away=True)
        _write_frame(writer, msgspec.json.encode(answer))
        await writer.drain()


class RemoteSigner:
    """A `Signer` that asks the signer behind a socket. Each request has its own connection."""

    def __init__(self, path: Path, timeout_s: float = TIMEOUT_S) -> None:
        self._path = path
        self._timeout_s = timeout_s

    async def wallets(self) -> Mapping[str, bytes]:
        """The hot wallets that the signer has keys for. Raises SignerAway."""
        return (await self._ask_wallets()).wallets

    async def account(self, account_no: int) -> Mapping[str, str]:
        """The extended public keys of an account of the seed. Raises SignerAway."""
        return (await self._ask_wallets(account_no)).account

    async def _ask_wallets(self, account_no: int | None = None) -> Wallets:
        answer = await self._ask(WalletsRequest(account_no))
        if isinstance(answer, Wallets):
            return answer
        raise SignerAway(_cause_of(answer))

    async def sign(self, request: SigningRequest) -> bytes:
        """The signature r, s, v, 65 bytes. Raises SigningRefused, SignerAway."""
        answer = await self._ask(SignRequest(request))
        if isinstance(answer, Signature):
            return answer.signature
        if isinstance(answer, Refusal) and not answer.away:
            raise SigningRefused(answer.cause)
        raise SignerAway(_cause_of(answer))

    async def _ask(self, request: Request) -> Answer:
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._exchange(request)
        except TimeoutError:
            cause = f"no answer in {self._timeout_s:g} s"
        except asyncio.IncompleteReadError:
            cause = "it closed the connection"
        except (OSError, ValueError, msgspec.DecodeError) as error:
            cause = str(error)
        raise SignerAway(f"the signer at {self._path} can't be asked: {cause}")

    async def _exchange(self, request: Request) -> Answer:
        reader, writer = await asyncio.open_unix_connection(self._path)
        try:
            _write_frame(writer, msgspec.json.encode(request))
            await writer.drain()
            answer: Answer = msgspec.json.decode(await _read_frame(reader), type=Answer)
            return answer
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()


def uid_of_peer(peer: socket.socket) -> int:
    """The user id of the peer of a Unix socket, from the kernel (SO_PEERCRED)."""
    found = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
    uid: int = _PEER.unpack(found)[1]
    return uid


def _bind(path: Path) -> socket.socket:
    """A socket at `path` that was never open to others. The socket of a dead signer is removed."""
    if path.is_socket():
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(str(path))
            except ConnectionRefusedError:
                path.unlink()
            else:
                raise SocketTaken(f"A signer is listening at {path} already.")
    made = socket.socket(socket.AF_UNIX)
    before = os.umask(0o177)
    try:
        made.bind(str(path))
    except BaseException:
        made.close()
        raise
    finally:
        os.umask(before)
    return made


async def _read_frame(reader: asyncio.StreamReader) -> bytes:
    (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
    if length > MAX_FRAME_BYTES:
        raise ValueError(f"a frame of {length} bytes")
    return await reader.readexactly(length)


def _write_frame(writer: asyncio.StreamWriter, document: bytes) -> None:
    writer.write(_LENGTH.pack(len(document)) + document)


def _cause_of(answer: Answer) -> str:
    return answer.cause if isinstance(answer, Refusal) else "the signer answered another request"
