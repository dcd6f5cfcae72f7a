"""Runs a command and writes its exit status, seconds of processor time and peak memory in kB to a file.

A process starts with the peak memory of the one that it was forked from, so the one that measures has to be small:
`python -I -S launch.py CEILING FILE COMMAND…`, with CEILING in bytes of address space."""

import json
import os
import resource
import sys

ceiling, result, *command = sys.argv[1:]
resource.setrlimit(resource.RLIMIT_AS, (int(ceiling), int(ceiling)))
_, state, used = os.wait4(os.posix_spawn(command[0], command, os.environ), 0)
with open(result, "w") as file:
    json.dump([os.waitstatus_to_exitcode(state), used.ru_utime + used.ru_stime, used.ru_maxrss], file)
