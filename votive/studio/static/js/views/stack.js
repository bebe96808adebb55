/** The layers of the model with breakpoints, and the debugger that walks through a run. */

import { ask, idle } from "../ask.js";
import { h, percent, put, throttled, visible } from "../dom.js";
import { Rows } from "../draw/rows.js";
import { hover, locked, notice, select, shown, watch } from "../state.js";
import { above, layerOf, moduleOf, nested, rows } from "./modules.js";
import { setEdits, withEdit } from "./value_tools.js";

const MOVES = [
  ["debug.run", "Continue", "F8", "run", "Run to the next breakpoint, or to the end"], ["debug.over", "Over", "F10", "over", "Run this call to its end"],
  ["debug.step", "Into", "F11", "into", "Go to the next event: into the call"], ["debug.out", "Out", "⇧F11", "out", "Run to the end of the module around"],
  ["debug.back", "Back", "⇧F10", "back", "Go back by one event"],
];

export function render({ model, el }) {
  const open = new Set();
  let [root, last, shownRows, about] = [nested([]), null, [], {}];
  const list = h("div", { class: "stack", role: "tree", "aria-label": "Modules" });
  const where = h("div", { class: "where", id: "debug-where", "aria-live": "polite" });
  const start = h("button", { type: "button", id: "debug-start", title: "Run the model up to its first call (F8)", onclick: () => go("debug.start") }, "Start");
  const stop = h("button", { type: "button", id: "debug-stop", title: "End the run", onclick: () => go("debug.stop") }, "Stop");
  const moves = MOVES.map(([action, name, key, id, title]) => h("button", {
    type: "button", id: `debug-${id}`, title: `${title} (${key})`, onclick: () => go(action),
  }, name, h("kbd", { "aria-hidden": "true" }, key)));

  async function go(action, args) {
    try {
      const given = args ?? (action === "debug.back" ? { n: 1 } : action === "debug.start" ? {} : {});
      const reply = await ask(model, action, given, { slot: action === "debug.break" ? null : "debug" });
      if (action === "debug.start" || action === "debug.stop") model.set("stop-edits", []);
      model.set("debug", reply);
      follow(reply);
    } catch (error) {
      if (!idle(error)) notice(model, "error", error.message, { address: error.address });
    }
  }

  /** Unfold down to where the run stands, and select it. */
  function follow(debug) {
    if (!debug.active || !debug.address) return;
    above(debug.address).forEach((a) => open.add(a));
    const layer = layerOf(model.get("info"), debug.address);
    select(model, { address: moduleOf(debug.address), ...(layer === null ? {} : { layer }) });
    build();
    tall.reveal(indexOf(moduleOf(debug.address)));
  }

  const tall = new Rows(list, { height: 24, row: (i) => dress(row(shownRows[i], i, about)) });
  const indexOf = (address) => shownRows.findIndex((r) => r.address === address);

  /** What F8 and its like mean before there is a run: to begin one. */
  const key = (action) => go(model.get("debug")?.active && !model.get("debug").ended ? action : action === "debug.back" && model.get("debug")?.active ? action : "debug.start");
  model.actions = { ...model.actions, debug: key };

  function build() {
    const info = model.get("info");
    if (info && root.source !== info.tree) {
      root = nested(info.tree);
      root.source = info.tree;
      open.clear();
      (info.parts?.layers ?? []).slice(0, 1).forEach((l) => above(l).forEach((a) => open.add(a)));
    }
    const debug = model.get("debug");
    const active = Boolean(debug?.active);
    const lost = model.get("link") && model.get("link").status !== "open";
    const broken = new Set((debug?.breakpoints ?? []).map((b) => b.at));
    const changed = new Map((model.get("edits")?.edits ?? []).map((e) => [moduleOf(e.at), e.do]));
    const at = active ? moduleOf(debug.address) : null;
    const running = new Set((active ? debug.stack : []).map(moduleOf));
    const focused = document.activeElement?.closest?.(".stack-row")?.dataset.address;
    shownRows = rows(root, open);
    about = { at, running, broken, changed, debug };
    const height = parseFloat(getComputedStyle(list).getPropertyValue("--row")) || 24;
    list.style.setProperty("--height", `${shownRows.length * height + 8}px`);
    tall.show(shownRows.length, { height });
    if (focused !== undefined) tall.reveal(indexOf(focused))?.focus();
    start.textContent = active ? "Restart" : "Start";
    start.disabled = lost || !model.get("session");
    stop.disabled = lost || !active;
    moves.forEach((b) => { b.disabled = lost || !active || (debug.ended && b.id !== "debug-back"); });
    tell(debug);
    mark();
  }

  function row(r, i, { at, running, broken, changed, debug }) {
    const here = r.address === at;
    const fold = h("span", { class: "fold", "aria-hidden": "true" }, r.leaf ? "" : r.open ? "▾" : "▸");
    const point = h("button", {
      class: "breakpoint", type: "button", tabindex: -1, "aria-hidden": "true", "aria-pressed": String(broken.has(r.address)),
      "aria-label": `Breakpoint at ${r.address}`, title: "Breakpoint (space)",
      onclick: (event) => { event.stopPropagation(); toggle(r.address, !broken.has(r.address)); },
    });
    const out = h("div", {
      class: `stack-row${here ? " here" : running.has(r.address) ? " running" : ""}`, role: "treeitem", tabindex: -1,
      "aria-setsize": shownRows.length, "aria-posinset": i + 1, "aria-level": r.depth + 1, "aria-expanded": r.leaf ? null : String(r.open), "data-address": r.address,
      "aria-description": `${r.address}${broken.has(r.address) ? ", breakpoint" : ""}${here ? ", the run stands here" : ""}`,
      style: { "--depth": r.depth },
    }, point, fold, h("span", { class: "name" }, r.name), h("span", { class: "kind dim" }, r.class),
    changed.has(r.address) ? h("span", { class: "badge" }, changed.get(r.address)) : null,
    here && debug.address.includes("/") ? h("span", { class: "op" }, debug.address.split("/")[1]) : null,
    here ? h("span", { class: "phase" }, debug.phase) : null);
    return out;
  }

  const toggle = (address, on) => go("debug.break", { at: address, on });

  function tell(debug) {
    if (!debug?.active) {
      put(where, h("span", { class: "dim" }, "No run. Set breakpoints at the dots, then start: the model stops before its first call."));
      return;
    }
    if (debug.ended) {
      put(where, h("b", {}, debug.error ? "Stopped by an error:" : "The run has ended."), debug.error ? h("span", { class: "grow" }, debug.error) : outcome(debug));
      return;
    }
    put(where, h("span", { class: "tag" }, `event ${debug.index}`), h("b", {}, `${debug.phase} `),
      h("span", { class: "mono grow" }, debug.address || "(model)"), h("span", { class: "dim" }, debug.name));
  }

  /** What the run says about the next token, beside what was said without the changes. */
  function outcome(debug) {
    const old = new Map((debug.before ?? []).map((t) => [t.id, t.p]));
    return h("span", { id: "debug-outcome", class: "chips" }, debug.changes ? `With ${debug.changes} change${debug.changes > 1 ? "s" : ""} it says` : "It says",
      (debug.top ?? []).slice(0, 4).map((t) => h("span", { class: "chip" }, visible(t.text), " ", h("span", { class: "num dim" }, percent(t.p),
        debug.changes ? `, before ${old.has(t.id) ? percent(old.get(t.id)) : "less"}` : null))), debug.changes ? keeper(debug) : null);
  }

  /** What was changed at stops, from now on: edits of the session, which stay and can be undone. */
  function keeper(debug) {
    const made = (model.get("stop-edits") ?? []).slice(0, debug.changes);
    const whole = made.length === debug.changes && made.every(Boolean);
    return h("button", { type: "button", id: "debug-keep", disabled: !whole, title: whole ? "Make the same changes whenever the model runs: as edits, which can be undone" : "One of these changes is to a part that an edit cannot name", onclick: async () => {
      try {
        for (const edit of made) await setEdits(model, withEdit(model, edit));
        await go("debug.stop");
      } catch (error) {
        if (!idle(error)) notice(model, "error", error.message, { address: error.address });
      }
    } }, made.length > 1 ? "Keep as edits" : "Keep as edit");
  }

  /** How a row looks by what is locked and what is under the pointer. */
  function dress(item) {
    const [lock, over] = [locked(model), model.get("hover")];
    const layers = model.get("info")?.parts?.layers ?? [];
    const { address } = item.dataset;
    const first = indexOf(lock.address) < 0 ? shownRows[0]?.address : lock.address;
    item.classList.toggle("locked", address === lock.address);
    item.classList.toggle("hovered", address === (over?.address ?? (over?.layer === undefined ? null : layers[shown(model).layer])));
    item.classList.toggle("layer-locked", address === layers[lock.layer]);
    item.setAttribute("aria-selected", String(address === lock.address));
    if (item !== document.activeElement) item.tabIndex = address === first ? 0 : -1;
    return item;
  }

  function mark() {
    const { address } = locked(model);
    // What was locked elsewhere comes into view; under the pointer nothing moves.
    if (address !== last && !list.matches(":hover") && tall.reveal(indexOf(address))) last = address;
    for (const item of tall.made.values()) dress(item);
  }

  const addressAt = (event) => event.target.closest?.(".stack-row")?.dataset.address;

  function choose(address) {
    const layer = layerOf(model.get("info"), address);
    select(model, { address, ...(layer === null ? {} : { layer }) });
  }

  list.addEventListener("pointerover", (event) => {
    const address = addressAt(event);
    const layer = address === undefined ? null : layerOf(model.get("info"), address);
    if (address !== undefined) hover(model, { address, ...(layer === null ? {} : { layer }) });
  });
  list.addEventListener("pointerleave", () => hover(model, null));
  list.addEventListener("click", (event) => {
    const address = addressAt(event);
    if (address === undefined) return;
    if (event.target.classList.contains("fold")) fold(address);
    else choose(address);
  });
  list.addEventListener("dblclick", (event) => addressAt(event) !== undefined && fold(addressAt(event)));
  list.addEventListener("keydown", (event) => {
    const address = addressAt(event);
    const i = indexOf(address);
    if (i < 0 || event.ctrlKey || event.altKey || event.metaKey) return;
    const focus = (j) => {
      const item = tall.reveal(Math.max(0, Math.min(shownRows.length - 1, j)));
      if (item) item.tabIndex = 0;
      item?.focus({ preventScroll: true });
    };
    if (event.key === "ArrowDown") focus(i + 1);
    else if (event.key === "ArrowUp") focus(i - 1);
    else if (event.key === "ArrowRight") open.has(address) ? focus(i + 1) : fold(address);
    else if (event.key === "ArrowLeft" && open.has(address)) fold(address);
    else if (event.key === "ArrowLeft") focus(indexOf(above(address).at(-1)));
    else if (event.key === "Enter") choose(address);
    else if (event.key === " ") toggle(address, !about.broken.has(address));
    else if (event.key === "Home" || event.key === "End") focus(event.key === "Home" ? 0 : 1e9);
    else return;
    event.preventDefault();
  });

  function fold(address) {
    if (open.has(address)) open.delete(address);
    else open.add(address);
    build();
  }

  el.append(h("div", { class: "row tools", role: "toolbar", "aria-label": "Debugger" }, start, moves, h("span", { class: "grow" }), stop), where, list);
  const off = [watch(model, ["info", "debug", "edits", "link", "session"], throttled(build)), watch(model, ["selection", "hover"], throttled(mark))];
  build();
  return () => {
    off.forEach((f) => f());
    tall.close();
  };
}
