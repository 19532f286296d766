-- What a sub-user sees of its wallet. Nothing here locks. `activity.py` runs these.

-- name: page_activity
-- The newest entries below an id that touch a wallet. The ids come from both indexes of posting, a page from each. An entry
-- takes from a wallet in at most two postings, so twice as many are read from that index. Then each entry is looked up.
select e.entry_id, e.kind, e.at_ms, m.is_in, m.amount_units, m.currency, m.balance_units, e.mc_order_id, e.rate_e8, e.facts,
       t.name as merchant_name, d.chain, d.tx_hash, d.sender, d.amount as sent_units
  from ((select p.entry_id from posting p
          where %(takes_in)s::boolean and p.merchant_id = %(merchant_id)s::bigint and p.target_id = %(user_id)s::bigint
            and p.entry_id < %(before_id)s::bigint
          order by p.entry_id desc limit %(limit)s::int)
        union
        (select p.entry_id from posting p
          where %(takes_out)s::boolean and p.merchant_id = %(merchant_id)s::bigint and p.source_id = %(user_id)s::bigint
            and p.entry_id < %(before_id)s::bigint
          order by p.entry_id desc limit 2 * %(limit)s::int)
        order by entry_id desc limit %(limit)s::int) f
 cross join lateral (
       select x.kind, x.entry_id, x.at_ms, x.mc_order_id, x.rate_e8, x.facts from entry x
        where x.merchant_id = %(merchant_id)s::bigint and x.entry_id = f.entry_id limit 1) e
 cross join lateral (
       select bool_or(p.target_id = %(user_id)s::bigint) as is_in, sum(p.amount)::bigint as amount_units,
              min(p.currency) as currency,
              (array_agg(case when p.target_id = %(user_id)s::bigint then p.target_balance else p.source_balance end
                         order by p.posting_no desc))[1] as balance_units
         from posting p
        where p.merchant_id = %(merchant_id)s::bigint and p.entry_id = f.entry_id
          and (p.source_id = %(user_id)s::bigint or p.target_id = %(user_id)s::bigint)) m
  join merchant t on t.merchant_id = %(merchant_id)s::bigint
  left join lateral (
       select a.chain, a.tx_hash, a.sender, a.amount
         from deposit_credit c
         join deposit a on a.merchant_id = c.merchant_id and a.chain = c.chain and a.tx_hash = c.tx_hash
                       and a.log_index = c.log_index
        where c.merchant_id = %(merchant_id)s::bigint and c.entry_id = f.entry_id limit 1) d on true
 order by e.entry_id desc;

-- name: find_first_entry
-- When the first entry of a wallet was made. No row: there is none.
select e.at_ms
  from ((select p.entry_id from posting p
          where p.merchant_id = %(merchant_id)s::bigint and p.target_id = %(user_id)s::bigint
          order by p.entry_id limit 1)
        union all
        (select p.entry_id from posting p
          where p.merchant_id = %(merchant_id)s::bigint and p.source_id = %(user_id)s::bigint
          order by p.entry_id limit 1)
        order by entry_id limit 1) f
 cross join lateral (
       select x.at_ms from entry x
        where x.merchant_id = %(merchant_id)s::bigint and x.entry_id = f.entry_id limit 1) e;

-- name: read_wallet
-- The summary: the sub-user, the balance, the controls, and the id of the latest entry.
select s.merchant_id, s.user_id, s.ext_user_id, s.username, s.language, a.currency, a.balance as balance_units, s.evm_address,
       s.tron_address, {controls}, a.day, a.day_debited as day_debited_units,
       s.pin_hash is not null as has_pin, s.pin_set_ms, s.pin_locked_until_ms, s.links_void_until_ms, m.name as merchant_name,
       m.require_pin, m.status = 'suspended' as is_suspended, m.frame_origins, l.latest_entry_id
  from sub_user s
  join account a on a.merchant_id = s.merchant_id and a.account_id = s.user_id
  join merchant m on m.merchant_id = s.merchant_id
 cross join lateral (select coalesce(greatest(
       (select p.entry_id from posting p where p.merchant_id = s.merchant_id and p.source_id = s.user_id
         order by p.entry_id desc limit 1),
       (select p.entry_id from posting p where p.merchant_id = s.merchant_id and p.target_id = s.user_id
         order by p.entry_id desc limit 1)), 0) as latest_entry_id) l
 where s.merchant_id = %(merchant_id)s::bigint and s.user_id = %(user_id)s::bigint;

-- name: read_balances
-- Balances and latest entries of many wallets by primary key: one query for all open pages.
select k.merchant_id, k.user_id, a.balance as balance_units, l.latest_entry_id
  from unnest(%(merchant_ids)s::bigint[], %(user_ids)s::bigint[]) k (merchant_id, user_id)
 cross join lateral (
       select x.balance from account x
        where x.merchant_id = k.merchant_id and x.account_id = k.user_id and x.kind = 'subuser' limit 1) a
 cross join lateral (select coalesce(greatest(
       (select p.entry_id from posting p where p.merchant_id = k.merchant_id and p.source_id = k.user_id
         order by p.entry_id desc limit 1),
       (select p.entry_id from posting p where p.merchant_id = k.merchant_id and p.target_id = k.user_id
         order by p.entry_id desc limit 1)), 0) as latest_entry_id) l;
