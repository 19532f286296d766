"""The running service of the journeys, for the machine that drives it."""

from tests.journeys.conftest import clock, platform

__all__ = ["clock", "platform"]
