"""Finance: reports of days and months, closed months, invoices, and files for accountants.

Rules:
- Days and months are UTC. A month of a book is the same as in the archive.
- Every report follows from `daily_movement`: opening + in - out = closing for each account and currency, and
  all accounts of a currency add up to zero.
- A month is prepared when all its entries are added up and agree with the books' balances. Two people close
  it. Then it is signed, and its fees get invoices.
- Amounts are units. In documents they are decimal strings.

Modules:
- periods: days and months
- movements: reads the movements of a period
- reports: opening and closing balances of a period
- months: prepares months, and keeps them
- signing: signs the months that were accepted, and makes their invoices
- closing: the proposals to close a month, and to restate a closed one
- invoices: invoices of fees, numbered without gaps
- verification: finds a closed month that the journal no longer gives
- desk: position, result and valuation of the exchange desk
- solvency: what is owed and what is held, now and over time
- network_fees: gas and energy that the platform has paid
- accounting_rows, exports: files for accountants
"""
