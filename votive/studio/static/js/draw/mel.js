/**
 * Mels over time with the words below them; a span that is chosen, a curve of attention over it and
 * a cursor that plays. Knows numbers and words only.
 */

import { cut, font, layersFor } from "./canvas.js";
import { palette, sequential } from "./colour.js";
import { clock, steer, zoomKey } from "./time.js";

const [AXIS, WORDS] = [18, 26]; // heights of the axis and of the words

export class Mel {
  /** `pick(t, word)` is told what is clicked at, `move(by)` that keys go to another word, and `hover(t, band)`. */
  constructor(el, scale, { name, pick = () => {}, move = () => {}, enter = () => {}, hover = () => {} }) {
    Object.assign(this, { el, scale, pick, move, enter, hover });
    [this.data, this.words, this.chosen, this.curve, this.cursor] = [null, [], null, null, null];
    this.layers = layersFor(this, el, "spectrogram", name);
    scale.on(() => this.later());
    this.listen();
  }

  /** Show {mels (bands, frames) of bytes, start, ticks}; frames last 0.01 s. */
  show(data) {
    this.data = data;
    this.image = null;
    this.draw();
  }

  /** Words [{text, start, end}] below it. */
  say(words) {
    this.words = words;
    this.draw();
  }

  /** Choose a span {start, end}, with a curve {values, start, step} over it. */
  choose(span, curve = null) {
    [this.chosen, this.curve] = [span, curve];
    this.draw();
  }

  play(t) {
    this.cursor = t;
    this.drawOver();
  }

  get room() {
    const [w, h] = [this.layers.width - this.scale.left - 1, this.layers.height - AXIS - WORDS];
    return { w, h, words: h + 2, axis: h + WORDS };
  }

  x(t) {
    return this.scale.left + this.scale.share(t) * this.room.w;
  }

  paint() {
    const { mels } = this.data;
    const [bands, frames] = mels.shape;
    const table = sequential(palette(this.el));
    const image = new ImageData(Math.max(1, frames), bands);
    for (let band = 0; band < bands; band += 1) {
      const row = (bands - 1 - band) * frames; // low bands lie below
      for (let i = 0; i < frames; i += 1) {
        const at = 3 * mels[band * frames + i];
        image.data.set([table[at], table[at + 1], table[at + 2], 255], 4 * (row + i));
      }
    }
    this.image = new OffscreenCanvas(image.width, bands);
    this.image.getContext("2d").putImageData(image, 0, 0);
  }

  clip(c, top, height) {
    c.beginPath();
    c.rect(this.scale.left, top, this.room.w, height);
    c.clip();
  }

  draw() {
    if (!this.data || !this.layers.width) return;
    if (!this.image) this.paint();
    const c = this.layers.context();
    const colours = palette(this.el);
    const { w, h, axis } = this.room;
    const [bands, frames] = this.data.mels.shape;
    c.save();
    this.clip(c, 0, h);
    const [left, right] = [this.x(this.data.start), this.x(this.data.start + frames / 100)];
    c.drawImage(this.image, left, 0, right - left, h);
    c.restore();
    c.strokeStyle = colours.line;
    c.strokeRect(this.scale.left + 0.5, 0.5, w, h - 1);
    c.font = font(12);
    c.fillStyle = colours.dim;
    c.textBaseline = "middle";
    c.textAlign = "right";
    for (const [band, text] of this.data.ticks) {
      const y = h - ((band + 0.5) / bands) * h;
      if (y > 8 && y < h - 4) c.fillText(text, this.scale.left - 6, y);
    }
    c.textAlign = "center";
    const marks = this.scale.ticks(w);
    const digits = marks.some((t) => t % 1 > 1e-6) ? 1 : 0;
    for (const t of marks) {
      const x = this.x(t);
      c.fillRect(x, h + WORDS - 3, 1, 4);
      if (x > this.scale.left + 8 && x < this.scale.left + w - 12) c.fillText(clock(t, digits), x, axis + AXIS / 2 + 2);
    }
    this.drawWords(c, colours);
    this.drawOver();
  }

