/**
 * The value inspector: one value as a heat map with statistics and histogram, and what can be done
 * to it. At a stop of the debugger it shows what stands there, else what a module gave.
 */

import { ask, idle, loader } from "../ask.js";
import { h, put, readOut, short, throttled, visible } from "../dom.js";
import { histogram } from "../draw/axes.js";
import { Heatmap } from "../draw/heatmap.js";
import { legend, tell } from "../draw/legend.js";
import { hover, locked, notice, select, watch } from "../state.js";
import { toolsFor } from "./value_tools.js";

export function render({ model, el }) {
  let side = "out";
  // `part` is the window that was zoomed into, `region` what was drawn, `stop` the value at a stop as it came.
  let [shownValue, cell, part, region, stop] = [null, null, null, null, null];
  const title = h("div", { class: "row value-title" });
  const box = h("div", { class: "heat", id: "value-heat" });
  const readout = h("div", { class: "readout mono", id: "value-readout" }, " ");
  const facts = h("div", { class: "facts-box" });
  const tools = h("div", { class: "value-tools" });
  const colours = legend();
  const zoom = (id, text, title, f) => h("button", { type: "button", class: "small-button", id: `value-${id}`, title, "aria-label": title, onclick: f }, text);
  const zooms = h("span", { class: "zooms", role: "group", "aria-label": "Zoom" },
    zoom("closer", "+", "Zoom in (+, or the wheel)", () => map.zoom(1.6)), zoom("wider", "−", "Zoom out (−)", () => map.zoom(1 / 1.6)));
  const body = h("div", { class: "value-body" }, h("div", { class: "heat-box" }, box, h("div", { class: "row spread" }, colours, zooms), readout), facts);
  const map = new Heatmap(box, {
    name: "Values. Arrow keys move, Enter locks a cell, Shift and arrows choose a part, plus and minus zoom.", left: 74,
    hover: (row, col) => {
      read(row, col);
      hover(model, row === null || !rowIsPosition() ? null : { position: real(row, 0) });
    },
    pick: (row, col) => {
      cell = cell && cell[0] === row && cell[1] === col ? null : [row, col];
      region = null;
      map.outline(null);
      map.lock(cell?.[0] ?? null, cell?.[1] ?? null);
      if (cell && rowIsPosition()) select(model, { position: real(row, 0) });
      drawTools();
    },
    chosen: (found) => {
      if (atStop()) return map.outline(null);
      const whole = (i, axis) => (i === shownValue.drawn[axis] ? shownValue[axis ? "cols" : "rows"][1] : real(i, axis));
      region = { rows: [real(found[0], 0), whole(found[1], 0)], cols: [real(found[2], 1), whole(found[3], 1)], all: shownValue.total };
      cell = null;
      map.lock(null, null);
      map.outline(found);
      return drawTools();
    },
    // An overview becomes exact where one looks closer.
    zoomed: ({ rows, cols }) => {
      if (!shownValue || shownValue.exact !== false) return;
      part = { rows: [real(rows[0], 0), real(rows[1], 0)], cols: [real(cols[0], 1), real(cols[1], 1)] };
      load.reload();
    },
  });

  const atStop = () => Boolean(model.get("debug")?.active && !model.get("debug").ended);
  /** The row or column of the value that a row or column of the picture begins with. */
  const real = (i, axis) => {
    const [from, to] = axis ? shownValue.cols : shownValue.rows;
    return from + Math.floor((i * (to - from)) / shownValue.drawn[axis]);
  };
  const rowIsPosition = () => {
    const count = model.get("session")?.tokens.length ?? 0;
    return shownValue && shownValue.shape.length === 3 && shownValue.shape[0] === 1 && shownValue.shape[1] <= count;
  };

  function read(row, col) {
    if (row === null || row === undefined || !shownValue) {
      readout.textContent = cell ? told(...cell, "locked ") : " ";
      return;
    }
    readout.textContent = told(row, col);
  }

  function told(row, col, before = "") {
    const token = rowIsPosition() ? ` ${visible(model.get("session").tokens[real(row, 0)]?.text ?? "")}` : "";
    const many = shownValue.exact === false ? "largest near " : "";
    return `${before}${many}[${real(row, 0)}${token}, ${real(col, 1)}] = ${short(map.value(row, col))}`;
  }

  function fetch() {
    const [session, debug] = [model.get("session"), model.get("debug")];
    if (!session) return null;
    if (atStop()) return ask(model, "debug.value", { side: debug.phase === "enter" ? "in" : "out", ...(part ?? {}) }, { slot: "value" });
    const { address } = locked(model);
    if (!address) return null;
    const at = side === "in" ? `${address}:in` : address;
    return Promise.all([
      ask(model, "value.window", { address: at, node: session.current, ...(part ?? {}) }, { slot: "value" }),
      ask(model, "value.statistics", { address: at, node: session.current }, { slot: "value-statistics" }),
    ]).then(([value, statistics]) => ({ ...value, statistics: statistics.statistics ?? statistics }));
  }

  function draw(value) {
    const { values } = value;
    if (!values) throw new Error(value.message ?? "There is no tensor here.");
    const [rows, cols] = values.shape.length === 1 ? [1, values.shape[0]] : values.shape;
    const same = shownValue && shownValue.address === value.address && cell && cell[0] < rows && cell[1] < cols;
    const moved = !shownValue || [0, 1].some((i) => shownValue.rows[i] !== value.rows[i] || shownValue.cols[i] !== value.cols[i]);
    shownValue = { ...value, drawn: [rows, cols] };
    if (!same) cell = null;
    if (!same || moved) {
      region = null;
      map.outline(null);
    }
    kept(value);
    const [low, high] = [value.min ?? value.statistics?.min, value.max ?? value.statistics?.max];
    const tokens = model.get("session").tokens;
    const largest = Math.max(Math.abs(low), Math.abs(high)) || 1;
    const bound = usual(values, low, high) || largest;
    map.show({
      rows, cols, values, min: low, max: high, signed: true, bound,
      rowLabels: Array.from({ length: rows }, (_, i) => (rowIsPosition() ? tokens[real(i, 0)]?.text ?? "" : String(real(i, 0)))),
      colLabels: Array.from({ length: cols }, (_, i) => String(real(i, 1))),
    }, { reset: moved });
    map.lock(cell?.[0] ?? null, cell?.[1] ?? null);
    box.style.setProperty("--rows", Math.min(rows, 28));
    const beyond = bound < largest;
    tell(colours, { name: value.exact === false ? "overview" : "value", ends: [`${beyond ? "≤ " : ""}${short(-bound)}`, "0", `${beyond ? "≥ " : ""}${short(bound)}`], signed: true,
      title: value.exact === false ? "Too large to be shown exactly: each point is the largest of its neighbours. Zoom in to see exact values." : "Exact values" });
    head(value);
    numbers(value.statistics);
    drawTools();
    read(null);
  }

  /** At a stop the value as it came is held against what it was changed into. */
  function kept(value) {
    const debug = model.get("debug");
    const key = atStop() ? `${debug.node} ${debug.index}` : null;
    if (key === null || stop?.key !== key || value.rows.join() !== stop.value.rows.join() || value.cols.join() !== stop.value.cols.join()) stop = key === null ? null : { key, value, changes: debug.changes };
    else if (debug.changes > stop.changes) model.set("stop-change", { before: stop.value, after: value, address: debug.address || "(model)" });
    if (stop === null || debug.changes <= stop.changes) model.set("stop-change", null);
  }

  /** A bound that all but a few values keep: those few would make all others pale. */
  function usual(values, low, high) {
    const every = Math.max(1, Math.floor(values.length / 4096));
    const bytes = values instanceof Uint8Array;
    const sizes = [];
    for (let i = 0; i < values.length; i += every) sizes.push(Math.abs(bytes ? low + (values[i] / 255) * (high - low) : values[i]));
    const real = sizes.filter(Number.isFinite).sort((a, b) => a - b);
    return Number((real[Math.floor(0.995 * (real.length - 1))] ?? 0).toPrecision(2));
  }

  function head(value) {
    const choice = (name, text) => h("button", {
      type: "button", class: "segment", title: name === "in" ? "What the module was given" : "What the module gave", "aria-pressed": String(side === name), disabled: atStop(),
      onclick: () => { side = name; load.reload(); },
    }, text);
    const address = atStop() ? model.get("debug").address || "(model)" : value.address ?? locked(model).address;
    put(title, h("b", { class: "mono grow" }, address), h("span", { class: "dim num" }, `${value.dtype} [${value.shape.join(", ")}]`),
      part ? h("button", { type: "button", id: "value-all", onclick: () => { part = null; load.reload(); } }, "Show all") : null,
      atStop() ? h("span", { class: "tag" }, model.get("debug").phase === "enter" ? "input" : "output")
        : h("span", { class: "segments", role: "group", "aria-label": "Side" }, choice("in", "in"), choice("out", "out")));
  }

  function numbers(s) {
    if (!s) return put(facts);
    const items = [["mean", s.mean, "Average of all elements"], ["std", s.std, "Standard deviation"], ["min", s.min, "Smallest element"], ["max", s.max, "Largest element"],
      ["norm", s.norm, "Euclidean length: root of the sum of squares"], ["zeros", s.zeros, "Elements that are exactly 0"],
      ["nan", s.nan, "Elements that are NaN"], ["inf", s.inf, "Elements that are infinite"]];
    return put(facts, h("dl", { class: "stats" }, items.map(([k, v, title]) => [h("dt", { title }, k), h("dd", { class: "num", "data-stat": k }, short(v))])),
      s.histogram?.length ? histogram(s.histogram, s.min, s.max) : null);
  }

  function drawTools() {
    put(tools, toolsFor({ model, atStop: atStop(), cell: cell && [real(cell[0], 0), real(cell[1], 1)], region,
      byPosition: rowIsPosition(), address: locked(model).address, done }));
  }

  async function done(promise) {
    try {
      const reply = await promise;
      load.reload();
      return reply;
    } catch (error) {
      if (!idle(error)) notice(model, "error", error.message, { address: error.address });
      return null;
    }
  }

  let [key, chosen] = ["", ""];
  const load = loader({
    model, el, keys: ["value-key"], fetch, draw,
    empty: () => (model.get("session") ? "Choose a module on the left, or start the debugger: its value appears here." : "No text yet: begin with a prompt."),
  });
  // Hovering and locking positions alone need no new data.
  const look = () => {
    const [d, l] = [model.get("debug"), locked(model)];
    const now = [model.get("session")?.current, d?.active && !d.ended ? `stop ${d.index} ${d.changes}` : l.address, Boolean(model.get("session"))].join("|");
    if (now !== key) {
      part = null;
      load.reload();
    }
    key = now;
    // What can be changed depends on the position and the head that are locked.
    const also = [l.position, l.head, l.layer].join();
    if (also !== chosen) drawTools();
    chosen = also;
  };
  readOut(box, readout);
  el.append(title, tools, body);
  const off = watch(model, ["session", "debug", "selection", "edits"], throttled(look));
  const online = watch(model, ["link"], throttled(drawTools));
  look();
  drawTools();
  return () => {
    off();
    online();
    load.close();
    map.close();
  };
}
