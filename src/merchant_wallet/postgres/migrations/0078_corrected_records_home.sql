-- kind: expand
-- A record of the treasury that was corrected explains nothing any more, and may be made anew.

-- step: transaction
-- When a record in the other direction corrected it. Both of the pair have it, so neither counts.
alter table treasury_movement add column if not exists corrected_ms bigint;

-- step: concurrently
create unique index concurrently if not exists treasury_movement_live on treasury_movement (chain, tx_hash, direction, amount)
    where corrected_ms is null;
