#!/usr/bin/env python3
"""Runs the tests of a list without the drop-in, and with it in each of its settings.

Each line of the list has a suite, a test's name, `alone` or `beside`, a program, and the directory
to run it in, else a new one. A test passes if its program ends with 0 in each round, within the
suite's limit. One that passes without the drop-in only runs again by itself, in pairs of both ways:
so a test that others' work delays is not taken for a difference.

Each line of the list of known differences has a suite, a test's name, the ways in which it differs,
with commas or `all`, and the reason; with `?` behind the ways it differs at times, with `!` it is not tried in them. Exit: 1 if another test differs, if a known one does not, or
if a suite has fewer tests that pass without the drop-in than it should.
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
# What a suite has at least that passes without the drop-in, else it was not built as a whole.
LEAST = {"posix": 660, "kernel": 11, "glibc": 460}

arguments = argparse.ArgumentParser()
arguments.add_argument("--library", required=True)
arguments.add_argument("--rounds", type=int, required=True)
arguments.add_argument("--again", type=int, required=True)
arguments.add_argument("--jobs", type=int, required=True)
arguments.add_argument("--ways", required=True)
arguments.add_argument("--only", required=True)
arguments.add_argument("--known", required=True)
arguments.add_argument("list")
options = arguments.parse_args()

MUTEX, RWLOCK = {"OVERLOCK_MUTEX": "glibc"}, {"OVERLOCK_RWLOCK": "glibc"}
WAYS = {
    "without": None,
    "default": {},
    "stat": {"OVERLOCK_STAT": "1"},
    "lockdep": {"OVERLOCK_LOCKDEP": "1"},
    "mutex": MUTEX,
    "rwlock": RWLOCK,
    "spins": {**MUTEX, **RWLOCK, "OVERLOCK_SPIN_ONLY": "1"},
    "both": {**MUTEX, **RWLOCK},
}
ways = [way for way in options.ways.split(",") if way]
if not set(ways) <= set(WAYS) - {"without"}:
    sys.exit(f"scripts/real --suites: no such way; there are {', '.join(list(WAYS)[1:])}")


def run(test, way):
    """The program's exit code, or `hangs`."""
    suite, _, _, program, place = test
    with tempfile.TemporaryDirectory() as directory, tempfile.TemporaryDirectory() as stat:
        settings = WAYS[way]
        if settings is not None:
            settings = {"LD_PRELOAD": options.library, "OVERLOCK_STAT_DIR": stat, **settings}
        child = subprocess.Popen(
            [program],
            cwd=place or directory,
            env={**os.environ, **(settings or {})},
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
with open(options.known) as lines:
    known = [line.rstrip("\n").split("\t") for line in lines if line.strip() and line[0] != "#"]
if options.only:
    tests = [test for test in tests if test[1] in options.only.split(",")]
known = {(suite, name): (where, why) for suite, name, where, why in known}


def is_known(test, way, always=False):
    where = known.get((test[0], test[1]), ("",))[0]
    if always and where[-1:] in ("?", "!"):
        return False
    return bool({way, "all"} & set(where.rstrip("?!").split(",")))


def is_left_out(test, way):
    return known.get((test[0], test[1]), ("",))[0].endswith("!") and is_known(test, way)


results = collections.defaultdict(list)
for count in range(options.rounds):
    for way in ["without", *ways]:
        print(f"round {count + 1}, {way}", file=sys.stderr)
        for kind, jobs in ("beside", options.jobs), ("alone", 1):
            chosen = [test for test in tests if test[2] == kind and not is_left_out(test, way)]
            with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
                codes = pool.map(lambda test: run(test, way), chosen)
                for test, code in zip(chosen, codes):
                    results[test[1], way].append(code)

differing = collections.defaultdict(dict)
for test in tests:
    name = test[1]
    for way in ways:
        if any(results[name, "without"]) or not any(results[name, way]):
            continue
        codes = {"without": [], way: []}
        for _ in range(options.again):
            for each in codes:
                codes[each].append(run(test, each))
        print(f"again: {test[0]} {name}, {codes}", file=sys.stderr)
        if sum(map(bool, codes[way])) > sum(map(bool, codes["without"])):
            differing[way][name] = codes
        else:
            results[name, way] = [0]

print("| suite | tests | pass without |", " | ".join(ways), "|\n|---|---|---|" + "---|" * len(ways))
failed = False
for suite in dict.fromkeys(test[0] for test in tests):
    names = [test[1] for test in tests if test[0] == suite]
    good = [name for name in names if not any(results[name, "without"])]
    passed = [sum(results[name, way] != [] and not any(results[name, way]) for name in good) for way in ways]
    print("|", " | ".join(map(str, [suite, len(names), len(good), *passed])), "|")
    if not options.only and len(good) < LEAST[suite]:
        failed = True
        print(f"{suite}: {len(good)} tests pass without the drop-in, and {LEAST[suite]} should")
for test in tests:
    name = test[1]
    for way in ways:
        if is_left_out(test, way):
            print(f"{test[0]} {name}, {way}: not tried: {known[test[0], name][1]}")
        elif name in differing[way]:
            codes = differing[way][name]
            reason = known[test[0], name][1] if is_known(test, way) else "NOT KNOWN"
            failed |= not is_known(test, way)
            print(f"{test[0]} {name}, {way}: {codes[way]}, without {codes['without']}: {reason}")
        elif is_known(test, way, always=True) and not any(results[name, "without"]):
            failed = True
            print(f"{test[0]} {name}, {way}: passes now, so it is no known difference")
sys.exit(failed)
