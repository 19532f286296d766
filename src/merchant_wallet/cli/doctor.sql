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

-- name: list_server_settings
-- What the server promises about commits.
select name, setting from pg_settings
 where name in ('fsync', 'full_page_writes', 'data_checksums', 'synchronous_standby_names');

-- name: list_session_defaults
-- What the administrator sets for each session here, by whom it concerns. What forbids to write may also be set for the server.
select setting_name, value, concern from (
    select split_part(setting, '=', 1) as setting_name, substr(setting, strpos(setting, '=') + 1) as value,
           case when s.setrole = 0 then 'this database' else 'role ' || s.setrole::regrole end as concern
      from pg_db_role_setting s, unnest(s.setconfig) setting
     where s.setdatabase in (0, (select oid from pg_database where datname = current_database()))
       -- Not the roles of other products of this server: they have no right on any of our tables.
       and (s.setrole = 0 or s.setrole = (select oid from pg_roles where rolname = current_user)
            or exists (select from pg_class c, aclexplode(c.relacl) x where x.grantee = s.setrole))
    union
    select name, setting, 'the server' from pg_settings
     where name = 'default_transaction_read_only' and setting = 'on' and source not in ('database', 'user', 'database user')) s
 order by 1, 2, 3;

-- name: read_texts
-- How the database stores texts, and in which order it sorts them.
select pg_encoding_to_char(encoding), case datlocprovider when 'i' then 'ICU' else datcollate end
  from pg_database where datname = current_database();

-- name: list_standbys
-- The physical standbys that are connected. The readers of logical slots belong to a cell's move.
select r.application_name, r.sync_state, (extract(epoch from r.replay_lag) * 1000)::bigint
  from pg_stat_replication r
 where not exists (select from pg_replication_slots s where s.active_pid = r.pid and s.slot_type = 'logical')
 order by r.application_name;

-- name: count_connections
-- How many sessions the server takes from ordinary users, and how many there are. `pg_stat_activity` says of
-- other roles' sessions not what they are, unless one has `pg_monitor`; this count needs no right.
select current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int,
       (select sum(numbackends) from pg_stat_database)::int;

-- name: list_limits
-- What may have fewer sessions than the server takes: this database and the roles of the sides, with the name as SQL has it, the side, the limit and the sessions there are.
select 'database', quote_ident(datname), null, datconnlimit,
       (select numbackends from pg_stat_database s where s.datid = d.oid)::int
  from pg_database d where datname = current_database() and datconnlimit >= 0
union all
select 'role', quote_ident(r.rolname), s.side, r.rolconnlimit, (select count(*) from pg_stat_activity a where a.usesysid = r.oid)::int
  from pg_roles r join side_role s on s.role_name = r.rolname
 where r.rolconnlimit >= 0
 order by 1, 2;

-- name: list_archived_months
-- The months of books whose rows were removed, at least some of them.
select merchant_id, month from archived_month where removed_id >= first_id order by merchant_id, month;

-- name: list_shared_emails
-- Active accounts with one confirmed e-mail address, by address.
select array_agg(o.name order by lower(o.name collate "C"))
  from notification_contact c join operator o on o.operator_id = c.operator_id
 where o.status = 'active' and c.email_confirmed_ms is not null
 group by lower(c.email) having count(*) > 1
 order by lower(c.email);

-- name: list_sources
-- Where the last day's requests and sign-ins came from, and the merchants that they were about.
select source, count(*), count(distinct merchant_id)
  from (select source, merchant_id, at_ms from request_log
         union all
        select source, merchant_id, at_ms from refused_request
         union all
        select source, null, created_ms from operator_session) seen
 where at_ms > (extract(epoch from now()) * 1000)::bigint - 86400000
 group by source;
