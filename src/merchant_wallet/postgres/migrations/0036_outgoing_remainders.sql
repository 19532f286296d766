-- What leaves an address of ours takes its remainder along. Without that, remainders at an address would only grow.
alter table custody_remainder drop constraint custody_remainder_remainder_check;
alter table custody_remainder add constraint custody_remainder_remainder_check check (remainder <> 0);
alter table custody_remainder drop constraint custody_remainder_pkey;
alter table custody_remainder add primary key (chain, tx_hash, log_index, address);
