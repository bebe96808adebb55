/** A picture of pixels in the size it was sent in or larger, never smoothed. Knows no model. */

import { h } from "../dom.js";

const LEAST = 224;

/** Draws {png, width, height, legend, title} into a box. */
export function pixels(el, figure) {
  const scale = Math.max(1, Math.floor(LEAST / Math.max(figure.width, figure.height)));
  el.append(h("img", {
    src: `data:image/png;base64,${figure.png}`, alt: figure.title || "Picture", class: "pixels",
    width: figure.width * scale, height: figure.height * scale, style: { "image-rendering": "pixelated", "max-width": "100%" },
  }));
  if (figure.legend) el.append(h("p", { class: "dim small" }, figure.legend));
}
