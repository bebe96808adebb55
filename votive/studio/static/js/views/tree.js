/** All that was written, as a tree: go to any node, look at it in passing, compare two branches. */

import { act, ask, idle } from "../ask.js";
import { h, percent, put, s, short, throttled, visible } from "../dom.js";
import { font } from "../draw/canvas.js";
import { Rows } from "../draw/rows.js";
import { layout } from "../draw/tree.js";
import { hover, notice, watch } from "../state.js";

const [ROW, INDENT, DOT] = [26, 18, 8];
const pen = document.createElement("canvas").getContext("2d");

export function render({ model, el }) {
  const scroll = h("div", { class: "tree-scroll", role: "tree", "aria-label": "Branches" });
  const pick = h("select", { id: "compare-with", "aria-label": "Branch to compare with", title: "A branch to compare with the current one" });
  const compare = h("button", { type: "button", id: "compare", title: "What both say, and how probable each is in the other", onclick: () => diff(Number(pick.value)) }, "Compare");
  const found = h("div", { class: "diff", "aria-live": "polite" });
  const passing = h("div", { class: "small dim passing", id: "tree-passing" });
  const empty = h("p", { class: "state empty" }, "Branches appear here as you write.");
  let [chains, on, focused] = [[], new Set(), null];

  const label = (chain) => chain.nodes.map((n) => visible(n.text)).join("").replaceAll("·", " ").trim();
  const rows = new Rows(scroll, { height: ROW, row: (i) => drawn(chains[i]) });

  function build() {
    const session = model.get("session");
    empty.hidden = Boolean(session);
    scroll.hidden = passing.hidden = !session;
    if (!session) return;
    chains = layout(session.nodes).chains;
    on = new Set(session.path.map((n) => n.id));
    focused = document.activeElement?.closest?.(".chain")?.dataset.chain ?? null;
    scroll.style.setProperty("--height", `${chains.length * ROW + 4}px`);
    rows.show(chains.length);
    const here = chains.findIndex((c) => c.nodes.some((n) => n.id === session.current));
    rows.reveal(here);
    if (focused !== null) rows.reveal(here)?.focus();
    const ends = chains.filter((c) => c.nodes.at(-1).id !== session.current);
    const chosen = pick.value;
    // A list to choose from has an end; the tree itself can be compared with Shift.
    put(pick, ends.slice(-200).map((c) => h("option", { value: String(c.nodes.at(-1).id) }, `${c.nodes.at(-1).id}: …${label(c).slice(-32)}`)));
    if ([...pick.options].some((o) => o.value === chosen)) pick.value = chosen;
    compare.disabled = pick.disabled = ends.length === 0;
    if (!ends.length) put(pick, h("option", {}, "no other branch yet"));
    tell();
  }

  function drawn(chain) {
    const session = model.get("session");
    const width = Math.max(200, scroll.clientWidth - 6);
    const x = 10 + Math.min(chain.depth, 9) * INDENT;
    const y = ROW / 2;
    const here = chain.nodes.some((n) => n.id === session.current);
    const lit = on.has(chain.nodes[0].id);
    const root = s("svg", { width, height: ROW, class: "tree", "aria-hidden": "true" });
    const out = h("div", {
      class: `chain${lit ? " on" : ""}${here ? " at" : ""}`, role: "treeitem", tabindex: here ? 0 : -1,
      "aria-level": chain.depth + 1, "aria-selected": String(here), "aria-setsize": chains.length, "aria-posinset": chain.index + 1,
      "aria-label": `${label(chain)}, ${chain.nodes.length} nodes`, "data-chain": chain.index, onkeydown: (event) => key(event, chain),
    }, root);
    root.append(...edges(chain, x, y));
    // Long chains show their first and last nodes.
    const most = Math.max(4, Math.min(12, Math.floor((width - x) / DOT / 3)));
    const some = chain.nodes.length <= most ? chain.nodes : [...chain.nodes.slice(0, 2), null, ...chain.nodes.slice(-(most - 3))];
    let at = x;
    const dots = [];
    some.forEach((node, i) => {
      if (node && some[i + 1]) root.append(s("line", { class: `edge${lit ? " lit" : ""}`, x1: at + 3, x2: at + 3 + DOT, y1: y, y2: y }));
      dots.push(node ? dot(node, at, y) : s("text", { x: at - 1, y: y + 3, class: "chain-text", text: "…" }));
      at += DOT + (node ? 0 : 5);
    });
    root.append(...dots, s("text", { x: at + 6, y: y + 4, class: "chain-text", text: fitted(`${edited(chain.nodes[0]) ? "✎ " : ""}${label(chain)}`, width - at - 10), onclick: (event) => go(chain.nodes.at(-1).id, event) }));
    return out;
  }

  /** The lines of a row: to its own chain, and of those that pass by on the way to later rows. */
  function edges(chain, x, y) {
    const out = [];
    const column = (c) => 10 + Math.min(c.depth, 9) * INDENT + 4;
    for (let up = chain.parent; up !== null; up = chains[up].parent) {
      const below = chains.findLast((c) => c.parent === up);
      const px = column(chains[up]);
      const own = up === chain.parent;
      if (own) out.push(s("path", { class: `edge${on.has(chain.nodes[0].id) ? " lit" : ""}`, d: `M${px},0 V${y - 6} Q${px},${y} ${px + 6},${y} H${x}` }));
      const lit = chains.some((c) => c.parent === up && c.index > chain.index && on.has(c.nodes[0].id));
      if (below.row > chain.row) out.push(s("line", { class: `edge${lit ? " lit" : ""}`, x1: px, x2: px, y1: 0, y2: ROW }));
    }
    const children = chains.filter((c) => c.parent === chain.index);
    if (children.length) out.push(s("line", { class: `edge${children.some((c) => on.has(c.nodes[0].id)) ? " lit" : ""}`, x1: column(chain), x2: column(chain), y1: y + 4, y2: ROW }));
    return out;
  }

  /** A text with its middle left out, so that it has room. */
  function fitted(text, room) {
    pen.font = font(12);
    if (pen.measureText(text).width <= room) return text;
    let keep = text.length - 1;
    const cut = (n) => `${text.slice(0, Math.floor(n / 2))}…${text.slice(text.length - Math.ceil(n / 2))}`;
    while (keep > 4 && pen.measureText(cut(keep)).width > room) keep -= Math.max(1, Math.floor(keep / 16));
    return cut(keep);
  }

  function dot(node, x, y) {
    const session = model.get("session");
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

  /** The text up to the node under the pointer. */
  function tell() {
    const [session, at] = [model.get("session"), model.get("hover")?.branch];
    let node = session?.byId.get(at);
    if (!node) {
      passing.textContent = session ? `${session.nodes.length} nodes, ${chains.length} ${chains.length === 1 ? "stretch" : "stretches"} of text` : "";
      return;
    }
    let text = "";
    for (; node && text.length < 90; node = session.byId.get(node.parent)) text = node.text + text;
    passing.textContent = `${node ? "…" : ""}${text.slice(-90).replaceAll("\n", "⏎")}`;
  }

  function key(event, chain) {
    const at = chain.index;
    const session = model.get("session");
    const move = { ArrowUp: -1, ArrowDown: 1, Home: -1e9, End: 1e9 }[event.key];
    if (move) rows.reveal(Math.max(0, Math.min(chains.length - 1, at + move)))?.focus();
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
      const side = (name, text, mine, theirs, title) => h("div", { class: "diff-side" }, h("div", { class: "row" }, h("span", { class: "tag", title }, name),
        mine === null || mine === undefined ? null : h("span", { class: "num dim small grow", title: "How probable its first token is on its own branch, and on the other" }, `its first token ${percent(mine)}${percent(mine) === percent(theirs) ? "" : `, on the other ${percent(theirs)}`}`)),
      h("p", { class: "diff-text" }, visible(text ?? "").replaceAll("·", " ").trim() || h("span", { class: "dim" }, "nothing more")));
      put(found, h("div", { class: "row spread" }, h("b", {}, "Comparison"),
        h("button", { class: "quiet", type: "button", "aria-label": "Close the comparison", onclick: () => put(found) }, "×")),
      h("p", { class: "diff-text dim" }, "…", visible(d.common ?? "").replaceAll("·", " ").slice(-60)),
      side("here", d.a, d.a_in_a, d.a_in_b, `The branch where you stand, node ${here}`), side("other", d.b, d.b_in_b, d.b_in_a, `The other branch, node ${other}`),
      h("div", { class: "dim small num", title: "Kullback-Leibler divergence of what follows the two: 0 means that they go on alike" }, `divergence ${short(d.kl_ab)} and ${short(d.kl_ba)} nats`));
    } catch (error) {
      if (!idle(error)) notice(model, "error", error.message);
    }
  }

  el.append(empty, scroll, passing, h("div", { class: "row tools" }, pick, compare), found);
  const later = throttled(build);
  const off = [watch(model, ["session"], later), watch(model, ["hover"], throttled(tell))];
  let wide = 0;
  const sized = new ResizeObserver(() => {
    if (scroll.clientWidth && scroll.clientWidth !== wide) later();
    wide = scroll.clientWidth;
  });
  sized.observe(scroll);
  build();
  return () => {
    off.forEach((f) => f());
    sized.disconnect();
    rows.close();
  };
}
