/**
 * The model as a picture: tokens at the left, blocks in the middle, what it says at the right. Lines are as wide as
 * what flows along them is long. Knows numbers and words only.
 */

import { h, percent, s, short, visible } from "../dom.js";

const [LEFT, RIGHT, TOP] = [108, 152, 34];
const [BOX, STREAM] = [84, 178]; // height of a block, and where the stream runs
const CELL = 9;

/** How wide a line is drawn for a vector of a length, of which the longest is `most`. */
const wide = (size, most, [low, high]) => (Number.isFinite(size) && most > 0 ? low + (high - low) * Math.sqrt(size / most) : 0);

/** Let an element of the picture be reached and chosen by keys as by the pointer. */
function chosen(el, words, pick, hover) {
  el.setAttribute("role", "button");
  el.setAttribute("tabindex", "0");
  el.dataset.name = words;
  // What has letters in it is called by them, and by its title.
  if (!el.querySelector("text")) el.setAttribute("aria-label", words);
  el.prepend(s("title", { text: words }));
  el.addEventListener("click", pick);
  el.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    pick();
  });
  if (hover) {
    el.addEventListener("pointerenter", () => hover(true));
    el.addEventListener("pointerleave", () => hover(false));
  }
  return el;
}

/**
 * Draw it at one position. `flow` has arrays residual (L + 1, T), attention and mlp (L, T), heads (L, H, T), scale1 and
 * scale2 (L, T); `says` what each layer would say, with the likeliest tokens; `pick(kind, layer, head)` is told.
 */
