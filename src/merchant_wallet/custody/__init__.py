"""What the platform holds on its chains, and what its books say that it should: read, compared, explained.

Rules: `comparison` and `statement` are pure; `records` has the SQL of the books' side and of what is
remembered, `holdings` asks the chains, `sandbox` plays them. Nothing here moves money.
"""
