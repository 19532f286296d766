-- kind: expand
-- How a merchant's wallet pages look: its colour, its logo, and the page where its customers open their wallets. Null: the platform's
-- own look, and no such page. The values stand in styles and links, so nothing else gets in here.
alter table merchant
    add column if not exists brand_colour text
        constraint merchant_brand_colour check (brand_colour ~ '^#[0-9a-f]{6}$'),
    add column if not exists brand_logo text
        constraint merchant_brand_logo check (brand_logo ~ '^[0-9a-f]{64}$'),
    add column if not exists customer_url text
        constraint merchant_customer_url check (customer_url ~ '^https?://' and length(customer_url) <= 100);

-- Logos that were uploaded, as PNG files that we have encoded ourselves, by the SHA-256 of the file. One that no merchant uses is inert.
create table if not exists brand_logo (
    digest text primary key constraint brand_logo_digest check (digest ~ '^[0-9a-f]{64}$'),
    merchant_id bigint not null,
    content bytea not null constraint brand_logo_size check (length(content) between 1 and 262144),
    uploaded_ms bigint not null,
    uploaded_by text not null
);
create index if not exists brand_logo_of on brand_logo (merchant_id, uploaded_ms);
