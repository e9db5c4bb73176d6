#!/usr/bin/env python3
"""Runs the tests of a list in three ways: without the drop-in, with it, and with its spins alone.

Each line of the list has a suite, a test's name, `alone` or `beside`, a program, and the directory
to run it in, else a new one. A test passes if its program ends with 0 in each round, within the
suite's limit. Exit: 1 if a test that passes without the drop-in does not pass with it.
"""
import argparse
import collections
import concurrent.futures
import os
import signal
import subprocess
import sys
import tempfile

# In seconds. epoll_wakeup_test alone takes 70.
LIMITS = {"posix": 40, "kernel": 180, "glibc": 180}

arguments = argparse.ArgumentParser()
arguments.add_argument("--library", required=True)
arguments.add_argument("--rounds", type=int, required=True)
arguments.add_argument("--jobs", type=int, required=True)
arguments.add_argument("list")
options = arguments.parse_args()

SPIN_ONLY = {"OVERLOCK_MUTEX": "glibc", "OVERLOCK_RWLOCK": "glibc"}
WAYS = {
    "without": {},
    "with": {"LD_PRELOAD": options.library},
    "spins alone": {"LD_PRELOAD": options.library, **SPIN_ONLY},
}


def run(suite, program, place, way):
    """The program's exit code, or `hangs`."""
    with tempfile.TemporaryDirectory() as directory:
        child = subprocess.Popen(
            [program],
            cwd=place or directory,
            env={**os.environ, **WAYS[way]},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            return child.wait(LIMITS[suite])
        except subprocess.TimeoutExpired:
            return "hangs"
        finally:
            # Its children too.
            try:
                os.killpg(child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            child.wait()


with open(options.list) as lines:
    tests = [line.rstrip("\n").split("\t") for line in lines]
results = collections.defaultdict(list)
for count in range(options.rounds):
    for way in WAYS:
        print(f"round {count + 1}, {way}", file=sys.stderr)
        for kind, jobs in ("beside", options.jobs), ("alone", 1):
            chosen = [test for test in tests if test[2] == kind]
            with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
                codes = pool.map(lambda test: run(test[0], test[3], test[4], way), chosen)
                for (suite, name, *_), code in zip(chosen, codes):
                    results[suite, name, way].append(code)

print("| suite | tests | pass without | with | spins alone |\n|---|---|---|---|---|")
for suite in dict.fromkeys(test[0] for test in tests):
    names = [test[1] for test in tests if test[0] == suite]
    passed = [sum(not any(results[suite, name, way]) for name in names) for way in WAYS]
    print("|", " | ".join(map(str, [suite, len(names), *passed])), "|")
failed = False
for suite, name, *_ in tests:
    without = results[suite, name, "without"]
    for way in list(WAYS)[1:]:
        codes = results[suite, name, way]
        if not any(without) and any(codes):
            failed = True
            print(f"{suite} {name}, {way}: {codes}")
sys.exit(failed)
