"""A signer behind a Unix socket: same answers as in process, one user only, peers that misbehave."""

import asyncio
import os
import socket
import stat
import struct
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import pytest
from tests.chains.signing import KEYS, RULES, SEED, WALLETS, Asking, Clock, pay

from merchant_wallet.base.chains import ERC20, TRC20
from merchant_wallet.chains.keys import signer_socket
from merchant_wallet.chains.keys.keystore import Keystore
from merchant_wallet.chains.keys.local_signer import LocalSigner
from merchant_wallet.chains.keys.signer_socket import (
    MAX_FRAME_BYTES,
    RemoteSigner,
    SignerServer,
    SocketTaken,
    uid_of_peer,
)
from merchant_wallet.chains.signer import SignerAway, SigningRefused, SigningRequest
from merchant_wallet.postgres.privileges import Account, become, can_read

NOBODY = 65534
ASK = """
import asyncio, sys
from pathlib import Path
from merchant_wallet.chains.keys.signer_socket import RemoteSigner
print(sorted(asyncio.run(RemoteSigner(Path(sys.argv[1])).wallets())))
"""
SERVE = """
import asyncio, sys
from pathlib import Path
from merchant_wallet.chains.keys.signer_socket import SignerServer

class Empty:
    async def wallets(self):
        return {}

    async def account(self, account_no):
        return {}

async def serve():
    await SignerServer(Empty(), Path(sys.argv[1]), client_uid=int(sys.argv[2])).open()
    print("ready", flush=True)
    await asyncio.Event().wait()

asyncio.run(serve())
"""

pytestmark = pytest.mark.anyio


@pytest.fixture
def local(tmp_path: Path) -> LocalSigner:
    return LocalSigner(Keystore(tmp_path, KEYS, SEED), RULES, Clock())


@pytest.fixture
async def path(tmp_path: Path, local: LocalSigner) -> AsyncIterator[Path]:
    server = SignerServer(local, tmp_path / "signer.sock")
    await server.open()
    yield tmp_path / "signer.sock"
    await server.close()
    assert not (tmp_path / "signer.sock").exists()


async def test_the_answers_are_those_of_the_signer_behind_it(path: Path, local: LocalSigner) -> None:
    remote = RemoteSigner(path)
    assert await remote.wallets() == WALLETS
    for account_no in (0, 7):
        assert await remote.account(account_no) == await local.account(account_no) != {}
    assert await remote.account(0) != await remote.account(7)
    for request in (
        Asking(ERC20).request(),
        Asking(TRC20, payout_id=13).request(),
        Asking(ERC20, "cancel").request(),
        Asking(TRC20, "sweep").request(),
        Asking(ERC20, "top_up").request(),
    ):
        assert await remote.sign(request) == await local.sign(request)


async def test_a_refusal_is_reported_with_the_signers_message(path: Path) -> None:
    with pytest.raises(SigningRefused, match="at most 1000 USDT at once"):
        await RemoteSigner(path).sign(pay(1, 1_001))


async def test_many_may_ask_at_once(path: Path) -> None:
    remote = RemoteSigner(path)
    signatures = await asyncio.gather(*(remote.sign(pay(each, 10, nonce=each)) for each in range(1, 31)))
    assert len(set(signatures)) == 30


async def test_the_socket_is_its_owners_alone(path: Path) -> None:
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


async def test_another_user_is_sent_away(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as as_another:
        as_another.setattr(signer_socket, "uid_of_peer", lambda peer: os.getuid() + 1)
        with pytest.raises(SignerAway):
            await RemoteSigner(path).wallets()
    assert await RemoteSigner(path).wallets() == WALLETS


async def test_the_kernel_names_the_user_at_the_other_end() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    with ours, theirs:
        assert uid_of_peer(ours) == os.getuid()


@pytest.mark.parametrize(
    "sent",
    [
        struct.pack(">I", MAX_FRAME_BYTES + 1),
        struct.pack(">I", 2**32 - 1) + b"x" * 100,
        struct.pack(">I", 7) + b"not so.",
        struct.pack(">I", 2) + b"{}",
        struct.pack(">I", 16) + b'{"type":"steal"}',
        struct.pack(">I", 100) + b"cut short",
        b"",
    ],
)
async def test_what_can_not_be_read_ends_that_connection_alone(path: Path, sent: bytes) -> None:
    reader, writer = await asyncio.open_unix_connection(path)
    writer.write(sent)
    writer.write_eof()
    assert await reader.read() == b""
    writer.close()
    assert await RemoteSigner(path).wallets() == WALLETS


async def test_a_silent_client_holds_up_nobody(path: Path) -> None:
    _, silent = await asyncio.open_unix_connection(path)
    silent.write(b"\0\0")
    await silent.drain()
    assert await RemoteSigner(path).wallets() == WALLETS
    silent.close()


async def test_no_more_than_a_crowd_is_let_in(path: Path) -> None:
    waiting = [await asyncio.open_unix_connection(path) for _ in range(signer_socket.MAX_CLIENTS)]
    with pytest.raises(SignerAway):
        await RemoteSigner(path).wallets()
    for _, writer in waiting:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
    while True:
        try:
            assert await RemoteSigner(path).wallets() == WALLETS
        except SignerAway:
            continue
        break


async def test_a_second_signer_does_not_replace_a_running_one(path: Path, local: LocalSigner) -> None:
    with pytest.raises(SocketTaken, match="is listening at"):
        await SignerServer(local, path).open()
    assert await RemoteSigner(path).wallets() == WALLETS


async def test_a_dead_signers_socket_is_replaced(tmp_path: Path, local: LocalSigner) -> None:
    path = tmp_path / "signer.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    server = SignerServer(local, path)
    await server.open()
    assert await RemoteSigner(path).wallets() == WALLETS
    await server.close()


async def test_a_file_that_is_no_socket_stays(tmp_path: Path, local: LocalSigner) -> None:
    (tmp_path / "signer.sock").write_text("precious")
    with pytest.raises(OSError, match="in use"):
        await SignerServer(local, tmp_path / "signer.sock").open()
    assert (tmp_path / "signer.sock").read_text() == "precious"


async def test_a_signer_that_is_not_there_is_away(tmp_path: Path) -> None:
    remote = RemoteSigner(tmp_path / "nobody.sock")
    with pytest.raises(SignerAway, match="can't be asked"):
        await remote.wallets()
    with pytest.raises(SignerAway, match="can't be asked"):
        await remote.sign(Asking().request())


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"", "it closed the connection"),
        (struct.pack(">I", MAX_FRAME_BYTES + 1), "a frame of"),
        (struct.pack(">I", 2) + b"[]", "can't be asked"),
        (struct.pack(">I", 31) + b'{"type":"wallets","wallets":{}}', "answered another request"),
        (None, "no answer in 0.05 s"),
    ],
)
async def test_an_answer_that_is_none_is_no_signature(
    tmp_path: Path, answer: bytes | None, said: str
) -> None:
    async def misbehave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(4)
        if answer is None:
            await reader.read()
        else:
            writer.write(answer)
        writer.close()

    server = await asyncio.start_unix_server(misbehave, tmp_path / "odd.sock")
    timeout_s = 0.05 if answer is None else 10.0
    with pytest.raises(SignerAway, match=said):
        await RemoteSigner(tmp_path / "odd.sock", timeout_s).sign(Asking().request())
    server.close()


