-- What a cell has seen of home: evidence that home was rolled back without its cells.

-- The highest number of home's that the cell was told.
alter table cell_state add column home_no bigint not null default 0;

alter table rollback_evidence drop constraint rollback_evidence_subject_check;

alter table rollback_evidence add constraint rollback_evidence_subject_check
    check (subject in ('book', 'audit', 'signer', 'key', 'home'));
