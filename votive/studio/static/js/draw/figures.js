/** Figures of results: each function draws one into a box, and gives what ends it. Knows no model. */

import { h, put, s, short, visible } from "../dom.js";
import { lines } from "./axes.js";
import { Grid } from "./grid.js";
import { Heatmap } from "./heatmap.js";

const ROWS = 2000;

/** A heat map; with texts in its cells a table of them. */
export function heat(el, figure) {
  const [rows, cols] = [figure.rows.length, figure.columns.length];
  if (!rows || !cols) {
    el.append(h("p", { class: "dim result-empty" }, `Nothing to draw: ${rows} × ${cols} numbers.`));
    return null;
  }
  const values = new Float32Array(Uint8Array.from(atob(figure.base64), (c) => c.charCodeAt(0)).buffer);
  const longest = (figure.row_marks ?? figure.rows).reduce((most, name) => Math.max(most, name.length), 0);
  const left = Math.min(180, 20 + 7 * longest);
  const box = h("div", { class: "heat" });
  const readout = h("div", { class: "readout mono", "aria-live": "off" }, " ");
  const hover = (row, col) => {
    if (row === null || row === undefined) {
      readout.textContent = " ";
      return;
    }
    const tip = figure.tips?.[row][col];
    readout.textContent = `${visible(figure.rows[row])}, ${visible(figure.columns[col])}: ${short(values[row * cols + col])}${tip ? ` (${tip})` : ""}`;
  };
  const name = `${figure.title || "Heat map"}. Arrow keys move, plus and minus zoom.`;
  el.append(box, readout, h("p", { class: "dim small" }, `${figure.legend || "value"} from ${short(figure.low)} to ${short(figure.high)}`));
  const blank = (names) => names.map((n) => n || "\u00a0"); // no name is not an empty token
  const data = { rows, cols, values, min: figure.low, max: figure.high, signed: figure.signed, rowLabels: blank(figure.row_marks ?? figure.rows), colLabels: blank(figure.column_marks ?? figure.columns) };
  const view = figure.cells ? new Grid(box, { name, hover, left }) : new Heatmap(box, { name, hover, left });
  box.style.setProperty("height", `${figure.cells ? Math.min(26 + 22 * rows, 460) : Math.max(70, Math.min(24 + 20 * rows, 420))}px`);
  view.show(figure.cells ? { ...data, texts: figure.cells } : data);
  return () => view.close();
}

/** A bar for each name, to the right for what is positive. */
export function bars(el, figure) {
  const real = figure.values.filter((v) => v !== null);
  const [low, high] = [Math.min(0, ...real), Math.max(0, ...real)];
  const span = high - low || 1;
  const at = (v) => (100 * (v - low)) / span;
  el.append(h("div", { class: "result-bars", role: "table", "aria-label": figure.title }, figure.values.map((v, i) => h("div", { class: "result-bar", role: "row" },
    h("span", { class: "mono result-name", role: "rowheader", title: figure.names[i] }, visible(figure.names[i])),
    h("span", { class: "result-track", "aria-hidden": "true" }, v === null ? null : h("span", {
      class: v < 0 ? "negative" : "positive", style: { left: `${Math.min(at(0), at(v))}%`, width: `${Math.abs(at(v) - at(0))}%` },
    })), h("span", { class: "num", role: "cell" }, short(v))))));
  if (figure.x_name) el.append(h("p", { class: "dim small" }, figure.x_name));
}

/** Curves over the same points. */
export function line(el, figure) {
  const box = h("div", { class: "chart-box" });
  const readout = h("div", { class: "readout mono" }, " ");
  const series = Object.fromEntries(Object.entries(figure.curves).map(([name, v]) => [name, v.map((x) => (x === null ? NaN : x))]));
  const names = Object.keys(series);
  const count = Math.max(0, ...Object.values(series).map((v) => v.length));
  const points = figure.points ?? Array.from({ length: count }, (_, i) => String(i));
  el.append(box, names.length > 1 ? h("div", { class: "legend" }, names.map((n, i) => h("span", { class: `key s${i}` }, n))) : "", readout);
  put(box, lines(series, points, { title: figure.title, width: 640, height: 220,
    hover: (i) => { readout.textContent = i === null ? " " : `${points[i]}: ${names.map((n) => `${names.length > 1 ? `${n} ` : ""}${short(series[n][i])}`).join(", ")}`; } }));
}

