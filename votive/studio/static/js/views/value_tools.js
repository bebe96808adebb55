/** What can be done to a value: change it once at a stop, or at its address from now on. */

import { ask } from "../ask.js";
import { h } from "../dom.js";
import { locked, positionOf, take } from "../state.js";

/** Send the whole list of edits, and take over what comes of it. */
export async function setEdits(model, edits) {
  const reply = await ask(model, "edits.set", { edits }, { slot: "edits" });
  changed(model, reply);
  return reply;
}

/** Take over edits, receipts and the state of the session that a change of them gave. */
export function changed(model, reply) {
  model.set("edits", { edits: reply.edits, receipts: reply.receipts });
  if (reply.state) take(model, reply.state);
}

/** The edits in force without those at the same place that do the same. */
export function withEdit(model, edit) {
  const old = (model.get("edits")?.edits ?? []).map(plain);
  const same = (e) => e.at === edit.at && e.do === edit.do && JSON.stringify([e.positions, e.features, e.heads]) === JSON.stringify([edit.positions, edit.features, edit.heads]);
  return [...old.filter((e) => !same(e)), edit];
}

function plain(edit) {
  const { at, do: what, value, positions, features, heads, with: other } = edit;
  return Object.fromEntries(Object.entries({ at, do: what, value, positions, features, heads, with: other }).filter(([, v]) => v !== null && v !== undefined));
}

/** The numbers from `a` to before `b`. */
const range = ([a, b]) => Array.from({ length: b - a }, (_, i) => a + i);

/**
 * Buttons for what is shown: `cell` is [row, column] that is locked, `region` {rows, cols, all} what was drawn,
 * `all` the sizes of the whole.
 */
export function toolsFor({ model, atStop, cell, region, byPosition, address, done }) {
  const number = h("input", { type: "number", step: "any", value: "0", id: "edit-value", "aria-label": "Value" });
  const button = (id, text, title, f, off = false) => h("button", { type: "button", id, title, disabled: off, onclick: f }, text);
  return atStop ? once({ model, cell, byPosition, number, button, done }) : lasting({ model, address, cell, region, byPosition, number, button, done });
}

/** Whether there is no server to ask. */
function away(model) {
  return Boolean(model.get("link") && model.get("link").status !== "open");
}

function once({ model, cell, byPosition, number, button, done }) {
  const [debug, off] = [model.get("debug"), away(model)];
  const index = cell ? { index: cell } : {};
  const at = debug.phase === "leave" ? debug.address : `${debug.address}:in`;
  const part = !cell ? {} : byPosition ? { positions: [cell[0]], features: [cell[1]] } : null;
  /** What was changed at stops, as edits that could be kept; null where an edit cannot say the same. */
  const keep = (edit) => model.set("stop-edits", [...(model.get("stop-edits") ?? []).slice(0, debug.changes), edit]);
  const change = (args, edit) => done(ask(model, "debug.replace", { ...args, ...index }).then((reply) => {
    keep(part && { at, ...edit, ...part });
    model.set("debug", { ...reply });
  }));
  return [
    h("span", { class: "dim small" }, cell ? `At this stop, cell [${cell.join(", ")}]:` : "At this stop, the whole value:"),
    h("div", { class: "row" }, number,
      button("stop-replace", "Replace", "Put the number in its place", () => change({ value: Number(number.value) }, { do: "replace", value: Number(number.value) }), off),
      button("stop-scale", "Scale", "Multiply with the number", () => change({ scale: Number(number.value) }, { do: "scale", value: Number(number.value) }), off),
      button("stop-zero", "Zero", "Put zero in its place", () => change({ zero: true }, { do: "zero" }), off),
      button("stop-skip", "Skip call", "Skip this call; its input is passed on unchanged", () => done(ask(model, "debug.skip", {}).then((r) => {
        keep({ at: debug.address, do: "skip" });
        model.set("debug", { ...r });
      })), off || debug.phase !== "enter")),
  ];
}

