/** The changes in force, with receipts: where each was made, how often, and how much it changed. */

import { ask, idle } from "../ask.js";
import { h, put, short } from "../dom.js";
import { notice, select, watch } from "../state.js";
import { changed, setEdits } from "./value_tools.js";

export function render({ model, el }) {
  const list = h("ul", { class: "edits", "aria-label": "Edits in force" });
  const empty = h("p", { class: "state empty" }, "Nothing is changed. Choose a module and ablate, scale, skip or swap it.");
  const clear = h("button", { type: "button", id: "edits-clear", title: "Take all edits out; undo brings them back", onclick: () => guard(setEdits(model, [])) }, "Remove all");

  async function guard(promise) {
    try {
      await promise;
    } catch (error) {
      if (!idle(error)) notice(model, "error", error.message, { address: error.address });
    }
  }

  async function remove(index) {
    changed(model, await ask(model, "edits.remove", { index }));
  }

  function part(edit) {
    const list = (name, v) => (v?.length ? `${name} ${v.length > 6 ? `${v.slice(0, 6).join(", ")}…` : v.join(", ")}` : null);
    return [list("positions", edit.positions), list("features", edit.features), list("heads", edit.heads)].filter(Boolean).join("; ");
  }

  function build() {
    const { edits = [], receipts = [] } = model.get("edits") ?? {};
    empty.hidden = edits.length > 0;
    clear.hidden = edits.length === 0;
    put(list, edits.map((e, i) => {
      const r = receipts[i];
      const value = e.with ? `for ${e.with}` : e.value === undefined || e.value === null ? "" : typeof e.value === "number" ? short(e.value) : String(e.value);
      return h("li", {},
        h("div", { class: "row" }, h("span", { class: "tag" }, e.do), h("button", { class: "quiet mono grow left", type: "button", title: "Look at the value there", onclick: () => select(model, { address: e.at }) }, e.at),
          h("span", { class: "num" }, value),
          h("button", { class: "quiet", type: "button", "aria-label": `Remove ${e.do} at ${e.at}`, title: "Remove", onclick: () => guard(remove(i)) }, "×")),
        h("div", { class: "small dim" }, [part(e), r ? r.text ?? `made ${r.count} times` : "not made yet"].filter(Boolean).join(" · ")));
    }));
  }

  el.append(empty, list, h("div", { class: "row" }, clear));
  const off = watch(model, ["edits"], build);
  build();
  return off;
}
