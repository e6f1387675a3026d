#!/bin/sh
# For Prolog= in slurm.conf: leaves what Slurm says of a job where jobsight's `allocation` collector reads it, one small
# file of key=value lines for each job. slurmd runs it as root. A prolog that fails drains the node, so this one always
# ends with 0, waits for nothing and asks no server.
#
# Another directory: call this from a script of yours with the directory as its argument.

# slurmd sets no search path, and the locale must not decide what a control character is.
PATH=/usr/bin:/bin
LC_ALL=C
export PATH LC_ALL
umask 022

directory=${1:-/run/jobsight/jobs}
case ${SLURM_JOB_ID:-} in
    '' | *[!0-9]*) exit 0 ;;
esac
file=$directory/slurm.$SLURM_JOB_ID
fresh=$directory/.slurm.$SLURM_JOB_ID.$$

# One line for a value that is set. Some are the user's own words: control characters (a line break would forge the
# next line) become blanks, and what is absurdly long is left out rather than cut into something else.
line() {
    [ -n "$2" ] && [ "${#2}" -le 4096 ] || return 0
    printf '%s=%s' "$1" "$2" | tr '\001-\037\177' ' '
    printf '\n'
}

write() {
    line scheduler slurm
    line number "$SLURM_JOB_ID"
    line sluid "${SLURM_JOB_SLUID:-}"
    line owner "${SLURM_JOB_USER:-}"
    line uid "${SLURM_JOB_UID:-}"
    line account "${SLURM_JOB_ACCOUNT:-}"
    line partition "${SLURM_JOB_PARTITION:-}"
    line name "${SLURM_JOB_NAME:-}"
    line nodes "${SLURM_JOB_NODELIST:-${SLURM_NODELIST:-}}"
    line cpus "${SLURM_JOB_CPUS_PER_NODE:-}"
    line devices "${SLURM_JOB_GPUS:-}"
    line restarts "${SLURM_JOB_RESTART_COUNT:-${SLURM_RESTART_COUNT:-}}"
}

# Written aside and renamed, so that nobody ever reads half of it.
{ mkdir -p "$directory" && write >"$fresh" && mv -f "$fresh" "$file"; } 2>/dev/null || rm -f "$fresh" 2>/dev/null
exit 0
