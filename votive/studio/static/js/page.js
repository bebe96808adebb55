/** The page: puts the views into their places and ties them to the server. */

import { act } from "./ask.js";
import { models, sessions } from "./dialogs.js";
import { bytes, h, put } from "./dom.js";
import { Link, Page, mount, refresh, socketUrl } from "./host.js";
import { help, listen } from "./keys.js";
import { notice, select, take, watch } from "./state.js";
import { firstVisit, tour } from "./tour.js";
import * as attention from "./views/attention.js";
import * as consoleView from "./views/console.js";
import * as edits from "./views/edits.js";
import * as explain from "./views/explain.js";
import * as layers from "./views/layers.js";
import * as lens from "./views/lens.js";
import * as profile from "./views/profile.js";
import * as prompt from "./views/prompt.js";
import * as sampler from "./views/sampler.js";
import * as stack from "./views/stack.js";
import * as timeline from "./views/timeline.js";
import * as topk from "./views/topk.js";
import * as tree from "./views/tree.js";
import * as value from "./views/value.js";

const $ = (id) => document.getElementById(id);
const ROOM = "votive-room";
const kept = {
  get: (name) => { try { return sessionStorage.getItem(name); } catch { return null; } },
  set: (name, v) => { try { sessionStorage.setItem(name, v); } catch { /* a private window */ } },
};

const link = new Link(socketUrl(), { first: () => ({ room: kept.get(ROOM) }) });
const model = new Page(link);
model.actions = {};

// --- views ---------------------------------------------------------------------------------------

for (const [id, view] of Object.entries({
  prompt, timeline, sampler, topk, tree, stack, value, lens, layers, profile, attention, edits, explain, console: consoleView,
})) mount(view, model, $(`view-${id}`));

/** Tabs of one group: arrows move between them. */
function tabs(list) {
  const all = [...list.querySelectorAll("[role=tab]")];
  const choose = (tab, focus = false) => {
    for (const other of all) {
      const on = other === tab;
      other.setAttribute("aria-selected", String(on));
      other.tabIndex = on ? 0 : -1;
      $(other.getAttribute("aria-controls")).hidden = !on;
    }
    if (focus) tab.focus();
  };
  list.addEventListener("click", (event) => {
    const tab = event.target.closest("[role=tab]");
    if (tab) choose(tab);
  });
  list.addEventListener("keydown", (event) => {
    const i = all.indexOf(document.activeElement);
    const to = { ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: all.length - 1 }[event.key];
    if (i < 0 || to === undefined) return;
    event.preventDefault();
    choose(all[(to + all.length) % all.length], true);
  });
  choose(all.find((t) => t.getAttribute("aria-selected") === "true") ?? all[0]);
  return Object.fromEntries(all.map((t) => [t.id.replace("tab-", ""), () => choose(t)]));
}
const centre = tabs($("centre-tabs"));
const right = tabs($("right-tabs"));

/** On a narrow window the three columns are three pages. */
function column(name) {
  if (document.body.dataset.column !== name) document.querySelector("main").scrollTop = 0;
  document.body.dataset.column = name;
  for (const b of $("bottom").querySelectorAll("button")) {
    if (b.dataset.column === name) b.setAttribute("aria-current", "page");
    else b.removeAttribute("aria-current");
  }
}
$("bottom").addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button) column(button.dataset.column);
});
column("left");

// What is chosen from belongs beside what is written where there is no third column.
const narrow = matchMedia("(max-width: 819px)");
const middling = matchMedia("(max-width: 1119px)");
const arrange = () => (middling.matches ? $("panel-timeline").after($("panel-topk")) : $("right").prepend($("panel-topk")));
middling.addEventListener("change", arrange);
arrange();

// --- head ----------------------------------------------------------------------------------------

const files = sessions(model);
const shelf = models(model);
const keys = help();
const guide = tour({ reveal: (where) => {
  if (narrow.matches) column(["#panel-prompt", "#panel-topk", "#panel-tree"].includes(where) ? "left" : where === "#centre" ? "centre" : "right");
  document.querySelector(where)?.scrollIntoView?.({ block: "nearest" });
} });
document.body.append(files.box, shelf.box, keys.box, guide.box);
keys.box.append(h("div", { class: "row" }, h("button", { type: "button", id: "tour-again", onclick: () => { keys.box.close(); guide.start(); } }, "Show the tour")));

