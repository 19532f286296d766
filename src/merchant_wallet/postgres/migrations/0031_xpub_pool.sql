-- The pool holds extended public keys (xpub), one per chain and account. Its module has been called xpub_pool before.

alter table account_pool rename to xpub_pool;
alter table xpub_pool rename constraint account_pool_pkey to xpub_pool_pkey;
alter table xpub_pool rename constraint account_pool_merchant_id_key to xpub_pool_merchant_id_key;
alter table xpub_pool rename constraint account_pool_merchant_id_fkey to xpub_pool_merchant_id_fkey;
alter table xpub_pool rename constraint account_pool_account_no_check to xpub_pool_account_no_check;
alter table xpub_pool rename constraint account_pool_xpubs_check to xpub_pool_xpubs_check;
alter index account_pool_free rename to xpub_pool_free;
