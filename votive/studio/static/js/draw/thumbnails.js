/** The attention of every head of every layer as small pictures, of which only rows in view exist. Knows numbers only. */

import { h } from "../dom.js";
import { palette, sequential } from "./colour.js";
import { Rows } from "./rows.js";

const [SMALL, LARGE, GAP, NAME] = [22, 52, 5, 27]; // sizes of a picture, and room beside it

/** Pictures in `el`; `pick(layer, head)` is told. Gives {show, lock, close}. */
export function thumbnails(el, { pick, hover = () => {} }) {
  let [data, locked, size] = [null, [null, null], LARGE];
  el.classList.add("thumbs");
  el.setAttribute("role", "group");
  el.setAttribute("aria-label", "All heads of all layers");
  const rows = new Rows(el, { height: LARGE + 8, around: 2, row: (layer) => row(layer) });

  function row(layer) {
    const [, H, S] = data.shape;
    return h("div", { class: "thumb-row" }, h("span", { class: "thumb-name", title: `Layer ${layer}` }, String(layer)), Array.from({ length: H }, (_, head) => one(layer, head, S, H)));
  }

  function one(layer, head, S, H) {
    const canvas = h("canvas", { width: S, height: S, style: { width: `${size}px`, height: `${size}px` } });
    const table = sequential(palette(el));
    const image = new ImageData(S, S);
    const from = (layer * H + head) * S * S;
    for (let i = 0; i < S * S; i += 1) {
      const at = 3 * Math.round(255 * (data.values[from + i] / 255) ** 0.6);
      image.data.set([table[at], table[at + 1], table[at + 2], 255], 4 * i);
    }
    canvas.getContext("2d").putImageData(image, 0, 0);
    const name = `Layer ${layer}, head ${head}`;
    return h("button", {
      type: "button", class: "thumb", "data-layer": layer, "data-head": head, title: name, "aria-label": name, "aria-pressed": String(locked[0] === layer && locked[1] === head),
      onclick: () => pick(layer, head), onpointerenter: () => hover(layer, head), onpointerleave: () => hover(null),
    }, canvas);
  }

  el.addEventListener("keydown", (event) => {
    const at = event.target.closest?.(".thumb");
    const by = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (!at || !by) return;
    event.preventDefault();
    const layer = Number(at.dataset.layer) + by[0];
    rows.reveal(layer)?.querySelector(`[data-head="${Number(at.dataset.head) + by[1]}"]`)?.focus({ preventScroll: true });
  });
  const renew = () => {
    if (!data) return;
    // As large as lets all heads of a layer stand in one row, where that can be seen.
    size = Math.max(SMALL, Math.min(LARGE, Math.floor((el.clientWidth - NAME - 12) / data.shape[1]) - GAP));
    rows.show(data.shape[0], { height: size + 8 });
  };
  window.addEventListener("votive-theme", renew);
  let wide = 0;
  const sized = new ResizeObserver(() => {
    if (el.clientWidth && el.clientWidth !== wide) renew();
    wide = el.clientWidth;
  });
  sized.observe(el);

  return {
    /** Bytes (layers, heads, size, size). */
    show(values) {
      data = { values, shape: values.shape };
      el.dataset.count = String(values.shape[0] * values.shape[1]);
      renew();
    },
    lock(layer, head) {
      locked = [layer, head];
      for (const b of el.querySelectorAll(".thumb")) b.setAttribute("aria-pressed", String(Number(b.dataset.layer) === layer && Number(b.dataset.head) === head));
    },
    close: () => {
      rows.close();
      sized.disconnect();
      window.removeEventListener("votive-theme", renew);
    },
  };
}
