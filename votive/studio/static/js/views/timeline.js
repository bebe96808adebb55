/** The text, token by token: how probable each was as its shade, the entropy after it as a line. */

import { h, percent, put, throttled, visible } from "../dom.js";
import { font } from "../draw/canvas.js";
import { Rows } from "../draw/rows.js";
import { hover, locked, select, shown, watch } from "../state.js";

const [HEIGHT, PAD, GAP] = [27, 8, 2];
const pen = document.createElement("canvas").getContext("2d");

export function render({ model, el }) {
  const list = h("div", { class: "timeline", role: "listbox", "aria-label": "Tokens", "aria-orientation": "horizontal" });
  const detail = h("div", { class: "detail", "aria-live": "off" });
  const key = h("div", { class: "key-line small dim" },
    h("span", { class: "swatch unlikely", "aria-hidden": "true" }), h("span", { title: "A darker token was less probable: plain is near 100 %, the darkest 0.1 % and less" }, "unlikely"),
    h("span", { class: "swatch entropy", "aria-hidden": "true" }), h("span", { title: "Entropy: how undecided the model is about what follows; a strong line means many tokens were possible" }, "entropy after it"),
    h("span", { class: "swatch given", "aria-hidden": "true" }), h("span", { title: "Tokens of the prompt" }, "given"));
  const empty = h("p", { class: "state empty" }, "Write a prompt and begin: its tokens appear here.");
  let [drawn, packed, rowOf, width] = [[], [], [], 0];

  /** Tokens by rows, as wide as they will be: only rows that can be seen are made. */
  function pack(tokens) {
    pen.font = font(13);
    const room = Math.max(60, list.clientWidth - 4);
    [width, packed, rowOf] = [list.clientWidth, [], []];
    let [row, used] = [[], 0];
    const end = () => {
      if (row.length) packed.push(row);
      [row, used] = [[], 0];
    };
    for (const token of tokens) {
      const wide = Math.min(room, Math.ceil(pen.measureText(visible(token.text)).width) + PAD + GAP);
      if (used + wide > room) end();
      rowOf[token.position] = packed.length;
      row.push(token);
      used += wide;
      if (token.text.includes("\n")) end();
    }
    end();
  }

  const rows = new Rows(list, {
    height: HEIGHT, around: 3,
    row: (i) => {
      const out = h("div", { class: "token-row", role: "presentation" }, packed[i].map(chip));
      for (const child of out.children) dress(child);
      return out;
    },
  });

  function build() {
    const tokens = model.get("session")?.tokens ?? [];
    const fresh = drawn.length === 0 || tokens[0]?.node !== drawn[0]?.node;
    const at = document.activeElement?.closest?.(".token")?.dataset.at;
    drawn = tokens;
    empty.hidden = tokens.length > 0;
    list.hidden = detail.hidden = key.hidden = tokens.length === 0;
    list.dataset.count = String(tokens.length);
    pack(tokens);
    list.style.setProperty("--height", `${packed.length * HEIGHT + 4}px`);
    rows.show(packed.length);
    const lock = locked(model).position;
    if (lock === null) rows.reveal(fresh ? 0 : packed.length - 1);
    if (at !== undefined && Number(at) < tokens.length) focus(Number(at));
    tell(tokens[Math.min(shown(model).position ?? tokens.length - 1, tokens.length - 1)]);
  }

  function chip(token) {
    const known = token.p !== null && token.p !== undefined;
    const out = h("span", {
      class: `token${token.prompt ? " given" : ""}${token.how === "chosen" ? " by-hand" : ""}`, role: "option", tabindex: -1,
      "data-at": token.position, "aria-selected": "false", "aria-setsize": drawn.length, "aria-posinset": token.position + 1,
      "aria-label": `${visible(token.text)}, position ${token.position}${known ? `, probability ${percent(token.p)}` : ""}`,
    }, h("span", { class: "token-text" }, visible(token.text)));
    // Unlikely tokens stand out; a certain one is plain.
    const weight = known ? Math.min(1, -Math.log10(Math.max(token.p, 1e-4)) / 3) : 0;
    out.style.setProperty("--p", weight.toFixed(3));
    out.style.setProperty("--e", Math.min(1, (token.entropy ?? 0) / 6).toFixed(3));
    return out;
  }

  function dress(child) {
    const at = Number(child.dataset.at);
    const [lock, seen] = [locked(model).position, shown(model).position];
    child.classList.toggle("locked", at === lock);
    child.classList.toggle("hovered", at === seen && at !== lock);
    child.setAttribute("aria-selected", String(at === lock));
    child.tabIndex = at === (lock ?? drawn.length - 1) ? 0 : -1;
  }

  let marked = [];
  function mark() {
    const [lock, seen] = [locked(model).position, shown(model).position];
    const now = [lock, seen, lock ?? drawn.length - 1];
    // Only those that were marked and those that are now: a long text has many others.
    for (const at of new Set([...marked, ...now])) {
      const child = at === null ? null : list.querySelector(`[data-at="${at}"]`);
      if (child) dress(child);
    }
    if (!list.matches(":hover") && lock !== null && lock !== marked[0]) rows.reveal(rowOf[lock]);
    marked = now;
    tell(drawn[Math.min(seen ?? drawn.length - 1, drawn.length - 1)]);
  }

  function tell(token) {
    if (!token) return put(detail);
    const item = (name, value, title) => h("div", { title }, h("dt", {}, name), h("dd", {}, value));
    return put(detail, h("dl", { class: "facts" },
      item("token", visible(token.text), "The token's text"), item("id", String(token.id), "Its number in the vocabulary"),
      item("at", String(token.position), "Its position in the text"),
      item("p", `${percent(token.p)}${token.prompt ? ", given" : ""}`, "How probable the model found it"),
      item("entropy", token.entropy === null || token.entropy === undefined ? "–" : token.entropy.toFixed(2), "Entropy of what follows it, in nats: 0 is certain, larger is less certain")));
  }

  function focus(position) {
    rows.reveal(rowOf[position])?.querySelector(`[data-at="${position}"]`)?.focus({ preventScroll: true });
  }

  const at = (event) => event.target.closest?.(".token")?.dataset.at;
  list.addEventListener("pointerover", (event) => at(event) !== undefined && hover(model, { position: Number(at(event)) }));
  list.addEventListener("pointerleave", () => hover(model, null));
  list.addEventListener("click", (event) => at(event) !== undefined && lock(Number(at(event))));
  list.addEventListener("keydown", (event) => {
    const now = Number(at(event));
    const other = (by) => {
      const row = packed[rowOf[now] + by];
      return row ? row[Math.min(row.length - 1, now - packed[rowOf[now]][0].position)].position : now;
    };
    const moves = { ArrowLeft: () => now - 1, ArrowRight: () => now + 1, ArrowUp: () => other(-1), ArrowDown: () => other(1), Home: () => 0, End: () => drawn.length - 1 };
    if (event.key in moves) {
      const next = Math.max(0, Math.min(drawn.length - 1, moves[event.key]()));
      focus(next);
      hover(model, { position: next });
    } else if (event.key === "Enter" || event.key === " ") lock(now);
    else if (event.key === "Escape") select(model, { position: null });
    else return;
    event.preventDefault();
  });
  list.addEventListener("focusout", () => hover(model, null));

  function lock(position) {
    select(model, { position: locked(model).position === position ? null : position });
  }

  el.append(empty, list, detail, key);
  const off = [watch(model, ["session"], build), watch(model, ["selection", "hover"], throttled(mark))];
  const sized = new ResizeObserver(throttled(() => list.clientWidth && list.clientWidth !== width && build()));
  sized.observe(list);
  build();
  return () => {
    off.forEach((f) => f());
    sized.disconnect();
    rows.close();
  };
}
