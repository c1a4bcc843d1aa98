#!/bin/sh
# Installs gwd as a systemd service, brings it up to date, takes an update back, or removes it. Run it as root from a
# copy of the repository, as often as you like: what is there already stays as it is. `--help` lists the options.
set -eu

usage() {
    cat <<'TEXT'
usage: examples/install.sh [--org NAME --email ADDRESS [--credit USD]] [options]
       examples/install.sh --rollback [--yes]
       examples/install.sh --uninstall [--purge]

Without a node, the first form makes one; with a node, it installs this copy's version: the node is stopped when the new
version is ready to start, its database is copied and the copy proved, and a version that does not start is taken back.

  --org NAME        the organization of a new node
  --email ADDRESS   its owner
  --credit USD      what the organization begins with
  --rollback        go back to the version before; where it cannot read the database, to the copy made before the
                    update, which needs --yes: what happened since is lost
  --uninstall       stop the service and remove the program; the database and the key ring stay
  --purge           with --uninstall: remove the database, the copies and the key ring as well
  --dry-run         say what would be done
  --no-service      leave systemd alone
  --user NAME       who the service runs as (default: gwd, made if missing)
  --root DIR        everything below DIR instead of / (to build an image)
  --python PROGRAM  the Python to use (default: python3, at least 3.11)
  --yes             do what loses something
TEXT
}

fail() {
    printf 'error: %s\n' "$1" >&2
    exit "${2:-1}"
}

say() { printf '%s\n' "$*"; }

# Says a command and, unless it is a dry run, does it.
run() {
    printf '  + %s\n' "$*"
    [ "$dry_run" = yes ] || "$@"
}

org='' email='' credit='' action=install purge=no dry_run=no service=yes yes=no user=gwd root='' python=python3
while [ $# -gt 0 ]; do
    option=$1
    case $option in
        --org | --email | --credit | --user | --root | --python)
            [ $# -gt 1 ] && [ -n "$2" ] || fail "$option needs a value; see --help" 2
            case $option in
                --org) org=$2 ;;
                --email) email=$2 ;;
                --credit) credit=$2 ;;
                --user) user=$2 ;;
                --root) root=${2%/} ;;
                --python) python=$2 ;;
            esac
            shift
            ;;
        --rollback) action=rollback ;;
        --uninstall) action=uninstall ;;
        --purge) purge=yes ;;
        --dry-run) dry_run=yes ;;
        --no-service) service=no ;;
        --yes) yes=yes ;;
        -h | --help)
            usage
            exit 0
            ;;
        *) fail "$option is no option of this script; see --help" 2 ;;
    esac
    shift
done
[ "$purge" = no ] || [ "$action" = uninstall ] || fail '--purge goes with --uninstall' 2
[ "$(id -u)" = 0 ] || fail 'run it as root: it makes a user, a service and files in /opt, /etc and /var/lib'

source_tree=$(cd "$(dirname "$0")/.." && pwd)
program=$root/opt/gwd
releases=$root/opt/gwd-releases
state=$root/var/lib/gwd
ring=$root/etc/gwd/keyring.json
unit=$root/etc/systemd/system/gwd.service
commands=$root/usr/local/bin
if [ "$service" = yes ] && ! command -v systemctl >/dev/null; then
    say 'There is no systemd here: no service is installed.'
    service=no
fi

systemd() { [ "$service" = no ] || run systemctl "$@"; }

# The release that runs now; nothing if there is none.
current() { [ ! -L "$program" ] || basename "$(readlink "$program")"; }

gwd_of() {
    release=$1
    shift
    "$releases/$release/bin/gwd" "$@" --config "$state"
}

# Names a state of the source by what is installed of it.
fingerprint() {
    (
        cd "$source_tree"
        find pyproject.toml constraints.txt gwd gwctl docs/man examples/catalog.toml examples/providers.toml \
            examples/azure.toml -type f ! -name '*.pyc' -exec sha256sum {} + | LC_ALL=C sort | sha256sum | cut -c1-12
    )
}

build() {
    [ ! -e "$releases/$1/complete" ] || return 0
    say "Version $1 is made in $releases/$1."
    run rm -rf "$releases/$1"
    run mkdir -p "$releases"
    run "$python" -m venv "$releases/$1"
    run "$releases/$1/bin/pip" install --quiet --disable-pip-version-check -c "$source_tree/constraints.txt" \
        "$source_tree"
    run cp "$source_tree/README.md" "$releases/$1/"
    run touch "$releases/$1/complete"
}

use() {
    run ln -sfn "$releases/$1" "$program"
    run mkdir -p "$commands"
    for name in gwd gwctl; do
        run ln -sfn "$program/bin/$name" "$commands/$name"
    done
}

