// Updates the parts of a page that are marked data-live, and lets keys do the work of links and buttons. Everything
// works without it, too.
"use strict";

const EVERY = 2000;

// ---- live parts

let failed = false;

function unanswered(yes) {
  if (failed === yes) return;
  failed = yes;
  document.body.classList.toggle("unanswered", yes);
}

// Whether the user is doing something with this part that a newer version of it would undo.
function inUse(part) {
  const selection = document.getSelection();
  if (selection && !selection.isCollapsed && part.contains(selection.anchorNode)) return true;
  return part.contains(document.activeElement) && document.activeElement !== document.body;
}

// The version of the page that is shown: the server sends only the changes since then.
let version = document.body.dataset.version || "0";

function renew(part, html) {
  const fresh = document.createElement("template");
  fresh.innerHTML = html;
  const newer = fresh.content.firstElementChild;
  const chosen = new Set([...part.querySelectorAll("input[type=checkbox]:checked")].map((box) => box.value));
  const selected = [...part.querySelectorAll("[data-row]")].findIndex((row) => row.classList.contains("selected"));
  part.replaceWith(newer);
  if (selected >= 0) newer.querySelectorAll("[data-row]")[selected]?.classList.add("selected");
  for (const box of newer.querySelectorAll("input[type=checkbox]")) box.checked = chosen.has(box.value);
}

async function refresh() {
  if (document.hidden || !document.querySelector("[data-live]")) return;
  let response, changes;
  try {
    response = await fetch(location.href, { headers: { Accept: "application/json", "dq-seen": version } });
    if (response.redirected) return location.reload(); // Signed out meanwhile.
    if (!response.ok) return unanswered(false);
    changes = await response.json();
  } catch {
    unanswered(true);
    return;
  }
  unanswered(false);
  version = String(changes.v);
  let skipped = false;
  for (const [id, html] of Object.entries(changes.in)) {
    const part = document.getElementById(id);
    if (!part || inUse(part)) skipped = true;
    else part.innerHTML = html;
  }
  for (const [id, html] of Object.entries(changes.out)) {
    const part = document.getElementById(id);
    if (!part || inUse(part)) skipped = true;
    else renew(part, html);
  }
  // Parts that were not taken over are sent again next time.
  if (skipped) version = "0";
}

async function keepFresh() {
  await refresh();
  setTimeout(keepFresh, EVERY);
}
setTimeout(keepFresh, EVERY);
document.addEventListener("visibilitychange", refresh);

// ---- marks

// One box marks all messages of the page.
document.getElementById("all")?.addEventListener("change", (event) => {
  for (const box of document.querySelectorAll("input[name=pick]")) box.checked = event.target.checked;
});

// ---- searches

// A search that has found nothing yet goes on by itself, until somebody stops it.
const goOn = document.getElementById("go-on");
if (goOn) {
  const timer = setTimeout(() => location.replace(goOn.href), 300);
  const stop = document.createElement("button");
  stop.type = "button";
  stop.textContent = "Stop";
  stop.addEventListener("click", () => {
    clearTimeout(timer);
    stop.remove();
  });
  goOn.after(stop);
}

// ---- values of pictures

// Shows the values of the step at a place of a picture, from 0 to 1.
function point(figure, place) {
  const lines = [...figure.querySelectorAll("path[data-words]")];
  const words = lines.map((line) => line.dataset.words.split(" "));
  const last = words[0].length - 1;
  const at = Math.min(Math.max(Math.round(place * last), 0), last);
  figure.dataset.at = at;
  const time = new Date(Number(figure.dataset.first) + at * Number(figure.dataset.step)).toISOString();
  const values = lines.map((line, i) => `${line.dataset.name} ${words[i][at]}`.trim());
  figure.querySelector("output").textContent = `${time.slice(5, 16).replace("T", " ")}: ${values.join(", ")}`;
  const pointer = figure.querySelector(".pointer");
  pointer.setAttribute("x1", (at / last) * 100);
  pointer.setAttribute("x2", (at / last) * 100);
  figure.classList.add("pointed");
}

