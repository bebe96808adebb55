/** Line charts and histograms in SVG, with axes that can be read. Knows numbers only. */

import { s, short } from "../dom.js";

/** Round numbers that cover a range. */
export function ticks(low, high, count = 4) {
  if (!(high > low)) return [low];
  const raw = (high - low) / count;
  const unit = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * unit).find((m) => m >= raw);
  const out = [];
  for (let t = Math.ceil(low / step) * step; t <= high + step * 1e-9; t += step) out.push(Math.abs(t) < step * 1e-9 ? 0 : t);
  return out;
}

/**
 * Lines over a common x of names: series {name: number[]}; `hover(i)` and `pick(i)` are told;
 * `mark` is the index that is locked; `high` is where the axis ends at least.
 */
export function lines(series, names, { width = 460, height = 170, title, mark = null, high: top = -Infinity, hover = () => {}, pick = () => {} }) {
  const box = { left: 46, right: 10, top: 8, bottom: 22 };
  const all = Object.values(series).flat().filter(Number.isFinite);
  let [low, high] = [Math.min(0, ...all), Math.max(top, ...all)];
  if (!(high > low)) high = low + 1;
  const [w, h] = [width - box.left - box.right, height - box.top - box.bottom];
  const x = (i) => box.left + (names.length < 2 ? w / 2 : (i * w) / (names.length - 1));
  const y = (v) => box.top + h - ((v - low) / (high - low)) * h;
  const root = s("svg", { viewBox: `0 0 ${width} ${height}`, class: "chart", role: "img", "aria-label": title });
  for (const t of ticks(low, high)) {
    root.append(
      s("line", { x1: box.left, x2: width - box.right, y1: y(t), y2: y(t), class: "rule" }),
      s("text", { x: box.left - 6, y: y(t) + 4, class: "tick end", text: short(t) }),
    );
  }
  const every = Math.ceil(names.length / Math.max(1, Math.floor(w / 40)));
  names.forEach((name, i) => {
    if (i % every === 0) root.append(s("text", { x: x(i), y: height - 6, class: "tick middle", text: name }));
  });
  if (mark !== null && mark >= 0) root.append(s("line", { x1: x(mark), x2: x(mark), y1: box.top, y2: box.top + h, class: "mark" }));
  const cursor = s("line", { y1: box.top, y2: box.top + h, class: "cursor", visibility: "hidden" });
  root.append(cursor);
  Object.entries(series).forEach(([name, values], k) => {
    const points = values.map((v, i) => (Number.isFinite(v) ? `${x(i)},${y(v)}` : null)).filter(Boolean);
    root.append(s("polyline", { points: points.join(" "), class: `series s${k}` }));
    values.forEach((v, i) => Number.isFinite(v) && root.append(s("circle", { cx: x(i), cy: y(v), r: 2.5, class: `dot s${k}` },
      s("title", { text: `${name}, ${names[i]}: ${short(v)}` }))));
  });
  const index = (event) => {
    const seen = root.getBoundingClientRect();
    const at = ((event.clientX - seen.left) / seen.width) * width;
    return Math.max(0, Math.min(names.length - 1, Math.round(((at - box.left) / w) * (names.length - 1))));
  };
  root.addEventListener("pointermove", (event) => {
    const i = index(event);
    cursor.setAttribute("x1", x(i));
    cursor.setAttribute("x2", x(i));
    cursor.setAttribute("visibility", "visible");
    hover(i);
  });
  root.addEventListener("pointerleave", () => {
    cursor.setAttribute("visibility", "hidden");
    hover(null);
  });
  root.addEventListener("click", (event) => pick(index(event)));
  return root;
}

/** A histogram from `low` to `high`. */
export function histogram(counts, low, high, { width = 260, height = 74 } = {}) {
  const most = Math.max(1, ...counts);
  const [w, h] = [width / counts.length, height - 16];
  const root = s("svg", {
    viewBox: `0 0 ${width} ${height}`, class: "chart histogram", role: "img",
    "aria-label": `Histogram from ${short(low)} to ${short(high)}`,
  });
  counts.forEach((n, i) => {
    const tall = n ? Math.max(1, (n / most) * h) : 0;
    const from = low + ((high - low) * i) / counts.length;
    root.append(s("rect", { x: i * w, y: h - tall, width: Math.max(w - 1, 0.5), height: tall, class: "bar" },
      s("title", { text: `${n} from ${short(from)} to ${short(from + (high - low) / counts.length)}` })));
  });
  if (low < 0 && high > 0) {
    const zero = ((0 - low) / (high - low)) * width;
    root.append(s("line", { x1: zero, x2: zero, y1: 0, y2: h, class: "cursor" }),
      s("text", { x: zero, y: height - 3, class: "tick middle", text: "0" }));
  }
  root.append(s("line", { x1: 0, x2: width, y1: h, y2: h, class: "rule" }),
    s("text", { x: 0, y: height - 3, class: "tick", text: short(low) }),
    s("text", { x: width, y: height - 3, class: "tick end", text: short(high) }));
  return root;
}
