// The page as a whole: what is selected, switches, search and keys.

function drawFacts() {
  const { run, lost } = profile;
  const rows = locks();
  const total = rows.reduce((sum, row) => sum + row.ns, 0);
  const command = run.command.join(" ") || "a process that ran already";
  const facts = [
    `${command}. ${run.date_s ? `${new Date(run.date_s * 1000).toISOString().replace(/\.\d+Z/, "Z")}, ` : ""}${run.seconds.toFixed(1)} s, ${count(profile.threads.length)} threads, ${run.cpus} CPUs${run.quota === null ? "" : ` with a quota of ${run.quota}`}. Locks: ${run.locks}; seen by: ${run.source}.`,
    `${time(total)} in ${count(rows.reduce((sum, row) => sum + row.waits, 0))} waits for ${count(rows.length)} locks.`,
  ];
  if (profile.no_gain) facts.push(profile.no_gain);
  else if (rows.length) {
    const [top] = rows;
    facts.push(
      `Look at ${lockInSentence(top.lock)} first: ${percent(top.ns, total)} of the time. Most waited in ${top.waiter}, while ${top.holder} held it. ${top.lock.advice}`,
    );
  }
  const missing = [
    [lost.waits, "waits that are in no sum"],
    [lost.single_waits, "waits that are in the sums, and not single"],
    [profile.left_out, "shorter waits that are only in the sums of this page"],
    [lost.short_waits, `waits shorter than ${time(run.threshold_ns)}`],
    [lost.stacks, "stacks that found no room"],
    [lost.events, "events that came too fast"],
  ].filter(([number]) => number > 0);
  if (missing.length)
    facts.push(
      `Not here: ${missing.map(([number, text]) => `${count(number)} ${text}`).join(", ")}.`,
    );
  byId("facts").replaceChildren(...facts.map((text) => element("p", {}, text)));
  const name = (run.command[0] || (profile.processes[0] || { program: "" }).program)
    .split("/")
    .pop();
  document.title = byId("title").textContent = name
    ? `Waits for locks: ${name}`
    : "Waits for locks";
}

function drawPictures() {
  timeline.draw();
  flame.draw();
  drawCauses();
  drawLengths();
  drawGraph();
}

/** All anew, after a switch. */
function refill() {
  forget();
  drawFacts();
  timeline.fill();
  flame.fill();
  fillTables();
  drawPictures();
}

function search() {
  state.query = byId("search").value.trim().toLowerCase();
  soon("search", () => {
    fillTables();
    drawPictures();
  });
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
}

const KEYS = [
  ["/", "search", () => byId("search").focus()],
  ["?", "this list", () => byId("help").showModal()],
  [
    "t",
    "light or dark",
    () => {
      setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
      drawPictures();
    },
  ],
  ["Esc", "close, or end the search", null],
  ["w", "timeline: zoom in", () => timeline.zoom(0.5)],
  ["s", "timeline: zoom out", () => timeline.zoom(2)],
  ["a", "timeline: to the left", () => timeline.pan(-0.2)],
  ["d", "timeline: to the right", () => timeline.pan(0.2)],
  ["j", "timeline: down", () => timeline.scroll(LANE * 5)],
  ["k", "timeline: up", () => timeline.scroll(-LANE * 5)],
  ["0", "timeline: all", () => timeline.reset()],
  ["n", "the next shorter wait", () => stepWait(1)],
  ["p", "the next longer wait", () => stepWait(-1)],
  [
    "h",
    "flame graph by waiter or by holder",
    () => flame.choose(flame.by === "waiter" ? "holder" : "waiter"),
  ],
  ["e", "with waits for events, or without", () => byId("events").click()],
  ["r", "with wrappers, or without", () => byId("wrappers").click()],
  ["1 to 9", "a section", null],
];

function press(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") {
    if (byId("help").open) return;
    if (!byId("details").hidden) hideDetails();
    else if (byId("search").value) {
      byId("search").value = "";
      search();
    }
    document.activeElement.blur();
    return;
  }
  if (event.target.closest("input[type=search], select") || byId("help").open) return;
  const section = "123456789".indexOf(event.key);
  const known = KEYS.find(([key]) => key === event.key);
  if (section >= 0) document.querySelectorAll("nav a")[section].click();
  else if (known && known[2]) known[2]();
  else return;
  event.preventDefault();
}

function makeHelp() {
  const rows = KEYS.map(([key, text]) =>
    element("tr", {}, element("td", {}, element("kbd", {}, key)), element("td", {}, text)),
  );
  const close = element("button", { type: "button", click: () => byId("help").close() }, "Close");
  byId("help").append(
    element("table", {}, ...rows),
    element(
      "p",
      {},
      "Timeline: drag to move, Ctrl and the wheel to zoom, a click for details. Flame graph: a click zooms.",
    ),
    close,
  );
}

function listen() {
  timeline.listen();
  flame.listen();
  document.addEventListener("keydown", press);
  byId("search").addEventListener("input", search);
  byId("help-button").addEventListener("click", () => byId("help").showModal());
  byId("theme").addEventListener("click", () => KEYS.find(([key]) => key === "t")[2]());
  for (const name of ["events", "wrappers"]) {
    byId(name).checked = state[name];
    byId(name).addEventListener("change", () => {
      state[name] = byId(name).checked;
      refill();
    });
  }
  addEventListener("resize", () => soon("resize", drawPictures));
  const dark = matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", () => {
    setTheme(dark.matches ? "dark" : "light");
    drawPictures();
  });
  let before = "light";
  const print = (printing) => {
    if (printing) before = document.documentElement.dataset.theme;
    setTheme(printing ? "light" : before);
    for (const table of Object.values(tables)) {
      table.printing = printing;
      table.draw();
    }
    drawPictures();
  };
  addEventListener("beforeprint", () => print(true));
  addEventListener("afterprint", () => print(false));
  setTheme(dark.matches ? "dark" : "light");
}

const begun = performance.now();
makeTables();
makeHelp();
listen();
refill();
// Layout is a part of it; tests read the figure.
void document.body.offsetHeight;
document.documentElement.dataset.drawnMs = (performance.now() - begun).toFixed(1);
