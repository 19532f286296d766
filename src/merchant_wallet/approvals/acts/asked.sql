-- Asked acts, in home. `asked.py` runs these.

-- fragment: columns
-- The columns of an act.
act_no, kind, subject, merchant_id, arguments, reason, asked_by, asked_ms, expires_ms, state, fence, worker, begun_ms, progress,
result, cause, ended_ms

-- name: ask
-- An act that waits for a worker. Nothing if the same is under way.
insert into asked_act (kind, subject, merchant_id, arguments, reason, asked_by, asked_ms, expires_ms)
values (%(kind)s::text, %(subject)s::text, %(merchant_id)s::bigint, %(arguments)s::jsonb, %(reason)s::text, %(asked_by)s::text,
        %(asked_ms)s::bigint, %(expires_ms)s::bigint)
    on conflict (kind, subject) where ended_ms is null do nothing
returning {columns};

-- name: find_open
-- The act of this kind and subject that is under way.
select {columns} from asked_act where kind = %(kind)s::text and subject = %(subject)s::text and ended_ms is null;

-- name: read
-- One act.
select {columns} from asked_act where act_no = %(act_no)s::bigint;

-- name: list_last
-- The newest acts, before a number.
select {columns} from asked_act where act_no < %(before_no)s::bigint order by act_no desc limit %(limit)s::int;

-- name: list_last_of
-- The newest acts about one subject.
select {columns} from asked_act where subject = %(subject)s::text order by act_no desc limit %(limit)s::int;

-- name: cancel
-- Ends an act that no worker has begun.
update asked_act set state = 'cancelled', ended_ms = %(now_ms)s::bigint
 where act_no = %(act_no)s::bigint and state = 'waiting' and begun_ms is null
returning {columns};

-- name: lapse
-- Ends an act that nobody began in time, or whose worker has been away for as long.
update asked_act
   set state = 'lapsed', ended_ms = %(now_ms)s::bigint, cause = case when begun_ms is null then %(nobody)s::text else %(lost)s::text end
 where act_no in (select act_no from asked_act
                   where ended_ms is null
                     and (state = 'waiting' and expires_ms < %(now_ms)s::bigint
                          or state = 'running' and claimed_until_ms < %(now_ms)s::bigint - %(lasts_ms)s::bigint)
                   for update skip locked)
returning {columns};

-- name: claim
-- Takes one act that waits, or whose worker has not been heard of. The fence is the number of the claim.
update asked_act a
   set state = 'running', fence = a.fence + 1, worker = %(worker)s::text, progress = '',
       begun_ms = coalesce(a.begun_ms, %(now_ms)s::bigint), claimed_until_ms = %(until_ms)s::bigint
  from (select act_no from asked_act
         where ended_ms is null and kind = any(%(kinds)s::text[])
           and (state = 'waiting' or claimed_until_ms < %(now_ms)s::bigint)
         order by act_no limit 1 for update skip locked) mine
 where a.act_no = mine.act_no
returning a.act_no, a.kind, a.subject, a.merchant_id, a.arguments, a.reason, a.asked_by, a.asked_ms, a.expires_ms, a.state, a.fence,
          a.worker, a.begun_ms, a.progress, a.result, a.cause, a.ended_ms;

-- name: keep
-- Keeps a claim for longer, and says how far the act is.
update asked_act set claimed_until_ms = %(until_ms)s::bigint, progress = coalesce(%(progress)s::text, progress)
 where act_no = %(act_no)s::bigint and fence = %(fence)s::int and state = 'running';

-- name: lock_claim
-- Whether the worker still has the newest claim, and keeps it until the transaction ends.
select 1 from asked_act where act_no = %(act_no)s::bigint and fence = %(fence)s::int and state = 'running' for update;

-- name: give_back
-- The worker stops: another may take the act at once, but not long after.
update asked_act
   set state = 'waiting', worker = null, claimed_until_ms = null, expires_ms = greatest(expires_ms, %(until_ms)s::bigint)
 where act_no = %(act_no)s::bigint and fence = %(fence)s::int and state = 'running';

-- name: finish
-- The outcome of an act, by the worker that has the newest claim.
update asked_act
   set state = %(state)s::text, result = %(result)s::jsonb, cause = %(cause)s::text, ended_ms = %(now_ms)s::bigint
 where act_no = %(act_no)s::bigint and fence = %(fence)s::int and state = 'running'
returning {columns};
