-- kind: expand
-- Invoices name both parties with addresses and tax ids, and a due date. In an address a semicolon begins a new line.

-- What the next invoices say of the merchant.
alter table merchant
    add column if not exists billing_address text
        constraint merchant_billing_address check (length(billing_address) between 1 and 300),
    add column if not exists tax_id text
        constraint merchant_tax_id check (length(tax_id) between 1 and 64);

-- As they were when the invoice was issued. Null: the invoice is older than these columns, or nothing was set.
alter table invoice
    add column if not exists issuer_tax_id text constraint invoice_issuer_tax_id check (issuer_tax_id <> ''),
    add column if not exists merchant_address text constraint invoice_merchant_address check (merchant_address <> ''),
    add column if not exists merchant_tax_id text constraint invoice_merchant_tax_id check (merchant_tax_id <> ''),
    add column if not exists due_days int constraint invoice_due_days check (due_days between 0 and 365);
