-- An operator's reference, such as a bank's number, names one entry of a book: a credit, a debit or fees that were taken out.

-- The index on order ids allows a name once for each kind of entry; a reference is one over both kinds.
create unique index entry_reference on entry (merchant_id, mc_order_id)
 where mc_order_id is not null and kind in ('adjust', 'fee_withdraw');