function lasting({ model, address, cell, region, byPosition, number, button, done }) {
  const off = !address || !model.get("session") || away(model);
  const { position, layer, head } = locked(model);
  const info = model.get("info");
  const parts = {
    all: { text: "all positions", part: {} },
    head: info?.places && head !== null && layer !== null ? { text: `head ${head} of layer ${layer}`, at: `layers.${layer}.attn.z`, part: { heads: [head] } } : null,
    position: byPosition && position !== null ? { text: `position ${positionOf(model, locked(model))}`, part: { positions: [positionOf(model, locked(model))] } } : null,
    cell: cell && byPosition ? { text: `cell [${cell.join(", ")}]`, part: { positions: [cell[0]], features: [cell[1]] } } : null,
    region: region && byPosition ? drawn(region) : null,
  };
  const first = parts.region ? "region" : parts.cell ? "cell" : "all";
  const only = h("select", { id: "edit-where", "aria-label": "Which part is changed", title: "Which part is changed. Click a cell, the name of a row or a column, or draw with Shift to choose one; choose a head under Attention" },
    Object.entries(parts).map(([value, one]) => one && h("option", { value, selected: value === first }, one.text)));
  const make = (what, value) => {
    const { at = address, part } = parts[only.value];
    return done(setEdits(model, withEdit(model, { at, do: what, ...(value === undefined ? {} : { value }), ...(what === "skip" ? {} : part) })));
  };
  const skip = () => done(setEdits(model, withEdit(model, { at: address, do: "skip" })));
  const warning = h("div", { class: "ask", id: "ablate-warning", role: "alert", hidden: true },
    h("p", {}, "This is a whole layer. What it gives is the residual stream, so zero there takes out all that every layer before it has written, and not only what this one adds. Skip takes out what this layer adds."),
    h("div", { class: "row" }, h("button", { type: "button", id: "ablate-skip", class: "primary", onclick: skip }, "Skip the layer"),
      h("button", { type: "button", id: "ablate-anyway", onclick: () => make("zero") }, "Ablate all the same"),
      h("button", { type: "button", class: "quiet", onclick: () => { warning.hidden = true; } }, "Neither")));
  const ablate = () => {
    if ((info?.parts?.layers ?? []).includes(address) && only.value === "all") {
      warning.hidden = false;
      warning.querySelector("button").focus();
    } else make("zero");
  };
  const other = h("select", { id: "swap-with", "aria-label": "Module to put in its place", title: "Module to put in its place" },
    h("option", { value: "identity" }, "identity"), alike(model, address).map((a) => h("option", { value: a }, a)));
  const swap = () => done(ask(model, "edits.swap", { at: address, with: other.value }).then((reply) => changed(model, reply)));
  return [
    h("div", { class: "row" }, h("span", { class: "dim small" }, "From now on"), only, number, h("span", { class: "grow" }),
      h("span", { class: "row tight" }, h("span", { class: "dim small" }, "Swap for"), other, button("edit-swap", "Swap", "Let another module run in its place", swap, off))),
    h("div", { class: "row" },
      button("edit-replace", "Replace", "Put the number in its place", () => make("replace", Number(number.value)), off),
      button("edit-scale", "Scale", "Multiply with the number", () => make("scale", Number(number.value)), off),
      button("edit-add", "Add", "Add the number", () => make("add", Number(number.value)), off),
      button("edit-zero", "Ablate", "Put zero in its place", ablate, off),
      button("edit-skip", "Skip", "Let the module not run", skip, off)),
    warning,
  ];
}

/** A part that was drawn, as the positions and features of an edit. */
function drawn({ rows, cols, all }) {
  const part = {
    ...(rows[1] - rows[0] < all[0] ? { positions: range(rows) } : {}),
    ...(cols[1] - cols[0] < all[1] ? { features: range(cols) } : {}),
  };
  const told = ([a, b], one, many) => (b - a === 1 ? `${one} ${a}` : `${many} ${a} to ${b - 1}`);
  const text = [part.positions && told(rows, "position", "positions"), part.features && told(cols, "feature", "features")].filter(Boolean).join(", ");
  return text ? { text, part } : null;
}

/** Modules that could stand in for one: of the same class, elsewhere. */
function alike(model, address) {
  const tree = model.get("info")?.tree ?? [];
  const kind = tree.find((m) => m.address === address)?.class;
  return tree.filter((m) => m.class === kind && m.address !== address).map((m) => m.address).slice(0, 200);
}
