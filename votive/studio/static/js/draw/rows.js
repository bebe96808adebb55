/** A long list of rows of one height, of which only those in view exist. Knows no content. */

import { throttled } from "../dom.js";

export class Rows {
  /** `row(i)` makes the element of a row; `height` is that of each, in pixels. */
  constructor(el, { height, row, around = 6 }) {
    Object.assign(this, { el, height, row, around, count: 0 });
    el.classList.add("rows");
    this.space = document.createElement("div");
    this.space.className = "rows-space";
    this.space.setAttribute("role", "presentation");
    el.append(this.space);
    this.made = new Map();
    this.later = throttled(() => this.draw());
    el.addEventListener("scroll", this.later, { passive: true });
    this.watcher = new ResizeObserver(() => this.draw());
    this.watcher.observe(el);
  }

  /** Make the rows anew: there are `count` now. */
  show(count, { height = this.height } = {}) {
    [this.count, this.height] = [count, height];
    const [focused] = [...this.made].find(([, row]) => row === document.activeElement) ?? [];
    this.made.clear();
    this.space.replaceChildren();
    this.space.style.setProperty("height", `${count * height}px`);
    this.draw();
    if (focused !== undefined) this.made.get(focused)?.focus({ preventScroll: true });
  }

  /** The rows in view, as [first, last + 1]. */
  range() {
    const top = this.el.scrollTop;
    const first = Math.max(0, Math.floor(top / this.height) - this.around);
    return [first, Math.min(this.count, Math.ceil((top + this.el.clientHeight) / this.height) + this.around)];
  }

  draw() {
    if (!this.el.clientHeight && this.count > 2 * this.around) return; // nobody sees it
    const [first, last] = this.range();
    for (const [i, row] of this.made) {
      // What has the focus stays, or the keys would be lost.
      if ((i < first || i >= last) && !row.contains(document.activeElement)) {
        row.remove();
        this.made.delete(i);
      }
    }
    for (let i = first; i < last; i += 1) {
      if (this.made.has(i)) continue;
      const row = this.row(i);
      row.style.setProperty("top", `${i * this.height}px`);
      row.style.setProperty("height", `${this.height}px`);
      // In the order in which they are read, whichever way one has scrolled.
      const after = [...this.made.keys()].filter((k) => k > i).reduce((a, b) => Math.min(a, b), Infinity);
      this.space.insertBefore(row, this.made.get(after) ?? null);
      this.made.set(i, row);
    }
  }

  /** Make one row anew, if it is there. */
  renew(i) {
    const old = this.made.get(i);
    if (!old) return;
    old.remove();
    this.made.delete(i);
    this.draw();
  }

  /** Bring a row into view, and give its element. */
  reveal(i) {
    if (i === null || i === undefined || i < 0 || i >= this.count) return null;
    const [y, room] = [i * this.height, this.el.clientHeight];
    if (y < this.el.scrollTop) this.el.scrollTop = y;
    else if (y + this.height > this.el.scrollTop + room) this.el.scrollTop = y + this.height - room;
    this.draw();
    return this.made.get(i) ?? null;
  }

  close() {
    this.watcher.disconnect();
  }
}
