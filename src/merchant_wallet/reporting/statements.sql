-- Queries of statements. No query takes a lock. Each page is read along an index.

-- name: first_entry_from
-- The first entry at or after an id. Times never go back in a journal, so a binary search over ids finds a time without an
-- index on times.
select entry_id, at_ms from entry where merchant_id = %(merchant_id)s and entry_id >= %(from_id)s order by entry_id limit 1;

-- name: last_entry
-- The last entry now. A statement ends there, whatever is written while it is read.
select entry_id from entry where merchant_id = %(merchant_id)s order by entry_id desc limit 1;

-- name: page_account_postings
-- The next postings of one account, outgoing and incoming, each along its own index.
select p.entry_id, e.at_ms, e.kind, e.mc_order_id, p.posting_no, p.source_id, p.target_id, p.currency, p.amount,
       p.source_balance, p.target_balance
  from ((select * from posting where merchant_id = %(merchant_id)s and source_id = %(account_id)s
                                 and entry_id >= %(from_id)s and entry_id < %(until_id)s
                                 and (entry_id, posting_no) > (%(entry_id)s, %(posting_no)s)
          order by entry_id, posting_no limit %(page)s)
        union all
        (select * from posting where merchant_id = %(merchant_id)s and target_id = %(account_id)s
                                 and entry_id >= %(from_id)s and entry_id < %(until_id)s
                                 and (entry_id, posting_no) > (%(entry_id)s, %(posting_no)s)
          order by entry_id, posting_no limit %(page)s)) p
  join entry e on e.merchant_id = p.merchant_id and e.entry_id = p.entry_id
 order by p.entry_id, p.posting_no limit %(page)s;

-- name: page_postings
-- The next postings of the whole book.
select p.entry_id, e.at_ms, e.kind, e.mc_order_id, p.posting_no, p.source_id, p.target_id, p.currency, p.amount,
       p.source_balance, p.target_balance
  from posting p join entry e on e.merchant_id = p.merchant_id and e.entry_id = p.entry_id
 where p.merchant_id = %(merchant_id)s and p.entry_id >= %(from_id)s and p.entry_id < %(until_id)s
   and (p.entry_id, p.posting_no) > (%(entry_id)s, %(posting_no)s)
 order by p.entry_id, p.posting_no limit %(page)s;
