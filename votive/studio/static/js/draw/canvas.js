/** Two canvases on top of each other, as sharp as the screen is. Knows no data. */

import { throttled } from "../dom.js";

/** A base canvas, and an overlay for what follows the pointer, filling `el`. */
export class Layers {
  constructor(el, redraw) {
    this.el = el;
    el.classList.add("canvases");
    [this.base, this.over] = ["base", "over"].map((name) => {
      const canvas = document.createElement("canvas");
      canvas.className = name;
      canvas.setAttribute("aria-hidden", "true");
      el.append(canvas);
      return canvas;
    });
    this.width = this.height = 0;
    this.watcher = new ResizeObserver(() => this.fit() && redraw());
    this.watcher.observe(el);
    this.themed = () => redraw();
    window.addEventListener("votive-theme", this.themed);
    this.fit();
  }

  fit() {
    const [w, h, ratio] = [this.el.clientWidth, this.el.clientHeight, window.devicePixelRatio || 1];
    if (w === this.width && h === this.height && ratio === this.ratio) return false;
    [this.width, this.height, this.ratio] = [w, h, ratio];
    for (const canvas of [this.base, this.over]) {
      canvas.width = Math.round(w * ratio);
      canvas.height = Math.round(h * ratio);
      canvas.style.setProperty("width", `${w}px`);
      canvas.style.setProperty("height", `${h}px`);
    }
    return true;
  }

  /** A cleared context in units of CSS pixels. */
  context(canvas = this.base) {
    const c = canvas.getContext("2d");
    c.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    c.clearRect(0, 0, this.width, this.height);
    return c;
  }

  /** Where a pointer event is. */
  at(event) {
    const box = this.el.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  close() {
    this.watcher.disconnect();
    window.removeEventListener("votive-theme", this.themed);
  }
}

/** Let `el` be reached by keys and be read to people as a `kind` of picture. */
export function focusable(el, kind, name) {
  el.tabIndex = 0;
  el.setAttribute("role", "application");
  el.setAttribute("aria-roledescription", kind);
  el.setAttribute("aria-label", name);
}

/** Layers in `el` for what `view` draws; another theme has other colours, and needs another image. */
export function layersFor(view, el, kind, name) {
  focusable(el, kind, name);
  view.later = throttled(() => view.draw());
  return new Layers(el, () => {
    view.image = null;
    view.draw();
  });
}

/** The pointer is at a cell [row, col] of `view`, or at none. */
export function pointAt(view, cell) {
  if (cell?.join() === view.cell?.join()) return;
  view.cell = cell;
  view.drawOver();
  if (cell) view.hover(...cell);
  else view.hover(null);
}

// As in the style of the page.
const FONT = "-apple-system, BlinkMacSystemFont, 'Segoe UI', Inter, Roboto, 'Noto Sans', 'Liberation Sans', 'Helvetica Neue', Arial, sans-serif";

/** The font of a size, as a canvas wants it. */
export function font(size, weight = 400) {
  return `${weight} ${size}px ${FONT}`;
}

const widths = new Map();

/** A text cut to a width, with an ellipsis. */
export function cut(c, text, width) {
  const key = `${c.font}|${Math.round(width)}|${text}`;
  if (widths.has(key)) return widths.get(key);
  let found = text;
  if (c.measureText(text).width > width) {
    let [low, high] = [0, text.length];
    while (low < high) {
      const mid = (low + high + 1) >> 1;
      if (c.measureText(`${text.slice(0, mid)}…`).width <= width) low = mid;
      else high = mid - 1;
    }
    found = low ? `${text.slice(0, low)}…` : "";
  }
  if (widths.size > 20000) widths.clear();
  widths.set(key, found);
  return found;
}
