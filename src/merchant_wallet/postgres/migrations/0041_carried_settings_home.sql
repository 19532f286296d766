-- The version of the settings that the cell of a merchant's book has. 0: the book is not open yet. The default cell always has the
-- newest one, as both change in one transaction.
alter table merchant add column carried_version bigint not null default 1;
update merchant set carried_version = settings_version;
alter table merchant add constraint merchant_carried check (
    carried_version >= 0 and carried_version <= settings_version and (cell_id > 0 or carried_version = settings_version));
create index merchant_to_carry on merchant (merchant_id) where carried_version < settings_version;
