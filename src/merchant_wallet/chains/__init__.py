"""The chains that withdrawals go to and deposits come from.

Rule: nothing here knows a merchant or SQL.
"""
