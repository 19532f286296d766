"""Hot wallets: the nonces, the balance and the stops that everything signed with one key shares.

`nonces` gives nonces out, `funds` reserves, `stops` says why nothing may be signed, `wallet` asks the chain,
and `store` has the wallets' rows. What is paid, and what it means when it is final, is the slices'.
"""
