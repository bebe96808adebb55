/** A stretch of time that several pictures share: what of it is in view. Draws nothing. */

import { ticks } from "./axes.js";

/** Seconds as they are read: 7.5 s, or 1:07.5 from a minute on. */
export function clock(t, digits = 2) {
  const minutes = Math.floor(t / 60);
  if (!minutes) return `${t.toFixed(digits)} s`;
  return `${minutes}:${(t - 60 * minutes).toFixed(digits).padStart(digits ? digits + 3 : 2, "0")}`;
}

export class Scale {
  constructor() {
    [this.whole, this.view] = [[0, 1], [0, 1]];
    this.left = 62; // pixels for names beside each picture
    this.focus = null; // a moment that stays in place when nothing else is said
    this.listeners = new Set();
  }

  on(f) {
    this.listeners.add(f);
  }

  tell() {
    for (const f of this.listeners) f();
  }

  /** Another stretch, all of it in view. */
  set(from, to) {
    this.whole = [from, Math.max(to, from + 0.05)];
    this.view = [...this.whole];
    this.tell();
  }

  /** Nearer or farther, around a moment. */
  zoom(factor, at = this.focus ?? (this.view[0] + this.view[1]) / 2) {
    const long = Math.max(0.2, Math.min(this.whole[1] - this.whole[0], (this.view[1] - this.view[0]) / factor));
    const share = (at - this.view[0]) / (this.view[1] - this.view[0]);
    this.show(at - share * long, long);
  }

  show(from, long = this.view[1] - this.view[0]) {
    const first = Math.max(this.whole[0], Math.min(from, this.whole[1] - long));
    this.view = [first, first + long];
    this.tell();
  }

  /** Bring a span into view, if it is not. */
  reveal(from, to) {
    const long = this.view[1] - this.view[0];
    if (from < this.view[0] || to > this.view[1]) this.show((from + to - long) / 2);
  }

  get zoomed() {
    return this.view[1] - this.view[0] < this.whole[1] - this.whole[0] - 1e-6;
  }

  /** Where a moment lies between 0 and 1 of what is in view. */
  share(t) {
    return (t - this.view[0]) / (this.view[1] - this.view[0]);
  }

  moment(share) {
    return this.view[0] + share * (this.view[1] - this.view[0]);
  }

  ticks(width) {
    return ticks(...this.view, Math.max(2, Math.floor(width / 70)));
  }
}

/** Let wheel and dragging in `el` move a scale; `at(event)` gives a share of what is in view. */
export function steer(el, scale, at) {
  let drag = null;
  el.addEventListener("wheel", (event) => {
    if (!event.deltaY || (!scale.zoomed && event.deltaY > 0)) return;
    event.preventDefault();
    scale.zoom(Math.exp(-event.deltaY / 300), scale.moment(Math.max(0, Math.min(1, at(event)))));
  }, { passive: false });
  el.addEventListener("pointerdown", (event) => { drag = { share: at(event), from: scale.view[0], moved: false }; });
  el.addEventListener("pointermove", (event) => {
    if (!drag || !(event.buttons & 1) || !scale.zoomed) return;
    const by = at(event) - drag.share;
    if (Math.abs(by) > 0.005) drag.moved = true;
    if (drag.moved) scale.show(drag.from - by * (scale.view[1] - scale.view[0]));
  });
  el.addEventListener("dblclick", () => scale.set(...scale.whole));
  /** Whether the click that just came ended a drag. */
  return () => {
    const moved = Boolean(drag?.moved);
    drag = null;
    return moved;
  };
}

/** Keys that zoom; gives whether it was one. */
export function zoomKey(event, scale) {
  if (event.ctrlKey || event.altKey || event.metaKey) return false;
  if (event.key === "+" || event.key === "=") scale.zoom(1.5);
  else if (event.key === "-") scale.zoom(1 / 1.5);
  else if (event.key === "0") scale.set(...scale.whole);
  else return false;
  return true;
}
