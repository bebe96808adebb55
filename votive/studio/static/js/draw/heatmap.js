/**
 * A matrix of numbers as colours: zoom with the wheel or + and -, pan by dragging, a cell under
 * the pointer or the arrow keys. Knows numbers and labels only.
 */

import { short, visible } from "../dom.js";
import { cut, font, layersFor, pointAt } from "./canvas.js";
import { diverging, inkOn, palette, place, sequential } from "./colour.js";

// Where no name is to be written, nor room kept for one.
const NONE = "\u00a0";

/** The next round number: 1, 2, 5, 10, 20… */
function round(x) {
  const unit = 10 ** Math.floor(Math.log10(Math.max(1, x)));
  return [1, 2, 5, 10].map((m) => m * unit).find((m) => m >= x) ?? 10 * unit;
}

/** How far the numbers of neighbouring columns are apart. */
function numbers(labels, seen) {
  return labels && seen.length > 1 ? (Number(labels[seen.at(-1)]) - Number(labels[seen[0]])) / (seen.length - 1) : 1;
}

export class Heatmap {
  /**
   * `hover(row, col)` or hover(null) and `pick(row, col)` are told, and `zoomed({rows, cols})` when
   * a part stays in view; `name` is read to people; `most` is the largest size of a cell. `chosen([row, row after,
   * column, column after])` is told of a part that was drawn with Shift, or with Shift and arrows; names of rows and
   * columns choose all of one.
   */
  constructor(el, { name, hover = () => {}, pick = () => {}, chosen = null, zoomed = () => {}, left = 64, top = 18, square = false, most = [50, 26], rotate = false }) {
    Object.assign(this, { el, hover, pick, chosen, zoomed, left, top, square, most, rotate });
    this.layers = layersFor(this, el, "heat map", name);
    this.view = { x: 0, y: 0, k: 1 };
    this.cell = null;
    this.mark = null;
    this.region = null;
    this.data = null;
    this.listen();
  }

  /** Show a matrix: {rows, cols, values, min, max, signed, bound, rowLabels, colLabels}; beyond `bound` colours stay the same. */
  show(data, { reset = false } = {}) {
    const fresh = reset || !this.data || data.rows !== this.data.rows || data.cols !== this.data.cols;
    this.data = data;
    if (fresh) this.view = { x: 0, y: 0, k: 1 };
    this.image = null;
    this.cell = null;
    this.draw();
  }

  /** Mark a cell, a row or a column that is locked; null in one place means all of it. */
  lock(row, col) {
    this.mark = { row, col };
    this.drawOver();
  }

  /** Outline a part as [row, row after, column, column after], or with null none. */
  outline(region) {
    this.region = region;
    this.drawOver();
  }

  get size() {
    const { rows, cols } = this.data;
    const [w, h] = [this.layers.width - this.left, this.layers.height - this.top];
    let [cw, ch] = [w / cols, h / rows];
    if (this.square) cw = ch = Math.min(cw, ch);
    ch = Math.min(ch, this.most[1]);
    cw = Math.min(cw, this.most[0]);
    return { w, h, cw: cw * this.view.k, ch: ch * this.view.k };
  }

  value(row, col) {
    const { values, cols, min, max } = this.data;
    const v = values[row * cols + col];
    return values instanceof Uint8Array ? min + (v / 255) * (max - min) : v;
  }

  /** The place of a value among the colours; `gamma` below 1 lifts small ones. */
  shade(v) {
    const { gamma = 1, max } = this.data;
    return gamma === 1 ? place(v, this.low, this.high) : place((v / max) ** gamma, 0, 1);
  }

  paint() {
    const { rows, cols, values, min, max, signed } = this.data;
    const colours = palette(this.el);
    this.table = signed ? diverging(colours) : sequential(colours);
    const bound = this.data.bound ?? (Math.max(Math.abs(min), Math.abs(max)) || 1);
    [this.low, this.high] = signed ? [-bound, bound] : [min, max];
    const image = new ImageData(cols, rows);
    const bytes = values instanceof Uint8Array;
    for (let i = 0; i < rows * cols; i += 1) {
      const v = bytes ? min + (values[i] / 255) * (max - min) : values[i];
      const at = 3 * this.shade(v);
      image.data[4 * i] = this.table[at];
      image.data[4 * i + 1] = this.table[at + 1];
      image.data[4 * i + 2] = this.table[at + 2];
      image.data[4 * i + 3] = Number.isNaN(v) ? 0 : 255;
    }
    this.image = new OffscreenCanvas(cols, rows);
    this.image.getContext("2d").putImageData(image, 0, 0);
  }

