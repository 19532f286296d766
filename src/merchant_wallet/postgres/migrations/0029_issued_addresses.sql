-- An address that a person can pay to was issued. The table has every address that was ever issued, of all books.

alter table given_address rename to issued_address;
alter table issued_address rename constraint given_address_pkey to issued_address_pkey;
alter table issued_address rename constraint given_address_address_check to issued_address_address_check;
