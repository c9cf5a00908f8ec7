#!/bin/sh
# Start `gpmi serve` with settings from the environment. The Dockerfile runs it; it also runs without Docker.
#
#   GPMI_DATABASE    a folder of database files, a file, or postgresql://user@host/database; /data if not set
#   GPMI_HOST        the address to listen on; 0.0.0.0, all of this machine or container, if not set
#   GPMI_PORT        the port to listen on; 8470 if not set
#   GPMI_TOKEN       what visitors need, at least 12 characters; generated and printed if not set
#   GPMI_PUBLIC_URL  the address of a proxy in front of the server, such as https://lab.example.org
#   PGPASSWORD       the password for PostgreSQL, read by its client library
#
# Further arguments are passed on to `gpmi serve`.
set -eu

if [ -z "${GPMI_TOKEN:-}" ]; then
    unset GPMI_TOKEN # compose sets what is missing to nothing
fi
if [ -n "${GPMI_PUBLIC_URL:-}" ]; then
    set -- --public-url "$GPMI_PUBLIC_URL" "$@"
fi
# exec, so that the signal that stops the container reaches the server
exec gpmi serve "${GPMI_DATABASE:-/data}" --host "${GPMI_HOST:-0.0.0.0}" --port "${GPMI_PORT:-8470}" "$@"