export function flowPicture({ flow, says, tokens, position, width, layer: locked, head: lockedHead, pick, hover, choose, goOn }) {
  const [L, T] = [flow.attention.shape[0], flow.attention.shape[1]];
  const H = flow.heads.shape[1];
  const step = Math.max(52, (width - LEFT - RIGHT) / (L + 0.4));
  const whole = LEFT + RIGHT + step * (L + 0.4);
  const height = STREAM + 208;
  const at = (array, i) => array[i * T + position];
  const longest = Array.from({ length: L + 1 }, (_, i) => at(flow.residual, i)).filter(Number.isFinite).reduce((a, b) => Math.max(a, b), 1e-9);
  const added = [flow.attention, flow.mlp].flatMap((a) => Array.from({ length: L }, (_, i) => at(a, i))).filter(Number.isFinite).reduce((a, b) => Math.max(a, b), 1e-9);
  const heads = Array.from({ length: L * H }, (_, i) => flow.heads[i * T + position]).filter(Number.isFinite).reduce((a, b) => Math.max(a, b), 1e-9);
  const root = s("svg", { class: "flow", width: whole, height, viewBox: `0 0 ${whole} ${height}`, role: "group", "aria-label": "The model from tokens to the next token" });
  const x = (i) => LEFT + step * i;
  root.append(tokenColumn());
  root.append(streamPiece(-1, LEFT - 18, x(0) + 6));
  for (let i = 0; i < L; i += 1) root.append(block(i));
  root.append(...ends());

  function streamPiece(i, from, to) {
    const size = at(flow.residual, i + 1);
    const words = i < 0 ? `The stream begins as the token's embedding, of length ${short(size)}` : `The stream behind layer ${i} has length ${short(size)}`;
    return chosen(s("g", { class: "flow-stage", "data-stage": 2 * i + 2 }, s("line", {
      class: "stream", x1: from, x2: to, y1: STREAM, y2: STREAM, style: { "stroke-width": `${wide(size, longest, [3, 26]).toFixed(1)}px` },
    })), words, () => pick("stream", i, null));
  }

  function tokenColumn() {
    const g = s("g", { class: "flow-tokens" });
    const first = Math.max(0, Math.min(position - 5, T - 11));
    for (let i = first; i < Math.min(T, first + 11); i += 1) {
      const y = STREAM + (i - position) * 26;
      if (y < 16 || y > height - 10) continue;
      g.append(chosen(s("g", { class: i === position ? "now" : i > position ? "later" : "" }, s("rect", { x: 2, y: y - 11, width: LEFT - 26, height: 22, rx: 3 }),
        s("text", { x: 10, y: y + 4, text: clip(visible(tokens[i]), 11) })), `Token ${visible(tokens[i])} at ${i}`, () => choose(i)));
    }
    return g;
  }

  function block(i) {
    const [x0, w] = [x(i) + 6, step - 12];
    const g = s("g", { class: `flow-layer${i === locked ? " locked" : ""}`, "data-layer": i });
    const [attention, mlp] = [at(flow.attention, i), at(flow.mlp, i)];
    const skipped = !Number.isFinite(at(flow.residual, i + 1));
    g.append(s("text", { class: "flow-name", x: x0 + w / 2, y: 14, text: String(i) }));
    g.append(s("rect", { class: "flow-hit", x: x0 - 4, y: 20, width: w + 8, height: height - 48, rx: 6 }));
    if (skipped) g.append(s("text", { class: "flow-dim", x: x0 + w / 2, y: STREAM - 16, text: "skipped" }));
    // The stream runs on; what attention and MLP add joins it.
    const [a, m] = [wide(attention, added, [1, 12]), wide(mlp, added, [1, 12])];
    const top = TOP + BOX;
    const bottom = STREAM + 44;
    if (a) {
      g.append(s("path", { class: "flow-in", d: `M${x0},${STREAM} C${x0 + 6},${STREAM - 26} ${x0 + 6},${top + 18} ${x0 + 8},${top}` }),
        norm(x0 + 4, STREAM - 34, at(flow.scale1, i), i, "attention"),
        s("path", { class: "flow-out attention", d: `M${x0 + w * 0.45},${top} C${x0 + w * 0.45},${STREAM - 26} ${x0 + w * 0.5},${STREAM - 12} ${x0 + w * 0.62},${STREAM}`, style: { "stroke-width": `${a.toFixed(1)}px` } }));
    }
    if (m) {
      g.append(s("path", { class: "flow-in", d: `M${x0 + w * 0.5},${STREAM} C${x0 + w * 0.5},${STREAM + 20} ${x0 + w * 0.5},${bottom - 14} ${x0 + w * 0.5},${bottom}` }),
        norm(x0 + w * 0.5, STREAM + 26, at(flow.scale2, i), i, "MLP"),
        s("path", { class: "flow-out mlp", d: `M${x0 + w * 0.9},${bottom} C${x0 + w * 0.9},${STREAM + 26} ${x0 + w * 0.95},${STREAM + 12} ${x0 + w + 3},${STREAM}`, style: { "stroke-width": `${m.toFixed(1)}px` } }));
    }
    g.append(streamPiece(i, x0, x0 + w + 12));
    if (a) g.append(attentionBox(i, x0, w, attention));
    if (m) {
      g.append(chosen(s("g", { class: "flow-box flow-stage", "data-stage": 2 * i + 2 }, s("rect", { x: x0 + w * 0.18, y: bottom, width: w * 0.82, height: 40, rx: 5 }),
        s("text", { class: "flow-label", x: x0 + w * 0.59, y: bottom + 17, text: "MLP" }), s("text", { class: "flow-dim", x: x0 + w * 0.59, y: bottom + 32, text: `+${short(Number(mlp.toPrecision(3)))}` })),
      `The MLP of layer ${i} adds a vector of length ${short(mlp)}`, () => pick("mlp", i, null), (on) => hover(on ? { layer: i } : null)));
    }
    const word = says?.layers[i + 1];
    if (word) {
      g.append(s("text", { class: "flow-says", x: x0 + w / 2, y: height - 50, text: clip(visible(word.text), Math.floor(w / 7.5)) }), s("text", { class: "flow-dim", x: x0 + w / 2, y: height - 34, text: percent(word.p) }),
        s("rect", { class: "flow-sure", x: x0, y: height - 28, height: 4, width: w * word.p }));
    }
    return g;
  }

  /** A norm on the way into a block: its dot tells what the stream is divided by. */
  function norm(cx, cy, scale, i, before) {
    return s("circle", { class: "flow-norm", cx, cy, r: 4 }, s("title", { text: `Norm before the ${before} of layer ${i}${Number.isFinite(scale) ? `: the stream is divided by ${short(Number(scale.toPrecision(3)))}` : ""}` }));
  }

  /** The heads of a layer, each shaded by how long a vector it read. */
  function attentionBox(i, x0, w, size) {
    const g = s("g", { class: "flow-stage", "data-stage": 2 * i + 1 });
    const cells = L * H <= 2500 ? H : 0;
    // As large as lets all of them stand between the name and what is added.
    let [cell, gap] = [CELL, 3];
    const room = (w_, h_) => Math.floor((w_ + gap) / (cell + gap)) * Math.floor((h_ + gap) / (cell + gap));
    while (cell > 2 && room(w - 6, BOX - 44) < cells) [cell, gap] = [cell - 1, cell > 5 ? 2 : 1];
    const across = Math.max(1, Math.min(cells || 1, Math.floor((w - 6 + gap) / (cell + gap))));
    g.append(chosen(s("g", { class: "flow-box" }, s("rect", { x: x0, y: TOP, width: w, height: BOX, rx: 5 }),
      s("text", { class: "flow-label", x: x0 + w / 2, y: TOP + 15, text: w > 70 ? "attention" : "attn" }), s("text", { class: "flow-dim", x: x0 + w / 2, y: TOP + BOX - 7, text: `+${short(Number(size.toPrecision(3)))}` })),
    `The attention of layer ${i} adds a vector of length ${short(size)}`, () => pick("attention", i, null), (on) => hover(on ? { layer: i } : null)));
    const left = x0 + (w - across * (cell + gap) + gap) / 2;
    for (let k = 0; k < cells; k += 1) {
      const v = flow.heads[(i * H + k) * T + position];
      if (!Number.isFinite(v)) continue;
      const [cx, cy] = [left + (k % across) * (cell + gap), TOP + 22 + Math.floor(k / across) * (cell + gap)];
      if (cy > TOP + BOX - 24) break;
      g.append(chosen(s("rect", { class: `flow-head${i === locked && k === lockedHead ? " locked" : ""}`, x: cx, y: cy, width: cell, height: cell, rx: Math.min(2, cell / 3), style: { "--v": (v / heads).toFixed(3) } }),
        `Head ${k} of layer ${i}: what it read has length ${short(Number(v.toPrecision(3)))}`, () => pick("head", i, k), (on) => hover(on ? { layer: i, head: k } : null)));
    }
    return g;
  }

  /** The last norm and the head, and what they say. */
  function ends() {
    const x0 = x(L) + 14;
    const out = [s("circle", { class: "flow-norm", cx: x0, cy: STREAM, r: 5 }, s("title", { text: "The last norm" })),
      s("text", { class: "flow-dim start", x: x0 + 14, y: 14, text: "next token" })];
    (says?.top ?? []).forEach((t, i) => {
      const y = STREAM - 60 + i * 28;
      out.push(s("path", { class: "flow-in", d: `M${x0 + 5},${STREAM} C${x0 + 24},${STREAM} ${x0 + 12},${y} ${x0 + 30},${y}` }),
        chosen(s("g", { class: "flow-word flow-stage", "data-stage": 2 * L + 1 }, s("rect", { class: "flow-hit", x: x0 + 28, y: y - 12, width: RIGHT - 40, height: 25, rx: 3 }),
          s("rect", { class: "flow-sure", x: x0 + 30, y: y + 7, height: 4, width: Math.max(1, (RIGHT - 48) * t.p) }),
          s("text", { class: "start", x: x0 + 32, y: y + 3, text: clip(visible(t.text), 9) }), s("text", { class: "flow-dim end", x: x0 + RIGHT - 18, y: y + 3, text: percent(t.p) })),
        position === tokens.length - 1 ? `Go on with ${visible(t.text)}, ${percent(t.p)}` : `${visible(t.text)}, ${percent(t.p)}`, () => goOn(t)));
    });
    return out;
  }

  return { root, stages: 2 * L + 2 };
}

