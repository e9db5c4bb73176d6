"""The table of scripts/real: table.py RECORDS JSON INVOCATION COLUMNS QUOTA GROUP LIBRARY ARM ARM

Markdown goes to stdout; with a name in JSON all of it goes there. A ratio is that of the two runs of one round, with the drop-in to
without: above 1 the drop-in is faster. Or, where the arms are `first` and `second`, the second run to the first, both without it.
"""

import json
import os
import platform
import statistics
import sys

records, out, invocation, columns, quota, group, library, one, other = sys.argv[1:]
runs = [json.loads(line) for line in open(records)]
programs = list(dict.fromkeys(run["program"] for run in runs))
columns = columns.split(",")
# Programs that have their own number of threads have a column, which may be the only one.
if any(run["column"] == "alone" for run in runs):
    columns = (columns if any(run["column"] in columns for run in runs) else []) + ["alone"]
ARMS = {
    "without": "without the drop-in",
    "with": "with the drop-in",
    "first": "in the first run",
    "second": "in the second run",
}


def cell(program, column):
    """What is said of one program in one column, or nothing if it did not run there."""
    these = [run for run in runs if run["program"] == program and run["column"] in (column, "all")]
    if not these:
        return None
    bad = [run for run in these if run["status"] != "ok"]
    if bad:
        worst = bad[0]
        if worst["status"] == "skipped":
            return {"skipped": True}
        return {"problem": f"{worst['status']} {ARMS[worst['arm']]}: {worst['note']}", "problems": len(bad), "of": len(these)}
    rounds = {}
    for run in these:
        rounds.setdefault(run["round"], {})[run["arm"]] = run
    if "rate" not in these[0]:
        return {"right": True, "runs": len(these)}
    pairs = [(r[one]["rate"], r[other]["rate"]) for r in rounds.values()]
    ratios = [b / a for a, b in pairs if a]
    frugal = [r[other]["rate"] / r[other]["cpu"] / (r[one]["rate"] / r[one]["cpu"]) for r in rounds.values() if all(
        r[arm]["rate"] and r[arm]["cpu"] for arm in r)]
    return {
        "threads": these[0]["threads"],
        "unit": these[0]["unit"],
        one: statistics.median(a for a, _ in pairs),
        other: statistics.median(b for _, b in pairs),
        "ratios": ratios,
        "median": statistics.median(ratios) if ratios else None,
        "least": min(ratios, default=None),
        "most": max(ratios, default=None),
        "per_cpu_second": frugal,
        "latency": {arm: statistics.median(r[arm]["latency"] for r in rounds.values()) for arm in (one, other) if "latency" in these[0]},
    }


def figure(number):
    """Three digits that count, and thousands apart."""
    if number >= 1000:
        digits = len(str(int(number)))
        return f"{round(number, 3 - digits):,.0f}".replace(",", " ")
    return f"{number:.3g}"


def ratio_text(found):
    if found is None:
        return "-"
    if "skipped" in found:
        return "skipped"
    if "problem" in found:
        return found["problem"].split(":")[0]
    if "right" in found:
        return "right"
    if found["median"] is None:
        return "nothing done"
    return spread(found["ratios"])


def frugal_text(found):
    return spread(found["per_cpu_second"]) if found and found.get("per_cpu_second") else "-"


def spread(ratios):
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def rates_text(found):
    if found is None or "unit" not in found:
        return "-"
    return f"{figure(found[one])}, {figure(found[other])}"


def latency_text(found):
    return f"{figure(found['latency'][one])}, {figure(found['latency'][other])}" if found and found.get("latency") else "-"


def row(cells):
    print("| " + " | ".join(cells) + " |")


table = {p: {c: found for c in columns if (found := cell(p, c))} for p in programs}
if not group:  # no permission
    for cells in table.values():
        if "quota" in columns and "alone" not in cells:
            cells["quota"] = {"skipped": True}
cpus = len(os.sched_getaffinity(0))
model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.machine())
machine = {
    "cpus": cpus,
    "model": model,
    "kernel": platform.release(),
    "libc": os.confstr("CS_GNU_LIBC_VERSION"),
    "load": os.getloadavg(),
}
choices = {name: value for name, value in os.environ.items() if name.startswith("OVERLOCK_")}

titles = {c: f"{c}: {c[:-1] and int(c[:-1]) * cpus} threads" if c[:-1].isdigit() else c for c in columns}
if "quota" in titles:
    titles["quota"] = f"{4 * cpus} threads, {quota} % of a CPU"
if "alone" in titles:
    titles["alone"] = "its own threads"
prefix = "".join(f"{name}={value} " for name, value in sorted(choices.items()))
print(f"`{prefix}{invocation.strip()}`: {cpus} CPUs ({model}), Linux {machine['kernel']}, {machine['libc']}.\n")
what = "with the drop-in to without" if other == "with" else "the second run to the first, both without the drop-in"
print(f"Ratio of the rates, {what}: median of the rounds (least to most).\n")
row(["program", *(titles[c] for c in columns)])
row(["---"] * (len(columns) + 1))
for program in programs:
    row([program, *(ratio_text(table[program].get(c)) for c in columns)])
if any("unit" in found for cells in table.values() for found in cells.values()):
    print(f"\nRates, medians: {one}, {other}.\n")
    row(["program", "unit", *(titles[c] for c in columns)])
    row(["---"] * (len(columns) + 2))
    for program in programs:
        units = [found["unit"] for found in table[program].values() if "unit" in found]
        if units:
            row([program, units[0], *(rates_text(table[program].get(c)) for c in columns)])
    print("\nWork done in a second of CPU time, clients and servers together: ratio as above. On a busy machine a program whose waiters sleep gets")
    print("less of the CPUs than one whose waiters are awake, and its rate tells of that too; this figure does not.\n")
    row(["program", *(titles[c] for c in columns)])
    row(["---"] * (len(columns) + 1))
    for program in programs:
        if any("unit" in found for found in table[program].values()):
            row([program, *(frugal_text(table[program].get(c)) for c in columns)])
    if any(found.get("latency") for cells in table.values() for found in cells.values()):
        print(f"\nClients' latencies in microseconds, medians: {one}, {other}.\n")
        row(["program", *(titles[c] for c in columns)])
        row(["---"] * (len(columns) + 1))
        for program in programs:
            if any(found.get("latency") for found in table[program].values()):
                row([program, *(latency_text(table[program].get(c)) for c in columns)])
problems = [run for run in runs if run["status"] != "ok"]
if problems:
    print("\nProblems:\n")
    for run in problems:
        where = f", {run['column']}, round {run['round']}, {ARMS[run['arm']]}" if run["round"] else ""
        print(f"- {run['program']}{where}: {run['status']}: {run['note']}")
else:
    print(f"\n{len(runs)} runs; all ended by themselves, with the same answers.")

shares = [run["others"] / (run["others"] + run["cpu"]) for run in runs if "others" in run]
if shares:
    print(f"\nOf the CPU time that was used during the runs, others took {100 * statistics.median(shares):.0f} % (median), {100 * max(shares):.0f} % at most.")

if out:
    with open(out, "w") as file:
        document = {
            "command": invocation.strip(),
            "environment": choices,
            "machine": machine,
            "quota": int(quota) if group else None,
            "library": library or None,
            "table": table,
            "runs": runs,
        }
        json.dump(document, file, indent=1)
        file.write("\n")
