// The tables of locks, single waits and threads.

const tables = {};

function makeTables() {
  const all = () => locks().reduce((sum, row) => sum + row.ns, 0);
  const table = (id, columns, select) => {
    tables[id] = new RowTable(document.querySelector(`#${id} .table`), columns, select);
  };
  const share = (row) => {
    const bar = element("i");
    bar.style.width = `${(row.ns / (all() || 1)) * 100}%`;
    return element("span", { class: "share", title: percent(row.ns, all()) }, bar);
  };
  table(
    "locks",
    [
      { title: "lock", value: (row) => row.name, isPlace: true },
      { title: "kind", value: (row) => row.lock.kind, from: "middle" },
      timed("wait total", (row) => row.ns),
      { title: "share", value: (row) => row.ns, text: share, isNumber: true, from: "wide" },
      counted("waits", (row) => row.waits, "middle"),
      timed("p50", (row) => row.quantile(0.5), "wide"),
      timed("p90", (row) => row.quantile(0.9), "wide"),
      timed("p99", (row) => row.quantile(0.99), "middle"),
      timed("p99.9", (row) => row.quantile(0.999), "wide"),
      timed("longest", (row) => row.max, "middle"),
      { title: "acquired at", value: (row) => row.waiter, isPlace: true },
      { title: "held by", value: (row) => row.holder, isPlace: true, from: "middle" },
      {
        ...counted("acquired", (row) => row.lock.acquisitions, "wide"),
        text: (row) => (row.lock.is_estimated ? "~" : "") + count(row.lock.acquisitions),
      },
      timed("hold avg", (row) => row.lock.hold_avg_ns, "wide"),
      timed("hold max", (row) => row.lock.hold_max_ns, "wide"),
    ],
    selectLock,
  );
  table(
    "waits",
    [
      timed("length", (row) => row.wait.ns),
      {
        title: "at",
        value: (row) => row.wait.began,
        text: (row) => `${(row.wait.began / 1e9).toFixed(6)} s`,
        isNumber: true,
        from: "middle",
      },
      { title: "lock", value: (row) => profile.locks[row.wait.lock].name },
      { title: "thread", value: (row) => threadName(row.wait.thread), from: "middle" },
      { title: "acquired at", value: (row) => place(row.wait.stack), isPlace: true },
      {
        title: "held by",
        value: (row) => place(row.wait.holder_stack),
        isPlace: true,
        from: "middle",
      },
      { title: "holder", value: (row) => threadName(row.wait.holder), from: "wide" },
      {
        title: "mostly",
        value: (row) => CAUSES[mainCause(row.wait.parts)].name,
        from: "wide",
      },
    ],
    (row) => selectWait(row.index),
  );
  const span = () => profile.run.seconds * 1e9;
  const ofRun = (title, value) => ({
    title,
    value,
    from: "middle",
    text: (row) => percent(value(row), span()),
    isNumber: true,
  });
  table(
    "threads",
    [
      { title: "thread", value: (row) => threadName(row.index) },
      {
        title: "process",
        value: (row) => profile.processes[row.thread.process].program,
        from: "middle",
      },
      timed("waited", (row) => row.thread.wait_ns),
      ofRun("of the run", (row) => row.thread.wait_ns),
      timed("held", (row) => row.thread.held_ns),
      ofRun("held share", (row) => row.thread.held_ns),
      timed("CPU", (row) => row.thread.cpu_ns),
      ofRun("CPU share", (row) => row.thread.cpu_ns),
    ],
    (row) => {
      byId("search").value = threadName(row.index);
      search();
    },
  );
}

function fillTables() {
  tables.locks.show(locks().filter(lockMatches));
  const waits = profile.waits
    .map((wait, index) => ({ wait, index }))
    .filter(({ wait }) => isShown(wait.lock) && waitMatches(wait));
  tables.waits.show(waits.sort((a, b) => b.wait.ns - a.wait.ns));
  const threads = profile.threads
    .map((thread, index) => ({ thread, index }))
    .filter((row) => matches(threadName(row.index)));
  tables.threads.show(threads.sort((a, b) => b.thread.wait_ns - a.thread.wait_ns));
}

/** Goes through the table of waits. */
function stepWait(by) {
  const { rows } = tables.waits;
  if (!rows.length) return;
  const at = rows.findIndex((row) => row.index === state.selected);
  selectWait(rows[Math.min(Math.max(at + by, 0), rows.length - 1)].index);
}
