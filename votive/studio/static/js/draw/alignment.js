/**
 * Tokens down, time across: how much each looked at each moment, and the way that gives them their
 * seconds. As wide and as zoomed as the mels above it. Knows numbers and labels only.
 */

import { visible } from "../dom.js";
import { cut, font, layersFor } from "./canvas.js";
import { palette, place, sequential } from "./colour.js";
import { steer, zoomKey } from "./time.js";

const ROW = [13, 20]; // heights

export class AlignmentMap {
  /** `pick(row)` and `hover(row, t, value)` are told; the box around `el` scrolls. */
  constructor(el, scale, { name, pick = () => {}, hover = () => {}, enter = () => {} }) {
    Object.assign(this, { el, scale, pick, hover, enter });
    [this.data, this.rows, this.at] = [null, [0, 0], null];
    this.layers = layersFor(this, el, "heat map", name);
    scale.on(() => this.later());
    this.listen();
  }

  /** Show {map (tokens, steps) of bytes, start, step, low, high, labels, times}. */
  show(data) {
    this.data = data;
    this.image = null;
    this.at = null;
    const count = Math.max(1, data.labels.length);
    const height = Math.max(ROW[0], Math.min(ROW[1], Math.floor(this.el.parentElement.clientHeight / count)));
    this.el.style.setProperty("height", `${count * height + 2}px`);
    this.layers.fit();
    this.draw();
  }

  /** Mark tokens from a first to before a last. */
  lock(first, last) {
    this.rows = [first, last];
    this.drawOver();
  }

  get row() {
    return (this.layers.height - 2) / Math.max(1, this.data.labels.length);
  }

  get width() {
    return this.layers.width - this.scale.left - 1;
  }

  x(t) {
    return this.scale.left + this.scale.share(t) * this.width;
  }

  value(row, col) {
    const { map, low, high } = this.data;
    return low + (map[row * map.shape[1] + col] / 255) * (high - low);
  }

  paint() {
    const { map, low, high } = this.data;
    const [rows, cols] = map.shape;
    const table = sequential(palette(this.el));
    const image = new ImageData(Math.max(1, cols), Math.max(1, rows));
    for (let i = 0; i < rows * cols; i += 1) {
      const at = 3 * place(low + (map[i] / 255) * (high - low), 0, high);
      image.data.set([table[at], table[at + 1], table[at + 2], 255], 4 * i);
    }
    this.image = new OffscreenCanvas(image.width, image.height);
    this.image.getContext("2d").putImageData(image, 0, 0);
  }

  draw() {
    if (!this.data || !this.layers.width) return;
    if (!this.image) this.paint();
    const c = this.layers.context();
    const colours = palette(this.el);
    const { map, start, step, labels, times } = this.data;
    const [rows, cols] = map.shape;
    const high = this.row;
    c.save();
    c.beginPath();
    c.rect(this.scale.left, 0, this.width, rows * high);
    c.clip();
    c.imageSmoothingEnabled = false;
    const [left, right] = [this.x(start), this.x(start + cols * step)];
    if (rows) c.drawImage(this.image, left, 0, right - left, rows * high);
    // The cheapest way through it: where each token begins.
    c.strokeStyle = colours.positive;
    c.lineWidth = 1.2;
    c.beginPath();
    for (let i = 0; i < rows; i += 1) {
      const [x1, x2] = [this.x(times[i]), this.x(times[i + 1] ?? times[i])];
      c.lineTo(x1, i * high);
      c.lineTo(x1, (i + 1) * high - 1);
      c.lineTo(x2, (i + 1) * high);
    }
    c.stroke();
    c.restore();
    c.strokeStyle = colours.line;
    c.strokeRect(this.scale.left + 0.5, 0.5, this.width, rows * high);
    c.font = font(12);
    c.fillStyle = colours.dim;
    c.textBaseline = "middle";
    c.textAlign = "right";
    labels.forEach((label, i) => c.fillText(cut(c, visible(label), this.scale.left - 8), this.scale.left - 6, (i + 0.5) * high));
    this.drawOver();
  }

  drawOver() {
    if (!this.data) return;
    const c = this.layers.context(this.layers.over);
    const colours = palette(this.el);
    const [first, last] = this.rows;
    if (last > first) {
      c.strokeStyle = colours.accent;
      c.lineWidth = 2;
      c.strokeRect(this.scale.left, first * this.row + 1, this.width, (last - first) * this.row - 1);
    }
    if (this.at !== null) {
      c.strokeStyle = colours.text;
      c.lineWidth = 1;
      c.strokeRect(this.scale.left + 0.5, this.at * this.row + 0.5, this.width - 1, this.row - 1);
    }
  }

  /** Row and moment under the pointer, or null. */
  find(event) {
    if (!this.data) return null;
    const [x, y] = this.layers.at(event);
    const [share, row] = [(x - this.scale.left) / Math.max(1, this.width), Math.floor(y / this.row)];
    return row >= 0 && row < this.data.labels.length && share <= 1 ? [row, share < 0 ? null : this.scale.moment(share)] : null;
  }

  point(row, t = null) {
    const { start, step, map } = this.data;
    const col = t === null ? -1 : Math.floor((t - start) / step);
    if (row !== this.at) {
      this.at = row;
      this.drawOver();
    }
    this.hover(row, t, row !== null && col >= 0 && col < map.shape[1] ? this.value(row, col) : null);
  }

  listen() {
    const { el } = this;
    const dragged = steer(el, this.scale, (event) => (this.layers.at(event)[0] - this.scale.left) / Math.max(1, this.width));
    el.addEventListener("click", (event) => {
      const found = this.find(event);
      if (!dragged() && found) this.pick(found[0]);
    });
    el.addEventListener("pointermove", (event) => {
      const found = this.find(event);
      if (this.data) this.point(...(found ?? [null]));
    });
    el.addEventListener("pointerleave", () => this.data && this.point(null));
    el.addEventListener("keydown", (event) => {
      if (!this.data || event.ctrlKey || event.altKey || event.metaKey) return;
      const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
      const count = this.data.labels.length;
      if (by && count) {
        const [first, last] = this.rows;
        this.pick(Math.max(0, Math.min(count - 1, last > first ? (by > 0 ? last : first - 1) : 0)), { quiet: true });
      } else if (event.key === "Enter" || event.key === " ") this.enter();
      else if (!zoomKey(event, this.scale)) return;
      event.preventDefault();
    });
  }

  close() {
    this.layers.close();
  }
}
