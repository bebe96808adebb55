/** What can be done to a value: change it once at a stop, or at its address from now on. */

import { ask } from "../ask.js";
import { h } from "../dom.js";
import { locked, notice, positionOf, take } from "../state.js";

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
  const same = (e) => e.at === edit.at && e.do === edit.do && JSON.stringify([e.positions, e.features]) === JSON.stringify([edit.positions, edit.features]);
  return [...old.filter((e) => !same(e)), edit];
}

function plain(edit) {
  const { at, do: what, value, positions, features, with: other } = edit;
  return Object.fromEntries(Object.entries({ at, do: what, value, positions, features, with: other }).filter(([, v]) => v !== null && v !== undefined));
}

export function toolsFor({ model, atStop, cell, byPosition, address, done }) {
  const number = h("input", { type: "number", step: "any", value: "0", id: "edit-value", "aria-label": "Value" });
  const button = (id, text, title, f, off = false) => h("button", { type: "button", id, title, disabled: off, onclick: f }, text);
  return atStop ? once({ model, cell, number, button, done }) : lasting({ model, address, cell, byPosition, number, button, done });
}

/** Whether there is no server to ask. */
function away(model) {
  return Boolean(model.get("link") && model.get("link").status !== "open");
}

function once({ model, cell, number, button, done }) {
  const [debug, off] = [model.get("debug"), away(model)];
  const index = cell ? { index: cell } : {};
  const change = (args) => done(ask(model, "debug.replace", { ...args, ...index }).then((reply) => model.set("debug", { ...reply })));
  return [
    h("span", { class: "dim small" }, cell ? `At this stop, cell [${cell.join(", ")}]:` : "At this stop, the whole value:"),
    h("div", { class: "row" }, number,
      button("stop-replace", "Replace", "Put the number in its place", () => change({ value: Number(number.value) }), off),
      button("stop-scale", "Scale", "Multiply with the number", () => change({ scale: Number(number.value) }), off),
      button("stop-zero", "Zero", "Put zero in its place", () => change({ zero: true }), off),
      button("stop-skip", "Skip call", "Skip this call; its input is passed on unchanged", () => done(ask(model, "debug.skip", {}).then((r) => model.set("debug", { ...r }))), off || debug.phase !== "enter")),
  ];
}

function lasting({ model, address, cell, byPosition, number, button, done }) {
  const off = !address || !model.get("session") || away(model);
  const position = locked(model).position;
  const only = h("select", { id: "edit-where", "aria-label": "Which part is changed" },
    h("option", { value: "all" }, "all positions"),
    byPosition && position !== null ? h("option", { value: "position" }, `position ${positionOf(model, locked(model))}`) : null,
    cell && byPosition ? h("option", { value: "cell", selected: true }, `cell [${cell.join(", ")}]`) : null);
  const part = () => (only.value === "cell" ? { positions: [cell[0]], features: [cell[1]] }
    : only.value === "position" ? { positions: [positionOf(model, locked(model))] } : {});
  const put = (what, value) => done(setEdits(model, withEdit(model, {
    at: address, do: what, ...(value === undefined ? {} : { value }), ...(what === "skip" ? {} : part()),
  })).then(() => notice(model, "done", `${what} at ${address} is in force; see Edits for its receipt.`)));
  const other = h("select", { id: "swap-with", "aria-label": "Module to put in its place" },
    h("option", { value: "identity" }, "identity"), alike(model, address).map((a) => h("option", { value: a }, a)));
  const swap = () => done(ask(model, "edits.swap", { at: address, with: other.value }).then((reply) => {
    changed(model, reply);
    notice(model, "done", `${address} is swapped for ${other.value}.`);
  }));
  return [
    h("div", { class: "row" }, h("span", { class: "dim small" }, "From now on"), only, number, h("span", { class: "grow" }),
      h("span", { class: "row tight" }, h("span", { class: "dim small" }, "Swap for"), other, button("edit-swap", "Swap", "Let another module run in its place", swap, off))),
    h("div", { class: "row" },
      button("edit-replace", "Replace", "Put the number in its place", () => put("replace", Number(number.value)), off),
      button("edit-scale", "Scale", "Multiply with the number", () => put("scale", Number(number.value)), off),
      button("edit-add", "Add", "Add the number", () => put("add", Number(number.value)), off),
      button("edit-zero", "Ablate", "Put zero in its place", () => put("zero"), off),
      button("edit-skip", "Skip", "Let the module not run", () => put("skip"), off)),
  ];
}

/** Modules that could stand in for one: of the same class, elsewhere. */
function alike(model, address) {
  const tree = model.get("info")?.tree ?? [];
  const kind = tree.find((m) => m.address === address)?.class;
  return tree.filter((m) => m.class === kind && m.address !== address).map((m) => m.address).slice(0, 200);
}
