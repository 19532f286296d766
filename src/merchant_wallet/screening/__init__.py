"""Screening: what must be known of an address before an order is paid, or before a deposit is credited.

`screening_states` is the life of a screening, `payout_rules` judges a merchant's rules, `address_list` is the
list in a file, and `hook` asks a URL. `screener` joins them, `store` keeps what was asked and answered, and
`decisions` is what people do about it.
"""
