"""PostgreSQL ends, once, again and for longer. `up` starts it each time and leaves web and worker alone."""

import asyncio
import os
import signal

from tests.crash.client import CUT_SHORT, Client
from tests.crash.service import Service
from tests.crash.shop import run
from tests.waits import wait_until

AWAY = {50300, CUT_SHORT}


def _client(service: Service) -> Client:
    return Client(service.url, service.app_key, service.secret)


def _balance_code(service: Service) -> int:
    return int(run(_client(service).ask_once("getMerchantBalance"))["code"])


def _sides(service: Service) -> tuple[int, int]:
    return service.side("serve"), service.side("work")


def _kill_database(service: Service) -> int:
    """kill -9 the postmaster; returns its pid."""
    killed = service.postmaster()
    os.kill(killed, signal.SIGKILL)
    return killed


def _until_restarted(service: Service, killed: int) -> None:
    """Wait until a new postmaster was started."""
    wait_until(lambda: _noted(service) not in (killed, None), "PostgreSQL was started again")


def _noted(service: Service) -> int | None:
    note = service.data / "postgres" / "postmaster.pid"
    try:
        words = note.read_text().split()
    except FileNotFoundError:
        return None
    return int(words[0]) if words else None


def test_a_database_that_dies_again_while_it_starts_comes_back_under_the_sides_that_were_there(
    service: Service,
) -> None:
    service.start()
    sides, url = _sides(service), service.database_url()

    for _ in range(3):
        _until_restarted(service, _kill_database(service))

    wait_until(lambda: _balance_code(service) == 200, "the book answers again")
    assert service.database_url() == url
    assert _sides(service) == sides
    assert service.stop() == 0
    wait_until(lambda: not service.leavings(), "nothing is left running")


def test_a_database_that_cannot_start_is_tried_until_it_can(service: Service) -> None:
    service.start()
    sides = _sides(service)
    control = service.data / "postgres" / "global" / "pg_control"
    hidden = control.rename(control.with_name("pg_control.hidden"))

    _kill_database(service)

    wait_until(lambda: service.errors().count("PostgreSQL ended by itself") >= 3, "it was tried again")
    # Refused at once, by the same process as before.
    assert _balance_code(service) == 50300
    hidden.rename(control)
    wait_until(lambda: _balance_code(service) == 200, "the book answers again")
    assert _sides(service) == sides
    assert service.stop() == 0


def test_it_stops_in_order_while_the_database_is_away(service: Service) -> None:
    service.start()
    control = service.data / "postgres" / "global" / "pg_control"
    control.rename(control.with_name("pg_control.hidden"))
    _kill_database(service)
    wait_until(lambda: "PostgreSQL ended by itself" in service.errors(), "its end was noticed")

    assert service.stop() == 0
    wait_until(lambda: not service.leavings(), "nothing is left running")
    assert not (service.data / "runtime.json").exists()


def test_money_moves_through_two_deaths_of_the_database(service: Service) -> None:
    service.start()

    async def scenario() -> None:
        client = _client(service)
        await client.learn_address()
        for death in range(2):
            load = asyncio.create_task(client.credit_all([f"order-{death}-{n}" for n in range(300)]))
            await client.until_answered(len(client.answers) + 50)
            _kill_database(service)
            await load
        assert set(client.heard) <= {200, *AWAY}
        assert all(len(set(entries)) == 1 for entries in client.answers.values())
        assert len(client.answers) == 600

    run(scenario())
    assert service.stop() == 0
