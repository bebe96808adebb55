/** The tokens of the text in order: probability as shade, entropy as a line under each. */

import { h, percent, put, throttled, visible } from "../dom.js";
import { hover, locked, select, shown, watch } from "../state.js";

export function render({ model, el }) {
  const list = h("div", { class: "timeline", role: "listbox", "aria-label": "Tokens", "aria-orientation": "horizontal" });
  const detail = h("div", { class: "detail", "aria-live": "off" });
  const empty = h("p", { class: "state empty" }, "Write a prompt and begin: its tokens appear here.");
  let drawn = [];

  function build() {
    const tokens = model.get("session")?.tokens ?? [];
    empty.hidden = tokens.length > 0;
    let same = 0;
    while (same < tokens.length && same < drawn.length && alike(tokens[same], drawn[same])) same += 1;
    while (list.children.length > same) list.lastChild.remove();
    for (const token of tokens.slice(same)) list.append(chip(token));
    drawn = tokens;
    mark();
    if (locked(model).position === null && same > 0) list.scrollTop = list.scrollHeight;
  }

  const alike = (a, b) => a.id === b.id && a.node === b.node && a.p === b.p && a.entropy === b.entropy;

  function chip(token) {
    const known = token.p !== null && token.p !== undefined;
    const out = h("span", {
      class: `token${token.prompt ? " given" : ""}${token.how === "chosen" ? " by-hand" : ""}`, role: "option", tabindex: -1,
      "data-at": token.position, "aria-selected": "false",
      "aria-label": `${visible(token.text)}, position ${token.position}${known ? `, probability ${percent(token.p)}` : ""}`,
    }, h("span", { class: "token-text" }, visible(token.text)));
    // Unlikely tokens stand out; a certain one is plain.
    const weight = known ? Math.min(1, -Math.log10(Math.max(token.p, 1e-4)) / 3) : 0;
    out.style.setProperty("--p", weight.toFixed(3));
    out.style.setProperty("--e", Math.min(1, (token.entropy ?? 0) / 6).toFixed(3));
    if (token.text.includes("\n")) out.classList.add("line-end");
    return out;
  }

  function mark() {
    const [lock, seen] = [locked(model).position, shown(model).position];
    const last = drawn.length - 1;
    for (const child of list.children) {
      const at = Number(child.dataset.at);
      const chosen = at === (lock ?? last);
      child.classList.toggle("locked", at === lock);
      child.classList.toggle("hovered", at === seen && at !== lock);
      child.setAttribute("aria-selected", String(at === lock));
      child.tabIndex = chosen ? 0 : -1;
    }
    tell(drawn[Math.min(seen ?? last, last)]);
  }

  function tell(token) {
    if (!token) return put(detail);
    const item = (name, value) => [h("dt", {}, name), h("dd", {}, value)];
    return put(detail, h("dl", { class: "facts" },
      item("token", visible(token.text)), item("id", String(token.id)), item("at", String(token.position)),
      item("p", `${percent(token.p)}${token.prompt ? ", given" : ""}`),
      item("entropy", token.entropy === null || token.entropy === undefined ? "–" : token.entropy.toFixed(2))));
  }

  const at = (event) => event.target.closest?.(".token")?.dataset.at;
  list.addEventListener("pointerover", (event) => at(event) !== undefined && hover(model, { position: Number(at(event)) }));
  list.addEventListener("pointerleave", () => hover(model, null));
  list.addEventListener("click", (event) => at(event) !== undefined && lock(Number(at(event))));
  list.addEventListener("keydown", (event) => {
    const now = Number(at(event));
    const moves = { ArrowLeft: now - 1, ArrowRight: now + 1, ArrowUp: now - 8, ArrowDown: now + 8, Home: 0, End: drawn.length - 1 };
    if (event.key in moves) {
      const next = Math.max(0, Math.min(drawn.length - 1, moves[event.key]));
      hover(model, { position: next });
      list.children[next]?.focus();
    } else if (event.key === "Enter" || event.key === " ") lock(now);
    else if (event.key === "Escape") select(model, { position: null });
    else return;
    event.preventDefault();
  });
  list.addEventListener("focusout", () => hover(model, null));

  function lock(position) {
    select(model, { position: locked(model).position === position ? null : position });
  }

  el.append(empty, list, detail);
  const later = throttled(mark);
  const off = [watch(model, ["session"], build), watch(model, ["selection", "hover"], later)];
  build();
  return () => off.forEach((f) => f());
}
