// Causes as stacked bars, lengths of waits on a logarithmic axis, and who waits for whom.

const BARS = 15;
const RIBBONS = 30;

function confidence(cause) {
  const { key } = CAUSES[cause];
  return key === "unknown" ? "unknown" : profile.run.known[key.replace("-", "_")];
}

function drawCauses() {
  const rows = locks().filter(lockMatches);
  const all = { name: "all locks", ns: 0, parts: CAUSES.map(() => 0), blocked: new Map() };
  for (const row of rows) {
    all.ns += row.ns;
    row.parts.forEach((ns, at) => {
      all.parts[at] += ns;
    });
    for (const sum of row.sums) for (const [by, ns] of sum.blocked) add(all.blocked, by, ns);
  }
  const legend = CAUSES.map((cause, at) => {
    const sure = confidence(at);
    const box = element("i", { class: sure, style: `background-color: var(--${cause.key})` });
    return element(
      "span",
      { title: cause.meaning },
      box,
      at === CAUSES.length - 1
        ? cause.name
        : `${cause.name} (${sure === "unknown" ? "not known" : sure})`,
    );
  });
  const bars = [all, ...rows.slice(0, BARS)]
    .filter((row) => row.ns > 0)
    .flatMap((row) => {
      const segments = row.parts.map((ns, at) => {
        const text = `${CAUSES[at].name}: ${time(ns)}, ${percent(ns, row.ns)}${blockedText(row, at)}`;
        const style = `background-color: var(--${CAUSES[at].key}); width: ${(ns / row.ns) * 100}%`;
        return element("i", { class: confidence(at), style, title: text });
      });
      const main = mainCause(row.parts);
      const figure = `${time(row.ns)}, ${percent(row.parts[main], row.ns)} ${CAUSES[main].name}`;
      return [
        element("span", { class: "name", title: row.name }, row.name),
        element(
          "span",
          { class: "stack", role: "img", "aria-label": `${row.name}: ${figure}` },
          ...segments,
        ),
        element("span", { class: "figure soft" }, figure),
      ];
    });
  document
    .getElementById("why")
    .replaceChildren(
      element("div", { class: "legend" }, ...legend),
      element("div", { class: "rows" }, ...bars),
      element(
        "p",
        { class: "soft" },
        "Measured: of each wait, from clocks or events. Sampled (hatched): from looks at intervals, right in a sum of many waits.",
      ),
    );
}

function blockedText(row, cause) {
  if (cause !== BLOCKED || !row.blocked.size) return "";
  const by = [...row.blocked].sort((a, b) => b[1] - a[1]).slice(0, 4);
  return ` (${by.map(([name, ns]) => `${name} ${time(ns)}`).join(", ")})`;
}

const MARKS = [
  ["p50", 0.5],
  ["p90", 0.9],
  ["p99", 0.99],
  ["p99.9", 0.999],
];

function drawLengths() {
  const rows = locks()
    .filter((row) => lockMatches(row) && row.lock.lengths.length)
    .slice(0, BARS);
  let [low, high] = [Infinity, 1];
  for (const {
    lock: { lengths },
  } of rows) {
    low = Math.min(low, Math.max(1, lengths[0][0]));
    high = Math.max(high, lengths[lengths.length - 1][0]);
  }
  const [from, to] = [
    Math.floor(Math.log10(low)),
    Math.max(Math.ceil(Math.log10(high + 1)), Math.floor(Math.log10(low)) + 1),
  ];
  const wide = 1000;
  const x = (ns) => ((Math.log10(Math.max(1, ns)) - from) / (to - from)) * wide;
  const drawnRows = rows.flatMap((row) => {
    const bins = new Map();
    for (const [ns, number] of row.lock.lengths)
      add(bins, Math.floor(Math.log10(Math.max(1, ns)) * 10), number);
    const highest = Math.max(...bins.values());
    const picture = drawn("svg", {
      viewBox: `0 0 ${wide} 54`,
      height: 54,
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": `Lengths of waits for ${row.name}`,
    });
    for (let decade = from; decade <= to; decade++) {
      picture.append(
        drawn("line", { class: "grid", x1: x(10 ** decade), x2: x(10 ** decade), y1: 0, y2: 54 }),
      );
    }
    for (const [bin, number] of bins) {
      const tall = Math.max(1, (number / highest) * 50);
      const bar = drawn("rect", {
        class: "bin",
        x: x(10 ** (bin / 10)),
        y: 54 - tall,
        width: wide / (to - from) / 10 - 0.5,
        height: tall,
      });
      bar.append(
        drawn(
          "title",
          {},
          `${time(10 ** (bin / 10))} to ${time(10 ** ((bin + 1) / 10))}: ${count(number)} waits`,
        ),
      );
      picture.append(bar);
    }
    const marks = [
      ...MARKS.map(([name, share]) => [name, row.quantile(share)]),
      ["longest", row.max],
    ];
    for (const [name, ns] of marks) {
      const line = drawn("line", {
        class: "tick",
        x1: x(ns),
        x2: x(ns),
        y1: 0,
        y2: 54,
        "vector-effect": "non-scaling-stroke",
      });
      line.append(drawn("title", {}, `${name}: ${time(ns)}`));
      picture.append(line);
    }
    const texts = marks.map(([name, ns]) => `${name} ${time(ns)}`);
    return [
      element("span", { class: "name", title: row.name }, row.name),
      element("span", {}, picture),
      element(
        "span",
        { class: "figure soft" },
        texts.slice(0, 3).join(", "),
        element("br"),
        texts.slice(3).join(", "),
      ),
    ];
  });
  const decades = [];
  for (let decade = from; decade < to; decade++)
    decades.push(element("span", { style: "flex: 1 0 0" }, time(10 ** decade)));
  const axis = [
    element("span"),
    element("span", { class: "soft", style: "display: flex" }, ...decades),
    element("span", { class: "figure" }),
  ];
  document
    .getElementById("distributions")
    .replaceChildren(
      rows.length
        ? element("div", { class: "rows" }, ...axis, ...drawnRows)
        : element("p", {}, "Nothing to show."),
    );
}

