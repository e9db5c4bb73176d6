// The flame graph, with its root at the top.

const STEP = 19;

const flame = {
  by: profile.shown.by,
  root: null,
  zoomed: null,

  fill() {
    const name = "all waits";
    const root = { name, label: name, ns: 0, waits: 0, children: new Map(), parent: null };
    for (const sum of profile.sums) {
      if (!isShown(sum.lock) || !sum.wait_ns) continue;
      let node = root;
      const pass = (name, label = name) => {
        let next = node.children.get(name);
        if (!next) {
          next = { name, label, ns: 0, waits: 0, children: new Map(), parent: node };
          node.children.set(name, next);
        }
        next.ns += sum.wait_ns;
        next.waits += sum.waits;
        node = next;
      };
      root.ns += sum.wait_ns;
      root.waits += sum.waits;
      const lock = profile.locks[sum.lock];
      if (profile.processes.length > 1) pass(profile.processes[lock.process].program);
      const stack = this.by === "waiter" ? sum.stack : sum.holder_stack;
      const shown = frames(stack);
      if (shown.length)
        for (let at = shown.length - 1; at >= 0; at--) pass(shown[at].name, brief(shown[at]));
      else pass(place(stack));
      pass(lockName(lock));
    }
    this.root = root;
    this.zoomed = root;
  },

  draw() {
    const holder = document.getElementById("icicle");
    const width = holder.clientWidth || 800;
    const made = [];
    let depth = 0;
    let found = 0;
    const light = colour("frame-light");
    const box = (node, x, level, wide, isAbove, isWithin) => {
      depth = Math.max(depth, level + 1);
      const isFound = Boolean(state.query) && node !== this.root && matches(node.name);
      if (isFound && !isWithin) found += node.ns;
      if (wide >= 0.7) made.push(this.frame(node, x, level, wide, isAbove, isFound, light));
      return isWithin || isFound;
    };
    const above = [];
    for (let node = this.zoomed.parent; node; node = node.parent) above.unshift(node);
    above.forEach((node, level) => box(node, 0, level, width, true, true));
    // No recursion: stacks may be deep.
    const todo = [{ node: this.zoomed, x: 0, level: above.length, wide: width, isWithin: false }];
    while (todo.length) {
      const { node, x, level, wide, isWithin } = todo.pop();
      const isBelow = box(node, x, level, wide, false, isWithin);
      let left = x;
      for (const child of [...node.children.values()].sort((a, b) => b.ns - a.ns)) {
        const share = (child.ns / node.ns) * wide;
        // Narrower ones are drawn nowhere, and count only for what is found.
        if (share >= 0.7 || state.query)
          todo.push({ node: child, x: left, level: level + 1, wide: share, isWithin: isBelow });
        left += share;
      }
    }
    const height = depth * STEP + 2;
    const picture = drawn(
      "svg",
      {
        viewBox: `0 0 ${width} ${height}`,
        height,
        role: "img",
        "aria-label": `Flame graph of waiting by ${this.by}`,
      },
      ...made,
    );
    holder.replaceChildren(
      this.root.ns ? picture : element("p", {}, "No thread waited for a lock."),
    );
    document.getElementById("matched").textContent = state.query
      ? `found: ${percent(found, this.zoomed.ns)}`
      : "";
  },

  frame(node, x, level, wide, isAbove, isFound, light) {
    const fill =
      node === this.root
        ? colour("panel")
        : `hsl(${this.by === "waiter" ? hue(node.name) % 60 : 190 + (hue(node.name) % 70)} 75% ${light})`;
    const group = drawn("g", {
      class: (isAbove ? "above " : "") + (isFound ? "found" : ""),
      click: () => this.zoom(node),
      keydown: (event) => {
        if (event.key === "Enter") this.zoom(node);
      },
      pointermove: (event) =>
        showTip(
          event,
          `${node.name}\n${time(node.ns)} (${percent(node.ns, this.root.ns)}) in ${count(node.waits)} waits`,
        ),
      pointerleave: hideTip,
    });
    if (wide > 12) group.setAttribute("tabindex", "0");
    group.append(
      drawn("rect", {
        x,
        y: level * STEP,
        width: Math.max(0.5, wide - 0.6),
        height: STEP - 1,
        rx: 1,
        style: `fill: ${fill}`,
      }),
    );
    const letters = Math.floor((wide - 8) / 6.6);
    if (letters > 2) {
      const label = drawn("text", { x: x + 4, y: level * STEP + 13 }, cut(node.label, letters));
      if (node === this.root) label.setAttribute("style", "fill: var(--text)");
      group.append(label);
    }
    return group;
  },

  zoom(node) {
    this.zoomed = node;
    hideTip();
    this.draw();
  },

  listen() {
    document.querySelector(`[name=by][value=${this.by}]`).checked = true;
    for (const radio of document.querySelectorAll("[name=by]")) {
      radio.addEventListener("change", () => this.choose(radio.value));
    }
    document.getElementById("unzoom").addEventListener("click", () => this.zoom(this.root));
  },

  choose(by) {
    this.by = by;
    document.querySelector(`[name=by][value=${by}]`).checked = true;
    this.fill();
    this.draw();
  },
};
