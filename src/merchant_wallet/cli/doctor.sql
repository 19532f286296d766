-- Queries of `doctor`.

-- name: read_clock
-- The server's clock in milliseconds now, not at the start of the transaction.
select (extract(epoch from clock_timestamp()) * 1000)::bigint;

-- name: may_read_roles
-- Whether this role owns the tables or otherwise may see the sides' roles.
select has_table_privilege('side_role', 'select');

-- name: list_side_roles
-- The roles of the sides, and roles that write to books at the moment, and whether each could change written entries.
select r.rolname, s.side, has_table_privilege(r.oid, 'entry', 'update, delete, truncate')
  from pg_roles r
  left join side_role s on s.role_name = r.rolname
 where s.side is not null
    or r.oid in (select a.usesysid from pg_stat_activity a
                  where a.datname = current_database() and a.application_name = 'merchant-wallet writer')
 order by s.side, r.rolname;
