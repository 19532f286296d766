-- Long jobs that rewrite or copy books. `jobs.py` runs these in home.

-- fragment: is_alive
-- Whether the session of a job's command lives. Its lock shows it: the two numbers are classid and objid.
exists (select from pg_locks l
         where l.locktype = 'advisory' and l.objsubid = 2 and l.granted
           and l.database = (select oid from pg_database where datname = current_database())
           and l.classid = (hashtext('job')::bigint & 4294967295)::oid and l.objid = j.job_id::oid)

-- name: has_table
-- Whether the database knows jobs. Before its migration it does not.
select to_regclass('job') is not null;

-- name: read_cell
-- The cell that has a merchant's book.
select cell_id from merchant where merchant_id = %(merchant_id)s::bigint;

-- name: drop_dead
-- Jobs in the way whose commands are dead.
delete from job j where j.scope && %(scope)s::int8multirange and not
{is_alive};

-- name: begin
-- A new job, unless another one has a part of its scope. The constraint `job_alone` decides.
insert into job (kind, scope, subject, actor, began_ms)
values (%(kind)s::text, %(scope)s::int8multirange, %(subject)s::text, %(actor)s::text,
        (extract(epoch from clock_timestamp()) * 1000)::bigint)
on conflict on constraint job_alone do nothing returning job_id;

-- name: lock
-- Show that the job's command lives. The lock ends with the session: soon, if the machine of the command is gone, and not because
-- the session waits for its command.
select pg_advisory_lock(hashtext('job'), %(job_id)s::int), set_config('tcp_keepalives_idle', '15', false),
       set_config('tcp_keepalives_interval', '5', false), set_config('tcp_keepalives_count', '3', false),
       set_config('idle_session_timeout', '0', false);

-- name: unlock
-- The job has ended.
select pg_advisory_unlock(hashtext('job'), %(job_id)s::int);

-- name: end
-- The job has ended.
delete from job where job_id = %(job_id)s::int;

-- name: list_in_the_way
-- The jobs that have a part of a scope, oldest first.
select j.job_id, j.kind, j.subject, j.actor, j.began_ms from job j where j.scope && %(scope)s::int8multirange and
{is_alive}
 order by j.began_ms, j.job_id;

-- name: list_all
-- All jobs whose commands live, oldest first.
select j.job_id, j.kind, j.subject, j.actor, j.began_ms from job j where
{is_alive}
 order by j.began_ms, j.job_id;
