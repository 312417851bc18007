#!/bin/sh
# Two roles: one owns the tables and migrates, the other serves and cannot undo what must hold.
# It may run again: what is there stays, with the passwords of this run.
set -eu
psql --set ON_ERROR_STOP=1 --username postgres \
    --set owner="$OWNER_PASSWORD" --set serving="$SERVING_PASSWORD" <<'SQL'
SELECT format('CREATE ROLE %I LOGIN', role) FROM unnest(ARRAY['nexus_owner', 'nexus_serving']) AS role
WHERE role NOT IN (SELECT rolname FROM pg_roles) \gexec
ALTER ROLE nexus_owner LOGIN PASSWORD :'owner';
ALTER ROLE nexus_serving LOGIN PASSWORD :'serving';
SELECT 'CREATE DATABASE nexus' WHERE 'nexus' NOT IN (SELECT datname FROM pg_database) \gexec
ALTER DATABASE nexus OWNER TO nexus_owner;
\connect nexus
ALTER SCHEMA public OWNER TO nexus_owner;
SQL
