// The timeline: a lane for each thread that waited.

const LANE = 16;
const LABELS = 150;
const AXIS = 22;

const timeline = {
  canvas: document.getElementById("lanes"),
  lanes: [],
  laneOf: new Map(),
  from: 0,
  to: 1,
  top: 0,

  /** Sorts the waits into lanes; the thread that waited the longest is the first. */
  fill() {
    const lanes = new Map();
    profile.waits.forEach((wait, index) => {
      if (!isShown(wait.lock)) return;
      if (!lanes.has(wait.thread))
        lanes.set(wait.thread, { thread: wait.thread, ns: 0, waits: [] });
      const lane = lanes.get(wait.thread);
      lane.ns += wait.ns;
      lane.waits.push(index);
    });
    this.lanes = [...lanes.values()].sort((a, b) => b.ns - a.ns);
    this.laneOf = new Map(this.lanes.map((lane, at) => [lane.thread, at]));
    let [first, last] = [Infinity, 0];
    for (const lane of this.lanes) {
      lane.waits.sort((a, b) => profile.waits[a].began - profile.waits[b].began);
      // The longest so far tells how far back a wait may still reach into view.
      lane.longest = 0;
      for (const index of lane.waits) {
        const wait = profile.waits[index];
        lane.longest = Math.max(lane.longest, wait.ns);
        first = Math.min(first, wait.began);
        last = Math.max(last, wait.began + wait.ns);
      }
    }
    if (!(first < last)) [first, last] = [0, profile.run.seconds * 1e9 || 1];
    const margin = (last - first) / 50;
    this.all = [first - margin, last + margin];
    [this.from, this.to] = this.all;
    this.top = 0;
  },

  height() {
    return Math.min(Math.max(this.lanes.length, 3) * LANE + AXIS + 4, 440);
  },

  draw() {
    const { canvas } = this;
    const width = canvas.parentElement.clientWidth;
    const height = this.height();
    const ratio = window.devicePixelRatio || 1;
    canvas.style.height = `${height}px`;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    this.width = width;
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.fillStyle = colour("page");
    pen.fillRect(0, 0, width, height);
    pen.font = "12px system-ui, sans-serif";
    this.axis(pen, height);
    const colours = this.colours();
    const visible = Math.ceil((height - AXIS) / LANE) + 1;
    const start = Math.floor(this.top / LANE);
    pen.save();
    pen.beginPath();
    pen.rect(0, AXIS, width, height - AXIS);
    pen.clip();
    for (let at = start; at < Math.min(this.lanes.length, start + visible); at++)
      this.lane(pen, at, colours);
    this.chain(pen);
    pen.restore();
    document.getElementById("range").textContent =
      `${time(this.to - this.from)} in view, ${count(this.lanes.length)} threads, ${count(profile.waits.length)} waits`;
  },

  /** The colours of locks, or of causes. */
  colours() {
    if (document.getElementById("colour").value === "cause") {
      const causes = CAUSES.map((cause) => colour(cause.key));
      return (wait) => causes[mainCause(wait.parts)];
    }
    const light = colour("frame-light");
    const made = profile.locks.map(
      (lock) => `hsl(${hue(lock.name)} 65% ${light === "32%" ? "55%" : "48%"})`,
    );
    return (wait) => made[wait.lock];
  },

  x(ns) {
    return LABELS + ((ns - this.from) / (this.to - this.from)) * (this.width - LABELS);
  },

  y(lane) {
    return AXIS + lane * LANE - this.top;
  },

  axis(pen, height) {
    const step = niceStep((this.to - this.from) / Math.max(2, (this.width - LABELS) / 110));
    pen.strokeStyle = colour("line");
    pen.fillStyle = colour("soft");
    pen.textBaseline = "middle";
    for (let ns = Math.ceil(this.from / step) * step; ns < this.to; ns += step) {
      const x = Math.round(this.x(ns)) + 0.5;
      if (x < LABELS) continue;
      pen.beginPath();
      pen.moveTo(x, AXIS - 6);
      pen.lineTo(x, height);
      pen.stroke();
      pen.fillText(secondsOf(ns, step), x + 3, AXIS / 2);
    }
  },

  lane(pen, at, colours) {
    const lane = this.lanes[at];
    const y = this.y(at);
    pen.fillStyle = colours.text || (colours.text = colour("text"));
    pen.globalAlpha = 1;
    pen.save();
    pen.beginPath();
    pen.rect(0, y, LABELS - 6, LANE);
    pen.clip();
    pen.fillText(threadName(lane.thread), 4, y + LANE / 2 + 1);
    pen.restore();
    let drawnTo = -1;
    let last = "";
    for (let next = this.first(lane); next < lane.waits.length; next++) {
      const wait = profile.waits[lane.waits[next]];
      if (wait.began > this.to) break;
      const left = Math.max(LABELS, this.x(wait.began));
      const right = Math.max(left + 1, this.x(wait.began + wait.ns));
      if (right < LABELS) continue;
      const fill = colours(wait);
      const isFound = !state.query || waitMatches(wait);
      // What shares its pixel with another of its colour would not be seen.
      if (right <= drawnTo && fill === last && isFound) continue;
      pen.globalAlpha = isFound ? 1 : 0.15;
      pen.fillStyle = fill;
      pen.fillRect(left, y + 2, right - left, LANE - 4);
      if (lane.waits[next] === state.selected) {
        pen.strokeStyle = colours.text;
        pen.strokeRect(left - 1, y + 1, right - left + 2, LANE - 2);
      }
      if (isFound) [drawnTo, last] = [right, fill];
    }
    pen.globalAlpha = 1;
  },

  /** The first wait of a lane that may reach into view. */
  first(lane) {
    let [low, high] = [0, lane.waits.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (profile.waits[lane.waits[middle]].began + lane.longest < this.from) low = middle + 1;
      else high = middle;
    }
    return low;
  },

  /** Lines from the release by a holder to the waiter's wake-up, along the selected wait's chain. */
  chain(pen) {
    pen.strokeStyle = colour("mark");
    pen.lineWidth = 1.5;
    for (const index of chainOf(state.selected)) {
      const wait = profile.waits[index];
      const from = this.laneOf.get(wait.holder);
      const to = this.laneOf.get(wait.thread);
      if (from === undefined || to === undefined) continue;
      const released = wait.released === null ? wait.began + wait.ns : wait.released;
      pen.beginPath();
      pen.moveTo(this.x(released), this.y(from) + LANE / 2);
      pen.lineTo(this.x(wait.began + wait.ns), this.y(to) + LANE / 2);
      pen.stroke();
    }
    pen.lineWidth = 1;
  },

  zoom(factor, at = (this.from + this.to) / 2) {
    const span = Math.min(Math.max((this.to - this.from) * factor, 100), this.all[1] - this.all[0]);
    const share = (at - this.from) / (this.to - this.from);
    this.move(at - share * span, span);
  },

  pan(share) {
    const span = this.to - this.from;
    this.move(this.from + share * span, span);
  },

  move(from, span) {
    this.from = Math.min(Math.max(from, this.all[0]), this.all[1] - span);
    this.to = this.from + span;
    soon("timeline", () => this.draw());
  },

  scroll(pixels) {
    const most = Math.max(0, this.lanes.length * LANE + AXIS + 4 - this.height());
    const before = this.top;
    this.top = Math.min(Math.max(this.top + pixels, 0), most);
    soon("timeline", () => this.draw());
    return this.top !== before;
  },

  reset() {
    [this.from, this.to] = this.all;
    this.top = 0;
    soon("timeline", () => this.draw());
  },

  /** Brings a wait into view. */
  reveal(index) {
    const wait = profile.waits[index];
    const lane = this.laneOf.get(wait.thread);
    if (lane === undefined) return;
    const [end, span] = [wait.began + wait.ns, this.to - this.from];
    if (wait.began < this.from || end > this.to) {
      this.move(
        wait.began + wait.ns / 2 - Math.max(span, wait.ns * 1.5) / 2,
        Math.max(span, wait.ns * 1.5),
      );
    }
    const room = this.height() - AXIS - LANE;
    if (this.y(lane) < AXIS || this.y(lane) > AXIS + room)
      this.scroll(lane * LANE - this.top - room / 2);
  },

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  },

  ns(x) {
    return this.from + ((x - LABELS) / (this.width - LABELS)) * (this.to - this.from);
  },

  /** The wait at a point, to two pixels. */
  find([x, y]) {
    const lane = this.lanes[Math.floor((y - AXIS + this.top) / LANE)];
    if (!lane || x < LABELS || y < AXIS) return -1;
    const slack = (2 * (this.to - this.from)) / (this.width - LABELS);
    const at = this.ns(x);
    let best = -1;
    for (let next = this.first(lane); next < lane.waits.length; next++) {
      const wait = profile.waits[lane.waits[next]];
      if (wait.began - slack > at) break;
      if (wait.began + wait.ns + slack >= at) best = lane.waits[next];
    }
    return best;
  },

  listen() {
    const { canvas } = this;
    let drag = null;
    canvas.addEventListener("pointerdown", (event) => {
      drag = { at: this.at(event), from: this.from, top: this.top, moved: false };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      const [x, y] = this.at(event);
      if (!drag) return this.hover(event);
      drag.moved ||= Math.hypot(x - drag.at[0], y - drag.at[1]) > 3;
      const span = this.to - this.from;
      this.move(drag.from - ((x - drag.at[0]) / (this.width - LABELS)) * span, span);
      this.scroll(drag.top - (y - drag.at[1]) - this.top);
    });
    canvas.addEventListener("pointerup", (event) => {
      const found = drag && !drag.moved ? this.find(this.at(event)) : -1;
      drag = null;
      if (found >= 0) selectWait(found);
    });
    canvas.addEventListener("pointercancel", () => {
      drag = null;
    });
    canvas.addEventListener("pointerleave", hideTip);
    canvas.addEventListener(
      "wheel",
      (event) => {
        if (event.ctrlKey || event.metaKey) {
          event.preventDefault();
          this.zoom(event.deltaY < 0 ? 0.8 : 1.25, this.ns(this.at(event)[0]));
        } else if (this.scroll(event.deltaY)) event.preventDefault();
      },
      { passive: false },
    );
    document.getElementById("colour").addEventListener("change", () => this.draw());
    for (const button of document.querySelectorAll("#timeline [data-do]")) {
      const act = { in: () => this.zoom(0.5), out: () => this.zoom(2), all: () => this.reset() };
      button.addEventListener("click", act[button.dataset.do]);
    }
  },

  hover(event) {
    const found = this.find(this.at(event));
    if (found < 0) return hideTip();
    const wait = profile.waits[found];
    const lines = [
      `${threadName(wait.thread)} waited ${time(wait.ns)} for ${lockInSentence(profile.locks[wait.lock])}`,
      `in ${place(wait.stack)}`,
      `held by ${threadName(wait.holder)} in ${place(wait.holder_stack)}`,
      `mostly: ${CAUSES[mainCause(wait.parts)].name}`,
    ];
    showTip(event, lines.join("\n"));
  },
};

function mainCause(parts) {
  let best = 0;
  parts.forEach((ns, at) => {
    if (ns > parts[best]) best = at;
  });
  return best;
}

function waitMatches(wait) {
  return matches(
    profile.locks[wait.lock].name,
    place(wait.stack),
    place(wait.holder_stack),
    threadName(wait.thread),
  );
}

/** The wait, the one that its holder was in, and so on; documents may have circles. */
function chainOf(index) {
  const chain = [];
  while (index !== null && index >= 0 && !chain.includes(index)) {
    chain.push(index);
    index = profile.waits[index].behind;
  }
  return chain;
}

/** 1, 2 or 5 times a power of ten. */
function niceStep(least) {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= least);
}

function secondsOf(ns, step) {
  const [unit, size] = step >= 1e8 ? ["s", 1e9] : step >= 1e5 ? ["ms", 1e6] : ["us", 1e3];
  const digits = Math.max(0, Math.ceil(-Math.log10(step / size) - 1e-9));
  return `${(ns / size).toFixed(digits)} ${unit}`;
}
