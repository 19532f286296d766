-- PostgreSQL 18 names each NOT NULL after its table and column, and a rename of either leaves that name behind. Older
-- versions have no such names, so for them there is nothing to do.
do $$
declare
    stale record;
begin
    for stale in
        select c.conrelid::regclass as of_table, c.conname as present,
            t.relname || '_' || a.attname || '_not_null' as wanted
        from pg_constraint c
        join pg_class t on t.oid = c.conrelid
        join pg_attribute a on a.attrelid = c.conrelid and a.attnum = c.conkey[1]
        where c.contype = 'n' and c.coninhcount = 0 and t.relnamespace = current_schema()::regnamespace
    loop
        if stale.present <> stale.wanted and length(stale.wanted) < 64 then
            execute format('alter table %s rename constraint %I to %I', stale.of_table, stale.present, stale.wanted);
        end if;
    end loop;
end
$$;
