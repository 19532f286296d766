"""Cold money: what may stay in the hot wallets, the cold wallets, and transfers between the two.

- `limits` says what should move (pure). `wallets` has the SQL of cold wallets and limits, `store` that of
  transfers. `signatures` checks bytes that were signed elsewhere. `worker` executes transfers.
- `two_person_changes` has the kinds of proposals. Nothing here changes without a second person.
- A transfer concerns no book: the money is in the platform's custody before and after.
- `chains.cold` is the part of a chain that this uses besides payouts.
"""
