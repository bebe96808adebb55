/**
 * A large table of short texts on coloured cells, of which only what can be seen is drawn; its
 * head row and head column stay in view. Knows texts and numbers only.
 */

import { throttled, visible } from "../dom.js";
import { Layers, cut, focusable, font, pointAt } from "./canvas.js";
import { css, inkOn, palette, place, sequential } from "./colour.js";

export class Grid {
  constructor(el, { name, hover = () => {}, pick = () => {}, cell = [64, 22], left = 86, top = 24 }) {
    Object.assign(this, { el, hover, pick, left, top });
    [this.cw, this.ch] = cell;
    el.classList.add("grid-scroll");
    focusable(el, "table of cells", name);
    this.pane = document.createElement("div");
    this.pane.className = "grid-pane";
    this.space = document.createElement("div");
    this.space.className = "grid-space";
    el.append(this.pane, this.space);
    this.data = null;
    this.cell = null;
    this.mark = {};
    this.watcher = new ResizeObserver(() => this.fit());
    this.watcher.observe(el);
    this.layers = new Layers(this.pane, () => this.draw());
    this.later = throttled(() => this.draw());
    el.addEventListener("scroll", () => this.later());
    this.listen();
    this.fit();
  }

  /** Show {rows, cols, texts[row][col], values, min, max, rowLabels, colLabels, flags}. */
  show(data) {
    const followed = this.data && this.data.cols !== data.cols && this.mark.col === undefined;
    const first = !this.data;
    this.data = data;
    this.cell = null;
    this.fit();
    if (first || followed) this.el.scrollLeft = 1e9;
    this.draw();
  }

  fit() {
    this.pane.style.setProperty("width", `${this.el.clientWidth}px`);
    this.pane.style.setProperty("height", `${this.el.clientHeight}px`);
    if (!this.data) return;
    this.space.style.setProperty("width", `${this.left + this.data.cols * this.cw}px`);
    this.space.style.setProperty("height", `${this.top + this.data.rows * this.ch}px`);
  }

  lock(mark) {
    this.mark = mark;
    this.drawOver();
  }

  /** Bring a column into view. */
  reveal(col) {
    if (!this.data || col === undefined || col === null) return;
    const x = col * this.cw;
    const room = this.el.clientWidth - this.left;
    // With a neighbour or two, so that one sees where it stands.
    if (x < this.el.scrollLeft) this.el.scrollLeft = x - 2 * this.cw;
    else if (x + this.cw > this.el.scrollLeft + room) this.el.scrollLeft = x + 3 * this.cw - room;
  }

  draw() {
    if (!this.data || !this.layers.width) return;
    const c = this.layers.context();
    const colours = palette(this.el);
    const table = sequential(colours);
    const { rows, cols, texts, values, min, max, rowLabels, colLabels } = this.data;
    const { width, height } = this.layers;
    const [x0, y0] = [this.el.scrollLeft, this.el.scrollTop];
    const [c0, c1] = [Math.floor(x0 / this.cw), Math.min(cols, Math.ceil((x0 + width - this.left) / this.cw))];
    const [r0, r1] = [Math.floor(y0 / this.ch), Math.min(rows, Math.ceil((y0 + height - this.top) / this.ch))];
    c.font = font(12);
    c.textBaseline = "middle";
    for (let row = r0; row < r1; row += 1) {
      for (let col = c0; col < c1; col += 1) {
        const at = place(values[row * cols + col], min, max);
        const [x, y] = [this.left + col * this.cw - x0, this.top + row * this.ch - y0];
        c.fillStyle = css(table, at);
        c.fillRect(x, y, this.cw - 1, this.ch - 1);
        c.fillStyle = inkOn(table, at);
        c.fillText(cut(c, visible(texts[row][col]), this.cw - 9), x + 4, y + this.ch / 2);
      }
    }
    c.fillStyle = colours.surface;
    c.fillRect(0, 0, width, this.top);
    c.fillRect(0, 0, this.left, height);
    c.save();
    c.beginPath();
    c.rect(this.left, 0, width - this.left, this.top);
    c.clip();
    for (let col = c0; col < c1; col += 1) {
      c.fillStyle = col === this.mark.col ? colours.accent : colours.dim;
      c.font = font(12, col === this.mark.col ? 600 : 400);
      c.fillText(cut(c, visible(colLabels[col]), this.cw - 9), this.left + col * this.cw - x0 + 4, this.top / 2);
    }
    c.restore();
    c.save();
    c.beginPath();
    c.rect(0, this.top, this.left, height - this.top);
    c.clip();
    for (let row = r0; row < r1; row += 1) {
      c.fillStyle = row === this.mark.row ? colours.accent : colours.dim;
      c.font = font(12, row === this.mark.row ? 600 : 400);
      c.fillText(cut(c, rowLabels[row], this.left - 12), 4, this.top + row * this.ch - y0 + this.ch / 2);
    }
    c.restore();
    c.fillStyle = colours.line;
    c.fillRect(this.left - 1, 0, 1, Math.min(height, this.top + rows * this.ch));
    c.fillRect(0, this.top - 1, Math.min(width, this.left + cols * this.cw), 1);
    this.drawOver();
  }

