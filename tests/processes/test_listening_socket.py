"""The listening socket: none that is about to be closed takes connections; sockets that systemd passes."""

import os
import socket
import subprocess
import sys

import pytest
from tests.crash.shop import run

from merchant_wallet.processes.listening_socket import (
    CannotListen,
    bind,
    drop_new_connections,
    is_taken,
    let_packets_in,
    take_systemd_socket,
)

LOOPBACK = "127.0.0.1"
TAKE = """
import os, sys
from merchant_wallet.processes.listening_socket import take_systemd_socket
os.dup2(int(sys.argv[1]), 3)
os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
taken = take_systemd_socket(os.environ)
print(taken.getsockname()[1], os.get_inheritable(3), "LISTEN_FDS" in os.environ)
"""


def _listen() -> socket.socket:
    listening = run(bind(LOOPBACK, 0))
    listening.listen()
    return listening


def test_before_a_socket_is_closed_it_takes_no_new_connection_and_keeps_the_ones_that_wait() -> None:
    listening, new = _listen(), socket.socket()
    address = listening.getsockname()
    with listening, new, socket.create_connection(address) as waiting:
        drop_new_connections(listening)
        new.setblocking(False)
        new.connect_ex(address)
        accepted, _ = listening.accept()
        with accepted:
            waiting.sendall(b"request")
            assert accepted.recv(100) == b"request"
            accepted.sendall(b"answer")
            assert waiting.recv(100) == b"answer"
        listening.setblocking(False)
        with pytest.raises(BlockingIOError):
            listening.accept()
        listening.close()
        # Its SYN is sent again after a second, and refused. It had sent nothing.
        new.setblocking(True)
        with pytest.raises(ConnectionRefusedError):
            new.connect(address)


@pytest.mark.parametrize("host", [LOOPBACK, "::1"])
def test_a_connection_whose_handshake_ended_late_gets_its_packets(host: str) -> None:
    listening = run(bind(host, 0))
    listening.listen()
    with listening, socket.create_connection(listening.getsockname()[:2]) as client:
        accepted, _ = listening.accept()
        with accepted:
            # As if the kernel had made it from a socket that drops.
            drop_new_connections(accepted)
            client.sendall(b"request")
            let_packets_in(accepted)
            accepted.settimeout(10)
            assert accepted.recv(100) == b"request"


def test_a_bound_socket_takes_no_connection_before_it_listens() -> None:
    with run(bind(LOOPBACK, 0)) as bound, pytest.raises(ConnectionRefusedError):
        socket.create_connection(bound.getsockname())


def test_the_socket_that_systemd_passes_is_taken_and_not_passed_on() -> None:
    with _listen() as passed:
        done = subprocess.run(
            [sys.executable, "-c", TAKE, str(passed.fileno())],
            pass_fds=(passed.fileno(),),
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.split() == [str(passed.getsockname()[1]), "False", "False"]


def test_sockets_that_are_for_another_process_are_not_taken() -> None:
    assert take_systemd_socket({"LISTEN_FDS": "1", "LISTEN_PID": "1"}) is None
    assert take_systemd_socket({}) is None


def test_two_sockets_of_systemd_are_one_too_many() -> None:
    with pytest.raises(CannotListen, match="passed 2 sockets"):
        take_systemd_socket({"LISTEN_FDS": "2", "LISTEN_PID": str(os.getpid())})


def test_a_port_that_another_program_has_is_known_before_the_service_starts() -> None:
    with _listen() as listening:
        port = listening.getsockname()[1]
        assert is_taken(LOOPBACK, port)
        assert is_taken("localhost", port)
    assert not is_taken(LOOPBACK, port)
    assert not is_taken(LOOPBACK, 0)
    assert not is_taken("192.0.2.1", port)