const clip = (text, most) => (text.length > most ? `${text.slice(0, Math.max(1, most - 1))}…` : text);

/** Values of a vector as a strip of colours: a bar for each up to `most`, of neighbours the largest. */
export function strip(values, { most = 128, bound = null, name }) {
  const every = Math.ceil(values.length / most);
  const cells = [];
  for (let i = 0; i < values.length; i += every) {
    let v = 0;
    for (let k = i; k < Math.min(values.length, i + every); k += 1) if (Math.abs(values[k]) > Math.abs(v)) v = values[k];
    cells.push(v);
  }
  const top = bound ?? (cells.reduce((a, b) => Math.max(a, Math.abs(b)), 0) || 1);
  const W = 4;
  const root = s("svg", { class: "strip", viewBox: `0 0 ${cells.length * W} 24`, preserveAspectRatio: "none", role: "img", "aria-label": `${name}: ${values.length} numbers, the largest ${short(top)}` });
  cells.forEach((v, i) => {
    const tall = (12 * Math.min(1, Math.abs(v) / top));
    root.append(s("rect", { class: v < 0 ? "minus" : "plus", x: i * W, width: W - 0.6, y: v < 0 ? 12 : 12 - tall, height: Math.max(0.3, tall) }));
  });
  return h("span", { class: "strip-box", title: `${name}: ${values.length} numbers${every > 1 ? `, each bar the largest of ${every}` : ""}; the largest is ${short(Number(top.toPrecision(3)))}` }, root);
}
