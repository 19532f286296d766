-- Books are written in groups: one transaction over many books. Every transaction that changes anything that a rule may look
-- at gives its book a new version. A group claims only books whose version is the one that it was judged on. A group's version
-- is its id, so its later statements find the books that it claimed. A version is never used again, not even after a failover
-- that lost transactions: there a count could come to the same number with other content.
alter table book add column version uuid not null default gen_random_uuid();

-- The group that claimed the nonce, so that a lost COMMIT can be answered truly. Each book in a group has at least one such row.
-- It has no default: a process of an older version, which would not move book versions, can't write any more.
alter table nonce add column group_id uuid not null default '00000000-0000-0000-0000-000000000000';
alter table nonce alter column group_id drop default;