make_user() {
    id "$user" >/dev/null 2>&1 || run useradd --system --home-dir /var/lib/gwd --shell /usr/sbin/nologin "$user"
}

make_node() {
    [ ! -e "$state/gwd.toml" ] || return 0
    say "A node is made in $state; its key ring is $ring."
    [ -n "$org" ] && [ -n "$email" ] || fail 'a new node needs --org and --email' 2
    [ ! -e "$ring" ] || fail "$ring is there, but no node in $state: move it away, or restore the node"
    run install -d -m 0700 "$state" "$(dirname "$ring")"
    if [ -n "$credit" ]; then
        run "$releases/$1/bin/gwd" init --dir "$state" --org "$org" --email "$email" --credit "$credit"
    else
        run "$releases/$1/bin/gwd" init --dir "$state" --org "$org" --email "$email"
    fi
    run install -m 0600 "$state/keyring.json" "$ring"
    run rm "$state/keyring.json"
    run sed -i "s|^# keyring = .*|keyring = \"${ring#"$root"}\"|" "$state/gwd.toml"
    [ -z "$root" ] || run sed -i "s|^keyring = .*|keyring = \"$ring\"|" "$state/gwd.toml"
    run chown -R "$user:" "$state"
    say "Copy $ring to a safe place: without it no stored key and no API key can be used again."
}

make_service() {
    [ "$service" = yes ] || return 0
    if ! cmp -s "$source_tree/examples/gwd.service" "$unit"; then
        run mkdir -p "$(dirname "$unit")"
        run cp "$source_tree/examples/gwd.service" "$unit"
        systemd daemon-reload
    fi
    systemd enable gwd
}

install_release() {
    new=$(fingerprint)
    old=$(current)
    if [ "$new" = "$old" ] && [ -e "$releases/$new/complete" ] && [ -e "$state/gwd.toml" ]; then
        say "Version $new is installed already."
        make_service
        systemd start gwd
        return
    fi
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
        fail "$python is no Python 3.11 or newer; name one with --python"
    make_user
    build "$new"
    if [ -z "$old" ] || [ ! -e "$state/gwd.toml" ]; then
        make_node "$new"
        use "$new"
        make_service
        systemd start gwd
        say "Version $new serves. Next: gwctl login, gwctl provider add (README.md)."
        return
    fi
    say "The node goes from version $old to $new."
    systemd stop gwd
    copy=$state/before-$new-$(date -u +%Y%m%dT%H%M%SZ).db
    if ! run gwd_of "$old" backup "$copy"; then
        systemd start gwd
        fail "the database could not be copied; version $old serves again and nothing was changed"
    fi
    if [ "$dry_run" = no ]; then
        printf '%s\n' "$old" >"$releases/$new/previous"
        printf '%s\n' "$copy" >"$releases/$new/copy"
    fi
    use "$new"
    make_service
    if run gwd_of "$new" migrate && systemd start gwd; then
        say "Version $new serves. To go back: examples/install.sh --rollback"
    else
        say "Version $new does not start; version $old comes back."
        yes=yes
        roll_back
        exit 1
    fi
}

roll_back() {
    here=$(current)
    [ -n "$here" ] || fail 'nothing is installed here'
    [ -s "$releases/$here/previous" ] || fail "nothing is known of a version before $here"
    before=$(cat "$releases/$here/previous")
    copy=$(cat "$releases/$here/copy")
    [ -e "$releases/$before/complete" ] || fail "version $before is not there any more"
    if [ "$dry_run" = yes ]; then
        say "Version $before would come back, with $copy where it cannot read the database."
        return
    fi
    systemd stop gwd
    if gwd_of "$before" migrate --dry-run >/dev/null 2>&1; then
        say "Version $before reads the database as it is."
    elif [ "$yes" = yes ]; then
        say "Version $before cannot read the database; the copy made before the update comes back."
        run gwd_of "$before" restore "$copy" --yes
    else
        systemd start gwd
        fail "version $before cannot read the database; --yes puts $copy back, and what happened since is lost"
    fi
    use "$before"
    systemd start gwd
    say "Version $before serves."
}

uninstall() {
    [ "$purge$yes$dry_run" != yesnono ] || fail "--purge removes $state and $ring for ever; add --yes"
    if [ -e "$unit" ]; then
        systemd disable --now gwd
        run rm -f "$unit"
        systemd daemon-reload
    fi
    run rm -rf "$program" "$releases" "$commands/gwd" "$commands/gwctl"
    if [ "$purge" = yes ]; then
        run rm -rf "$state" "$(dirname "$ring")"
    else
        say "$state and $ring were left."
    fi
}

case $action in
    install) install_release ;;
    rollback) roll_back ;;
    uninstall) uninstall ;;
esac
