#!/bin/sh
# Make sure a CI job has its own inference key. Run it as often as you like: the first run makes
# the key, later runs change nothing.
#
#   GWCTL_URL=https://gw.example.com/api/v1 GWCTL_KEY=gwm_… ./provision-key.sh NAME KEY_FILE
#
# A secret is shown once, when the key is made. This script writes it to KEY_FILE (mode 0600); in a
# real pipeline replace `keep` by your secret store. If the store lost it, the key is rotated: the
# old secret keeps working for an hour, so jobs that still hold it finish.
#
# Settings: LIMIT (50 USD), RESET (monthly), MODELS ("openai/*", space separated), RPM (120).
set -eu

name=${1:?usage: provision-key.sh NAME KEY_FILE}
key_file=${2:?usage: provision-key.sh NAME KEY_FILE}
limit=${LIMIT:-50}
reset=${RESET:-monthly}
models=${MODELS:-openai/*}
rpm=${RPM:-120}
attempts=${ATTEMPTS:-5}

keep() {
    (umask 077 && printf '%s\n' "$1" >"$key_file.new" && mv "$key_file.new" "$key_file")
}

# Run gwctl; its output goes into $answer. What may pass by itself is tried again, everything else
# ends the job with gwctl's own exit code and message.
ask() {
    tried=1
    while :; do
        code=0
        answer=$(gwctl "$@") || code=$?
        case $code in
            0) return 0 ;;
            6 | 7) ;;                                   # rate limited, gateway not reachable
            4) echo "the management key is missing, wrong or not allowed" >&2; exit 4 ;;
            *) exit "$code" ;;
        esac
        if [ "$tried" -ge "$attempts" ]; then
            exit "$code"
        fi
        tried=$((tried + 1))
        sleep "${PAUSE:-5}"
    done
}

# A secret is shown once: without a place to keep it, no key is made.
if ! (umask 077 && : >"$key_file.new") 2>/dev/null; then
    echo "$key_file cannot be written; nothing was done" >&2
    exit 1
fi
rm -f "$key_file.new"

set -f                                                  # openai/* is for the gateway, not the shell
set -- "$name" --limit "$limit" --reset "$reset" --rpm "$rpm"
for model in $models; do
    set -- "$@" --model "$model"
done

ask key create "$@" --if-absent -q
if [ -z "$answer" ] && [ ! -s "$key_file" ]; then
    echo "key $name exists but its secret is gone: rotating it" >&2
    ask key rotate "$name" --overlap 1h -q
fi
if [ -n "$answer" ]; then
    keep "$answer"
    echo "key $name: new secret kept in $key_file" >&2
else
    echo "key $name: nothing to do" >&2
fi

# The policy may have changed since the key was made. Exit 8 of a dry run means it would change.
code=0
gwctl key update "$@" --dry-run -q >/dev/null || code=$?
case $code in
    0) ;;
    8) ask key update "$@" -q ;;
    *) exit "$code" ;;
esac