function pictureOf(event) {
  return event.target.closest?.("figure[data-first]");
}

for (const kind of ["pointermove", "pointerdown"]) {
  document.addEventListener(kind, (event) => {
    const chart = pictureOf(event)?.querySelector(".chart").getBoundingClientRect();
    if (chart) point(pictureOf(event), (event.clientX - chart.left) / chart.width);
  });
}
for (const kind of ["pointerout", "focusout"]) {
  document.addEventListener(kind, (event) => {
    const figure = pictureOf(event);
    if (!figure || figure.contains(event.relatedTarget)) return;
    figure.classList.remove("pointed");
    figure.querySelector("output").textContent = "";
  });
}

// Moves to the values before or after. Returns whether the key does that.
function movePointer(figure, key) {
  const last = figure.querySelector("path[data-words]").dataset.words.split(" ").length - 1;
  const at = Number(figure.dataset.at ?? last + 1);
  const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: last }[key];
  if (to === undefined) return false;
  point(figure, to / last);
  return true;
}

// ---- keys

function move(step) {
  const rows = [...document.querySelectorAll("[data-row]")];
  if (!rows.length) return;
  const at = rows.findIndex((row) => row.classList.contains("selected"));
  const next = at < 0 ? 0 : Math.min(Math.max(at + step, 0), rows.length - 1);
  rows[at]?.classList.remove("selected");
  rows[next].classList.add("selected");
  rows[next].scrollIntoView({ block: "nearest" });
}

function up() {
  const steps = document.querySelectorAll(".trail a");
  const link = document.querySelector('main [data-key="u"]') || steps[steps.length - 2];
  (link || document.querySelector("a.home")).click();
}

const HELP = [
  ["j, k", "select a line"],
  ["Enter", "open it"],
  ["u", "one step up, or back"],
  ["o", "all queues"],
  ["/", "the field of the page: a name, conditions, an id"],
  ["[, ]", "the page before, the next page"],
  ["p", "pause or resume"],
  ["r", "redrive"],
  ["n", "send a test message"],
  ["?", "this help"],
];

function help() {
  let dialog = document.querySelector("dialog");
  if (!dialog) {
    dialog = document.createElement("dialog");
    const list = dialog.appendChild(document.createElement("dl"));
    for (const [key, words] of HELP) {
      list.appendChild(document.createElement("dt")).textContent = key;
      list.appendChild(document.createElement("dd")).textContent = words;
    }
    dialog.addEventListener("click", () => dialog.close());
    document.body.appendChild(dialog);
  }
  dialog.open ? dialog.close() : dialog.showModal();
}

const KEYS = {
  j: () => move(1),
  k: () => move(-1),
  Enter: () => document.querySelector(".selected a")?.click(),
  u: up,
  "?": help,
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  const figure = pictureOf(event);
  if (figure && movePointer(figure, event.key)) return event.preventDefault();
  const within = event.target.closest("input, textarea, select, summary, dialog, a, button");
  if (event.key === "Escape") return within?.blur();
  if (within && (event.key === "Enter" || within.matches("input, textarea, select"))) return;
  // An action of the page itself for a key goes before one that every page has, which is above it.
  const marked = [...document.querySelectorAll("[data-key]")].reverse().find((one) => one.dataset.key === event.key);
  const act = KEYS[event.key];
  if (!act && !marked) return;
  event.preventDefault();
  if (act) act();
  else if (marked.matches("input")) {
    marked.closest("details")?.setAttribute("open", "");
    marked.focus();
  }
  else marked.click();
});

const keys = document.getElementById("keys");
if (keys) {
  keys.hidden = false;
  keys.addEventListener("click", help);
}
document.querySelector("select[name=sort]")?.addEventListener("change", (event) => event.target.form.requestSubmit());
