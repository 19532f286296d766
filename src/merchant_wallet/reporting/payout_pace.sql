-- How fast each chain's payouts go. `payout_pace.py` runs this in each cell.

-- name: sample_paid
-- The newest orders of each chain that were paid since a time, up to a bound: how many, how much left, and the oldest of them.
select c.chain, count(p.created_ms) as orders, coalesce(sum(p.paid), 0) as units, min(p.created_ms) as first_ms
  from unnest(%(chains)s::text[]) c (chain)
  left join lateral (select w.created_ms, w.amount - w.fee as paid from withdrawal w
                      where w.status = 2 and w.chain = c.chain and w.created_ms >= %(since_ms)s::bigint and w.{open_books}
                      order by w.created_ms desc limit %(most)s::int) p on true
 group by c.chain;
