/**
 * A result with its pictures, of which one is shown: heat maps, bars, lines, tables and flames.
 * Knows figures, not what they are about. Pictures that were not given are asked for.
 *
 * Keys: "result" {title, names, pictures {name: figures}, moves, missing}.
 */

import { ask } from "../ask.js";
import { h, put, short, visible } from "../dom.js";
import { bars, flame, heat, line, table } from "../draw/figures.js";
import { pixels } from "../draw/pixels.js";

const KINDS = { heatmap: heat, bars, lines: line, table, flame, pixels };

export function render({ model, el }) {
  let [result, known, closing, ticket] = [null, {}, [], 0];
  const choice = h("select", { "aria-label": "Picture", onchange: () => show(choice.value) });
  const step = (by) => h("button", {
    type: "button", "aria-label": by < 0 ? "The picture before" : "The next picture",
    onclick: () => {
      choice.selectedIndex = (choice.selectedIndex + by + result.names.length) % result.names.length;
      show(choice.value);
    },
  }, by < 0 ? "‹" : "›");
  const head = h("div", { class: "row result-head" });
  const moves = h("div", { class: "row result-head" });
  const note = h("p", { class: "state", role: "status", hidden: true });
  const body = h("div", { class: "result-body" });
  const missing = h("p", { class: "dim small result-note" });

  function take(given) {
    const before = choice.value;
    result = given ?? { title: "", names: [], pictures: {} };
    known = { ...result.pictures };
    put(head, h("b", { class: "mono grow" }, visible(result.title)), result.names.length > 1 ? [step(-1), choice, step(1)] : null);
    put(choice, result.names.map((name) => h("option", { value: name }, short(name))));
    // Where nothing can be asked, nothing can be moved.
    put(moves, (model.get("saved") ? [] : result.moves ?? []).map((name) => h("button", { type: "button", onclick: () => move(name) }, name)));
    missing.textContent = result.missing ?? "";
    if (result.names.includes(before)) choice.value = before;
    if (result.names.length) show(choice.value);
  }

  async function attempt(work) {
    const mine = (ticket += 1);
    note.hidden = true;
    body.setAttribute("aria-busy", "true");
    try {
      await work(() => mine === ticket);
    } catch (error) {
      if (mine !== ticket) return;
      note.textContent = error.message;
      note.hidden = false;
    } finally {
      if (mine === ticket) body.removeAttribute("aria-busy");
    }
  }

  const show = (name) => attempt(async (wanted) => {
    if (!(name in known)) {
      clear();
      known[name] = (await ask(model, "picture", { name })).figures;
    }
    if (wanted()) draw(known[name]);
  });

  const move = (name) => attempt(async () => take((await ask(model, "move", { name })).result));

  function clear() {
    closing.forEach((f) => f());
    closing = [];
    put(body);
  }

  function draw(figures) {
    clear();
    for (const figure of figures) {
      const box = h("figure", { class: `result-figure ${figure.kind}` });
      body.append(box);
      if (figure.title) box.append(h("figcaption", {}, visible(figure.title)));
      const close = KINDS[figure.kind](box, figure);
      if (close) closing.push(close);
      if (figure.note) box.append(h("p", { class: "dim small result-note" }, figure.note));
    }
  }

  el.classList.add("result");
  el.append(head, moves, note, body, missing);
  const changed = () => take(model.get("result"));
  model.on("change:result", changed);
  changed();
  return () => {
    model.off("change:result", changed);
    clear();
  };
}
