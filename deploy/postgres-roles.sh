#!/bin/sh
# Two roles: one owns the tables and migrates, the other serves and cannot undo what must hold.
set -eu
psql --set ON_ERROR_STOP=1 --username postgres \
    --set owner="$OWNER_PASSWORD" --set serving="$SERVING_PASSWORD" <<'SQL'
CREATE ROLE nexus_owner LOGIN PASSWORD :'owner';
CREATE ROLE nexus_serving LOGIN PASSWORD :'serving';
CREATE DATABASE nexus OWNER nexus_owner;
\connect nexus
ALTER SCHEMA public OWNER TO nexus_owner;
SQL
