#!/bin/sh
# Runs a PostgreSQL in a fresh folder: database.sh PATH_OF_POSTGRES. SIGTERM would have it wait for
# its clients, so it gets SIGINT, until it is gone: a shell's child ignores that before its handler.
set -eu
bin=$(dirname "$(readlink -f "$1")")
if [ "$(id -u)" = 0 ]; then
    echo 'PostgreSQL refuses to run as root: let other users into the folders above the checkout' >&2
    exit 1
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'while kill -INT ${!:-} 2>/dev/null; do sleep 0.1; done; exit 143' INT TERM
cd "$work"
echo "$DATABASE_PASSWORD" >password
"$bin/initdb" -U "$DATABASE_USER" --pwfile=password -A scram-sha-256 -E UTF8 --no-locale \
    --no-sync -D data >initdb.log 2>&1 || { cat initdb.log >&2; exit 1; }
echo 'CREATE DATABASE petclinic' | "$bin/postgres" --single -D data postgres >/dev/null
"$bin/postgres" -D data -h "$HOST" -p "$PORT" -k '' & # the rest is default, fsync included
wait $!
