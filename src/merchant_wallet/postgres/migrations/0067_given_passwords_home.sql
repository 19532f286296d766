-- kind: expand
-- Whether an operator's password was generated and handed over by somebody else. Its owner must then choose another one.
alter table operator add column if not exists must_change_password boolean not null default false;
