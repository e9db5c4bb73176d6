"""The first row of --stat among the reports in the files: top.py FILE..."""

import json
import sys


def place(site):
    if not site:
        return "?"
    if site.get("function"):
        return site["function"]
    module = (site.get("module") or "?").rsplit("/", 1)[-1]
    return f"{module}+{site.get('offset') or site.get('address')}"


rows = []
for name in sys.argv[1:]:
    try:
        processes = json.load(open(name))["processes"]
    except (OSError, ValueError):
        continue
    for process in processes:
        for kind in "locks", "events":
            for row in process.get(kind) or []:
                wait = (row.get("wait") or {}).get("total_ns") or 0
                rows.append((kind == "locks" and wait > 0, wait, row, process["program"]))
if not rows:
    print("no locks")
else:
    _, wait, row, program = max(rows, key=lambda r: r[:2])
    # Templates of C++ have names without end.
    what = [row.get("lock") or row.get("name") or row.get("object") or row["kind"]]
    if row.get("site"):
        what.append(place(row["site"]))
    print(f"`{' at '.join(part[:60] for part in what)}` in {program}{'' if wait else ', no wait'}")
