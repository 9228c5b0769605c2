#!/bin/sh
# Starts Grafana, unless others can reach it with a password that they would guess.
set -eu
case $BIND in
127.* | ::1 | "[::1]" | localhost) ;;
*)
    if [ "${#GF_SECURITY_ADMIN_PASSWORD}" -lt 12 ]; then
        echo "Grafana is not started: BIND=$BIND lets others in, and GRAFANA_PASSWORD is shorter" \
            "than twelve characters. Set it in .env, or BIND=127.0.0.1." >&2
        exit 1
    fi
    ;;
esac
exec /run.sh "$@"