  drawWords(c, colours) {
    const top = this.room.words;
    c.save();
    this.clip(c, top, WORDS - 6);
    c.font = font(12);
    c.textAlign = "left";
    // The one that is chosen lies on top, as wide as its text.
    for (const word of [...this.words.filter((w) => w !== this.chosen?.word), ...this.words.filter((w) => w === this.chosen?.word)]) {
      const on = word === this.chosen?.word;
      const [x1, x2] = [this.x(word.start), this.x(word.end)];
      if (x2 < this.scale.left || x1 > this.scale.left + this.room.w) continue;
      const text = word.text.trim();
      const wide = Math.max(2, x2 - x1 - 1, on ? c.measureText(text).width + 8 : 0);
      c.fillStyle = on ? colours.accent : colours["heat-mid"];
      c.globalAlpha = on ? 1 : 0.3;
      c.fillRect(x1, top, wide, WORDS - 6);
      c.globalAlpha = 1;
      c.fillStyle = on ? colours.surface : colours.text;
      const from = Math.max(x1, this.scale.left) + 3;
      if (x1 + wide - from > 12) c.fillText(on ? text : cut(c, text, x2 - from - 3), from, top + WORDS / 2 - 3);
    }
    c.restore();
  }

  drawOver() {
    if (!this.data) return;
    const c = this.layers.context(this.layers.over);
    const colours = palette(this.el);
    const { h } = this.room;
    this.clip(c, 0, h);
    if (this.chosen) {
      const [x1, x2] = [this.x(this.chosen.start), Math.max(this.x(this.chosen.end), this.x(this.chosen.start) + 2)];
      c.fillStyle = colours.surface;
      c.globalAlpha = 0.55; // what was not heard for it fades
      c.fillRect(this.scale.left, 0, x1 - this.scale.left, h);
      c.fillRect(x2, 0, this.scale.left + this.room.w - x2, h);
      c.globalAlpha = 1;
      c.strokeStyle = colours.accent;
      c.lineWidth = 2;
      c.strokeRect(x1, 1, x2 - x1, h - 2);
    }
    if (this.curve) this.drawCurve(c, colours, h);
    if (this.cursor !== null) {
      c.fillStyle = colours.text;
      c.fillRect(this.x(this.cursor) - 0.75, 0, 1.5, h);
    }
  }

  drawCurve(c, colours, h) {
    const { values, start, step } = this.curve;
    const top = values.reduce((a, b) => Math.max(a, b), 1e-9);
    const y = (v) => h - 2 - (Math.max(0, v) / top) * h * 0.62;
    c.beginPath();
    c.moveTo(this.x(start), h);
    values.forEach((v, i) => c.lineTo(this.x(start + (i + 0.5) * step), y(v)));
    c.lineTo(this.x(start + values.length * step), h);
    c.globalAlpha = 0.25;
    c.fillStyle = colours.positive;
    c.fill();
    c.globalAlpha = 1;
    c.strokeStyle = colours.positive;
    c.lineWidth = 1.6;
    c.stroke();
  }

  share(event) {
    return (this.layers.at(event)[0] - this.scale.left) / Math.max(1, this.room.w);
  }

  listen() {
    const { el } = this;
    const dragged = steer(el, this.scale, (event) => this.share(event));
    el.addEventListener("click", (event) => {
      const share = this.share(event);
      if (dragged() || !this.data || share < 0 || share > 1) return;
      const t = this.scale.moment(share);
      this.pick(t, this.words.find((w) => w.start <= t && t < w.end) ?? null);
    });
    el.addEventListener("pointermove", (event) => {
      const [share, y] = [this.share(event), this.layers.at(event)[1]];
      if (!this.data || share < 0 || share > 1) return this.hover(null);
      const bands = this.data.mels.shape[0];
      const band = y < this.room.h ? Math.floor((1 - y / this.room.h) * bands) : null;
      return this.hover(this.scale.moment(share), band);
    });
    el.addEventListener("pointerleave", () => this.hover(null));
    el.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.altKey || event.metaKey) return;
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (by) this.move(by);
      else if (event.key === "Enter" || event.key === " ") this.enter();
      else if (!zoomKey(event, this.scale)) return;
      event.preventDefault();
    });
  }

  close() {
    this.layers.close();
  }
}