  draw() {
    if (!this.data || !this.layers.width) return;
    if (!this.image) this.paint();
    this.clamp();
    const c = this.layers.context();
    const colours = palette(this.el);
    const { cw, ch, w, h } = this.size;
    const { rows, cols } = this.data;
    c.save();
    c.beginPath();
    c.rect(this.left, this.top, w, h);
    c.clip();
    c.imageSmoothingEnabled = cw < 1 || ch < 1;
    c.drawImage(this.image, this.left - this.view.x, this.top - this.view.y, cols * cw, rows * ch);
    this.numbers(c, cw, ch, w, h);
    c.restore();
    this.labels(c, colours, cw, ch, w, h);
    this.drawOver();
  }

  numbers(c, cw, ch, w, h) {
    if (cw < 46 || ch < 14) return;
    c.font = font(12);
    c.textAlign = "center";
    c.textBaseline = "middle";
    for (const row of this.range(this.view.y, h, ch, this.data.rows)) {
      for (const col of this.range(this.view.x, w, cw, this.data.cols)) {
        const v = this.value(row, col);
        c.fillStyle = inkOn(this.table, this.shade(v));
        c.fillText(short(Number.isFinite(v) ? Number(v.toPrecision(3)) : v), this.left + (col + 0.5) * cw - this.view.x, this.top + (row + 0.5) * ch - this.view.y);
      }
    }
  }

