"""The failover drill: three PostgreSQL under Patroni, the service under load, and kills of the primary."""