/** Holders on the left, waiters on the right; a ribbon's width is the time. */
function drawGraph() {
  const pairs = new Map();
  for (const sum of profile.sums) {
    if (!isShown(sum.lock) || !sum.wait_ns || sum.holder_stack === null) continue;
    const [holder, waiter] = [place(sum.holder_stack), place(sum.stack)];
    if (!matches(holder, waiter, profile.locks[sum.lock].name)) continue;
    const key = JSON.stringify([holder, waiter]);
    if (!pairs.has(key)) pairs.set(key, { holder, waiter, ns: 0, waits: 0, longest: sum });
    const pair = pairs.get(key);
    pair.ns += sum.wait_ns;
    pair.waits += sum.waits;
    if (sum.wait_ns > pair.longest.wait_ns) pair.longest = sum;
  }
  const shown = [...pairs.values()].sort((a, b) => b.ns - a.ns).slice(0, RIBBONS);
  const target = document.getElementById("ribbons");
  if (!shown.length) return target.replaceChildren(element("p", {}, "No holder is known."));
  const total = shown.reduce((sum, pair) => sum + pair.ns, 0);
  const wide = Math.max(target.clientWidth || 800, 320);
  const scale = Math.min(420, 70 * shown.length) / total;
  const side = (key) => {
    const nodes = new Map();
    for (const pair of shown) {
      if (!nodes.has(pair[key])) nodes.set(pair[key], { ns: 0, used: 0 });
      nodes.get(pair[key]).ns += pair.ns;
    }
    let y = 24;
    for (const node of nodes.values()) {
      node.y = y;
      node.tall = Math.max(2, node.ns * scale);
      y += Math.max(node.tall, 14) + 4;
    }
    return [nodes, y];
  };
  const [holders, left] = side("holder");
  const [waiters, right] = side("waiter");
  const label = Math.min(260, wide * 0.3);
  const [from, to] = [label + 8, wide - label - 8];
  const height = Math.max(left, right);
  const picture = drawn("svg", {
    viewBox: `0 0 ${wide} ${height}`,
    height,
    role: "img",
    "aria-label": "Holders and waiters",
  });
  picture.append(
    drawn("text", { x: label, y: 12, "text-anchor": "end" }, "holder"),
    drawn("text", { x: wide - label, y: 12 }, "waiter"),
  );
  for (const pair of shown) {
    const [a, b, tall] = [
      holders.get(pair.holder),
      waiters.get(pair.waiter),
      Math.max(1, pair.ns * scale),
    ];
    const [y, z, middle] = [a.y + a.used, b.y + b.used, (from + to) / 2];
    [a.used, b.used] = [a.used + tall, b.used + tall];
    const d = `M${from},${y} C${middle},${y} ${middle},${z} ${to},${z} L${to},${z + tall} C${middle},${z + tall} ${middle},${y + tall} ${from},${y + tall} Z`;
    const text = `${pair.waiter} waited ${time(pair.ns)} in ${count(pair.waits)} waits for ${pair.holder}`;
    const choose = () => showPair(pair);
    picture.append(
      drawn("path", {
        d,
        tabindex: 0,
        "aria-label": text,
        click: choose,
        keydown: (event) => {
          if (event.key === "Enter") choose();
        },
        pointermove: (event) => showTip(event, text),
        pointerleave: hideTip,
      }),
    );
  }
  const letters = Math.max(4, Math.floor(label / 6.6));
  const ends = (nodes, x, at, anchor) => {
    for (const [name, node] of nodes) {
      const text = drawn(
        "text",
        { x: at, y: node.y + Math.max(node.tall, 14) / 2 + 4, "text-anchor": anchor },
        cut(name, letters),
      );
      text.append(drawn("title", {}, `${name}: ${time(node.ns)}`));
      picture.append(drawn("rect", { x, y: node.y, width: 6, height: node.tall }), text);
    }
  };
  ends(holders, from - 6, label, "end");
  ends(waiters, to, wide - label, "start");
  target.replaceChildren(picture);
}
