# shellcheck shell=bash
# SPDX-License-Identifier: BSL-1.0
# Sourced by ./dev: messages, and steps that say what they do, show that they are alive and end
# with a clear error. Uses $command, the command that ./dev was given.

: "${command:?is set by ./dev}"

say() { printf '%s\n' "$*"; }
die() {
    printf 'dev %s: %s\n' "$command" "$*" >&2
    exit 1
}

# step <title> <program> <arguments...>: runs one step and says what it was if it fails.
# On a terminal its output is shown as it comes; otherwise it goes to a log file, and a
# line now and then shows that it is alive.
step() {
    local title=$1 start=$SECONDS status=0
    shift
    if [[ -t 1 ]]; then
        say "==> $title"
        "$@" || status=$?
        ((status == 0)) || step_failed "$@"
        return 0
    fi

    local log
    mkdir -p build/log
    log="build/log/$command-$(tr -cs 'A-Za-z0-9.\n' '-' <<<"$title").log"
    say "==> $title"
    heartbeat "$log" &
    beat=$!
    "$@" >"$log" 2>&1 || status=$?
    end_heartbeat
    if ((status != 0)); then
        tail -n 100 "$log" >&2
        say "    All of it: $log" >&2
        step_failed "$@"
    fi
    say "    done in $((SECONDS - start)) s"
}

# Says so, and what to do: ${hint}, or else run the same again.
step_failed() {
    [[ $1 != run_ctest ]] || set -- ctest "${@:2}"
    die "'$title' failed after $((SECONDS - start)) s. ${hint:-To see it again: $(quoted "$@")}"
}

# Nobody can clean up after a shell that is killed, so this also looks whether it is there.
heartbeat() {
    local log=$1 start=$SECONDS
    while sleep 30 >/dev/null 2>&1 && kill -0 $$ 2>/dev/null; do
        say "    ... $((SECONDS - start)) s: $(tail -n 1 "$log" | cut -c 1-100)"
    done
}

beat=
end_heartbeat() {
    [[ -n $beat ]] || return 0
    kill "$beat" 2>/dev/null || true
    wait "$beat" 2>/dev/null || true
    beat=
}
trap end_heartbeat EXIT # bash also comes here if a signal ends it

quoted() { printf '%q ' "$@"; }