class Broken:
    """A signer that fails."""

    async def wallets(self) -> Mapping[str, bytes]:
        """Always away."""
        raise SignerAway("its keys are in the safe")

    async def account(self, account_no: int) -> Mapping[str, str]:
        """No seed."""
        return {}

    async def sign(self, request: SigningRequest) -> bytes:
        """Fails with a message that holds a secret."""
        raise RuntimeError("the secret is swordfish")


async def test_a_fault_of_the_signer_is_reported_without_its_message(tmp_path: Path) -> None:
    server = SignerServer(Broken(), tmp_path / "signer.sock")
    await server.open()
    remote = RemoteSigner(tmp_path / "signer.sock")
    with pytest.raises(SignerAway, match="in the safe"):
        await remote.wallets()
    with pytest.raises(SignerAway, match="its log says more") as caught:
        await remote.sign(Asking().request())
    assert "swordfish" not in str(caught.value)
    await server.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root lets another user ask")
async def test_one_other_user_may_ask_where_it_is_named(open_path: Path, local: LocalSigner) -> None:
    server = SignerServer(local, open_path, client_uid=NOBODY)
    await server.open()
    found = os.stat(open_path)
    assert (found.st_uid, stat.S_IMODE(found.st_mode)) == (NOBODY, 0o600)

    told = [await asyncio.to_thread(_ask_as, uid, open_path) for uid in (NOBODY, NOBODY - 1)]

    assert told == [str(sorted(WALLETS)), ""]
    await server.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become two other users")
def test_a_signer_that_is_not_root_lets_one_other_user_of_its_group_ask(open_path: Path) -> None:
    """As under systemd: the worker has the signer's group, and a third user has it too."""
    open_path.parent.chmod(0o770)
    os.chown(open_path.parent, NOBODY - 2, NOBODY - 2)
    signer = subprocess.Popen(
        [sys.executable, "-c", SERVE, str(open_path), str(NOBODY)],
        preexec_fn=_become(NOBODY - 2),
        cwd="/",
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert signer.stdout is not None
        assert signer.stdout.readline() == "ready\n"
        found = os.stat(open_path)
        assert (found.st_uid, stat.S_IMODE(found.st_mode)) == (NOBODY - 2, 0o660)
        told = [_ask_as(uid, open_path, group=NOBODY - 2) for uid in (NOBODY, NOBODY - 1)]
        assert told == ["[]", ""]
    finally:
        signer.kill()
        signer.communicate()
        open_path.unlink(missing_ok=True)


@pytest.fixture
def open_path() -> Iterator[Path]:
    """A folder for a socket that every user may enter."""
    folder = Path(tempfile.mkdtemp(prefix="merchant-wallet-signer-"))
    folder.chmod(0o711)
    yield folder / "signer.sock"
    folder.rmdir()


def _ask_as(uid: int, path: Path, group: int | None = None) -> str:
    """The answer to a client that runs as another user."""
    drop = _become(uid, group)
    asked = [sys.executable, "-c", ASK, str(path)]
    return subprocess.run(
        asked, preexec_fn=drop, cwd="/", capture_output=True, text=True, check=False
    ).stdout.strip()


def _become(uid: int, group: int | None = None) -> Callable[[], None]:
    account = Account(uid, uid)
    keep_search = not can_read(account, [Path(sys.executable).resolve()])
    return become(account, keep_search=keep_search, groups=() if group is None else (group,))
