-- The two functions that run with their owner's rights, written so that a side's role in wrong hands gains nothing by them.
--
-- Schema public is not in their search path, and every name in it is qualified. Somebody who may create functions in public
-- could otherwise add a closer match to a call, such as public.format(text, int), and have it run with the owner's rights:
-- PostgreSQL prefers the closest match of all schemas in the path, not the first one.

-- Makes the missing partitions of nonces from one day to another, and gives the days that are new. Only the owner of a
-- table can make a partition, so this runs with its owner's rights. A side needs yesterday to tomorrow by its own machine's
-- clock. That clock may differ from the database's by a week at most; further days are refused. The owner may make any day.
create or replace function add_nonce_days(first_day int, last_day int) returns int[]
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    today bigint := floor(extract(epoch from clock_timestamp()) / 86400);
    made int[] := '{}';
    wanted int;
begin
    if last_day::bigint - first_day > 31 then
        raise exception 'at most 32 days at once' using errcode = 'invalid_parameter_value';
    end if;
    if (first_day < today - 8 or last_day > today + 8) and not pg_has_role(session_user, current_user, 'member') then
        raise exception 'nonces of days % to % are too far from the database''s day %: compare the clocks',
            first_day, last_day, today using errcode = 'invalid_parameter_value';
    end if;
    -- One maker at a time. Requests go on meanwhile: neither this lock nor attaching a table hinders them, while
    -- CREATE TABLE ... PARTITION OF would wait for all of them and make all others wait behind it.
    lock table public.nonce in share update exclusive mode;
    for wanted in
        select d from generate_series(first_day, last_day) d
         where not exists (select from pg_inherits i join pg_class c on c.oid = i.inhrelid
                            where i.inhparent = 'public.nonce'::regclass and c.relname = format('nonce_%s', d))
         order by d
    loop
        execute format('create table public.%I (like public.nonce including all)', format('nonce_%s', wanted));
        execute format('alter table public.nonce attach partition public.%I for values in (%s)',
                       format('nonce_%s', wanted), wanted);
        made := made || wanted;
    end loop;
    return made;
end
$$;

-- Drops a past day's partition of nonces. Not yesterday's and not today's by the database's clock, whatever the caller's
-- clock says: a request of an older day is refused for its age.
create or replace function drop_nonce_day(old_day int) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    if old_day >= floor(extract(epoch from clock_timestamp()) / 86400) - 1 then
        raise exception 'nonces of day % are still needed', old_day using errcode = 'invalid_parameter_value';
    end if;
    execute format('drop table if exists public.%I', format('nonce_%s', old_day));
end
$$;
