/** A whole table as a narrow picture under it, with a frame around what is in view. Knows numbers only. */

import { h, throttled } from "../dom.js";
import { palette, place, sequential } from "./colour.js";

/** A picture of what `grid` shows; hidden where all of it is in view. */
export function minimap(grid, name) {
  const canvas = h("canvas", { "aria-hidden": "true" });
  const frame = h("div", { class: "minimap-view", "aria-hidden": "true" });
  const el = h("div", { class: "minimap", role: "scrollbar", tabindex: 0, "aria-orientation": "horizontal", "aria-label": name, "aria-controls": grid.el.id || null, "aria-valuemin": 0, "aria-valuemax": 100, "aria-valuenow": 0, title: "The whole text: click or draw to go there" }, canvas, frame);
  el.hidden = true;

  const later = throttled(() => {
    const { el: box, left } = grid;
    const [seen, all] = [box.clientWidth - left, (grid.data?.cols ?? 0) * grid.cw];
    el.hidden = !(all > seen + 4);
    if (el.hidden) return;
    frame.style.setProperty("left", `${(100 * box.scrollLeft) / all}%`);
    frame.style.setProperty("width", `${Math.min(100, (100 * seen) / all)}%`);
    el.setAttribute("aria-valuenow", String(Math.round((100 * box.scrollLeft) / Math.max(1, all - seen))));
  });

  function draw() {
    later();
    if (!grid.data) return;
    const { rows, cols, values, min, max } = grid.data;
    const table = sequential(palette(el));
    const image = new ImageData(cols, rows);
    for (let i = 0; i < rows * cols; i += 1) {
      const at = 3 * place(values[i], min, max);
      image.data.set([table[at], table[at + 1], table[at + 2], 255], 4 * i);
    }
    [canvas.width, canvas.height] = [cols, rows];
    canvas.getContext("2d").putImageData(image, 0, 0);
  }

  const go = (event) => {
    const seen = el.getBoundingClientRect();
    const all = grid.data.cols * grid.cw;
    grid.el.scrollLeft = ((event.clientX - seen.left) / seen.width) * all - (grid.el.clientWidth - grid.left) / 2;
  };
  el.addEventListener("pointerdown", (event) => {
    el.setPointerCapture(event.pointerId);
    go(event);
  });
  el.addEventListener("pointermove", (event) => event.buttons & 1 && go(event));
  el.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1, PageUp: -8, PageDown: 8, Home: -1e6, End: 1e6 }[event.key];
    if (!by) return;
    event.preventDefault();
    grid.el.scrollLeft += by * grid.cw * 2;
  });
  grid.el.addEventListener("scroll", later, { passive: true });
  window.addEventListener("votive-theme", draw);
  const sized = new ResizeObserver(later);
  sized.observe(grid.el);
  return { el, draw, close: () => { sized.disconnect(); window.removeEventListener("votive-theme", draw); } };
}
