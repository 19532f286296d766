"""Test vectors for clients: requests, answers and callbacks with their signatures, and the table of codes.

Rules:
- `rules.py` follows docs/integrating.md and imports nothing of the service. So an error in one of the two
  shows as a difference.
- The same code writes the same bytes: there is no clock and no randomness.
- Each case says by hand whether it is right. `__main__.py` refuses to write a case whose rules say otherwise.
"""
