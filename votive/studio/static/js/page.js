/** The page: puts the views into their places and ties them to the server. */

import { fromHash, packed, writeAgain } from "./rebuild.js";
import { act, idle } from "./ask.js";
import { sessions } from "./dialogs.js";
import { bytes, h, put } from "./dom.js";
import { Link, Page, mount, refresh, socketUrl } from "./host.js";
import { help, listen } from "./keys.js";
import { models } from "./model_dialog.js";
import { offline } from "./offline.js";
import { offers } from "./recover.js";
import { notice, positionOf, select, take, watch } from "./state.js";
import { tabs } from "./tabs.js";
import { firstVisit, tour } from "./tour.js";
import { remembered } from "./restore.js";
import { splitters } from "./splitters.js";
import * as attention from "./views/attention.js";
import * as chat from "./views/chat.js";
import * as compare from "./views/compare.js";
import * as compiled from "./views/compiled.js";
import * as consequence from "./views/consequence.js";
import * as consoleView from "./views/console.js";
import * as edits from "./views/edits.js";
import * as explain from "./views/explain.js";
import * as speech from "./views/speech.js";
import * as laboratory from "./views/laboratory.js";
import * as layers from "./views/layers.js";
import * as lens from "./views/lens.js";
import * as picture from "./views/picture.js";
import * as profile from "./views/profile.js";
import * as prompt from "./views/prompt.js";
import * as quantization from "./views/quantization.js";
import * as sampler from "./views/sampler.js";
import * as vision from "./views/vision.js";
import * as stack from "./views/stack.js";
import * as timeline from "./views/timeline.js";
import * as topk from "./views/topk.js";
import * as tree from "./views/tree.js";
import * as value from "./views/value.js";

// Models with a view of their own.
const OWN = ["vision", "speech"];
const other = () => OWN.find((name) => model.get("info")?.[name]);
const $ = (id) => document.getElementById(id);
const WORKSPACE = "votive-workspace";
const kept = {
  get: (name) => { try { return sessionStorage.getItem(name); } catch { return null; } },
  set: (name, v) => { try { sessionStorage.setItem(name, v); } catch { /* a private window */ } },
};

const link = new Link(socketUrl(), { first: () => ({ workspace: kept.get(WORKSPACE) }) });
const model = new Page(link);
model.actions = {};

// --- views ---------------------------------------------------------------------------------------

for (const [id, view] of Object.entries({
  prompt, chat, compare, laboratory, timeline, sampler, topk, tree, picture, stack, value, consequence, lens, layers, profile, compiled, quantization, attention, edits, explain, console: consoleView, vision, speech,
})) mount(view, model, $(`view-${id}`));

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
splitters();

/** The text as a prompt, or as a conversation. */
function write(as) {
  for (const name of ["text", "chat"]) $(`as-${name}`).setAttribute("aria-pressed", String(name === as));
  $("view-chat").hidden = as !== "chat";
  $("view-prompt").classList.toggle("chatting", as === "chat");
}
$("as-text").addEventListener("click", () => write("text"));
$("as-chat").addEventListener("click", () => write("chat"));

// --- head ----------------------------------------------------------------------------------------

const files = sessions(model);
const shelf = models(model, { begin: () => begin() });
const keys = help(() => other());
const guide = tour({ model, tab: (name) => model.actions.tab(name), reveal: (where) => {
  if (narrow.matches) column(document.querySelector(where)?.closest(".column")?.id ?? "left");
  document.querySelector(where)?.scrollIntoView?.({ block: "nearest" });
} });
document.body.append(files.box, shelf.box, keys.box, guide.box);
keys.box.append(h("div", { class: "row" }, h("button", { type: "button", id: "tour-again", title: "About three minutes, from the first token to a head that copies names", onclick: () => { keys.box.close(); guide.start(); } }, "Show the tour")));

$("model-button").addEventListener("click", () => shelf.show());
$("files-button").addEventListener("click", () => files.show());
$("help").addEventListener("click", () => keys.show());
$("theme").addEventListener("click", () => theme());
$("cancel").addEventListener("click", () => link.cancelAll());
offline(model, link, $("offline"));
const unsaved = offers(model, $("recover"));
model.on("event:autosave", ({ text }) => notice(model, "error", text));
$("widen").addEventListener("click", () => widen());

