-- kind: expand
-- Unsigned requests have a list of their own, so that whoever knows an appKey can't empty the merchant's list of its own ones.

alter table refused_request add column if not exists is_signed boolean not null default true;