/** Rows that can be sorted; where they lie inside of others, these can be folded. */
export function table(el, figure) {
  const body = h("tbody");
  const folded = new Set();
  let [by, down] = [null, true];
  const rows = figure.rows.slice(0, ROWS).map((cells, i) => ({ cells, depth: figure.depths?.[i] ?? 0, share: figure.shares?.[i] ?? 0, i }));
  const holds = (i) => (rows[i + 1]?.depth ?? 0) > rows[i].depth;
  const heads = figure.columns.map((name, k) => h("th", { scope: "col", class: name.startsWith(">") ? "num" : "", "aria-sort": "none" },
    figure.depths ? name.replace(/^>/, "") : h("button", { type: "button", class: "quiet", onclick: () => sort(k) }, name.replace(/^>/, "") || "·")));

  function sort(k) {
    down = by === k ? !down : true;
    by = k;
    heads.forEach((th, i) => th.setAttribute("aria-sort", i === k ? (down ? "descending" : "ascending") : "none"));
    draw();
  }

  function draw() {
    let shown = rows;
    if (by !== null) {
      const order = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a ?? "").localeCompare(String(b ?? ""), undefined, { numeric: true }));
      shown = [...rows].sort((a, b) => (down ? -1 : 1) * order(a.cells[by], b.cells[by]));
    }
    let closed = Infinity;
    shown = shown.filter((r) => {
      if (r.depth > closed) return false;
      closed = folded.has(r.i) ? r.depth : Infinity;
      return true;
    });
    put(body, shown.map((r) => h("tr", {}, r.cells.map((cell, k) => h("td", {
      class: figure.columns[k].startsWith(">") ? "num" : "mono", style: k ? null : { "padding-left": `${6 + 16 * r.depth}px`, "--share": `${100 * r.share}%` },
    }, k === 0 && figure.depths && holds(r.i) ? h("button", {
      type: "button", class: "quiet fold", "aria-expanded": String(!folded.has(r.i)), "aria-label": `Fold ${cell}`,
      onclick: () => { if (!folded.delete(r.i)) folded.add(r.i); draw(); },
    }, folded.has(r.i) ? "▸" : "▾") : null, typeof cell === "number" ? short(cell) : visible(cell === null ? "–" : String(cell)))))));
  }

  el.append(h("div", { class: "result-table" }, h("table", {}, h("thead", {}, h("tr", {}, heads)), body)));
  draw();
}

/** Calls as boxes, as wide as their time. */
export function flame(el, figure) {
  const deepest = figure.boxes.reduce((most, b) => Math.max(most, b[2]), 0);
  const [W, R] = [1000, 18];
  const readout = h("div", { class: "readout mono" }, " ");
  const root = s("svg", { viewBox: `0 0 ${W} ${R * (deepest + 1)}`, class: "result-flame", role: "img", "aria-label": figure.title });
  for (const [left, width, row, name, tip, colour] of figure.boxes) {
    const letters = Math.floor((width * W - 6) / 6.4);
    root.append(s("g", { onpointerenter: () => { readout.textContent = tip; } },
      s("rect", { x: left * W, y: row * R, width: Math.max(0.3, width * W - 0.5), height: R - 1, fill: colour }, s("title", { text: tip })),
      letters > 2 ? s("text", { x: left * W + 3, y: row * R + 13, text: name.length > letters ? `…${name.slice(1 - letters)}` : name }) : ""));
  }
  el.append(h("div", { class: "result-table" }, root), readout);
}
