#!/bin/sh
# For Epilog= in slurm.conf: removes what prolog.sh left of a job. Like it, it always ends with 0: an epilog that fails
# drains the node. The argument, if any, is the directory, the same as the prolog's.

PATH=/usr/bin:/bin
export PATH

directory=${1:-/run/jobsight/jobs}
case ${SLURM_JOB_ID:-} in
    '' | *[!0-9]*) exit 0 ;;
esac
rm -f "$directory/slurm.$SLURM_JOB_ID" 2>/dev/null
exit 0
