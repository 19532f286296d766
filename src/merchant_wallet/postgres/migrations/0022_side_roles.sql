-- The database roles of the web side and the worker side, and what they may do that only a table's owner can.

-- The role that each side connects as. `migrate` grants again to the roles that stand here, whenever tables change.
create table side_role (
    side text primary key check (side in ('web', 'worker')),
    role_name text not null unique,
    granted_ms bigint not null
);

-- Makes the missing partitions of nonces from one day to another, and gives the days that are new. Only the owner of a
-- table can make a partition, so this runs with its owner's rights.
create function add_nonce_days(first_day int, last_day int) returns int[]
language plpgsql security definer set search_path = public, pg_temp as $$
declare
    made int[] := '{}';
    wanted int;
begin
    if last_day - first_day > 31 then
        raise exception 'at most 32 days at once' using errcode = 'invalid_parameter_value';
    end if;
    -- One maker at a time. Requests go on meanwhile: neither this lock nor attaching a table hinders them, while
    -- CREATE TABLE ... PARTITION OF would wait for all of them and make all others wait behind it.
    lock table nonce in share update exclusive mode;
    for wanted in
        select d from generate_series(first_day, last_day) d
         where not exists (select from pg_inherits i join pg_class c on c.oid = i.inhrelid
                            where i.inhparent = 'nonce'::regclass and c.relname = format('nonce_%s', d))
         order by d
    loop
        execute format('create table %I (like nonce including all)', format('nonce_%s', wanted));
        execute format('alter table nonce attach partition %I for values in (%s)', format('nonce_%s', wanted), wanted);
        made := made || wanted;
    end loop;
    return made;
end
$$;

-- Drops a past day's partition of nonces. Not yesterday's and not today's by the database's clock, whatever the caller's
-- clock says: a request of an older day is refused for its age.
create function drop_nonce_day(old_day int) returns void
language plpgsql security definer set search_path = public, pg_temp as $$
begin
    if old_day >= floor(extract(epoch from clock_timestamp()) / 86400) - 1 then
        raise exception 'nonces of day % are still needed', old_day using errcode = 'invalid_parameter_value';
    end if;
    execute format('drop table if exists %I', format('nonce_%s', old_day));
end
$$;

revoke execute on function add_nonce_days(int, int), drop_nonce_day(int) from public;