/** The right column in the place of the centre, for large maps. */
function widen() {
  const on = document.body.dataset.wide !== "right";
  document.body.dataset.wide = on ? "right" : "";
  $("widen").setAttribute("aria-pressed", String(on));
  $("widen").textContent = on ? "⇥" : "⇤";
}

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
  // A model that sees or hears has a view of its own, and no text.
  for (const name of OWN) {
    document.body.dataset[name] = String(Boolean(info?.[name]));
    $(name).hidden = !info?.[name];
  }
  $("tour-again").hidden = Boolean(other());
  if (other()) guide.hide();
  $("model-facts").textContent = info ? `${info.family}, ${info.heads ? `${info.layers} layers, ${info.heads} heads, ` : ""}${compact(info.parameters)} parameters, ${info.dtype}` : "";
});
const compact = (n) => (n >= 1e9 ? `${(n / 1e9).toFixed(1)} B` : n >= 1e6 ? `${(n / 1e6).toFixed(1)} M` : n >= 1e3 ? `${(n / 1e3).toFixed(0)} k` : String(n));

// --- what it is doing ----------------------------------------------------------------------------

let slow = null;
model.on("event:busy", ({ text }) => model.set("doing", text));
watch(model, ["busy", "progress", "doing"], () => {
  const [busy, progress] = [model.get("busy"), model.get("progress")];
  document.body.dataset.busy = String(busy ?? 0);
  if (!busy) model.set("doing", null);
  const show = () => {
    const doing = model.get("progress");
    $("activity").hidden = !(model.get("busy") || doing);
    const text = doing?.text || model.get("doing") || "working";
    $("activity-text").textContent = text[0].toUpperCase() + text.slice(1);
    $("activity-bar").hidden = !(doing?.total > 0);
    if (doing?.total > 0) {
      $("activity-bar").max = doing.total;
      $("activity-bar").value = doing.done;
      if (doing.job === "model.load") $("activity-text").textContent = `Loading, ${bytes(doing.done)} of ${bytes(doing.total)}`;
    }
  };
  // What is quick is not told: a flicker says nothing.
  if (!(busy || progress)) {
    clearTimeout(slow);
    slow = null;
    show();
  } else if (progress || !$("activity").hidden) show();
  else slow ??= setTimeout(() => { slow = null; show(); }, 250);
});
model.on("event:progress", (p) => {
  const over = p.total > 0 && p.done >= p.total;
  model.set("progress", over ? null : p);
});

watch(model, ["trouble"], () => {
  $("trouble").hidden = !model.get("trouble");
  $("trouble-text").textContent = model.get("trouble") ?? "";
});
$("trouble-model").addEventListener("click", () => shelf.show());

let [said, acted] = [0, null];
// Where something was done last: an error is told there.
for (const kind of ["pointerdown", "keydown"]) {
  document.addEventListener(kind, (event) => {
    acted = event.target;
    for (const old of event.target.closest?.(".panel")?.querySelectorAll(".notice.inline") ?? []) if (!old.contains(event.target)) old.remove();
  }, true);
}
watch(model, ["notices"], () => {
  const box = $("notices");
  for (const n of model.get("notices")) {
    if (n.id <= said) continue;
    said = n.id;
    const panel = n.kind === "error" ? acted?.closest?.(".panel") : null;
    const item = h("div", { class: `notice ${n.kind}${panel ? " inline" : ""}`, "data-id": n.id, role: n.kind === "error" ? "alert" : "status" },
      h("span", { class: "grow" }, n.text, n.address ? h("span", { class: "mono dim" }, ` ${n.address}`) : null),
      h("button", { class: "quiet", type: "button", "aria-label": "Close", onclick: () => item.remove() }, "×"));
    // One of a kind: a newer one says what counts now. An error stands where it was caused, until it is closed or something else is done there.
    for (const old of document.querySelectorAll(`.notice.${n.kind}`)) old.remove();
    (panel ?? box).append(item);
    if (panel) item.scrollIntoView({ block: "nearest" });
    else setTimeout(() => item.remove(), n.kind === "error" ? 12000 : 4000);
  }
});

// --- the server ----------------------------------------------------------------------------------

let fresh = [];
/** While it generates, tokens arrive one by one; they are taken over at most once a frame. */
model.on("event:token", (data) => {
  fresh.push(data.node);
  const now = performance.now();
  const began = data.done === 1 ? now : model.get("live")?.began ?? now;
  model.set("live", { began, done: data.done, total: data.total, rate: data.done > 1 ? (1000 * (data.done - 1)) / (now - began) : null, top: data.top, chosen: data.node });
  if (fresh.length > 1) return;
  requestAnimationFrame(() => {
    const [session, made] = [model.get("session"), fresh];
    fresh = [];
    // When the whole state has come, it knows more than these.
    if (!session || !model.get("generating")) return;
    const up = session.byId.get(made[0].parent);
    const added = made.filter((n) => !session.byId.has(n.id)).map((n) => ({ ...n, settings: up?.settings, edits: up?.edits }));
    take(model, { ...session, nodes: [...session.nodes, ...added], current: made.at(-1).id, undo: session.undo + made.length, redo: 0 });
  });
});

