-- What a template has so that its copies can be emptied and used again (`recycled_databases.py`).

drop schema if exists recycling cascade;

create schema recycling;

create table recycling.ddl (tag text);

create table recycling.seeded_table (seeded regclass);

create table recycling.sequence_value (sequence regclass, last_value bigint);

-- The partitions of nonces that a copy keeps. They have the same oids in each copy.
create table recycling.nonce_partition (partition oid);

create view recycling.found_nonce_partition as
select i.inhrelid as partition
from pg_inherits i
join pg_class c on c.oid = i.inhparent
where c.relname = 'nonce' and c.relkind = 'p';

-- Any change of the schema is noted, but for temporary tables and the partitions of nonces: tests make those of
-- their days.
create function recycling.note_ddl() returns event_trigger language plpgsql security definer
set search_path = pg_catalog as $$
begin
    insert into recycling.ddl
    select command_tag || ' ' || object_identity
    from pg_event_trigger_ddl_commands()
    where schema_name is distinct from 'pg_temp' and coalesce(object_identity, '') !~ '\.nonce(_|$)';
end $$;

create function recycling.note_drop() returns event_trigger language plpgsql security definer
set search_path = pg_catalog as $$
begin
    insert into recycling.ddl
    select 'DROP ' || object_identity
    from pg_event_trigger_dropped_objects()
    where not is_temporary and object_identity !~ '\.nonce(_|$)';
end $$;

create function recycling.list_filled() returns setof regclass language sql as $$
    select c.oid::regclass
    from pg_class c
    join pg_namespace n on n.oid = c.relnamespace
    where c.relkind = 'r'
        and c.relpersistence <> 't'
        and n.nspname not like 'pg\_%'
        and n.nspname not in ('information_schema', 'recycling')
        and pg_relation_size(c.oid) > 0
$$;

create function recycling.find_obstacle(kept_pids integer[], filled oid[]) returns text language plpgsql as $$
begin
    if exists (select from recycling.ddl) then
        return (select min(tag) from recycling.ddl);
    end if;
    if exists (
        select from pg_db_role_setting s join pg_database d on d.oid = s.setdatabase
        where d.datname = current_database()
    ) then
        return 'settings of the database';
    end if;
    if exists (
        select from pg_class where relkind = 'r' and reltuples >= 0 and relnamespace = 'public'::regnamespace
    ) then
        return 'statistics';
    end if;
    if exists (
        select from pg_stat_activity
        where datname = current_database()
            and backend_type = 'client backend'
            and pid <> pg_backend_pid()
            and pid <> all(kept_pids)
    ) then
        return 'sessions';
    end if;
    if exists (table recycling.nonce_partition except table recycling.found_nonce_partition) then
        return 'nonces of usual days have no partition';
    end if;
    if (select sum(pg_relation_size(one)) from unnest(filled) one) > 4000000 then
        return 'size';
    end if;
    return '';
end $$;

-- Makes the database as the template is. Returns why it can't be, or an empty text.
create function recycling.empty(kept_pids integer[]) returns text language plpgsql as $$
declare
    all_filled oid[] = array(select recycling.list_filled());
    obstacle text = recycling.find_obstacle(kept_pids, all_filled);
    filled regclass;
    is_changed boolean;
    used record;
begin
    if obstacle <> '' then
        return obstacle;
    end if;
    -- No trigger fires, and no foreign key is checked.
    perform set_config('session_replication_role', 'replica', true);
    for filled in select unnest(all_filled) except select seeded from recycling.seeded_table loop
        execute format('delete from %s', filled);
    end loop;
    for filled in table recycling.seeded_table loop
        execute format(
            'select exists ((table %1$s except all table %2$s) union all (table %2$s except all table %1$s))',
            filled,
            'recycling.' || quote_ident('rows of ' || filled::text)
        ) into is_changed;
        if is_changed then
            execute format('delete from %s', filled);
            execute format(
                'insert into %s overriding system value table recycling.%I', filled, 'rows of ' || filled::text
            );
        end if;
    end loop;
    for filled in
        table recycling.found_nonce_partition except table recycling.nonce_partition
    loop
        execute format('drop table %s', filled);
    end loop;
    for used in
        select sequence, last_value from recycling.sequence_value
        where last_value is distinct from pg_sequence_last_value(sequence)
    loop
        perform setval(
            used.sequence,
            coalesce(used.last_value, (select seqstart from pg_sequence where seqrelid = used.sequence)),
            used.last_value is not null
        );
    end loop;
    return '';
end $$;

do $$
declare filled regclass;
begin
    for filled in select recycling.list_filled() loop
        execute format('create table recycling.%I as table %s', 'rows of ' || filled::text, filled);
        insert into recycling.seeded_table values (filled);
    end loop;
end $$;

insert into recycling.nonce_partition table recycling.found_nonce_partition;

insert into recycling.sequence_value
select seqrelid, pg_sequence_last_value(seqrelid) from pg_sequence;

grant usage on schema recycling to wallet;
grant select on all tables in schema recycling to wallet;

create event trigger note_ddl on ddl_command_end execute function recycling.note_ddl();
create event trigger note_drop on sql_drop execute function recycling.note_drop();