$("model-button").addEventListener("click", () => shelf.show());
$("files-button").addEventListener("click", () => files.show());
$("help").addEventListener("click", () => keys.show());
$("theme").addEventListener("click", () => theme());
$("cancel").addEventListener("click", () => link.cancelAll());
$("reconnect").addEventListener("click", () => link.connect());

function theme(to) {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const now = document.documentElement.dataset.theme || (dark ? "dark" : "light");
  document.documentElement.dataset.theme = to ?? (now === "dark" ? "light" : "dark");
  try {
    localStorage.setItem("votive-theme", document.documentElement.dataset.theme);
  } catch { /* it holds for this page only */ }
  window.dispatchEvent(new Event("votive-theme"));
}
try {
  const saved = localStorage.getItem("votive-theme");
  if (saved === "light" || saved === "dark") theme(saved);
} catch { /* as the system has it */ }
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => window.dispatchEvent(new Event("votive-theme")));

watch(model, ["info"], () => {
  const info = model.get("info");
  const last = info?.parts?.layers?.length - 1;
  // Something to look at from the beginning: what the last layer gives.
  if (last >= 0 && !model.get("selection")?.address) select(model, { layer: last, address: info.parts.layers[last] });
  $("model-name-text").textContent = info ? info.name : "no model";
  $("model-facts").textContent = info ? `${info.family}, ${info.layers} layers, ${info.heads} heads, ${compact(info.parameters)} parameters, ${info.dtype}` : "";
});
const compact = (n) => (n >= 1e9 ? `${(n / 1e9).toFixed(1)} B` : n >= 1e6 ? `${(n / 1e6).toFixed(1)} M` : n >= 1e3 ? `${(n / 1e3).toFixed(0)} k` : String(n));

// --- what it is doing ----------------------------------------------------------------------------

let slow = null;
watch(model, ["busy", "progress"], () => {
  const [busy, progress] = [model.get("busy"), model.get("progress")];
  document.body.dataset.busy = String(busy ?? 0);
  clearTimeout(slow);
  const show = () => {
    const doing = model.get("progress");
    $("activity").hidden = !(model.get("busy") || doing);
    $("activity-text").textContent = doing?.text ?? "Working";
    $("activity-bar").hidden = !(doing?.total > 0);
    if (doing?.total > 0) {
      $("activity-bar").max = doing.total;
      $("activity-bar").value = doing.done;
      $("activity-text").textContent = doing.unit === "bytes" ? `${doing.text} ${bytes(doing.done)}` : doing.text;
    }
  };
  // What is quick is not told: a flicker says nothing.
  if (busy || progress) slow = setTimeout(show, progress ? 0 : 250);
  else show();
});
model.on("event:progress", (p) => {
  const over = p.total > 0 && p.done >= p.total;
  model.set("progress", over ? null : p);
});

watch(model, ["link"], () => {
  const { status, detail } = model.get("link");
  document.body.dataset.link = status;
  $("offline").hidden = status === "open" || (status === "connecting" && !detail);
  $("offline-text").textContent = status === "paused" ? detail.reason
    : detail?.code === 4401
    ? "The server does not know this page any more: open the address that it printed when it started."
    : status === "connecting" ? "Connecting again…"
      : `The server does not answer. Trying again${detail ? ` (${detail.tries})` : ""}; what you see stays as it was.`;
});

watch(model, ["trouble"], () => {
  $("trouble").hidden = !model.get("trouble");
  $("trouble-text").textContent = model.get("trouble") ?? "";
});
$("trouble-model").addEventListener("click", () => shelf.show());

watch(model, ["notices"], () => {
  const box = $("notices");
  const known = new Set([...box.children].map((c) => Number(c.dataset.id)));
  for (const n of model.get("notices")) {
    if (known.has(n.id)) continue;
    const item = h("div", { class: `notice ${n.kind}`, "data-id": n.id, role: n.kind === "error" ? "alert" : "status" },
      h("span", { class: "grow" }, n.text, n.address ? h("span", { class: "mono dim" }, ` ${n.address}`) : null),
      h("button", { class: "quiet", type: "button", "aria-label": "Close", onclick: () => item.remove() }, "×"));
    box.append(item);
    while (box.children.length > 4) box.firstChild.remove();
    setTimeout(() => item.remove(), n.kind === "error" ? 12000 : 4000);
  }
});

