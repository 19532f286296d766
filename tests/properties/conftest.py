"""The running service of the journeys, for the state machine."""

from tests.journeys.conftest import clock, platform

__all__ = ["clock", "platform"]
