-- A reset of a sub-user's PIN ends what was let in before it. Sessions are rows and are deleted; links are kept nowhere,
-- so the row says until when links were made that no longer open the wallet.
alter table sub_user add column links_void_until_ms bigint not null default 0;
