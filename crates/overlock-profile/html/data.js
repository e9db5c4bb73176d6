// The profile, and what all parts of the page ask of it.

const profile = JSON.parse(document.getElementById("profile").textContent);
const state = {
  events: profile.shown.events,
  wrappers: profile.shown.wrappers,
  query: "",
  selected: -1,
};

const CAUSES = profile.causes;
const BLOCKED = 3;
const UNKNOWN = "(holder unknown)";

const cache = { frames: new Map(), locks: null };

/** Forgets what depends on the switches. */
function forget() {
  cache.frames.clear();
  cache.locks = null;
}

/** The frames of a stack that are shown, the innermost first. */
function frames(stack) {
  if (stack === null) return [];
  let known = cache.frames.get(stack);
  if (!known) {
    const all = profile.stacks[stack].map((frame) => profile.frames[frame]);
    const callers = all.filter((frame) => state.wrappers || !frame.is_wrapper);
    known = callers.length ? callers : all;
    cache.frames.set(stack, known);
  }
  return known;
}

/** The short form of a function's name. */
const brief = (frame) => frame.brief || frame.name;

/** The function that a stack stands for. */
function place(stack) {
  if (stack === null) return UNKNOWN;
  const shown = frames(stack);
  return shown.length ? brief(shown[0]) : "(stack unknown)";
}

function lockName(lock) {
  return `${lock.name} (${lock.kind})`;
}

/** The same as a part of a sentence. */
function lockInSentence(lock) {
  return (lock.name.startsWith("of ") ? "the lock " : "") + lockName(lock);
}

function threadName(index) {
  if (index === null) return "unknown";
  const thread = profile.threads[index];
  return thread.name ? `${thread.name} [${thread.tid}]` : `thread ${thread.tid}`;
}

function isShown(lock) {
  return state.events || !profile.locks[lock].is_event;
}

/** The length that this share of the waits does not exceed; lengths are rounded up, the longest not. */
function quantile(lock, share, longest) {
  const all = lock.lengths.reduce((sum, [, number]) => sum + number, 0);
  let left = Math.max(1, Math.ceil(all * share));
  for (const [ns, number] of lock.lengths) {
    left -= number;
    if (left <= 0) return Math.min(ns, longest);
  }
  return null;
}

/** The name with the most; what is not known only where nothing else is. */
function most(times) {
  let best = "-";
  let longest = -1;
  for (const [name, ns] of times) {
    const weight = name === UNKNOWN ? 0 : ns;
    if (weight > longest) [best, longest] = [name, weight];
  }
  return best;
}

/** Adds to a sum by name. */
function add(map, key, value) {
  map.set(key, (map.get(key) || 0) + value);
}

/** A lock with its waits. Of a hundred thousand only some are looked at: the rest is done then. */
class LockRow {
  constructor(index) {
    this.index = index;
    this.lock = profile.locks[index];
    this.name = this.lock.name;
    this.parts = CAUSES.map(() => 0);
    Object.assign(this, { sums: [], waits: 0, ns: 0, max: 0, gaveUp: 0, known: {} });
  }

  add(sum) {
    this.sums.push(sum);
    this.waits += sum.waits;
    this.ns += sum.wait_ns;
    this.max = Math.max(this.max, sum.max_ns);
    this.gaveUp += sum.gave_up;
    for (let cause = 0; cause < this.parts.length; cause++) this.parts[cause] += sum.parts[cause];
  }

  once(name, make) {
    if (!(name in this.known)) this.known[name] = make();
    return this.known[name];
  }

  /** The time at each place, of waiters or of holders. */
  times(stack) {
    const times = new Map();
    for (const sum of this.sums) add(times, place(sum[stack]), sum.wait_ns);
    return times;
  }

  quantile(share) {
    return this.once(share, () => quantile(this.lock, share, this.max));
  }

  get waiters() {
    return this.once("waiters", () => this.times("stack"));
  }

  get holders() {
    return this.once("holders", () => this.times("holder_stack"));
  }

  get waiter() {
    return this.once("waiter", () => most(this.waiters));
  }

  get holder() {
    return this.once("holder", () => most(this.holders));
  }

  get blocked() {
    return this.once("blocked", () => {
      const times = new Map();
      for (const sum of this.sums) for (const [by, ns] of sum.blocked) add(times, by, ns);
      return times;
    });
  }
}

/** Locks with waits, the longest first. */
function locks() {
  if (cache.locks) return cache.locks;
  const rows = new Map();
  for (const sum of profile.sums) {
    if (!isShown(sum.lock) || !sum.waits) continue;
    let row = rows.get(sum.lock);
    if (!row) {
      row = new LockRow(sum.lock);
      rows.set(sum.lock, row);
    }
    row.add(sum);
  }
  cache.locks = [...rows.values()].sort((a, b) => b.ns - a.ns);
  return cache.locks;
}

/** Whether one of the texts has what is searched for. */
function matches(...texts) {
  return !state.query || texts.some((text) => text.toLowerCase().includes(state.query));
}

function lockMatches(row) {
  if (!state.query) return true;
  return matches(row.lock.name, row.lock.kind, ...row.waiters.keys(), ...row.holders.keys());
}
