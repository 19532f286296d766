"""The chains that withdrawals go to and deposits come from.

Rules: nothing in here knows a merchant or SQL. `addresses` is pure.
"""
