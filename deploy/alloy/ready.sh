#!/usr/bin/env bash
# Asks each HOST:PORT/PATH and wants 200 of all. The image has no HTTP client, but its bash can open
# a socket.
set -eu
for url in "$@"; do
    host=${url%%:*} rest=${url#*:}
    exec 3<>"/dev/tcp/$host/${rest%%/*}"
    printf 'GET /%s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n' "${rest#*/}" "$host" >&3
    IFS= read -r -t 3 line <&3
    exec 3>&-
    case $line in *' 200 '*) ;; *) echo "$url: $line" >&2 && exit 1 ;; esac
done
