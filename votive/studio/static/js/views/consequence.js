/**
 * What the edits change: a value before and after at one scale, the next token and how the text goes on, old and new
 * side by side. At a stop of the debugger, the value that was changed there.
 */

import { act, ask, loader } from "../ask.js";
import { h, percent, put, short, throttled, visible } from "../dom.js";
import { Heatmap } from "../draw/heatmap.js";
import { legend, tell } from "../draw/legend.js";
import { locked, select, watch } from "../state.js";

const SIDES = [["before", "Before"], ["after", "After"], ["difference", "Difference"]];
const MOST = 8; // rows of the table
const none = (count) => Array.from({ length: count }, () => "\u00a0"); // names that are not written

export function render({ model, el }) {
  const panel = el.closest(".panel") ?? el;
  let [key, all] = ["", true];
  const against = h("select", { id: "consequence-against", "aria-label": "What it is compared with", title: "What it is compared with", onchange: () => { all = against.value === "all"; load.reload(); } },
    h("option", { value: "all" }, "without any edit"), h("option", { value: "last" }, "without the last edit"));
  const undo = h("button", { type: "button", id: "consequence-undo", title: "Take the last move back (Ctrl-Z)", onclick: () => act(model, "session.undo") }, "Undo");
  const address = h("b", { class: "mono ends grow" });
  const words = h("p", { class: "small", id: "consequence-words", role: "status" });
  const boxes = SIDES.map(([name]) => h("div", { class: "heat", id: `consequence-${name}` }));
  const readout = h("div", { class: "readout mono", "aria-live": "off" }, " ");
  const colours = legend();
  const values = h("div", { class: "three" }, SIDES.map(([, title], i) => h("figure", {}, h("figcaption", { class: "small dim" }, title), boxes[i])));
  const table = h("div", { class: "old-new" });
  const text = h("div", { class: "goes-on" });
  let data = null;
  const maps = boxes.map((box, i) => new Heatmap(box, {
    name: `${SIDES[i][1]}. Arrow keys move, plus and minus zoom.`, left: 4, top: 4,
    hover: (row, col) => { readout.textContent = row === null || !data ? " " : at(row, col); },
  }));

  function at(row, col) {
    const i = row * maps[0].data.cols + col;
    const [b, a] = [data.before[i], data.after[i]];
    const token = data.tokens?.[row];
    return `[${row}${token ? ` ${visible(token)}` : ""}, ${col}]: ${short(b)} → ${short(a)}, ${short(a - b)}`;
  }

  /** Three maps of the same colours; what differs is outlined. */
  function drawValues(value) {
    data = value;
    values.hidden = readout.hidden = colours.hidden = !value;
    if (!value) return;
    const [rows, cols] = value.before.shape;
    const sizes = [...value.before, ...value.after].map(Math.abs).filter(Number.isFinite).sort((a, b) => a - b);
    const bound = sizes[Math.floor(0.995 * (sizes.length - 1))] || 1;
    values.style.setProperty("--rows", String(Math.min(rows, 14)));
    SIDES.forEach(([name], i) => {
      maps[i].show({ rows, cols, values: value[name], min: -bound, max: bound, signed: true, bound, rowLabels: none(rows), colLabels: none(cols) });
      maps[i].outline(value.changed && name !== "before" ? scaled(value.changed, value.total, [rows, cols]) : null);
    });
    tell(colours, { name: "all three", ends: [`≤ ${short(-Number(bound.toPrecision(2)))}`, "0", `≥ ${short(Number(bound.toPrecision(2)))}`], signed: true, title: "One scale for before, after and their difference" });
  }

  /** Where a part of the whole lies in what was drawn of it. */
  const scaled = ([r0, r1, c0, c1], [R, C], [rows, cols]) => [Math.floor((r0 * rows) / R), Math.ceil((r1 * rows) / R), Math.floor((c0 * cols) / C), Math.ceil((c1 * cols) / C)];

  function drawTable(next) {
    const rows = next.rows.slice(0, MOST);
    const scale = Math.max(0.02, ...rows.flatMap((r) => [r.before, r.after]));
    const points = (x) => `${x > 0 ? "+" : x < 0 ? "−" : ""}${Math.abs(100 * x).toFixed(1)}`;
    put(table, h("table", { class: "compare", "aria-label": "Next token with and without the edits" },
      h("thead", {}, h("tr", {}, ["next token", "before", "after", "points"].map((t, i) => h("th", { scope: "col", class: i ? "num" : "", title: i === 3 ? "Change in points of a hundred" : null }, t)))),
      h("tbody", {}, rows.map((r) => h("tr", { class: r.after < r.before ? "fell" : "rose" }, h("th", { scope: "row" }, visible(r.text)),
        h("td", { class: "num", style: { "--share": `${(100 * r.before) / scale}%` } }, percent(r.before)),
        h("td", { class: "num new", style: { "--share": `${(100 * r.after) / scale}%` } }, percent(r.after)), h("td", { class: "num change" }, points(r.after - r.before)))))),
    h("p", { class: "small dim num", title: "Kullback-Leibler divergence of what the edits make of the next token; 0 means that they change nothing" },
      `divergence ${short(next.kl)} nats, entropy ${short(next.entropy_before)} → ${short(next.entropy_after)}`));
  }

  function drawText(found) {
    const side = (name, tokens) => h("p", { class: "goes" }, h("span", { class: "tag" }, name), " ", tokens.map((t, i) => h("span", { class: i < found.alike ? "same" : "other", title: `${percent(t.p)}` }, t.text.replaceAll("\n", "⏎"))));
    put(text, h("h3", {}, found.alike === found.before.length ? "The text goes on as before" : "How the text goes on"), side("old", found.before), side("new", found.after));
  }

  function draw(found) {
    const [value, next, made] = found;
    address.textContent = value.address ?? "";
    const tokens = (model.get("session")?.tokens ?? []).map((t) => t.text);
    if (value.before) {
      const [rows] = value.before.shape;
      drawValues({ ...value, tokens: rows === tokens.length ? tokens : null });
      words.textContent = value.changed
        ? `${percent(value.share)} of its ${value.total.join(" × ")} numbers differ, by up to ${short(value.largest)}; the difference is ${percent(value.relative)} of its norm. What differs is outlined.`
        : "Nothing differs here: this comes before what was edited, or is not reached by it. Choose a later module.";
    } else {
      drawValues(null);
      words.textContent = value.trouble ?? "";
    }
    table.hidden = text.hidden = !next;
    if (next) drawTable(next);
    if (made) drawText(made);
  }

  /** At a stop: what stood there and what stands there now; what follows is told when the run has ended. */
  function stopped({ before, after, address: here }) {
    const plain = (v) => (v.values instanceof Uint8Array ? Float32Array.from(v.values, (b) => v.min + (b / 255) * (v.max - v.min)) : v.values);
    const [b, a] = [plain(before), plain(after)];
    const difference = Float32Array.from(a, (x, i) => x - b[i]);
    const shape = before.values.shape.length === 1 ? [1, before.values.shape[0]] : before.values.shape;
    const box = [Infinity, 0, Infinity, 0];
    let [count, largest, square, norm] = [0, 0, 0, 0];
    difference.forEach((d, i) => {
      [square, norm] = [square + d * d, norm + b[i] * b[i]];
      if (!d) return;
      const [r, c] = [Math.floor(i / shape[1]), i % shape[1]];
      [box[0], box[1], box[2], box[3]] = [Math.min(box[0], r), Math.max(box[1], r + 1), Math.min(box[2], c), Math.max(box[3], c + 1)];
      [count, largest] = [count + 1, Math.max(largest, Math.abs(d))];
    });
    const shaped = (x) => Object.assign(x, { shape });
    return [{ address: here, before: shaped(Float32Array.from(b)), after: shaped(Float32Array.from(a)), difference: shaped(difference), total: shape, share: count / difference.length, largest, relative: norm ? Math.sqrt(square / norm) : 0, changed: count ? box : null }, null, null];
  }

  const inForce = () => model.get("edits")?.edits ?? [];

  function fetch() {
    const [session, stop] = [model.get("session"), model.get("stop-change")];
    if (!session) return null;
    if (stop) return Promise.resolve(stopped(stop));
    const edits = inForce();
    if (!edits.length) return null;
    const node = session.current;
    const without = all || edits.length < 2 ? {} : { without: [edits.length - 1] };
    const own = locked(model).address ?? edits.at(-1).at;
    return Promise.all([
      ask(model, "consequence.value", { address: own, node, ...without }, { slot: "consequence-value" }).catch((error) => {
        if (error.type === undefined) throw error;
        return { address: own, trouble: error.message };
      }),
      ask(model, "consequence.next", { node, k: 6, ...without }, { slot: "consequence-next" }),
      ask(model, "consequence.text", { node, n: 14, ...without }, { slot: "consequence-text" }),
    ]);
  }

  const load = loader({ model, el, keys: ["consequence-key"], fetch, draw, empty: "Nothing is changed." });
  const look = () => {
    const [session, edits, stop] = [model.get("session"), inForce(), model.get("stop-change")];
    panel.hidden = !session || !(edits.length || stop);
    against.hidden = edits.length < 2 || Boolean(stop);
    undo.hidden = Boolean(stop);
    undo.disabled = !session?.undo;
    const now = [session?.current, JSON.stringify(edits), locked(model).address, stop ? stop.after : ""].join("|");
    if (now !== key || stop) load.reload();
    key = now;
  };
  el.append(h("div", { class: "row" }, h("h3", {}, "What changed"), address, against, undo,
    h("button", { type: "button", class: "quiet", id: "consequence-last", title: "Compare what the last layer gives", onclick: () => {
      const layers = model.get("info")?.parts?.layers ?? [];
      if (layers.length) select(model, { layer: layers.length - 1, address: layers.at(-1) });
    } }, "at the last layer")),
  words, values, h("div", { class: "row spread" }, colours, readout), h("div", { class: "two" }, table, text));
  const off = watch(model, ["session", "edits", "selection", "stop-change"], throttled(look));
  look();
  return () => {
    off();
    load.close();
    maps.forEach((m) => m.close());
  };
}
