/** A table of many rows, of which only those in view exist; its head stays. Knows no content. */

import { h } from "../dom.js";
import { Rows } from "./rows.js";

export class Table {
  /**
   * `columns` are {name, title?, number?}; `cells(i)` gives the contents of a row, `pick(i)` is told,
   * and `chosen(i)` says whether a row is marked. `widths` is a CSS grid template.
   */
  constructor(el, { label, columns, widths, cells, pick = () => {}, chosen = () => false, height = 25 }) {
    Object.assign(this, { el, columns, cells, pick, chosen });
    el.classList.add("table-box");
    el.style.setProperty("--columns", widths);
    const cell = (c, content, role) => h("div", { role, class: c.number ? "num" : "", title: role === "columnheader" ? c.title : null }, content);
    this.head = h("div", { class: "table-row table-head", role: "row" }, columns.map((c) => cell(c, c.name, "columnheader")));
    this.body = h("div", { class: "table-body", role: "rowgroup" });
    this.grid = h("div", { role: "grid", "aria-label": label, class: "table" }, this.head, this.body);
    el.append(this.grid);
    this.rows = new Rows(this.body, {
      height,
      row: (i) => {
        const out = h("div", {
          class: `table-row${chosen(i) ? " locked" : ""}`, role: "row", tabindex: this.at === i ? 0 : -1, "data-row": i, "aria-rowindex": i + 2,
          "aria-selected": String(chosen(i)), onclick: () => pick(i), onfocus: () => { this.at = i; },
        });
        out.append(...this.cells(i).map((content, k) => cell(columns[k], content, "gridcell")));
        return out;
      },
    });
    this.at = 0;
    this.body.addEventListener("keydown", (event) => this.key(event));
  }

  show(count) {
    this.grid.setAttribute("aria-rowcount", String(count + 1));
    this.at = Math.max(0, Math.min(this.at, count - 1));
    this.el.style.setProperty("--height", `${count * this.rows.height + 2}px`);
    this.rows.show(count);
  }

  key(event) {
    const move = { ArrowUp: -1, ArrowDown: 1, PageUp: -10, PageDown: 10, Home: -1e9, End: 1e9 }[event.key];
    if (move) {
      this.at = Math.max(0, Math.min(this.rows.count - 1, this.at + move));
      this.rows.reveal(this.at)?.focus({ preventScroll: true });
    } else if (event.key === "Enter") this.pick(this.at);
    else return;
    event.preventDefault();
  }

  close() {
    this.rows.close();
  }
}