// --- the server ----------------------------------------------------------------------------------

let [pending, asking] = [null, false];
/** While it generates, tokens arrive one by one; the state is taken over at most once a frame. */
model.on("event:token", (data) => {
  const session = model.get("session");
  if (!session) return;
  const up = session.byId.get(data.node.parent) ?? pending?.nodes.at(-1);
  const node = { ...data.node, settings: up?.settings, edits: up?.edits };
  const nodes = session.byId.has(node.id) ? session.nodes : [...(pending?.nodes ?? session.nodes), node];
  pending = { ...session, nodes, current: node.id, undo: (pending?.undo ?? session.undo) + 1, redo: 0 };
  if (asking) return;
  asking = true;
  requestAnimationFrame(() => {
    asking = false;
    if (pending) take(model, pending);
    pending = null;
  });
});

/** The edits in force are those of the node where the session stands. */
watch(model, ["session"], () => {
  const session = model.get("session");
  const told = session?.edits_table?.[session.byId.get(session.current)?.edits];
  const shape = (list) => JSON.stringify((list ?? []).map((e) => [e.at, e.do, e.value, e.with, e.positions, e.features]));
  if (!told || shape(told) === shape(model.get("edits")?.edits)) return;
  model.set("edits", { edits: told, receipts: [] });
  model.ask("edits.list", {}, { slot: "edits-list" }).then((found) => model.set("edits", found), () => {});
});

async function opened(hello) {
  const room = hello?.room ?? hello?.data?.room;
  const back = kept.get(ROOM);
  if (room) kept.set(ROOM, room);
  const before = model.get("session");
  model.set("debug", null);
  await refresh(model);
  const session = model.get("session");
  // A server that was started anew knows nothing of this session: write the text again.
  if (before && back && room !== back && session === before) await restore(before);
  if (!model.get("session") && model.get("info")) await begin();
}

/** A page that is opened for the first time begins by itself, and writes its first token. */
async function begin() {
  const prompt = $("prompt-text").value || model.get("info").prompt || $("prompt-text").placeholder;
  if (await act(model, "session.new", { prompt })) await act(model, "session.step", { n: 1 });
}

/** Make the path that was shown again, with its settings and edits, on a server without it. */
async function restore(before) {
  try {
    const names = before.settings.do_sample ? ["do_sample", "temperature", "top_k", "top_p", "min_p", "repetition_penalty"] : ["do_sample", "repetition_penalty"];
    const settings = Object.fromEntries(names.map((n) => [n, before.settings[n]]).filter(([, v]) => v !== null && v !== undefined));
    const had = (model.get("edits")?.edits ?? []).filter((e) => e.do !== "swap");
    let state = await model.ask("session.new", { prompt: before.path[0].text ?? before.prompt.map((t) => t.text).join(""), settings, seed: before.seed });
    for (const node of before.path.slice(1)) {
      state = await model.ask("session.choose", { token: node.token });
      await new Promise((done) => { setTimeout(done, 25); }); // the server answers 50 requests a second
    }
    take(model, state.nodes ? state : await model.ask("session.state", {}));
    if (had.length) model.set("edits", await model.ask("edits.set", { edits: had }));
    notice(model, "note", "The server was started anew. The text you see was written again; other branches are gone.");
  } catch (error) {
    model.set("session", null);
    notice(model, "error", `The server was started anew, and the session could not be made again: ${error.message}`);
  }
}

model.on("event:hello", opened);
model.on("event:bye", (data) => link.pause(data?.text ?? data?.reason ?? "The server has ended this connection."));

Object.assign(model.actions, {
  theme: () => theme(), help: () => keys.show(), unlock: () => select(model, { position: null, head: null }),
  prompt: () => { column("left"); $("prompt-text").focus(); },
  tab: (name) => {
    if (centre[name]) { column("centre"); centre[name](); }
    if (right[name]) { column("right"); right[name](); }
  },
});
listen(() => model.actions);
// The token is in a cookie by now; in the address it could be seen and passed on.
history.replaceState(null, "", location.pathname);
link.connect();
firstVisit(() => guide.start());
put($("loading"));
$("loading").hidden = true;
