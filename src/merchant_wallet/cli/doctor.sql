-- What `doctor` asks the database itself.

-- name: read_clock
-- The server's own wall clock in milliseconds, not the moment at which the transaction began.
select (extract(epoch from clock_timestamp()) * 1000)::bigint;

-- name: may_read_roles
-- Whether this role is the tables' owner, or otherwise may see which roles the sides have.
select has_table_privilege('side_role', 'select');

-- name: list_side_roles
-- The roles that the sides have or write to books as at this moment, and whether each could change what was written.
select r.rolname, s.side, has_table_privilege(r.oid, 'entry', 'update, delete, truncate')
  from pg_roles r
  left join side_role s on s.role_name = r.rolname
 where s.side is not null
    or r.oid in (select a.usesysid from pg_stat_activity a
                  where a.datname = current_database() and a.application_name = 'merchant-wallet writer')
 order by s.side, r.rolname;
