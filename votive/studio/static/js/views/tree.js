/** All that was written, as a tree: go to any node, and compare two branches. */

import { act, ask, idle } from "../ask.js";
import { h, percent, put, reveal, s, short, throttled, visible } from "../dom.js";
import { layout } from "../draw/tree.js";
import { hover, notice, watch } from "../state.js";

const [ROW, INDENT, DOT] = [26, 20, 8];

export function render({ model, el }) {
  const scroll = h("div", { class: "tree-scroll" });
  const pick = h("select", { id: "compare-with", "aria-label": "Branch to compare with" });
  const compare = h("button", { type: "button", id: "compare", onclick: () => diff(Number(pick.value)) }, "Compare");
  const found = h("div", { class: "diff", "aria-live": "polite" });
  const empty = h("p", { class: "state empty" }, "Branches appear here as you write.");

  const label = (chain) => chain.nodes.map((n) => visible(n.text)).join("").replaceAll("·", " ");

  function build() {
    const session = model.get("session");
    empty.hidden = Boolean(session);
    scroll.hidden = !session;
    if (!session) return;
    const { chains, rows } = layout(session.nodes);
    const on = new Set(session.path.map((n) => n.id));
    const width = Math.max(260, scroll.clientWidth - 4);
    const root = s("svg", { class: "tree", width, height: rows * ROW + 6, role: "tree", "aria-label": "Branches" });
    chains.forEach((chain) => root.append(drawn(chain, chains, on, session, width)));
    put(scroll, root);
    reveal(scroll, root.querySelector(".at"));
    const ends = chains.filter((c) => c.nodes.at(-1).id !== session.current);
    put(pick, ends.map((c) => h("option", { value: String(c.nodes.at(-1).id) }, `${c.nodes.at(-1).id}: ${label(c).slice(-36)}`)));
    compare.disabled = pick.disabled = ends.length === 0;
    if (!ends.length) put(pick, h("option", {}, "no other branch"));
  }

  function drawn(chain, chains, on, session, width) {
    const [x, y] = [10 + chain.depth * INDENT, chain.row * ROW + ROW / 2 + 2];
    const here = chain.nodes.some((n) => n.id === session.current);
    const part = s("g", {
      class: `chain${on.has(chain.nodes[0].id) ? " on" : ""}${here ? " at" : ""}`, role: "treeitem", tabindex: here ? 0 : -1,
      "aria-level": chain.depth + 1, "aria-selected": String(here), "aria-label": `${label(chain)}, ${chain.nodes.length} nodes`,
      "data-chain": chain.index,
    });
    if (chain.parent !== null) {
      const up = chains[chain.parent];
      const [px, py] = [10 + up.depth * INDENT + 4, up.row * ROW + ROW / 2 + 2];
      part.append(s("path", { class: "edge", d: `M${px},${py + 5} V${y - 6} Q${px},${y} ${px + 6},${y} H${x}` }));
    }
    // Long chains show their first and last nodes.
    const most = Math.max(4, Math.min(14, Math.floor((width - x) / DOT / 3)));
    const some = chain.nodes.length <= most ? chain.nodes
      : [...chain.nodes.slice(0, 2), null, ...chain.nodes.slice(-(most - 3))];
    let at = x;
    const dots = [];
    some.forEach((node, i) => {
      if (node && some[i + 1]) part.append(s("line", { class: "edge", x1: at + 3, x2: at + 3 + DOT, y1: y, y2: y }));
      dots.push(node ? dot(node, at, y, session, on) : s("text", { x: at - 1, y: y + 3, class: "chain-text", text: "…" }));
      at += DOT + (node ? 0 : 4);
    });
    part.append(...dots);
    const text = s("text", { x: at + 6, y: y + 4, class: "chain-text" });
    const room = Math.max(4, Math.floor((width - at - 14) / 7.4));
    const words = label(chain);
    text.textContent = words.length > room ? `${words.slice(0, Math.ceil(room / 2) - 1)}…${words.slice(-Math.floor(room / 2))}` : words;
    part.append(text);
    text.addEventListener("click", (event) => go(chain.nodes.at(-1).id, event));
    part.addEventListener("keydown", (event) => key(event, chain));
    return part;
  }

  function dot(node, x, y, session, on) {
    const current = node.id === session.current;
    const out = s("circle", {
      cx: x + 3, cy: y, r: current ? 5 : 3.2, "data-node": node.id,
      class: `node${on.has(node.id) ? " on" : ""}${current ? " current" : ""}${edited(node) ? " edited" : ""}`,
      onclick: (event) => go(node.id, event),
      onpointerenter: () => hover(model, { branch: node.id }), onpointerleave: () => hover(model, null),
    });
    const p = node.p === null || node.p === undefined ? "" : `, ${percent(node.p)}`;
    out.append(s("title", { text: `node ${node.id}: ${visible(node.text).slice(0, 60)}${p}${edited(node) ? ", edited" : ""}` }));
    return out;
  }

  const edited = (node) => (model.get("session").edits_table?.[node.edits]?.length ?? 0) > 0;

  function key(event, chain) {
    const all = [...scroll.querySelectorAll(".chain")];
    const at = all.indexOf(event.currentTarget);
    const session = model.get("session");
    const move = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (move) all[Math.max(0, Math.min(all.length - 1, at + move))].focus();
    else if (event.key === "Enter" || event.key === " ") go(chain.nodes.at(-1).id, event);
    else if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
      const path = session.path.map((n) => n.id);
      const now = session.byId.get(session.current);
      const next = event.key === "ArrowLeft" ? path.at(-2) : session.nodes.find((n) => n.parent === now.id)?.id;
      if (next !== undefined) go(next, event);
    } else return;
    event.preventDefault();
  }

  function go(node, event) {
    if (event.shiftKey) diff(node);
    else act(model, "session.jump", { node });
  }

  async function diff(other) {
    try {
      const here = model.get("session").current;
      const d = await ask(model, "session.diff", { a: here, b: other }, { slot: "diff" });
      const line = (name, text, mine, theirs) => h("div", { class: "diff-row" }, h("span", { class: "tag" }, name),
        h("span", { class: "mono grow" }, visible(text) || "nothing more"), h("span", { class: "num dim" }, `${percent(mine)} here, ${percent(theirs)} there`));
      put(found, h("div", { class: "diff-row" }, h("span", { class: "tag" }, "both"), h("span", { class: "mono grow dim" }, `…${visible(d.common ?? "").slice(-60)}`),
        h("button", { class: "quiet small", type: "button", "aria-label": "Close the comparison", onclick: () => put(found) }, "×")),
      line(`a ${here}`, d.a, d.a_in_a, d.a_in_b), line(`b ${other}`, d.b, d.b_in_b, d.b_in_a),
      h("div", { class: "dim small num" }, `KL(a‖b) ${short(d.kl_ab)}, KL(b‖a) ${short(d.kl_ba)} nats`));
    } catch (error) {
      if (!idle(error)) notice(model, "error", error.message);
    }
  }

  el.append(empty, scroll, h("div", { class: "row" }, pick, compare), found);
  const later = throttled(build);
  const off = watch(model, ["session"], later);
  const sized = new ResizeObserver(later);
  sized.observe(scroll);
  build();
  return () => {
    off();
    sized.disconnect();
  };
}
