"""The simulator: a world of merchants, operators and faults around the real service, from one seed.

`make simulate SEED=7 MINUTES=2` runs it. See docs/reliability.md.
"""
