/** What the colours of a heat map mean: a ramp with its ends. Knows numbers and words only. */

import { h, put } from "../dom.js";

/** An empty legend, to be filled with `tell`. */
export function legend() {
  return h("div", { class: "ramp", role: "img" });
}

/** Fill a legend: `ends` are the texts under the ramp, two or three; `signed` has zero in the middle. */
export function tell(el, { name, ends, signed = false, title = null }) {
  el.setAttribute("aria-label", `Colours: ${name}, from ${ends[0]} to ${ends.at(-1)}`);
  if (title) el.setAttribute("title", title);
  put(el, h("span", { class: "ramp-name" }, name), h("span", { class: "num" }, ends[0]),
    h("span", { class: `ramp-bar${signed ? " signed" : ""}` }, ends.length > 2 ? h("span", { class: "ramp-mid num" }, ends[1]) : null),
    h("span", { class: "num" }, ends.at(-1)));
}
