"""Chains that the service simulates. They move no real money."""
