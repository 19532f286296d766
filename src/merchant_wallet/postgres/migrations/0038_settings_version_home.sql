-- The version of a merchant's settings is the merchant's own. The book keeps a copy, which commands are compared with.
alter table merchant add column settings_version bigint not null default 1;
update merchant m set settings_version = b.settings_version from book b where b.merchant_id = m.merchant_id;
