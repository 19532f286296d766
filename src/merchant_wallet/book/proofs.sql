-- The statements by which a foreseen batch proves what it was judged on. Each fails the batch unless the book is as it was
-- foreseen, by reading a sentence as a number: that is what the database's log then shows, and it is no fault.
-- `proofs.py` runs them; each names one merchant first.

-- name: claim_book
-- Takes the book's lock and moves the book on, only from the head that the batch was judged on. The book's clock may
-- have moved since, but not past the batch's own moment.
with changed as (
    update book
       set last_ms = $2::bigint, id_range = $3::int, id_counter = $4::bigint, next_range = $5::int, entry_count = $6::bigint,
           head_hash = $7::bytea, settings_version = $8::bigint, withdrawn_day = $9::int, withdrawn_units = $10::bigint
     where merchant_id = $1::bigint and last_ms <= $2::bigint and id_range = $11::int and id_counter = $12::bigint
       and next_range is not distinct from $13::int and entry_count = $14::bigint and head_hash = $15::bytea
       and settings_version = $16::bigint and withdrawn_day = $17::int and withdrawn_units = $18::bigint
    returning 1)
select (case when count(*) = 1 then '1' else 'not as foreseen: the batch is read now' end)::int from changed;

-- name: prove_new
-- None of the batch's nonces was used in any day that is still kept, and no order id of it is known.
select (case when exists (select 1 from nonce where merchant_id = $1::bigint and nonce = any($2::text[]))
               or exists (select 1 from unnest($3::text[]) u
                           cross join lateral (select 1 from entry where merchant_id = $1::bigint and mc_order_id = u
                                                  and kind = any($4::text[]) limit 1) e)
             then 'not as foreseen: the batch is read now' else '1' end)::int;

-- name: prove_sub_users
-- What can change about sub-users without an entry in the journal is as it was.
select (case when count(*) = $8::bigint then '1' else 'not as foreseen: the batch is read now' end)::int
  from unnest($2::bigint[], $3::text[], $4::boolean[], $5::bigint[], $6::bigint[], $7::boolean[])
       u (user_id, username, paused, limit_debit_units, limit_day_units, has_pin)
 cross join lateral (select username, paused, limit_debit_units, limit_day_units, pin_hash from sub_user
                      where merchant_id = $1::bigint and user_id = u.user_id limit 1) s
 where s.username = u.username and s.paused = u.paused and (s.pin_hash is not null) = u.has_pin
   and s.limit_debit_units is not distinct from u.limit_debit_units
   and s.limit_day_units is not distinct from u.limit_day_units;

-- name: prove_accounts
-- Balances that the batch looked at and leaves alone; day and day_debited of sub-users.
select (case when count(*) = $6::bigint then '1' else 'not as foreseen: the batch is read now' end)::int
  from unnest($2::bigint[], $3::bigint[], $4::int[], $5::bigint[]) u (account_id, balance, day, day_debited)
 cross join lateral (select balance, day, day_debited from account
                      where merchant_id = $1::bigint and account_id = u.account_id limit 1) a
 where a.balance = u.balance and (u.day is null or (a.day = u.day and a.day_debited = u.day_debited));

-- name: update_seen_accounts
-- The balances after the batch, each only from the one that it was judged on; day and day_debited of sub-users.
with changed as (
    update account a
       set balance = u.balance, day = coalesce(u.day, a.day), day_debited = coalesce(u.day_debited, a.day_debited)
      from unnest($2::bigint[], $3::bigint[], $4::int[], $5::bigint[], $6::bigint[], $7::int[], $8::bigint[])
           u (account_id, seen_balance, seen_day, seen_day_debited, balance, day, day_debited)
     where a.merchant_id = $1::bigint and a.account_id = u.account_id and a.balance = u.seen_balance
       and (u.seen_day is null or (a.day = u.seen_day and a.day_debited = u.seen_day_debited))
    returning 1)
select (case when count(*) = $9::bigint then '1' else 'not as foreseen: the batch is read now' end)::int from changed;