  range(from, room, step, count) {
    const first = Math.max(0, Math.floor(from / step));
    const last = Math.min(count - 1, Math.floor((from + room) / step));
    return Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => first + i);
  }

  labels(c, colours, cw, ch, w, h) {
    c.font = font(12);
    c.fillStyle = colours.dim;
    c.textBaseline = "middle";
    c.textAlign = "right";
    const { rowLabels, colLabels, rows, cols } = this.data;
    let free = -1e9;
    for (const row of this.range(this.view.y, h, ch, rows)) {
      const y = this.top + (row + 0.5) * ch - this.view.y;
      if (rowLabels?.[row] === NONE) continue;
      if (y < free + 12 || y < this.top + 4) continue;
      free = y;
      c.fillText(cut(c, visible(rowLabels?.[row] ?? String(row)), this.left - 8), this.left - 6, y);
    }
    c.textAlign = "center";
    free = -1e9;
    const seen = this.range(this.view.x, w, cw, cols);
    // Numbers stand at round places; words wherever there is room for them.
    const numbered = !colLabels || seen.every((col) => /^\d+$/.test(colLabels[col]));
    const step = numbered ? round((34 / cw) * (numbers(colLabels, seen) || 1)) : 1;
    for (const col of seen) {
      const name = colLabels?.[col] ?? String(col);
      if (name === NONE) continue;
      if (numbered && Number(name) % step) continue;
      const x = this.left + (col + 0.5) * cw - this.view.x;
      if (this.rotate) {
        if (x < free + 13 || x > this.left + w) continue;
        free = x;
        this.slanted(c, visible(name), x);
        continue;
      }
      const text = cut(c, visible(name), Math.max(cw, 30) - 2);
      const half = c.measureText(text).width / 2;
      if (x - half < Math.max(free, this.left - 8) || x + half > this.left + w + 2) continue;
      free = x + half + 6;
      c.fillText(text, x, this.top / 2);
    }
  }

  /** The name of a column, upwards: long ones need no wide columns. */
  slanted(c, text, x) {
    c.save();
    c.translate(x + 3, this.top - 4);
    c.rotate(-Math.PI / 3);
    c.textAlign = "left";
    c.fillText(cut(c, text, (this.top - 10) / Math.sin(Math.PI / 3)), 0, 0);
    c.restore();
  }

  /** Where the whole is drawn small, once a part of it is looked at: [x, y, width, height]. */
  get corner() {
    const { rows, cols } = this.data;
    const scale = Math.min(96 / cols, 72 / rows);
    const [width, height] = [Math.max(12, cols * scale), Math.max(12, rows * scale)];
    return [this.layers.width - width - 6, this.layers.height - height - 6, width, height];
  }

  /** The whole with a frame around what is in view. */
  whereabouts(c, colours, { cw, ch, w, h }) {
    const [x, y, width, height] = this.corner;
    c.fillStyle = colours.surface;
    c.fillRect(x - 3, y - 3, width + 6, height + 6);
    c.strokeStyle = colours.line;
    c.lineWidth = 1;
    c.strokeRect(x - 2.5, y - 2.5, width + 5, height + 5);
    if (this.image) c.drawImage(this.image, x, y, width, height);
    const { rows, cols } = this.data;
    c.strokeStyle = colours.text;
    c.lineWidth = 1.5;
    c.strokeRect(x + (this.view.x / (cols * cw)) * width, y + (this.view.y / (rows * ch)) * height, Math.min(1, w / (cols * cw)) * width, Math.min(1, h / (rows * ch)) * height);
  }

  /** Go to where the small whole was clicked; gives whether it was. */
  jumped(event) {
    if (!this.data || this.view.k <= 1) return false;
    const [px, py] = this.layers.at(event);
    const [x, y, width, height] = this.corner;
    if (px < x || py < y || px > x + width || py > y + height) return false;
    const { cw, ch, w, h } = this.size;
    this.view.x = ((px - x) / width) * this.data.cols * cw - w / 2;
    this.view.y = ((py - y) / height) * this.data.rows * ch - h / 2;
    this.draw();
    return true;
  }

  drawOver() {
    if (!this.data) return;
    const c = this.layers.context(this.layers.over);
    const colours = palette(this.el);
    const { cw, ch, w, h } = this.size;
    c.beginPath();
    c.rect(this.left - 1, this.top - 1, w + 2, h + 2);
    c.clip();
    const box = (row, col, colour, width) => {
      const x = col === null ? this.left : this.left + col * cw - this.view.x;
      const y = row === null ? this.top : this.top + row * ch - this.view.y;
      c.strokeStyle = colour;
      c.lineWidth = width;
      c.strokeRect(x, y, col === null ? Math.min(w, this.data.cols * cw) : Math.max(cw, 2),
        row === null ? Math.min(h, this.data.rows * ch) : Math.max(ch, 2));
    };
    if (this.mark && (this.mark.row !== null || this.mark.col !== null)) box(this.mark.row, this.mark.col, colours.accent, 2);
    if (this.region) {
      const [r0, r1, c0, c1] = this.region;
      c.setLineDash([5, 3]);
      c.strokeStyle = colours.text;
      c.lineWidth = 2;
      c.strokeRect(this.left + c0 * cw - this.view.x + 1, this.top + r0 * ch - this.view.y + 1, Math.max(2, (c1 - c0) * cw - 2), Math.max(2, (r1 - r0) * ch - 2));
      c.setLineDash([]);
    }
    if (this.cell) box(...this.cell, colours.text, 1.5);
    if (this.view.k > 1) this.whereabouts(c, colours, { cw, ch, w, h });
  }

  find(event) {
    if (!this.data) return null;
    const [x, y] = this.layers.at(event);
    const { cw, ch } = this.size;
    const col = Math.floor((x - this.left + this.view.x) / cw);
    const row = Math.floor((y - this.top + this.view.y) / ch);
    const inside = x >= this.left && y >= this.top && row >= 0 && col >= 0;
    return inside && row < this.data.rows && col < this.data.cols ? [row, col] : null;
  }

  point(cell) {
    pointAt(this, cell);
  }

  /** The cell nearest to a pointer that may have left the picture. */
  nearest(event) {
    const [x, y] = this.layers.at(event);
    const { cw, ch } = this.size;
    const clip = (v, n) => Math.max(0, Math.min(n - 1, Math.floor(v)));
    return [clip((y - this.top + this.view.y) / ch, this.data.rows), clip((x - this.left + this.view.x) / cw, this.data.cols)];
  }

  /** Outline what lies between two cells. */
  span(from, to) {
    const ends = (a, b) => [Math.min(a, b), Math.max(a, b) + 1];
    this.outline([...ends(from[0], to[0]), ...ends(from[1], to[1])]);
  }

  /** A row or a column as a whole, by its name. */
  whole(event) {
    if (!this.data) return;
    const [x, y] = this.layers.at(event);
    const [row, col] = this.nearest(event);
    const { rows, cols } = this.data;
    if (x < this.left && y >= this.top) this.chosen([row, row + 1, 0, cols]);
    else if (y < this.top && x >= this.left) this.chosen([0, rows, col, col + 1]);
  }

  clamp() {
    const { cw, ch, w, h } = this.size;
    this.view.x = Math.max(0, Math.min(this.view.x, this.data.cols * cw - w));
    this.view.y = Math.max(0, Math.min(this.view.y, this.data.rows * ch - h));
  }

  zoom(factor, x = this.layers.width / 2, y = this.layers.height / 2) {
    if (!this.data) return;
    const old = this.view.k;
    const k = Math.max(1, Math.min(64, old * factor));
    const [px, py] = [x - this.left + this.view.x, y - this.top + this.view.y];
    this.view = { k, x: this.view.x + px * (k / old - 1), y: this.view.y + py * (k / old - 1) };
    this.later();
    clearTimeout(this.rest);
    this.rest = setTimeout(() => k > 1 && this.zoomed(this.visible()), 250);
  }

  /** The rows and columns in view, as [first, last + 1]. */
  visible() {
    this.clamp();
    const { cw, ch, w, h } = this.size;
    const ends = (from, room, step, count) => [Math.floor(from / step), Math.min(count, Math.ceil((from + room) / step))];
    return { rows: ends(this.view.y, h, ch, this.data.rows), cols: ends(this.view.x, w, cw, this.data.cols) };
  }

  listen() {
    const { el } = this;
    let drag = null;
    el.addEventListener("wheel", (event) => {
      if (!this.data || (this.view.k === 1 && event.deltaY > 0)) return;
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY / 300), ...this.layers.at(event));
    }, { passive: false });
    el.addEventListener("pointerdown", (event) => {
      drag = { x: event.clientX, y: event.clientY, moved: false, view: { ...this.view }, from: event.shiftKey && this.chosen ? this.find(event) : null };
    });
    el.addEventListener("pointermove", (event) => {
      if (drag?.from && event.buttons & 1) {
        this.span(drag.from, this.nearest(event));
        drag.moved = true;
        return;
      }
      if (drag && event.buttons & 1) {
        const [dx, dy] = [event.clientX - drag.x, event.clientY - drag.y];
        if (Math.abs(dx) + Math.abs(dy) > 4) drag.moved = true;
        if (drag.moved && this.view.k > 1) {
          this.view.x = drag.view.x - dx;
          this.view.y = drag.view.y - dy;
          this.later();
          return;
        }
      }
      this.point(this.find(event));
    });
    el.addEventListener("pointerleave", () => this.point(null));
    el.addEventListener("click", (event) => {
      const cell = this.find(event);
      if (!drag?.moved && this.jumped(event)) {
        drag = null;
        return;
      }
      if (drag?.from && drag.moved) this.chosen(this.region);
      else if (cell && !drag?.moved) this.pick(...cell);
      else if (!cell && !drag?.moved && this.chosen) this.whole(event);
      drag = null;
    });
    el.addEventListener("dblclick", () => {
      this.view = { x: 0, y: 0, k: 1 };
      this.draw();
    });
    el.addEventListener("keydown", (event) => this.key(event));
    el.addEventListener("blur", () => this.point(null));
  }

  key(event) {
    if (!this.data || event.ctrlKey || event.altKey || event.metaKey) return;
    const moves = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    if (event.key in moves) {
      const [dr, dc] = moves[event.key];
      const [row, col] = this.cell ?? [this.mark?.row ?? 0, this.mark?.col ?? 0];
      const clip = (v, n) => Math.max(0, Math.min(n - 1, v));
      const to = [clip(row + dr, this.data.rows), clip(col + dc, this.data.cols)];
      if (event.shiftKey && this.chosen) {
        this.anchor ??= [row, col];
        this.span(this.anchor, to);
        this.chosen(this.region);
      } else this.anchor = null;
      this.point(to);
    } else if (event.key === "+" || event.key === "=") this.zoom(1.5);
    else if (event.key === "-") this.zoom(1 / 1.5);
    else if (event.key === "0") this.zoom(1e-9);
    else if (event.key === "Enter" && this.cell) this.pick(...this.cell);
    else return;
    event.preventDefault();
  }

  close() {
    clearTimeout(this.rest);
    this.layers.close();
  }
}