/** The edits in force are those of the node where the session stands. */
watch(model, ["session"], () => {
  const session = model.get("session");
  const told = session?.edits_table?.[session.byId.get(session.current)?.edits];
  const shape = (list) => JSON.stringify((list ?? []).map((e) => [e.at, e.do, e.value, e.with, e.positions, e.features, e.heads]));
  if (!told || shape(told) === shape(model.get("edits")?.edits)) return;
  model.set("edits", { edits: told, receipts: [] });
  model.ask("edits.list", {}, { slot: "edits-list" }).then((found) => model.set("edits", found), () => {});
});

async function opened(hello) {
  const workspace = hello?.workspace ?? hello?.data?.workspace;
  const back = kept.get(WORKSPACE);
  if (workspace) kept.set(WORKSPACE, workspace);
  const [before, had] = [model.get("session"), model.get("edits")?.edits];
  model.set("debug", null);
  await refresh(model);
  const session = model.get("session");
  // A server that was started anew knows nothing of this session: write it again.
  const moved = session === null || session === undefined ? brought : null;
  brought = null;
  const again = before && back && workspace !== back && session === before;
  if (again) await restore(packed(before, had));
  else if (moved) await restore(moved);
  // What this page has written again needs no other offer.
  if (again || moved) unsaved.hide();
  else unsaved.offer(hello?.autosaved);
  if (!model.get("session") && model.get("info")) await begin();
  places.restore();
}

/** A page that is opened for the first time begins by itself, and writes its first token. */
async function begin() {
  if (other()) return;
  const prompt = $("prompt-text").value || model.get("info").prompt || $("prompt-text").placeholder;
  if (await act(model, "session.new", { prompt })) await act(model, "session.step", { n: 1 });
}

async function restore(pack) {
  try {
    const lost = await writeAgain(model, pack);
    notice(model, "note", `The server was restarted; the text, with all its branches, was written again.${lost ? ` ${lost} of the edits could not be made again.` : ""}`);
  } catch (error) {
    if (idle(error)) return;
    model.set("session", null);
    notice(model, "error", `The server was restarted, and the session could not be made again: ${error.message}`);
  }
}

const places = remembered(model, { tab: (name) => (centre[name] ?? right[name])?.(), column, write });
model.on("event:hello", opened);
model.on("event:bye", (data) => link.pause(data?.text ?? data?.reason ?? "The server has ended this connection."));

Object.assign(model.actions, {
  theme: () => theme(), widen, help: () => keys.show(), unlock: () => select(model, { position: null, head: null }),
  prompt: () => { column("left"); $("prompt-text").focus(); },
  token: (by) => {
    const count = model.get("session")?.tokens.length ?? 0;
    if (count) select(model, { position: Math.max(0, Math.min(count - 1, positionOf(model, model.get("selection")) + by)) });
  },
  layer: (by) => {
    const layers = model.get("info")?.parts?.layers ?? [];
    const layer = Math.max(0, Math.min(layers.length - 1, (model.get("selection")?.layer ?? 0) + by));
    if (layers.length) select(model, { layer, address: layers[layer] });
  },
  tab: (name) => {
    if (centre[name]) { column("centre"); centre[name](); }
    if (right[name]) { column("right"); right[name](); }
  },
});
listen(() => {
  const { theme: change, help: show } = model.actions;
  return other() ? { theme: change, help: show, ...(model[other()] ?? {}) } : model.actions;
});
// What is dropped beside a view that takes it would be opened in place of this page.
document.addEventListener("dragover", (event) => event.preventDefault());
document.addEventListener("drop", (event) => {
  event.preventDefault();
  if (event.target.closest?.("#view-vision, #view-speech, #models")) return;
  const dropped = event.dataTransfer.files[0];
  const path = event.dataTransfer.getData("text/uri-list") || event.dataTransfer.getData("text/plain");
  const weights = /\.(gguf|safetensors|pth|pt|bin)$/i.test(dropped?.name ?? path ?? "");
  if (weights || (!dropped && path.startsWith("file:"))) shelf.drop(dropped, path);
  else if (dropped) notice(model, "error", `${model.get("info")?.name ?? "No model"} cannot open ${dropped.name}: load a speech model for a sound, or a vision model for a picture.`);
});
// What a page at another address has sent along.
let brought = fromHash(location.hash);
// The token is in a cookie by now; in the address it could be seen and passed on.
history.replaceState(null, "", location.pathname);
link.connect();
firstVisit(() => guide.start());
put($("loading"));
$("loading").hidden = true;

export { model };
