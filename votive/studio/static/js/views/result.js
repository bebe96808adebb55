/**
 * A result with its pictures, of which one is shown: heat maps, bars, lines, tables and flames.
 * Knows figures, not what they are about. Pictures that were not given are asked for.
 *
 * Keys: "told" {title, names, pictures {name: figures}, missing}.
 */

import { ask } from "../ask.js";
import { h, put, short, visible } from "../dom.js";
import { bars, flame, heat, line, table } from "../draw/figures.js";

const KINDS = { heatmap: heat, bars, lines: line, table, flame };

export function render({ model, el }) {
  const told = model.get("told") ?? { title: "", names: [], pictures: {} };
  const known = { ...told.pictures };
  let closing = [];
  let ticket = 0;
  const choice = h("select", { "aria-label": "Picture", onchange: () => show(choice.value) });
  const step = (by) => h("button", {
    type: "button", "aria-label": by < 0 ? "The picture before" : "The next picture",
    onclick: () => {
      const at = (choice.selectedIndex + by + told.names.length) % told.names.length;
      choice.selectedIndex = at;
      show(choice.value);
    },
  }, by < 0 ? "‹" : "›");
  const many = told.names.length > 1;
  const head = h("div", { class: "row result-head" }, h("b", { class: "mono grow" }, visible(told.title)),
    many ? [step(-1), choice, step(1)] : null);
  const note = h("p", { class: "state", role: "status", hidden: true });
  const body = h("div", { class: "result-body" });
  put(choice, told.names.map((name) => h("option", { value: name }, short(name))));

  async function show(name) {
    const mine = (ticket += 1);
    note.hidden = true;
    body.setAttribute("aria-busy", "true");
    try {
      known[name] ??= (await ask(model, "picture", { name })).figures;
      if (mine !== ticket) return;
      draw(known[name]);
    } catch (error) {
      if (mine !== ticket) return;
      clear();
      note.textContent = error.message;
      note.hidden = false;
    } finally {
      if (mine === ticket) body.removeAttribute("aria-busy");
    }
  }

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
  el.append(head, note, body);
  if (told.missing) el.append(h("p", { class: "dim small result-note" }, told.missing));
  if (told.names.length) show(told.names[0]);
  return clear;
}
