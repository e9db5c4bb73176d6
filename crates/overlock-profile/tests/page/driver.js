// Uses the page as people do, and notes each thing that is not as it should be.
const failed = [];
const check = (what, holds) => {
  if (!holds) failed.push(what);
};
const one = (selector) => document.querySelector(selector);
const all = (selector) => [...document.querySelectorAll(selector)];
const text = (selector) => one(selector).textContent;
const frame = () =>
  new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
const key = async (name) => {
  document.body.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true }));
  await frame();
};
const type = async (query) => {
  one("#search").value = query;
  one("#search").dispatchEvent(new Event("input"));
  await frame();
};
const pixels = () => one("#lanes").toDataURL();

addEventListener("error", (event) => failed.push(event.message));
await frame();

check("title", document.title === "Waits for locks: server");
check("wild names are text", text("#locks").includes("<\/script><b>\"'&;") && !one("b"));

const theme = document.documentElement.dataset.theme;
const before = pixels();
await key("t");
check("theme", document.documentElement.dataset.theme !== theme && pixels() !== before);
await key("t");

for (const name of ["w", "d", "a", "s", "j", "k"]) await key(name);
await key("w");
check("zoom", pixels() !== before);
await key("0");
check("all", pixels() === before);

check("by waiter", one("[name=by][value=waiter]").checked);
const waiters = text("#icicle");
await key("h");
check("by holder", one("[name=by][value=holder]").checked && text("#icicle") !== waiters);
check("unknown holders", text("#icicle").includes("(hold"));
await key("h");
const groups = all("#icicle g");
groups[3].dispatchEvent(new MouseEvent("click"));
check("a click zooms", all("#icicle .above").length > 0);
one("#unzoom").click();
check("zoom is reset", all("#icicle .above").length === 0);

const rows = (id) => all(`#${id} tbody tr[tabindex]`).length;
const some = rows("locks");
await key("e");
check("events", rows("locks") > some && text("#locks").includes("cond"));
await key("e");
check("wrappers are hidden", !text("#icicle").includes("uv_mutex_lock") || text("#matched") === "");
await key("r");
check("wrappers are shown", text("#locks").includes("uv_mutex_lock"));
await key("r");

await type("LOCK_3");
check("search in locks", rows("locks") === 1);
check(
  "search in the flame graph",
  all("#icicle .found").length > 0 && text("#matched").startsWith("found: "),
);
await type("no such name");
check("nothing found", rows("locks") === 0 && rows("waits") === 0);
await key("Escape");
check("the search ends", rows("locks") === some);

one("#waits th button").click();
const shortest = text("#waits tbody tr[tabindex] td");
one("#waits th button").click();
check("order", text("#waits tbody tr[tabindex] td") !== shortest);
one("#waits tbody tr[tabindex]").click();
check("details of a wait", !one("#details").hidden && text("#details").includes("Waiter's stack"));
const first = text("#details");
await key("n");
check("the next wait", text("#details") !== first);
await key("p");
check("back", text("#details") === first);
await key("Escape");
check("details close", one("#details").hidden);
one("#locks tbody tr[tabindex]").click();
check("details of a lock", text("#details").includes("While it was held here"));
one("#ribbons path").dispatchEvent(new MouseEvent("click"));
check("details of a pair", text("#details").includes("Most of it for"));
one("#threads tbody tr[tabindex]").click();
await frame();
check("a thread is searched for", rows("threads") === 1);
await key("Escape");
await key("Escape");

const box = one("#lanes").getBoundingClientRect();
one("#lanes").dispatchEvent(
  new PointerEvent("pointermove", { clientX: box.left + 400, clientY: box.top + 40 }),
);
one("#lanes").dispatchEvent(
  new WheelEvent("wheel", {
    ctrlKey: true,
    deltaY: -1,
    clientX: box.left + 400,
    clientY: box.top + 40,
    cancelable: true,
  }),
);
one("#colour").value = "cause";
one("#colour").dispatchEvent(new Event("change"));
await frame();

await key("?");
check("help", one("#help").open && text("#help").includes("search"));
one("#help").close();
dispatchEvent(new Event("beforeprint"));
check(
  "print is light and has rows",
  document.documentElement.dataset.theme === "light" && rows("waits") === 50,
);
dispatchEvent(new Event("afterprint"));
check("and ends", document.documentElement.dataset.theme === theme);

document.body.dataset.failed = failed.join("; ");
document.body.dataset.checked = "yes";
