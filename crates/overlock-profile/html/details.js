// What was selected, in a panel beside the pictures.

function showDetails(...content) {
  const close = element(
    "button",
    { type: "button", class: "close", title: "Close (Esc)", click: hideDetails },
    "Close",
  );
  byId("details").replaceChildren(close, ...content);
  byId("details").hidden = false;
}

function hideDetails() {
  byId("details").hidden = true;
  state.selected = -1;
  soon("timeline", () => timeline.draw());
}

function stackList(title, stack) {
  if (stack === null) return element("p", {}, `${title}: not known`);
  const lines = frames(stack).map((frame) =>
    element(
      "li",
      {},
      frame.name,
      element(
        "span",
        { class: "soft" },
        ` ${frame.place || frame.module || ""}${frame.kind === "native" ? "" : ` (${frame.kind})`}`,
      ),
    ),
  );
  return element(
    "div",
    {},
    element("h3", {}, title),
    lines.length ? element("ol", {}, ...lines) : "not known",
  );
}

function causeList(parts, blocked, ns) {
  const row = { blocked: new Map(blocked) };
  const seen = parts
    .map((part, at) => [part, at])
    .filter(([part]) => part > 0)
    .sort((a, b) => b[0] - a[0]);
  const lines = seen.map(([part, at]) => {
    const sure = at === CAUSES.length - 1 ? "" : `, ${confidence(at)}`;
    return element(
      "li",
      {},
      `${CAUSES[at].name}: ${time(part)}, ${percent(part, ns)}${sure}${blockedText(row, at)}`,
    );
  });
  return element("div", {}, element("h3", {}, "Why"), element("ol", {}, ...lines));
}

function selectWait(index) {
  state.selected = index;
  const wait = profile.waits[index];
  const links = chainOf(index).map((link) => {
    const it = profile.waits[link];
    const text = `${threadName(it.thread)} waited ${time(it.ns)} for ${profile.locks[it.lock].name}, held by ${threadName(it.holder)}`;
    return element("li", {}, text);
  });
  showDetails(
    element(
      "h3",
      {},
      `${time(wait.ns)} for ${lockInSentence(profile.locks[wait.lock])}${wait.gave_up ? ", and gave up" : ""}`,
    ),
    element("ol", {}, ...links),
    causeList(wait.parts, wait.blocked, wait.ns),
    stackList("Waiter's stack", wait.stack),
    stackList("Holder's stack", wait.holder_stack),
  );
  timeline.reveal(index);
  soon("timeline", () => timeline.draw());
}

/** What the table of locks has no room for in a narrow window. */
function figures(row) {
  const { lock } = row;
  const lengths = [0.5, 0.9, 0.99, 0.999].map(
    (share) => `p${share * 100} ${time(row.quantile(share))}`,
  );
  const all = [...lengths, `longest ${time(row.max)}`];
  if (lock.acquisitions !== null)
    all.push(`acquired ${lock.is_estimated ? "~" : ""}${count(lock.acquisitions)}`);
  if (lock.hold_avg_ns !== null)
    all.push(`held for ${time(lock.hold_avg_ns)}, at most ${time(lock.hold_max_ns)}`);
  return `${all.join(", ")}.`;
}

function selectLock(row) {
  const pairs = profile.sums
    .filter((sum) => sum.lock === row.index)
    .sort((a, b) => b.wait_ns - a.wait_ns);
  const { lock } = row;
  showDetails(
    element("h3", {}, lockName(lock)),
    element(
      "p",
      {},
      `${time(row.ns)} in ${count(row.waits)} waits, ${count(row.gaveUp)} of which gave up. Address ${lock.address}, ${count(lock.objects)} ${lock.objects === 1 ? "object" : "objects"}.`,
    ),
    element("p", {}, figures(row)),
    causeList(row.parts, row.blocked, row.ns),
    element("p", {}, lock.advice),
    stackList("Most waited here", pairs[0].stack),
    stackList("While it was held here", pairs[0].holder_stack),
    ...(lock.init === null ? [] : [stackList("Initialised", lock.init)]),
  );
}

function showPair(pair) {
  const sum = pair.longest;
  showDetails(
    element("h3", {}, `${pair.waiter} waited ${time(pair.ns)} for ${pair.holder}`),
    element("p", {}, `Most of it for ${lockInSentence(profile.locks[sum.lock])}.`),
    causeList(sum.parts, sum.blocked, sum.wait_ns),
    stackList("Holder's stack", sum.holder_stack),
    stackList("Waiter's stack", sum.stack),
  );
}
