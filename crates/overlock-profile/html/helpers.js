// Numbers for people, elements, colours, and the tip at the pointer.

const byId = (id) => document.getElementById(id);
const waiting = new Set();

/** Does it once before the next frame. */
function soon(name, what) {
  if (waiting.has(name)) return;
  waiting.add(name);
  requestAnimationFrame(() => {
    waiting.delete(name);
    what();
  });
}

function showTip(event, text) {
  const tip = byId("tip");
  tip.textContent = text;
  tip.hidden = false;
  const [wide, high] = [tip.offsetWidth, tip.offsetHeight];
  tip.style.left = `${Math.max(0, Math.min(event.clientX + 14, innerWidth - wide - 4))}px`;
  tip.style.top = `${event.clientY + 18 + high < innerHeight ? event.clientY + 18 : Math.max(0, event.clientY - high - 8)}px`;
}

function hideTip() {
  byId("tip").hidden = true;
}

/** Nanoseconds in the unit that suits them. */
function time(ns) {
  if (ns === null || ns === undefined) return "-";
  for (const [unit, size] of [
    ["s", 1e9],
    ["ms", 1e6],
    ["us", 1e3],
  ]) {
    if (ns >= size) {
      const value = ns / size;
      return `${value.toFixed(value < 10 ? 1 : 0)} ${unit}`;
    }
  }
  return `${Math.round(ns)} ns`;
}

function count(number) {
  return number === null || number === undefined ? "-" : number.toLocaleString("en-US");
}

function percent(part, all) {
  if (!(all > 0)) return "-";
  const share = (part / all) * 100;
  return `${share.toFixed(share < 10 ? 1 : 0)} %`;
}

/** An element; children that are no elements become text, so nothing of a profile is markup. */
function element(tag, attributes, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

function drawn(tag, attributes, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function filled(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (typeof value === "function") made.addEventListener(name, value);
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

/** The same hue for the same name, in every page. */
function hue(name) {
  let hash = 2166136261;
  for (let at = 0; at < name.length; at++) hash = Math.imul(hash ^ name.charCodeAt(at), 16777619);
  return (hash >>> 0) % 360;
}

/** The value of a colour that the style sheet names. */
function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** A name of at most so many letters: of a function the end says the most. */
function cut(name, letters) {
  if (name.length <= letters) return name;
  return name.startsWith("(") ? `${name.slice(0, letters - 1)}…` : `…${name.slice(1 - letters)}`;
}
