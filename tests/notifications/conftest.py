"""The scene of the tests of notifications."""

from collections.abc import Awaitable, Callable

import pytest
from tests.callbacks.conftest import CallbackScene, InScene, in_scene
from tests.notifications.scene import NotifierScene

__all__ = ["in_scene"]

Scenario = Callable[[NotifierScene], Awaitable[None]]
Run = Callable[[Scenario], None]


@pytest.fixture
def tells(in_scene: InScene) -> Run:
    """Runs a scenario in a fresh scene."""

    def run(scenario: Scenario) -> None:
        async def with_scene(callbacks: CallbackScene) -> None:
            await scenario(NotifierScene(callbacks))

        in_scene(with_scene)

    return run
