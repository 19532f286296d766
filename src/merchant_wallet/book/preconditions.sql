-- The preconditions of an optimistic batch. Each fails the batch unless the book is as the cache has it.
-- To fail, a statement casts a sentence to a number. PostgreSQL's log then shows that sentence. It is no error of the service.
-- Most of a statement's cost is fixed, so there are few: the first takes the lock, since everything else must be read after it,
-- and one more does nearly all the rest.
-- `preconditions.py` runs them. The first parameter is always the merchant.

-- name: check_and_advance_book
-- Takes the book's lock and writes the new head, only if the head is the one that the batch was judged on (compare and swap).
-- The book's clock may have moved since, but not past the batch's own time.
with changed as (
    update book
       set last_ms = $2::bigint, id_range = $3::int, id_counter = $4::bigint, next_range = $5::int, entry_count = $6::bigint,
           head_hash = $7::bytea, settings_version = $8::bigint, withdrawn_day = $9::int, withdrawn_units = $10::bigint
     where merchant_id = $1::bigint and last_ms <= $2::bigint and id_range = $11::int and id_counter = $12::bigint
       and next_range is not distinct from $13::int and entry_count = $14::bigint and head_hash = $15::bytea
       and settings_version = $16::bigint and withdrawn_day = $17::int and withdrawn_units = $18::bigint
    returning 1)
select (case when count(*) = 1 then '1' else 'conflict: the book has changed, the batch runs again' end)::int from changed;

-- name: check_accounts
-- Checks balances that the batch read but did not change, and `day` and `day_debited` of sub-users.
select (case when count(*) = $6::bigint then '1' else 'conflict: the book has changed, the batch runs again' end)::int
  from unnest($2::bigint[], $3::bigint[], $4::int[], $5::bigint[]) u (account_id, balance, day, day_debited)
 cross join lateral (select balance, day, day_debited from account
                      where merchant_id = $1::bigint and account_id = u.account_id limit 1) a
 where a.balance = u.balance and (u.day is null or (a.day = u.day and a.day_debited = u.day_debited));

-- name: write_optimistic
-- Checks that no nonce of the batch was used on any day that is still kept, that no order id of it was used, and that the
-- sub-users are as cached in everything that can change without an entry in the journal.
-- Then inserts the nonces and the batch's own id, appends to the journal, and writes the new balances, each only if the old
-- balance is the cached one.
-- The checks see the book as it was before this statement. `unnest` is called in the select list, since in FROM it costs more.
-- Accounts are found by their whole key first, as in `update_accounts`.
with claimed as (
    insert into nonce (merchant_id, nonce, day) select $1::bigint, unnest($3::text[]), $2::int),
appended as (
    insert into entry (merchant_id, entry_id, kind, mc_order_id, at_ms, rate_e8, facts, hash)
    select $1::bigint, unnest($4::bigint[]), unnest($5::text[]), unnest($6::text[]), unnest($7::bigint[]), unnest($8::bigint[]),
           unnest($9::text[]), unnest($10::bytea[])),
moved as (
    insert into posting (merchant_id, entry_id, posting_no, source_id, target_id, currency, amount, source_balance, target_balance)
    select $1::bigint, unnest($11::bigint[]), unnest($12::smallint[]), unnest($13::bigint[]), unnest($14::bigint[]),
           unnest($15::text[]), unnest($16::bigint[]), unnest($17::bigint[]), unnest($18::bigint[])),
changed as (
    update account a
       set balance = u.balance, day = coalesce(u.day, a.day), day_debited = coalesce(u.day_debited, a.day_debited)
      from (select unnest($19::bigint[]) as account_id, unnest($20::bigint[]) as seen_balance, unnest($21::int[]) as seen_day,
                   unnest($22::bigint[]) as seen_day_debited, unnest($23::bigint[]) as balance, unnest($24::int[]) as day,
                   unnest($25::bigint[]) as day_debited) u
     cross join lateral (select ctid as tid from account
                          where merchant_id = $1::bigint and account_id = u.account_id and balance = u.seen_balance
                            and (u.seen_day is null or (day = u.seen_day and day_debited = u.seen_day_debited)) limit 1) s
     where a.ctid = s.tid
    returning 1)
select (case when (select count(*) from changed) = $26::bigint
            and not exists (select 1 from nonce where merchant_id = $1::bigint and nonce = any($27::text[]))
            and not exists (select 1 from (select unnest($28::text[]) as mc_order_id) u
                             cross join lateral (select 1 from entry where merchant_id = $1::bigint and mc_order_id = u.mc_order_id
                                                    and kind = any($29::text[]) limit 1) e)
            and (select count(*) = $31::bigint
                   from (select unnest($30::bigint[]) as user_id, {seen}) u
                  cross join lateral (select {compared} from sub_user s
                                       where s.merchant_id = $1::bigint and s.user_id = u.user_id limit 1) s
                  where {is_as_seen})
             then '1' else 'conflict: the book has changed, the batch runs again' end)::int;

-- name: write_optimistic_transfer
-- The same for the most common batch at low load: one transfer without a fee. Without arrays it costs a fifth less.
with claimed as (
    insert into nonce (merchant_id, nonce, day) values ($1::bigint, $3::text, $2::int), ($1::bigint, $4::text, $2::int)),
appended as (
    insert into entry (merchant_id, entry_id, kind, mc_order_id, at_ms, rate_e8, facts, hash)
    values ($1::bigint, $5::bigint, $6::text, $7::text, $8::bigint, $9::bigint, $10::text, $11::bytea)),
moved as (
    insert into posting (merchant_id, entry_id, posting_no, source_id, target_id, currency, amount, source_balance, target_balance)
    values ($1::bigint, $5::bigint, 1, $12::bigint, $13::bigint, $14::text, $15::bigint, $16::bigint, $17::bigint)),
changed as (
    update account
       set balance = case when account_id = $12::bigint then $16::bigint else $17::bigint end,
           day = coalesce(case when account_id = $12::bigint then $21::int else $26::int end, day),
           day_debited = coalesce(case when account_id = $12::bigint then $22::bigint else $27::bigint end, day_debited)
     where merchant_id = $1::bigint and account_id in ($12::bigint, $13::bigint)
       and case when account_id = $12::bigint
                then balance = $18::bigint and ($19::int is null or (day = $19::int and day_debited = $20::bigint))
                else balance = $23::bigint and ($24::int is null or (day = $24::int and day_debited = $25::bigint)) end
    returning 1)
select (case when (select count(*) from changed) = 2
            and not exists (select 1 from nonce where merchant_id = $1::bigint and nonce = $4::text)
            and not exists (select 1 from entry where merchant_id = $1::bigint and mc_order_id = $7::text and kind = $6::text)
            and exists (select 1 from sub_user s
                         where s.merchant_id = $1::bigint and s.user_id = $28::bigint and {is_as_seen_one})
             then '1' else 'conflict: the book has changed, the batch runs again' end)::int;
