-- What shows that the database was rolled back is evidence. A sign was too easily read as a signature.

alter table rollback_sign rename to rollback_evidence;
alter table rollback_evidence rename constraint rollback_sign_pkey to rollback_evidence_pkey;
alter table rollback_evidence rename constraint rollback_sign_cause_check to rollback_evidence_cause_check;
alter table rollback_evidence rename constraint rollback_sign_kind_check to rollback_evidence_kind_check;
alter table rollback_evidence rename constraint rollback_sign_merchant_id_check to rollback_evidence_merchant_id_check;
alter table rollback_evidence rename constraint rollback_sign_of_book to rollback_evidence_of_book;
alter table rollback_evidence rename constraint rollback_sign_subject_check to rollback_evidence_subject_check;