  drawOver() {
    if (!this.data) return;
    const c = this.layers.context(this.layers.over);
    const colours = palette(this.el);
    const [x0, y0] = [this.el.scrollLeft, this.el.scrollTop];
    const { row, col } = this.mark;
    c.beginPath();
    c.rect(this.left, this.top, this.layers.width, this.layers.height);
    c.clip();
    const box = (r, k, colour, width) => {
      c.strokeStyle = colour;
      c.lineWidth = width;
      c.strokeRect(this.left + k * this.cw - x0, this.top + r * this.ch - y0, this.cw - 1, this.ch - 1);
    };
    c.fillStyle = colours.accent;
    if (col !== undefined && col !== null) {
      c.fillRect(this.left + col * this.cw - x0 - 1, this.top - y0, 1, this.data.rows * this.ch);
      c.fillRect(this.left + (col + 1) * this.cw - x0 - 1, this.top - y0, 1, this.data.rows * this.ch);
    }
    if (row !== undefined && row !== null) {
      c.fillRect(this.left - x0, this.top + row * this.ch - y0 - 1, this.data.cols * this.cw, 1);
      c.fillRect(this.left - x0, this.top + (row + 1) * this.ch - y0 - 1, this.data.cols * this.cw, 1);
    }
    if (this.cell) box(...this.cell, colours.text, 1.5);
  }

  find(event) {
    if (!this.data) return null;
    const [x, y] = this.layers.at(event);
    if (x < this.left || y < this.top) return null;
    const col = Math.floor((x - this.left + this.el.scrollLeft) / this.cw);
    const row = Math.floor((y - this.top + this.el.scrollTop) / this.ch);
    return row < this.data.rows && col < this.data.cols ? [row, col] : null;
  }

  point(cell) {
    pointAt(this, cell);
  }

  listen() {
    const { el } = this;
    el.addEventListener("pointermove", (event) => this.point(this.find(event)));
    el.addEventListener("pointerleave", () => this.point(null));
    el.addEventListener("blur", () => this.point(null));
    el.addEventListener("click", (event) => {
      const cell = this.find(event);
      if (cell) this.pick(...cell);
    });
    el.addEventListener("keydown", (event) => {
      const moves = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
      if (!this.data) return;
      if (event.key in moves) {
        const [row, col] = this.cell ?? [this.mark.row ?? this.data.rows - 1, this.mark.col ?? this.data.cols - 1];
        const [dr, dc] = moves[event.key];
        const clip = (v, n) => Math.max(0, Math.min(n - 1, v));
        const next = [clip(row + dr, this.data.rows), clip(col + dc, this.data.cols)];
        this.reveal(next[1]);
        this.point(next);
      } else if (event.key === "Enter" && this.cell) this.pick(...this.cell);
      else return;
      event.preventDefault();
    });
  }

  close() {
    this.watcher.disconnect();
    this.layers.close();
  }
}
