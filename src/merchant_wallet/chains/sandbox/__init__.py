"""Chains that the service plays itself. They move no real money."""
